//! How the partitions of a group's topics are shared out among its members.
//!
//! [`Assignor`] is the coordinator's side (KIP-848): it works with topic ids and the members'
//! current targets. [`classic`] is the client's side of the classic protocol, where the group's
//! leader assigns: topics by name, and an application may bring its own assignor.

pub mod classic;
mod range;
mod subscriptions;
mod uniform;

use kohort_wire::Uuid;

use crate::{TopicIds, TopicPartitions};
use subscriptions::Subscriptions;

/// A server-side assignor of consumer groups (KIP-848).
///
/// Both are functions of their input alone, the order of the members included, so that the same
/// group always gets the same target. Racks play no part, as in Kafka 4.4.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Assignor {
    /// As even as the subscriptions allow, and then with as little movement as possible.
    ///
    /// Among members with equal subscriptions no member has two partitions more than another. With
    /// overlapping subscriptions no partition can go, directly or through others, from a member to
    /// one that has at least two fewer.
    Uniform,
    /// For each topic a contiguous range to each subscriber: equal topics are co-partitioned.
    ///
    /// Recomputed from nothing each time. Static members come first, by instance id, so that a
    /// restart under a new member id changes nothing; the others follow by member id.
    Range,
}

/// What an assignor sees of a member.
#[derive(Debug, Clone, Copy)]
pub struct Member<'a> {
    /// Its id, unique in the group.
    pub member_id: &'a str,
    /// Its `group.instance.id`, if it is a static member.
    pub instance_id: Option<&'a str>,
    /// The topics it subscribes to, by name or by pattern. Equal subscriptions should be clones of
    /// one value: see [`TopicIds`].
    pub subscribed_topic_ids: &'a TopicIds,
    /// Its target so far; empty for a new member.
    pub target: &'a TopicPartitions,
}

impl Assignor {
    /// Every assignor, in Kafka's order of preference (`group.consumer.assignors`).
    pub const ALL: [Assignor; 2] = [Assignor::Uniform, Assignor::Range];

    /// The assignor of that name, if there is one.
    pub fn from_name(name: &str) -> Option<Assignor> {
        Assignor::ALL.into_iter().find(|one| one.name() == name)
    }

    /// Its name in requests and records.
    pub const fn name(self) -> &'static str {
        match self {
            Assignor::Uniform => "uniform",
            Assignor::Range => "range",
        }
    }

    /// The new target of each member, in the order of `members`.
    ///
    /// A target that does not change is the old one ([`TopicPartitions::is_same`]), not a copy.
    /// `partition_count` is asked once for each subscribed topic; a topic it does not know is not
    /// assigned.
    pub fn assign(
        self,
        members: &[Member<'_>],
        partition_count: &dyn Fn(Uuid) -> Option<i32>,
    ) -> Vec<TopicPartitions> {
        let subscriptions = Subscriptions::new(members, partition_count);
        match self {
            Assignor::Uniform => uniform::assign(members, &subscriptions),
            Assignor::Range => range::assign(members, &subscriptions),
        }
    }
}

/// The set of `runs`, sharing the member's present target if nothing changes.
fn target_of(member: &Member<'_>, runs: &[crate::topic_partitions::Run]) -> TopicPartitions {
    if member.target.runs() == runs {
        member.target.clone()
    } else {
        TopicPartitions::from_joined(runs)
    }
}
