//! Which partition a record goes to.

use std::fmt;

/// Chooses the partition of records that name none.
pub trait Partitioner: fmt::Debug + Send + Sync + 'static {
    /// The partition, from 0 to `partitions` − 1; or `None` for any: then records go to one
    /// partition until its batch is full, or as many bytes have gone there in several batches, and
    /// to another one afterwards (KIP-480, KIP-794).
    fn partition(
        &self,
        topic: &str,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        partitions: i32,
    ) -> Option<i32>;
}

/// Records with the same key go to the same partition: the one that Kafka's own producer chooses.
/// Records without a key go anywhere.
#[derive(Debug, Clone, Copy, Default)]
pub struct DefaultPartitioner;

impl Partitioner for DefaultPartitioner {
    fn partition(
        &self,
        _topic: &str,
        key: Option<&[u8]>,
        _value: Option<&[u8]>,
        partitions: i32,
    ) -> Option<i32> {
        key.map(|key| (murmur2(key) & 0x7fff_ffff) as i32 % partitions.max(1))
    }
}

/// Records go anywhere, whatever their key: batches fill best.
#[derive(Debug, Clone, Copy, Default)]
pub struct StickyPartitioner;

impl Partitioner for StickyPartitioner {
    fn partition(&self, _: &str, _: Option<&[u8]>, _: Option<&[u8]>, _: i32) -> Option<i32> {
        None
    }
}

/// The 32-bit hash murmur2 with the seed by which Kafka's clients choose partitions.
pub fn murmur2(data: &[u8]) -> u32 {
    const M: u32 = 0x5bd1_e995;
    let mut hash = 0x9747_b28c ^ data.len() as u32;
    let mut words = data.chunks_exact(4);
    for word in &mut words {
        let mut k = u32::from_le_bytes([word[0], word[1], word[2], word[3]]).wrapping_mul(M);
        k ^= k >> 24;
        hash = hash.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    let rest = words.remainder();
    if !rest.is_empty() {
        for (byte, shift) in rest.iter().zip([0, 8, 16]) {
            hash ^= u32::from(*byte) << shift;
        }
        hash = hash.wrapping_mul(M);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(M);
    hash ^ hash >> 15
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_hash_as_in_kafka() {
        for (key, hash) in [
            ("21", -973_932_308),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            (
                "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8",
                -58_897_971,
            ),
        ] {
            assert_eq!(murmur2(key.as_bytes()) as i32, hash, "{key}");
        }
    }
}
