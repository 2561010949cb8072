//! Structs that several messages share.

use crate::{ByteString, Uuid};

crate::message! {
    /// Partitions of a topic that is named.
    pub struct TopicPartitions {
        topic: ByteString [0..],
        partitions: Vec<i32> [0..],
    }

    /// Partitions of a topic that is given by its id (KIP-516).
    pub struct TopicIdPartitions {
        topic_id: Uuid [0..],
        partitions: Vec<i32> [0..],
    }

    /// Where a broker is reached: sent along with the id of a new leader that the client may not
    /// know yet (KIP-951).
    pub struct NodeEndpoint {
        node_id: i32 [0..],
        host: ByteString [0..],
        port: i32 [0..],
        rack: Option<ByteString> [0.., null 0..],
    }

    /// The leader of a partition (KIP-951).
    pub struct LeaderIdAndEpoch {
        leader_id: i32 [0..] = -1,
        leader_epoch: i32 [0..] = -1,
    }
}
