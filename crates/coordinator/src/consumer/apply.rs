//! Records to state: the only place where the durable state of a consumer group changes.
//!
//! Used for what the shard has just decided and for what it loads, so it takes records in any order
//! that compaction can leave: tombstones for what is not there, members without a profile for the
//! moment, targets before their members (KAFKA-17306).

use std::collections::BTreeSet;

use bytes::Bytes;
use kohort_wire::{ByteString, messages::*};

use super::{
    ConsumerGroup,
    group::Resolved,
    member::{Current, MemberState, Profile},
    owned::Owned,
    records,
};
use crate::{Record, Shard, group::Members, step::Apply};

impl Shard {
    pub(crate) fn apply_consumer(&mut self, record: &Record) {
        let (group_id, is_tombstone) = match record {
            Record::ConsumerMetadata(key, value) => (&key.group_id, value.is_none()),
            Record::ConsumerPartitionMetadata(key, value) => (&key.group_id, value.is_none()),
            Record::ConsumerMemberMetadata(key, value) => (&key.group_id, value.is_none()),
            Record::ConsumerTargetAssignmentMetadata(key, value) => {
                (&key.group_id, value.is_none())
            }
            Record::ConsumerTargetAssignmentMember(key, value) => (&key.group_id, value.is_none()),
            Record::ConsumerCurrentMemberAssignment(key, value) => (&key.group_id, value.is_none()),
            Record::ConsumerRegularExpression(key, value) => (&key.group_id, value.is_none()),
            // Those of other groups are applied elsewhere.
            Record::LegacyOffsetCommit(..)
            | Record::OffsetCommit(..)
            | Record::GroupMetadata(..)
            | Record::Rewind(..)
            | Record::Rewound(..)
            | Record::GroupSeen(..)
            | Record::TopicSeen(..) => return,
        };
        if let Record::ConsumerMetadata(_, None) = record {
            self.drop_consumer_group(group_id);
        } else if !is_tombstone {
            self.consumer_group_or_new(group_id).apply(record);
        } else if let Some(group) = self.consumer_group_mut(group_id) {
            group.apply(record);
        }
    }

    pub(crate) fn consumer_group(&self, group_id: &str) -> Option<&ConsumerGroup> {
        self.groups.get(group_id)?.consumer()
    }

    pub(crate) fn consumer_group_mut(&mut self, group_id: &str) -> Option<&mut ConsumerGroup> {
        self.groups.get_mut(group_id)?.consumer_mut()
    }

    /// The last record decides what a group is: one that was classic before is so no longer.
    pub(crate) fn consumer_group_or_new(&mut self, group_id: &str) -> &mut ConsumerGroup {
        let members = &mut self.group_or_new(group_id).members;
        if let Members::Classic(_) = members {
            *members = Members::Consumer(Box::default());
        }
        match members {
            Members::Consumer(group) => group,
            Members::Classic(_) => unreachable!("replaced above"),
        }
    }

    /// The members go; the committed offsets of the group, if there are any, go their own way.
    fn drop_consumer_group(&mut self, group_id: &str) {
        if let Some(group) = self.groups.get_mut(group_id)
            && let Members::Consumer(_) = group.members
        {
            group.members = Members::Classic(Default::default());
            self.forget_if_nothing_is_left(group_id);
        }
    }
}

impl Apply for ConsumerGroup {
    fn apply(&mut self, record: &Record) {
        match record {
            Record::ConsumerMetadata(_, Some(value)) => {
                self.epoch = value.epoch;
                self.metadata_hash = value.metadata_hash;
            }
            // Its content is no longer used; it is only remembered, to be taken out.
            Record::ConsumerPartitionMetadata(_, value) => {
                self.has_partition_metadata = value.is_some();
            }
            Record::ConsumerMemberMetadata(key, Some(value)) => {
                let profile = read_profile(self, value);
                self.set_profile(&key.member_id, profile);
            }
            Record::ConsumerMemberMetadata(key, None) => self.remove_member(&key.member_id),
            Record::ConsumerTargetAssignmentMetadata(_, value) => {
                self.assignment_epoch = value.as_ref().map_or(-1, |value| value.assignment_epoch);
                self.assignment_timestamp =
                    value.as_ref().map_or(0, |value| value.assignment_timestamp);
            }
            Record::ConsumerTargetAssignmentMember(key, Some(value)) => {
                let target = records::from_topics(&value.topic_partitions);
                self.set_target(&key.member_id, target);
            }
            Record::ConsumerTargetAssignmentMember(key, None) => self.remove_target(&key.member_id),
            Record::ConsumerCurrentMemberAssignment(key, Some(value)) => {
                self.set_current(&key.member_id, read_current(value));
            }
            Record::ConsumerCurrentMemberAssignment(key, None) => {
                self.clear_current(&key.member_id);
            }
            Record::ConsumerRegularExpression(key, Some(value)) => {
                let topics = self.intern_names(value.topics.iter().map(|topic| &**topic));
                let resolved = Resolved {
                    topics,
                    version: value.version,
                    at: value.timestamp,
                };
                self.set_resolved(&key.regular_expression, resolved);
            }
            Record::ConsumerRegularExpression(key, None) => {
                self.remove_resolved(&key.regular_expression);
            }
            Record::ConsumerMetadata(_, None)
            | Record::LegacyOffsetCommit(..)
            | Record::OffsetCommit(..)
            | Record::GroupMetadata(..)
            | Record::Rewind(..)
            | Record::Rewound(..)
            | Record::GroupSeen(..)
            | Record::TopicSeen(..) => {}
        }
    }
}

fn read_profile(group: &mut ConsumerGroup, value: &ConsumerGroupMemberMetadataValue) -> Profile {
    // Kafka writes an empty regular expression for none; an empty instance or rack would be none too.
    let mut nullable = |text: &Option<ByteString>| {
        let text = text.as_deref().filter(|text| !text.is_empty())?;
        Some(group.intern(text))
    };
    Profile {
        instance_id: nullable(&value.instance_id),
        rack_id: nullable(&value.rack_id),
        regex: nullable(&value.subscribed_topic_regex),
        server_assignor: nullable(&value.server_assignor),
        client_id: group.intern(&value.client_id),
        client_host: group.intern(&value.client_host),
        topics: group.intern_names(value.subscribed_topic_names.iter().map(|topic| &**topic)),
        rebalance_timeout_ms: value.rebalance_timeout_ms,
        classic: value
            .classic_member_metadata
            .as_ref()
            .map(|classic| Box::new(copy(classic))),
    }
}

/// Copies what a record may share with the frame of a request, which would stay in memory otherwise.
/// A protocol named twice counts once.
fn copy(classic: &ClassicMemberMetadata) -> ClassicMemberMetadata {
    let mut names = BTreeSet::new();
    ClassicMemberMetadata {
        session_timeout_ms: classic.session_timeout_ms,
        supported_protocols: classic
            .supported_protocols
            .iter()
            .filter(|protocol| names.insert(&*protocol.name))
            .map(|protocol| ClassicProtocol {
                name: (&*protocol.name).into(),
                metadata: Bytes::copy_from_slice(&protocol.metadata),
            })
            .collect(),
    }
}

fn read_current(value: &ConsumerGroupCurrentMemberAssignmentValue) -> Current {
    let owned = |topics| Owned::from_record(topics, value.member_epoch);
    Current {
        epoch: value.member_epoch,
        previous_epoch: value.previous_member_epoch,
        state: MemberState::from_value(value.state),
        assigned: owned(&value.assigned_partitions),
        revoking: owned(&value.partitions_pending_revocation),
    }
}
