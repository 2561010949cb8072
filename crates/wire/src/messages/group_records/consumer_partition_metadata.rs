//! ConsumerGroupPartitionMetadata.

use crate::{ByteString, Uuid};

crate::message! {
    /// Key of type 4: the topics that a group is subscribed to. Since KIP-1101 only tombstones of
    /// it are written.
    pub struct ConsumerGroupPartitionMetadataKey: 0..=0 {
        group_id: ByteString [0..=0],
    }

    /// The topics that a group is subscribed to.
    pub struct ConsumerGroupPartitionMetadataValue: 0..=0, flexible 0.. {
        topics: Vec<SubscribedTopicMetadata> [0..],
    }

    /// A topic that a group is subscribed to.
    pub struct SubscribedTopicMetadata {
        topic_id: Uuid [0..],
        topic_name: ByteString [0..],
        num_partitions: i32 [0..],
        partition_metadata: Vec<SubscribedPartitionMetadata> [0..],
    }

    /// Where the replicas of a partition are.
    pub struct SubscribedPartitionMetadata {
        partition: i32 [0..],
        racks: Vec<ByteString> [0..],
    }
}
