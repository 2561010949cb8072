//! What an answer to Produce means for each batch of the request.

use kohort_wire::{ApiKey, ErrorCode, Uuid, messages::*};

use super::{Acks, batch::Batch, delivery::Written};
use crate::{Error, Result, Subject, error::check, rpc::Metadata};

/// What was answered for one batch.
pub(super) struct Answered {
    pub(super) result: Result<Written>,
    /// A new leader of the partition, and its epoch, if the answer tells of one (KIP-951).
    pub(super) leader: Option<(i32, i32)>,
}

/// What is to be done with a batch.
pub(super) enum Verdict {
    Done(Written),
    Failed(Error),
    /// It is too large for the broker.
    Split(Error),
    Again {
        error: Error,
        /// A new epoch is needed first.
        renew: bool,
        /// The leader may be another one.
        moved: bool,
    },
}

/// Each batch with what was answered for it.
pub(super) fn outcomes(
    batches: Vec<Batch>,
    response: Result<ProduceResponse>,
    acks: Acks,
    metadata: &Metadata,
) -> Vec<(Batch, Answered)> {
    let response = match response {
        Ok(response) => response,
        Err(error) => {
            let failed = batches.into_iter().map(|batch| {
                let result = Err(error.clone());
                (
                    batch,
                    Answered {
                        result,
                        leader: None,
                    },
                )
            });
            return failed.collect();
        }
    };
    let each = batches.into_iter().map(|batch| {
        let topic_id = metadata
            .topic(&batch.outcome.partition.topic)
            .map_or(Uuid(0), |topic| topic.id);
        let answered = match acks {
            Acks::None => Answered {
                result: Ok(Written {
                    topic_id,
                    base_offset: None,
                    append_time: None,
                }),
                leader: None,
            },
            _ => answer_for(&batch, topic_id, &response),
        };
        (batch, answered)
    });
    each.collect()
}

fn answer_for(batch: &Batch, topic_id: Uuid, response: &ProduceResponse) -> Answered {
    const API: ApiKey = ApiKey::Produce;
    let partition = &batch.outcome.partition;
    let subject = || Subject::Partition(partition.clone());
    let topic = response.responses.iter().find(|topic| {
        topic.name == partition.topic || (!topic_id.is_zero() && topic.topic_id == topic_id)
    });
    let answer = topic.and_then(|topic| {
        let mut answers = topic.partition_responses.iter();
        answers.find(|answer| answer.index == partition.partition)
    });
    // Left out, or under another topic id: the topic may have been created again.
    let Some(answer) = answer else {
        let code = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
        return Answered {
            result: Err(Error::kafka(API, subject(), code)),
            leader: None,
        };
    };
    let leader = &answer.current_leader;
    Answered {
        result: check(
            API,
            answer.error_code,
            answer.error_message.as_ref(),
            subject,
        )
        .map(|()| Written {
            topic_id,
            base_offset: (answer.base_offset >= 0).then_some(answer.base_offset),
            append_time: (answer.log_append_time_ms >= 0).then_some(answer.log_append_time_ms),
        }),
        leader: (leader.leader_id >= 0).then_some((leader.leader_id, leader.leader_epoch)),
    }
}

/// What follows from an answer. `first` says whether the batch was the oldest of its partition
/// that was under way.
pub(super) fn judge(result: Result<Written>, idempotent: bool, first: bool) -> Verdict {
    let error = match result {
        Ok(written) => return Verdict::Done(written),
        Err(error) => error,
    };
    let Error::Kafka { code, .. } = &error else {
        // The connection ended: whether the batch was written is not known.
        return if error.is_retriable() {
            Verdict::Again {
                error,
                renew: false,
                moved: true,
            }
        } else {
            Verdict::Failed(error)
        };
    };
    match *code {
        // An earlier attempt got there.
        ErrorCode::DUPLICATE_SEQUENCE_NUMBER if idempotent => Verdict::Done(Written {
            topic_id: Uuid(0),
            base_offset: None,
            append_time: None,
        }),
        // It overtook one that failed, and comes after it again; or the broker has forgotten.
        ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER if idempotent => Verdict::Again {
            error,
            renew: first,
            moved: false,
        },
        ErrorCode::UNKNOWN_PRODUCER_ID | ErrorCode::INVALID_PRODUCER_EPOCH if idempotent => {
            Verdict::Again {
                error,
                renew: true,
                moved: false,
            }
        }
        ErrorCode::MESSAGE_TOO_LARGE | ErrorCode::RECORD_LIST_TOO_LARGE => Verdict::Split(error),
        // The topic was created again, with another id.
        ErrorCode::UNKNOWN_TOPIC_ID => Verdict::Again {
            error,
            renew: false,
            moved: true,
        },
        code if code.is_retriable() => Verdict::Again {
            error,
            renew: false,
            moved: code != ErrorCode::NOT_ENOUGH_REPLICAS,
        },
        _ => Verdict::Failed(error),
    }
}
