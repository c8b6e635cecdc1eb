use std::sync::Arc;

use futures::future::BoxFuture;
use neuron::{
    Append, Author, Error, ErrorKind, Ledger, Result, TokenId,
    plan::Outline,
    scope::{Admission, Fresh},
    topic::catalog,
    vocabulary::{Message as _, clearance::PlanDeviated},
};
use tokio::sync::oneshot;

use super::signal::{Signal, Signals};
use crate::{
    package::{Claims, Key},
    ruling::Verdict,
};

/// Lets the steps of a package run that were cleared, and asks about the others.
#[derive(Clone)]
pub(crate) struct Gatekeeper {
    pub(crate) package: Key,
    pub(crate) token: TokenId,
    /// What was declared; none for an agent whose steps are known only as it goes.
    pub(crate) outline: Option<Arc<Outline>>,
    /// What was cleared.
    pub(crate) claims: Claims,
    pub(crate) ledger: Ledger,
    pub(crate) owner: (String, u64),
    pub(crate) signals: Signals,
}

impl Gatekeeper {
    fn is_cleared(&self, call: &Fresh) -> bool {
        match &self.outline {
            Some(outline) => outline.declares(call.name),
            None => self.claims.covers(&call.claims),
        }
    }

    async fn ask(self, call: Fresh) -> Option<Error> {
        let (reply, verdict) = oneshot::channel();
        let asked = self.signals.send(Signal::Amended {
            package: self.package,
            step: call.key.to_string(),
            name: call.name.into(),
            claims: call.claims,
            reply,
        });
        match (asked, verdict.await) {
            (Ok(()), Ok(Verdict::Go { .. })) => None,
            (Ok(()), Ok(Verdict::Denied { because, .. })) => Some(Error::new(ErrorKind::Denied, because)),
            // Nobody rules any more: the run is being stopped in this process, and this step with it.
            _ => std::future::pending().await,
        }
    }

    /// Records a step that nobody declared and that claims nothing: it runs all the same.
    fn deviate(&self, call: &Fresh) -> Result<(), Error> {
        let deviated = PlanDeviated {
            package: self.package.to_string(),
            token: self.token.clone(),
            step: call.key.to_string(),
            name: call.name.into(),
        };
        let draft = deviated.draft(catalog::plan(&self.token), Author::from(&self.token))?;
        let (name, epoch) = &self.owner;
        self.ledger.defer(Append::of([draft]).owner(name, *epoch)).map(drop)
    }
}

impl Admission for Gatekeeper {
    fn admit(&self, call: Fresh) -> BoxFuture<'static, Result<Option<Error>, Error>> {
        if self.is_cleared(&call) {
            return Box::pin(async { Ok(None) });
        }
        if !call.claims.is_empty() {
            let this = self.clone();
            return Box::pin(async move { Ok(this.ask(call).await) });
        }
        let deviated = if self.outline.is_some() {
            self.deviate(&call)
        } else {
            Ok(())
        };
        Box::pin(async move { deviated.map(|()| None) })
    }
}

impl std::fmt::Debug for Gatekeeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gatekeeper")
            .field("package", &self.package)
            .finish_non_exhaustive()
    }
}
