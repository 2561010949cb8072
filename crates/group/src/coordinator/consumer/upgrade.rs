//! A classic group becomes a consumer group.

use kohort_wire::ErrorCode;

use super::refusal::Refusal;
use crate::coordinator::{Shard, shard::Step};

impl Shard {
    pub(super) fn upgrade(&mut self, group_id: &str, _step: &mut Step<'_>) -> Result<(), Refusal> {
        Err(Refusal::new(
            ErrorCode::GROUP_ID_NOT_FOUND,
            format!("Group {group_id} is not a consumer group."),
        ))
    }
}
