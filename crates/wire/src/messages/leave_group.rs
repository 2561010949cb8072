//! LeaveGroup (API 13).

use crate::{ByteString, ErrorCode};

crate::message! {
    /// Leaves a group, or removes members from it.
    pub struct LeaveGroupRequest: 0..=5, flexible 4.. {
        group_id: ByteString [0..],
        /// The leaving member, up to version 2.
        member_id: ByteString [0..=2],
        /// The leaving members, from version 3 on: by member id, or by instance id with an empty member id
        /// (KIP-345).
        members: Vec<MemberIdentity> [3..],
    }

    /// A member that leaves.
    pub struct MemberIdentity {
        member_id: ByteString [3..],
        group_instance_id: Option<ByteString> [3.., null 3..],
        /// Why it leaves, for people (KIP-800).
        reason: Option<ByteString> [5.., null 5.., ignorable],
    }

    /// What became of each member.
    pub struct LeaveGroupResponse: 0..=5, flexible 4.. {
        throttle_time_ms: i32 [1.., ignorable],
        error_code: ErrorCode [0..],
        members: Vec<MemberResponse> [3..],
    }

    /// What became of a member.
    pub struct MemberResponse {
        member_id: ByteString [3..],
        group_instance_id: Option<ByteString> [3.., null 3..] = Some(Default::default()),
        error_code: ErrorCode [3..],
    }
}
