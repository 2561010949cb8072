//! Why a request is refused.

use kohort_wire::{
    ErrorCode,
    messages::{ConsumerGroupHeartbeatResponse, HeartbeatResponse},
};

/// A request that is refused, and changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) error_code: ErrorCode,
    /// For people.
    pub(crate) message: String,
}

impl Refusal {
    pub(crate) fn new(error_code: ErrorCode, message: impl Into<String>) -> Refusal {
        Refusal {
            error_code,
            message: message.into(),
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
