//! Groups in the words of people: what happened to a group, and what it is doing.
//!
//! - [`Recent`] folds the events of a group's history
//!   ([`coordinator::history`](crate::history)) to what they say of the present.
//! - [`explain`] puts that together with how the group stands ([`View`]) and with its offsets.
//! - [`Timeline`] prints events, the phases of a rebalance below its beginning.
//! - [`Observer`] makes events of what can be seen from outside, where a coordinator keeps no
//!   history.
//!
//! All of it works on values, and does no I/O.

mod advice;
mod explanation;
mod notes;
mod observe;
mod recent;
mod rewind;
#[cfg(test)]
mod tests;
mod timeline;
mod view;

pub use explanation::{Clock, Explanation, Holdup, LastRebalance, explain};
pub use notes::{Note, PartitionLag};
pub use observe::Observer;
pub use recent::{Rebalance, Recent};
pub use rewind::{ExplainedRewind, HeldBy, PendingRewind};
pub use timeline::Timeline;
pub use view::{MemberView, View};
