//! Classic groups: members join, one of them assigns, all sync.

use kohort_wire::messages::*;

use super::{Caller, Id, Reply, Shard, Token, shard::Step};

/// A classic group.
#[derive(Debug, Default)]
pub(crate) struct ClassicGroup {}

impl Shard {
    pub(crate) fn join_group(
        &mut self,
        token: Token,
        _caller: &Caller,
        _version: i16,
        _request: JoinGroupRequest,
        step: &mut Step<'_>,
    ) {
        step.reply(token, Reply::JoinGroup(JoinGroupResponse::default()));
    }

    pub(crate) fn sync_group(
        &mut self,
        token: Token,
        _version: i16,
        _request: SyncGroupRequest,
        step: &mut Step<'_>,
    ) {
        step.reply(token, Reply::SyncGroup(SyncGroupResponse::default()));
    }

    pub(crate) fn heartbeat(&mut self, token: Token, _: HeartbeatRequest, step: &mut Step<'_>) {
        step.reply(token, Reply::Heartbeat(HeartbeatResponse::default()));
    }

    pub(crate) fn leave_group(
        &mut self,
        token: Token,
        _version: i16,
        _request: LeaveGroupRequest,
        step: &mut Step<'_>,
    ) {
        step.reply(token, Reply::LeaveGroup(LeaveGroupResponse::default()));
    }

    pub(crate) fn list_groups(&mut self, token: Token, _: ListGroupsRequest, step: &mut Step<'_>) {
        step.reply(token, Reply::ListGroups(ListGroupsResponse::default()));
    }

    pub(crate) fn describe_groups(
        &mut self,
        token: Token,
        _version: i16,
        _groups: Vec<kohort_wire::ByteString>,
        step: &mut Step<'_>,
    ) {
        step.reply(token, Reply::DescribeGroups(Vec::new()));
    }

    pub(crate) fn delete_groups(
        &mut self,
        token: Token,
        _groups: Vec<kohort_wire::ByteString>,
        step: &mut Step<'_>,
    ) {
        step.reply(token, Reply::DeleteGroups(Vec::new()));
    }

    pub(crate) fn classic_loaded(&mut self, _group_id: &Id, _step: &mut Step<'_>) {}

    pub(crate) fn on_classic_member_alarm(
        &mut self,
        _group_id: &Id,
        _member_id: &Id,
        _step: &mut Step<'_>,
    ) {
    }

    pub(crate) fn on_classic_rebalance_alarm(&mut self, _group_id: &Id, _step: &mut Step<'_>) {}

    pub(crate) fn apply_group_metadata(
        &mut self,
        _key: &GroupMetadataKey,
        _value: Option<&GroupMetadataValue>,
    ) {
    }
}
