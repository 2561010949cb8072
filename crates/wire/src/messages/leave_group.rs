//! LeaveGroup (API 13).

use crate::{ByteString, ErrorCode};

crate::message! {
    pub struct LeaveGroupRequest: 0..=5, flexible 4.. {
        group_id: ByteString [0..],
        member_id: ByteString [0..=2],
        members: Vec<MemberIdentity> [3..],
    }

    pub struct MemberIdentity {
        member_id: ByteString [3..],
        group_instance_id: Option<ByteString> [3.., null 3..],
        reason: Option<ByteString> [5.., null 5.., ignorable],
    }

    pub struct LeaveGroupResponse: 0..=5, flexible 4.. {
        throttle_time_ms: i32 [1.., ignorable],
        error_code: ErrorCode [0..],
        members: Vec<MemberResponse> [3..],
    }

    pub struct MemberResponse {
        member_id: ByteString [3..],
        group_instance_id: Option<ByteString> [3.., null 3..] = Some(Default::default()),
        error_code: ErrorCode [3..],
    }
}
