//! ListGroups (API 16).

use crate::{ByteString, ErrorCode};

crate::message! {
    /// Asks for the groups that a broker coordinates.
    pub struct ListGroupsRequest: 0..=5, flexible 3.. {
        /// The states of the groups wanted; none for all (KIP-518).
        states_filter: Vec<ByteString> [4..],
        /// The types of the groups wanted; none for all (KIP-848).
        types_filter: Vec<ByteString> [5..],
    }

    /// The groups that the broker coordinates.
    pub struct ListGroupsResponse: 0..=5, flexible 3.. {
        throttle_time_ms: i32 [1.., ignorable],
        error_code: ErrorCode [0..],
        groups: Vec<ListedGroup> [0..],
    }

    /// A group.
    pub struct ListedGroup {
        group_id: ByteString [0..],
        /// `consumer` for consumers; empty for groups that only commit offsets.
        protocol_type: ByteString [0..],
        group_state: ByteString [4.., ignorable],
        /// `classic`, `consumer`, `share` or `streams`.
        group_type: ByteString [5.., ignorable],
    }
}
