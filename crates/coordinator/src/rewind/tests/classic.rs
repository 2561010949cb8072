//! Rewinds of classic groups.

use kohort_wire::ErrorCode;

use super::*;
use crate::{
    Token,
    consumer::tests::{
        classic::{Classic, rebalance},
        world::World,
    },
};

/// A group of so many members of a strategy, with six partitions in turn.
pub(super) fn group(protocol: &str, count: usize, is_static: bool) -> (World, Vec<Classic>) {
    let mut world = World::new();
    world.topic("orders", 6);
    let mut members: Vec<Classic> = (0..count)
        .map(|index| {
            let member = Classic {
                protocol: protocol.to_owned(),
                ..Classic::new(&["orders"])
            };
            if is_static {
                member.instance(&format!("i{index}"))
            } else {
                member
            }
        })
        .collect();
    let mut all: Vec<&mut Classic> = members.iter_mut().collect();
    rebalance(&mut world, &mut all, "orders", 6);
    (world, members)
}

/// What members of eager strategies do when they are told to rejoin: they commit, give up
/// everything, and join.
fn rejoin_eagerly(world: &mut World, member: &mut Classic, commits: i64) -> Token {
    assert_eq!(member.heartbeat(world), ErrorCode::REBALANCE_IN_PROGRESS);
    for (topic, partition) in std::mem::take(&mut member.owned) {
        let code = commit(
            world,
            &member.id,
            member.generation,
            (&topic, partition, commits),
        );
        assert_eq!(code, ErrorCode::NONE);
    }
    member.send_join(world)
}

fn owner_of(members: &[Classic], partition: i32) -> usize {
    let owns = |member: &Classic| member.owned.contains(&("orders".to_owned(), partition));
    members.iter().position(owns).expect("an owner")
}

pub(super) fn own_nothing(member: &mut Classic) {
    member.id = String::new();
    member.generation = -1;
    member.owned.clear();
}

#[test]
fn an_eager_group_rebalances_and_starts_at_the_new_offsets() {
    for is_static in [false, true] {
        let (mut world, mut members) = group("range", 2, is_static);
        let owner = members[owner_of(&members, 0)].clone();
        let token = rewind(&mut world, &[("orders", 0, 5), ("orders", 1, 6)]);
        assert_eq!(world.shard.rewinding.len(), 1);
        let joins: Vec<Token> = members
            .iter_mut()
            .map(|member| rejoin_eagerly(&mut world, member, 100))
            .collect();
        // All have joined: it happens before anybody is assigned anything.
        assert!(is_done(&mut world, token));
        assert_eq!(
            committed(&mut world, "orders", &[0, 1, 2]),
            [5, 6, 100],
            "what was not named keeps its place"
        );
        let late = commit(&mut world, &owner.id, owner.generation, ("orders", 0, 101));
        assert_eq!(late, ErrorCode::ILLEGAL_GENERATION);
        for (member, token) in members.iter_mut().zip(joins) {
            assert_eq!(member.joined(&mut world, token).error_code, ErrorCode::NONE);
        }
        assert_eq!(committed(&mut world, "orders", &[0, 1]), [5, 6]);
        world.restart();
        assert_eq!(committed(&mut world, "orders", &[0, 1]), [5, 6]);
    }
}

#[test]
fn an_eager_member_that_does_not_rejoin_is_waited_for_until_its_rebalance_timeout() {
    let (mut world, mut members) = group("range", 2, false);
    let slow = members.remove(owner_of(&members, 0));
    let token = rewind(&mut world, &[("orders", 0, 5)]);
    let join = rejoin_eagerly(&mut world, &mut members[0], 100);
    for _ in 0..11 {
        world.wait(5_000);
        assert_eq!(answer(&mut world, token), None);
        slow.clone().heartbeat(&mut world);
        // It works on, and may commit: nothing has been written yet.
        let code = commit(&mut world, &slow.id, slow.generation, ("orders", 0, 100));
        assert_eq!(code, ErrorCode::NONE);
    }
    world.wait(5_000);
    assert!(is_done(&mut world, token));
    members[0].joined(&mut world, join);
    let late = commit(&mut world, &slow.id, slow.generation, ("orders", 0, 101));
    assert_eq!(late, ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(committed(&mut world, "orders", &[0]), [5]);
}

#[test]
fn a_member_that_was_assigned_nothing_yet_or_something_else_cannot_commit_what_was_rewound() {
    let (mut world, mut members) = group("range", 2, false);
    let token = rewind(&mut world, &[("orders", 0, 5)]);
    let joins: Vec<Token> = members
        .iter_mut()
        .map(|member| rejoin_eagerly(&mut world, member, 100))
        .collect();
    assert!(is_done(&mut world, token));
    for (member, token) in members.iter_mut().zip(joins) {
        member.joined(&mut world, token);
    }
    // The next rebalance begins before this generation has been assigned anything.
    let mut c = Classic {
        protocol: "range".to_owned(),
        ..Classic::new(&["orders"])
    };
    c.send_join(&mut world);
    for member in &members {
        let code = commit(
            &mut world,
            &member.id,
            member.generation,
            ("orders", 0, 100),
        );
        assert_eq!(code, ErrorCode::REBALANCE_IN_PROGRESS);
    }
    let mut all: Vec<&mut Classic> = members.iter_mut().collect();
    all.push(&mut c);
    rebalance(&mut world, &mut all, "orders", 6);
    members.push(c);
    let owner = owner_of(&members, 0);
    for (index, member) in members.iter().enumerate() {
        let code = commit(&mut world, &member.id, member.generation, ("orders", 0, 7));
        assert_eq!(code == ErrorCode::NONE, index == owner, "{code}");
    }
    assert_eq!(committed(&mut world, "orders", &[0]), [7]);
}

#[test]
fn a_cooperative_owner_is_put_out_and_the_others_keep_what_they_have() {
    for is_static in [false, true] {
        let (mut world, mut members) = group("cooperative-sticky", 3, is_static);
        let mut owner = members.remove(owner_of(&members, 0));
        let token = rewind(&mut world, &[("orders", 0, 5)]);
        // Not FENCED_INSTANCE_ID, which ends a static member for good.
        assert_eq!(owner.heartbeat(&mut world), ErrorCode::UNKNOWN_MEMBER_ID);
        let code = commit(&mut world, &owner.id, owner.generation, ("orders", 0, 100));
        assert_eq!(code, ErrorCode::UNKNOWN_MEMBER_ID);
        assert_eq!(answer(&mut world, token), None);

        let kept: Vec<_> = members.iter().map(|member| member.owned.clone()).collect();
        let joins: Vec<Token> = members
            .iter_mut()
            .map(|member| {
                let code = member.heartbeat(&mut world);
                assert_eq!(code, ErrorCode::REBALANCE_IN_PROGRESS);
                member.send_join(&mut world)
            })
            .collect();
        assert!(is_done(&mut world, token));
        assert_eq!(committed(&mut world, "orders", &[0]), [5]);
        for (member, token) in members.iter_mut().zip(joins) {
            assert_eq!(member.joined(&mut world, token).error_code, ErrorCode::NONE);
        }
        let now: Vec<_> = members.iter().map(|member| member.owned.clone()).collect();
        assert_eq!(kept, now);
        own_nothing(&mut owner);
        owner.send_join(&mut world);
        assert_eq!(committed(&mut world, "orders", &[0]), [5]);
    }
}

#[test]
fn a_cooperative_group_of_one_that_is_put_out_is_empty_and_rewound_at_once() {
    let (mut world, members) = group("cooperative-sticky", 1, false);
    let token = rewind(&mut world, &[("orders", 3, 5)]);
    assert!(is_done(&mut world, token));
    let late = commit(
        &mut world,
        &members[0].id,
        members[0].generation,
        ("orders", 3, 9),
    );
    assert_eq!(late, ErrorCode::UNKNOWN_MEMBER_ID);
    world.restart();
    assert_eq!(committed(&mut world, "orders", &[3]), [5]);
}

#[test]
fn in_the_middle_of_a_cooperative_rebalance_whoever_comes_with_a_partition_is_put_out() {
    let (mut world, mut members) = group("cooperative-sticky", 3, false);
    // Somebody joins; the owner has not yet rejoined, another member has.
    let owner = owner_of(&members, 0);
    let mut d = Classic::new(&["orders"]);
    d.send_join(&mut world);
    let early = (owner + 1) % 3;
    let early_join = members[early].send_join(&mut world);
    let token = rewind(&mut world, &[("orders", 0, 5)]);
    assert_eq!(answer(&mut world, token), None);
    assert!(world.reply(early_join).is_none(), "it is not disturbed");
    let lost = members[owner].send_join(&mut world);
    let response = members[owner].joined(&mut world, lost);
    assert_eq!(response.error_code, ErrorCode::UNKNOWN_MEMBER_ID);
    members[(owner + 2) % 3].send_join(&mut world);
    assert!(is_done(&mut world, token));
    assert_eq!(committed(&mut world, "orders", &[0]), [5]);
}

#[test]
fn a_join_that_arrives_late_does_not_make_its_member_someone_who_has_let_go() {
    let (mut world, mut members) = group("cooperative-sticky", 3, false);
    let owner = owner_of(&members, 0);
    // Sent before the member was given anything, over a connection that was given up since.
    let mut before = members[owner].clone();
    before.generation -= 1;
    before.owned.clear();
    let mut d = Classic::new(&["orders"]);
    d.send_join(&mut world);
    before.send_join(&mut world);
    let token = rewind(&mut world, &[("orders", 0, 5)]);
    assert_eq!(answer(&mut world, token), None);
    let late = commit(
        &mut world,
        &members[owner].id,
        members[owner].generation,
        ("orders", 0, 100),
    );
    assert_eq!(late, ErrorCode::UNKNOWN_MEMBER_ID);
    for other in [(owner + 1) % 3, (owner + 2) % 3] {
        members[other].send_join(&mut world);
    }
    assert!(is_done(&mut world, token));
    assert_eq!(committed(&mut world, "orders", &[0]), [5]);
}

#[test]
fn a_member_that_has_owned_what_was_rewound_since_before_the_rewind_is_put_out() {
    let (mut world, mut members) = group("cooperative-sticky", 2, false);
    let owner = owner_of(&members, 0);
    let token = rewind(&mut world, &[("orders", 0, 5)]);
    members[1 - owner].send_join(&mut world);
    assert!(is_done(&mut world, token));
    // It is a member, and still has what it owned before.
    let mut other = members[1 - owner].clone();
    other.owned.insert(("orders".to_owned(), 0));
    let join = other.send_join(&mut world);
    let response = other.joined(&mut world, join);
    assert_eq!(response.error_code, ErrorCode::UNKNOWN_MEMBER_ID);
    // Someone who is no member disturbs nobody.
    let events = world.events.len();
    other.id = "unknown".to_owned();
    let join = other.send_join(&mut world);
    let response = other.joined(&mut world, join);
    assert_eq!(response.error_code, ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(world.events.len(), events);
}

#[test]
fn a_join_that_says_it_owns_what_is_rewound_is_refused_until_the_rewind_has_happened() {
    let (mut world, mut members) = group("cooperative-sticky", 2, false);
    let owner = owner_of(&members, 0);
    let other = 1 - owner;
    let token = rewind(&mut world, &[("orders", 0, 5)]);
    // It comes back as somebody new who still owns what it had.
    members[owner].id = String::new();
    let join = members[owner].send_join(&mut world);
    let response = members[owner].joined(&mut world, join);
    assert_eq!(response.error_code, ErrorCode::UNKNOWN_MEMBER_ID);
    members[other].send_join(&mut world);
    assert!(is_done(&mut world, token));
    assert_eq!(committed(&mut world, "orders", &[0]), [5]);
}

#[test]
fn a_group_whose_leader_is_assigning_rebalances_once_more() {
    let (mut world, mut members) = group("roundrobin", 2, false);
    let mut c = Classic {
        protocol: "roundrobin".to_owned(),
        ..Classic::new(&["orders"])
    };
    let mut joins = vec![c.send_join(&mut world)];
    for member in &mut members {
        joins.push(rejoin_eagerly(&mut world, member, 100));
    }
    members.insert(0, c);
    for (member, token) in members.iter_mut().zip(joins) {
        assert_eq!(member.joined(&mut world, token).error_code, ErrorCode::NONE);
    }
    let token = rewind(&mut world, &[("orders", 0, 5)]);
    assert_eq!(answer(&mut world, token), None);
    for member in &mut members {
        let code = member.sync(&mut world);
        assert_eq!(code, ErrorCode::REBALANCE_IN_PROGRESS);
        member.send_join(&mut world);
    }
    assert!(is_done(&mut world, token));
    assert_eq!(committed(&mut world, "orders", &[0, 1]), [5, 100]);
}

#[test]
fn a_new_group_that_still_collects_its_members_is_rewound_at_once() {
    let mut world = World::new();
    world.topic("orders", 1);
    let mut a = Classic::new(&["orders"]);
    a.send_join(&mut world);
    let token = rewind(&mut world, &[("orders", 0, 5)]);
    assert!(is_done(&mut world, token));
    assert_eq!(committed(&mut world, "orders", &[0]), [5]);
}

#[test]
fn groups_of_other_things_than_consumers_are_refused_clearly() {
    let mut world = World::new();
    world.topic("orders", 1);
    let mut request = Classic::new(&["orders"]).join_request();
    request.protocol_type = "connect".into();
    let token = world.send(Request::JoinGroup {
        version: 3,
        request,
    });
    world.wait(3_000);
    assert!(world.reply(token).is_some());
    let token = rewind(&mut world, &[("orders", 0, 5)]);
    assert_eq!(
        answer(&mut world, token),
        Some(vec![ErrorCode::NON_EMPTY_GROUP])
    );
    assert!(has_event(&world, "its members are no consumers"));
}

#[test]
fn a_classic_group_that_becomes_a_consumer_group_is_rewound_as_one() {
    use crate::consumer::tests::client::Client;
    let (mut world, mut members) = group("cooperative-sticky", 1, false);
    let mut b = Classic::new(&["orders"]);
    b.send_join(&mut world);
    // The owner has not rejoined when a member of the other protocol takes the group over.
    let token = rewind(&mut world, &[("orders", 0, 5)]);
    let before = members[0].clone();
    let mut c = Client::new("c", &["orders"]);
    c.beat(&mut world);
    for _ in 0..12 {
        members[0].beat(&mut world);
        c.beat(&mut world);
        world.check();
        world.wait(1_000);
    }
    assert!(is_done(&mut world, token));
    assert_eq!(committed(&mut world, "orders", &[0]), [5]);
    let late = commit(
        &mut world,
        &before.id,
        before.generation,
        ("orders", 0, 100),
    );
    assert!(late.is_error());
}

#[test]
fn a_rewind_of_a_classic_group_that_is_cancelled_leaves_a_rebalance_and_the_offsets_as_they_are() {
    let (mut world, mut members) = group("range", 2, false);
    let token = rewind(&mut world, &[("orders", 0, 5)]);
    let first = rejoin_eagerly(&mut world, &mut members[0], 100);
    let cancelled = send(
        &mut world,
        request(&[("orders", 0, 0)], "kohort:rewind cancel"),
    );
    assert!(is_done(&mut world, cancelled));
    let given_up = vec![ErrorCode::OPERATION_NOT_ATTEMPTED];
    assert_eq!(answer(&mut world, token), Some(given_up));
    let second = rejoin_eagerly(&mut world, &mut members[1], 100);
    for (member, token) in members.iter_mut().zip([first, second]) {
        assert_eq!(member.joined(&mut world, token).error_code, ErrorCode::NONE);
    }
    assert_eq!(committed(&mut world, "orders", &[0, 3]), [100, 100]);
    world.restart();
    assert!(world.shard.rewinding.is_empty());
    assert_eq!(committed(&mut world, "orders", &[0, 3]), [100, 100]);
    // The next one has its turn.
    let mut all: Vec<&mut Classic> = members.iter_mut().collect();
    rebalance(&mut world, &mut all, "orders", 6);
    let token = rewind(&mut world, &[("orders", 0, 7)]);
    for member in &mut members {
        rejoin_eagerly(&mut world, member, 100);
    }
    assert!(is_done(&mut world, token));
    assert_eq!(committed(&mut world, "orders", &[0, 3]), [7, 100]);
}
