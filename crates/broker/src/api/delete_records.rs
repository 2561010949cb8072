//! DeleteRecords (21).

use std::collections::BTreeMap;

use kohort_wire::{ByteString, ErrorCode, messages::*};

use super::Call;

pub(super) async fn handle(call: Call, request: DeleteRecordsRequest) -> DeleteRecordsResponse {
    let deleted = tokio::task::spawn_blocking(move || {
        // As in Kafka, the last mention of a partition counts, and is answered.
        let mut wanted: BTreeMap<ByteString, BTreeMap<i32, DeleteRecordsPartition>> =
            BTreeMap::new();
        for topic in request.topics {
            let partitions = wanted.entry(topic.name).or_default();
            let mentions = topic.partitions.into_iter();
            partitions.extend(mentions.map(|mention| (mention.partition_index, mention)));
        }
        let topics = wanted.into_iter().map(|(name, partitions)| {
            let deleted = partitions
                .values()
                .map(|wanted| delete(&call, &name, wanted));
            DeleteRecordsTopicResult {
                partitions: deleted.collect(),
                name: name.clone(),
            }
        });
        topics.collect()
    });
    DeleteRecordsResponse {
        topics: match deleted.await {
            Ok(topics) => topics,
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        },
        ..DeleteRecordsResponse::default()
    }
}

fn delete(
    call: &Call,
    name: &str,
    wanted: &DeleteRecordsPartition,
) -> DeleteRecordsPartitionResult {
    let snapshot = call.node.snapshot();
    let deleted = snapshot
        .topic(name)
        .ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)
        .and_then(|topic| {
            if topic.is_internal {
                return Err(ErrorCode::INVALID_TOPIC_EXCEPTION);
            }
            let partition = topic.partition(wanted.partition_index)?;
            let log = partition.log();
            let log = log.map_err(|error| error.code())?;
            // Records of a topic that is only compacted are replaced, not deleted.
            if !log.config().cleanup_policy.deletes() {
                return Err(ErrorCode::POLICY_VIOLATION);
            }
            log.delete_records(wanted.offset).map_err(|error| {
                partition.failed(&error);
                error.error_code()
            })
        });
    let (low_watermark, error_code) = match deleted {
        Ok(start) => (start, ErrorCode::NONE),
        Err(code) => (-1, code),
    };
    DeleteRecordsPartitionResult {
        partition_index: wanted.partition_index,
        low_watermark,
        error_code,
    }
}
