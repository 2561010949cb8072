//! AddPartitionsToTxn (API 24).

use crate::{ByteString, ErrorCode};

crate::message! {
    /// Adds partitions to transactions before anything is written to them. Producers send versions
    /// up to 3, for one transaction; brokers send versions from 4 on, for several (KIP-890).
    pub struct AddPartitionsToTxnRequest: 0..=5, flexible 3.. {
        /// The transactions, from version 4 on.
        transactions: Vec<AddPartitionsToTxnTransaction> [4..],
        v3_and_below_transactional_id: ByteString [0..=3],
        v3_and_below_producer_id: i64 [0..=3],
        v3_and_below_producer_epoch: i16 [0..=3],
        /// The partitions to be added, up to version 3.
        v3_and_below_topics: Vec<AddPartitionsToTxnTopic> [0..=3],
    }

    /// A transaction and the partitions to be added to it.
    pub struct AddPartitionsToTxnTransaction {
        transactional_id: ByteString [4..],
        producer_id: i64 [4..],
        producer_epoch: i16 [4..],
        /// Only asks whether the partitions are in the transaction, and adds nothing.
        verify_only: bool [4..],
        topics: Vec<AddPartitionsToTxnTopic> [4..],
    }

    /// Partitions of a topic.
    pub struct AddPartitionsToTxnTopic {
        name: ByteString [0..],
        partitions: Vec<i32> [0..],
    }

    /// Which partitions were added.
    pub struct AddPartitionsToTxnResponse: 0..=5, flexible 3.. {
        throttle_time_ms: i32 [0..],
        /// What went wrong with the request as a whole.
        error_code: ErrorCode [4.., ignorable],
        results_by_transaction: Vec<AddPartitionsToTxnResult> [4..],
        results_by_topic_v3_and_below: Vec<AddPartitionsToTxnTopicResult> [0..=3],
    }

    /// What became of one transaction's partitions.
    pub struct AddPartitionsToTxnResult {
        transactional_id: ByteString [4..],
        topic_results: Vec<AddPartitionsToTxnTopicResult> [4..],
    }

    /// What became of a topic's partitions.
    pub struct AddPartitionsToTxnTopicResult {
        name: ByteString [0..],
        results_by_partition: Vec<AddPartitionsToTxnPartitionResult> [0..],
    }

    /// What became of a partition.
    pub struct AddPartitionsToTxnPartitionResult {
        partition_index: i32 [0..],
        partition_error_code: ErrorCode [0..],
    }
}
