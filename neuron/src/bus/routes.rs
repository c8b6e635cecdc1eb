use std::collections::HashMap;

use crate::{Contract, Topic, limits};

/// What a bus knows of an ephemeral topic.
#[derive(Clone, Copy, Debug)]
struct Route {
    contract: Contract,
    /// The state of the declarations that the contract is from.
    version: u64,
    /// The `seq` given last.
    seq: u64,
}

impl Route {
    fn next(&mut self, version: u64) -> Option<(Contract, u64)> {
        if self.version != version {
            return None;
        }
        self.seq += 1;
        Some((self.contract, self.seq))
    }
}

/// The ephemeral topics published to most recently. Of older ones only this is remembered: none of them had a greater
/// `seq` than `forgotten`, so that no `seq` comes twice in a topic.
#[derive(Debug, Default)]
pub(super) struct Routes {
    recent: HashMap<Topic, Route>,
    older: HashMap<Topic, Route>,
    forgotten: u64,
}

impl Routes {
    /// The contract of a topic and the next `seq` in it, if that is known as of this state of the declarations.
    pub(super) fn next(&mut self, topic: &Topic, version: u64) -> Option<(Contract, u64)> {
        if let Some(route) = self.recent.get_mut(topic) {
            return route.next(version);
        }
        let mut route = self.older.remove(topic)?;
        let next = route.next(version);
        self.remember(topic.clone(), route);
        next
    }

    /// Takes in the contract of a topic.
    pub(super) fn learn(&mut self, topic: &Topic, contract: Contract, version: u64) {
        let known = self.recent.remove(topic).or_else(|| self.older.remove(topic));
        let seq = known.map_or(self.forgotten, |route| route.seq);
        self.remember(topic.clone(), Route { contract, version, seq });
    }

    fn remember(&mut self, topic: Topic, route: Route) {
        if self.recent.len() >= limits::EPHEMERAL_TOPICS_MAX / 2 {
            let gone = std::mem::replace(&mut self.older, std::mem::take(&mut self.recent));
            let greatest = gone.values().map(|route| route.seq).max();
            self.forgotten = self.forgotten.max(greatest.unwrap_or(0));
        }
        self.recent.insert(topic, route);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::Routes;
    use crate::{Contract, Topic, limits};

    #[test]
    fn however_many_topics_there_are_no_seq_comes_twice_and_memory_is_bounded() {
        let mut routes = Routes::default();
        let mut last: HashMap<Topic, u64> = HashMap::new();
        let mut publish = |topic: &Topic, version| {
            let next = routes.next(topic, version).unwrap_or_else(|| {
                routes.learn(topic, Contract::EPHEMERAL, version);
                routes.next(topic, version).unwrap()
            });
            assert!(routes.recent.len() + routes.older.len() <= limits::EPHEMERAL_TOPICS_MAX);
            let before = last.insert(topic.clone(), next.1).unwrap_or(0);
            assert!(next.1 > before, "{topic}: {} after {before}", next.1);
            (before, next.1)
        };
        let (early, often) = (Topic::new("early").unwrap(), Topic::new("often").unwrap());
        for _ in 0..100 {
            publish(&early, 1);
        }
        for number in 0..3 * limits::EPHEMERAL_TOPICS_MAX {
            publish(&Topic::new(format!("t.{number}")).unwrap(), 1);
            if number % 1_000 == 0 {
                // One that is used keeps its count without gaps.
                let (before, now) = publish(&often, 1);
                assert_eq!(now, before + 1);
            }
        }
        publish(&early, 1);
        // A declaration that is learnt later changes no count.
        let (before, now) = publish(&often, 2);
        assert_eq!(now, before + 1);
    }
}
