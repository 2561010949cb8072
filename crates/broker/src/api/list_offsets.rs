//! ListOffsets (2): offsets for times.

use std::collections::BTreeSet;

use kohort_log::{LogError, TimestampOffset};
use kohort_wire::{ErrorCode, messages::*};

use super::Call;
use crate::topics::{Partition, PartitionError};

const LATEST: i64 = -1;
const EARLIEST: i64 = -2;
const MAX_TIMESTAMP: i64 = -3;
/// The earliest on this broker's own disk (KIP-405): all of it is.
const EARLIEST_LOCAL: i64 = -4;
/// The latest in remote storage: there is none.
const LATEST_TIERED: i64 = -5;
/// The earliest that remote storage does not have yet (KIP-1023).
const EARLIEST_PENDING_UPLOAD: i64 = -6;

const NONE: TimestampOffset = TimestampOffset {
    offset: -1,
    timestamp: -1,
    leader_epoch: -1,
};

pub(super) async fn handle(call: Call, request: ListOffsetsRequest) -> ListOffsetsResponse {
    // A look-up by time reads the log.
    let looked_up = tokio::task::spawn_blocking(move || {
        let mut seen = BTreeSet::new();
        let mut twice = BTreeSet::new();
        for topic in &request.topics {
            for partition in &topic.partitions {
                let partition = (topic.name.clone(), partition.partition_index);
                if !seen.insert(partition.clone()) {
                    twice.insert(partition);
                }
            }
        }
        let topics = request.topics.into_iter().map(|topic| {
            let partitions = topic.partitions.iter().map(|wanted| {
                let index = wanted.partition_index;
                if twice.contains(&(topic.name.clone(), index)) {
                    refused(index, ErrorCode::INVALID_REQUEST)
                } else {
                    look_up(&call, &topic.name, wanted)
                }
            });
            ListOffsetsTopicResponse {
                partitions: partitions.collect(),
                name: topic.name.clone(),
            }
        });
        topics.collect()
    });
    ListOffsetsResponse {
        topics: match looked_up.await {
            Ok(topics) => topics,
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        },
        ..ListOffsetsResponse::default()
    }
}

fn refused(partition_index: i32, error_code: ErrorCode) -> ListOffsetsPartitionResponse {
    ListOffsetsPartitionResponse {
        partition_index,
        error_code,
        ..ListOffsetsPartitionResponse::default()
    }
}

fn look_up(
    call: &Call,
    topic: &str,
    wanted: &ListOffsetsPartition,
) -> ListOffsetsPartitionResponse {
    let snapshot = call.node.snapshot();
    let found = snapshot
        .partition(topic, wanted.partition_index)
        .and_then(|partition| {
            super::check_leader_epoch(wanted.current_leader_epoch)?;
            check_timestamp(wanted.timestamp, call.version())?;
            offset(partition, wanted.timestamp).map_err(|error| error.code())
        });
    let response = ListOffsetsPartitionResponse {
        partition_index: wanted.partition_index,
        ..ListOffsetsPartitionResponse::default()
    };
    match found {
        Ok(found) => ListOffsetsPartitionResponse {
            timestamp: found.timestamp,
            offset: found.offset,
            leader_epoch: if call.version() >= 4 {
                found.leader_epoch
            } else {
                -1
            },
            ..response
        },
        Err(error_code) => ListOffsetsPartitionResponse {
            error_code,
            ..response
        },
    }
}

/// Times that stand for something are known from some version on only.
fn check_timestamp(timestamp: i64, version: i16) -> Result<(), ErrorCode> {
    let first = match timestamp {
        MAX_TIMESTAMP => 7,
        EARLIEST_LOCAL => 8,
        LATEST_TIERED => 9,
        EARLIEST_PENDING_UPLOAD => 11,
        ..EARLIEST_PENDING_UPLOAD => return Err(ErrorCode::UNSUPPORTED_VERSION),
        _ => 0,
    };
    if version < first {
        Err(ErrorCode::UNSUPPORTED_VERSION)
    } else {
        Ok(())
    }
}

fn offset(partition: &Partition, timestamp: i64) -> Result<TimestampOffset, PartitionError> {
    let log = partition.log()?;
    let by_time = |found: Result<Option<TimestampOffset>, LogError>| {
        found
            .inspect_err(|error| partition.failed(error))
            .map(|found| found.unwrap_or(NONE))
    };
    Ok(match timestamp {
        LATEST => log.latest(),
        EARLIEST | EARLIEST_LOCAL => log.earliest(),
        LATEST_TIERED | EARLIEST_PENDING_UPLOAD => NONE,
        MAX_TIMESTAMP => by_time(log.offset_of_max_timestamp())?,
        time => by_time(log.offset_for_timestamp(time))?,
    })
}
