//! How a member gets from what it owns to what it is meant to own.

use kohort_group::TopicPartitions;
use kohort_wire::{Uuid, messages::TopicIdPartitions};

use super::{
    member::{Current, MemberState},
    owned::Owned,
};

/// A member's next step towards its target.
///
/// A partition that is to go to another member is first taken from its owner, who stays at its epoch
/// until it says that it has let go; only then the owner moves to the target's epoch. A partition
/// that another member still owns is not given: a later step does that. So a partition never has two
/// owners, and each member moves at its own pace (KIP-848).
pub(crate) struct Reconcile<'a> {
    pub(crate) current: &'a Current,
    pub(crate) target_epoch: i32,
    pub(crate) target: &'a TopicPartitions,
    /// Whether the member subscribes to a topic.
    pub(crate) is_subscribed: &'a dyn Fn(Uuid) -> bool,
    /// Whether its subscription has just changed.
    pub(crate) subscription_changed: bool,
    /// Whether another member owns a partition.
    pub(crate) is_taken: &'a dyn Fn(Uuid, i32) -> bool,
    /// What the member says it owns; `None` if it says nothing.
    pub(crate) owned: Option<&'a [TopicIdPartitions]>,
}

impl Reconcile<'_> {
    /// What the member owns from now on; `None` if nothing changes.
    pub(crate) fn step(&self) -> Option<Current> {
        let next = match self.current.state {
            MemberState::Stable if self.current.epoch != self.target_epoch => self.towards_target(),
            MemberState::Stable => self.without_unsubscribed()?,
            MemberState::UnrevokedPartitions if self.still_owns(&self.current.revoking) => {
                self.without_unsubscribed()?
            }
            _ => self.towards_target(),
        };
        (next != *self.current).then_some(next)
    }

    /// Topics that it no longer subscribes to go at once; the rest waits.
    fn without_unsubscribed(&self) -> Option<Current> {
        if !self.subscription_changed {
            return None;
        }
        let assigned = &self.current.assigned;
        let kept = assigned
            .all()
            .retain_topics(|topic_id| (self.is_subscribed)(topic_id));
        if kept == *assigned.all() {
            return None;
        }
        let revoking = self.current.revoking.union(&assigned.difference(&kept));
        let assigned = assigned.intersection(&kept);
        Some(if self.still_owns(&revoking) {
            self.revoke(assigned, revoking)
        } else {
            Current {
                assigned,
                ..self.current.clone()
            }
        })
    }

    fn towards_target(&self) -> Current {
        let target = self
            .target
            .retain_topics(|topic_id| (self.is_subscribed)(topic_id));
        let assigned = self.current.assigned.intersection(&target);
        let revoking = self.current.assigned.difference(&target);
        if self.still_owns(&revoking) {
            return self.revoke(assigned, revoking);
        }

        let missing = target.difference(assigned.all());
        let taken: TopicPartitions = missing
            .iter()
            .filter(|&(topic_id, partition)| (self.is_taken)(topic_id, partition))
            .collect();
        let given = Owned::at(self.target_epoch, missing.difference(&taken));
        Current {
            epoch: self.target_epoch,
            previous_epoch: self.previous_epoch(self.target_epoch),
            state: if taken.is_empty() {
                MemberState::Stable
            } else {
                MemberState::UnreleasedPartitions
            },
            assigned: assigned.union(&given),
            revoking: Owned::default(),
        }
    }

    fn revoke(&self, assigned: Owned, revoking: Owned) -> Current {
        Current {
            epoch: self.current.epoch,
            previous_epoch: self.previous_epoch(self.current.epoch),
            state: MemberState::UnrevokedPartitions,
            assigned,
            revoking,
        }
    }

    /// Kafka writes the present epoch here even if it stays, and so fences a member that has lost
    /// two answers in a row. The epoch before the present one serves better.
    fn previous_epoch(&self, next_epoch: i32) -> i32 {
        if next_epoch == self.current.epoch {
            self.current.previous_epoch
        } else {
            self.current.epoch
        }
    }

    /// Whether the member may still own some of it: it says so, or says nothing.
    fn still_owns(&self, partitions: &Owned) -> bool {
        !partitions.is_empty()
            && self.owned.is_none_or(|owned| {
                owned.iter().any(|topic| {
                    let mut own = topic.partitions.iter();
                    own.any(|&partition| partitions.all().contains(topic.topic_id, partition))
                })
            })
    }
}

/// Whether all that a member says it owns is assigned to it.
pub(crate) fn owns_only(owned: &[TopicIdPartitions], assigned: &TopicPartitions) -> bool {
    owned.iter().all(|topic| {
        let mut own = topic.partitions.iter();
        own.all(|&partition| assigned.contains(topic.topic_id, partition))
    })
}
