//! JoinGroup (API 11).

use bytes::Bytes;

use crate::{ByteString, ErrorCode};

crate::message! {
    /// Joins or rejoins a group of the classic protocol. It is answered when every member has
    /// joined, or time is up.
    pub struct JoinGroupRequest: 0..=9, flexible 6.. {
        group_id: ByteString [0..],
        /// After how long without a heartbeat the member is taken for dead.
        session_timeout_ms: i32 [0..],
        /// How long members have to rejoin; -1, as in version 0, for the session's timeout.
        rebalance_timeout_ms: i32 [1.., ignorable] = -1,
        /// The id that the coordinator gave out; empty at first. From version 4 on the first join
        /// is answered with `MEMBER_ID_REQUIRED` and an id to join with (KIP-394).
        member_id: ByteString [0..],
        /// The id of a static member (KIP-345).
        group_instance_id: Option<ByteString> [5.., null 5..],
        /// `consumer` for consumers; everybody in a group must say the same.
        protocol_type: ByteString [0..],
        /// The protocols (for consumers, assignors) that the member knows, the preferred first.
        protocols: Vec<JoinGroupProtocol> [0..],
        /// Why the member joins, for people (KIP-800).
        reason: Option<ByteString> [8.., null 8.., ignorable],
    }

    /// A protocol that a member knows.
    pub struct JoinGroupProtocol {
        /// For consumers, the assignor's name.
        name: ByteString [0..],
        /// What the leader is told; for consumers a
        /// [`ConsumerProtocolSubscription`](crate::messages::ConsumerProtocolSubscription).
        metadata: Bytes [0..],
    }

    /// The generation that has begun. Its leader gets the members, and owes their assignments.
    pub struct JoinGroupResponse: 0..=9, flexible 6.. {
        throttle_time_ms: i32 [2.., ignorable],
        error_code: ErrorCode [0..],
        /// -1 with an error.
        generation_id: i32 [0..] = -1,
        protocol_type: Option<ByteString> [7.., null 7.., ignorable],
        /// The protocol that was chosen: for consumers, the assignor's name.
        protocol_name: Option<ByteString> [0.., null 7..] = Some(Default::default()),
        /// The leader's member id.
        leader: ByteString [0..],
        /// Whether the leader shall leave the assignment as it is, having rejoined as a static
        /// member (KIP-814).
        skip_assignment: bool [9..],
        member_id: ByteString [0..],
        /// All members, for the leader; none for the others.
        members: Vec<JoinGroupResponseMember> [0..],
    }

    /// A member, as the leader sees it.
    pub struct JoinGroupResponseMember {
        member_id: ByteString [0..],
        /// The id of a static member (KIP-345).
        group_instance_id: Option<ByteString> [5.., null 5.., ignorable],
        /// What the member said about the chosen protocol.
        metadata: Bytes [0..],
    }
}
