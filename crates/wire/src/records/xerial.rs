//! Snappy as Kafka has it: blocks of raw snappy in the framing of xerial's snappy-java.
//!
//! A stream begins with a magic number and two versions, then comes each block behind its length.
//! Some clients send one raw block without any of that, and all readers take it.

use super::{Compression, RecordsError};

const MAGIC: [u8; 8] = *b"\x82SNAPPY\0";
// The magic number, the version and the oldest compatible version, both 1.
const HEADER: [u8; 16] = *b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01";
// What snappy-java takes by default.
const BLOCK_LENGTH: usize = 32 * 1024;

/// Appends `input` to `out`, compressed and framed.
pub(super) fn compress(encoder: &mut snap::raw::Encoder, input: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&HEADER);
    for block in input.chunks(BLOCK_LENGTH) {
        let start = out.len();
        out.resize(start + 4 + snap::raw::max_compress_len(block.len()), 0);
        let length = encoder
            .compress(block, &mut out[start + 4..])
            .expect("there is room for the worst case");
        out[start..start + 4].copy_from_slice(&(length as u32).to_be_bytes());
        out.truncate(start + 4 + length);
    }
}

/// Decompresses `input` behind what `out` holds, which grows by at most `limit` bytes.
pub(super) fn decompress(
    input: &[u8],
    out: &mut Vec<u8>,
    limit: usize,
) -> Result<(), RecordsError> {
    let start = out.len();
    if !input.starts_with(&MAGIC) {
        return block(input, out, limit, limit);
    }
    let mut rest = input;
    while !rest.is_empty() {
        // Streams may follow each other.
        if rest.starts_with(&MAGIC) {
            rest = rest.get(HEADER.len()..).ok_or_else(short)?;
            continue;
        }
        let (length, behind) = rest.split_first_chunk::<4>().ok_or_else(short)?;
        let length = u32::from_be_bytes(*length) as usize;
        let (packed, behind) = behind.split_at_checked(length).ok_or_else(short)?;
        block(packed, out, limit - (out.len() - start), limit)?;
        rest = behind;
    }
    Ok(())
}

fn block(packed: &[u8], out: &mut Vec<u8>, room: usize, limit: usize) -> Result<(), RecordsError> {
    let damaged = |e| Compression::Snappy.damaged(e);
    let length = snap::raw::decompress_len(packed).map_err(damaged)?;
    // Snappy's densest element is a copy of 64 bytes that takes three: what claims more lies, and
    // is not given the memory.
    if length > packed.len().saturating_mul(64) / 3 + 64 {
        return Err(Compression::Snappy.damaged("a block claims an impossible length"));
    }
    if length > room {
        return Err(RecordsError::TooLargeDecompressed { limit });
    }
    let start = out.len();
    out.resize(start + length, 0);
    let result = snap::raw::Decoder::new().decompress(packed, &mut out[start..]);
    if let Err(error) = result {
        out.truncate(start);
        return Err(damaged(error));
    }
    Ok(())
}

fn short() -> RecordsError {
    Compression::Snappy.damaged("the stream ends in the middle of a block")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_raw_block_without_framing_is_read() {
        let input = b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
        let packed = snap::raw::Encoder::new().compress_vec(input).unwrap();
        let mut out = Vec::new();
        decompress(&packed, &mut out, 1000).unwrap();
        assert_eq!(out, input);
    }

    #[test]
    fn two_streams_in_a_row_are_read() {
        let mut packed = Vec::new();
        let mut encoder = snap::raw::Encoder::new();
        compress(&mut encoder, b"one, ", &mut packed);
        compress(&mut encoder, b"two", &mut packed);
        let mut out = Vec::new();
        decompress(&packed, &mut out, 1000).unwrap();
        assert_eq!(out, b"one, two");
    }

    #[test]
    fn a_block_that_claims_gigabytes_gets_no_memory() {
        let mut out = Vec::new();
        let claim = [0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0];
        assert!(decompress(&claim, &mut out, usize::MAX).is_err());
        assert_eq!(out.capacity(), 0);
    }
}
