//! Committed offsets.

use kohort_wire::messages::*;

use super::{Millis, Reply, Shard, Token, shard::Step};

/// The committed offsets of a group.
#[derive(Debug, Default)]
pub(crate) struct GroupOffsets {}

impl Shard {
    pub(crate) fn offset_commit(
        &mut self,
        token: Token,
        _version: i16,
        _request: OffsetCommitRequest,
        step: &mut Step<'_>,
    ) {
        step.reply(token, Reply::OffsetCommit(OffsetCommitResponse::default()));
    }

    pub(crate) fn offset_fetch(
        &mut self,
        token: Token,
        _request: OffsetFetchRequestGroup,
        _require_stable: bool,
        step: &mut Step<'_>,
    ) {
        step.reply(
            token,
            Reply::OffsetFetch(OffsetFetchResponseGroup::default()),
        );
    }

    pub(crate) fn offset_delete(
        &mut self,
        token: Token,
        _request: OffsetDeleteRequest,
        step: &mut Step<'_>,
    ) {
        step.reply(token, Reply::OffsetDelete(OffsetDeleteResponse::default()));
    }

    pub(crate) fn topics_deleted(
        &mut self,
        token: Token,
        _topics: Vec<kohort_wire::ByteString>,
        step: &mut Step<'_>,
    ) {
        step.reply(token, Reply::TopicsDeleted);
    }

    pub(crate) fn schedule_offset_expiry(&mut self, _now: Millis) {}

    pub(crate) fn on_offset_expiry_alarm(&mut self, _step: &mut Step<'_>) {}

    pub(crate) fn apply_legacy_offset_commit(
        &mut self,
        _key: &LegacyOffsetCommitKey,
        _value: Option<&LegacyOffsetCommitValue>,
    ) {
    }

    pub(crate) fn apply_offset_commit(
        &mut self,
        _key: &OffsetCommitKey,
        _value: Option<&OffsetCommitValue>,
    ) {
    }
}
