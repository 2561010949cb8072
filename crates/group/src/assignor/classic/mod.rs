//! The assignors of the classic protocol's clients: the group's leader runs one of them.
//!
//! [`Range`], [`RoundRobin`], [`Sticky`] and [`CooperativeSticky`] do what the Java client's
//! assignors of those names do, and understand what members of other clients send. They know
//! topics by name. Racks (KIP-881) play no part: the leader would need the racks of all replicas,
//! and reading from the nearest replica is not served.

mod cooperative_sticky;
mod numbered;
mod range;
mod round_robin;
mod sticky;

use std::{collections::BTreeMap, error::Error, fmt};

use bytes::Bytes;
use kohort_wire::{
    ByteString,
    messages::{ConsumerProtocolAssignment, ConsumerProtocolSubscription},
};

pub use cooperative_sticky::CooperativeSticky;
pub use range::Range;
pub use round_robin::RoundRobin;
pub use sticky::Sticky;

/// The generation of a member that has been in none.
const NO_GENERATION: i32 = -1;

/// What a member does with its partitions when a rebalance begins (KIP-429).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RebalanceProtocol {
    /// It gives all of them up before it joins.
    Eager,
    /// It keeps them, gives up those that its new assignment lacks, and if there were any joins
    /// again. An assignor of this kind must not give away what another member still has.
    Cooperative,
}

/// A member as the leader sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupMember {
    /// Its id, unique in the group.
    pub member_id: ByteString,
    /// Its `group.instance.id`, if it is a static member.
    pub instance_id: Option<ByteString>,
    /// What it has sent when it joined.
    pub subscription: ConsumerProtocolSubscription,
}

/// How many partitions each topic has. Topics that are not known are not in it.
pub type PartitionCounts = BTreeMap<ByteString, i32>;

/// Why an assignor has no assignment to give.
pub type AssignError = Box<dyn Error + Send + Sync>;

/// Shares out the partitions of a classic group, for its leader; every member has one, for what it
/// tells the leader about itself. An application may bring its own.
///
/// Called `ConsumerPartitionAssignor` in Java.
pub trait ConsumerPartitionAssignor: fmt::Debug + Send {
    /// The name under which members agree on it: all of them must have one of that name.
    fn name(&self) -> &str;

    /// The rebalance protocols that it can be used with.
    fn supported_protocols(&self) -> &[RebalanceProtocol] {
        &[RebalanceProtocol::Eager]
    }

    /// What the leader's assignor is to know of this member, beside its subscription: sent with
    /// every join.
    ///
    /// # Errors
    ///
    /// When it cannot be put into bytes; the member then does not join.
    fn subscription_user_data(&self, topics: &[ByteString]) -> Result<Option<Bytes>, AssignError> {
        let _ = topics;
        Ok(None)
    }

    /// The assignment of each member, in the order of `members`.
    ///
    /// # Errors
    ///
    /// When there is none; the group then does not come out of its rebalance.
    fn assign(
        &self,
        partition_counts: &PartitionCounts,
        members: &[GroupMember],
    ) -> Result<Vec<ConsumerProtocolAssignment>, AssignError>;

    /// This member has got its assignment of a generation.
    fn on_assignment(&mut self, assignment: &ConsumerProtocolAssignment, generation_id: i32) {
        let _ = (assignment, generation_id);
    }
}

/// The protocol that a member with these assignors follows: the furthest that all of them support,
/// since any may be chosen. None if they have nothing in common.
pub fn rebalance_protocol<'a>(
    assignors: impl IntoIterator<Item = &'a dyn ConsumerPartitionAssignor>,
) -> Option<RebalanceProtocol> {
    let mut common = vec![RebalanceProtocol::Eager, RebalanceProtocol::Cooperative];
    let mut any = false;
    for assignor in assignors {
        any = true;
        common.retain(|protocol| assignor.supported_protocols().contains(protocol));
    }
    common.into_iter().max().filter(|_| any)
}
