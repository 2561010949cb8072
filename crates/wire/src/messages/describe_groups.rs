//! DescribeGroups (API 15).

use bytes::Bytes;

use crate::{ByteString, ErrorCode};

crate::message! {
    /// Asks for the state of groups of the classic protocol.
    pub struct DescribeGroupsRequest: 0..=6, flexible 5.. {
        groups: Vec<ByteString> [0..],
        include_authorized_operations: bool [3..],
    }

    /// The state of groups.
    pub struct DescribeGroupsResponse: 0..=6, flexible 5.. {
        throttle_time_ms: i32 [1.., ignorable],
        groups: Vec<DescribedGroup> [0..],
    }

    /// The state of a group of the classic protocol.
    pub struct DescribedGroup {
        error_code: ErrorCode [0..],
        /// Says more where there is an error (KIP-1043).
        error_message: Option<ByteString> [6.., null 6..],
        group_id: ByteString [0..],
        /// `Empty`, `PreparingRebalance`, `CompletingRebalance`, `Stable` or `Dead`.
        group_state: ByteString [0..],
        /// `consumer` for consumers; empty if no member has joined.
        protocol_type: ByteString [0..],
        /// The protocol that the members agreed on: for consumers, the assignor's name.
        protocol_data: ByteString [0..],
        members: Vec<DescribedGroupMember> [0..],
        authorized_operations: i32 [3..] = i32::MIN,
    }

    /// A member of a group of the classic protocol.
    pub struct DescribedGroupMember {
        member_id: ByteString [0..],
        /// The id of a static member (KIP-345).
        group_instance_id: Option<ByteString> [4.., null 4.., ignorable],
        client_id: ByteString [0..],
        client_host: ByteString [0..],
        /// What the member said when it joined; for consumers a
        /// [`ConsumerProtocolSubscription`](crate::messages::ConsumerProtocolSubscription).
        member_metadata: Bytes [0..],
        /// What the leader gave it; for consumers a
        /// [`ConsumerProtocolAssignment`](crate::messages::ConsumerProtocolAssignment).
        member_assignment: Bytes [0..],
    }
}
