//! JoinGroup (API 11).

use bytes::Bytes;

use crate::{ByteString, ErrorCode};

crate::message! {
    pub struct JoinGroupRequest: 0..=9, flexible 6.. {
        group_id: ByteString [0..],
        session_timeout_ms: i32 [0..],
        rebalance_timeout_ms: i32 [1.., ignorable] = -1,
        member_id: ByteString [0..],
        group_instance_id: Option<ByteString> [5.., null 5..],
        protocol_type: ByteString [0..],
        protocols: Vec<JoinGroupProtocol> [0..],
        reason: Option<ByteString> [8.., null 8.., ignorable],
    }

    pub struct JoinGroupProtocol {
        name: ByteString [0..],
        metadata: Bytes [0..],
    }

    pub struct JoinGroupResponse: 0..=9, flexible 6.. {
        throttle_time_ms: i32 [2.., ignorable],
        error_code: ErrorCode [0..],
        generation_id: i32 [0..] = -1,
        protocol_type: Option<ByteString> [7.., null 7.., ignorable],
        protocol_name: Option<ByteString> [0.., null 7..] = Some(Default::default()),
        leader: ByteString [0..],
        skip_assignment: bool [9..],
        member_id: ByteString [0..],
        members: Vec<JoinGroupResponseMember> [0..],
    }

    pub struct JoinGroupResponseMember {
        member_id: ByteString [0..],
        group_instance_id: Option<ByteString> [5.., null 5.., ignorable],
        metadata: Bytes [0..],
    }
}
