//! Members whose connection closes.

use kohort_group::history::{Cause, What};
use kohort_wire::{ErrorCode, messages::*};

use super::{client::Client, world::World};
use crate::{Connection, Id, Reply, Request};

const FIRST: Connection = Connection(1);
const SECOND: Connection = Connection(2);

/// Two members, one over each connection, that have settled.
fn two(world: &mut World) -> (Client, Client) {
    world.topic("orders", 4);
    let mut a = Client::new("a", &["orders"]);
    let mut b = Client::new("b", &["orders"]);
    world.settle(&mut [&mut a, &mut b]);
    world.connection = Some(FIRST);
    a.beat(world);
    world.connection = Some(SECOND);
    b.beat(world);
    (a, b)
}

fn close(world: &mut World, connection: Connection, member_id: &str) {
    let members = [(Id::from("group"), Id::from(member_id))];
    world.step(|shard, now, out| shard.connection_closed(connection, &members, now, out));
}

#[test]
fn a_member_whose_connection_closes_is_given_up_after_the_grace() {
    let mut world = World::new();
    let (_, mut b) = two(&mut world);
    close(&mut world, FIRST, "a");
    let epoch = world.group("group").epoch;
    world.wait(9_999);
    assert!(world.is_member("group", "a"));
    assert_eq!(
        world.group("group").epoch,
        epoch,
        "until then nothing moves"
    );
    b.beat(&mut world);
    world.wait(1);
    assert!(!world.is_member("group", "a"));
    assert!(world.events.iter().any(|event| matches!(
        &event.what,
        What::RebalanceBegan { causes, .. }
            if causes.first.iter().any(|cause| matches!(cause, Cause::ConnectionLost { .. }))
    )));
    b.beat(&mut world);
    assert_eq!(b.assigned.len(), 4);
    world.check();
}

#[test]
fn a_member_that_comes_back_within_the_grace_has_lost_nothing() {
    let mut world = World::new();
    let (mut a, mut b) = two(&mut world);
    let epoch = world.group("group").epoch;
    for round in 10..20 {
        let connection = world.connection.unwrap();
        close(&mut world, connection, "b");
        world.wait(9_000);
        world.connection = Some(Connection(round));
        assert!(b.beat(&mut world).assignment.is_none());
        world.connection = Some(FIRST);
        assert!(a.beat(&mut world).assignment.is_none());
        world.connection = Some(Connection(round));
    }
    assert_eq!(world.group("group").epoch, epoch);
    // Its session is as long as before.
    world.wait(44_999);
    assert!(world.is_member("group", "b"));
    world.wait(1);
    assert!(!world.is_member("group", "b"));
}

#[test]
fn only_the_connection_of_the_last_heartbeat_counts() {
    let mut world = World::new();
    let (mut a, _) = two(&mut world);
    world.connection = Some(Connection(3));
    a.beat(&mut world);
    close(&mut world, FIRST, "a");
    world.wait(44_999);
    assert!(world.is_member("group", "a"));
}

#[test]
fn a_commit_over_another_connection_is_a_sign_of_life() {
    let mut world = World::new();
    let (a, _) = two(&mut world);
    close(&mut world, FIRST, "a");
    world.wait(9_000);
    let request = OffsetCommitRequest {
        group_id: "group".into(),
        member_id: "a".into(),
        generation_id_or_member_epoch: a.epoch,
        topics: vec![OffsetCommitRequestTopic {
            name: "orders".into(),
            partitions: vec![OffsetCommitRequestPartition::default()],
            ..OffsetCommitRequestTopic::default()
        }],
        ..OffsetCommitRequest::default()
    };
    let version = 9;
    match world.request(Request::OffsetCommit { version, request }) {
        Some(Reply::OffsetCommit(response)) => {
            assert_eq!(response.topics[0].partitions[0].error_code, ErrorCode::NONE)
        }
        other => panic!("{other:?}"),
    }
    world.wait(35_999);
    assert!(
        world.is_member("group", "a"),
        "for what is left of its session"
    );
    world.wait(1);
    assert!(!world.is_member("group", "a"));
}

#[test]
fn static_members_keep_their_session() {
    let mut world = World::new();
    world.topic("orders", 4);
    world.connection = Some(FIRST);
    let mut a = Client::new("a", &["orders"]).instance("one");
    a.beat(&mut world);
    close(&mut world, FIRST, "a");
    world.wait(44_999);
    assert!(world.is_member("group", "a"));
}

#[test]
fn without_a_grace_the_session_counts() {
    let mut world = World::with(|config| config.consumer_connection_grace_ms = 0);
    two(&mut world);
    close(&mut world, FIRST, "a");
    world.wait(44_999);
    assert!(world.is_member("group", "a"));
}

/// A member that is silent for long cannot know that its connection is gone.
#[test]
fn the_grace_is_never_shorter_than_two_heartbeats() {
    let mut world = World::with(|config| config.consumer_heartbeat_interval_ms = 15_000);
    let (mut a, _) = two(&mut world);
    close(&mut world, FIRST, "a");
    world.wait(15_000);
    world.connection = Some(Connection(3));
    assert_eq!(a.beat(&mut world).error_code, ErrorCode::NONE);
}

#[test]
fn what_closes_after_a_restart_says_nothing_of_members_that_have_not_come_yet() {
    let mut world = World::new();
    two(&mut world);
    world.restart();
    close(&mut world, FIRST, "a");
    world.wait(44_999);
    assert!(world.is_member("group", "a"));
}

#[test]
fn members_and_groups_that_are_not_there_are_none_of_its_business() {
    let mut world = World::new();
    let (mut a, _) = two(&mut world);
    a.leave(&mut world, -1);
    close(&mut world, FIRST, "a");
    let members = [(Id::from("nowhere"), Id::from("a"))];
    world.step(|shard, now, out| shard.connection_closed(FIRST, &members, now, out));
    world.check();
}
