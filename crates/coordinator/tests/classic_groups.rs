//! Classic groups, stepped through virtual time.

mod world;

use kohort_coordinator::*;
use kohort_wire::{ErrorCode, messages::*};
use world::{World, classic::*};

#[test]
fn a_first_member_waits_for_others_and_then_assigns() {
    let mut world = World::new();
    let (mut first, mut second) = (Member::new(), Member::new());
    let one = first.join(&mut world);
    world.advance(299);
    assert!(world.take(one).is_none());
    let two = second.join(&mut world);
    world.advance(299);
    assert!(
        world.take(one).is_none(),
        "another member came: the calm starts again"
    );
    world.advance(1);
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
fn a_member_that_comes_alone_waits_for_a_tenth_of_the_delay() {
    let mut world = World::new();
    let mut member = Member::new();
    let joining = member.join(&mut world);
    world.advance(300);
    member.joined(&mut world, joining);
    assert_eq!(member.generation, 1);
}

#[test]
fn a_delay_of_nothing_is_none_and_the_shortest_is_one() {
    for delay_ms in [0, 1, 9, 10] {
        let mut world = World::with(Config {
            group_initial_rebalance_delay_ms: delay_ms,
            ..Config::default()
        });
        let mut member = Member::new();
        let joining = member.join(&mut world);
        assert_eq!(world.peek(joining).is_some(), delay_ms == 0, "{delay_ms}");
        world.advance(1);
        member.joined(&mut world, joining);
    }
}

#[test]
fn a_hundred_members_that_start_together_share_one_rebalance() {
    let mut world = World::new();
    let mut members = vec![Member::new(); 100];
    let mut joining = Vec::new();
    for member in &mut members {
        joining.push(member.join(&mut world));
        world.advance(50);
    }
    world.advance(250);
    for (member, joining) in members.iter_mut().zip(joining) {
        member.joined(&mut world, joining);
        assert_eq!(member.generation, 1);
    }
}

#[test]
fn the_delay_of_an_empty_group_ends_with_the_rebalance_timeout() {
    let mut world = World::new();
    let mut first = Member {
        rebalance_timeout_ms: 7_000,
        ..Member::new()
    };
    let one = first.join(&mut world);
    for _ in 0..34 {
        world.advance(200);
        Member::new().join(&mut world);
    }
    assert!(world.take(one).is_none());
    world.advance(200);
    first.joined(&mut world, one);
}

#[test]
fn the_delay_may_be_longer_than_the_rebalance_timeout() {
    let mut world = World::new();
    let mut first = Member {
        rebalance_timeout_ms: 1_000,
        ..Member::new()
    };
    let one = first.join(&mut world);
    for _ in 0..14 {
        world.advance(200);
        Member::new().join(&mut world);
    }
    assert!(world.take(one).is_none());
    world.advance(200);
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
fn a_slow_member_holds_the_others_no_longer_than_the_rebalance_timeout() {
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

/// brod PR 465.
#[test]
fn a_missing_rebalance_timeout_is_the_session_timeout() {
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

/// redpanda #3300.
#[test]
fn members_that_vanish_while_the_group_prepares_do_not_leave_it_there() {
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

/// Asks for a member id for a group, over a connection, and never comes back with it.
fn abandoned_join(world: &mut World, group_id: &str, connection: Option<Connection>) {
    let request = JoinGroupRequest {
        group_id: group_id.into(),
        ..Member::new().join_request()
    };
    let request = Request::JoinGroup {
        version: 9,
        request,
    };
    let token = world.send_over(connection, request);
    let answer = join_answer(world, token);
    assert_eq!(answer.error_code, ErrorCode::MEMBER_ID_REQUIRED);
}

#[test]
fn first_joins_that_are_abandoned_are_bounded_and_leave_nothing_behind() {
    let mut world = World::new();
    for index in 0..50_000 {
        abandoned_join(&mut world, &format!("g-{index}"), None);
        assert!(world.shard.group_count() <= 10_000);
    }
    assert!(world.log.is_empty(), "nothing was written for them");
    assert!(world.events.is_empty(), "nor is any of them an event");
    // The session timeout that they asked for.
    world.advance(10_000);
    assert_eq!(world.shard.group_count(), 0);
}

#[test]
fn an_id_that_was_given_out_is_gone_with_its_connection() {
    let mut world = World::new();
    let (first, second) = (Connection(1), Connection(2));
    for (group_id, connection) in [("g", first), ("g", first), ("g", second), ("h", first)] {
        abandoned_join(&mut world, group_id, Some(connection));
    }
    world.close(first);
    assert_eq!(world.shard.group_count(), 1);
    world.close(second);
    assert_eq!(world.shard.group_count(), 0);
}

#[test]
fn a_rebalance_does_not_wait_for_an_id_whose_connection_has_closed() {
    let mut world = World::new();
    let mut members = stable_group(&mut world, vec![Member::new(), Member::new()]);
    members[1].leave(&mut world);
    abandoned_join(&mut world, "g", Some(Connection(1)));
    let joining = members[0].join(&mut world);
    assert!(world.peek(joining).is_none());
    world.close(Connection(1));
    members[0].joined(&mut world, joining);
}

#[test]
fn a_first_join_that_is_refused_leaves_no_group_behind() {
    let mut world = World::new();
    let request = JoinGroupRequest {
        protocols: Vec::new(),
        ..Member::new().join_request()
    };
    let token = world.send(Request::JoinGroup {
        version: 9,
        request,
    });
    let error_code = join_answer(&mut world, token).error_code;
    assert_eq!(error_code, ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
    assert_eq!(world.shard.group_count(), 0);
    assert!(world.log.is_empty());
}

#[test]
fn a_member_that_leaves_with_an_id_that_it_never_used_leaves_no_group_behind() {
    let mut world = World::new();
    let mut member = Member::new();
    let request = member.join_request();
    let token = world.send(Request::JoinGroup {
        version: 9,
        request,
    });
    member.id = join_answer(&mut world, token).member_id.to_string();
    assert_eq!(member.leave(&mut world), ErrorCode::NONE);
    assert_eq!(world.shard.group_count(), 0);
}

#[test]
fn joins_that_are_never_finished_do_not_pile_up() {
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
    assert!(world.has_event("did not join with the id it was given"));
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

/// KAFKA-18095.
#[test]
fn a_member_without_a_subscription_can_join() {
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

/// nisshi #625.
#[test]
fn the_second_member_gets_its_assignment_and_keeps_heartbeating() {
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
fn a_group_begins_with_its_first_member_and_not_with_an_id() {
    let mut world = World::new();
    abandoned_join(&mut world, "g", None);
    world.restart();
    assert_eq!(world.shard.group_count(), 0);
    Member::new().join(&mut world);
    world.restart();
    assert_eq!(world.shard.group_count(), 1);
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
