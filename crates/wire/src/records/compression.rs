//! The four compressions, in the framing that Kafka's clients give them.

use std::{
    cell::RefCell,
    fmt,
    io::{BufRead, Cursor, Read, Write},
    ops::RangeInclusive,
};

use lz4_flex::frame;

use super::{RecordsError, xerial};

/// How the records of a batch are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// RFC 1952.
    Gzip,
    /// Snappy in the framing of xerial's snappy-java; plain snappy is read too.
    Snappy,
    /// The LZ4 frame format.
    Lz4,
    /// RFC 8878.
    Zstd,
}

/// A compression level; what it means depends on the compression.
pub type Level = i32;

impl Compression {
    /// All of them, in the order of their ids.
    pub const ALL: [Compression; 5] = [
        Compression::None,
        Compression::Gzip,
        Compression::Snappy,
        Compression::Lz4,
        Compression::Zstd,
    ];

    /// The number in a batch's attributes.
    pub const fn id(self) -> u8 {
        self as u8
    }

    /// The compression of that number.
    pub const fn from_id(id: u8) -> Result<Compression, RecordsError> {
        match id {
            0..=4 => Ok(Compression::ALL[id as usize]),
            _ => Err(RecordsError::UnknownCompression(id)),
        }
    }

    /// Kafka's name, as in `compression.type`.
    pub const fn name(self) -> &'static str {
        match self {
            Compression::None => "none",
            Compression::Gzip => "gzip",
            Compression::Snappy => "snappy",
            Compression::Lz4 => "lz4",
            Compression::Zstd => "zstd",
        }
    }

    /// The compression of that name.
    pub fn from_name(name: &str) -> Option<Compression> {
        Compression::ALL.into_iter().find(|c| c.name() == name)
    }

    /// The levels that Kafka's settings allow, and the default.
    ///
    /// LZ4 is always written at the one level that `lz4_flex` has, the fast one: others are
    /// accepted without effect.
    pub fn levels(self) -> Option<(RangeInclusive<Level>, Level)> {
        match self {
            Compression::None | Compression::Snappy => None,
            Compression::Gzip => Some((1..=9, 6)),
            Compression::Lz4 => Some((1..=17, 9)),
            Compression::Zstd => Some((-131_072..=22, 3)),
        }
    }

    /// Decompresses all of `input` behind what `out` holds, which grows by at most `limit` bytes.
    ///
    /// Memory is reserved as the data turns out to need it, not as it claims to; beside that, no
    /// more than 13 MiB, whatever the data says (LZ4 blocks of the largest size).
    pub fn decompress(
        self,
        input: &[u8],
        out: &mut Vec<u8>,
        limit: usize,
    ) -> Result<(), RecordsError> {
        let start = out.len();
        match self {
            Compression::None => {
                if input.len() > limit {
                    return Err(RecordsError::TooLargeDecompressed { limit });
                }
                out.extend_from_slice(input);
                Ok(())
            }
            Compression::Gzip => {
                out.reserve(input.len().saturating_mul(3).min(limit));
                let decoder = flate2::bufread::MultiGzDecoder::new(input);
                let read = decoder.take(limit as u64 + 1).read_to_end(out);
                read.map_err(|e| self.damaged(e))?;
                check_limit(out.len() - start, limit)
            }
            Compression::Snappy => xerial::decompress(input, out, limit),
            Compression::Lz4 => {
                // lz4_flex reads legacy frames too, which no Kafka client does.
                if !input.starts_with(&LZ4_MAGIC) {
                    return Err(self.damaged("this is no LZ4 frame"));
                }
                out.reserve(input.len().saturating_mul(3).min(limit));
                let mut decoder = frame::FrameDecoder::new(input);
                loop {
                    // One block at a time. As in Kafka, the first frame is all there is.
                    let block = decoder.fill_buf().map_err(|e| self.damaged(e))?;
                    if block.is_empty() {
                        return Ok(());
                    }
                    let length = block.len();
                    check_limit(out.len() - start + length, limit)?;
                    out.extend_from_slice(block);
                    decoder.consume(length);
                }
            }
            Compression::Zstd => decompress_zstd(input, out, limit),
        }
    }

    pub(super) fn damaged(self, error: impl fmt::Display) -> RecordsError {
        RecordsError::Decompression(self, error.to_string())
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

const LZ4_MAGIC: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];

fn check_limit(length: usize, limit: usize) -> Result<(), RecordsError> {
    if length > limit {
        Err(RecordsError::TooLargeDecompressed { limit })
    } else {
        Ok(())
    }
}

fn decompress_zstd(input: &[u8], out: &mut Vec<u8>, limit: usize) -> Result<(), RecordsError> {
    use zstd::zstd_safe;

    thread_local! {
        // A context is 160 KB: too much to make for each batch.
        static CONTEXT: RefCell<zstd_safe::DCtx<'static>> = RefCell::new(zstd_safe::DCtx::create());
    }
    // ZSTD_error_dstSize_tooSmall; zstd promises that the codes stay.
    const TOO_SMALL: usize = 70_usize.wrapping_neg();

    // Decompressing at once needs no window beside the output, but the output's size. Java's
    // frames don't carry it, and one that is carried may be a lie: guess, and double.
    let claimed = match zstd_safe::get_frame_content_size(input) {
        Ok(Some(size)) => usize::try_from(size).unwrap_or(usize::MAX),
        _ => input.len().saturating_mul(4).max(1024),
    };
    let start = out.len();
    let believable = input.len().saturating_mul(32).saturating_add(1024);
    let mut room = claimed.min(believable).min(limit);
    CONTEXT.with_borrow_mut(|context| {
        loop {
            out.reserve(room);
            // The vector may have more room than was asked for, and zstd would use it.
            let mut cursor = Cursor::new(&mut *out);
            cursor.set_position(start as u64);
            match context.decompress(&mut cursor, input) {
                Ok(length) => return check_limit(length, limit),
                Err(TOO_SMALL) if room < limit => {
                    out.truncate(start);
                    room = room
                        .max(out.capacity() - start)
                        .saturating_mul(2)
                        .min(limit);
                }
                Err(TOO_SMALL) => {
                    out.truncate(start);
                    return Err(RecordsError::TooLargeDecompressed { limit });
                }
                Err(code) => {
                    out.truncate(start);
                    return Err(Compression::Zstd.damaged(zstd_safe::get_error_name(code)));
                }
            }
        }
    })
}

/// Compresses, keeping buffers and contexts from one batch to the next.
pub struct Compressor {
    compression: Compression,
    level: Level,
    snappy: Option<snap::raw::Encoder>,
}

impl fmt::Debug for Compressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Compressor({}, level {})", self.compression, self.level)
    }
}

impl Compressor {
    /// A compressor; the level (default: Kafka's) is brought into the range of
    /// [`Compression::levels`].
    pub fn new(compression: Compression, level: Option<Level>) -> Compressor {
        let level = match (compression.levels(), level) {
            (Some((range, _)), Some(level)) => level.clamp(*range.start(), *range.end()),
            (Some((_, default)), None) => default,
            (None, _) => 0,
        };
        Compressor {
            compression,
            level,
            snappy: None,
        }
    }

    /// What it compresses with.
    pub const fn compression(&self) -> Compression {
        self.compression
    }

    /// Appends `input`, compressed, to `out`.
    pub fn compress(&mut self, input: &[u8], out: &mut Vec<u8>) {
        // Writing to memory cannot fail: what the encoders return as errors are those of the
        // writer below them.
        const INFALLIBLE: &str = "compressing into memory";
        match self.compression {
            Compression::None => out.extend_from_slice(input),
            Compression::Gzip => {
                let level = flate2::Compression::new(self.level as u32);
                let mut encoder = flate2::write::GzEncoder::new(out, level);
                encoder.write_all(input).expect(INFALLIBLE);
                encoder.finish().expect(INFALLIBLE);
            }
            Compression::Snappy => {
                let encoder = self.snappy.get_or_insert_with(snap::raw::Encoder::new);
                xerial::compress(encoder, input, out);
            }
            Compression::Lz4 => {
                // What Kafka's clients write: readers with little memory rely on it.
                let info = frame::FrameInfo::new()
                    .block_size(frame::BlockSize::Max64KB)
                    .block_mode(frame::BlockMode::Independent);
                let mut encoder = frame::FrameEncoder::with_frame_info(info, out);
                encoder.write_all(input).expect(INFALLIBLE);
                encoder.finish().expect(INFALLIBLE);
            }
            Compression::Zstd => compress_zstd(input, out, self.level),
        }
    }
}

fn compress_zstd(input: &[u8], out: &mut Vec<u8>, level: Level) {
    use zstd::zstd_safe;

    thread_local! {
        // A context is more than 1 MB, and warm in the caches if it is always the same.
        static CONTEXT: RefCell<zstd_safe::CCtx<'static>> = RefCell::new(zstd_safe::CCtx::create());
    }
    let start = out.len();
    out.reserve(zstd_safe::compress_bound(input.len()));
    let mut cursor = Cursor::new(out);
    cursor.set_position(start as u64);
    CONTEXT
        .with_borrow_mut(|context| context.compress(&mut cursor, input, level))
        .expect("there is room for the worst case");
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn inputs() -> Vec<Vec<u8>> {
        let noise = (0..200_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 23) as u8);
        vec![
            Vec::new(),
            b"x".to_vec(),
            vec![7; 300_000],
            noise.collect(),
            b"the same again and ".repeat(8000),
        ]
    }

    #[test]
    fn each_compression_reads_back_what_it_wrote_at_every_level() {
        for compression in Compression::ALL {
            for level in [None, Some(-5), Some(1), Some(9), Some(100)] {
                let mut compressor = Compressor::new(compression, level);
                for input in inputs() {
                    let mut packed = b"head".to_vec();
                    compressor.compress(&input, &mut packed);
                    let mut out = b"before".to_vec();
                    compression
                        .decompress(&packed[4..], &mut out, input.len())
                        .unwrap();
                    assert_eq!(&out[6..], input, "{compression} {level:?}");
                }
            }
        }
    }

    #[test]
    fn no_more_than_the_limit_is_decompressed_or_reserved() {
        for compression in Compression::ALL {
            let mut packed = Vec::new();
            Compressor::new(compression, None).compress(&vec![0; 50 << 20], &mut packed);
            for limit in [0, 1, 1000, 1 << 20] {
                let mut out = Vec::new();
                assert_eq!(
                    compression.decompress(&packed, &mut out, limit),
                    Err(RecordsError::TooLargeDecompressed { limit }),
                    "{compression}"
                );
                assert!(out.capacity() <= 3 * limit + 1024, "{}", out.capacity());
            }
        }
    }

    #[test]
    fn a_zstd_frame_without_its_size_is_read_whatever_the_ratio() {
        for length in [0, 10, 5000, 3 << 20] {
            let input = vec![1; length];
            let packed = zstd::stream::encode_all(&input[..], 3).unwrap();
            let mut out = Vec::new();
            Compression::Zstd
                .decompress(&packed, &mut out, 3 << 20)
                .unwrap();
            assert_eq!(out, input);
        }
    }

    #[test]
    fn an_lz4_frame_with_linked_blocks_and_checksums_is_read() {
        let input = b"some text that repeats, and repeats ".repeat(20_000);
        let info = frame::FrameInfo::new()
            .block_mode(frame::BlockMode::Linked)
            .block_checksums(true)
            .content_checksum(true);
        let mut encoder = frame::FrameEncoder::with_frame_info(info, Vec::new());
        encoder.write_all(&input).unwrap();
        let packed = encoder.finish().unwrap();
        let mut out = Vec::new();
        Compression::Lz4
            .decompress(&packed, &mut out, input.len())
            .unwrap();
        assert_eq!(out, input);
    }

    #[test]
    fn lz4_is_framed_as_kafka_frames_it() {
        let mut packed = Vec::new();
        Compressor::new(Compression::Lz4, None).compress(b"value", &mut packed);
        assert_eq!(packed[..7], [0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82]);
    }

    proptest! {
        #[test]
        fn damaged_data_is_an_error_or_other_data_but_never_more_than_the_limit(
            id in 1u8..5,
            input in proptest::collection::vec(0u8..4, 0..3000),
            damage in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..4),
            cut in any::<proptest::sample::Index>(),
        ) {
            let compression = Compression::from_id(id).unwrap();
            let mut packed = Vec::new();
            Compressor::new(compression, None).compress(&input, &mut packed);
            for (at, byte) in damage {
                let at = at.index(packed.len());
                packed[at] = byte;
            }
            packed.truncate(cut.index(packed.len() * 2));
            let mut out = Vec::new();
            let _ = compression.decompress(&packed, &mut out, 10_000);
            prop_assert!(out.len() <= 10_001);
            prop_assert!(out.capacity() <= 32_000);
        }

        #[test]
        fn noise_is_an_error_or_data_but_never_more_than_the_limit(
            id in 1u8..5,
            noise: Vec<u8>,
        ) {
            let mut out = Vec::new();
            let _ = Compression::from_id(id).unwrap().decompress(&noise, &mut out, 10_000);
            prop_assert!(out.len() <= 10_001);
        }
    }
}
