//! The rules of the encoding, one by one.

#![allow(missing_docs)] // The message of this test says what it is.

use bytes::Bytes;
use kohort_wire::{
    ByteString, Uuid,
    codec::{DecodeError, Decoder, EncodeError, Encoder, Field, Message, Problem},
};

kohort_wire::message! {
    /// A message with a field for each rule.
    pub struct Sample: 0..=4, flexible 3.. {
        always: i16 [0..],
        middle: i32 [1..=2] = 7,
        left_out: i32 [2.., ignorable] = -1,
        text: Option<ByteString> [0.., null 1..] = Some(Default::default()),
        list: Option<Vec<i8>> [1.., null 2..] = Some(Default::default()),
        part: Option<SamplePart> [3.., null 3..],
        first_tag: ByteString [3.., tag 0],
        second_tag: Bytes [4.., tag 3, ignorable],
    }

    /// A struct within it.
    pub struct SamplePart {
        id: Uuid [0..],
        names: Vec<ByteString> [0..],
    }
}

fn encode<M: Message>(message: &M, version: i16) -> Result<Bytes, EncodeError> {
    let mut out = Encoder::new();
    message.encode(&mut out, version)?;
    Ok(out.finish().into_bytes())
}

fn decode<M: Message>(frame: &[u8], version: i16) -> Result<M, DecodeError> {
    let mut input = Decoder::new(Bytes::copy_from_slice(frame));
    let message = M::decode(&mut input, version)?;
    input.finish()?;
    Ok(message)
}

fn written<F: Field>(value: &F, flexible: bool) -> Result<Bytes, EncodeError> {
    let mut out = Encoder::new();
    value.write(&mut out, 0, flexible)?;
    Ok(out.finish().into_bytes())
}

fn read<F: Field>(frame: &[u8], flexible: bool) -> Result<F, Problem> {
    let mut input = Decoder::new(Bytes::copy_from_slice(frame));
    let value = F::read(&mut input, 0, flexible).map_err(|error| error.problem)?;
    input.finish().map_err(|error| error.problem)?;
    Ok(value)
}

#[test]
fn varints_grow_by_a_byte_every_seven_bits() {
    let borders: [(u32, &[u8]); 10] = [
        (0, &[0]),
        (0x7f, &[0x7f]),
        (0x80, &[0x80, 0x01]),
        (0x3fff, &[0xff, 0x7f]),
        (0x4000, &[0x80, 0x80, 0x01]),
        (0x1f_ffff, &[0xff, 0xff, 0x7f]),
        (0x20_0000, &[0x80, 0x80, 0x80, 0x01]),
        (0x0fff_ffff, &[0xff, 0xff, 0xff, 0x7f]),
        (0x1000_0000, &[0x80, 0x80, 0x80, 0x80, 0x01]),
        (u32::MAX, &[0xff, 0xff, 0xff, 0xff, 0x0f]),
    ];
    for (value, bytes) in borders {
        let mut out = Encoder::new();
        out.unsigned_varint(value);
        assert_eq!(out.finish().into_bytes(), bytes, "{value}");
        let mut input = Decoder::new(Bytes::copy_from_slice(bytes));
        assert_eq!(input.unsigned_varint(), Ok(value));
        assert_eq!(input.remaining(), 0);
        for length in 0..bytes.len() {
            let mut input = Decoder::new(Bytes::copy_from_slice(&bytes[..length]));
            let error = input.unsigned_varint().expect_err("cut short");
            assert_eq!(error.problem, Problem::Truncated);
        }
    }
}

#[test]
fn varints_that_are_too_long_are_refused_and_wasteful_ones_read() {
    for bytes in [
        &[0xff, 0xff, 0xff, 0xff, 0x10][..],
        &[0x80, 0x80, 0x80, 0x80, 0x80, 0x00],
        &[0xff; 10],
    ] {
        let mut input = Decoder::new(Bytes::copy_from_slice(bytes));
        let error = input.unsigned_varint().expect_err("too long");
        assert_eq!(error.problem, Problem::Varint);
    }
    let mut input = Decoder::new(Bytes::from_static(&[0x81, 0x80, 0x00]));
    assert_eq!(input.unsigned_varint(), Ok(1));
}

#[test]
fn numbers_are_big_endian() {
    assert_eq!(written(&-2i8, false).unwrap(), &[0xfe][..]);
    assert_eq!(written(&0x0102i16, true).unwrap(), &[1, 2][..]);
    assert_eq!(written(&0xfffeu16, false).unwrap(), &[0xff, 0xfe][..]);
    assert_eq!(written(&0x0102_0304i32, true).unwrap(), &[1, 2, 3, 4][..]);
    assert_eq!(written(&1u32, true).unwrap(), &[0, 0, 0, 1][..]);
    assert_eq!(written(&-1i64, false).unwrap(), &[0xff; 8][..]);
    assert_eq!(
        written(&1.0f64, false).unwrap(),
        &[0x3f, 0xf0, 0, 0, 0, 0, 0, 0][..]
    );
    assert_eq!(written(&Uuid(1), true).unwrap()[15], 1);
    assert_eq!(read::<i64>(&i64::MIN.to_be_bytes(), false), Ok(i64::MIN));
    assert_eq!(read::<u32>(&[0xff; 4], false), Ok(u32::MAX));
    assert_eq!(read::<i32>(&[0; 3], false), Err(Problem::Truncated));
    assert_eq!(read::<i32>(&[0; 5], false), Err(Problem::Trailing(1)));
    // As Kafka reads them.
    assert_eq!(read::<bool>(&[2], false), Ok(true));
}

#[test]
fn texts_have_short_lengths_or_compact_ones() {
    let text = ByteString::from("äb");
    assert_eq!(written(&text, false).unwrap(), &b"\0\x03\xc3\xa4b"[..]);
    assert_eq!(written(&text, true).unwrap(), &b"\x04\xc3\xa4b"[..]);
    let null: Option<ByteString> = None;
    assert_eq!(written(&null, false).unwrap(), &[0xff, 0xff][..]);
    assert_eq!(written(&null, true).unwrap(), &[0][..]);

    let long = ByteString::from("x".repeat(i16::MAX as usize));
    assert_eq!(read(&written(&long, false).unwrap(), false), Ok(long));
    let longer = ByteString::from("x".repeat(i16::MAX as usize + 1));
    assert_eq!(
        written(&longer, false),
        Err(EncodeError::TooLong { length: 32768 })
    );
    assert_eq!(
        written(&longer, true),
        Err(EncodeError::TooLong { length: 32768 })
    );
    // 32,769 as a compact length.
    let compact = [&[0x81, 0x80, 0x02][..], longer.as_bytes()].concat();
    assert_eq!(
        read::<ByteString>(&compact, true),
        Err(Problem::TextLength(32768))
    );

    assert_eq!(
        read::<ByteString>(&[0xff, 0xfe], false),
        Err(Problem::Length(-2))
    );
    assert_eq!(
        read::<ByteString>(&[0, 3, b'a'], false),
        Err(Problem::Length(3))
    );
    assert_eq!(read::<ByteString>(&[0xff, 0xff], false), Err(Problem::Null));
    assert_eq!(read::<ByteString>(&[0], true), Err(Problem::Null));
    assert_eq!(
        read::<ByteString>(&[3, 0xc3], true),
        Err(Problem::Length(2))
    );
}

#[test]
fn a_text_that_is_not_utf8_is_read_as_java_reads_it() {
    // What Java 17 makes of `new String(bytes, UTF_8)`.
    let read_as: [(&[u8], &str); 9] = [
        (b"a\xffb", "a\u{fffd}b"),
        (b"\xff\xfe", "\u{fffd}\u{fffd}"),
        (b"\xc3", "\u{fffd}"),
        (b"\xe2\x82", "\u{fffd}"),
        (b"\xe2\x82x", "\u{fffd}x"),
        (b"\xf0\x9f\x98", "\u{fffd}"),
        // Surrogates, which UTF-8 does not have: one error each.
        (b"\xed\xa0\x80x", "\u{fffd}x"),
        (b"\xed\xa0x", "\u{fffd}x"),
        (b"\xc0\x80", "\u{fffd}\u{fffd}"),
    ];
    for (bytes, expected) in read_as {
        let short = [&(bytes.len() as i16).to_be_bytes()[..], bytes].concat();
        let compact = [&[bytes.len() as u8 + 1][..], bytes].concat();
        for (written, flexible) in [(short, false), (compact, true)] {
            let text = read::<ByteString>(&written, flexible);
            assert_eq!(text.as_deref(), Ok(expected), "{bytes:02x?}");
        }
    }
}

/// Whatever is read can be written again: a record or a response never fails because of a text.
#[test]
fn a_text_that_grows_too_long_when_it_is_made_utf8_is_refused() {
    let with_length = |bytes: &[u8]| [&(bytes.len() as i16).to_be_bytes()[..], bytes].concat();
    let text = read::<ByteString>(&with_length(&[0xff; 10_922]), false).unwrap();
    assert_eq!(text.len(), 32_766);
    assert!(written(&text, false).is_ok() && written(&text, true).is_ok());
    assert_eq!(
        read::<ByteString>(&with_length(&[0xff; 10_923]), false),
        Err(Problem::TextLength(32_769))
    );
}

#[test]
fn lists_have_wide_lengths_or_compact_ones() {
    let list = vec![1i8, -1];
    assert_eq!(written(&list, false).unwrap(), &[0, 0, 0, 2, 1, 0xff][..]);
    assert_eq!(written(&list, true).unwrap(), &[3, 1, 0xff][..]);
    let null: Option<Vec<i8>> = None;
    assert_eq!(written(&null, false).unwrap(), &[0xff; 4][..]);
    assert_eq!(read(&[0xff; 4], false), Ok(null.clone()));
    assert_eq!(read(&[0], true), Ok(null));
    assert_eq!(
        read::<Vec<i8>>(&[0xff, 0xff, 0xff, 0xfe], false),
        Err(Problem::Length(-2))
    );
}

#[test]
fn a_small_frame_that_claims_gigabytes_is_refused_at_once() {
    let most = [0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0];
    let length = Problem::Length(i32::MAX.into());
    assert_eq!(read::<Vec<i8>>(&most, false), Err(length));
    assert_eq!(read::<Vec<Vec<Uuid>>>(&most, false), Err(length));
    assert_eq!(read::<Bytes>(&most, false), Err(length));
    let compact = [0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0, 0, 0, 0, 0, 0];
    let length = Problem::Length(u32::MAX as i64 - 1);
    assert_eq!(read::<Vec<ByteString>>(&compact, true), Err(length));
    let text = Problem::TextLength(u32::MAX as usize - 1);
    assert_eq!(read::<ByteString>(&compact, true), Err(text));
}

#[test]
fn lists_within_lists_share_what_memory_the_frame_may_cost() {
    // Each list claims as many elements as there are bytes left, which for one would be fine.
    let mut frame = Vec::new();
    for count in [1008u32, 1004, 1000] {
        frame.extend(count.to_be_bytes());
    }
    frame.extend([0; 1000]);
    assert_eq!(
        read::<Vec<Vec<Vec<Bytes>>>>(&frame, false),
        Err(Problem::Budget)
    );
}

#[test]
fn a_field_stands_only_in_its_versions() {
    let sample = Sample {
        always: 1,
        text: Some("a".into()),
        ..Default::default()
    };
    assert_eq!(encode(&sample, 0).unwrap(), &b"\0\x01\0\x01a"[..]);
    assert_eq!(
        encode(&sample, 1).unwrap(),
        &b"\0\x01\0\0\0\x07\0\x01a\0\0\0\0"[..]
    );
    assert_eq!(
        encode(&sample, 3).unwrap(),
        &b"\0\x01\xff\xff\xff\xff\x02a\x01\xff\0"[..]
    );
    for version in 0..=4 {
        let frame = encode(&sample, version).unwrap();
        assert_eq!(decode::<Sample>(&frame, version), Ok(sample.clone()));
    }
}

#[test]
fn a_value_that_a_version_cannot_carry_is_an_error_unless_it_may_be_left_out() {
    let middle = Sample {
        middle: 8,
        ..Default::default()
    };
    let not_carried = |version| EncodeError::FieldNotInVersion {
        field: "Sample.middle",
        version,
    };
    assert_eq!(encode(&middle, 0), Err(not_carried(0)));
    assert!(encode(&middle, 1).is_ok());
    assert_eq!(encode(&middle, 3), Err(not_carried(3)));

    let left_out = Sample {
        left_out: 8,
        second_tag: Bytes::from_static(b"tag"),
        ..Default::default()
    };
    let frame = encode(&left_out, 1).unwrap();
    assert_eq!(decode::<Sample>(&frame, 1), Ok(Sample::default()));

    let tagged = Sample {
        first_tag: "tag".into(),
        ..Default::default()
    };
    let error = EncodeError::FieldNotInVersion {
        field: "Sample.first_tag",
        version: 2,
    };
    assert_eq!(encode(&tagged, 2), Err(error));
}

#[test]
fn null_is_written_and_read_only_where_it_may_be() {
    let null = Sample {
        text: None,
        ..Default::default()
    };
    let error = EncodeError::Null {
        field: "Sample.text",
        version: 0,
    };
    assert_eq!(encode(&null, 0), Err(error));
    let error = decode::<Sample>(b"\0\x01\xff\xff", 0).expect_err("null");
    assert_eq!((error.field, error.problem), ("Sample.text", Problem::Null));
    assert_eq!(error.to_string(), "Sample.text: null where a value must be");
    for version in 1..=4 {
        let frame = encode(&null, version).unwrap();
        assert_eq!(decode::<Sample>(&frame, version), Ok(null.clone()));
    }
}

#[test]
fn an_error_names_the_innermost_field() {
    let frame = b"\0\x01\xff\xff\xff\xff\x01\x01\x01aaaabbbbccccdddd\x02\x05e";
    let error = decode::<Sample>(frame, 3).expect_err("a name that is too long");
    assert_eq!(error.field, "SamplePart.names");
    assert_eq!(error.problem, Problem::Length(4));
}

/// Version 4 of the default message, up to the number of its tagged fields.
const BEFORE_TAGS: &[u8] = b"\0\0\xff\xff\xff\xff\x01\x01\xff";

fn with_tags(tags: &[u8]) -> Result<Sample, DecodeError> {
    decode(&[BEFORE_TAGS, tags].concat(), 4)
}

#[test]
fn tagged_fields_come_in_any_order_and_unknown_ones_are_passed_over() {
    let expected = Sample {
        first_tag: "ab".into(),
        second_tag: Bytes::from_static(b"c"),
        ..Default::default()
    };
    let in_order = b"\x02\x00\x03\x03ab\x03\x02\x02c";
    assert_eq!(with_tags(in_order), Ok(expected.clone()));
    assert_eq!(
        encode(&expected, 4).unwrap(),
        [BEFORE_TAGS, in_order].concat()
    );
    let turned = b"\x02\x03\x02\x02c\x00\x03\x03ab";
    assert_eq!(with_tags(turned), Ok(expected.clone()));
    let unknown =
        b"\x04\x00\x03\x03ab\x01\x00\x03\x02\x02c\xff\xff\xff\xff\x0f\x04\x00\x01\x02\x03";
    assert_eq!(with_tags(unknown), Ok(expected.clone()));
    // The last one counts.
    let twice = b"\x03\x00\x02\x02z\x00\x03\x03ab\x03\x02\x02c";
    assert_eq!(with_tags(twice), Ok(expected));
    // Version 3 does not know the second tag yet.
    let frame = [BEFORE_TAGS, b"\x01\x03\x02\x02c"].concat();
    assert_eq!(decode::<Sample>(&frame, 3), Ok(Sample::default()));
}

#[test]
fn a_tagged_field_fills_exactly_its_length() {
    let problem = |tags: &[u8]| with_tags(tags).expect_err("a wrong length").problem;
    assert_eq!(problem(b"\x01\x00\x04\x03ab\x00"), Problem::Trailing(1));
    assert_eq!(problem(b"\x01\x00\x02\x03ab"), Problem::Length(2));
    assert_eq!(problem(b"\x01\x00\x09\x03ab"), Problem::Length(9));
    assert_eq!(problem(b"\x01\x01\x09ab"), Problem::Length(9));
    assert_eq!(problem(b"\xff\xff\xff\xff\x0f"), Problem::Truncated);
}

#[test]
fn a_tagged_field_may_have_any_length() {
    for length in [
        1, 125, 126, 127, 128, 4094, 4096, 16_380, 16_381, 16_382, 16_400,
    ] {
        let sample = Sample {
            first_tag: "x".repeat(length).into(),
            second_tag: vec![7; length].into(),
            ..Default::default()
        };
        let mut out = Encoder::new();
        sample.encode(&mut out, 4).unwrap();
        let length_said = out.len();
        let frame = out.finish();
        assert_eq!(frame.len(), length_said);
        assert_eq!(
            decode::<Sample>(&frame.into_bytes(), 4),
            Ok(sample),
            "{length}"
        );
    }
}

#[test]
fn long_byte_strings_are_never_copied() {
    let long = Bytes::from(vec![7; 5000]);
    let sample = Sample {
        second_tag: long.clone(),
        ..Default::default()
    };
    let mut out = Encoder::new();
    sample.encode(&mut out, 4).unwrap();
    let frame = out.finish();
    let shared = |piece: &Bytes| piece.as_ptr() == long.as_ptr();
    assert!(frame.pieces().iter().any(shared));

    let frame = frame.into_bytes();
    let read = Sample::decode(&mut Decoder::new(frame.clone()), 4).unwrap();
    assert!(frame.as_ptr_range().contains(&read.second_tag.as_ptr()));
}

#[test]
fn an_encoder_keeps_what_is_written_after_a_long_byte_string_in_order() {
    let long = Bytes::from(vec![1; 4096]);
    let parts = vec![
        Bytes::from_static(b"a"),
        long.clone(),
        long,
        Bytes::from_static(b"b"),
    ];
    assert_eq!(read(&written(&parts, true).unwrap(), true), Ok(parts));
}

/// What Kafka 4.4.0's own class `ConsumerGroupMemberMetadataValue` writes.
#[test]
fn a_struct_in_a_tagged_field_says_null_as_kafkas_code_does() {
    use kohort_wire::messages::{ClassicMemberMetadata, ConsumerGroupMemberMetadataValue};

    let member = |classic_member_metadata| ConsumerGroupMemberMetadataValue {
        classic_member_metadata,
        ..Default::default()
    };
    let session = ClassicMemberMetadata {
        session_timeout_ms: 5,
        ..Default::default()
    };
    let start = b"\x01\x01\x01\x01\x01\x01\xff\xff\xff\xff\x01";
    let cases: [(_, &[u8]); 3] = [
        (None, b"\x01\x00\x01\x00"),
        (Some(ClassicMemberMetadata::default()), b"\x00"),
        (Some(session), b"\x01\x00\x07\x01\x00\x00\x00\x05\x01\x00"),
    ];
    for (classic, tags) in cases {
        let frame = [start, tags].concat();
        assert_eq!(encode(&member(classic.clone()), 0).unwrap(), frame);
        assert_eq!(decode(&frame, 0), Ok(member(classic)));
    }
}
