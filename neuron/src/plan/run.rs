use std::{collections::BTreeSet, sync::Arc};

use futures::{
    StreamExt as _,
    future::{BoxFuture, try_join_all},
    stream::FuturesUnordered,
};
use serde_json::value::RawValue;

use super::{Input, Written};
use crate::{Error, ErrorKind, Json, Result, def::Entry, scope::Scope, step::ask};

impl Written {
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
        let (row, entry) = (&self.plan.outline.rows[at], self.plan.entries[at]);
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
                .map(|element| self.call(entry, vec![Json::parse(element.get())?]));
            let calls = calls.collect::<Result<Vec<_>, Error>>()?;
            self.running.push(Box::pin(async move {
                let all = try_join_all(calls).await;
                (at, all.and_then(|all| Json::of(&all)))
            }));
        } else {
            let args = row
                .inputs
                .iter()
                .map(|input| self.resolve(input))
                .collect::<Result<_, _>>()?;
            let call = self.call(entry, args)?;
            self.running.push(Box::pin(async move { (at, call.await) }));
        }
        Ok(())
    }

    /// The call of one row, made now, so that rows of equal content keep their order.
    fn call(&self, entry: &'static Entry, args: Vec<Json>) -> Result<BoxFuture<'static, Result<Json, Error>>, Error> {
        let params = entry.meta().params;
        let named = params.iter().map(crate::def::Param::name).zip(args);
        let args = Json::of(&named.collect::<std::collections::BTreeMap<_, _>>())?;
        let name = entry.meta().name;
        let args = entry
            .normalise(&args)
            .map_err(|error| error.context(format!("the plan cannot call `{name}`")))?;
        let ask = ask(&self.scope, entry, args)?;
        Ok(Box::pin(async move { ask.await.map(|taken| taken.json) }))
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
