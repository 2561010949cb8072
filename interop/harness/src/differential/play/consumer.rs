//! The requests of consumer members, and their way to where nothing changes any more.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use kohort_wire::messages::*;
use kohort_wire::{ByteString, ErrorCode, Uuid};

use super::{LONG_MS, Member, Play};
use crate::differential::step::*;
use crate::failure::Failure;

/// For a consumer group to settle; a changed regular expression alone takes 10 s.
const SETTLE_LIMIT: Duration = Duration::from_secs(14);
/// A regular expression that has not changed a group's epoch for so long is resolved,
const REGEX_SETTLED_AFTER: Duration = Duration::from_millis(400);
/// unless its member has nothing that it could have: a group's expressions are resolved once in 10 s.
const REGEX_RESOLVED_WITHIN: Duration = Duration::from_secs(11);

impl Play<'_> {
    pub(super) fn consumer_heartbeat(
        &mut self,
        heartbeat: &ConsumerHeartbeat,
    ) -> Result<Option<ConsumerGroupHeartbeatResponse>, Failure> {
        let who = &heartbeat.who;
        let regex = heartbeat.regex.as_ref().map(|regex| {
            let prefix = format!("topic-{}", self.script.seed);
            let pattern = regex.pattern.replace("{}", &prefix);
            self.regexes.insert(pattern.clone(), regex.matches.clone());
            ByteString::from(pattern)
        });
        let owned = self.owned(who.slot, heartbeat.owned);
        let request = ConsumerGroupHeartbeatRequest {
            group_id: self.group(),
            member_id: self.consumer_id(who),
            member_epoch: self.epoch(who),
            instance_id: who.instance.as_deref().map(ByteString::from),
            rack_id: None,
            rebalance_timeout_ms: heartbeat.rebalance_timeout_ms,
            subscribed_topic_names: heartbeat.topics.as_ref().map(|all| self.topic_names(all)),
            subscribed_topic_regex: regex.filter(|_| heartbeat.version >= 1),
            server_assignor: heartbeat.assignor.as_deref().map(ByteString::from),
            topic_partitions: owned,
        };
        self.heartbeat_of(who.slot, &request, heartbeat.version)
    }

    pub(super) fn heartbeat_of(
        &mut self,
        slot: Slot,
        request: &ConsumerGroupHeartbeatRequest,
        version: i16,
    ) -> Result<Option<ConsumerGroupHeartbeatResponse>, Failure> {
        let answer = self.ask(request, version)?;
        if let Some(answer) = &answer
            && !answer.error_code.is_error()
        {
            let id = answer.member_id.clone().unwrap_or_default();
            if request.member_id.is_empty() {
                self.names.learn_member(&id, slot);
            }
            let member = self.member(slot);
            if !id.is_empty() {
                member.consumer_id = id.to_string();
            }
            member.epoch = answer.member_epoch.max(0);
            if let Some(assignment) = &answer.assignment {
                member.assigned = assignment.topic_partitions.clone();
            }
            if answer.member_epoch < 0 {
                member.assigned = Vec::new();
            }
        }
        Ok(answer)
    }

    pub(super) fn owned(&mut self, slot: Slot, owned: Owned) -> Option<Vec<TopicIdPartitions>> {
        let some_topic = self
            .topics
            .values()
            .next()
            .map_or(Uuid(77), |known| known.0);
        let mut assigned = self.member(slot).assigned.clone();
        match owned {
            Owned::Null => None,
            Owned::Nothing => Some(Vec::new()),
            Owned::Assigned => Some(assigned),
            Owned::More => {
                assigned.retain(|topic| topic.topic_id != some_topic);
                assigned.push(TopicIdPartitions {
                    topic_id: some_topic,
                    partitions: vec![0, 1, 2],
                });
                Some(assigned)
            }
            Owned::Fewer => {
                assigned.sort_by_key(|topic| topic.topic_id != some_topic);
                if let Some(topic) = assigned.first_mut() {
                    topic.partitions.sort_unstable();
                    topic.partitions.pop();
                }
                assigned.retain(|topic| !topic.partitions.is_empty());
                Some(assigned)
            }
        }
    }

    pub(super) fn settle(&mut self) -> Result<(), Failure> {
        let start = Instant::now();
        // Regular expressions are resolved aside, and what looks settled may not be.
        let mut looks_settled: Option<(Instant, i32)> = None;
        // A group notices with a heartbeat that its topics have changed.
        let mut has_heartbeat = false;
        loop {
            let described = self.describe_consumer_group(1)?;
            let Some(group) = described.as_ref().and_then(|all| all.groups.first()) else {
                return Err(Failure::new("no answer to ConsumerGroupDescribe"));
            };
            let settled = group.error_code.is_error()
                || group.members.is_empty()
                || (has_heartbeat && &*group.group_state == "Stable" && self.is_complete(group));
            let by_regex = |member: &DescribedConsumerGroupMember| {
                (member.subscribed_topic_regex.as_ref()).is_some_and(|regex| !regex.is_empty())
            };
            let patience = if self.lacks_by_regex(group) {
                REGEX_RESOLVED_WITHIN
            } else {
                REGEX_SETTLED_AFTER
            };
            let settled = settled
                && (!group.members.iter().any(by_regex)
                    || looks_settled.is_some_and(|(since, epoch)| {
                        epoch == group.group_epoch && since.elapsed() > patience
                    }));
            if looks_settled.is_none_or(|(_, epoch)| epoch != group.group_epoch) {
                looks_settled = Some((Instant::now(), group.group_epoch));
            }
            if settled || start.elapsed() > SETTLE_LIMIT {
                if !settled {
                    self.stuck = true;
                    let limit = SETTLE_LIMIT.as_secs();
                    let last = self.complaints.len().min(4);
                    let complaints = self.complaints[..last].join(", ");
                    self.lines
                        .push(format!("has not settled within {limit} s: {complaints}"));
                }
                self.names.settled = true;
                self.note(described);
                self.names.settled = false;
                return Ok(());
            }
            for member in group.members.clone() {
                self.settle_member(&member)?;
            }
            has_heartbeat = true;
            std::thread::sleep(Duration::from_millis(if start.elapsed().as_secs() < 1 {
                2
            } else {
                100
            }));
        }
    }

    /// Whether a member has nothing, although its regular expression matches a topic that has a
    /// partition for each member.
    fn lacks_by_regex(&self, group: &DescribedConsumerGroup) -> bool {
        group.members.iter().any(|member| {
            let regex = member.subscribed_topic_regex.as_deref().unwrap_or_default();
            let matched = self.regexes.get(regex);
            let has_enough = |topic| {
                let known = self.topics.get(topic);
                known.is_some_and(|&(_, count)| count as usize >= group.members.len())
            };
            member.assignment.topic_partitions.is_empty()
                && matched.is_some_and(|matched| matched.iter().any(has_enough))
        })
    }

    /// Whether every partition that somebody subscribes to is assigned.
    pub(super) fn is_complete(&self, group: &DescribedConsumerGroup) -> bool {
        let mut wanted = BTreeSet::new();
        let mut assigned = BTreeSet::new();
        for member in &group.members {
            let regex = member.subscribed_topic_regex.clone().unwrap_or_default();
            let matched = self.regexes.get(&*regex).cloned().unwrap_or_default();
            for (&topic, &(id, count)) in &self.topics {
                let name = self.topic_name(topic);
                if matched.contains(&topic) || member.subscribed_topic_names.contains(&name) {
                    wanted.extend((0..count).map(|partition| (id, partition)));
                }
            }
            for topic in &member.assignment.topic_partitions {
                assigned.extend(
                    topic
                        .partitions
                        .iter()
                        .map(|&index| (topic.topic_id, index)),
                );
            }
        }
        wanted == assigned
    }

    pub(super) fn settle_member(
        &mut self,
        described: &DescribedConsumerGroupMember,
    ) -> Result<(), Failure> {
        let id = &*described.member_id;
        let of = |member: &Member| member.consumer_id == id || member.classic_id == id;
        // Two slots may share a member: the one that was answered last knows its epoch.
        let sharing = self.slots.iter().filter(|(_, member)| of(member));
        let Some((&slot, member)) = sharing.max_by_key(|(_, member)| member.epoch) else {
            return Ok(());
        };
        let member = member.clone();
        if member.classic_id == id && described.member_type != 1 {
            return self.settle_classic_member(slot, &member, described);
        }
        let mut request = ConsumerGroupHeartbeatRequest {
            group_id: self.group(),
            member_id: described.member_id.clone(),
            member_epoch: member.epoch,
            instance_id: described.instance_id.clone(),
            topic_partitions: Some(member.assigned.clone()),
            ..Default::default()
        };
        let answer = self.heartbeat_of(slot, &request, 1)?;
        let error = answer.map(|answer| answer.error_code);
        if error != Some(ErrorCode::NONE) {
            self.complaints.push(format!("member {slot}: {error:?}"));
            // A script may leave a member behind whose epoch is not its own any more.
            request.member_epoch = 0;
            request.rebalance_timeout_ms = LONG_MS;
            request.topic_partitions = Some(Vec::new());
            request.subscribed_topic_names = Some(described.subscribed_topic_names.clone());
            request.subscribed_topic_regex = described.subscribed_topic_regex.clone();
            let answer = self.heartbeat_of(slot, &request, 1)?;
            let error = answer.map(|answer| answer.error_code);
            self.complaints
                .push(format!("member {slot} joins: {error:?}"));
        }
        Ok(())
    }

    pub(super) fn settle_classic_member(
        &mut self,
        slot: Slot,
        member: &Member,
        described: &DescribedConsumerGroupMember,
    ) -> Result<(), Failure> {
        let request = HeartbeatRequest {
            group_id: self.group(),
            generation_id: member.generation,
            member_id: member.classic_id.as_str().into(),
            group_instance_id: described.instance_id.clone(),
        };
        let answer = self.ask(&request, 4)?;
        if answer.is_none_or(|answer| !answer.error_code.is_error()) {
            return Ok(());
        }
        let Some(join) = &member.last_join else {
            return Ok(());
        };
        let who = Who {
            slot,
            id: Id::Own,
            epoch: Epoch::Own(0),
            instance: described.instance_id.as_ref().map(ToString::to_string),
        };
        let lines = self.lines.len();
        let again = Join {
            who: who.clone(),
            version: join.version.max(5),
            ..join.clone()
        };
        self.join(0, &again)?;
        self.wait_for_answers()?;
        let sync = Sync {
            version: 5,
            who,
            protocol: None,
        };
        self.sync(0, &sync)?;
        self.wait_for_answers()?;
        self.lines.truncate(lines);
        Ok(())
    }
}
