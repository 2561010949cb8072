//! Produce (0): records from clients.

use std::sync::Arc;

use kohort_log::{Appended, Log, LogError, Origin};
use kohort_wire::{ErrorCode, messages::*};
use tracing::debug;

use super::{Call, Outcome};
use crate::topics::{Partition, PartitionError, Snapshot};

/// From how many bytes on a batch is more than a moment's work.
const HEAVY: usize = 64 << 10;

/// A log, and up to where it has to be on the device.
struct Flush {
    partition: Arc<Partition>,
    log: Arc<Log>,
    end: i64,
}

/// What was appended, and to which log.
struct Added {
    log: Arc<Log>,
    appended: Appended,
    /// The topic's settings have it flushed before it is acknowledged.
    flushes: bool,
}

/// What became of the records of a partition.
struct Written {
    response: PartitionProduceResponse,
    /// What has to be on the device before the answer leaves.
    flush: Option<Flush>,
}

pub(super) async fn handle(call: Call, request: ProduceRequest) -> Outcome<ProduceResponse> {
    let version = call.version();
    let acks = request.acks;
    let refused = if request.transactional_id.is_some() {
        Some(ErrorCode::INVALID_TXN_STATE)
    } else if !matches!(acks, -1..=1) {
        Some(ErrorCode::INVALID_REQUIRED_ACKS)
    } else {
        None
    };
    let snapshot = call.node.snapshot();
    let mut topics = Vec::with_capacity(request.topic_data.len());
    for topic in request.topic_data {
        let mut written = Vec::with_capacity(topic.partition_data.len());
        for data in topic.partition_data {
            written.push(match refused {
                Some(code) => failed(data.index, code, None),
                None => {
                    let partition =
                        find(&snapshot, &topic.name, topic.topic_id, data.index, version);
                    write(&call, partition, data, acks)
                }
            });
        }
        topics.push((topic.name, topic.topic_id, written));
    }
    // Everything is written by now, in the order of the requests; what follows may take its time.
    let written = topics.iter().flat_map(|(_, _, written)| written);
    for flush in written.filter_map(|written| written.flush.as_ref()) {
        flush.partition.flush_soon(&flush.log, flush.end);
    }
    let mut responses = Vec::with_capacity(topics.len());
    for (name, topic_id, written) in topics {
        let mut partition_responses = Vec::with_capacity(written.len());
        for mut written in written {
            if let Some(Flush {
                partition,
                log,
                end,
            }) = written.flush
                && let Err(error) = partition.flushed(&log, end).await
            {
                written = failed_by(written.response.index, &error);
            }
            partition_responses.push(written.response);
        }
        responses.push(TopicProduceResponse {
            name,
            topic_id,
            partition_responses,
        });
    }
    if acks == 0 {
        return silence(&responses);
    }
    ProduceResponse {
        responses,
        ..ProduceResponse::default()
    }
    .into()
}

/// A producer that wants no answer learns of an error by losing its connection, and then refreshes
/// its metadata.
fn silence(responses: &[TopicProduceResponse]) -> Outcome<ProduceResponse> {
    let mut partitions = responses
        .iter()
        .flat_map(|topic| &topic.partition_responses);
    match partitions.find(|partition| partition.error_code.is_error()) {
        Some(partition) => Outcome::Close(format!(
            "a produce without acknowledgements failed: {}",
            partition.error_code
        )),
        None => Outcome::Silence,
    }
}

fn find<'a>(
    snapshot: &'a Snapshot,
    name: &str,
    id: kohort_wire::Uuid,
    index: i32,
    version: i16,
) -> Result<&'a Arc<Partition>, ErrorCode> {
    let topic = snapshot.find(name, id, version >= 13)?;
    if topic.is_internal {
        // Kafka lets only its own admin clients write there.
        return Err(ErrorCode::INVALID_TOPIC_EXCEPTION);
    }
    topic.partition(index)
}

fn write(
    call: &Call,
    partition: Result<&Arc<Partition>, ErrorCode>,
    data: PartitionProduceData,
    acks: i16,
) -> Written {
    let partition = match partition {
        Ok(partition) => partition,
        Err(code) => return failed(data.index, code, None),
    };
    let Added {
        log,
        appended,
        flushes,
    } = match append(call, partition, &data) {
        Ok(appended) => appended,
        Err(error) => {
            debug!("{partition}: {error}");
            return failed_by(data.index, &error);
        }
    };
    Written {
        response: PartitionProduceResponse {
            index: data.index,
            base_offset: appended.base_offset,
            log_append_time_ms: appended.log_append_time_ms,
            log_start_offset: appended.start_offset,
            ..PartitionProduceResponse::default()
        },
        flush: (acks == -1 || acks == 1 && flushes).then(|| Flush {
            partition: Arc::clone(partition),
            log,
            end: appended.last_offset + 1,
        }),
    }
}

fn append(
    call: &Call,
    partition: &Arc<Partition>,
    data: &PartitionProduceData,
) -> Result<Added, PartitionError> {
    let log = partition.log()?;
    let records = data.records.as_deref().unwrap_or_default();
    let now = call.node.clock.date_ms();
    let append = || log.append(records, Origin::Client, crate::LEADER_EPOCH, now);
    // It is unpacked and checked, perhaps packed again, and written.
    let appended = match records.len() {
        HEAVY.. => crate::heavy(append),
        _ => append(),
    };
    match appended {
        Ok(appended) => {
            let flushes = partition.appended(&log, appended.last_offset + 1);
            Ok(Added {
                log,
                appended,
                flushes,
            })
        }
        Err(error) => {
            partition.failed(&error);
            Err(error.into())
        }
    }
}

fn failed_by(index: i32, error: &PartitionError) -> Written {
    let mut written = failed(index, error.code(), Some(error.to_string()));
    if let PartitionError::Log(LogError::Rejected { records, .. }) = error {
        let records = records.iter().map(|rejection| BatchIndexAndErrorMessage {
            batch_index: rejection.index,
            batch_index_error_message: Some(rejection.message.into()),
        });
        written.response.record_errors = records.collect();
    }
    written
}

fn failed(index: i32, error_code: ErrorCode, message: Option<String>) -> Written {
    Written {
        response: PartitionProduceResponse {
            index,
            error_code,
            base_offset: -1,
            error_message: message.map(Into::into),
            ..PartitionProduceResponse::default()
        },
        flush: None,
    }
}
