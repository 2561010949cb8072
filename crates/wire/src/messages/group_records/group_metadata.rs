//! GroupMetadata.

use bytes::Bytes;

use crate::ByteString;

crate::message! {
    /// Key of type 2: a group of the classic protocol.
    pub struct GroupMetadataKey: 0..=0 {
        group: ByteString [0..=0],
    }

    /// A generation of a group of the classic protocol.
    pub struct GroupMetadataValue: 0..=4, flexible 4.. {
        /// `consumer` for consumers.
        protocol_type: ByteString [0..],
        generation: i32 [0..],
        /// The protocol that was chosen: for consumers, the assignor's name.
        protocol: Option<ByteString> [0.., null 0..] = Some(Default::default()),
        /// The leader's member id.
        leader: Option<ByteString> [0.., null 0..] = Some(Default::default()),
        /// When the group came into its state, in milliseconds since 1970; -1 when not known.
        current_state_timestamp: i64 [2.., ignorable] = -1,
        members: Vec<GroupMetadataMember> [0..],
    }

    /// A member of a group of the classic protocol.
    pub struct GroupMetadataMember {
        member_id: ByteString [0..],
        /// The id of a static member (KIP-345).
        group_instance_id: Option<ByteString> [3.., null 3.., ignorable],
        client_id: ByteString [0..],
        client_host: ByteString [0..],
        /// In milliseconds; -1 in version 0, which means the session's timeout.
        rebalance_timeout: i32 [1.., ignorable] = -1,
        /// In milliseconds.
        session_timeout: i32 [0..],
        /// What the member said about the chosen protocol; for consumers a
        /// [`ConsumerProtocolSubscription`](crate::messages::ConsumerProtocolSubscription).
        subscription: Bytes [0..],
        /// What the leader gave it; for consumers a
        /// [`ConsumerProtocolAssignment`](crate::messages::ConsumerProtocolAssignment).
        assignment: Bytes [0..],
    }
}
