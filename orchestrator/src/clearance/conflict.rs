//! Resources that one package holds alone: a conflict is a missing edge.

use std::collections::{BTreeMap, BTreeSet};

use neuron::graph::Graph;

use super::round::{Laid, Round, Standing, end, start};
use crate::ruling::Ruling;

/// Who wants a resource, in the order in which they may have it.
#[derive(Default)]
struct Queue {
    /// The package that last held it alone.
    owner: Option<usize>,
    /// The packages that share it since then.
    users: Vec<usize>,
    owned: bool,
}

/// Lets packages that cannot hold a resource at once go one after the other.
///
/// All edges agree with one order of the round: what waits comes after what it waits for, what runs comes first, and
/// else the order of assignment decides. So no edge can close a cycle. An owner waits for those that share the resource
/// before it, and they wait for the owner before them: the edges of a resource are as many as its claimants.
pub(super) fn settle(round: &Round<'_>, denied: &[bool], graph: &Graph<usize>, rulings: &mut Vec<Ruling>) {
    let mut queues = contested(round, denied);
    if queues.is_empty() {
        return;
    }
    let order: Vec<usize> = graph
        .order()
        .filter(|node| *node % 2 == 0)
        .map(|node| node / 2)
        .collect();
    let mut graph = graph.clone();
    for place in order {
        let package = &round.packages[place];
        if !takes_part(package) || denied[place] {
            continue;
        }
        let wanted = package.claims.owns.iter().chain(package.claims.uses.keys());
        for resource in wanted.collect::<BTreeSet<_>>() {
            let Some(queue) = queues.get_mut(resource.as_str()) else {
                continue;
            };
            for first in queue.join(place, package.claims.owns.contains(resource)) {
                let (from, to) = (end(round, first), start(place));
                let ordered = graph.reaches(&from, &to);
                if package.standing != Standing::Running && !ordered && graph.add_edge(from, to).is_ok() {
                    rulings.push(after(&round.packages[first], package, resource));
                }
            }
        }
    }
}

/// The resources that somebody holds alone and somebody else wants too.
fn contested<'a>(round: &'a Round<'_>, denied: &[bool]) -> BTreeMap<&'a str, Queue> {
    let mut wanted: BTreeMap<&str, (usize, Queue)> = BTreeMap::new();
    for (place, package) in round.packages.iter().enumerate() {
        if !takes_part(package) || denied[place] {
            continue;
        }
        for own in &package.claims.owns {
            let (count, queue) = wanted.entry(own).or_default();
            *count += 1;
            queue.owned = true;
        }
        for shared in package
            .claims
            .uses
            .keys()
            .filter(|shared| !package.claims.owns.contains(*shared))
        {
            wanted.entry(shared).or_default().0 += 1;
        }
    }
    let contested = wanted
        .into_iter()
        .filter(|(_, (count, queue))| *count > 1 && queue.owned);
    contested.map(|(resource, (_, queue))| (resource, queue)).collect()
}

/// What is silent has no claims yet, and what is unknown will never hold any.
fn takes_part(package: &Laid<'_>) -> bool {
    package.standing != Standing::Silent && package.known
}

impl Queue {
    /// Lines a package up, and gives those it has to wait for.
    fn join(&mut self, place: usize, alone: bool) -> Vec<usize> {
        if !alone {
            self.users.push(place);
            return self.owner.into_iter().collect();
        }
        let users = std::mem::take(&mut self.users);
        let owner = self.owner.replace(place);
        if users.is_empty() {
            owner.into_iter().collect()
        } else {
            users
        }
    }
}

fn after(first: &Laid<'_>, package: &Laid<'_>, resource: &str) -> Ruling {
    let claim = |package: &Laid<'_>| {
        if package.claims.owns.contains(resource) {
            "owns"
        } else {
            "uses"
        }
    };
    let because = format!(
        "`{}` {} `{resource}`, which `{}` {}: one goes after the other",
        package.name,
        claim(package),
        first.name,
        claim(first)
    );
    Ruling::After {
        package: package.key.clone(),
        first: first.key.clone(),
        resource: resource.into(),
        because,
    }
}
