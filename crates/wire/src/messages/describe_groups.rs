//! DescribeGroups (API 15).

use bytes::Bytes;

use crate::{ByteString, ErrorCode};

crate::message! {
    pub struct DescribeGroupsRequest: 0..=6, flexible 5.. {
        groups: Vec<ByteString> [0..],
        include_authorized_operations: bool [3..],
    }

    pub struct DescribeGroupsResponse: 0..=6, flexible 5.. {
        throttle_time_ms: i32 [1.., ignorable],
        groups: Vec<DescribedGroup> [0..],
    }

    pub struct DescribedGroup {
        error_code: ErrorCode [0..],
        error_message: Option<ByteString> [6.., null 6..],
        group_id: ByteString [0..],
        group_state: ByteString [0..],
        protocol_type: ByteString [0..],
        protocol_data: ByteString [0..],
        members: Vec<DescribedGroupMember> [0..],
        authorized_operations: i32 [3..] = i32::MIN,
    }

    pub struct DescribedGroupMember {
        member_id: ByteString [0..],
        group_instance_id: Option<ByteString> [4.., null 4.., ignorable],
        client_id: ByteString [0..],
        client_host: ByteString [0..],
        member_metadata: Bytes [0..],
        member_assignment: Bytes [0..],
    }
}
