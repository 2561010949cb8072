//! The state of a consumer group.

use std::{collections::BTreeMap, fmt, sync::Arc};

use kohort_group::{TopicPartitions, assignor::Assignor};
use kohort_wire::Uuid;
use rustc_hash::{FxHashMap, FxHashSet};

use super::{
    member::{Current, Member, MemberState, Names, Profile},
    metadata_hash::TopicHashes,
    owners::Owners,
    subscriptions::Subscriptions,
};
use crate::{
    Config, Id, Millis, Topic, Topics, alarm::Deadline, pace::GroupPace, progress::Progress,
};

/// A consumer group.
#[derive(Debug, Clone)]
pub(crate) struct ConsumerGroup {
    /// Grows whenever the group needs another target.
    pub(crate) epoch: i32,
    pub(crate) metadata_hash: i64,
    /// The group epoch that the target belongs to.
    pub(crate) assignment_epoch: i32,
    /// When the target was computed; 0 if it is not known.
    pub(crate) assignment_timestamp: Millis,
    members: FxHashMap<Id, Member>,
    targets: FxHashMap<Id, TopicPartitions>,
    instances: FxHashMap<Id, Id>,
    resolved: BTreeMap<Id, Resolved>,
    owners: Owners,
    subscriptions: Subscriptions,
    /// The subscribed topics that existed when the group last looked, each with its hash.
    pub(crate) topic_hashes: TopicHashes,
    /// Whether the log has a record that brokers before 4.1 wrote, to be taken out.
    pub(crate) has_partition_metadata: bool,
    /// The version of the topics that the metadata hash has been compared with.
    pub(crate) topics_version: Option<i64>,
    /// Whether the regular expressions are being resolved right now.
    pub(crate) is_resolving: bool,
    /// Whether a target is being computed right now.
    pub(crate) is_assigning: bool,
    /// When to look at the group again.
    pub(crate) look: Deadline,
    pub(crate) progress: Progress,
    /// When the group got its epoch; 0 if it had it already when it was loaded.
    pub(crate) epoch_since: Millis,
    pub(crate) pace: GroupPace,
    /// How many members wait for partitions that others have to give up.
    unreleased: usize,
    strings: FxHashSet<Id>,
    name_lists: FxHashSet<Names>,
    /// How many strings were in use when those not in use were last forgotten.
    strings_in_use: usize,
}

/// The topics that a regular expression matched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Resolved {
    /// Sorted.
    pub(crate) topics: Names,
    /// The version of the topics that it was matched against.
    pub(crate) version: i64,
    pub(crate) at: Millis,
}

/// The state of a consumer group, which follows from its epochs and its members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConsumerState {
    /// No members.
    Empty,
    /// A new target is due.
    Assigning,
    /// Not all members have reached their target.
    Reconciling,
    /// All have.
    Stable,
}

impl fmt::Display for ConsumerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl Default for ConsumerGroup {
    fn default() -> ConsumerGroup {
        ConsumerGroup {
            // As in Kafka: no member is ever at epoch 0, which means joining.
            epoch: 1,
            metadata_hash: 0,
            assignment_epoch: 1,
            assignment_timestamp: 0,
            members: FxHashMap::default(),
            targets: FxHashMap::default(),
            instances: FxHashMap::default(),
            resolved: BTreeMap::new(),
            owners: Owners::default(),
            subscriptions: Subscriptions::default(),
            topic_hashes: TopicHashes::default(),
            has_partition_metadata: false,
            topics_version: None,
            is_resolving: false,
            is_assigning: false,
            look: Deadline::default(),
            progress: Progress::default(),
            epoch_since: 0,
            pace: GroupPace::default(),
            unreleased: 0,
            strings: FxHashSet::default(),
            name_lists: FxHashSet::default(),
            strings_in_use: 0,
        }
    }
}

/// What the group is.
impl ConsumerGroup {
    pub(crate) fn state(&self) -> ConsumerState {
        if self.members.is_empty() {
            ConsumerState::Empty
        } else if self.epoch > self.assignment_epoch {
            ConsumerState::Assigning
        } else if self
            .members
            .values()
            .any(|m| !m.is_reconciled_to(self.assignment_epoch))
        {
            ConsumerState::Reconciling
        } else {
            ConsumerState::Stable
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.members.len()
    }

    /// How many members send heartbeats of the consumer protocol.
    pub(crate) fn heartbeating(&self) -> usize {
        self.len() - self.subscriptions.classic_members()
    }

    /// Whether the member waits for the next target, or for partitions of its target.
    pub(crate) fn is_waiting(&self, member: &Member) -> bool {
        member.current.state == MemberState::UnreleasedPartitions
            || !self.targets.contains_key(&member.id)
    }

    /// About how many do.
    pub(crate) fn waiting(&self) -> usize {
        self.unreleased + self.members.len().saturating_sub(self.targets.len())
    }

    pub(crate) fn member(&self, id: &str) -> Option<&Member> {
        self.members.get(id)
    }

    /// A member, for changes of what no record holds.
    pub(crate) fn member_mut(&mut self, id: &str) -> Option<&mut Member> {
        self.members.get_mut(id)
    }

    pub(crate) fn static_member(&self, instance_id: &str) -> Option<&Member> {
        self.members.get(self.instances.get(instance_id)?)
    }

    /// Sorted by id, so that what follows from the order is the same each time.
    pub(crate) fn sorted_members(&self) -> Vec<&Member> {
        let mut members: Vec<&Member> = self.members.values().collect();
        members.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        members
    }

    pub(crate) fn member_ids(&self) -> Vec<Id> {
        self.sorted_members()
            .into_iter()
            .map(|member| member.id.clone())
            .collect()
    }

    /// What the member is meant to own; `None` for one that no target has been computed for.
    pub(crate) fn target(&self, member_id: &str) -> Option<&TopicPartitions> {
        self.targets.get(member_id)
    }

    pub(crate) fn all_targets(&self) -> BTreeMap<Id, TopicPartitions> {
        self.targets
            .iter()
            .map(|(id, target)| (id.clone(), target.clone()))
            .collect()
    }

    pub(crate) fn all_instances(&self) -> impl Iterator<Item = (&Id, &Id)> {
        self.instances.iter()
    }

    pub(crate) fn owners(&self) -> &Owners {
        &self.owners
    }

    pub(crate) fn subscriptions(&self) -> &Subscriptions {
        &self.subscriptions
    }

    /// The whole group has been loaded.
    pub(crate) fn loaded(&mut self) {
        self.subscriptions.loaded();
    }

    /// The group has looked at all topics that it subscribes to.
    pub(crate) fn has_seen_changes(&mut self) {
        self.subscriptions.forget_changes();
    }

    pub(crate) fn resolved(&self, regex: &str) -> Option<&Resolved> {
        self.resolved.get(regex)
    }

    pub(crate) fn all_resolved(&self) -> impl Iterator<Item = (&Id, &Resolved)> {
        self.resolved.iter()
    }

    /// Whether members subscribe to the topic, by name or by what a regular expression matched.
    pub(crate) fn subscribes_to(&self, topic: &str) -> bool {
        self.subscriptions.has_topic(topic)
    }

    /// Whether members may subscribe to the topic: they do, or there is a regular expression that
    /// has not been matched against the topics yet.
    pub(crate) fn may_subscribe_to(&self, topic: &str) -> bool {
        let mut regexes = self.subscriptions.regexes();
        self.subscribes_to(topic) || regexes.any(|regex| self.resolved(regex).is_none())
    }

    /// Whether the member subscribes to the topic. An unresolved expression matches nothing.
    pub(crate) fn is_subscribed(&self, profile: &Profile, topic: &Topic) -> bool {
        let named = |names: &[Id]| {
            names
                .binary_search_by(|name| (**name).cmp(&topic.name))
                .is_ok()
        };
        named(&profile.topics)
            || profile
                .regex
                .as_deref()
                .and_then(|regex| self.resolved(regex))
                .is_some_and(|resolved| named(&resolved.topics))
    }

    /// The assignor that most members ask for. Of equals, the first of the configured ones, which
    /// is also the one of a group whose members ask for none.
    pub(crate) fn assignor(&self, config: &Config) -> Assignor {
        let mut best = config
            .consumer_assignors
            .first()
            .copied()
            .unwrap_or(Assignor::Uniform);
        let mut most = 0;
        for &assignor in &config.consumer_assignors {
            let count = self.subscriptions.assignor_count(assignor.name());
            if count > most {
                (best, most) = (assignor, count);
            }
        }
        best
    }

    /// The current owner of the partition.
    pub(crate) fn owner(&self, topic_id: Uuid, partition: i32) -> Option<&Id> {
        self.owners.owner(topic_id, partition)
    }

    /// The members that have not reached their target.
    pub(crate) fn lagging(&self, assignment_epoch: i32) -> FxHashSet<Id> {
        let members = self.members.values();
        let lagging = members.filter(|member| !member.is_reconciled_to(assignment_epoch));
        lagging.map(|member| member.id.clone()).collect()
    }

    /// Partitions of the member's target that others have yet to give up.
    pub(crate) fn waits_for_others(&self, member: &Member, topics: &Topics) -> bool {
        let Some(target) = self.target(&member.id) else {
            return false;
        };
        target.iter().any(|(topic_id, partition)| {
            topics
                .by_id(topic_id)
                .is_some_and(|topic| self.is_subscribed(&member.profile, topic))
                && self
                    .owner(topic_id, partition)
                    .is_some_and(|owner| *owner != member.id)
        })
    }

    /// Whether a member already subscribes with it, so that it is known to be valid.
    pub(crate) fn knows_regex(&self, regex: &str) -> bool {
        self.subscriptions.has_regex(regex)
    }
}

/// How it changes: called only where a record is applied.
impl ConsumerGroup {
    pub(crate) fn set_profile(&mut self, member_id: &str, profile: Profile) {
        let member_id = self.intern(member_id);
        let member = self
            .members
            .entry(member_id.clone())
            .or_insert_with_key(|id| Member::new(id.clone()));
        self.subscriptions.replace(&member.profile, &profile);
        let old = std::mem::replace(&mut member.profile, profile);
        let new_instance_id = member.profile.instance_id.clone();
        if old.instance_id != new_instance_id {
            self.release_instance(&old, &member_id);
        }
        if let Some(instance_id) = new_instance_id {
            self.instances.insert(instance_id, member_id);
        }
        drop(old);
        self.forget_unused();
    }

    fn release_instance(&mut self, profile: &Profile, member_id: &str) {
        if let Some(instance_id) = &profile.instance_id
            && self
                .instances
                .get(instance_id)
                .is_some_and(|holder| **holder == *member_id)
        {
            self.instances.remove(instance_id);
        }
    }

    pub(crate) fn remove_member(&mut self, member_id: &str) {
        self.progress.lagging.remove(member_id);
        if let Some(member) = self.members.remove(member_id) {
            self.unreleased -= usize::from(is_unreleased(&member.current));
            self.subscriptions.remove(&member.profile);
            self.release_instance(&member.profile, member_id);
            self.owners
                .release(member.current.assigned.all(), member_id);
            self.owners
                .release(member.current.revoking.all(), member_id);
            self.forget_unused();
        }
        if self.members.is_empty() {
            self.strings = FxHashSet::default();
            self.name_lists = FxHashSet::default();
            self.strings_in_use = 0;
        }
    }

    pub(crate) fn set_current(&mut self, member_id: &str, current: Current) {
        let member_id = self.intern(member_id);
        let member = self
            .members
            .entry(member_id.clone())
            .or_insert_with_key(|id| Member::new(id.clone()));
        let owned = |current: &Current| current.assigned.all().union(current.revoking.all());
        let (before, after) = (owned(&member.current), owned(&current));
        self.owners.release(&before.difference(&after), &member_id);
        self.owners.take(&after.difference(&before), &member_id);
        self.unreleased += usize::from(is_unreleased(&current));
        self.unreleased -= usize::from(is_unreleased(&member.current));
        member.current = current;
    }

    /// A member that leaves lets go of everything; the rest of it goes with its profile.
    pub(crate) fn clear_current(&mut self, member_id: &str) {
        if self.members.contains_key(member_id) {
            let left = Current {
                epoch: super::member::LEAVE_EPOCH,
                previous_epoch: super::member::LEAVE_EPOCH,
                state: MemberState::Stable,
                ..Current::default()
            };
            self.set_current(member_id, left);
        }
    }

    pub(crate) fn set_target(&mut self, member_id: &str, target: TopicPartitions) {
        match self.targets.get_mut(member_id) {
            Some(old) => *old = target,
            None => {
                let member_id = self.intern(member_id);
                self.targets.insert(member_id, target);
            }
        }
    }

    pub(crate) fn remove_target(&mut self, member_id: &str) {
        self.targets.remove(member_id);
    }

    pub(crate) fn set_resolved(&mut self, regex: &str, resolved: Resolved) {
        // Add before removing, so that topics that still match never leave the set.
        self.subscriptions.add_resolved(&resolved.topics);
        if let Some(old) = self.resolved.insert(regex.into(), resolved) {
            self.subscriptions.remove_resolved(&old.topics);
        }
    }

    pub(crate) fn remove_resolved(&mut self, regex: &str) {
        if let Some(old) = self.resolved.remove(regex) {
            self.subscriptions.remove_resolved(&old.topics);
        }
    }
}

fn is_unreleased(current: &Current) -> bool {
    current.state == MemberState::UnreleasedPartitions
}

/// What members have in common is kept once.
impl ConsumerGroup {
    /// A string of the group's, shared with everything that says the same.
    pub(crate) fn intern(&mut self, text: &str) -> Id {
        if let Some((id, _)) = self.members.get_key_value(text) {
            return id.clone();
        }
        if let Some(known) = self.strings.get(text) {
            return known.clone();
        }
        let id: Id = text.into();
        self.strings.insert(id.clone());
        id
    }

    /// A list of names, sorted and distinct, shared with members that have the same.
    pub(crate) fn intern_names<'a>(&mut self, names: impl Iterator<Item = &'a str>) -> Names {
        let mut names: Vec<Id> = names.map(|name| self.intern(name)).collect();
        names.sort_unstable();
        names.dedup();
        if let Some(known) = self.name_lists.get(&names[..]) {
            return known.clone();
        }
        let names = Names::from(names);
        self.name_lists.insert(names.clone());
        names
    }

    /// Forgets strings that nothing shares any more, each time they have doubled.
    fn forget_unused(&mut self) {
        if self.strings.len() > 64 + 2 * self.strings_in_use {
            self.name_lists.retain(|names| Arc::strong_count(names) > 1);
            self.strings.retain(|text| Arc::strong_count(text) > 1);
            self.strings_in_use = self.strings.len();
        }
    }
}
