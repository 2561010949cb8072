//! What the members of a group subscribe to, counted.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;

use super::member::Profile;
use crate::Id;

/// What the members of a group subscribe to and ask for, and how many do.
#[derive(Debug, Clone, Default)]
pub(crate) struct Subscriptions {
    /// By topic: how many members name it, and how many regular expressions match it.
    topics: BTreeMap<Id, Count>,
    /// How many topics members name.
    named_topics: usize,
    /// How the set of topics has changed since [`forget_changes`](Subscriptions::forget_changes).
    changes: TopicSetChanges,
    /// Bytes of metadata that all members bring.
    metadata_bytes: usize,
    /// How many members subscribe with each regular expression.
    regexes: FxHashMap<Id, usize>,
    /// How many members ask for each assignor.
    assignors: FxHashMap<Id, usize>,
    /// How many members speak the classic protocol.
    classic_members: usize,
    /// How many of those support each assignment strategy.
    classic_protocols: FxHashMap<Id, usize>,
}

/// How the set of topics that a group subscribes to has changed.
#[derive(Debug, Clone, Default)]
pub(crate) struct TopicSetChanges {
    /// Topics that the group subscribes to and did not before.
    pub(crate) added: BTreeSet<Id>,
    /// Topics that it no longer subscribes to.
    pub(crate) removed: BTreeSet<Id>,
}

impl TopicSetChanges {
    fn add(&mut self, topic: &Id) {
        self.removed.remove(topic);
        self.added.insert(topic.clone());
    }

    fn remove(&mut self, topic: &Id) {
        self.added.remove(topic);
        self.removed.insert(topic.clone());
    }
}

#[derive(Debug, Default, Clone, Copy)]
struct Count {
    by_name: usize,
    by_regex: usize,
}

impl Subscriptions {
    /// Counts `new` instead of `old`. Topics that both name never leave the set.
    pub(crate) fn replace(&mut self, old: &Profile, new: &Profile) {
        self.add(new);
        self.remove(old);
    }

    fn add(&mut self, profile: &Profile) {
        self.metadata_bytes += profile.metadata_bytes();
        for topic in profile.topics.iter() {
            let count = self.add_topic(topic);
            count.by_name += 1;
            self.named_topics += usize::from(count.by_name == 1);
        }
        if let Some(regex) = &profile.regex {
            *self.regexes.entry(regex.clone()).or_default() += 1;
        }
        if let Some(assignor) = &profile.server_assignor {
            *self.assignors.entry(assignor.clone()).or_default() += 1;
        }
        if let Some(classic) = &profile.classic {
            self.classic_members += 1;
            for protocol in &classic.supported_protocols {
                *self
                    .classic_protocols
                    .entry((&*protocol.name).into())
                    .or_default() += 1;
            }
        }
    }

    pub(crate) fn remove(&mut self, profile: &Profile) {
        self.metadata_bytes -= profile.metadata_bytes();
        for topic in profile.topics.iter() {
            if let Some(count) = self.topics.get_mut(topic) {
                count.by_name -= 1;
                self.named_topics -= usize::from(count.by_name == 0);
            }
            self.remove_unused(topic);
        }
        if let Some(regex) = &profile.regex {
            decrement(&mut self.regexes, regex);
        }
        if let Some(assignor) = &profile.server_assignor {
            decrement(&mut self.assignors, assignor);
        }
        if let Some(classic) = &profile.classic {
            self.classic_members -= 1;
            for protocol in &classic.supported_protocols {
                decrement(&mut self.classic_protocols, &protocol.name);
            }
        }
    }

    pub(crate) fn add_resolved(&mut self, topics: &[Id]) {
        for topic in topics {
            self.add_topic(topic).by_regex += 1;
        }
    }

    pub(crate) fn remove_resolved(&mut self, topics: &[Id]) {
        for topic in topics {
            if let Some(count) = self.topics.get_mut(topic) {
                count.by_regex -= 1;
            }
            self.remove_unused(topic);
        }
    }

    fn add_topic(&mut self, topic: &Id) -> &mut Count {
        if !self.topics.contains_key(topic) {
            self.changes.add(topic);
        }
        self.topics.entry(topic.clone()).or_default()
    }

    /// Removes a topic that nothing subscribes to any more.
    fn remove_unused(&mut self, topic: &Id) {
        let count = self.topics.get(topic);
        if count.is_some_and(|count| count.by_name + count.by_regex == 0) {
            self.topics.remove(topic);
            self.changes.remove(topic);
        }
    }

    /// How the set of topics has changed since [`forget_changes`](Self::forget_changes).
    pub(crate) fn changes(&self) -> &TopicSetChanges {
        &self.changes
    }

    /// Forgets how the set of topics has changed. A group without any topics keeps what it has seen
    /// of those that it had, so they still count as removed once it has others.
    pub(crate) fn forget_changes(&mut self) {
        self.changes.added.clear();
        if !self.topics.is_empty() {
            self.changes.removed.clear();
        }
    }

    /// The group has been loaded. Its first look covers all topics, so earlier changes don't matter.
    pub(crate) fn loaded(&mut self) {
        self.changes = TopicSetChanges::default();
    }

    /// Whether there are no topics.
    pub(crate) fn has_no_topics(&self) -> bool {
        self.topics.is_empty()
    }

    /// How many topics the members name.
    pub(crate) fn named_topics(&self) -> usize {
        self.named_topics
    }

    /// How many members name the topic.
    pub(crate) fn members_naming(&self, topic: &str) -> usize {
        self.topics.get(topic).map_or(0, |count| count.by_name)
    }

    /// Bytes of metadata that all members bring.
    pub(crate) fn metadata_bytes(&self) -> usize {
        self.metadata_bytes
    }

    /// Everything that is counted, in an order that depends on nothing else.
    pub(crate) fn inspect(&self) -> std::collections::BTreeMap<(&'static str, Id), (usize, usize)> {
        let topics = self.topics.iter();
        let topics = topics.map(|(topic, count)| {
            let counts = (count.by_name, count.by_regex);
            (("topic", topic.clone()), counts)
        });
        let mut all: std::collections::BTreeMap<_, _> = topics.collect();
        let counted = [
            ("regex", &self.regexes),
            ("assignor", &self.assignors),
            ("classic protocol", &self.classic_protocols),
        ];
        for (kind, counts) in counted {
            let counts = counts.iter();
            all.extend(counts.map(|(name, &count)| ((kind, name.clone()), (count, 0))));
        }
        all.insert(("classic members", "".into()), (self.classic_members, 0));
        all
    }

    /// Every topic, sorted by name.
    pub(crate) fn topics(&self) -> impl Iterator<Item = &Id> + Clone {
        self.topics.keys()
    }

    pub(crate) fn has_topic(&self, topic: &str) -> bool {
        self.topics.contains_key(topic)
    }

    /// Every regular expression, in no particular order.
    pub(crate) fn regexes(&self) -> impl ExactSizeIterator<Item = &Id> {
        self.regexes.keys()
    }

    pub(crate) fn has_regex(&self, regex: &str) -> bool {
        self.regexes.contains_key(regex)
    }

    /// How many members ask for the assignor.
    pub(crate) fn assignor_count(&self, assignor: &str) -> usize {
        self.assignors.get(assignor).copied().unwrap_or_default()
    }

    pub(crate) fn classic_members(&self) -> usize {
        self.classic_members
    }

    /// Whether all classic members support the assignment strategy.
    pub(crate) fn all_classic_support(&self, protocol: &str) -> bool {
        let count = self
            .classic_protocols
            .get(protocol)
            .copied()
            .unwrap_or_default();
        count == self.classic_members
    }
}

fn decrement(counts: &mut FxHashMap<Id, usize>, key: &str) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}
