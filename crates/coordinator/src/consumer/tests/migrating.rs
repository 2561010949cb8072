//! Groups that change from one protocol to the other.

use bytes::Bytes;
use kohort_wire::{ErrorCode, messages::*};

use super::{
    classic::{Classic, in_turn, rebalance},
    client::Client,
    world::World,
};
use crate::{MigrationPolicy, Reply, Request, classic::ClassicState};

/// A classic group of two members that share four partitions.
fn classic_group(world: &mut World) -> (Classic, Classic) {
    world.topic("orders", 4);
    let mut a = Classic::new(&["orders"]);
    let mut b = Classic::new(&["orders"]);
    rebalance(world, &mut [&mut a, &mut b], "orders", 4);
    assert_eq!((a.owned.len(), b.owned.len()), (2, 2));
    (a, b)
}

fn classic_state(world: &World) -> Option<ClassicState> {
    let group = world.shard.groups.get("group")?;
    Some(group.classic()?.state)
}

#[test]
fn an_empty_classic_group_becomes_a_consumer_group_and_keeps_its_offsets() {
    let mut world = World::new();
    let (mut a, mut b) = classic_group(&mut world);
    commit(&mut world, &a, 7);
    a.leave(&mut world);
    b.leave(&mut world);
    let mut c = Client::new("c", &["orders"]);
    c.beat(&mut world);
    assert_eq!(c.owned.len(), 4);
    assert_eq!(committed(&mut world), 7);
    world.check();
    world.restart();
    assert_eq!(committed(&mut world), 7);
    assert_eq!(world.group("group").len(), 1);
}

#[test]
fn an_empty_consumer_group_becomes_a_classic_group() {
    let mut world = World::new();
    world.topic("orders", 4);
    let mut c = Client::new("c", &["orders"]);
    c.beat(&mut world);
    c.leave(&mut world, -1);
    let mut a = Classic::new(&["orders"]);
    rebalance(&mut world, &mut [&mut a], "orders", 4);
    assert_eq!(a.owned.len(), 4);
    assert_eq!(classic_state(&world), Some(ClassicState::Stable));
    world.check();
}

#[test]
fn the_first_consumer_heartbeat_converts_a_classic_group_and_its_members_keep_what_they_own() {
    let mut world = World::new();
    let (mut a, mut b) = classic_group(&mut world);
    let before = (a.owned.clone(), b.owned.clone());
    let generation = a.generation;
    let mut c = Client::new("c", &["orders"]);
    c.beat(&mut world);
    let group = world.group("group");
    assert_eq!(group.len(), 3);
    assert_eq!(group.epoch, generation + 1);
    world.check();
    assert_eq!((a.owned.clone(), b.owned.clone()), before);
    for _ in 0..4 {
        world.wait(1_000);
        a.beat(&mut world);
        b.beat(&mut world);
        c.beat(&mut world);
        world.check();
    }
    assert_eq!(world.state("group"), "Stable");
    let total = a.owned.len() + b.owned.len() + c.owned.len();
    assert_eq!(total, 4);
    assert!(!c.owned.is_empty());
    world.restart();
    world.wait(1_000);
    a.beat(&mut world);
    b.beat(&mut world);
    c.beat(&mut world);
    assert_eq!(world.state("group"), "Stable");
}

#[test]
fn members_that_wait_in_a_rebalance_are_told_to_rejoin() {
    let mut world = World::new();
    let (mut a, mut b) = classic_group(&mut world);
    let mut late = Classic::new(&["orders"]);
    let late_join = late.send_join(&mut world);
    let a_join = a.send_join(&mut world);
    let mut c = Client::new("c", &["orders"]);
    c.beat(&mut world);
    assert_eq!(
        a.joined(&mut world, a_join).error_code,
        ErrorCode::REBALANCE_IN_PROGRESS
    );
    let response = late.joined(&mut world, late_join);
    assert_eq!(response.error_code, ErrorCode::REBALANCE_IN_PROGRESS);
    world.check();
    for _ in 0..5 {
        world.wait(1_000);
        a.beat(&mut world);
        b.beat(&mut world);
        late.generation = -1;
        c.beat(&mut world);
    }
    assert!(late.join(&mut world).error_code == ErrorCode::NONE);
    assert_eq!(late.sync(&mut world), ErrorCode::NONE);
    world.check();
}

/// KAFKA-17733
#[test]
fn upgrade_works_when_a_members_assignment_is_empty() {
    let mut world = World::new();
    world.topic("orders", 1);
    let mut a = Classic::new(&["orders"]);
    let mut b = Classic::new(&["orders"]);
    rebalance(&mut world, &mut [&mut a, &mut b], "orders", 1);
    let mut c = Client::new("c", &["orders"]);
    assert_eq!(c.beat(&mut world).error_code, ErrorCode::NONE);
    assert_eq!(world.group("group").len(), 3);
    world.check();
}

/// KAFKA-17733.
#[test]
fn upgrade_works_before_the_first_rebalance_has_ended() {
    let mut world = World::new();
    world.topic("orders", 1);
    let mut a = Classic::new(&["orders"]);
    let token = a.send_join(&mut world);
    let mut c = Client::new("c", &["orders"]);
    assert_eq!(c.beat(&mut world).error_code, ErrorCode::NONE);
    let response = a.joined(&mut world, token);
    assert_eq!(response.error_code, ErrorCode::REBALANCE_IN_PROGRESS);
    assert_eq!(world.group("group").len(), 2);
    world.check();
    world.wait(1_000);
    assert_eq!(a.join(&mut world).error_code, ErrorCode::NONE);
    assert_eq!(a.sync(&mut world), ErrorCode::NONE);
    world.check();
}

/// KAFKA-17228
#[test]
fn a_static_member_that_changes_the_protocol_takes_over_its_own_instance_at_once() {
    let mut world = World::new();
    world.topic("orders", 4);
    let mut a = Classic::new(&["orders"]).instance("i1");
    let mut b = Classic::new(&["orders"]).instance("i2");
    rebalance(&mut world, &mut [&mut a, &mut b], "orders", 4);
    let mut c = Client::new("c", &["orders"]).instance("i1");
    assert_eq!(c.beat(&mut world).error_code, ErrorCode::NONE);
    assert_eq!(c.owned.len(), 2, "what it owned before");
    assert_eq!(world.group("group").len(), 2);
    assert_eq!(a.heartbeat(&mut world), ErrorCode::FENCED_INSTANCE_ID);
    assert_eq!(b.heartbeat(&mut world), ErrorCode::NONE);
    world.check();
}

#[test]
fn partitions_that_the_classic_leader_had_not_assigned_are_assigned_after_the_upgrade() {
    let mut world = World::new();
    world.topic("orders", 4);
    let mut a = Classic::new(&["orders"]).instance("i");
    rebalance(&mut world, &mut [&mut a], "orders", 4);
    world.topic("orders", 6);
    // It changes nothing but its protocol.
    let mut c = Client::new("c", &["orders"]).instance("i");
    c.beat(&mut world);
    assert_eq!(c.owned.len(), 6);
    assert_eq!(world.state("group"), "Stable");
    world.check();
}

#[test]
fn an_assignment_that_an_upgrade_prevented_is_made_up_for() {
    let mut world = World::new();
    world.topic("orders", 4);
    let mut a = Classic::new(&["orders"]).instance("i1");
    let mut b = Classic::new(&["orders"]).instance("i2");
    rebalance(&mut world, &mut [&mut a], "orders", 4);
    let b_join = b.send_join(&mut world);
    let a_join = a.send_join(&mut world);
    assert_eq!(a.joined(&mut world, a_join).error_code, ErrorCode::NONE);
    assert_eq!(b.joined(&mut world, b_join).error_code, ErrorCode::NONE);
    let mut c = Client::new("c", &["orders"]).instance("i1");
    for _ in 0..4 {
        c.beat(&mut world);
        b.beat(&mut world);
        world.wait(1_000);
    }
    assert_eq!((b.owned.len(), c.owned.len()), (2, 2));
    assert_eq!(world.state("group"), "Stable");
    world.check();
}

#[test]
fn what_cannot_be_upgraded_is_refused_and_goes_on() {
    let refused = |world: &mut World, why: &str| {
        let written = world.log.len();
        let response = world.heartbeat(1, Client::new("c", &["orders"]).request());
        assert_eq!(response.error_code, ErrorCode::GROUP_ID_NOT_FOUND, "{why}");
        let message = response.error_message.expect("a message");
        assert!(message.contains(why), "{message}");
        assert_eq!(world.log.len(), written);
    };
    for policy in [MigrationPolicy::Disabled, MigrationPolicy::Downgrade] {
        let mut world = World::with(|config| config.consumer_migration_policy = policy);
        let (mut a, _) = classic_group(&mut world);
        refused(&mut world, "group.consumer.migration.policy");
        assert_eq!(a.heartbeat(&mut world), ErrorCode::NONE);
    }

    let mut world = World::new();
    world.topic("orders", 4);
    let mut a = Classic::new(&["orders"]);
    a.user_data = Some(Bytes::from_static(b"mine"));
    rebalance(&mut world, &mut [&mut a], "orders", 4);
    refused(&mut world, "data of its own");

    let mut world = World::with(|config| config.consumer_max_size = 1);
    classic_group(&mut world);
    let response = world.heartbeat(1, Client::new("c", &["orders"]).request());
    assert_eq!(response.error_code, ErrorCode::GROUP_MAX_SIZE_REACHED);
}

/// KAFKA-20570
#[test]
fn malformed_metadata_gets_an_error_and_disturbs_nobody() {
    let mut world = World::new();
    world.topic("orders", 4);
    let mut other = Client::new("other", &["orders"]);
    other.group_id = "other".to_owned();
    other.beat(&mut world);
    for metadata in [
        &b""[..],
        b"\0",
        b"\0\x03\xff\xff\xff\xff",
        b"\0\0\x7f\xff\xff\xff",
    ] {
        let mut request = Classic::new(&["orders"]).join_request();
        request.protocols[0].metadata = Bytes::from_static(metadata);
        request.group_id = "other".into();
        request.group_instance_id = Some("i".into());
        let written = world.log.len();
        let reply = world.request(Request::JoinGroup {
            version: 9,
            request: request.clone(),
        });
        let Some(Reply::JoinGroup(response)) = reply else {
            panic!("no answer");
        };
        assert_eq!(response.error_code, ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
        assert_eq!(world.log.len(), written);

        // A classic group does not read it; the upgrade finds out.
        request.group_id = "malformed".into();
        world.send(Request::JoinGroup {
            version: 9,
            request,
        });
        let mut client = Client::new("c", &["orders"]);
        client.group_id = "malformed".to_owned();
        let response = world.heartbeat(1, client.request());
        assert_eq!(response.error_code, ErrorCode::GROUP_ID_NOT_FOUND);
    }
    assert_eq!(other.beat(&mut world).error_code, ErrorCode::NONE);
    world.check();
}

/// A consumer group of one member of the consumer protocol and two of the classic one.
fn mixed_group(world: &mut World) -> (Classic, Classic, Client) {
    let (mut a, mut b) = classic_group(world);
    let mut c = Client::new("c", &["orders"]);
    c.beat(world);
    for _ in 0..5 {
        world.wait(1_000);
        a.beat(world);
        b.beat(world);
        c.beat(world);
    }
    assert_eq!(world.state("group"), "Stable");
    (a, b, c)
}

fn assert_downgraded(world: &mut World, a: &mut Classic, b: &mut Classic) {
    assert_eq!(classic_state(world), Some(ClassicState::PreparingRebalance));
    world.check();
    assert_eq!(a.heartbeat(world), ErrorCode::REBALANCE_IN_PROGRESS);
    rebalance(world, &mut [a, b], "orders", 4);
    assert_eq!((a.owned.len(), b.owned.len()), (2, 2));
    assert_eq!(classic_state(world), Some(ClassicState::Stable));
    world.check();
    world.restart();
    assert_eq!(a.heartbeat(world), ErrorCode::NONE);
}

#[test]
fn the_group_becomes_classic_when_its_last_consumer_leaves() {
    let mut world = World::new();
    let (mut a, mut b, mut c) = mixed_group(&mut world);
    let generation = a.generation;
    c.leave(&mut world, -1);
    assert_downgraded(&mut world, &mut a, &mut b);
    assert!(a.generation > generation);
}

/// The rebalance is not in the log, and whoever stays does not know that it leads: nobody would ever
/// assign what the others had. (Simulator, seed 155.)
#[test]
fn a_coordinator_that_is_lost_after_the_group_became_classic_does_not_lose_the_rebalance() {
    let mut world = World::new();
    let (mut a, mut b, mut c) = mixed_group(&mut world);
    c.leave(&mut world, -1);
    world.restart();
    assert_downgraded(&mut world, &mut a, &mut b);
    // Once is enough.
    world.restart();
    assert_eq!(classic_state(&world), Some(ClassicState::Stable));
}

#[test]
fn the_group_becomes_classic_when_its_last_consumer_is_fenced() {
    let mut world = World::new();
    let (mut a, mut b, _) = mixed_group(&mut world);
    for _ in 0..5 {
        world.wait(9_000);
        a.heartbeat(&mut world);
        b.heartbeat(&mut world);
    }
    assert_downgraded(&mut world, &mut a, &mut b);
}

/// KAFKA-18150
#[test]
fn a_classic_leave_that_removes_the_last_consumer_converts_the_group() {
    let mut world = World::new();
    let (mut a, mut b, c) = mixed_group(&mut world);
    let request = LeaveGroupRequest {
        group_id: "group".into(),
        members: vec![
            MemberIdentity {
                member_id: (&*c.id).into(),
                ..MemberIdentity::default()
            },
            MemberIdentity {
                member_id: "nobody".into(),
                ..MemberIdentity::default()
            },
        ],
        ..LeaveGroupRequest::default()
    };
    let reply = world.request(Request::LeaveGroup {
        version: 5,
        request,
    });
    let Some(Reply::LeaveGroup(response)) = reply else {
        panic!("no answer");
    };
    let codes: Vec<ErrorCode> = response.members.iter().map(|m| m.error_code).collect();
    assert_eq!(codes, [ErrorCode::NONE, ErrorCode::UNKNOWN_MEMBER_ID]);
    assert_downgraded(&mut world, &mut a, &mut b);
}

/// KAFKA-16861
#[test]
fn no_downgrade_to_a_group_that_would_be_too_large() {
    let mut world = World::with(|config| config.group_max_size = 2);
    let (a, b, mut c) = mixed_group(&mut world);
    let mut d = Client::new("d", &["orders"]);
    d.beat(&mut world);
    d.leave(&mut world, -1);
    drop((a, b));
    world.config.group_max_size = 1;
    let config = std::sync::Arc::new(world.config.clone());
    world.shard.config_changed(config);
    c.leave(&mut world, -1);
    assert_eq!(world.group("group").len(), 2, "a consumer group still");
    world.check();
}

#[test]
fn no_downgrade_where_the_settings_forbid_it() {
    let mut world =
        World::with(|config| config.consumer_migration_policy = MigrationPolicy::Upgrade);
    let (mut a, mut b, mut c) = mixed_group(&mut world);
    c.leave(&mut world, -1);
    for _ in 0..3 {
        world.wait(1_000);
        a.beat(&mut world);
        b.beat(&mut world);
    }
    assert_eq!(world.state("group"), "Stable");
    assert_eq!((a.owned.len(), b.owned.len()), (2, 2));
    world.check();
}

/// KAFKA-17317
#[test]
fn the_last_consumer_replaced_through_its_static_id_by_a_classic_member_converts_the_group() {
    let mut world = World::new();
    world.topic("orders", 4);
    let mut c = Client::new("c", &["orders"]).instance("i");
    c.beat(&mut world);
    let epoch = c.epoch;
    let mut a = Classic::new(&["orders"]).instance("i");
    let token = a.send_join(&mut world);
    let response = a.joined(&mut world, token);
    assert_eq!(response.error_code, ErrorCode::NONE);
    assert_eq!(response.generation_id, epoch + 1);
    assert_eq!(
        response.leader, response.member_id,
        "it looks for other partitions from now on"
    );
    assert!(!response.skip_assignment);
    let assignments = in_turn(&response.members, "orders", 4);
    let token = a.send_sync(&mut world, assignments);
    assert_eq!(a.synced(&mut world, token), ErrorCode::NONE);
    assert_eq!(a.owned.len(), 4);
    assert_eq!(classic_state(&world), Some(ClassicState::Stable));
    assert_eq!(a.heartbeat(&mut world), ErrorCode::NONE);
    world.check();
    world.restart();
    assert_eq!(a.heartbeat(&mut world), ErrorCode::NONE);
}

#[test]
fn all_that_stay_learn_who_leads_when_a_classic_member_takes_the_place_of_the_last_consumer() {
    let mut world = World::new();
    world.topic("orders", 4);
    let mut a = Classic::new(&["orders"]).instance("i1");
    let mut b = Classic::new(&["orders"]).instance("i2");
    rebalance(&mut world, &mut [&mut a, &mut b], "orders", 4);
    let mut c = Client::new("c", &["orders"]).instance("i1");
    c.beat(&mut world);
    assert_eq!(b.heartbeat(&mut world), ErrorCode::NONE);
    let mut a = Classic::new(&["orders"]).instance("i1");
    let a_join = a.send_join(&mut world);
    assert_eq!(
        classic_state(&world),
        Some(ClassicState::PreparingRebalance)
    );
    assert_eq!(b.heartbeat(&mut world), ErrorCode::REBALANCE_IN_PROGRESS);
    let b_join = b.send_join(&mut world);
    let answers = [a.joined(&mut world, a_join), b.joined(&mut world, b_join)];
    let leads = |answer: &&JoinGroupResponse| answer.leader == answer.member_id;
    assert_eq!(answers.iter().filter(leads).count(), 1);
    world.check();
}

/// KAFKA-19546
#[test]
fn a_subscription_changed_in_the_request_that_triggers_a_downgrade_is_not_lost() {
    let mut world = World::new();
    world.topic("orders", 4);
    world.topic("payments", 2);
    let mut c = Client::new("c", &["orders"]).instance("i");
    c.beat(&mut world);
    let mut a = Classic::new(&["payments"]).instance("i");
    let token = a.send_join(&mut world);
    let response = a.joined(&mut world, token);
    assert_eq!(response.error_code, ErrorCode::NONE);
    let group = world.shard.groups.get("group").expect("a group");
    let classic = group.classic().expect("a classic group");
    assert!(classic.subscribes_to("payments"));
    assert!(!classic.subscribes_to("orders"));
    world.check();
}

/// All members are heard in turn, until the group is stable; no partition is ever with two.
fn settle_without_sharing(world: &mut World, classic: &mut [&mut Classic], client: &mut Client) {
    for _ in 0..6 {
        client.beat(world);
        for (_, partition) in &client.owned {
            let owns =
                |member: &&mut Classic| member.owned.contains(&("orders".to_owned(), *partition));
            assert!(!classic.iter().any(owns), "{partition} is with two members");
        }
        for member in &mut *classic {
            member.beat(world);
        }
        world.wait(1_000);
    }
    assert_eq!(world.state("group"), "Stable");
    world.check();
}

#[test]
fn what_a_member_has_yet_to_let_go_of_stays_with_it_through_a_downgrade_and_an_upgrade() {
    let mut world = World::new();
    world.topic("orders", 4);
    let mut a = Classic::new(&["orders"]);
    rebalance(&mut world, &mut [&mut a], "orders", 4);
    let mut b = Client::new("b", &["orders"]);
    b.beat(&mut world);
    b.leave(&mut world, -1);
    assert_eq!(
        classic_state(&world),
        Some(ClassicState::PreparingRebalance)
    );
    // It still has all four, and has not assigned yet.
    assert_eq!(a.join(&mut world).error_code, ErrorCode::NONE);
    let mut c = Client::new("c", &["orders"]);
    settle_without_sharing(&mut world, &mut [&mut a], &mut c);
    assert_eq!((a.owned.len(), c.owned.len()), (2, 2));
}

#[test]
fn what_a_cooperative_member_has_yet_to_let_go_of_stays_with_it_through_an_upgrade() {
    let mut world = World::new();
    world.topic("orders", 4);
    let mut a = Classic::new(&["orders"]);
    rebalance(&mut world, &mut [&mut a], "orders", 4);
    let mut b = Classic::new(&["orders"]);
    let b_join = b.send_join(&mut world);
    let a_join = a.send_join(&mut world);
    let joined = a.joined(&mut world, a_join).members;
    b.joined(&mut world, b_join);
    // What is to go to the other waits until it is let go of; the answer is on its way.
    let mut assignments = in_turn(&joined, "orders", 4);
    assignments.retain(|one| *one.member_id == *a.id);
    a.send_sync(&mut world, assignments);
    assert_eq!(classic_state(&world), Some(ClassicState::Stable));
    let mut c = Client::new("c", &["orders"]);
    settle_without_sharing(&mut world, &mut [&mut a, &mut b], &mut c);
    let counts = [a.owned.len(), b.owned.len(), c.owned.len()];
    assert_eq!(counts.iter().sum::<usize>(), 4);
}

fn commit(world: &mut World, member: &Classic, offset: i64) {
    let request = OffsetCommitRequest {
        group_id: "group".into(),
        generation_id_or_member_epoch: member.generation,
        member_id: (&*member.id).into(),
        topics: vec![OffsetCommitRequestTopic {
            name: "orders".into(),
            partitions: vec![OffsetCommitRequestPartition {
                committed_offset: offset,
                ..OffsetCommitRequestPartition::default()
            }],
            ..OffsetCommitRequestTopic::default()
        }],
        ..OffsetCommitRequest::default()
    };
    let reply = world.request(Request::OffsetCommit {
        version: 9,
        request,
    });
    let Some(Reply::OffsetCommit(response)) = reply else {
        panic!("no answer");
    };
    assert_eq!(response.topics[0].partitions[0].error_code, ErrorCode::NONE);
}

fn committed(world: &mut World) -> i64 {
    let request = OffsetFetchRequestGroup {
        group_id: "group".into(),
        member_epoch: -1,
        topics: Some(vec![OffsetFetchRequestTopics {
            name: "orders".into(),
            partition_indexes: vec![0],
            ..OffsetFetchRequestTopics::default()
        }]),
        ..OffsetFetchRequestGroup::default()
    };
    match world.request(Request::OffsetFetch {
        request,
        require_stable: false,
    }) {
        Some(Reply::OffsetFetch(group)) => group.topics[0].partitions[0].committed_offset,
        other => panic!("{other:?}"),
    }
}
