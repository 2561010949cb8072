//! Requests and responses with what stands before them.

use bytes::Bytes;
use kohort_wire::{
    ApiKey, ByteString, Request,
    codec::{Decoder, Frame, Problem, Versions},
    frame::{self, RequestHeader},
    messages::*,
};

/// A frame without its length, which must be right.
fn received(frame: Frame) -> Bytes {
    let mut bytes = frame.into_bytes();
    let length = bytes.split_to(4);
    assert_eq!(length, (bytes.len() as u32).to_be_bytes()[..]);
    bytes
}

#[test]
fn a_request_is_read_as_it_was_sent_in_every_header() {
    let request = HeartbeatRequest {
        group_id: "group".into(),
        generation_id: 3,
        member_id: "member".into(),
        ..Default::default()
    };
    for version in 0..=4 {
        for client_id in [None, Some(""), Some("client")] {
            let frame = frame::encode_request(&request, version, 77, client_id).unwrap();
            let mut input = Decoder::new(received(frame));
            let header = RequestHeader::decode(&mut input).unwrap();
            let expected = RequestHeader {
                api_key: 12,
                api_version: version,
                correlation_id: 77,
                client_id: client_id.map(ByteString::from),
            };
            assert_eq!(header, expected);
            let read = frame::decode_request::<HeartbeatRequest>(input, version);
            assert_eq!(read, Ok(request.clone()));
        }
    }
}

#[test]
fn a_response_is_read_as_it_was_sent_in_every_header() {
    let response = HeartbeatResponse::default();
    for version in 0..=4 {
        let frame = frame::encode_response(&response, ApiKey::Heartbeat, version, -5).unwrap();
        let bytes = received(frame);
        assert_eq!(frame::correlation_id(&bytes), Ok(-5));
        let read = frame::decode_response::<HeartbeatRequest>(bytes, version);
        assert_eq!(read, Ok(response.clone()));
    }
}

#[test]
fn an_answer_to_api_versions_is_read_by_those_who_know_nothing_of_the_broker() {
    let response = ApiVersionsResponse::default();
    let frame = frame::encode_response(&response, ApiKey::ApiVersions, 3, 1).unwrap();
    // The error code follows the correlation id at once (KIP-511).
    assert_eq!(received(frame)[..6], [0, 0, 0, 1, 0, 0]);
}

#[test]
fn a_long_frame_goes_out_in_pieces_and_says_its_whole_length() {
    let records = Bytes::from(vec![7; 100_000]);
    let request = ProduceRequest {
        topic_data: vec![TopicProduceData {
            name: "topic".into(),
            partition_data: vec![PartitionProduceData {
                index: 0,
                records: Some(records.clone()),
            }],
            ..Default::default()
        }],
        ..Default::default()
    };
    let frame = frame::encode_request(&request, 9, 1, Some("client")).unwrap();
    let shared = |piece: &Bytes| piece.as_ptr() == records.as_ptr();
    assert!(frame.pieces().iter().any(shared), "the records are copied");
    assert_eq!(frame.len(), frame.clone().into_bytes().len());
    let mut input = Decoder::new(received(frame));
    RequestHeader::decode(&mut input).unwrap();
    assert_eq!(frame::decode_request(input, 9), Ok(request));
}

#[test]
fn tagged_fields_of_a_header_are_passed_over() {
    let mut bytes = vec![0, 12, 0, 4, 0, 0, 0, 1, 0xff, 0xff];
    bytes.extend([2, 0, 3, 1, 2, 3, 9, 0]);
    bytes.push(42);
    let mut input = Decoder::new(bytes.into());
    RequestHeader::decode(&mut input).unwrap();
    assert_eq!(input.rest(), &[42][..]);
}

#[test]
fn the_header_of_an_unknown_api_is_read_as_far_as_all_headers_are_the_same() {
    let bytes = Bytes::from_static(&[0x7f, 0xff, 0, 9, 0, 0, 0, 1, 0, 1, b'c', 42]);
    let mut input = Decoder::new(bytes);
    let header = RequestHeader::decode(&mut input).unwrap();
    assert_eq!((header.api_key, header.api_version), (0x7fff, 9));
    assert_eq!(header.client_id.as_deref(), Some("c"));
    assert_eq!(input.rest(), &[42][..]);
}

#[test]
fn what_follows_a_request_is_ignored() {
    // The body that librdkafka 2.16 sends for all topics: null is written in four bytes, not one.
    let input = Decoder::new(Bytes::from_static(&[0, 0, 0, 0, 1, 0, 0]));
    let request = frame::decode_request::<MetadataRequest>(input, 13).unwrap();
    assert_eq!(request.topics, None);
}

#[test]
fn nothing_may_follow_a_response() {
    let frame = frame::encode_response(&HeartbeatResponse::default(), ApiKey::Heartbeat, 4, 1);
    let mut bytes = received(frame.unwrap()).to_vec();
    bytes.push(0);
    let error = frame::decode_response::<HeartbeatRequest>(bytes.into(), 4);
    assert_eq!(error.unwrap_err().problem, Problem::Trailing(1));
}

#[test]
fn every_api_is_found_by_its_number() {
    for &api in ApiKey::ALL {
        assert_eq!(ApiKey::try_from(api as i16), Ok(api));
        let Versions { first, last } = api.versions();
        assert!(0 <= first && first <= last, "{api}");
    }
    assert!(ApiKey::ALL.is_sorted(), "in the order of their numbers");
    let error = ApiKey::try_from(4).unwrap_err();
    assert_eq!(error.to_string(), "API 4 is not known");
    assert_eq!(FetchRequest::API_KEY, ApiKey::Fetch);
}
