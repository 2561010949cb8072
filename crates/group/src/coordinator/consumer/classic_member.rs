//! Members of a consumer group that speak the classic protocol.

use kohort_wire::{ErrorCode, messages::*};

use crate::coordinator::{
    Caller, Reply, Shard, Token,
    classic::{leave_response, left},
    shard::Step,
};

impl Shard {
    pub(crate) fn consumer_join_group(
        &mut self,
        token: Token,
        _caller: &Caller,
        _version: i16,
        request: JoinGroupRequest,
        step: &mut Step<'_>,
    ) {
        step.refuse_join(
            token,
            &request.member_id,
            ErrorCode::INCONSISTENT_GROUP_PROTOCOL,
        );
    }

    pub(crate) fn consumer_sync_group(
        &mut self,
        token: Token,
        _version: i16,
        _request: SyncGroupRequest,
        step: &mut Step<'_>,
    ) {
        step.refuse_sync(token, ErrorCode::UNKNOWN_MEMBER_ID);
    }

    pub(crate) fn consumer_classic_heartbeat(
        &mut self,
        token: Token,
        _request: HeartbeatRequest,
        step: &mut Step<'_>,
    ) {
        let response = HeartbeatResponse {
            error_code: ErrorCode::UNKNOWN_MEMBER_ID,
            ..HeartbeatResponse::default()
        };
        step.reply(token, Reply::Heartbeat(response));
    }

    /// LeaveGroup also removes members of the consumer protocol: administrators send it.
    pub(crate) fn consumer_leave_group(
        &mut self,
        token: Token,
        version: i16,
        request: LeaveGroupRequest,
        step: &mut Step<'_>,
    ) {
        let Some(consumer) = self.consumer_step(&request.group_id, step) else {
            return;
        };
        let mut leaving = Vec::new();
        let mut causes = Vec::new();
        let members = request.members.iter().map(|identity| {
            // An administrator names the instance alone.
            let instance_id = identity
                .group_instance_id
                .as_deref()
                .filter(|id| !id.is_empty());
            let holder = instance_id.and_then(|id| consumer.group.static_member(id));
            let member_id = match (&*identity.member_id, holder) {
                ("", Some(holder)) => &*holder.id,
                (member_id, _) => member_id,
            };
            let error_code = match consumer.leaving_member(member_id, instance_id) {
                Ok(member) => {
                    let reason = identity.reason.as_deref().unwrap_or("not provided");
                    causes.push(format!("member {} left (its reason: {reason})", member.id));
                    leaving.push(member.id.clone());
                    ErrorCode::NONE
                }
                Err(refusal) => refusal.error_code,
            };
            left(identity, error_code)
        });
        let response = LeaveGroupResponse {
            members: members.collect(),
            ..LeaveGroupResponse::default()
        };
        let group_id = consumer.id.clone();
        leaving.sort_unstable();
        leaving.dedup();
        self.fence(&group_id, &leaving, &causes.join("; "), step);
        step.reply(token, Reply::LeaveGroup(leave_response(version, response)));
    }
}
