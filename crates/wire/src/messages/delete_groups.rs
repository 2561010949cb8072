//! DeleteGroups (API 42).

use crate::{ByteString, ErrorCode};

crate::message! {
    /// Deletes groups that have no members, with their committed offsets.
    pub struct DeleteGroupsRequest: 0..=3, flexible 2.. {
        groups_names: Vec<ByteString> [0..],
    }

    /// What became of each group.
    pub struct DeleteGroupsResponse: 0..=3, flexible 2.. {
        throttle_time_ms: i32 [0..],
        results: Vec<DeletableGroupResult> [0..],
    }

    /// What became of a group.
    pub struct DeletableGroupResult {
        group_id: ByteString [0..],
        error_code: ErrorCode [0..],
        error_message: Option<ByteString> [3.., null 3.., ignorable],
    }
}
