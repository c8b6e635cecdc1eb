//! Builds of a program: which of them may begin runs, and which may take up whose.

use std::{collections::BTreeMap, fmt};

use neuron::{
    Author, Draft, Envelope, Error, ErrorKind, Fold, Ledger, Receipt, Result,
    fold::Codec,
    store::Select,
    topic::catalog,
    vocabulary::{
        Message as _,
        build::{BuildDrained, BuildPinned, BuildReleased, BuildRetired},
    },
};
use serde::{Deserialize, Serialize};

/// An order about a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum BuildOrder {
    /// Its open runs are taken up by processes of the same build only.
    Pin,
    /// A process of it begins no new run and takes up those of its own build only; its handlers take no further message.
    Drain,
    /// A process of it begins and takes up no run.
    Retire,
    /// None of this holds any longer.
    Release,
}

impl fmt::Display for BuildOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Pin => "pinned",
            Self::Drain => "drained",
            Self::Retire => "retired",
            Self::Release => "released",
        })
    }
}

/// An order that holds. The error of whoever is refused by it has it as its [detail](neuron::Error::detail).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Standing {
    /// What was ordered.
    pub order: BuildOrder,
    /// Its place on `$builds`.
    pub seq: u64,
    /// Who ordered it.
    pub by: String,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
}

/// The orders that hold for each build.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Builds {
    pinned: BTreeMap<String, Standing>,
    /// Drained or retired: the last word of the two.
    closed: BTreeMap<String, Standing>,
    /// The `seq` of the last order; 0 = none.
    head: u64,
}

impl Builds {
    /// The orders of a store.
    ///
    /// ```
    /// use orchestrator::{builds::{BuildOrder, Builds, order_build}, prelude::*};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let neuron = Neuron::builder().build("shop 1.2").memory().await?;
    /// order_build(neuron.ledger(), "shop 1.2", BuildOrder::Drain, None, neuron::Author::cli()).await?;
    /// let builds = Builds::of(neuron.ledger())?;
    /// assert_eq!(builds.begins("shop 1.2").unwrap_err().kind(), ErrorKind::Denied);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A kind of the disk.
    pub fn of(ledger: &Ledger) -> Result<Self, Error> {
        if ledger.store().head(&catalog::builds())? == 0 {
            return Ok(Self::default());
        }
        Ok(ledger.fold(&BuildOrders, None)?.state)
    }

    /// The `seq` of the last order; 0 = none.
    pub fn head(&self) -> u64 {
        self.head
    }

    /// What holds for a build.
    pub fn standing(&self, build: &str) -> impl Iterator<Item = &Standing> {
        self.pinned.get(build).into_iter().chain(self.closed.get(build))
    }

    /// All builds about which an order holds.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.pinned.keys().chain(self.closed.keys()).map(String::as_str)
    }

    /// Whether a process of a build may begin a run.
    ///
    /// # Errors
    /// [`ErrorKind::Denied`] naming the order.
    pub fn begins(&self, build: &str) -> Result<(), Error> {
        self.closed.get(build).map_or(Ok(()), |order| {
            Err(order.refused(build, "no process of it begins a run"))
        })
    }

    /// Whether a process of a build may take up a run that another one, or its own, began.
    ///
    /// # Errors
    /// [`ErrorKind::Denied`] naming the order.
    pub fn takes_up(&self, build: &str, run: &str) -> Result<(), Error> {
        match self.closed.get(build) {
            Some(order) if order.order == BuildOrder::Retire => {
                return Err(order.refused(build, "no process of it takes up a run"));
            }
            Some(order) if build != run => {
                let what = format!("it ends its own runs, and takes up none of `{run}`");
                return Err(order.refused(build, &what));
            }
            _ => {}
        }
        match self.pinned.get(run).filter(|_| build != run) {
            Some(order) => {
                let what = format!("its runs are not taken up by `{build}`, which is another build");
                Err(order.refused(run, &what))
            }
            None => Ok(()),
        }
    }

    /// Whether a process of a build has nothing to do any more.
    ///
    /// # Errors
    /// [`ErrorKind::Denied`] naming the order that retired it.
    pub fn serves(&self, build: &str) -> Result<(), Error> {
        self.takes_up(build, build)
    }
}

impl Standing {
    fn refused(&self, build: &str, what: &str) -> Error {
        let because = self
            .because
            .as_ref()
            .map_or_else(String::new, |because| format!(": {because}"));
        let Self { order, seq, by, .. } = self;
        let why = format!(
            "build `{build}` is {order} by {by} ($builds@{seq}{because}): {what}; `neuron builds release {build}` takes the \
             order back"
        );
        Error::new(ErrorKind::Denied, why).with(self)
    }

    /// The order by which something was refused; `None` for any other error.
    pub(crate) fn of_refusal(error: &Error) -> Option<Self> {
        let is_denied = error.kind() == ErrorKind::Denied;
        is_denied.then(|| error.detail()).flatten()
    }
}

/// Folds `$builds` into what holds for each build.
#[derive(Clone, Copy, Debug, Default)]
pub struct BuildOrders;

impl Fold for BuildOrders {
    type State = Builds;

    fn init(&self) -> Builds {
        Builds::default()
    }

    fn apply(&self, builds: &mut Builds, envelope: &Envelope) -> Result<(), Error> {
        builds.head = envelope.seq;
        let standing = |order, because| Standing {
            order,
            seq: envelope.seq,
            by: envelope.author.to_string(),
            because,
        };
        match envelope.body.kind.as_str() {
            BuildPinned::TYPE => {
                let BuildPinned { build, because } = envelope.decode()?;
                builds.pinned.insert(build, standing(BuildOrder::Pin, because));
            }
            BuildDrained::TYPE => {
                let BuildDrained { build, because } = envelope.decode()?;
                builds.closed.insert(build, standing(BuildOrder::Drain, because));
            }
            BuildRetired::TYPE => {
                let BuildRetired { build, because } = envelope.decode()?;
                builds.closed.insert(build, standing(BuildOrder::Retire, because));
            }
            BuildReleased::TYPE => {
                let BuildReleased { build, .. } = envelope.decode()?;
                builds.pinned.remove(&build);
                builds.closed.remove(&build);
            }
            _ => {}
        }
        Ok(())
    }

    fn select(&self) -> Select {
        Select::Topic(catalog::builds())
    }

    fn snapshot(&self) -> Option<Codec<Builds>> {
        Some(Codec::new("builds", 1))
    }
}

/// Gives an order about a build, from whatever process. It counts from the next run that somebody begins or takes up; a
/// run that a process drives already goes on there.
///
/// # Errors
/// [`ErrorKind::TooLarge`] or [`ErrorKind::Malformed`] for a name that cannot be a key; a kind of the disk.
pub async fn order_build(
    ledger: &Ledger,
    build: &str,
    order: BuildOrder,
    because: Option<String>,
    author: Author,
) -> Result<Receipt, Error> {
    ledger.publish(order.draft(build, because, author)?).await
}

impl BuildOrder {
    /// The order as it goes on the log.
    pub(crate) fn draft(self, build: &str, because: Option<String>, author: Author) -> Result<Draft, Error> {
        let (topic, build) = (catalog::builds(), build.to_owned());
        let key = build.clone();
        let draft = match self {
            Self::Pin => BuildPinned { build, because }.draft(topic, author),
            Self::Drain => BuildDrained { build, because }.draft(topic, author),
            Self::Retire => BuildRetired { build, because }.draft(topic, author),
            Self::Release => BuildReleased { build, because }.draft(topic, author),
        };
        draft?.key(key)
    }
}
