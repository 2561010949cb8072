//! ListGroups and DeleteGroups: what concerns groups of every protocol.

use kohort_group::history::{Deletion, What};
use kohort_wire::{ByteString, ErrorCode, messages::*};

use super::{
    Id, Record, Reply, Shard, Token,
    group::{Group, Members},
    step::Step,
};

impl Group {
    /// The state, in Kafka's words.
    pub(crate) fn state_name(&self) -> String {
        match &self.members {
            Members::Classic(group) => group.state.to_string(),
            Members::Consumer(group) => group.state_name().to_owned(),
        }
    }

    /// The protocol, in Kafka's words.
    pub(crate) fn type_name(&self) -> &'static str {
        match &self.members {
            Members::Classic(_) => "classic",
            Members::Consumer(_) => "consumer",
        }
    }

    pub(crate) fn protocol_type(&self) -> &str {
        match &self.members {
            Members::Classic(group) => group.protocol_type.as_deref().unwrap_or_default(),
            Members::Consumer(_) => super::classic::CONSUMER_PROTOCOL_TYPE,
        }
    }

    /// Whether it has no members.
    pub(crate) fn is_empty(&self) -> bool {
        match &self.members {
            Members::Classic(group) => group.is_empty(),
            Members::Consumer(group) => group.is_empty(),
        }
    }

    /// The records that make an end of the group; its offsets apart.
    pub(crate) fn tombstones(&self) -> Vec<Record> {
        let mut records: Vec<Record> = self.rewind_tombstones().collect();
        records.extend(self.seen.tombstones(&self.id));
        match &self.members {
            Members::Classic(_) => {
                let key = GroupMetadataKey {
                    group: (&*self.id).into(),
                };
                records.push(Record::GroupMetadata(key, None));
            }
            Members::Consumer(group) => records.extend(group.tombstones(&self.id)),
        }
        records
    }
}

impl Shard {
    pub(crate) fn list_groups(
        &mut self,
        token: Token,
        request: ListGroupsRequest,
        step: &mut Step<'_>,
    ) {
        let accepts = |filter: &[ByteString], value: &str| {
            filter.is_empty()
                || filter
                    .iter()
                    .any(|one| one.trim().eq_ignore_ascii_case(value))
        };
        let listed = self.groups.values().filter_map(|group| {
            let (state, kind) = (group.state_name(), group.type_name());
            let listed =
                accepts(&request.states_filter, &state) && accepts(&request.types_filter, kind);
            listed.then(|| ListedGroup {
                group_id: (&*group.id).into(),
                protocol_type: group.protocol_type().into(),
                group_state: state.into(),
                group_type: kind.into(),
            })
        });
        let response = ListGroupsResponse {
            groups: listed.collect(),
            ..ListGroupsResponse::default()
        };
        step.reply(token, Reply::ListGroups(response));
    }

    pub(crate) fn delete_groups(
        &mut self,
        token: Token,
        groups: Vec<ByteString>,
        step: &mut Step<'_>,
    ) {
        let results = groups.into_iter().map(|group_id| {
            let (error_code, error_message) = match self.delete_group(&group_id, step) {
                Ok(()) => (ErrorCode::NONE, None),
                Err(ErrorCode::GROUP_ID_NOT_FOUND) => (
                    ErrorCode::GROUP_ID_NOT_FOUND,
                    Some(format!("there is no group {group_id}").into()),
                ),
                Err(error_code) => (
                    error_code,
                    Some(format!("group {group_id} has members").into()),
                ),
            };
            DeletableGroupResult {
                group_id,
                error_code,
                error_message,
            }
        });
        let results = results.collect();
        step.reply(token, Reply::DeleteGroups(results));
    }

    fn delete_group(&mut self, group_id: &str, step: &mut Step<'_>) -> Result<(), ErrorCode> {
        let group = self
            .groups
            .get(group_id)
            .ok_or(ErrorCode::GROUP_ID_NOT_FOUND)?;
        if !group.is_empty() {
            return Err(ErrorCode::NON_EMPTY_GROUP);
        }
        let id = group.id.clone();
        let mut records = group.offsets.tombstones(&id);
        records.extend(group.tombstones());
        for record in records {
            self.emit(record, step);
        }
        step.event(
            &id,
            What::Deleted {
                why: Deletion::Requested,
            },
        );
        Ok(())
    }

    pub(crate) fn apply_group_metadata(
        &mut self,
        key: &GroupMetadataKey,
        value: Option<&GroupMetadataValue>,
    ) {
        match value {
            Some(value) => {
                let group = self.group_or_new(&key.group);
                if group.classic().is_none() {
                    group.members = Members::Classic(Default::default());
                }
                if let Some(classic) = group.classic_mut() {
                    classic.take_up(value);
                }
            }
            None => {
                if let Some(group) = self.groups.get_mut(&*key.group)
                    && group.classic().is_some()
                {
                    group.members = Members::Classic(Default::default());
                    self.forget_if_nothing_is_left(&key.group);
                }
            }
        }
    }

    /// Forgets a group that has no records any more.
    pub(crate) fn forget_if_nothing_is_left(&mut self, group_id: &str) {
        let nothing_left = self.groups.get(group_id).is_some_and(|group| {
            group.offsets.is_empty()
                && group.rewind.is_none()
                && group.rewound.is_none()
                && group.seen.is_empty()
                && group.classic().is_some_and(|classic| {
                    classic.is_empty()
                        && classic.state_since.is_none()
                        && classic.pending.is_empty()
                })
        });
        if nothing_left {
            self.groups.remove(group_id);
        }
    }

    /// The ids of all groups.
    pub(crate) fn group_ids(&self) -> Vec<Id> {
        self.groups.keys().cloned().collect()
    }
}
