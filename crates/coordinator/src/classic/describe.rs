//! DescribeGroups.

use kohort_wire::{ByteString, ErrorCode, messages::*};

use super::{ClassicGroup, ClassicState};
use crate::{Reply, Shard, Token, step::Step};

impl Shard {
    pub(crate) fn describe_groups(
        &mut self,
        token: Token,
        version: i16,
        groups: Vec<ByteString>,
        step: &mut Step<'_>,
    ) {
        let described = groups
            .into_iter()
            .map(|id| self.describe_classic(version, id))
            .collect();
        step.reply(token, Reply::DescribeGroups(described));
    }

    fn describe_classic(&self, version: i16, group_id: ByteString) -> DescribedGroup {
        if let Some(group) = self
            .groups
            .get(&*group_id)
            .and_then(|group| group.classic())
        {
            return describe(group_id, group);
        }
        // Before version 6 a group that does not exist is a dead one, without an error.
        let described = DescribedGroup {
            group_state: "Dead".into(),
            group_id: group_id.clone(),
            ..DescribedGroup::default()
        };
        if version < 6 {
            return described;
        }
        DescribedGroup {
            error_code: ErrorCode::GROUP_ID_NOT_FOUND,
            error_message: Some(if self.groups.contains_key(&*group_id) {
                format!("group {group_id} is a consumer group").into()
            } else {
                format!("there is no group {group_id}").into()
            }),
            ..described
        }
    }
}

fn describe(group_id: ByteString, group: &ClassicGroup) -> DescribedGroup {
    let is_stable = group.is(ClassicState::Stable);
    let protocol = group.protocol.as_deref().filter(|_| is_stable);
    let members = group.members().map(|member| DescribedGroupMember {
        member_id: (&*member.id).into(),
        group_instance_id: member.instance_id.as_deref().map(Into::into),
        client_id: (&*member.client_id).into(),
        client_host: (&*member.client_host).into(),
        member_metadata: protocol
            .map(|name| member.metadata(name))
            .unwrap_or_default(),
        // During a rebalance what it had before.
        member_assignment: member.assignment.clone(),
    });
    DescribedGroup {
        group_id,
        group_state: group.state.to_string().into(),
        protocol_type: group.protocol_type.as_deref().unwrap_or_default().into(),
        protocol_data: protocol.unwrap_or_default().into(),
        members: members.collect(),
        ..DescribedGroup::default()
    }
}
