//! ConsumerGroupMetadata.

use crate::ByteString;

crate::message! {
    pub struct ConsumerGroupMetadataKey: 0..=0 {
        group_id: ByteString [0..=0],
    }

    pub struct ConsumerGroupMetadataValue: 0..=0, flexible 0.. {
        epoch: i32 [0..],
        metadata_hash: i64 [0.., tag 0],
    }
}
