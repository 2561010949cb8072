//! LeaveGroup: members leave, or an administrator removes them.

use kohort_group::history::{self, Cause, Causes, Who};
use kohort_wire::{ByteString, ErrorCode, messages::*};

use super::step::ClassicStep;
use crate::{Caller, Reply, Shard, Token, group::Members, step::Step};

impl Shard {
    pub(crate) fn leave_group(
        &mut self,
        token: Token,
        caller: &Caller,
        version: i16,
        mut request: LeaveGroupRequest,
        step: &mut Step<'_>,
    ) {
        if version < 3 {
            // Before KIP-345 a member spoke for itself alone.
            let member_id = std::mem::take(&mut request.member_id);
            request.members = vec![MemberIdentity {
                member_id,
                ..MemberIdentity::default()
            }];
        }
        if let Some(Members::Consumer(_)) = self
            .groups
            .get(&*request.group_id)
            .map(|group| &group.members)
        {
            return self.consumer_leave_group(token, caller, version, request, step);
        }
        let response = match self.classic_step(&request.group_id, step) {
            _ if request.group_id.is_empty() => LeaveGroupResponse {
                error_code: ErrorCode::INVALID_GROUP_ID,
                ..LeaveGroupResponse::default()
            },
            Some(mut classic) => classic.leave(&request.members, &caller.into()),
            None => LeaveGroupResponse {
                members: request
                    .members
                    .iter()
                    .map(|identity| left(identity, ErrorCode::UNKNOWN_MEMBER_ID))
                    .collect(),
                ..LeaveGroupResponse::default()
            },
        };
        step.reply(token, Reply::LeaveGroup(leave_response(version, response)));
        self.forget_if_nothing_is_left(&request.group_id);
    }
}

/// The response as the version of the request wants it.
pub(crate) fn leave_response(version: i16, mut response: LeaveGroupResponse) -> LeaveGroupResponse {
    if version < 3
        && let Some(only) = response.members.pop()
    {
        response.error_code = match response.error_code {
            ErrorCode::NONE => only.error_code,
            error_code => error_code,
        };
        response.members.clear();
    }
    response
}

/// What became of one of the members that were to leave.
pub(crate) fn left(identity: &MemberIdentity, error_code: ErrorCode) -> MemberResponse {
    MemberResponse {
        member_id: identity.member_id.clone(),
        group_instance_id: identity.group_instance_id.clone(),
        error_code,
    }
}

/// A member that leaves, or that an administrator removes: one names the instance alone, or is known
/// by the words that Kafka's own clients give as their reason (KIP-800).
pub(crate) fn leaves(member: Who, identity: &MemberIdentity, by: &Who) -> Cause {
    let text = identity.reason.as_deref();
    let is_removed = (identity.member_id.is_empty() && member.instance_id.is_some())
        || text.is_some_and(|text| text.starts_with("member was removed by an admin"));
    let reason = history::reason(text);
    if is_removed {
        Cause::MemberRemoved {
            member,
            by: by.clone(),
            reason,
        }
    } else {
        Cause::MemberLeft { member, reason }
    }
}

impl ClassicStep<'_, '_> {
    fn leave(&mut self, identities: &[MemberIdentity], by: &Who) -> LeaveGroupResponse {
        let mut causes = Causes::default();
        let mut members = Vec::with_capacity(identities.len());
        for identity in identities {
            let error_code = match self.leave_one(identity, by) {
                Ok(cause) => {
                    causes.extend([cause]);
                    ErrorCode::NONE
                }
                Err(error_code) => error_code,
            };
            members.push(left(identity, error_code));
        }
        if !causes.is_empty() {
            self.member_gone(causes);
        }
        LeaveGroupResponse {
            members,
            ..LeaveGroupResponse::default()
        }
    }

    fn leave_one(&mut self, identity: &MemberIdentity, by: &Who) -> Result<Cause, ErrorCode> {
        let instance_id = identity
            .group_instance_id
            .as_deref()
            .filter(|id| !id.is_empty());
        let member_id = match (&*identity.member_id, instance_id) {
            // An administrator names the instance alone.
            ("", Some(instance_id)) => {
                let holder = self.group.static_member_id(instance_id);
                ByteString::from(&**holder.ok_or(ErrorCode::UNKNOWN_MEMBER_ID)?)
            }
            (member_id, _) if self.group.pending.remove(member_id) => {
                return Ok(format!("member {member_id} left before it joined").into());
            }
            (member_id, instance_id) => {
                self.group.validate(member_id, instance_id)?;
                identity.member_id.clone()
            }
        };
        let member = self.who(&member_id);
        self.remove_member(&member_id);
        Ok(leaves(member, identity, by))
    }
}
