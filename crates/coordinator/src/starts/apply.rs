//! Records to state.

use super::{GroupSeenKey, GroupSeenValue, Seen, SeenTopic, TopicSeenKey, TopicSeenValue};
use crate::{Record, Shard};

impl Shard {
    pub(crate) fn apply_group_seen(&mut self, key: &GroupSeenKey, value: Option<&GroupSeenValue>) {
        match value {
            Some(value) => self
                .group_or_new(&key.group_id)
                .seen
                .apply_group(Some(value)),
            None => {
                if let Some(group) = self.groups.get_mut(&*key.group_id) {
                    group.seen.apply_group(None);
                    self.forget_if_nothing_is_left(&key.group_id);
                }
            }
        }
    }

    pub(crate) fn apply_topic_seen(&mut self, key: &TopicSeenKey, value: Option<&TopicSeenValue>) {
        match value {
            Some(value) => {
                let seen = &mut self.group_or_new(&key.group_id).seen;
                seen.apply_topic(key, Some(value));
            }
            None => {
                if let Some(group) = self.groups.get_mut(&*key.group_id) {
                    group.seen.apply_topic(key, None);
                    self.forget_if_nothing_is_left(&key.group_id);
                }
            }
        }
    }
}

impl Seen {
    /// Takes up a record of what the group has seen; others are none of its business.
    pub(super) fn apply(&mut self, record: &Record) {
        match record {
            Record::GroupSeen(_, value) => self.apply_group(value.as_ref()),
            Record::TopicSeen(key, value) => self.apply_topic(key, value.as_ref()),
            _ => {}
        }
    }

    fn apply_group(&mut self, value: Option<&GroupSeenValue>) {
        self.began_at = value.map(|value| value.began_at);
        self.empty_since = value
            .map(|value| value.empty_since)
            .filter(|&since| since >= 0);
    }

    fn apply_topic(&mut self, key: &TopicSeenKey, value: Option<&TopicSeenValue>) {
        let Some(value) = value else {
            let known = self.topics.remove(&*key.topic);
            self.unknown -= usize::from(known.is_some_and(SeenTopic::is_none));
            return;
        };
        let seen = SeenTopic {
            topic_id: value.topic_id,
            partition_count: value.partition_count,
        };
        self.unknown += usize::from(seen.is_none());
        match self.topics.get_mut(&*key.topic) {
            Some(known) => {
                self.unknown -= usize::from(known.is_none());
                *known = seen;
            }
            None => {
                self.topics.insert((&*key.topic).into(), seen);
            }
        }
    }
}
