//! OffsetForLeaderEpoch (23): where the records of a leader end, for consumers that check whether
//! their position has been truncated (KIP-320).

use kohort_wire::{ErrorCode, messages::*};

use super::Call;

pub(super) async fn handle(
    call: Call,
    request: OffsetForLeaderEpochRequest,
) -> OffsetForLeaderEpochResponse {
    let snapshot = call.node.snapshot();
    let topics = request.topics.into_iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|wanted| {
            let end = snapshot
                .partition(&topic.topic, wanted.partition)
                .and_then(|partition| {
                    super::check_leader_epoch(wanted.current_leader_epoch)?;
                    let log = partition.log().map_err(|error| error.code())?;
                    Ok(log.epoch_end_offset(wanted.leader_epoch))
                });
            let result = LeaderEpochEndOffset {
                partition: wanted.partition,
                ..LeaderEpochEndOffset::default()
            };
            match end {
                Ok(end) => LeaderEpochEndOffset {
                    error_code: ErrorCode::NONE,
                    leader_epoch: end.epoch,
                    end_offset: end.end_offset,
                    ..result
                },
                Err(error_code) => LeaderEpochEndOffset {
                    error_code,
                    ..result
                },
            }
        });
        OffsetForLeaderTopicResult {
            partitions: partitions.collect(),
            topic: topic.topic.clone(),
        }
    });
    OffsetForLeaderEpochResponse {
        topics: topics.collect(),
        ..OffsetForLeaderEpochResponse::default()
    }
}
