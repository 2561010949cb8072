//! Why a request is refused.

use kohort_wire::{
    ErrorCode,
    messages::{ConsumerGroupHeartbeatResponse, HeartbeatResponse},
};

/// How many characters of a message are sent: it may quote ids that are as long as a text may be.
const MESSAGE_CHARS_MAX: usize = 1_000;

/// A request that is refused, and changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) error_code: ErrorCode,
    /// For people.
    pub(crate) message: String,
}

impl Refusal {
    pub(crate) fn new(error_code: ErrorCode, message: impl Into<String>) -> Refusal {
        let mut message: String = message.into();
        if let Some((end, _)) = message.char_indices().nth(MESSAGE_CHARS_MAX) {
            message.truncate(end);
            message.push('…');
        }
        Refusal {
            error_code,
            message,
        }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Refusal {
        Refusal::new(ErrorCode::INVALID_REQUEST, message)
    }

    pub(crate) fn unknown_member(member_id: &str, group_id: &str) -> Refusal {
        Refusal::new(
            ErrorCode::UNKNOWN_MEMBER_ID,
            format!("The group {group_id} has no member {member_id}."),
        )
    }
}

impl From<Refusal> for ConsumerGroupHeartbeatResponse {
    fn from(refusal: Refusal) -> ConsumerGroupHeartbeatResponse {
        ConsumerGroupHeartbeatResponse {
            error_code: refusal.error_code,
            error_message: Some(refusal.message.into()),
            ..ConsumerGroupHeartbeatResponse::default()
        }
    }
}

impl From<Refusal> for HeartbeatResponse {
    fn from(refusal: Refusal) -> HeartbeatResponse {
        HeartbeatResponse {
            error_code: refusal.error_code,
            ..HeartbeatResponse::default()
        }
    }
}
