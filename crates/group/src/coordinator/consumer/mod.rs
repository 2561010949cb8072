//! Consumer groups (KIP-848): members heartbeat, the coordinator assigns.

use kohort_wire::messages::*;

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
