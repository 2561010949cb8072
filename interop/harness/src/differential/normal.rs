//! Answers of two brokers made comparable: ids become names, what depends on time or on wording is
//! left out, and lists whose order means nothing are sorted.

use std::fmt::Debug;

use bytes::Bytes;
use kohort_wire::messages::*;
use kohort_wire::{ByteString, ErrorCode, Uuid};

/// The names of what a broker gave ids to.
#[derive(Default)]
pub(crate) struct Names {
    pub(super) members: Vec<(String, String)>,
    pub(super) topics: Vec<(Uuid, String)>,
    /// The group that answers are about; others are left out of lists.
    pub(crate) group: String,
    /// Whether assignments are compared.
    pub(crate) exact: bool,
    /// Whether member ids are the same on both sides, and stay as they are.
    pub(crate) is_raw: bool,
    /// Whether the group has settled, so that all is assigned.
    pub(crate) settled: bool,
}

impl Names {
    /// Remembers a member's id, under the name of its slot.
    pub(crate) fn learn_member(&mut self, id: &str, slot: u8) {
        if id.is_empty() || self.members.iter().any(|(known, _)| known == id) {
            return;
        }
        let mut name = format!("<member {slot}>");
        while self.members.iter().any(|(_, known)| *known == name) {
            name.insert(1, '\'');
        }
        self.members.push((id.to_owned(), name));
    }

    pub(crate) fn learn_topic(&mut self, id: Uuid, topic: u8) {
        let lives = self
            .topics
            .iter()
            .filter(|known| known.1.starts_with(&format!("<topic {topic}")) && known.0 != id);
        let name = format!("<topic {topic}{}>", "'".repeat(lives.count()));
        if !self.topics.iter().any(|known| known.0 == id) {
            self.topics.push((id, name));
        }
    }

    /// The name of a member. One that a script has not been told of, since its join waits or its
    /// answer was lost, has none.
    pub(crate) fn member(&self, id: &str) -> String {
        let known = self.members.iter().find(|(known, _)| known == id);
        match known {
            Some((_, name)) => name.clone(),
            None if self.is_raw => id.to_owned(),
            // What a script chooses is the same everywhere.
            None if id.is_empty() || id.starts_with("consumer-") || id == "nobody" => id.to_owned(),
            None => "<somebody>".to_owned(),
        }
    }

    fn topic(&self, id: Uuid) -> String {
        let known = self.topics.iter().find(|(known, _)| *known == id);
        known.map_or_else(|| id.to_string(), |(_, name)| name.clone())
    }

    /// An answer as it is compared.
    pub(crate) fn text<A: Normal>(&self, mut answer: A) -> String {
        answer.normalise(self);
        let mut text = format!("{answer:?}");
        for (id, name) in &self.members {
            text = text.replace(id, name);
        }
        for (id, name) in &self.topics {
            text = text.replace(&id.to_string(), name);
        }
        for noise in [
            "throttle_time_ms: 0, ",
            "ErrorCode::",
            ", error_message: None",
        ] {
            text = text.replace(noise, "");
        }
        text
    }

    fn sort_partitions(&self, topics: &mut [TopicIdPartitions]) {
        topics.sort_by_key(|topic| self.topic(topic.topic_id));
        for topic in topics {
            topic.partitions.sort_unstable();
        }
    }
}

/// An answer that can be made comparable.
pub(crate) trait Normal: Debug {
    fn normalise(&mut self, names: &Names);
}

impl Normal for JoinGroupResponse {
    fn normalise(&mut self, names: &Names) {
        self.throttle_time_ms = 0;
        self.leader = names.member(&self.leader).into();
        for member in &mut self.members {
            member.member_id = names.member(&member.member_id).into();
        }
        self.members.sort_by_key(|member| format!("{member:?}"));
        if !names.exact {
            self.generation_id = self.generation_id.min(0);
        }
    }
}

impl Normal for SyncGroupResponse {
    fn normalise(&mut self, names: &Names) {
        self.throttle_time_ms = 0;
        if !names.exact {
            self.assignment = Bytes::new();
        }
    }
}

impl Normal for HeartbeatResponse {
    fn normalise(&mut self, names: &Names) {
        self.throttle_time_ms = 0;
        if !names.exact && self.error_code == ErrorCode::REBALANCE_IN_PROGRESS {
            // Whether something waits to be revoked or taken depends on who has it.
            self.error_code = ErrorCode::NONE;
        }
    }
}

impl Normal for LeaveGroupResponse {
    fn normalise(&mut self, _: &Names) {
        self.throttle_time_ms = 0;
    }
}

impl Normal for ConsumerGroupHeartbeatResponse {
    fn normalise(&mut self, names: &Names) {
        self.throttle_time_ms = 0;
        self.error_message = None;
        self.heartbeat_interval_ms = 0;
        if let Some(assignment) = &mut self.assignment {
            names.sort_partitions(&mut assignment.topic_partitions);
        }
        if !names.exact {
            self.assignment = None;
            self.member_epoch = self.member_epoch.min(0);
        }
    }
}

impl Normal for OffsetCommitResponse {
    fn normalise(&mut self, names: &Names) {
        self.throttle_time_ms = 0;
        self.topics
            .sort_by_key(|topic| (topic.name.clone(), names.topic(topic.topic_id)));
        for topic in &mut self.topics {
            topic
                .partitions
                .sort_by_key(|partition| partition.partition_index);
        }
    }
}

impl Normal for OffsetFetchResponse {
    fn normalise(&mut self, names: &Names) {
        self.throttle_time_ms = 0;
        self.topics.sort_by_key(|topic| topic.name.clone());
        for topic in &mut self.topics {
            topic
                .partitions
                .sort_by_key(|partition| partition.partition_index);
        }
        for group in &mut self.groups {
            group
                .topics
                .sort_by_key(|topic| (topic.name.clone(), names.topic(topic.topic_id)));
            for topic in &mut group.topics {
                topic
                    .partitions
                    .sort_by_key(|partition| partition.partition_index);
            }
        }
    }
}

impl Normal for OffsetDeleteResponse {
    fn normalise(&mut self, _: &Names) {
        self.throttle_time_ms = 0;
        self.topics.sort_by_key(|topic| topic.name.clone());
        for topic in &mut self.topics {
            topic
                .partitions
                .sort_by_key(|partition| partition.partition_index);
        }
    }
}

impl Normal for DescribeGroupsResponse {
    fn normalise(&mut self, names: &Names) {
        self.throttle_time_ms = 0;
        for group in &mut self.groups {
            group.error_message = None;
            for member in &mut group.members {
                member.member_id = names.member(&member.member_id).into();
                if !names.exact {
                    // What a group has left that was a consumer group before.
                    member.member_assignment = Bytes::new();
                }
            }
            group.members.sort_by_key(|member| format!("{member:?}"));
        }
    }
}

impl Normal for ConsumerGroupDescribeResponse {
    fn normalise(&mut self, names: &Names) {
        self.throttle_time_ms = 0;
        for group in &mut self.groups {
            group.error_message = None;
            for member in &mut group.members {
                member.member_id = names.member(&member.member_id).into();
            }
            group.members.sort_by_key(|member| member.member_id.clone());
            for member in &mut group.members {
                member.subscribed_topic_names.sort();
                for assignment in [&mut member.assignment, &mut member.target_assignment] {
                    let topics = &mut assignment.topic_partitions;
                    topics.sort_by_key(|topic| topic.topic_name.clone());
                    for topic in topics {
                        topic.partitions.sort_unstable();
                    }
                }
            }
            if !names.exact {
                hide_assignments(group, names.settled);
            }
        }
    }
}

/// Who has what is left out; that all of it is assigned, and how evenly, is kept of a group that has
/// settled.
fn hide_assignments(group: &mut DescribedConsumerGroup, settled: bool) {
    let mut sizes = Vec::new();
    let mut all = Vec::new();
    for member in &mut group.members {
        let target = std::mem::take(&mut member.target_assignment);
        let mut size = 0;
        for topic in target.topic_partitions {
            size += topic.partitions.len();
            for partition in topic.partitions {
                all.push(format!("{}-{partition}", topic.topic_name));
            }
        }
        sizes.push(size);
        member.assignment = DescribedAssignment::default();
        member.member_epoch = member.member_epoch.min(0);
    }
    if group.group_state != "Empty" && group.group_state != "Dead" {
        group.group_state = "with members".into();
    }
    group.assignment_epoch = 0;
    // A group that changes its protocol before all is assigned gets another target in kohort.
    group.group_epoch = group.group_epoch.min(0);
    // Which member has more depends on the order of the names that the coordinator gives.
    let is_named_by_coordinator = |member: &DescribedConsumerGroupMember| {
        member.member_type == 0 || member.member_id.starts_with("<member")
    };
    if group.members.iter().any(is_named_by_coordinator) {
        sizes.clear();
    }
    if !settled {
        group.assignor_name = ByteString::new();
        return;
    }
    sizes.sort_unstable();
    all.sort_unstable();
    group.assignor_name = format!("{} gives {sizes:?} of {all:?}", group.assignor_name).into();
}

impl Normal for ListGroupsResponse {
    fn normalise(&mut self, names: &Names) {
        self.throttle_time_ms = 0;
        self.groups.retain(|group| *group.group_id == *names.group);
        if !names.exact {
            for group in &mut self.groups {
                if matches!(&*group.group_state, "Assigning" | "Reconciling" | "Stable")
                    && &*group.group_type == "Consumer"
                {
                    group.group_state = ByteString::from("with members");
                }
            }
        }
    }
}

impl Normal for DeleteGroupsResponse {
    fn normalise(&mut self, _: &Names) {
        self.throttle_time_ms = 0;
        for result in &mut self.results {
            result.error_message = None;
        }
    }
}
