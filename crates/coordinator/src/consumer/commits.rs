//! Which commits and fetches of offsets a consumer group accepts.

use std::cmp::Ordering;

use kohort_wire::{
    ErrorCode, Uuid,
    messages::{OffsetCommitRequest, OffsetFetchRequestGroup},
};

use super::{ConsumerGroup, member::Member};

/// Since this version of OffsetCommit members of the consumer protocol can commit.
const MEMBER_EPOCH_COMMITS: i16 = 9;

impl ConsumerGroup {
    /// For which of its partitions a commit is accepted.
    pub(crate) fn validate_commit(
        &self,
        version: i16,
        request: &OffsetCommitRequest,
    ) -> Result<CommitRule<'_>, ErrorCode> {
        let epoch = request.generation_id_or_member_epoch;
        if epoch < 0 && self.is_empty() {
            return Ok(CommitRule::All);
        }
        let member = self
            .member(&request.member_id)
            .ok_or(ErrorCode::UNKNOWN_MEMBER_ID)?;
        if !member.is_classic() && version < MEMBER_EPOCH_COMMITS {
            return Err(ErrorCode::UNSUPPORTED_VERSION);
        }
        match epoch.cmp(&member.current.epoch) {
            Ordering::Equal => Ok(CommitRule::All),
            Ordering::Greater => Err(stale(member)),
            Ordering::Less => Ok(CommitRule::OwnedSince(member, epoch)),
        }
    }

    /// Refuses a commit for a partition that the member does not own, or has been given after the
    /// epoch of the commit.
    pub(crate) fn refuse_former_owner(
        &self,
        request: &OffsetCommitRequest,
        topic_id: Uuid,
        partition: i32,
    ) -> Result<(), ErrorCode> {
        let Some(member) = self.member(&request.member_id) else {
            return Ok(());
        };
        let epoch = request.generation_id_or_member_epoch;
        CommitRule::OwnedSince(member, epoch).check(topic_id, partition)
    }

    /// Kafka lets a member at its epoch commit any partition of the group. Here it may not be one that
    /// another member owns: a commit that has been under way for long must not move its offset.
    pub(crate) fn refuse_other_owner(
        &self,
        request: &OffsetCommitRequest,
        topic_id: Uuid,
        partition: i32,
    ) -> Result<(), ErrorCode> {
        let owner = self.owner(topic_id, partition);
        match (owner, self.member(&request.member_id)) {
            (Some(owner), Some(member)) if *owner != member.id => Err(stale(member)),
            _ => Ok(()),
        }
    }

    /// Whether offsets may be fetched: by a member at its epoch, or by a client that is not a member.
    pub(crate) fn validate_fetch(
        &self,
        request: &OffsetFetchRequestGroup,
    ) -> Result<(), ErrorCode> {
        let Some(member_id) = request.member_id.as_deref() else {
            return match request.member_epoch {
                ..0 => Ok(()),
                _ => Err(ErrorCode::UNKNOWN_MEMBER_ID),
            };
        };
        let member = self.member(member_id).ok_or(ErrorCode::UNKNOWN_MEMBER_ID)?;
        if request.member_epoch == member.current.epoch {
            Ok(())
        } else {
            Err(stale(member))
        }
    }
}

/// For which partitions a commit is accepted.
#[derive(Debug, Clone, Copy)]
pub(crate) enum CommitRule<'a> {
    /// All.
    All,
    /// Those that the member has owned since this epoch or before it (KIP-1251).
    OwnedSince(&'a Member, i32),
}

impl CommitRule<'_> {
    /// Whether the commit is accepted for the partition. `topic_id` is that of the topic now.
    pub(crate) fn check(&self, topic_id: Uuid, partition: i32) -> Result<(), ErrorCode> {
        let CommitRule::OwnedSince(member, epoch) = *self else {
            return Ok(());
        };
        let current = &member.current;
        let owned = current.assigned.epoch_of(topic_id, partition);
        match owned.or_else(|| current.revoking.epoch_of(topic_id, partition)) {
            Some(since) if since <= epoch => Ok(()),
            _ => Err(stale(member)),
        }
    }
}

fn stale(member: &Member) -> ErrorCode {
    if member.is_classic() {
        ErrorCode::ILLEGAL_GENERATION
    } else {
        ErrorCode::STALE_MEMBER_EPOCH
    }
}
