//! What the members of a group subscribe to, counted.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::member::Profile;
use crate::coordinator::Id;

/// What the members of a group subscribe to and ask for, and how many do.
#[derive(Debug, Clone, Default)]
pub(crate) struct Subscriptions {
    /// By topic: how many members name it, and how many regular expressions match it.
    topics: BTreeMap<Id, Count>,
    /// How many members subscribe with each regular expression.
    regexes: FxHashMap<Id, usize>,
    /// How many members ask for each assignor.
    assignors: FxHashMap<Id, usize>,
    /// How many members speak the classic protocol.
    classic_members: usize,
    /// How many of those support each assignment strategy.
    classic_protocols: FxHashMap<Id, usize>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Count {
    by_name: usize,
    by_regex: usize,
}

impl Subscriptions {
    pub(crate) fn add(&mut self, profile: &Profile) {
        for topic in profile.topics.iter() {
            match self.topics.get_mut(topic) {
                Some(count) => count.by_name += 1,
                None => self.topics.entry(topic.clone()).or_default().by_name = 1,
            }
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
        for topic in profile.topics.iter() {
            self.change_topic(topic, |count| count.by_name -= 1);
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
            self.topics.entry(topic.clone()).or_default().by_regex += 1;
        }
    }

    pub(crate) fn remove_resolved(&mut self, topics: &[Id]) {
        for topic in topics {
            self.change_topic(topic, |count| count.by_regex -= 1);
        }
    }

    fn change_topic(&mut self, topic: &Id, change: impl FnOnce(&mut Count)) {
        if let Some(count) = self.topics.get_mut(topic) {
            change(count);
            if count.by_name + count.by_regex == 0 {
                self.topics.remove(topic);
            }
        }
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
