//! However its members hang, a rewind ends: owners that do not let go are put out in time. All of
//! them go on with what keeps them in the group otherwise.

use kohort_wire::ErrorCode;

use super::{
    classic::{group, own_nothing},
    *,
};
use crate::{
    Millis, Token,
    consumer::tests::{
        classic::{Classic, rebalance},
        client::Client,
        world::World,
    },
};

/// The rebalance timeout of all members here, and their time to notice.
const REBALANCE_TIMEOUT_MS: Millis = 60_000;
const STEP_MS: Millis = 5_000;

/// Lets time pass, with heartbeats in between, until the rewind has happened; how long it took.
fn until_done(world: &mut World, token: Token, mut beat: impl FnMut(&mut World)) -> Millis {
    let began = world.now;
    while !is_done(world, token) {
        assert!(world.now - began < 3 * REBALANCE_TIMEOUT_MS, "no end");
        beat(world);
        world.wait(STEP_MS);
    }
    world.now - began
}

/// They hang while they let go: their clients go on with heartbeats.
fn hang(world: &mut World, members: &[Classic]) {
    for member in members {
        member.clone().heartbeat(world);
    }
}

fn owner_first(members: &mut [Classic], partition: i32) {
    members.sort_by_key(|member| !member.owned.contains(&("orders".to_owned(), partition)));
}

/// Nobody is put out of a classic group in which static members alone are left and none rejoins, as
/// long as they send heartbeats: as in Kafka, where it would wait with the rewind for ever.
/// (Simulator, seed 20263.)
#[test]
fn static_owners_that_all_hang_are_put_out_if_a_rewind_waits_for_them() {
    let (mut world, mut members) = group("range", 3, true);
    owner_first(&mut members, 0);
    let token = rewind(&mut world, &[("orders", 0, 5)]);
    let took = until_done(&mut world, token, |world| hang(world, &members));
    assert!((REBALANCE_TIMEOUT_MS..=REBALANCE_TIMEOUT_MS + STEP_MS).contains(&took));
    assert_eq!(committed(&mut world, "orders", &[0]), [5]);
    assert!(has_event(&world, "removed"));

    // Who owns none of it stays, and may still commit what it owns, and nothing else.
    let (owner, others) = members.split_first().expect("three");
    let late = commit(&mut world, &owner.id, owner.generation, ("orders", 0, 100));
    assert_eq!(late, ErrorCode::UNKNOWN_MEMBER_ID);
    for other in others {
        let beat = other.clone().heartbeat(&mut world);
        assert_eq!(beat, ErrorCode::REBALANCE_IN_PROGRESS);
        let (topic, own) = other.owned.first().expect("a partition");
        let own = commit(&mut world, &other.id, other.generation, (topic, *own, 7));
        assert_eq!(own, ErrorCode::NONE);
        let taken = commit(&mut world, &other.id, other.generation, ("orders", 0, 100));
        assert_eq!(taken, ErrorCode::REBALANCE_IN_PROGRESS);
    }
    assert_eq!(committed(&mut world, "orders", &[0]), [5]);

    // The group goes on once somebody comes to.
    own_nothing(&mut members[0]);
    let mut all: Vec<&mut Classic> = members.iter_mut().collect();
    rebalance(&mut world, &mut all, "orders", 6);
    let owner = members.iter().find(|member| {
        let mut owned = member.owned.iter();
        owned.any(|(_, partition)| *partition == 0)
    });
    let owner = owner.expect("an owner").clone();
    let code = commit(&mut world, &owner.id, owner.generation, ("orders", 0, 6));
    assert_eq!(code, ErrorCode::NONE);
}

#[test]
fn static_members_that_all_hang_stay_if_no_rewind_waits_for_them() {
    let (mut world, mut members) = group("range", 2, true);
    // A leader that joins wants a rebalance.
    let mut newcomer = Classic {
        protocol: "range".to_owned(),
        ..Classic::new(&["orders"])
    };
    newcomer.send_join(&mut world);
    newcomer.leave(&mut world);
    for _ in 0..60 {
        world.wait(10_000);
        for member in &mut members {
            let beat = member.heartbeat(&mut world);
            assert_eq!(beat, ErrorCode::REBALANCE_IN_PROGRESS);
        }
    }
    // They have had their time when somebody asks for a rewind.
    owner_first(&mut members, 0);
    let token = rewind(&mut world, &[("orders", 0, 5)]);
    assert!(is_done(&mut world, token));
    let beats = members
        .iter_mut()
        .map(|member| member.heartbeat(&mut world));
    assert_eq!(
        beats.collect::<Vec<_>>(),
        [
            ErrorCode::UNKNOWN_MEMBER_ID,
            ErrorCode::REBALANCE_IN_PROGRESS
        ]
    );
}

#[test]
fn a_static_member_that_is_alone_and_hangs_is_put_out_and_the_group_is_empty() {
    let (mut world, members) = group("range", 1, true);
    let token = rewind(&mut world, &[("orders", 0, 5)]);
    let took = until_done(&mut world, token, |world| hang(world, &members));
    assert!(took <= REBALANCE_TIMEOUT_MS + STEP_MS);
    assert_eq!(committed(&mut world, "orders", &[0]), [5]);
    world.restart();
    assert_eq!(committed(&mut world, "orders", &[0]), [5]);
    let mut back = members[0].clone();
    own_nothing(&mut back);
    rebalance(&mut world, &mut [&mut back], "orders", 6);
}

#[test]
fn a_coordinator_that_takes_over_gives_them_their_time_anew_and_no_more() {
    let (mut world, members) = group("range", 2, true);
    rewind(&mut world, &[("orders", 0, 5)]);
    let until = world.now + REBALANCE_TIMEOUT_MS - STEP_MS;
    while world.now < until {
        hang(&mut world, &members);
        world.wait(STEP_MS);
    }
    world.restart();
    let began = world.now;
    while !world.shard.rewinding.is_empty() {
        hang(&mut world, &members);
        world.wait(STEP_MS);
        assert!(world.now - began <= REBALANCE_TIMEOUT_MS + STEP_MS);
    }
    assert_eq!(committed(&mut world, "orders", &[0]), [5]);
    // And one that takes over from then on knows that they are of before.
    world.restart();
    for member in &members {
        for partition in [0, 1] {
            let place = ("orders", partition, 100);
            let code = commit(&mut world, &member.id, member.generation, place);
            assert!(code.is_error());
        }
    }
    assert_eq!(committed(&mut world, "orders", &[0]), [5]);
}

/// Cooperative owners are put out at once. The others own none of it, and keep what they have.
#[test]
fn static_cooperative_members_that_hang_and_own_none_of_it_are_not_put_out() {
    let (mut world, mut members) = group("cooperative-sticky", 3, true);
    owner_first(&mut members, 0);
    let token = rewind(&mut world, &[("orders", 0, 5)]);
    let took = until_done(&mut world, token, |world| hang(world, &members));
    assert!(took <= REBALANCE_TIMEOUT_MS + STEP_MS);
    for other in &mut members[1..] {
        let beat = other.heartbeat(&mut world);
        assert_eq!(beat, ErrorCode::REBALANCE_IN_PROGRESS);
        let taken = commit(&mut world, &other.id, other.generation, ("orders", 0, 100));
        assert_eq!(taken, ErrorCode::REBALANCE_IN_PROGRESS);
    }
    assert_eq!(committed(&mut world, "orders", &[0]), [5]);
}

#[test]
fn an_id_that_was_given_out_and_is_not_used_holds_up_nothing() {
    for is_static in [false, true] {
        let (mut world, members) = group("range", 2, is_static);
        let mut request = Classic::new(&["orders"]).join_request();
        request.protocols[0].name = "range".into();
        // Longer than anything else.
        request.session_timeout_ms = 1_800_000;
        world.send(Request::JoinGroup {
            version: 9,
            request,
        });
        let token = rewind(&mut world, &[("orders", 0, 5)]);
        let took = until_done(&mut world, token, |world| hang(world, &members));
        assert!(took <= REBALANCE_TIMEOUT_MS + STEP_MS, "{took}");
    }
}

/// Of a group whose leader does not assign, all have joined, and own nothing yet.
#[test]
fn a_leader_that_never_assigns_holds_up_nothing() {
    for is_static in [false, true] {
        let (mut world, mut members) = group("range", 3, is_static);
        let mut newcomer = Classic {
            protocol: "range".to_owned(),
            ..Classic::new(&["orders"])
        };
        let mut joins = vec![newcomer.send_join(&mut world)];
        joins.extend(
            members
                .iter_mut()
                .map(|member| member.send_join(&mut world)),
        );
        members.insert(0, newcomer);
        for (member, token) in members.iter_mut().zip(joins) {
            member.joined(&mut world, token);
        }
        let syncs: Vec<Token> = members
            .iter_mut()
            .map(|member| member.send_sync(&mut world, Vec::new()))
            .collect();
        // The leader is the one whose sync has been taken for an assignment: nobody's is, here.
        let group = world.shard.groups["group"].classic().expect("classic");
        let leader = group.leader.clone().expect("a leader");
        drop(syncs);
        let token = rewind(&mut world, &[("orders", 0, 5)]);
        let others: Vec<Classic> = members
            .iter()
            .filter(|member| *member.id != *leader)
            .cloned()
            .collect();
        for mut other in others {
            other.send_join(&mut world);
        }
        let took = until_done(&mut world, token, |world| hang(world, &members));
        assert!(took <= REBALANCE_TIMEOUT_MS + STEP_MS, "{took}");
    }
}

#[test]
fn groups_without_members_hold_up_nothing() {
    let mut world = World::new();
    world.topic("orders", 6);
    let token = rewind(&mut world, &[("orders", 0, 5)]);
    assert!(is_done(&mut world, token), "it did not exist");
    let token = rewind(&mut world, &[("orders", 0, 6)]);
    assert!(is_done(&mut world, token), "it has offsets only");
    let (mut world, mut members) = group("range", 1, true);
    members[0].leave(&mut world);
    let token = rewind(&mut world, &[("orders", 0, 5)]);
    assert!(is_done(&mut world, token), "its members have left");
}

/// A static owner of the consumer protocol that hangs, with others beside it; what it owns.
fn static_consumer(others: &mut [&mut Client], classic: &mut Classic) -> (World, Client, i32) {
    let mut world = World::new();
    let topic = world.topic("orders", 6);
    let mut a = Client::new("a", &["orders"]).instance("i");
    world.settle(&mut [&mut a]);
    classic.join(&mut world);
    classic.sync(&mut world);
    for _ in 0..6 {
        world.wait(1_000);
        a.beat(&mut world);
        others.iter_mut().for_each(|other| {
            other.beat(&mut world);
        });
        classic.beat(&mut world);
    }
    assert!(!classic.owned.is_empty());
    let own = a.of(topic)[0];
    a.keeps_all = true;
    (world, a, own)
}

#[test]
fn static_owners_of_the_consumer_protocol_that_hang_are_put_out() {
    let mut b = Client::new("b", &["orders"]);
    let mut classic = Classic::new(&["orders"]).instance("j");
    let (mut world, mut a, own) = static_consumer(&mut [&mut b], &mut classic);
    let token = rewind(&mut world, &[("orders", own, 5)]);
    let took = until_done(&mut world, token, |world| {
        a.beat(world);
        b.beat(world);
        classic.beat(world);
    });
    assert!(took <= REBALANCE_TIMEOUT_MS + STEP_MS, "{took}");
    assert!(!world.is_member("group", "a"));
    world.check();
}

#[test]
fn whoever_is_left_when_the_last_consumer_was_put_out_has_its_time_and_no_more() {
    let mut classic = Classic::new(&["orders"]).instance("j");
    let (mut world, mut a, own) = static_consumer(&mut [], &mut classic);
    let token = rewind(&mut world, &[("orders", own, 5)]);
    let took = until_done(&mut world, token, |world| {
        if world.shard.consumer_group("group").is_some() {
            a.beat(world);
        }
        hang(world, std::slice::from_ref(&classic));
    });
    assert!(took <= 2 * (REBALANCE_TIMEOUT_MS + STEP_MS), "{took}");
    assert_eq!(committed(&mut world, "orders", &[own]), [5]);
}

/// A group of both protocols.
fn mixed_group() -> (World, Client, Classic) {
    let mut world = World::new();
    world.topic("orders", 6);
    let mut a = Client::new("a", &["orders"]);
    world.settle(&mut [&mut a]);
    let mut classic = Classic::new(&["orders"]).instance("j");
    classic.join(&mut world);
    classic.sync(&mut world);
    for _ in 0..6 {
        world.wait(1_000);
        a.beat(&mut world);
        classic.beat(&mut world);
    }
    (world, a, classic)
}

/// The same, with a partition of the classic member being rewound.
fn mixed() -> (World, Client, Classic, Token) {
    let (mut world, a, classic) = mixed_group();
    let (topic, partition) = classic.owned.first().expect("a partition").clone();
    let token = rewind(&mut world, &[(&topic, partition, 5)]);
    (world, a, classic, token)
}

/// It knows its partitions by name, and has begun to read the new topic before the rewind.
#[test]
fn a_classic_member_among_consumers_that_has_gone_on_with_a_new_topic_is_put_out() {
    let (mut world, _, mut classic) = mixed_group();
    let (topic, partition) = classic.owned.first().expect("a partition").clone();
    world.delete_topic(&topic);
    world.topic(&topic, 6);
    // Nobody has been assigned the new topic.
    let token = rewind(&mut world, &[(&topic, partition, 5)]);
    assert!(is_done(&mut world, token));
    let join = classic.send_join(&mut world);
    let refused = classic.joined(&mut world, join);
    assert_eq!(refused.error_code, ErrorCode::UNKNOWN_MEMBER_ID);
    assert!(!world.is_member("group", &classic.id));
    world.check();
}

#[test]
fn a_classic_member_among_consumers_that_does_not_rejoin_is_put_out() {
    let (mut world, mut a, classic, token) = mixed();
    let took = until_done(&mut world, token, |world| {
        a.beat(world);
        classic.clone().heartbeat(world);
    });
    assert!(took <= REBALANCE_TIMEOUT_MS + STEP_MS, "{took}");
    assert!(!world.is_member("group", &classic.id));
    world.check();
}

/// In Kafka it would be waited for as long as it says that it still owns what it is to let go of.
#[test]
fn a_classic_member_among_consumers_that_rejoins_and_lets_go_of_nothing_is_put_out() {
    let (mut world, mut a, mut classic, token) = mixed();
    let owned = classic.owned.clone();
    let took = until_done(&mut world, token, |world| {
        a.beat(world);
        classic.beat(world);
        if !classic.id.is_empty() {
            classic.owned.clone_from(&owned);
        }
    });
    assert!(took <= REBALANCE_TIMEOUT_MS + 2 * STEP_MS, "{took}");
    assert!(has_event(&world, "revoke"));
    world.check();
}
