//! ConsumerGroupPartitionMetadata.

use crate::{ByteString, Uuid};

crate::message! {
    pub struct ConsumerGroupPartitionMetadataKey: 0..=0 {
        group_id: ByteString [0..=0],
    }

    pub struct ConsumerGroupPartitionMetadataValue: 0..=0, flexible 0.. {
        topics: Vec<SubscribedTopicMetadata> [0..],
    }

    pub struct SubscribedTopicMetadata {
        topic_id: Uuid [0..],
        topic_name: ByteString [0..],
        num_partitions: i32 [0..],
        partition_metadata: Vec<SubscribedPartitionMetadata> [0..],
    }

    pub struct SubscribedPartitionMetadata {
        partition: i32 [0..],
        racks: Vec<ByteString> [0..],
    }
}
