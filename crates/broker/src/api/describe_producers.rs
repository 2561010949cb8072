//! DescribeProducers (61): the idempotent producers of partitions (KIP-664).

use kohort_wire::messages::*;

use super::Call;

pub(super) async fn handle(
    call: Call,
    request: DescribeProducersRequest,
) -> DescribeProducersResponse {
    let snapshot = call.node.snapshot();
    let topics = request.topics.into_iter().map(|topic| {
        let partitions = topic.partition_indexes.iter().map(|&partition_index| {
            let log = snapshot
                .partition(&topic.name, partition_index)
                .and_then(|partition| partition.log().map_err(|error| error.code()));
            let response = DescribeProducersPartitionResponse {
                partition_index,
                ..DescribeProducersPartitionResponse::default()
            };
            match log {
                Ok(log) => DescribeProducersPartitionResponse {
                    active_producers: producers(&log),
                    ..response
                },
                Err(error_code) => DescribeProducersPartitionResponse {
                    error_code,
                    error_message: error_code.name().map(Into::into),
                    ..response
                },
            }
        });
        DescribeProducersTopicResponse {
            partitions: partitions.collect(),
            name: topic.name.clone(),
        }
    });
    DescribeProducersResponse {
        topics: topics.collect(),
        ..DescribeProducersResponse::default()
    }
}

fn producers(log: &kohort_log::Log) -> Vec<DescribedProducerState> {
    let known = log.producers().into_iter();
    known
        .map(|(producer_id, state)| DescribedProducerState {
            producer_id,
            producer_epoch: state.epoch.into(),
            last_sequence: state.last_sequence(),
            last_timestamp: state.last_timestamp,
            coordinator_epoch: -1,
            current_txn_start_offset: -1,
        })
        .collect()
}
