//! Consumer groups (KIP-848): members heartbeat, the coordinator assigns.
//!
//! A heartbeat may change the *group* (who its members are and what they subscribe to), which gives
//! it a new epoch; a new epoch asks for a new *target*, what each member is meant to own; and each
//! member is *reconciled*: at its own heartbeats it comes a step closer to its target.
//!
//! ```text
//! heartbeat ─ validate ─ admission ─ update ─┬─ subscription and epoch
//!                                            ├─ regex      (resolved elsewhere)
//!                                            ├─ target     (computed elsewhere if it is large)
//!                                            └─ reconcile
//! ```
//!
//! All that outlives the coordinator is in records: `records` writes them, `apply` is the only place
//! that takes them up.

mod admission;
mod apply;
mod classic_member;
mod commits;
mod connections;
mod describe;
mod downgrade;
pub(crate) mod embedded;
mod group;
mod heartbeat;
pub(crate) mod inspect;
mod leave;
mod limits;
mod member;
mod metadata_hash;
mod owned;
mod owners;
mod reconcile;
pub(crate) mod records;
mod refusal;
mod regex;
mod sessions;
mod step;
mod subscriptions;
mod target;
#[cfg(test)]
pub(crate) mod tests;
mod update;
mod upgrade;
mod validate;
mod waiting;
mod work;

pub(crate) use group::ConsumerGroup;
pub(crate) use member::{Current, LEAVE_STATIC_EPOCH, Member};
pub(crate) use step::ConsumerStep;
pub use work::{Work, WorkDone};

use super::{Id, Shard, step::Step};
use group::ConsumerState;
use kohort_group::history::{Protocol, What};

impl Shard {
    /// The end of loading: sessions begin. Everything else goes on with the first heartbeat.
    pub(crate) fn consumer_loaded(&mut self, group_id: &Id, step: &mut Step<'_>) {
        let Some(mut consumer) = self.consumer_step(group_id, step) else {
            return;
        };
        consumer.group.loaded();
        if !consumer.group.is_empty() {
            let loaded = What::Loaded {
                protocol: Protocol::Consumer,
                epoch: consumer.group.epoch,
                members: consumer.group.len(),
            };
            consumer.event(loaded);
            if consumer.group.state() != ConsumerState::Stable {
                consumer.begin_reconciling();
            }
        }
        for member_id in consumer.group.member_ids() {
            consumer.restart_session(&member_id);
            consumer.restart_revocation(&member_id);
        }
    }

    /// Each group notices with its next heartbeat: see `refresh_metadata`.
    pub(crate) fn consumer_topics_changed(&mut self, _step: &mut Step<'_>) {}
}
