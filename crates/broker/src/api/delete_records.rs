//! DeleteRecords (21).

use kohort_wire::{ErrorCode, messages::*};

use super::Call;

pub(super) async fn handle(call: Call, request: DeleteRecordsRequest) -> DeleteRecordsResponse {
    let deleted = tokio::task::spawn_blocking(move || {
        let topics = request.topics.into_iter().map(|topic| {
            let partitions = topic
                .partitions
                .iter()
                .map(|wanted| delete(&call, &topic.name, wanted));
            DeleteRecordsTopicResult {
                partitions: partitions.collect(),
                name: topic.name.clone(),
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
            let log = topic.partition(wanted.partition_index)?.log();
            let log = log.map_err(|error| error.code())?;
            // Records of a topic that is only compacted are replaced, not deleted.
            if !log.config().cleanup_policy.deletes() {
                return Err(ErrorCode::POLICY_VIOLATION);
            }
            log.delete_records(wanted.offset)
                .map_err(|error| error.error_code())
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
