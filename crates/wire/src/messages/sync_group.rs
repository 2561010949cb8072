//! SyncGroup (API 14).

use bytes::Bytes;

use crate::{ByteString, ErrorCode};

crate::message! {
    /// Brings the assignments, from the leader, or asks for one's own, from the others. It is
    /// answered when the leader has sent them.
    pub struct SyncGroupRequest: 0..=5, flexible 4.. {
        group_id: ByteString [0..],
        generation_id: i32 [0..],
        member_id: ByteString [0..],
        /// The id of a static member (KIP-345).
        group_instance_id: Option<ByteString> [3.., null 3..],
        protocol_type: Option<ByteString> [5.., null 5.., ignorable],
        /// The protocol that the member believes was chosen (KIP-559).
        protocol_name: Option<ByteString> [5.., null 5.., ignorable],
        /// All members' assignments, from the leader; none from the others.
        assignments: Vec<SyncGroupAssignment> [0..],
    }

    /// The assignment of a member.
    pub struct SyncGroupAssignment {
        member_id: ByteString [0..],
        /// For consumers a
        /// [`ConsumerProtocolAssignment`](crate::messages::ConsumerProtocolAssignment).
        assignment: Bytes [0..],
    }

    /// The member's assignment.
    pub struct SyncGroupResponse: 0..=5, flexible 4.. {
        throttle_time_ms: i32 [1.., ignorable],
        error_code: ErrorCode [0..],
        protocol_type: Option<ByteString> [5.., null 5.., ignorable],
        protocol_name: Option<ByteString> [5.., null 5.., ignorable],
        /// For consumers a
        /// [`ConsumerProtocolAssignment`](crate::messages::ConsumerProtocolAssignment); it may be
        /// empty.
        assignment: Bytes [0..],
    }
}
