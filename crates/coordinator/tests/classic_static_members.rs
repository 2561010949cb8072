//! Static members of classic groups (KIP-345), stepped through virtual time.

mod world;

use kohort_coordinator::*;
use kohort_wire::{ErrorCode, messages::*};
use world::{World, classic::*};

/// KAFKA-20601.
#[test]
fn a_static_member_of_a_full_group_may_rejoin() {
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
fn a_static_member_that_comes_back_for_other_topics_makes_the_group_rebalance() {
    for (topics, is_other) in [
        (vec!["a"], false),
        (vec!["b"], true),
        (vec!["a", "b"], true),
    ] {
        let mut world = World::new();
        let members = stable_group(
            &mut world,
            vec![Member::with_instance("one"), Member::with_instance("two")],
        );
        let mut new = Member {
            id: String::new(),
            topics,
            ..members[1].clone()
        };
        let token = new.join(&mut world);
        if is_other {
            let error_code = members[0].heartbeat(&mut world);
            assert_eq!(error_code, ErrorCode::REBALANCE_IN_PROGRESS);
            let mut other = members[0].clone();
            let other_token = other.join(&mut world);
            other.joined(&mut world, other_token);
        }
        new.joined(&mut world, token);
        assert_eq!(new.generation, 1 + i32::from(is_other));
    }
}

/// redpanda PR 23693.
#[test]
fn a_static_member_that_comes_back_brings_its_new_settings() {
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

/// sarama #2157.
#[test]
fn an_empty_instance_id_is_a_dynamic_member() {
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

/// confluent-kafka-go #494.
#[test]
fn static_members_survive_a_coordinator_restart_unfenced() {
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
