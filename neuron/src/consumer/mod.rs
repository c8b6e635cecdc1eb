//! Named durable consumers: who handles the messages of the log, each at least once, and how far they came.
//!
//! A consumer has a name and a pattern. Its position stands on `$consumer.{name}`, so that it goes on after a crash, in
//! whichever process opens it next; of all processes one has it open, the others stand by.
//!
//! ```
//! # use neuron::{Append, Author, Draft, Ledger, Pattern, Topic, ownership::Ownership};
//! # async fn show(ledger: Ledger) -> Result<(), neuron::Error> {
//! let process = Ownership::join(ledger, neuron::limits::OWNER_TTL)?;
//! let mut billing = process.consumer("billing")?.pattern(Pattern::new("orders.*")?).open().await?;
//! loop {
//!     let mut order = billing.next().await?;
//!     let bill = Draft::new(Topic::new("bills")?, Author::new("billing")?, "bill.made")?
//!         .cause(Ledger::cause(order.envelope()));
//!     // The bill and the position are one batch: whatever crashes, there is one bill for this order.
//!     order.ack_with(Append::of([bill])).await?;
//! }
//! # }
//! ```
//!
//! # What is promised
//!
//! * **Nothing is lost.** A message is handed out until a delivery of it is acknowledged or it is parked. Parked messages
//!   are listed and redriven, also by another process; they outlive every crash.
//! * **In this store an effect happens exactly once**, if it is committed by [`Delivery::ack_with`]. To the outside it is
//!   at least once, with [`Delivery::key`] as the idempotency key that stays the same. A plain [`Delivery::ack`] is
//!   recorded with others, so a crash may repeat the last [`limits::CONSUMER_ACKS_MAX`](crate::limits::CONSUMER_ACKS_MAX)
//!   messages or the last second.
//! * **A taken-over process writes nothing.** Every record carries the epoch of the lease `consumer:NAME`.
//! * **Order.** Messages are handed out in the order of the log, several at a time. One that waits to be tried again holds
//!   up no other, unless [`Order::Topic`] or [`Order::Whole`] is asked for; a parked one holds up nobody in any order, and
//!   a redriven one comes when it is redriven. Under [`Order::Topic`] at most
//!   [`limits::CONSUMER_WINDOW_MAX`](crate::limits::CONSUMER_WINDOW_MAX) messages behind a topic that waits are looked
//!   through for those of other topics.
//!
//! # What counts as a delivery
//!
//! A delivery ends by a word of whoever has it, by being dropped, by the ack wait, or with its process. Each counts, and
//! after the last one that a message may get it is parked, with the reason of the last end.
//!
//! The first delivery of a message is not recorded beforehand: that would be a commit for each. A second one is, and so
//! are, after a process died or hung, the first ones of all that it may have had in hand. A message whose recorded
//! delivery did not end is handed out alone, nothing beside it. So a message that kills its process is parked after as
//! many deliveries as any other, plus at most the one that nobody recorded, and takes no innocent one along.

mod builder;
mod delivery;
mod desk;
mod entry;
mod event;
mod keeper;
mod line;
mod listing;
mod open;
mod pick;
mod plan;
mod shared;
mod state;

pub use crate::vocabulary::consumer::{ConsumerConfigured, Order};
pub use builder::Builder;
pub use delivery::Delivery;
pub use listing::{Parked, Redrive, Redriven, Standing};
pub use open::Consumer;
pub use state::{Pending, Progress, State, Waits};
