//! Consumer groups (KIP-848): members heartbeat, the coordinator assigns.

use kohort_wire::{ErrorCode, messages::*};

use super::{Caller, Id, Record, Reply, Shard, Token, shard::Step};

/// A consumer group.
#[derive(Debug, Default)]
pub(crate) struct ConsumerGroup {}

/// A computation to be done outside of the shard.
#[derive(Debug)]
pub struct Work {}

/// The result of [`Work`].
#[derive(Debug)]
pub struct WorkDone {}

impl Work {
    /// Computes. Takes time, and needs nothing but the value itself.
    pub fn run(self) -> WorkDone {
        WorkDone {}
    }
}

impl ConsumerGroup {
    pub(crate) fn is_empty(&self) -> bool {
        true
    }

    pub(crate) fn state_name(&self) -> &'static str {
        "Empty"
    }

    pub(crate) fn subscribes_to(&self, _topic: &str) -> bool {
        false
    }

    pub(crate) fn tombstones(&self, _group_id: &Id) -> Vec<Record> {
        Vec::new()
    }

    pub(crate) fn validate_commit(
        &self,
        _version: i16,
        _request: &OffsetCommitRequest,
    ) -> Result<(), ErrorCode> {
        Ok(())
    }

    pub(crate) fn validate_fetch(
        &self,
        _request: &OffsetFetchRequestGroup,
    ) -> Result<(), ErrorCode> {
        Ok(())
    }
}

/// Classic requests to a consumer group that has members.
impl Shard {
    pub(crate) fn consumer_join_group(
        &mut self,
        _token: Token,
        _caller: &Caller,
        _version: i16,
        _request: JoinGroupRequest,
        _step: &mut Step<'_>,
    ) {
    }

    pub(crate) fn consumer_sync_group(
        &mut self,
        _token: Token,
        _version: i16,
        _request: SyncGroupRequest,
        _step: &mut Step<'_>,
    ) {
    }

    pub(crate) fn consumer_classic_heartbeat(
        &mut self,
        _token: Token,
        _request: HeartbeatRequest,
        _step: &mut Step<'_>,
    ) {
    }

    /// `members` is filled in all versions; the answer goes through
    /// [`leave_response`](super::classic::leave_response).
    pub(crate) fn consumer_leave_group(
        &mut self,
        _token: Token,
        _version: i16,
        _request: LeaveGroupRequest,
        _step: &mut Step<'_>,
    ) {
    }

    /// Makes a consumer group without members a classic one; its offsets stay.
    pub(crate) fn convert_empty_consumer_group(&mut self, _group_id: &str, _step: &mut Step<'_>) {}
}

impl Shard {
    pub(crate) fn consumer_group_heartbeat(
        &mut self,
        token: Token,
        _caller: &Caller,
        _version: i16,
        _request: ConsumerGroupHeartbeatRequest,
        step: &mut Step<'_>,
    ) {
        let response = ConsumerGroupHeartbeatResponse::default();
        step.reply(token, Reply::ConsumerGroupHeartbeat(response));
    }

    pub(crate) fn consumer_group_describe(
        &mut self,
        token: Token,
        _groups: Vec<kohort_wire::ByteString>,
        step: &mut Step<'_>,
    ) {
        step.reply(token, Reply::ConsumerGroupDescribe(Vec::new()));
    }

    pub(crate) fn consumer_loaded(&mut self, _group_id: &Id, _step: &mut Step<'_>) {}

    pub(crate) fn on_consumer_session_alarm(
        &mut self,
        _group_id: &Id,
        _member_id: &Id,
        _step: &mut Step<'_>,
    ) {
    }

    pub(crate) fn on_consumer_rebalance_alarm(
        &mut self,
        _group_id: &Id,
        _member_id: &Id,
        _step: &mut Step<'_>,
    ) {
    }

    pub(crate) fn on_consumer_group_alarm(&mut self, _group_id: &Id, _step: &mut Step<'_>) {}

    pub(crate) fn consumer_topics_changed(&mut self, _step: &mut Step<'_>) {}

    pub(crate) fn consumer_work_done(&mut self, _done: WorkDone, _step: &mut Step<'_>) {}

    pub(crate) fn apply_consumer(&mut self, _record: &Record) {}
}
