//! A group looks at its topics.

use std::collections::BTreeSet;

use kohort_group::history::{Few, Offset, What};
use kohort_wire::{Uuid, messages::OffsetCommitValue};
use rustc_hash::FxHashSet;

use super::{NOTICE_MS, Seen, SeenTopic, UNKNOWN_TOPICS_MAX, records};
use crate::{
    Id, Record, Topic, Topics,
    offsets::{GroupOffsets, store},
    step::{Apply, Step},
};

/// A look of a group at its topics, and what it may touch.
pub(crate) struct Look<'a, 'b> {
    pub(crate) group_id: &'a Id,
    pub(crate) seen: &'a mut Seen,
    pub(crate) offsets: &'a mut GroupOffsets,
    pub(crate) topics: &'a Topics,
    /// Whether first offsets are committed; what the group has seen is kept in any case.
    pub(crate) commits: bool,
    pub(crate) step: &'a mut Step<'b>,
}

/// What a look changes.
struct Started<'a> {
    seen: &'a mut Seen,
    offsets: &'a mut GroupOffsets,
}

impl Apply for Started<'_> {
    fn apply(&mut self, record: &Record) {
        self.seen.apply(record);
        if let Record::OffsetCommit(key, value) = record {
            self.offsets.apply(key, value.as_ref());
        }
    }
}

impl Look<'_, '_> {
    /// Looks at the topics that the members subscribe to, and commits first offsets of new
    /// partitions.
    pub(crate) fn at<'n>(mut self, subscribed: impl Iterator<Item = &'n Id> + Clone) {
        let names = self.see(subscribed.clone());
        if names > 0 && self.seen.topics.len() > names {
            self.forget_all_but(&subscribed.collect());
        }
    }

    /// The same for a group that has looked before: at the topics that have changed since or that
    /// its members did not subscribe to, and at those that they no longer subscribe to.
    pub(crate) fn at_changes(mut self, changed: &BTreeSet<Id>, removed: &BTreeSet<Id>) {
        self.see(changed.iter());
        let useless = removed
            .iter()
            .filter(|name| self.seen.topics.contains_key(*name) && !self.offsets.has_topic(name));
        for name in useless.collect::<Vec<_>>() {
            self.emit(records::no_topic(self.group_id, name));
        }
    }

    /// Looks at topics. Returns how many there were.
    fn see<'n>(&mut self, subscribed: impl Iterator<Item = &'n Id>) -> usize {
        let is_first = self.seen.began_at.is_none();
        let mut started = Vec::new();
        let mut names = 0;
        let mut found = Vec::new();
        let mut unknown = self.seen.unknown;
        for name in subscribed {
            names += 1;
            let topic = self.topics.get(name);
            let now = topic.map_or(SeenTopic::NONE, SeenTopic::of);
            let before = self.seen.topic(name);
            // Of a topic that is gone one still knows what it was, in case it comes again.
            if before == Some(now) || (before.is_some() && topic.is_none()) {
                continue;
            }
            if topic.is_none() {
                if unknown >= UNKNOWN_TOPICS_MAX {
                    continue;
                }
                unknown += 1;
            }
            if let Some(topic) = topic
                && !is_first
            {
                let first_new = match before {
                    Some(before) if before.topic_id == topic.id => before.partition_count,
                    Some(_) => 0,
                    None if self.is_recent(topic) => 0,
                    None => topic.partition_count,
                };
                started.extend((first_new..topic.partition_count).map(|p| (topic, p)));
            }
            found.push(records::topic(self.group_id, name, now));
        }
        if is_first || self.seen.empty_since.is_some() {
            let began_at = self.seen.began_at.unwrap_or(self.step.date());
            found.push(records::group(self.group_id, began_at, None));
        }
        for record in found {
            self.emit(record);
        }
        if self.commits {
            self.commit_starts(started);
        }
        names
    }

    /// Takes the news that expressions match topics which they did not match before: they were not
    /// there, or are other topics now.
    pub(crate) fn matched<'n>(mut self, names: impl Iterator<Item = &'n Id>) {
        for name in names {
            if self.seen.began_at.is_some() && self.seen.topic(name).is_none() {
                self.emit(records::topic(self.group_id, name, SeenTopic::NONE));
            }
        }
    }

    /// Takes the news that the group has lost its last member.
    pub(crate) fn emptied(mut self) {
        if let Some(began_at) = self.seen.began_at {
            self.emit(records::group(
                self.group_id,
                began_at,
                Some(self.step.date()),
            ));
        }
    }

    fn emit(&mut self, record: Record) {
        let mut state = Started {
            seen: self.seen,
            offsets: self.offsets,
        };
        self.step.emit(&mut state, record);
    }

    /// Whether a topic that the group has not seen was created not long ago, or while the group had
    /// no members; and since the group began.
    fn is_recent(&self, topic: &Topic) -> bool {
        let created_at = topic.created_at;
        let (began_at, empty_since) = (self.seen.began_at, self.seen.empty_since);
        began_at.is_some_and(|began_at| created_at >= began_at)
            && (self.step.date() - created_at <= NOTICE_MS
                || empty_since.is_some_and(|since| created_at >= since))
    }

    fn commit_starts(&mut self, partitions: Vec<(&Topic, i32)>) {
        let mut committed = Vec::new();
        for (topic, partition) in partitions {
            let before = self.offsets.get(&topic.name, partition);
            // What was committed for another topic of the name is worth nothing.
            let is_other = |id: Uuid| id != Uuid::ZERO && id != topic.id;
            if before.is_some_and(|before| !is_other(before.topic_id)) {
                continue;
            }
            let offset = self.topics.log_start_offset(topic.id, partition);
            let value = OffsetCommitValue {
                offset,
                leader_epoch: -1,
                commit_timestamp: self.step.date(),
                expire_timestamp: -1,
                topic_id: topic.id,
                ..OffsetCommitValue::default()
            };
            let key = store::key(self.group_id, &topic.name, partition);
            self.emit(Record::OffsetCommit(key, Some(value)));
            committed.push(Offset {
                partition: format!("{}-{partition}", topic.name),
                from: None,
                to: offset,
            });
        }
        if !committed.is_empty() {
            let offsets: Few<Offset> = committed.into_iter().collect();
            self.step
                .event(self.group_id, What::NewPartitions { offsets });
        }
    }

    /// Forgets topics that no member subscribes to and that have no committed offsets.
    fn forget_all_but(&mut self, subscribed: &FxHashSet<&Id>) {
        let names = self.seen.topics.keys();
        let useless: Vec<Id> = names
            .filter(|name| !subscribed.contains(name) && !self.offsets.has_topic(name))
            .cloned()
            .collect();
        for name in useless {
            self.emit(records::no_topic(self.group_id, &name));
        }
    }
}
