//! SyncGroup (API 14).

use bytes::Bytes;

use crate::{ByteString, ErrorCode};

crate::message! {
    pub struct SyncGroupRequest: 0..=5, flexible 4.. {
        group_id: ByteString [0..],
        generation_id: i32 [0..],
        member_id: ByteString [0..],
        group_instance_id: Option<ByteString> [3.., null 3..],
        protocol_type: Option<ByteString> [5.., null 5.., ignorable],
        protocol_name: Option<ByteString> [5.., null 5.., ignorable],
        assignments: Vec<SyncGroupAssignment> [0..],
    }

    pub struct SyncGroupAssignment {
        member_id: ByteString [0..],
        assignment: Bytes [0..],
    }

    pub struct SyncGroupResponse: 0..=5, flexible 4.. {
        throttle_time_ms: i32 [1.., ignorable],
        error_code: ErrorCode [0..],
        protocol_type: Option<ByteString> [5.., null 5.., ignorable],
        protocol_name: Option<ByteString> [5.., null 5.., ignorable],
        assignment: Bytes [0..],
    }
}
