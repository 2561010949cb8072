//! Truncated logs (KIP-320): whether what was read last is in the log of a new leader too. If the
//! leader did not have it when it was elected, other records are at those offsets now.
//!
//! Fetch responses tell it as well, in recent versions, unless it is too late: by then the new
//! leader may have written past the position.

use kohort_wire::{ApiKey, ErrorCode};

use super::{
    Failure, Reader, ReaderError, TopicPartition,
    offsets::Position,
    partition::{Next, Partition},
};
use crate::Millis;

/// A position to check against the log of a new leader.
#[derive(Debug, Clone)]
pub struct PositionCheck {
    pub(crate) lease: u64,
    /// The position.
    pub position: Position,
    /// The epoch of the leader that is asked.
    pub current_epoch: i32,
}

impl Partition {
    /// The check that is due before reading on at `position` from a leader of `current_epoch`.
    pub(crate) fn check_due(
        &mut self,
        position: Position,
        current_epoch: i32,
    ) -> Option<PositionCheck> {
        let is_uncheckable = position.leader_epoch.is_none() || current_epoch < 0;
        if is_uncheckable || self.validated == Some(current_epoch) {
            // Records that are read now are in the log.
            self.validated = Some(current_epoch);
            return None;
        }
        Some(PositionCheck {
            lease: self.lease,
            position,
            current_epoch,
        })
    }
}

impl Reader {
    /// Where the records of the position's epoch end in the leader's log, in response to
    /// [`CheckPositions`](super::ReaderRequest::CheckPositions); `None` if the broker does not
    /// support the request.
    pub fn position_checked(
        &mut self,
        name: &TopicPartition,
        check: &PositionCheck,
        end: Option<Position>,
    ) {
        let partition = self.partitions.get_mut(name);
        let Some(partition) = partition.filter(|partition| partition.lease == check.lease) else {
            return;
        };
        partition.next = Next::Fetch(check.position);
        partition.validated = Some(check.current_epoch);
        let end = end.filter(|end| end.offset < check.position.offset);
        if let Some(end) = end {
            self.truncated(name, check.position.offset, end);
        }
    }

    /// The check has failed, and is repeated a little later. Returns whether the application has to
    /// know.
    pub fn position_check_failed(
        &mut self,
        name: &TopicPartition,
        check: &PositionCheck,
        failure: Failure,
        now: Millis,
    ) -> bool {
        let partition = self.partitions.get_mut(name);
        let Some(partition) = partition.filter(|partition| partition.lease == check.lease) else {
            return false;
        };
        partition.next = Next::Fetch(check.position);
        self.back_off(name, now);
        self.outdated.insert(name.topic.clone());
        !failure.is_retriable
    }

    /// The log was truncated. Reading continues at the end of what the leaders have in common, or
    /// stops if the application wants to decide. Fetched records are dropped.
    pub(crate) fn truncated(&mut self, name: &TopicPartition, from: i64, end: Position) {
        let offset = end.offset.min(from).max(0);
        tracing::warn!(partition = %name, from, to = offset, "the log was truncated");
        if self.has_no_reset() {
            self.stop(name);
            return self.report(ReaderError::Refused {
                api: ApiKey::OffsetForLeaderEpoch,
                partition: name.clone(),
                code: ErrorCode::OFFSET_OUT_OF_RANGE,
                message: Some(format!(
                    "the log was truncated from offset {from} to {offset}"
                )),
            });
        }
        let lease = self.new_lease();
        if let Some(partition) = self.partitions.get_mut(name) {
            partition.progress.truncate(Position { offset, ..end });
            partition.next = Next::Waiting;
            self.fetched_bytes -= partition.refetch(lease);
        }
    }
}
