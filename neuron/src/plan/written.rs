use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use futures::{
    StreamExt as _, TryStreamExt as _,
    future::BoxFuture,
    stream::{self, FuturesUnordered},
};
use serde_json::value::RawValue;

use super::{Input, Outline};
use crate::{
    Error, ErrorKind, Json, Result,
    graph::Graph,
    scope::{Ask, Scope},
};

/// Makes the call of a row from its arguments, in the order of its parameters.
pub type MakeCall = fn(&Arc<Scope>, Vec<Json>) -> Result<Ask, Error>;

/// A plan that was written: what is declared, and what runs.
#[derive(Clone, Debug)]
pub struct Written {
    outline: Outline,
    calls: Vec<MakeCall>,
    graph: Graph<usize>,
}

impl Written {
    /// A plan whose rows are called by `calls`, one each.
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`] naming the steps of a cycle.
    pub(super) fn new(outline: Outline, calls: Vec<MakeCall>) -> Result<Self, Error> {
        let graph = graph(&outline)?;
        Ok(Self { outline, calls, graph })
    }

    /// The declared form.
    pub fn outline(&self) -> &Outline {
        &self.outline
    }

    /// Runs every row as soon as its edges are satisfied. It is an ordinary body: what makes a body replay makes this
    /// one replay.
    ///
    /// # Errors
    /// The first failure of a row.
    pub async fn run(self, scope: Arc<Scope>, params: Vec<Json>) -> Result<Json, Error> {
        let mut run = Run {
            outputs: vec![None; self.outline.rows.len()],
            done: BTreeSet::new(),
            running: FuturesUnordered::new(),
            scope,
            params,
            plan: self,
        };
        let first: Vec<usize> = run.plan.graph.runnable(&run.done).copied().collect();
        for row in first {
            run.begin(row)?;
        }
        while let Some((row, output)) = run.running.next().await {
            run.end(row, output?)?;
        }
        run.resolve(&run.plan.outline.result)
    }
}

struct Run {
    plan: Written,
    scope: Arc<Scope>,
    params: Vec<Json>,
    outputs: Vec<Option<Json>>,
    done: BTreeSet<usize>,
    running: FuturesUnordered<BoxFuture<'static, (usize, Result<Json, Error>)>>,
}

impl Run {
    fn begin(&mut self, at: usize) -> Result<(), Error> {
        let (row, call) = (&self.plan.outline.rows[at], self.plan.calls[at]);
        if let Some(condition) = &row.when
            && !self.resolve(condition)?.decode::<bool>()?
        {
            return self.end(at, Json::null());
        }
        if row.each {
            let list = self.resolve(&row.inputs[0])?;
            let elements: Vec<Box<RawValue>> = list.decode()?;
            let calls = elements
                .into_iter()
                .map(|element| Ok(output(call(&self.scope, vec![Json::parse(element.get())?])?)));
            // All are made before the first begins, so that what they are called does not hang on which ended first.
            let calls = calls.collect::<Result<Vec<_>, Error>>()?;
            let most = row.at_once.map_or(calls.len(), |most| most.get() as usize).max(1);
            self.running.push(Box::pin(async move {
                let placed = (0_usize..).zip(calls);
                let placed = placed.map(|(place, call)| async move { Ok::<_, Error>((place, call.await?)) });
                let all: Result<BTreeMap<_, _>, _> = stream::iter(placed).buffer_unordered(most).try_collect().await;
                (at, all.and_then(|all| Json::of(&all.into_values().collect::<Vec<_>>())))
            }));
        } else {
            let args = row
                .inputs
                .iter()
                .map(|input| self.resolve(input))
                .collect::<Result<_, _>>()?;
            let call = output(call(&self.scope, args)?);
            self.running.push(Box::pin(async move { (at, call.await) }));
        }
        Ok(())
    }

    fn end(&mut self, at: usize, output: Json) -> Result<(), Error> {
        self.outputs[at] = Some(output);
        self.done.insert(at);
        let freed: Vec<usize> = self.plan.graph.freed(&at, &self.done).copied().collect();
        freed.into_iter().try_for_each(|row| self.begin(row))
    }

    fn resolve(&self, input: &Input) -> Result<Json, Error> {
        let missing = || Error::new(ErrorKind::Misuse, "the plan reads a value that is not there");
        let wire = |at: usize| self.outputs.get(at).cloned().flatten().ok_or_else(missing);
        let param = |at: usize| self.params.get(at).cloned().ok_or_else(missing);
        input.resolve(&wire, &param)
    }
}

async fn output(ask: Ask) -> Result<Json, Error> {
    ask.await.map(|taken| taken.json)
}

/// The rows and their edges. Only `plan.after` can close a cycle.
fn graph(outline: &Outline) -> Result<Graph<usize>, Error> {
    let mut graph = Graph::new();
    for at in 0..outline.rows.len() {
        graph.add_node(at);
    }
    for (at, row) in outline.rows.iter().enumerate() {
        for earlier in row.edges() {
            graph.add_edge(earlier, at).map_err(|cycle| {
                let steps: Vec<_> = cycle.nodes().iter().map(|at| outline.rows[*at].step.as_str()).collect();
                let message = format!(
                    "the plan waits for itself: `{}`; take back one `plan.after`",
                    steps.join("` → `")
                );
                Error::new(ErrorKind::Misuse, message)
            })?;
        }
    }
    Ok(graph)
}
