//! DescribeTopicPartitions (API 75).

use crate::{ByteString, ErrorCode, Uuid};

crate::message! {
    /// Asks for the partitions of topics, page by page (KIP-966).
    pub struct DescribeTopicPartitionsRequest: 0..=0, flexible 0.. {
        /// The topics; none for all.
        topics: Vec<DescribeTopicPartitionsTopic> [0..],
        /// How many partitions a page has at most.
        response_partition_limit: i32 [0..] = 2000,
        /// Where the page begins; `None` for the first.
        cursor: Option<DescribeTopicPartitionsCursor> [0.., null 0..],
    }

    /// A topic that is asked for.
    pub struct DescribeTopicPartitionsTopic {
        name: ByteString [0..],
    }

    /// The first partition of a page.
    pub struct DescribeTopicPartitionsCursor {
        topic_name: ByteString [0..],
        partition_index: i32 [0..],
    }

    /// A page of partitions.
    pub struct DescribeTopicPartitionsResponse: 0..=0, flexible 0.. {
        throttle_time_ms: i32 [0.., ignorable],
        topics: Vec<DescribeTopicPartitionsResponseTopic> [0..],
        /// Where the next page begins; `None` when this is the last.
        next_cursor: Option<DescribeTopicPartitionsCursor> [0.., null 0..],
    }

    /// A topic and those of its partitions that are on the page.
    pub struct DescribeTopicPartitionsResponseTopic {
        error_code: ErrorCode [0..],
        name: Option<ByteString> [0.., null 0..] = Some(Default::default()),
        topic_id: Uuid [0.., ignorable],
        is_internal: bool [0.., ignorable],
        partitions: Vec<DescribeTopicPartitionsResponsePartition> [0..],
        topic_authorized_operations: i32 [0..] = i32::MIN,
    }

    /// A partition and its replicas.
    pub struct DescribeTopicPartitionsResponsePartition {
        error_code: ErrorCode [0..],
        partition_index: i32 [0..],
        /// The broker that leads; -1 for none.
        leader_id: i32 [0..],
        /// -1 when not known.
        leader_epoch: i32 [0.., ignorable] = -1,
        replica_nodes: Vec<i32> [0..],
        /// The replicas that are in sync.
        isr_nodes: Vec<i32> [0..],
        /// Replicas out of sync that still have everything up to the high watermark.
        eligible_leader_replicas: Option<Vec<i32>> [0.., null 0..],
        /// The replicas that were last eligible to lead.
        last_known_elr: Option<Vec<i32>> [0.., null 0..],
        /// The replicas that cannot be reached.
        offline_replicas: Vec<i32> [0.., ignorable],
    }
}
