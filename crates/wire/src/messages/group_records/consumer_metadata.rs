//! ConsumerGroupMetadata.

use crate::ByteString;

crate::message! {
    /// Key of type 3: a group of the consumer protocol.
    pub struct ConsumerGroupMetadataKey: 0..=0 {
        group_id: ByteString [0..=0],
    }

    /// The epoch of a group of the consumer protocol.
    pub struct ConsumerGroupMetadataValue: 0..=0, flexible 0.. {
        epoch: i32 [0..],
        /// A hash over the subscribed topics and their partitions and racks, by which a change is
        /// noticed (KIP-1101); 0 when there is none.
        metadata_hash: i64 [0.., tag 0],
    }
}
