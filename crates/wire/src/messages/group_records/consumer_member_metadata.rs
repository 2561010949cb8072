//! ConsumerGroupMemberMetadata.

use bytes::Bytes;

use crate::ByteString;

crate::message! {
    pub struct ConsumerGroupMemberMetadataKey: 0..=0 {
        group_id: ByteString [0..=0],
        member_id: ByteString [0..=0],
    }

    pub struct ConsumerGroupMemberMetadataValue: 0..=0, flexible 0.. {
        instance_id: Option<ByteString> [0.., null 0..] = Some(Default::default()),
        rack_id: Option<ByteString> [0.., null 0..] = Some(Default::default()),
        client_id: ByteString [0..],
        client_host: ByteString [0..],
        subscribed_topic_names: Vec<ByteString> [0..],
        subscribed_topic_regex: Option<ByteString> [0.., null 0..] = Some(Default::default()),
        rebalance_timeout_ms: i32 [0..] = -1,
        server_assignor: Option<ByteString> [0.., null 0..] = Some(Default::default()),
        /// What the member said when it joined by the classic protocol; `None` for members of the
        /// consumer protocol. A record without this field means an empty value, not `None`: Kafka's
        /// generator does not see the `null` that its schema gives as the default.
        classic_member_metadata: Option<ClassicMemberMetadata> [0.., null 0.., tag 0] = Some(Default::default()),
    }

    pub struct ClassicMemberMetadata {
        session_timeout_ms: i32 [0..],
        supported_protocols: Vec<ClassicProtocol> [0..],
    }

    pub struct ClassicProtocol {
        name: ByteString [0..],
        metadata: Bytes [0..],
    }
}
