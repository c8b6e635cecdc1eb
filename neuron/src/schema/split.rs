//! From one document with `$defs` to schemas that name each other by hash.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use crate::{Error, ErrorKind, Json, Result};

use super::{definition::Schema, keyword};

/// Makes a schema of each node, dependencies first, the first node last. A `$ref` of `#` means the first node.
///
/// Nodes that lead to each other cannot each hold the other's hash: they become one definition, `{"$defs": {"0": …}}`
/// in the order of their names, and are named by the hash of that and a place in it.
pub(super) fn split(nodes: &[(String, Value)]) -> Result<Vec<Schema>, Error> {
    let index: HashMap<&str, usize> = nodes
        .iter()
        .enumerate()
        .skip(1)
        .map(|(i, (name, _))| (&**name, i))
        .collect();
    let mut edges = Vec::with_capacity(nodes.len());
    for (_, node) in nodes {
        edges.push(targets(node, &index)?);
    }
    let mut parts = Parts {
        uris: vec![String::new(); nodes.len()],
        made: Vec::new(),
    };
    let wanted = reachable(&edges);
    for group in groups(&edges)
        .into_iter()
        .filter(|group| group.iter().all(|node| wanted[*node]))
    {
        parts.group(nodes, &index, group)?;
    }
    let Parts { uris, mut made } = parts;
    // The first node is last already, unless it is a member of a group: then it is one place in that.
    if uris[0].contains('#') {
        made.push(schema(json!({ "$ref": uris[0] }))?);
    }
    Ok(made)
}

struct Parts {
    /// How each node is named, once it is made.
    uris: Vec<String>,
    made: Vec<Schema>,
}

impl Parts {
    fn group(
        &mut self,
        nodes: &[(String, Value)],
        index: &HashMap<&str, usize>,
        mut group: Vec<usize>,
    ) -> Result<(), Error> {
        group.sort_by(|a, b| nodes[*a].0.cmp(&nodes[*b].0));
        let single = group.len() == 1;
        for (place, node) in group.iter().enumerate() {
            self.uris[*node] = if single {
                "#".to_owned()
            } else {
                format!("#/$defs/{place}")
            };
        }
        let mut definitions = Map::new();
        for (place, node) in group.iter().enumerate() {
            definitions.insert(place.to_string(), self.renamed(&nodes[*node].1, index));
        }
        let made = schema(match definitions.remove("0") {
            Some(definition) if single => definition,
            first => {
                definitions.extend(first.map(|first| ("0".to_owned(), first)));
                json!({ "$defs": definitions })
            }
        })?;
        for node in group {
            let place = if single { "" } else { &self.uris[node] };
            self.uris[node] = made.reference().uri() + place;
        }
        self.made.push(made);
        Ok(())
    }

    fn renamed(&self, node: &Value, index: &HashMap<&str, usize>) -> Value {
        let mut node = node.clone();
        keyword::each_mut(&mut node, &mut |object| {
            if let Some(Value::String(uri)) = object.get_mut("$ref")
                && let Ok(Some(target)) = target(uri, index)
            {
                uri.clone_from(&self.uris[target]);
            }
        });
        node
    }
}

fn schema(definition: Value) -> Result<Schema, Error> {
    Ok(Schema::known(Json::of(&definition)?, definition))
}

/// The node that a `$ref` means; `None` if it is a hash already.
fn target(uri: &str, index: &HashMap<&str, usize>) -> Result<Option<usize>, Error> {
    if uri == "#" {
        return Ok(Some(0));
    }
    if !uri.starts_with('#') {
        return Ok(None);
    }
    let node = keyword::definition_name(uri).and_then(|name| index.get(&*name).copied());
    let unknown = || Error::new(ErrorKind::Schema, format!("`$ref` to `{uri}` leads to no type"));
    node.map(Some).ok_or_else(unknown)
}

fn targets(node: &Value, index: &HashMap<&str, usize>) -> Result<Vec<usize>, Error> {
    let (mut found, mut failed) = (Vec::new(), None);
    keyword::each_ref(node, &mut |uri| match target(uri, index) {
        Ok(target) => found.extend(target),
        Err(error) => failed = Some(error),
    });
    failed.map_or(Ok(found), Err)
}

/// Which nodes the first one leads to.
fn reachable(edges: &[Vec<usize>]) -> Vec<bool> {
    let (mut seen, mut open) = (vec![false; edges.len()], vec![0]);
    while let Some(node) = open.pop() {
        if !std::mem::replace(&mut seen[node], true) {
            open.extend(&edges[node]);
        }
    }
    seen
}

/// The strongly connected groups, each after those it leads to (Tarjan's algorithm).
fn groups(edges: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut search = Search {
        edges,
        order: vec![None; edges.len()],
        low: vec![0; edges.len()],
        stack: Vec::new(),
        next: 0,
        groups: Vec::new(),
    };
    // The first node last: it comes after everything it leads to.
    for node in (0..edges.len()).rev() {
        if search.order[node].is_none() {
            search.visit(node);
        }
    }
    search.groups
}

struct Search<'a> {
    edges: &'a [Vec<usize>],
    order: Vec<Option<usize>>,
    low: Vec<usize>,
    stack: Vec<usize>,
    next: usize,
    groups: Vec<Vec<usize>>,
}

impl Search<'_> {
    fn visit(&mut self, node: usize) {
        let order = self.next;
        self.next += 1;
        self.order[node] = Some(order);
        self.low[node] = order;
        self.stack.push(node);
        for &target in &self.edges[node] {
            match self.order[target] {
                None => {
                    self.visit(target);
                    self.low[node] = self.low[node].min(self.low[target]);
                }
                Some(seen) if self.stack.contains(&target) => self.low[node] = self.low[node].min(seen),
                Some(_) => {}
            }
        }
        if self.low[node] == order
            && let Some(at) = self.stack.iter().position(|member| *member == node)
        {
            self.groups.push(self.stack.split_off(at));
        }
    }
}
