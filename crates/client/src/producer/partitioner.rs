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

/// Records with the same key go to the same partition, the one that Kafka's Java producer chooses.
/// Records without a key go to any partition.
///
/// librdkafka's default is another: see [`Crc32Partitioner`].
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

/// Chooses the partitions that librdkafka chooses by default (`partitioner=consistent_random`): by
/// the CRC-32 of the key. Records with an empty key or none go to any partition.
///
/// A program that moves from librdkafka needs it if records with equal keys must go on to the same
/// partition, or if other producers of the topic use librdkafka.
#[derive(Debug, Clone, Copy, Default)]
pub struct Crc32Partitioner;

impl Partitioner for Crc32Partitioner {
    fn partition(
        &self,
        _topic: &str,
        key: Option<&[u8]>,
        _value: Option<&[u8]>,
        partitions: i32,
    ) -> Option<i32> {
        let key = key.filter(|key| !key.is_empty())?;
        let partitions = partitions.max(1).cast_unsigned();
        Some((crc32fast::hash(key) % partitions).cast_signed())
    }
}

/// Records go to any partition, whatever their key, so batches fill best.
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
    fn librdkafkas_default_is_the_crc_32_of_the_key() {
        let partition = |key: Option<&str>| {
            let key = key.map(str::as_bytes);
            Crc32Partitioner.partition("t", key, None, 17)
        };
        // CRC-32 has a published check value for these digits: 0xcbf43926.
        assert_eq!(
            partition(Some("123456789")),
            Some((0xcbf4_3926_u32 % 17) as i32)
        );
        assert_eq!(partition(Some("")), None);
        assert_eq!(partition(None), None);
    }

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
