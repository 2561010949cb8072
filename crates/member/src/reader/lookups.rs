//! Where reading begins: at what the group has committed, or at an offset found by ListOffsets.

use kohort_wire::{ApiKey, ErrorCode};

use super::{
    Reader, ReaderError, TopicPartition,
    offsets::{CommittedOffset, OffsetReset, Position, Target},
    partition::{Next, Partition},
};
use crate::Millis;

/// Why a lookup failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    /// The broker's error code, if it has answered.
    pub code: Option<ErrorCode>,
    /// Whether trying again can help.
    pub is_retriable: bool,
}

impl From<ErrorCode> for Failure {
    fn from(code: ErrorCode) -> Failure {
        Failure {
            code: Some(code),
            is_retriable: code.is_retriable(),
        }
    }
}

impl Reader {
    /// The partition, if nothing has replaced what was asked for.
    fn leased(&mut self, name: &TopicPartition, lease: u64) -> Option<&mut Partition> {
        let partition = self.partitions.get_mut(name);
        partition.filter(|partition| partition.lease == lease)
    }

    /// What the group has committed for a partition, if anything, in response to
    /// [`FindCommitted`](super::ReaderRequest::FindCommitted).
    pub fn committed_found(
        &mut self,
        name: &TopicPartition,
        lease: u64,
        committed: Option<&CommittedOffset>,
    ) {
        if let Some(committed) = committed {
            if let Some(partition) = self.start_at(name, lease, committed.into()) {
                partition.progress.note_committed(committed.offset);
            }
            return;
        }
        let reset = self.config.offset_reset.target();
        let Some(partition) = self.leased(name, lease) else {
            return;
        };
        partition.next = match reset {
            // All records of a topic that was created anew are new.
            Some(_) if partition.is_replacement => Next::LookUp(Target::Earliest),
            Some(target) => Next::LookUp(target),
            None => {
                self.report(ReaderError::NothingCommitted(name.clone()));
                return self.stop(name);
            }
        };
    }

    /// The offset of a target, in response to [`FindOffsets`](super::ReaderRequest::FindOffsets);
    /// `None` if no record is as late as that.
    pub fn offset_found(&mut self, name: &TopicPartition, lease: u64, offset: Option<i64>) {
        if let Some(offset) = offset {
            self.start_at(name, lease, Position::at(offset));
        } else if let Some(partition) = self.leased(name, lease) {
            partition.next = Next::LookUp(Target::Latest);
        }
    }

    /// The lookup of what is committed has failed, and is repeated a little later. Returns whether
    /// the application has to know.
    pub fn find_committed_failed(
        &mut self,
        name: &TopicPartition,
        lease: u64,
        failure: Failure,
        now: Millis,
    ) -> bool {
        self.lookup_failed(name, lease, Next::LookUpCommitted, failure, now)
    }

    /// The lookup of an offset has failed, and is repeated a little later. Returns whether the
    /// application has to know.
    pub fn find_offset_failed(
        &mut self,
        name: &TopicPartition,
        lease: u64,
        target: Target,
        failure: Failure,
        now: Millis,
    ) -> bool {
        self.lookup_failed(name, lease, Next::LookUp(target), failure, now)
    }

    fn lookup_failed(
        &mut self,
        name: &TopicPartition,
        lease: u64,
        again: Next,
        failure: Failure,
        now: Millis,
    ) -> bool {
        let is_member = self.member.is_some();
        if self.leased(name, lease).is_none() {
            return false;
        }
        self.back_off(name, now);
        if let Some(partition) = self.partitions.get_mut(name) {
            partition.next = again;
        }
        // The member's epoch has changed while the request was in flight.
        let is_stale = matches!(
            failure.code,
            Some(
                ErrorCode::STALE_MEMBER_EPOCH
                    | ErrorCode::UNKNOWN_MEMBER_ID
                    | ErrorCode::ILLEGAL_GENERATION
            )
        );
        let is_unknown = failure.code == Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
        (!is_stale && !failure.is_retriable) || (is_unknown && !is_member)
    }

    /// Starts or continues a partition at a position that was looked up.
    fn start_at(
        &mut self,
        name: &TopicPartition,
        lease: u64,
        position: Position,
    ) -> Option<&mut Partition> {
        let new_lease = self.new_lease();
        let partition = self.partitions.get_mut(name)?;
        if partition.lease != lease {
            return None;
        }
        self.fetched_bytes -= partition.start_at(new_lease, position);
        Some(partition)
    }

    /// Waits before the partition is asked about again. Returns the number of failures.
    pub(crate) fn back_off(&mut self, name: &TopicPartition, now: Millis) -> u32 {
        let Some(partition) = self.partitions.get_mut(name) else {
            return 0;
        };
        partition.failures += 1;
        let wait = (self.config.backoff)(partition.failures);
        partition.not_before = now + wait.as_millis() as Millis;
        partition.failures
    }

    /// Reads no more of a partition until the application seeks.
    pub(crate) fn stop(&mut self, name: &TopicPartition) {
        if let Some(partition) = self.partitions.get_mut(name) {
            partition.next = Next::Stopped;
        }
    }

    /// What was to be read next is not there any more: `auto.offset.reset` decides.
    pub(crate) fn reset(&mut self, name: &TopicPartition, offset: i64, failures: u32) {
        let reset = self.config.offset_reset;
        let Some(partition) = self.partitions.get_mut(name) else {
            return;
        };
        let Some(target) = reset.target() else {
            partition.next = Next::Stopped;
            return self.report(ReaderError::Refused {
                api: ApiKey::Fetch,
                partition: name.clone(),
                code: ErrorCode::OFFSET_OUT_OF_RANGE,
                message: None,
            });
        };
        tracing::info!(partition = %name, offset, "the offset is out of range: resetting it");
        partition.next = Next::LookUp(target);
        // At once, unless the offset that was found is out of range again.
        if failures == 1 {
            partition.not_before = Millis::MIN;
        }
    }

    /// Whether the application decides where to continue when records are missing.
    pub(crate) fn has_no_reset(&self) -> bool {
        self.config.offset_reset == OffsetReset::None
    }
}
