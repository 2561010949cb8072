//! Classic groups, stepped through virtual time.

mod world;

use kohort_group::coordinator::*;
use kohort_wire::{ErrorCode, messages::*};
use world::{World, subscription};

/// A member of the group `g`, as a client would be.
#[derive(Clone, Default)]
struct Member {
    id: String,
    instance_id: Option<&'static str>,
    topics: Vec<&'static str>,
    assignors: Vec<&'static str>,
    session_timeout_ms: i32,
    rebalance_timeout_ms: i32,
    generation: i32,
    is_leader: bool,
    members: Vec<String>,
}

impl Member {
    fn new() -> Member {
        Member {
            topics: vec!["a"],
            assignors: vec!["range"],
            session_timeout_ms: 10_000,
            rebalance_timeout_ms: 60_000,
            ..Member::default()
        }
    }

    fn with_instance(instance_id: &'static str) -> Member {
        Member {
            instance_id: Some(instance_id),
            ..Member::new()
        }
    }

    fn join_request(&self) -> JoinGroupRequest {
        let metadata = subscription(&self.topics);
        JoinGroupRequest {
            group_id: "g".into(),
            session_timeout_ms: self.session_timeout_ms,
            rebalance_timeout_ms: self.rebalance_timeout_ms,
            member_id: self.id.as_str().into(),
            group_instance_id: self.instance_id.map(Into::into),
            protocol_type: "consumer".into(),
            protocols: self
                .assignors
                .iter()
                .map(|&name| JoinGroupProtocol {
                    name: name.into(),
                    metadata: metadata.clone(),
                })
                .collect(),
            reason: None,
        }
    }

    /// Sends a join, if need be after being given an id.
    fn join(&mut self, world: &mut World) -> Token {
        let request = self.join_request();
        let token = world.send(Request::JoinGroup {
            version: 9,
            request,
        });
        match world.peek(token) {
            Some(Reply::JoinGroup(response))
                if response.error_code == ErrorCode::MEMBER_ID_REQUIRED =>
            {
                self.id = response.member_id.to_string();
                let request = self.join_request();
                world.send(Request::JoinGroup {
                    version: 9,
                    request,
                })
            }
            _ => token,
        }
    }

    fn joined(&mut self, world: &mut World, token: Token) {
        let response = join_answer(world, token);
        assert_eq!(response.error_code, ErrorCode::NONE);
        self.id = response.member_id.to_string();
        self.generation = response.generation_id;
        self.is_leader = response.leader == self.id;
        self.members = response
            .members
            .iter()
            .map(|m| m.member_id.to_string())
            .collect();
    }

    fn sync(&self, world: &mut World) -> Token {
        let assignments = self.members.iter().map(|member| SyncGroupAssignment {
            member_id: member.as_str().into(),
            assignment: format!("of {member}").into(),
        });
        let request = SyncGroupRequest {
            group_id: "g".into(),
            generation_id: self.generation,
            member_id: self.id.as_str().into(),
            group_instance_id: self.instance_id.map(Into::into),
            assignments: assignments.collect(),
            ..SyncGroupRequest::default()
        };
        world.send(Request::SyncGroup {
            version: 5,
            request,
        })
    }

    fn heartbeat(&self, world: &mut World) -> ErrorCode {
        let request = HeartbeatRequest {
            group_id: "g".into(),
            generation_id: self.generation,
            member_id: self.id.as_str().into(),
            group_instance_id: self.instance_id.map(Into::into),
        };
        match world.ask(Request::Heartbeat { request }) {
            Reply::Heartbeat(response) => response.error_code,
            other => panic!("{other:?}"),
        }
    }

    fn leave(&self, world: &mut World) -> ErrorCode {
        let request = LeaveGroupRequest {
            group_id: "g".into(),
            members: vec![MemberIdentity {
                member_id: self.id.as_str().into(),
                ..MemberIdentity::default()
            }],
            ..LeaveGroupRequest::default()
        };
        match world.ask(Request::LeaveGroup {
            version: 5,
            request,
        }) {
            Reply::LeaveGroup(response) => response.members[0].error_code,
            other => panic!("{other:?}"),
        }
    }
}

fn join_answer(world: &mut World, token: Token) -> JoinGroupResponse {
    match world.take(token) {
        Some(Reply::JoinGroup(response)) => response,
        other => panic!("{other:?}"),
    }
}

fn sync_answer(world: &mut World, token: Token) -> SyncGroupResponse {
    match world.take(token) {
        Some(Reply::SyncGroup(response)) => response,
        other => panic!("{other:?}"),
    }
}

/// Has all sync, and checks that each gets its own assignment.
fn sync_all(world: &mut World, members: &[Member]) {
    let tokens: Vec<_> = members.iter().map(|member| member.sync(world)).collect();
    for (member, token) in members.iter().zip(tokens) {
        let response = sync_answer(world, token);
        assert_eq!(response.error_code, ErrorCode::NONE);
        assert_eq!(response.assignment, format!("of {}", member.id));
    }
}

/// A stable group of so many members.
fn stable_group(world: &mut World, mut members: Vec<Member>) -> Vec<Member> {
    let tokens: Vec<_> = members
        .iter_mut()
        .map(|member| member.join(world))
        .collect();
    world.advance(6_000);
    for (member, token) in members.iter_mut().zip(tokens) {
        member.joined(world, token);
    }
    sync_all(world, &members);
    assert_eq!(world.describe("g").group_state, "Stable");
    members
}

/// Lets time pass while the members heartbeat.
fn beat(world: &mut World, members: &[Member], ms: i64) {
    for _ in 0..ms / 1_000 {
        world.advance(1_000);
        for member in members {
            member.heartbeat(world);
        }
    }
}

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
    assert!(world.has_event("did not rejoin in time"));
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
    assert!(world.has_event("sent no heartbeat for 10000 ms"));
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
    assert!(world.has_event("did not sync in time"));
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
fn c23_a_static_member_of_a_full_group_may_rejoin() {
    let mut world = World::with(Config {
        group_max_size: 1,
        ..Config::default()
    });
    let mut members = stable_group(&mut world, vec![Member::with_instance("i")]);
    members[0].id.clear();
    let token = members[0].join(&mut world);
    members[0].joined(&mut world, token);
}

#[test]
fn a_static_member_comes_back_without_a_rebalance_and_its_old_self_is_fenced() {
    let mut world = World::new();
    let members = stable_group(
        &mut world,
        vec![Member::with_instance("one"), Member::with_instance("two")],
    );
    let old = members[1].clone();
    let mut new = Member {
        id: String::new(),
        ..old.clone()
    };
    let token = new.join(&mut world);
    new.joined(&mut world, token);
    assert_ne!(new.id, old.id);
    assert_eq!(new.generation, 1);
    let token = new.sync(&mut world);
    assert_eq!(
        sync_answer(&mut world, token).assignment,
        format!("of {}", old.id)
    );
    assert_eq!(old.heartbeat(&mut world), ErrorCode::FENCED_INSTANCE_ID);
    assert_eq!(members[0].heartbeat(&mut world), ErrorCode::NONE);
    assert_eq!(
        world.commit("g", &old.id, 1, &[1]),
        [ErrorCode::UNKNOWN_MEMBER_ID]
    );
    world.restart();
    assert_eq!(new.heartbeat(&mut world), ErrorCode::NONE);
}

#[test]
fn x3_a_static_member_that_comes_back_brings_its_new_settings() {
    let mut world = World::new();
    stable_group(&mut world, vec![Member::with_instance("one")]);
    let mut new = Member {
        session_timeout_ms: 30_000,
        ..Member::with_instance("one")
    };
    let request = new.join_request();
    let token = world.send_as(
        "renamed",
        Request::JoinGroup {
            version: 9,
            request,
        },
    );
    new.joined(&mut world, token);
    world.advance(29_000);
    assert_eq!(new.heartbeat(&mut world), ErrorCode::NONE);
    assert_eq!(world.describe("g").members[0].client_id, "renamed");
    world.restart();
    assert_eq!(world.describe("g").members[0].client_id, "renamed");
}

#[test]
fn x10_an_empty_instance_id_is_a_dynamic_member() {
    let mut world = World::new();
    let members = stable_group(
        &mut world,
        vec![Member::with_instance(""), Member::with_instance("")],
    );
    assert_eq!(members[0].heartbeat(&mut world), ErrorCode::NONE);
    assert!(
        world
            .describe("g")
            .members
            .iter()
            .all(|m| m.group_instance_id.is_none())
    );
}

#[test]
fn x11_static_members_survive_a_coordinator_restart_unfenced() {
    let mut world = World::new();
    let members = stable_group(
        &mut world,
        vec![Member::with_instance("one"), Member::with_instance("two")],
    );
    world.restart();
    for member in &members {
        assert_eq!(member.heartbeat(&mut world), ErrorCode::NONE);
        assert_eq!(world.commit("g", &member.id, 1, &[5]), [ErrorCode::NONE]);
    }
    let token = members[0].sync(&mut world);
    assert_eq!(
        sync_answer(&mut world, token).assignment,
        format!("of {}", members[0].id)
    );
}

#[test]
fn an_administrator_removes_a_static_member_by_its_instance() {
    let mut world = World::new();
    let members = stable_group(
        &mut world,
        vec![Member::with_instance("one"), Member::with_instance("two")],
    );
    let request = LeaveGroupRequest {
        group_id: "g".into(),
        members: ["one", "three"]
            .map(|instance| MemberIdentity {
                group_instance_id: Some(instance.into()),
                ..MemberIdentity::default()
            })
            .to_vec(),
        ..LeaveGroupRequest::default()
    };
    let Reply::LeaveGroup(response) = world.ask(Request::LeaveGroup {
        version: 5,
        request,
    }) else {
        panic!()
    };
    let codes: Vec<_> = response
        .members
        .iter()
        .map(|member| member.error_code)
        .collect();
    assert_eq!(codes, [ErrorCode::NONE, ErrorCode::UNKNOWN_MEMBER_ID]);
    assert_eq!(
        members[1].heartbeat(&mut world),
        ErrorCode::REBALANCE_IN_PROGRESS
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
