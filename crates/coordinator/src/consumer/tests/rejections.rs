//! Heartbeats that are refused.

use kohort_wire::{ErrorCode, messages::ConsumerGroupHeartbeatRequest};

use super::{client::Client, world::World};

/// What the shard answers, which writes nothing.
fn refused(
    version: i16,
    change: impl FnOnce(&mut ConsumerGroupHeartbeatRequest),
) -> (ErrorCode, String) {
    let mut world = World::new();
    world.topic("orders", 2);
    Client::new("a", &["orders"]).beat(&mut world);
    let written = world.log.len();
    let mut request = Client::new("b", &["orders"]).request();
    change(&mut request);
    let response = world.heartbeat(version, request);
    assert_eq!(world.log.len(), written);
    assert_eq!(response.member_epoch, 0);
    (
        response.error_code,
        response.error_message.unwrap_or_default().to_string(),
    )
}

#[test]
fn what_makes_no_sense_is_refused() {
    let changes: &[fn(&mut ConsumerGroupHeartbeatRequest)] = &[
        |request| request.group_id = "".into(),
        |request| request.group_id = " ".into(),
        |request| request.member_id = "".into(),
        |request| request.instance_id = Some("".into()),
        |request| request.rack_id = Some("".into()),
        |request| request.rebalance_timeout_ms = -1,
        |request| request.topic_partitions = None,
        |request| request.topic_partitions = Some(vec![Default::default()]),
        |request| request.subscribed_topic_names = None,
        |request| request.member_epoch = -2,
        |request| request.member_epoch = -3,
        |request| request.member_epoch = i32::MIN,
        |request| {
            request.subscribed_topic_names = Some(vec!["x".repeat(1 << 20).into(), "y".into()])
        },
    ];
    for (index, change) in changes.iter().enumerate() {
        let (error_code, message) = refused(1, change);
        assert_eq!(error_code, ErrorCode::INVALID_REQUEST, "{index}");
        assert!(!message.is_empty(), "{index}");
    }
    let old_change = |request: &mut ConsumerGroupHeartbeatRequest| {
        request.member_id = "".into();
        request.member_epoch = 1;
    };
    assert_eq!(refused(0, old_change).0, ErrorCode::INVALID_REQUEST);
}

#[test]
fn an_unknown_assignor_is_refused() {
    let (error_code, message) = refused(1, |request| request.server_assignor = Some("best".into()));
    assert_eq!(error_code, ErrorCode::UNSUPPORTED_ASSIGNOR);
    assert!(message.contains("uniform, range"), "{message}");
}

#[test]
fn members_that_are_not_there_are_refused() {
    let (error_code, _) = refused(1, |request| request.member_epoch = 1);
    assert_eq!(error_code, ErrorCode::UNKNOWN_MEMBER_ID);
    let (error_code, _) = refused(1, |request| {
        request.member_epoch = 1;
        request.instance_id = Some("i".into());
    });
    assert_eq!(error_code, ErrorCode::UNKNOWN_MEMBER_ID);
    let (error_code, _) = refused(1, |request| {
        request.member_epoch = 1;
        request.group_id = "other".into();
    });
    assert_eq!(error_code, ErrorCode::GROUP_ID_NOT_FOUND);
    // Whatever else is wrong with what they say.
    let (error_code, _) = refused(1, |request| {
        request.member_epoch = 1;
        request.subscribed_topic_regex = Some("[".into());
    });
    assert_eq!(error_code, ErrorCode::UNKNOWN_MEMBER_ID);
}

#[test]
fn a_greater_epoch_is_fenced() {
    let (error_code, _) = refused(1, |request| {
        request.member_id = "a".into();
        request.member_epoch = 3;
    });
    assert_eq!(error_code, ErrorCode::FENCED_MEMBER_EPOCH);
}
