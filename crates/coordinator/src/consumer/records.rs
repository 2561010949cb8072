//! The records of a consumer group.

use kohort_group::TopicPartitions;
use kohort_wire::messages::*;

use super::member::{Current, Profile};
use crate::{Id, Millis, Record};

pub(crate) fn group(group_id: &Id, epoch: i32, metadata_hash: i64) -> Record {
    let value = ConsumerGroupMetadataValue {
        epoch,
        metadata_hash,
    };
    Record::ConsumerMetadata(group_key(group_id), Some(value))
}

pub(crate) fn no_group(group_id: &Id) -> Record {
    Record::ConsumerMetadata(group_key(group_id), None)
}

fn group_key(group_id: &Id) -> ConsumerGroupMetadataKey {
    ConsumerGroupMetadataKey {
        group_id: (&**group_id).into(),
    }
}

pub(crate) fn no_partition_metadata(group_id: &Id) -> Record {
    let key = ConsumerGroupPartitionMetadataKey {
        group_id: (&**group_id).into(),
    };
    Record::ConsumerPartitionMetadata(key, None)
}

pub(crate) fn member(group_id: &Id, member_id: &Id, profile: &Profile) -> Record {
    let nullable = |text: &Option<Id>| text.as_deref().map(Into::into);
    let value = ConsumerGroupMemberMetadataValue {
        instance_id: nullable(&profile.instance_id),
        rack_id: nullable(&profile.rack_id),
        client_id: (&*profile.client_id).into(),
        client_host: (&*profile.client_host).into(),
        subscribed_topic_names: profile
            .topics
            .iter()
            .map(|topic| (&**topic).into())
            .collect(),
        subscribed_topic_regex: Some(profile.regex.as_deref().unwrap_or_default().into()),
        rebalance_timeout_ms: profile.rebalance_timeout_ms,
        server_assignor: nullable(&profile.server_assignor),
        classic_member_metadata: profile.classic.as_deref().cloned(),
    };
    Record::ConsumerMemberMetadata(member_key(group_id, member_id), Some(value))
}

pub(crate) fn no_member(group_id: &Id, member_id: &Id) -> Record {
    Record::ConsumerMemberMetadata(member_key(group_id, member_id), None)
}

fn member_key(group_id: &Id, member_id: &Id) -> ConsumerGroupMemberMetadataKey {
    ConsumerGroupMemberMetadataKey {
        group_id: (&**group_id).into(),
        member_id: (&**member_id).into(),
    }
}

pub(crate) fn target_epoch(group_id: &Id, assignment_epoch: i32, at: Millis) -> Record {
    let value = ConsumerGroupTargetAssignmentMetadataValue {
        assignment_epoch,
        assignment_timestamp: at,
    };
    Record::ConsumerTargetAssignmentMetadata(target_epoch_key(group_id), Some(value))
}

pub(crate) fn no_target_epoch(group_id: &Id) -> Record {
    Record::ConsumerTargetAssignmentMetadata(target_epoch_key(group_id), None)
}

fn target_epoch_key(group_id: &Id) -> ConsumerGroupTargetAssignmentMetadataKey {
    ConsumerGroupTargetAssignmentMetadataKey {
        group_id: (&**group_id).into(),
    }
}

pub(crate) fn target(group_id: &Id, member_id: &Id, target: &TopicPartitions) -> Record {
    let value = ConsumerGroupTargetAssignmentMemberValue {
        topic_partitions: to_topics(target),
    };
    Record::ConsumerTargetAssignmentMember(target_key(group_id, member_id), Some(value))
}

pub(crate) fn no_target(group_id: &Id, member_id: &Id) -> Record {
    Record::ConsumerTargetAssignmentMember(target_key(group_id, member_id), None)
}

fn target_key(group_id: &Id, member_id: &Id) -> ConsumerGroupTargetAssignmentMemberKey {
    ConsumerGroupTargetAssignmentMemberKey {
        group_id: (&**group_id).into(),
        member_id: (&**member_id).into(),
    }
}

pub(crate) fn current(group_id: &Id, member_id: &Id, current: &Current) -> Record {
    let value = ConsumerGroupCurrentMemberAssignmentValue {
        member_epoch: current.epoch,
        previous_member_epoch: current.previous_epoch,
        state: current.state.value(),
        assigned_partitions: current.assigned.to_record(),
        partitions_pending_revocation: current.revoking.to_record(),
    };
    Record::ConsumerCurrentMemberAssignment(current_key(group_id, member_id), Some(value))
}

pub(crate) fn no_current(group_id: &Id, member_id: &Id) -> Record {
    Record::ConsumerCurrentMemberAssignment(current_key(group_id, member_id), None)
}

fn current_key(group_id: &Id, member_id: &Id) -> ConsumerGroupCurrentMemberAssignmentKey {
    ConsumerGroupCurrentMemberAssignmentKey {
        group_id: (&**group_id).into(),
        member_id: (&**member_id).into(),
    }
}

pub(crate) fn regex(group_id: &Id, regex: &Id, topics: &[Id], version: i64, at: Millis) -> Record {
    let value = ConsumerGroupRegularExpressionValue {
        topics: topics.iter().map(|topic| (&**topic).into()).collect(),
        version,
        timestamp: at,
    };
    Record::ConsumerRegularExpression(regex_key(group_id, regex), Some(value))
}

pub(crate) fn no_regex(group_id: &Id, regex: &Id) -> Record {
    Record::ConsumerRegularExpression(regex_key(group_id, regex), None)
}

fn regex_key(group_id: &Id, regex: &Id) -> ConsumerGroupRegularExpressionKey {
    ConsumerGroupRegularExpressionKey {
        group_id: (&**group_id).into(),
        regular_expression: (&**regex).into(),
    }
}

/// The tombstones of a member. The order matters to Kafka, which refuses to load any other.
pub(crate) fn removal(group_id: &Id, member_id: &Id) -> [Record; 3] {
    [
        no_current(group_id, member_id),
        no_target(group_id, member_id),
        no_member(group_id, member_id),
    ]
}

/// Partitions by topic, as messages carry them.
pub(crate) fn to_topics(partitions: &TopicPartitions) -> Vec<TopicIdPartitions> {
    partitions
        .topics()
        .map(|(topic_id, runs)| TopicIdPartitions {
            topic_id,
            partitions: runs.iter().flat_map(|run| run.partitions()).collect(),
        })
        .collect()
}

/// The set of partitions of a message.
pub(crate) fn from_topics(topics: &[TopicIdPartitions]) -> TopicPartitions {
    topics
        .iter()
        .flat_map(|topic| {
            topic
                .partitions
                .iter()
                .map(|&partition| (topic.topic_id, partition))
        })
        .collect()
}
