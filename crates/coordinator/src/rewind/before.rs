//! What was committed before the last rewind, so that it can be undone; and the rewind that is
//! under way.

use std::{borrow::Cow, collections::BTreeMap};

use kohort_group::rewind::{BEFORE_MEMBER, MARK, PENDING_MEMBER};
use kohort_wire::messages::*;

use super::{Before, Goal};
use crate::{Id, Shard, offsets::GroupOffsets};

impl Shard {
    /// Answers an OffsetFetch by the members [`BEFORE_MEMBER`] and [`PENDING_MEMBER`]; `None`: it is
    /// by another one.
    pub(crate) fn fetch_rewind(
        &self,
        request: &OffsetFetchRequestGroup,
    ) -> Option<Vec<OffsetFetchResponseTopics>> {
        let group = self.groups.get(&*request.group_id);
        let (at, places): (_, Vec<_>) = match request.member_id.as_deref()? {
            BEFORE_MEMBER => match group.and_then(|group| group.rewound.as_deref()) {
                Some(rewound) => {
                    let places = rewound.before.iter();
                    let places = places.map(|(place, before)| (place, Cow::Borrowed(before)));
                    (rewound.at, places.collect())
                }
                None => return Some(Vec::new()),
            },
            PENDING_MEMBER => match group.and_then(|g| Some((g, g.rewind.as_deref()?))) {
                Some((group, rewind)) => {
                    let places = rewind.goals.iter().map(|(place, goal)| {
                        let now = Before::of(&group.offsets, place, goal);
                        (place, Cow::Owned(now))
                    });
                    (rewind.asked_at, places.collect())
                }
                None => return Some(Vec::new()),
            },
            _ => return None,
        };
        let is_wanted = |topic: &str, partition: i32| {
            request.topics.as_ref().is_none_or(|topics| {
                topics.iter().any(|wanted| {
                    *wanted.name == *topic && wanted.partition_indexes.contains(&partition)
                })
            })
        };
        let mut topics: BTreeMap<&Id, Vec<OffsetFetchResponsePartitions>> = BTreeMap::new();
        for ((topic, partition), before) in places {
            // One created again under the same name has other records.
            let is_there = self
                .topics
                .get(topic)
                .is_some_and(|t| t.id == before.topic_id);
            if is_there && is_wanted(topic, *partition) {
                topics
                    .entry(topic)
                    .or_default()
                    .push(answer(*partition, &before, at));
            }
        }
        let topics = topics
            .into_iter()
            .map(|(name, partitions)| OffsetFetchResponseTopics {
                name: (&**name).into(),
                partitions,
                ..OffsetFetchResponseTopics::default()
            });
        Some(topics.collect())
    }
}

impl Before {
    /// What is committed now, before it goes to the goal.
    pub(super) fn of(offsets: &GroupOffsets, place: &(Id, i32), goal: &Goal) -> Before {
        let committed = offsets.get(&place.0, place.1);
        Before {
            topic_id: goal.topic_id,
            offset: committed.map_or(-1, |committed| committed.offset),
            leader_epoch: committed.map_or(-1, |committed| committed.leader_epoch),
            metadata: committed
                .map(|committed| committed.metadata.clone())
                .unwrap_or_default(),
            to: goal.offset,
        }
    }
}

fn answer(partition: i32, before: &Before, at: i64) -> OffsetFetchResponsePartitions {
    let Before { to, metadata, .. } = before;
    OffsetFetchResponsePartitions {
        partition_index: partition,
        committed_offset: before.offset,
        committed_leader_epoch: before.leader_epoch,
        metadata: Some(format!("{MARK} at={at} to={to} metadata={metadata}").into()),
        ..OffsetFetchResponsePartitions::default()
    }
}
