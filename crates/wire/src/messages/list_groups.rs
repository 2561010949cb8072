//! ListGroups (API 16).

use crate::{ByteString, ErrorCode};

crate::message! {
    pub struct ListGroupsRequest: 0..=5, flexible 3.. {
        states_filter: Vec<ByteString> [4..],
        types_filter: Vec<ByteString> [5..],
    }

    pub struct ListGroupsResponse: 0..=5, flexible 3.. {
        throttle_time_ms: i32 [1.., ignorable],
        error_code: ErrorCode [0..],
        groups: Vec<ListedGroup> [0..],
    }

    pub struct ListedGroup {
        group_id: ByteString [0..],
        protocol_type: ByteString [0..],
        group_state: ByteString [4.., ignorable],
        group_type: ByteString [5.., ignorable],
    }
}
