//! DescribeLogDirs (35): how much room partitions take.

use std::collections::BTreeSet;

use kohort_wire::{ErrorCode, messages::*};

use super::Call;
use crate::topics::Topic;

/// What a broker in memory calls the place of its data.
const MEMORY: &str = "memory";

pub(super) async fn handle(call: Call, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse {
    let snapshot = call.node.snapshot();
    let mut topics = Vec::new();
    match &request.topics {
        None => topics.extend(
            snapshot
                .topics
                .values()
                .filter_map(|topic| describe(topic, |_| true)),
        ),
        Some(wanted) => {
            for wanted in wanted {
                let indexes: BTreeSet<i32> = wanted.partitions.iter().copied().collect();
                let topic = snapshot.topic(&wanted.topic);
                topics.extend(
                    topic.and_then(|topic| describe(topic, |index| indexes.contains(&index))),
                );
            }
        }
    }
    let folder = call.node.catalog.logs.folder();
    let statistics = folder.and_then(|folder| rustix::fs::statvfs(folder).ok());
    let bytes =
        |blocks: u64, size: u64| i64::try_from(blocks.saturating_mul(size)).unwrap_or(i64::MAX);
    DescribeLogDirsResponse {
        results: vec![DescribeLogDirsResult {
            error_code: ErrorCode::NONE,
            log_dir: match folder {
                Some(folder) => folder.display().to_string().into(),
                None => MEMORY.into(),
            },
            topics,
            total_bytes: statistics
                .as_ref()
                .map_or(-1, |it| bytes(it.f_blocks, it.f_frsize)),
            usable_bytes: statistics
                .as_ref()
                .map_or(-1, |it| bytes(it.f_bavail, it.f_frsize)),
            is_cordoned: false,
        }],
        ..DescribeLogDirsResponse::default()
    }
}

fn describe(topic: &Topic, wanted: impl Fn(i32) -> bool) -> Option<DescribeLogDirsTopic> {
    let partitions = topic
        .partitions
        .iter()
        .filter(|partition| wanted(partition.index))
        .filter_map(|partition| {
            let size = if partition.is_begun() {
                partition.log().ok()?.size()
            } else {
                // Its folder has no records, and looking at it should not open a log.
                0
            };
            Some(DescribeLogDirsPartition {
                partition_index: partition.index,
                partition_size: i64::try_from(size).unwrap_or(i64::MAX),
                offset_lag: 0,
                is_future_key: false,
            })
        });
    let partitions: Vec<_> = partitions.collect();
    (!partitions.is_empty()).then(|| DescribeLogDirsTopic {
        name: (&*topic.name).into(),
        partitions,
    })
}
