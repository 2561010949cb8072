//! ConsumerGroupMemberMetadata.

use bytes::Bytes;

use crate::ByteString;

crate::message! {
    /// Key of type 5: a member of a group of the consumer protocol.
    pub struct ConsumerGroupMemberMetadataKey: 0..=0 {
        group_id: ByteString [0..=0],
        member_id: ByteString [0..=0],
    }

    /// What a member of a group of the consumer protocol has said of itself.
    pub struct ConsumerGroupMemberMetadataValue: 0..=0, flexible 0.. {
        /// The id of a static member (KIP-345).
        instance_id: Option<ByteString> [0.., null 0..] = Some(Default::default()),
        rack_id: Option<ByteString> [0.., null 0..] = Some(Default::default()),
        client_id: ByteString [0..],
        client_host: ByteString [0..],
        subscribed_topic_names: Vec<ByteString> [0..],
        /// A pattern in RE2 syntax.
        subscribed_topic_regex: Option<ByteString> [0.., null 0..] = Some(Default::default()),
        /// How long the coordinator waits for the member to let partitions go.
        rebalance_timeout_ms: i32 [0..] = -1,
        /// The assignor that the member wishes for.
        server_assignor: Option<ByteString> [0.., null 0..] = Some(Default::default()),
        /// What the member said when it joined by the classic protocol; `None` for members of the
        /// consumer protocol. A record without this field means an empty value, not `None`: Kafka's
        /// generator does not see the `null` that its schema gives as the default.
        classic_member_metadata: Option<ClassicMemberMetadata> [0.., null 0.., tag 0] = Some(Default::default()),
    }

    /// What a member of the classic protocol said when it joined a group of the consumer protocol
    /// (KIP-848).
    pub struct ClassicMemberMetadata {
        session_timeout_ms: i32 [0..],
        supported_protocols: Vec<ClassicProtocol> [0..],
    }

    /// A protocol that a classic member knows.
    pub struct ClassicProtocol {
        name: ByteString [0..],
        /// A [`ConsumerProtocolSubscription`](crate::messages::ConsumerProtocolSubscription), after
        /// two bytes of version.
        metadata: Bytes [0..],
    }
}
