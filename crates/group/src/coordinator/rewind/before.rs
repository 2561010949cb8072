//! What was committed before the last rewind, for whoever wants to undo it.

use std::collections::BTreeMap;

use kohort_wire::messages::*;

use super::{BEFORE_MEMBER, Before, MARK};
use crate::coordinator::{Id, Shard};

impl Shard {
    /// Answers an OffsetFetch by the member [`BEFORE_MEMBER`]; `None`: it is by another one.
    pub(crate) fn fetch_before_rewind(
        &self,
        request: &OffsetFetchRequestGroup,
    ) -> Option<Vec<OffsetFetchResponseTopics>> {
        if request.member_id.as_deref() != Some(BEFORE_MEMBER) {
            return None;
        }
        let group = self.groups.get(&*request.group_id);
        let Some(rewound) = group.and_then(|group| group.rewound.as_deref()) else {
            return Some(Vec::new());
        };
        let is_wanted = |topic: &str, partition: i32| {
            request.topics.as_ref().is_none_or(|topics| {
                topics.iter().any(|wanted| {
                    *wanted.name == *topic && wanted.partition_indexes.contains(&partition)
                })
            })
        };
        let mut topics: BTreeMap<&Id, Vec<OffsetFetchResponsePartitions>> = BTreeMap::new();
        for ((topic, partition), before) in &rewound.before {
            // One created again under the same name has other records.
            let is_there = self
                .topics
                .get(topic)
                .is_some_and(|t| t.id == before.topic_id);
            if is_there && is_wanted(topic, *partition) {
                topics
                    .entry(topic)
                    .or_default()
                    .push(answer(*partition, before, rewound.at));
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
