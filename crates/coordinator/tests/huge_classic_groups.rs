//! How large a classic group may become: it has to fit into one record of its shard's log.

#![allow(missing_docs)]

use bytes::Bytes;
use kohort_coordinator::*;
use kohort_wire::{ErrorCode, messages::*};
use world::{World, classic::*};

mod world;

const MIB: usize = 1 << 20;

fn join(member_id: &str, instance_id: Option<&str>, bytes: usize) -> Request {
    let protocol = JoinGroupProtocol {
        name: "p".into(),
        metadata: vec![7; bytes].into(),
    };
    let request = JoinGroupRequest {
        group_id: "g".into(),
        session_timeout_ms: 1_800_000,
        rebalance_timeout_ms: 1_800_000,
        member_id: member_id.into(),
        group_instance_id: instance_id.map(Into::into),
        protocol_type: "other".into(),
        protocols: vec![protocol],
        reason: None,
    };
    let version = 5;
    Request::JoinGroup { version, request }
}

fn sync(member: &JoinGroupResponse, assignments: Vec<SyncGroupAssignment>) -> Request {
    let request = SyncGroupRequest {
        group_id: "g".into(),
        generation_id: member.generation_id,
        member_id: member.member_id.clone(),
        assignments,
        ..SyncGroupRequest::default()
    };
    let version = 3;
    Request::SyncGroup { version, request }
}

/// A group of static members, each with some metadata; and what its leader was answered.
fn group(world: &mut World, members: usize, bytes: usize) -> JoinGroupResponse {
    let tokens: Vec<Token> = (0..members)
        .map(|n| world.send(join("", Some(&format!("i{n}")), bytes)))
        .collect();
    world.advance(10_000);
    let mut answers = tokens.into_iter().map(|token| join_answer(world, token));
    let leader = answers.next().expect("a member");
    assert_eq!(leader.error_code, ErrorCode::NONE);
    assert_eq!(leader.members.len(), members);
    leader
}

fn assign(leader: &JoinGroupResponse, bytes: usize) -> Vec<SyncGroupAssignment> {
    let members = leader.members.iter();
    let assignment = |member: &JoinGroupResponseMember| SyncGroupAssignment {
        member_id: member.member_id.clone(),
        assignment: vec![8; bytes].into(),
    };
    members.map(assignment).collect()
}

fn sync_code(world: &mut World, request: Request) -> ErrorCode {
    match world.ask(request) {
        Reply::SyncGroup(response) => response.error_code,
        other => panic!("{other:?}"),
    }
}

/// How often the group was told of a setting.
fn told_of(world: &World, setting: &str) -> usize {
    let events = world.events.iter();
    events.filter(|event| event.contains(setting)).count()
}

fn largest_record(world: &World) -> usize {
    let sizes = world.log.iter();
    let size = |value: &Option<Bytes>| value.as_ref().map_or(0, Bytes::len);
    sizes
        .map(|(key, value)| key.len() + size(value))
        .max()
        .unwrap_or_default()
}

#[test]
fn an_assignment_that_is_too_large_fails_its_own_request_and_nothing_else() {
    let mut world = World::new();
    let leader = group(&mut world, 40, MIB - 1024);
    let written = world.log.len();
    // For one member, and for all together.
    let mut one = assign(&leader, 0);
    one[3].assignment = vec![8; 4 * MIB + 1].into();
    let code = sync_code(&mut world, sync(&leader, one));
    assert_eq!(code, ErrorCode::INVALID_REQUEST);
    assert_eq!(
        told_of(
            &world,
            "kohort.group.member.assignment.max.bytes allows 4194304"
        ),
        1
    );
    world.advance(5_000);
    for _ in 0..3 {
        let code = sync_code(&mut world, sync(&leader, assign(&leader, MIB)));
        assert_eq!(code, ErrorCode::INVALID_REQUEST);
    }
    assert_eq!(world.log.len(), written);
    // The leader may still assign less.
    let code = sync_code(&mut world, sync(&leader, assign(&leader, MIB / 2)));
    assert_eq!(code, ErrorCode::NONE);
    assert!(largest_record(&world) > 59 * MIB);
    assert!(largest_record(&world) <= world.config.group_metadata_max_bytes);
    world.restart();
}

#[test]
fn a_group_is_told_of_a_limit_once_a_minute() {
    let mut world = World::with(Config {
        group_metadata_max_bytes: 10_000,
        ..Config::default()
    });
    group(&mut world, 1, 9_000);
    let setting = "kohort.group.metadata.max.bytes allows 10000";
    for told in 1..=3 {
        for n in 0..10 {
            let refused = world.send(join("", Some(&format!("other{n}")), 1_000));
            let code = join_answer(&mut world, refused).error_code;
            assert_eq!(code, ErrorCode::GROUP_MAX_SIZE_REACHED);
        }
        assert_eq!(told_of(&world, setting), told);
        world.advance(60_000);
    }
}

#[test]
fn members_cannot_grow_beyond_the_limit_by_joining_again() {
    let mut world = World::with(Config {
        group_metadata_max_bytes: 10_000,
        ..Config::default()
    });
    let leader = group(&mut world, 3, 1_000);
    let code = sync_code(&mut world, sync(&leader, assign(&leader, 10)));
    assert_eq!(code, ErrorCode::NONE);
    let again = world.send(join(&leader.member_id, Some("i0"), 9_000));
    let refused = join_answer(&mut world, again);
    assert_eq!(refused.error_code, ErrorCode::GROUP_MAX_SIZE_REACHED);
    // Nor as the next incarnation of a static member. The member goes on as it was.
    let again = world.send(join("", Some("i0"), 9_000));
    let refused = join_answer(&mut world, again);
    assert_eq!(refused.error_code, ErrorCode::GROUP_MAX_SIZE_REACHED);
    let heartbeat = HeartbeatRequest {
        group_id: "g".into(),
        generation_id: leader.generation_id,
        member_id: leader.member_id.clone(),
        group_instance_id: Some("i0".into()),
    };
    match world.ask(Request::Heartbeat { request: heartbeat }) {
        Reply::Heartbeat(response) => assert_eq!(response.error_code, ErrorCode::NONE),
        other => panic!("{other:?}"),
    }
    // As much as the group has room for is taken.
    let again = world.send(join(&leader.member_id, Some("i0"), 5_000));
    assert!(world.peek(again).is_none());
}

#[test]
fn a_consumer_that_names_too_many_topics_is_refused() {
    let mut world = World::with(Config {
        member_topics_max: 2,
        ..Config::default()
    });
    for (topics, code) in [
        (vec!["a", "b", "c"], ErrorCode::INVALID_REQUEST),
        (vec!["a", "b"], ErrorCode::MEMBER_ID_REQUIRED),
    ] {
        let member = Member {
            topics,
            ..Member::new()
        };
        let request = member.join_request();
        let version = 5;
        let token = world.send(Request::JoinGroup { version, request });
        assert_eq!(join_answer(&mut world, token).error_code, code);
    }
    assert_eq!(
        told_of(&world, "3 topics; kohort.group.member.topics.max allows 2"),
        1
    );
}
