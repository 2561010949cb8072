//! Every message in every version says the same after it has been read and written.

mod support;

use kohort_wire::codec::Versions;
use support::{Generator, Shape, case_rng, every_message, hex, seed};

#[test]
fn every_message_in_every_version_is_written_as_it_was_read() {
    let seed = seed();
    println!("KOHORT_TEST_SEED={seed}");
    for message in every_message() {
        for version in message.every_version() {
            for case in 0..60 {
                let shape = match case {
                    0..10 => Shape::Full,
                    10..20 => Shape::SmallElements,
                    _ => Shape::Random,
                };
                let rng = case_rng(seed, message.name, version, case);
                let frame = Generator::new(rng, shape).frame(&message.schema, version);
                let context = || format!("{} v{version}, case {case}", message.name);
                match (message.recode)(&frame, version) {
                    Ok(written) if written == frame => {}
                    Ok(written) => panic!(
                        "{}:\nread    {}\nwritten {}",
                        context(),
                        hex(&frame),
                        hex(&written)
                    ),
                    Err(error) => panic!("{}: {error}\nof {}", context(), hex(&frame)),
                }
            }
        }
    }
}

#[test]
fn the_default_of_every_message_can_be_written_in_every_version() {
    for message in every_message() {
        for version in message.every_version() {
            let frame = (message.encode_default)(version)
                .unwrap_or_else(|error| panic!("{} v{version}: {error}", message.name));
            let written = (message.recode)(&frame, version)
                .unwrap_or_else(|error| panic!("{} v{version}: {error}", message.name));
            assert_eq!(written, frame, "{} v{version}", message.name);
        }
    }
}

#[test]
fn a_frame_cut_short_anywhere_is_an_error() {
    for message in every_message() {
        for version in message.every_version() {
            let rng = case_rng(seed(), message.name, version, 0);
            let frame = Generator::new(rng, Shape::Full).frame(&message.schema, version);
            for length in 0..frame.len() {
                let cut = frame.slice(..length);
                assert!(
                    (message.decode)(&cut, version).is_err(),
                    "{} v{version} is read from {length} of {} bytes: {}",
                    message.name,
                    frame.len(),
                    hex(&frame)
                );
            }
        }
    }
}

#[test]
fn versions_that_do_not_exist_are_neither_read_nor_written() {
    for message in every_message() {
        let Versions { first, last } = message.versions;
        for version in [i16::MIN, first - 1, last + 1, i16::MAX] {
            assert!((message.decode)(&Default::default(), version).is_err());
            assert!((message.encode_default)(version).is_err());
        }
    }
}
