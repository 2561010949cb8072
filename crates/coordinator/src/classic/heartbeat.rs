//! Heartbeat.

use kohort_wire::{ErrorCode, messages::*};

use super::{ClassicState, step::ClassicStep};
use crate::{Reply, Shard, Token, group::Members, step::Step};

impl Shard {
    pub(crate) fn heartbeat(
        &mut self,
        token: Token,
        request: HeartbeatRequest,
        step: &mut Step<'_>,
    ) {
        if let Some(Members::Consumer(_)) = self
            .groups
            .get(&*request.group_id)
            .map(|group| &group.members)
        {
            return self.consumer_classic_heartbeat(token, request, step);
        }
        let error_code = match self.classic_step(&request.group_id, step) {
            _ if request.group_id.is_empty() => ErrorCode::INVALID_GROUP_ID,
            Some(mut classic) => classic.heartbeat(&request).err().unwrap_or_default(),
            None => ErrorCode::UNKNOWN_MEMBER_ID,
        };
        let response = HeartbeatResponse {
            error_code,
            ..HeartbeatResponse::default()
        };
        step.reply(token, Reply::Heartbeat(response));
    }
}

impl ClassicStep<'_, '_> {
    fn heartbeat(&mut self, request: &HeartbeatRequest) -> Result<(), ErrorCode> {
        let group = &self.group;
        group.validate(&request.member_id, request.group_instance_id.as_deref())?;
        if request.generation_id != group.generation {
            return Err(ErrorCode::ILLEGAL_GENERATION);
        }
        self.restart_session(&request.member_id);
        match self.group.state {
            ClassicState::Empty => Err(ErrorCode::UNKNOWN_MEMBER_ID),
            ClassicState::PreparingRebalance => Err(ErrorCode::REBALANCE_IN_PROGRESS),
            // Members heartbeat while they wait for the leader's assignment.
            ClassicState::CompletingRebalance | ClassicState::Stable => Ok(()),
        }
    }
}
