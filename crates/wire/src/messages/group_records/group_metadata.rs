//! GroupMetadata.

use bytes::Bytes;

use crate::ByteString;

crate::message! {
    pub struct GroupMetadataKey: 0..=0 {
        group: ByteString [0..=0],
    }

    pub struct GroupMetadataValue: 0..=4, flexible 4.. {
        protocol_type: ByteString [0..],
        generation: i32 [0..],
        protocol: Option<ByteString> [0.., null 0..] = Some(Default::default()),
        leader: Option<ByteString> [0.., null 0..] = Some(Default::default()),
        current_state_timestamp: i64 [2.., ignorable] = -1,
        members: Vec<GroupMetadataMember> [0..],
    }

    pub struct GroupMetadataMember {
        member_id: ByteString [0..],
        group_instance_id: Option<ByteString> [3.., null 3.., ignorable],
        client_id: ByteString [0..],
        client_host: ByteString [0..],
        rebalance_timeout: i32 [1.., ignorable] = -1,
        session_timeout: i32 [0..],
        subscription: Bytes [0..],
        assignment: Bytes [0..],
    }
}
