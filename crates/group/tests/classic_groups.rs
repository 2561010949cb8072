//! Classic groups, stepped through virtual time.

mod world;

use kohort_group::coordinator::*;
use kohort_wire::{ErrorCode, messages::*};
use world::{World, classic::*};

#[test]
fn a_first_member_waits_for_others_and_then_assigns() {
    let mut world = World::new();
    let (mut first, mut second) = (Member::new(), Member::new());
    let one = first.join(&mut world);
    world.advance(2_999);
    assert!(world.take(one).is_none());
    let two = second.join(&mut world);
    world.advance(1);
    assert!(
        world.take(one).is_none(),
        "another member came: the delay starts again"
    );
    world.advance(3_000);
    first.joined(&mut world, one);
    second.joined(&mut world, two);
    assert_eq!((first.generation, second.generation), (1, 1));
    assert!(first.is_leader && !second.is_leader);
    assert_eq!(first.members.len(), 2);
    assert!(second.members.is_empty());

    let waiting = second.sync(&mut world);
    assert!(world.take(waiting).is_none());
    let assigned = first.sync(&mut world);
    assert_eq!(
        sync_answer(&mut world, assigned).assignment,
        format!("of {}", first.id)
    );
    assert_eq!(
        sync_answer(&mut world, waiting).assignment,
        format!("of {}", second.id)
    );
    assert_eq!(first.heartbeat(&mut world), ErrorCode::NONE);
}

#[test]
fn the_delay_of_an_empty_group_ends_with_the_rebalance_timeout() {
    let mut world = World::new();
    let mut first = Member {
        rebalance_timeout_ms: 7_000,
        ..Member::new()
    };
    let one = first.join(&mut world);
    for _ in 0..6 {
        world.advance(1_000);
        Member {
            rebalance_timeout_ms: 7_000,
            ..Member::new()
        }
        .join(&mut world);
    }
    assert!(world.take(one).is_none());
    world.advance(3_000);
    first.joined(&mut world, one);
}

#[test]
fn members_are_told_to_rejoin_and_the_late_ones_are_put_out() {
    let mut world = World::new();
    let mut members = stable_group(&mut world, vec![Member::new(), Member::new()]);
    let mut third = Member::new();
    let joining = third.join(&mut world);
    assert_eq!(
        members[0].heartbeat(&mut world),
        ErrorCode::REBALANCE_IN_PROGRESS
    );
    let rejoining = members[0].join(&mut world);
    assert!(world.take(joining).is_none());
    let late = members.remove(1);
    beat(&mut world, std::slice::from_ref(&late), 60_000);
    members[0].joined(&mut world, rejoining);
    third.joined(&mut world, joining);
    assert_eq!(members[0].generation, 2);
    assert_eq!(late.heartbeat(&mut world), ErrorCode::UNKNOWN_MEMBER_ID);
    sync_all(&mut world, &[members[0].clone(), third]);
}

#[test]
fn k6_a_slow_member_holds_the_others_no_longer_than_the_rebalance_timeout() {
    let mut world = World::new();
    let members = stable_group(
        &mut world,
        vec![Member::new(), Member::new(), Member::new()],
    );
    let mut leaver = members[0].clone();
    assert_eq!(leaver.leave(&mut world), ErrorCode::NONE);
    leaver = members[1].clone();
    let rejoined = leaver.join(&mut world);
    let slow = [members[2].clone()];
    beat(&mut world, &slow, 59_000);
    assert!(world.take(rejoined).is_none());
    beat(&mut world, &slow, 1_000);
    leaver.joined(&mut world, rejoined);
    assert!(world.has_event("did not rejoin within"));
}

#[test]
fn a_member_that_sends_no_heartbeat_fails_at_the_end_of_its_session() {
    let mut world = World::new();
    let members = stable_group(&mut world, vec![Member::new(), Member::new()]);
    beat(&mut world, &members[..1], 9_000);
    assert_eq!(members[0].heartbeat(&mut world), ErrorCode::NONE);
    world.advance(1_000);
    assert_eq!(
        members[0].heartbeat(&mut world),
        ErrorCode::REBALANCE_IN_PROGRESS
    );
    assert_eq!(
        members[1].heartbeat(&mut world),
        ErrorCode::UNKNOWN_MEMBER_ID
    );
    assert!(world.has_event("sent no heartbeat for 10 s"));
}

#[test]
fn who_does_not_sync_in_time_is_put_out() {
    let mut world = World::new();
    let (mut first, mut second) = (Member::new(), Member::new());
    let tokens = (first.join(&mut world), second.join(&mut world));
    world.advance(6_000);
    first.joined(&mut world, tokens.0);
    second.joined(&mut world, tokens.1);
    let synced = first.sync(&mut world);
    assert_eq!(sync_answer(&mut world, synced).error_code, ErrorCode::NONE);
    beat(&mut world, &[first.clone(), second.clone()], 60_000);
    assert_eq!(
        first.heartbeat(&mut world),
        ErrorCode::REBALANCE_IN_PROGRESS
    );
    assert_eq!(second.heartbeat(&mut world), ErrorCode::UNKNOWN_MEMBER_ID);
    assert!(world.has_event("did not ask for an assignment within"));
}

#[test]
fn a_group_that_loses_its_last_member_is_empty_in_the_next_generation() {
    let mut world = World::new();
    let members = stable_group(&mut world, vec![Member::new()]);
    assert_eq!(members[0].leave(&mut world), ErrorCode::NONE);
    let described = world.describe("g");
    assert_eq!(described.group_state, "Empty");
    assert_eq!(described.protocol_type, "consumer");
    world.restart();
    assert_eq!(world.describe("g").group_state, "Empty");
    let mut again = Member::new();
    let token = again.join(&mut world);
    world.advance(3_000);
    again.joined(&mut world, token);
    assert_eq!(again.generation, 3);
}

#[test]
fn a_join_whose_answer_was_lost_is_answered_again() {
    let mut world = World::new();
    let mut member = Member::new();
    let token = member.join(&mut world);
    world.advance(3_000);
    member.joined(&mut world, token);
    let again = member.join(&mut world);
    member.joined(&mut world, again);
    assert_eq!(member.generation, 1);
    sync_all(&mut world, std::slice::from_ref(&member));
}

#[test]
fn a_follower_without_changes_gets_the_current_generation_and_the_leader_a_new_one() {
    let mut world = World::new();
    let mut members = stable_group(&mut world, vec![Member::new(), Member::new()]);
    let follower = usize::from(members[0].is_leader);
    let token = members[follower].join(&mut world);
    members[follower].joined(&mut world, token);
    assert_eq!(members[follower].generation, 1);
    members[1 - follower].join(&mut world);
    assert_eq!(
        members[follower].heartbeat(&mut world),
        ErrorCode::REBALANCE_IN_PROGRESS
    );
}

#[test]
fn the_protocol_is_the_one_that_all_support_and_most_prefer() {
    let mut world = World::new();
    let with = |assignors: &[&'static str]| Member {
        assignors: assignors.to_vec(),
        ..Member::new()
    };
    let members = stable_group(
        &mut world,
        vec![
            with(&["range", "roundrobin", "sticky"]),
            with(&["roundrobin", "range"]),
            with(&["roundrobin", "range"]),
        ],
    );
    assert_eq!(world.describe("g").protocol_data, "roundrobin");
    let mut stranger = with(&["other"]).join_request();
    stranger.member_id = "".into();
    let reply = world.ask(Request::JoinGroup {
        version: 9,
        request: stranger,
    });
    let Reply::JoinGroup(response) = reply else {
        panic!()
    };
    assert_eq!(response.error_code, ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
    assert_eq!(
        members[0].heartbeat(&mut world),
        ErrorCode::NONE,
        "nobody is disturbed"
    );
}

#[test]
fn an_unknown_id_is_refused_and_disturbs_nobody() {
    let mut world = World::new();
    let members = stable_group(&mut world, vec![Member::new()]);
    let request = Member {
        id: "made up".to_owned(),
        ..Member::new()
    }
    .join_request();
    let Reply::JoinGroup(response) = world.ask(Request::JoinGroup {
        version: 9,
        request,
    }) else {
        panic!()
    };
    assert_eq!(response.error_code, ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(members[0].heartbeat(&mut world), ErrorCode::NONE);
    let unknown = Member {
        id: "made up".to_owned(),
        generation: 1,
        ..Member::new()
    };
    assert_eq!(unknown.heartbeat(&mut world), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(unknown.leave(&mut world), ErrorCode::UNKNOWN_MEMBER_ID);
}

#[test]
fn member_ids_are_recognisable_and_never_given_out_twice() {
    let mut world = World::new();
    let mut ids = std::collections::HashSet::new();
    for _ in 0..3 {
        for _ in 0..10 {
            let mut member = Member::new();
            member.join(&mut world);
            assert!(member.id.starts_with("g-127.0.0.1-"), "{}", member.id);
            assert!(ids.insert(member.id));
        }
        world.restart();
    }
}

#[test]
fn old_clients_join_without_being_given_an_id_first() {
    let mut world = World::new();
    let request = Member::new().join_request();
    let token = world.send(Request::JoinGroup {
        version: 3,
        request,
    });
    world.advance(3_000);
    let response = join_answer(&mut world, token);
    assert_eq!(response.error_code, ErrorCode::NONE);
    assert!(!response.member_id.is_empty());
}

#[test]
fn x7_a_missing_rebalance_timeout_is_the_session_timeout() {
    let mut world = World::new();
    let mut members = stable_group(&mut world, vec![Member::new()]);
    members[0].rebalance_timeout_ms = -1;
    let token = members[0].join(&mut world);
    members[0].joined(&mut world, token);
    sync_all(&mut world, &members);
    let joining = Member {
        rebalance_timeout_ms: -1,
        ..Member::new()
    }
    .join(&mut world);
    beat(&mut world, &members, 9_000);
    assert!(world.take(joining).is_none());
    beat(&mut world, &members, 1_000);
    assert_eq!(join_answer(&mut world, joining).error_code, ErrorCode::NONE);
}

#[test]
fn x2_members_that_vanish_while_the_group_prepares_do_not_leave_it_there() {
    let mut world = World::new();
    let members = stable_group(
        &mut world,
        vec![Member::new(), Member::new(), Member::new()],
    );
    let mut survivor = members[0].clone();
    members[2].leave(&mut world);
    // One rejoins and its connection breaks; one is given an id and never comes back.
    members[1].clone().join(&mut world);
    let request = Member::new().join_request();
    world.ask(Request::JoinGroup {
        version: 9,
        request,
    });
    let token = survivor.join(&mut world);
    world.advance(10_000);
    survivor.joined(&mut world, token);
    survivor.sync(&mut world);
    beat(&mut world, std::slice::from_ref(&survivor), 11_000);
    assert_eq!(
        survivor.heartbeat(&mut world),
        ErrorCode::REBALANCE_IN_PROGRESS
    );
    let token = survivor.join(&mut world);
    survivor.joined(&mut world, token);
    sync_all(&mut world, std::slice::from_ref(&survivor));
}

#[test]
fn k7_joins_that_are_never_finished_do_not_pile_up() {
    let mut world = World::new();
    let members = stable_group(&mut world, vec![Member::new()]);
    for _ in 0..30_000 {
        let request = Member::new().join_request();
        world.ask(Request::JoinGroup {
            version: 9,
            request,
        });
    }
    assert_eq!(members[0].heartbeat(&mut world), ErrorCode::NONE);
    beat(&mut world, &members, 20_000);
    assert!(world.has_event("did not come back with the id it was given"));
    assert_eq!(world.describe("g").members.len(), 1);
    assert_eq!(
        world.shard.next_alarm().map(|at| at - world.now < 10_000),
        Some(true)
    );
}

#[test]
fn a_new_member_that_never_gets_its_answer_is_forgotten_after_five_minutes() {
    let mut world = World::new();
    let mut members = stable_group(
        &mut world,
        vec![Member {
            rebalance_timeout_ms: 1_800_000,
            ..Member::new()
        }],
    );
    let lost = Member {
        rebalance_timeout_ms: 1_800_000,
        ..Member::new()
    }
    .join(&mut world);
    beat(&mut world, &members, 300_000);
    assert_eq!(
        join_answer(&mut world, lost).error_code,
        ErrorCode::UNKNOWN_MEMBER_ID
    );
    let token = members[0].join(&mut world);
    members[0].joined(&mut world, token);
    assert_eq!(members[0].members.len(), 1);
}

#[test]
fn timeouts_and_sizes_out_of_bounds_are_refused() {
    let mut world = World::with(Config {
        group_max_size: 1,
        ..Config::default()
    });
    let join = |world: &mut World, member: Member| {
        let request = member.join_request();
        match world.ask(Request::JoinGroup {
            version: 3,
            request,
        }) {
            Reply::JoinGroup(response) => response.error_code,
            other => panic!("{other:?}"),
        }
    };
    for session_timeout_ms in [i32::MIN, 0, 5_999, 1_800_001] {
        let member = Member {
            session_timeout_ms,
            ..Member::new()
        };
        assert_eq!(join(&mut world, member), ErrorCode::INVALID_SESSION_TIMEOUT);
    }
    stable_group(&mut world, vec![Member::new()]);
    assert_eq!(
        join(&mut world, Member::new()),
        ErrorCode::GROUP_MAX_SIZE_REACHED
    );
}

#[test]
fn metadata_of_other_protocol_types_is_never_parsed() {
    let mut world = World::new();
    let request = JoinGroupRequest {
        protocol_type: "connect".into(),
        protocols: vec![JoinGroupProtocol {
            name: "default".into(),
            metadata: vec![0xff; 9].into(),
        }],
        ..Member::new().join_request()
    };
    let token = world.send(Request::JoinGroup {
        version: 3,
        request,
    });
    world.advance(3_000);
    assert_eq!(join_answer(&mut world, token).error_code, ErrorCode::NONE);
}

#[test]
fn c9_a_member_without_a_subscription_can_join() {
    let mut world = World::new();
    let members = stable_group(
        &mut world,
        vec![
            Member {
                topics: Vec::new(),
                ..Member::new()
            },
            Member::new(),
        ],
    );
    assert_eq!(members[0].heartbeat(&mut world), ErrorCode::NONE);
}

#[test]
fn x1_the_second_member_gets_its_assignment_and_keeps_heartbeating() {
    let mut world = World::new();
    let mut members = stable_group(&mut world, vec![Member::new()]);
    let mut second = Member::new();
    let joining = second.join(&mut world);
    assert_eq!(
        members[0].heartbeat(&mut world),
        ErrorCode::REBALANCE_IN_PROGRESS
    );
    let rejoining = members[0].join(&mut world);
    members[0].joined(&mut world, rejoining);
    second.joined(&mut world, joining);
    members.push(second);
    sync_all(&mut world, &members);
    beat(&mut world, &members, 30_000);
    for member in &members {
        assert_eq!(member.heartbeat(&mut world), ErrorCode::NONE);
    }
}

#[test]
fn a_group_that_is_only_begun_is_loaded_as_it_was() {
    let mut world = World::new();
    let request = Member::new().join_request();
    let token = world.send(Request::JoinGroup {
        version: 9,
        request,
    });
    assert_eq!(
        join_answer(&mut world, token).error_code,
        ErrorCode::MEMBER_ID_REQUIRED
    );
    let begun = world.shard.durable();
    world.restart();
    assert_eq!(world.shard.durable(), begun);
}

#[test]
fn what_a_member_said_last_is_what_is_loaded() {
    let mut world = World::new();
    let mut members = stable_group(&mut world, vec![Member::new()]);
    let member = &mut members[0];
    member.rebalance_timeout_ms = 17_000;
    member.topics = vec!["b"];
    let token = member.join(&mut world);
    member.joined(&mut world, token);
    sync_all(&mut world, &members);
    assert_eq!(members[0].generation, 2);
    let last = world.shard.durable();
    world.restart();
    assert_eq!(world.shard.durable(), last);
}
