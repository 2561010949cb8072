//! The codec of `kafka-protocol`, written by others from Kafka's schemas, reads what kohort writes
//! and writes what kohort reads.

mod support;

use bytes::{Bytes, BytesMut};
use kafka_protocol::{
    messages as theirs,
    protocol::{Decodable, Encodable, Message as TheirMessage},
};
use kohort_wire::{ApiKey, ErrorCode, codec::Versions, frame};
use support::{Generator, Shape, case_rng, every_message, hex, seed};

struct Oracle {
    name: &'static str,
    versions: Versions,
    recode: fn(&Bytes, i16) -> Result<Bytes, String>,
}

fn oracle<M: TheirMessage + Decodable + Encodable>(name: &'static str) -> Oracle {
    Oracle {
        name,
        versions: Versions::new(M::VERSIONS.min, M::VERSIONS.max),
        recode: |frame, version| {
            let mut input = frame.clone();
            let value = M::decode(&mut input, version).map_err(|error| error.to_string())?;
            if !input.is_empty() {
                return Err(format!("{} bytes are left over", input.len()));
            }
            let mut out = BytesMut::new();
            value
                .encode(&mut out, version)
                .map_err(|error| error.to_string())?;
            Ok(out.freeze())
        },
    }
}

macro_rules! oracles {
    ($($name:ident: $request:ident => $response:ident;)*) => {
        fn oracles() -> Vec<Oracle> {
            vec![
                $(
                    oracle::<theirs::$request>(stringify!($request)),
                    oracle::<theirs::$response>(stringify!($response)),
                )*
                oracle::<theirs::ConsumerProtocolSubscription>("ConsumerProtocolSubscription"),
                oracle::<theirs::ConsumerProtocolAssignment>("ConsumerProtocolAssignment"),
            ]
        }
    };
}
kohort_wire::for_each_api!(oracles);

#[test]
fn both_codecs_read_and_write_the_same_bytes() {
    let seed = seed();
    println!("KOHORT_TEST_SEED={seed}");
    let messages = every_message();
    let (mut compared, mut versions_compared) = (0, 0);
    let mut differences = Vec::new();
    for oracle in oracles() {
        let message = messages
            .iter()
            .find(|message| message.name == oracle.name)
            .expect("kohort has the message");
        for version in message.every_version() {
            if !oracle.versions.contains(version) {
                println!("{} v{version} is newer than the oracle", message.name);
                continue;
            }
            versions_compared += 1;
            for case in 0..40 {
                let shape = if case < 10 {
                    Shape::Full
                } else {
                    Shape::Random
                };
                let rng = case_rng(seed, message.name, version, case);
                let frame = Generator::new(rng, shape).frame(&message.schema, version);
                let ours = (message.recode)(&frame, version);
                let theirs = (oracle.recode)(&frame, version);
                compared += 1;
                if ours.as_ref() != Ok(&frame) || theirs.as_ref() != Ok(&frame) {
                    let show = |result: Result<Bytes, String>| match result {
                        Ok(bytes) if bytes == frame => "the same".to_owned(),
                        Ok(bytes) => hex(&bytes),
                        Err(error) => error,
                    };
                    differences.push(format!(
                        "{} v{version}, case {case}: {}\nours:   {}\ntheirs: {}",
                        message.name,
                        hex(&frame),
                        show(ours),
                        show(theirs)
                    ));
                    break;
                }
            }
        }
    }
    println!("{compared} frames of {versions_compared} versions are the same in both codecs");
    assert!(differences.is_empty(), "{}", differences.join("\n\n"));
}

#[test]
fn both_codecs_write_the_same_headers() {
    use kafka_protocol::protocol::StrBytes;

    for &api in ApiKey::ALL {
        let Ok(their_api) = theirs::ApiKey::try_from(api as i16) else {
            panic!("the oracle does not know {api}");
        };
        let versions = their_api.valid_versions();
        for version in
            api.versions().first.max(versions.min)..=api.versions().last.min(versions.max)
        {
            assert_eq!(
                api.request_header_version(version),
                their_api.request_header_version(version),
                "{api} v{version}"
            );
            assert_eq!(
                api.response_header_version(version),
                their_api.response_header_version(version),
                "{api} v{version}"
            );
            for client_id in [None, Some(""), Some("a client")] {
                let mut out = BytesMut::new();
                theirs::RequestHeader::default()
                    .with_request_api_key(api as i16)
                    .with_request_api_version(version)
                    .with_correlation_id(-7)
                    .with_client_id(client_id.map(StrBytes::from_static_str))
                    .encode(&mut out, their_api.request_header_version(version))
                    .expect("a header");
                let mut input = kohort_wire::codec::Decoder::new(out.freeze());
                let header = frame::RequestHeader::decode(&mut input).expect("a header");
                input.finish().expect("nothing follows");
                assert_eq!(header.api_key, api as i16);
                assert_eq!(header.api_version, version);
                assert_eq!(header.correlation_id, -7);
                assert_eq!(header.client_id.as_deref(), client_id);
            }
        }
    }
}

#[test]
fn both_have_the_same_error_codes() {
    use kafka_protocol::ResponseError;

    let letters = |name: &str| name.replace('_', "").to_lowercase();
    for code in -1..=i16::MAX {
        match ResponseError::try_from_code(code) {
            None | Some(ResponseError::Unknown(_)) => {}
            Some(theirs) => {
                let ours = ErrorCode(code)
                    .name()
                    .unwrap_or_else(|| panic!("kohort does not know {theirs:?}, {code}"));
                assert_eq!(letters(ours), letters(&format!("{theirs:?}")), "{code}");
            }
        }
    }
}
