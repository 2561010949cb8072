//! ConsumerGroupDescribe, and the end of a group.

use kohort_group::TopicPartitions;
use kohort_wire::{ByteString, ErrorCode, messages::*};

use super::{ConsumerGroup, group::ConsumerState, member::Member, records};
use crate::{Id, Record, Reply, Shard, Token, Topics, step::Step};

impl Shard {
    pub(crate) fn consumer_group_describe(
        &mut self,
        token: Token,
        groups: Vec<ByteString>,
        step: &mut Step<'_>,
    ) {
        let described = groups
            .into_iter()
            .map(|group_id| match self.consumer_group(&group_id) {
                Some(group) => DescribedConsumerGroup {
                    group_id,
                    assignor_name: group.assignor(&self.config).name().into(),
                    ..group.describe(&self.topics)
                },
                None => DescribedConsumerGroup {
                    error_code: ErrorCode::GROUP_ID_NOT_FOUND,
                    error_message: Some(if self.groups.contains_key(&*group_id) {
                        format!("group {group_id} is a classic group").into()
                    } else {
                        format!("there is no group {group_id}").into()
                    }),
                    group_id,
                    ..DescribedConsumerGroup::default()
                },
            });
        let described = described.collect();
        step.reply(token, Reply::ConsumerGroupDescribe(described));
    }
}

impl ConsumerGroup {
    /// The state, in Kafka's words.
    pub(crate) fn state_name(&self) -> &'static str {
        match self.state() {
            ConsumerState::Empty => "Empty",
            ConsumerState::Assigning => "Assigning",
            ConsumerState::Reconciling => "Reconciling",
            ConsumerState::Stable => "Stable",
        }
    }

    fn describe(&self, topics: &Topics) -> DescribedConsumerGroup {
        let members = self.sorted_members();
        DescribedConsumerGroup {
            group_state: self.state_name().into(),
            group_epoch: self.epoch,
            assignment_epoch: self.assignment_epoch,
            members: members
                .into_iter()
                .map(|member| self.describe_member(member, topics))
                .collect(),
            ..DescribedConsumerGroup::default()
        }
    }

    fn describe_member(&self, member: &Member, topics: &Topics) -> DescribedConsumerGroupMember {
        let Member {
            profile, current, ..
        } = member;
        let nullable = |text: &Option<Id>| text.as_deref().map(Into::into);
        // A member answers for what it has yet to revoke (KAFKA-20431).
        let owned = current.assigned.all().union(current.revoking.all());
        let target = self.target(&member.id).cloned().unwrap_or_default();
        DescribedConsumerGroupMember {
            member_id: (&*member.id).into(),
            instance_id: nullable(&profile.instance_id),
            rack_id: nullable(&profile.rack_id),
            member_epoch: current.epoch,
            client_id: (&*profile.client_id).into(),
            client_host: (&*profile.client_host).into(),
            subscribed_topic_names: profile.topics.iter().map(|name| (&**name).into()).collect(),
            subscribed_topic_regex: Some(profile.regex.as_deref().unwrap_or_default().into()),
            assignment: describe_partitions(&owned, topics),
            target_assignment: describe_partitions(&target, topics),
            member_type: i8::from(!member.is_classic()),
        }
    }

    /// The records that make an end of the group; its offsets apart. The order matters to Kafka,
    /// which refuses to load any other.
    pub(crate) fn tombstones(&self, group_id: &Id) -> Vec<Record> {
        let member_ids = self.member_ids();
        let mut tombstones = Vec::with_capacity(3 * member_ids.len() + 3);
        tombstones.extend(
            member_ids
                .iter()
                .map(|id| records::no_current(group_id, id)),
        );
        tombstones.extend(member_ids.iter().map(|id| records::no_target(group_id, id)));
        tombstones.push(records::no_target_epoch(group_id));
        tombstones.extend(member_ids.iter().map(|id| records::no_member(group_id, id)));
        tombstones.extend(
            self.all_resolved()
                .map(|(regex, _)| records::no_regex(group_id, regex)),
        );
        if self.has_partition_metadata {
            tombstones.push(records::no_partition_metadata(group_id));
        }
        tombstones.push(records::no_group(group_id));
        tombstones
    }
}

/// Partitions under the names of their topics; those of topics that are gone are left out.
fn describe_partitions(partitions: &TopicPartitions, topics: &Topics) -> DescribedAssignment {
    let topic_partitions = partitions.topics().filter_map(|(topic_id, runs)| {
        Some(DescribedTopicPartitions {
            topic_id,
            topic_name: (&*topics.by_id(topic_id)?.name).into(),
            partitions: runs.iter().flat_map(|run| run.partitions()).collect(),
        })
    });
    DescribedAssignment {
        topic_partitions: topic_partitions.collect(),
    }
}
