//! What is a rewind, and what is refused.

use kohort_wire::{ErrorCode, messages::*};

use super::*;
use crate::consumer::tests::{client::Client, world::World};

fn live_group() -> (World, Client) {
    let mut world = World::new();
    world.topic("orders", 3);
    let mut a = Client::new("a", &["orders"]);
    world.settle(&mut [&mut a]);
    (world, a)
}

#[test]
fn without_the_mark_a_live_group_refuses_an_administrators_commit() {
    let (mut world, _) = live_group();
    let token = send(&mut world, request(&[("orders", 0, 5)], "by hand"));
    assert_eq!(
        answer(&mut world, token),
        Some(vec![ErrorCode::UNKNOWN_MEMBER_ID])
    );
}

#[test]
fn a_setting_makes_commits_without_the_mark_rewinds_of_live_groups() {
    let mut world = World::with(|config| config.rewind_unmarked_commits = true);
    world.topic("orders", 1);
    // Of a group without members it stays a plain commit.
    let token = send(&mut world, request(&[("orders", 0, 9)], "plain"));
    assert!(is_done(&mut world, token));
    assert_eq!(before(&mut world), []);

    let mut a = Client::new("a", &["orders"]);
    world.settle(&mut [&mut a]);
    let token = send(&mut world, request(&[("orders", 0, 5)], "from the console"));
    world.settle(&mut [&mut a]);
    assert!(is_done(&mut world, token));
    assert_eq!(committed(&mut world, "orders", &[0]), [5]);
}

#[test]
fn a_group_without_members_is_reset_at_once_and_the_mark_is_not_kept() {
    let mut world = World::new();
    world.topic("orders", 3);
    let token = send(
        &mut world,
        request(&[("orders", 2, 7)], "kohort:rewind metadata=by me"),
    );
    assert!(is_done(&mut world, token));
    let topics = fetch(
        &mut world,
        OffsetFetchRequestGroup {
            topics: None,
            ..OffsetFetchRequestGroup::default()
        },
    );
    let partition = &topics[0].partitions[0];
    assert_eq!(partition.committed_offset, 7);
    assert_eq!(partition.metadata.as_deref(), Some("by me"));
    world.restart();
    assert_eq!(committed(&mut world, "orders", &[0, 1, 2]), [-1, -1, 7]);
}

#[test]
fn one_partition_that_cannot_be_rewound_keeps_all_others_as_they_are() {
    let (mut world, _) = live_group();
    let token = rewind(
        &mut world,
        &[
            ("orders", 0, 5),
            ("orders", 3, 5),
            ("nothing", 0, 5),
            ("orders", 1, -2),
        ],
    );
    let codes = answer(&mut world, token);
    let expected = vec![
        ErrorCode::OPERATION_NOT_ATTEMPTED,
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode::OFFSET_OUT_OF_RANGE,
    ];
    assert_eq!(codes, Some(expected));
    let token = rewind(&mut world, &[("orders", 0, 5), ("orders", 0, 6)]);
    let codes = answer(&mut world, token);
    let twice = vec![
        ErrorCode::OPERATION_NOT_ATTEMPTED,
        ErrorCode::INVALID_REQUEST,
    ];
    assert_eq!(codes, Some(twice));
    assert_eq!(committed(&mut world, "orders", &[0, 1, 2]), [-1; 3]);
    assert!(world.shard.rewinding.is_empty());
}

#[test]
fn an_unknown_option_and_a_missing_mark_are_named() {
    let (mut world, _) = live_group();
    let token = send(
        &mut world,
        request(&[("orders", 0, 5)], "kohort:rewind clmp"),
    );
    assert_eq!(
        answer(&mut world, token),
        Some(vec![ErrorCode::INVALID_REQUEST])
    );
    assert!(has_event(&world, "`clmp` is no option"));

    let mut partly = request(&[("orders", 0, 5), ("orders", 1, 5)], MARK);
    partly.topics[1].partitions[0].committed_metadata = None;
    let token = send(&mut world, partly);
    assert_eq!(
        answer(&mut world, token),
        Some(vec![ErrorCode::INVALID_REQUEST; 2])
    );
    assert!(has_event(&world, "only some of the partitions are marked"));
}

#[test]
fn a_member_that_writes_the_mark_into_its_metadata_commits_as_always() {
    let (mut world, a) = live_group();
    let request = OffsetCommitRequest {
        generation_id_or_member_epoch: a.epoch,
        member_id: "a".into(),
        ..request(&[("orders", 0, 5)], MARK)
    };
    let token = send(&mut world, request);
    assert!(is_done(&mut world, token));
    assert!(world.shard.rewinding.is_empty());
    assert_eq!(committed(&mut world, "orders", &[0]), [5]);
}

#[test]
fn the_same_rewind_again_waits_for_the_one_under_way_and_another_is_refused() {
    let (mut world, mut a) = live_group();
    let first = rewind(&mut world, &[("orders", 0, 5)]);
    let same = rewind(&mut world, &[("orders", 0, 5)]);
    let other = rewind(&mut world, &[("orders", 0, 6)]);
    assert_eq!(
        answer(&mut world, other),
        Some(vec![ErrorCode::REBALANCE_IN_PROGRESS])
    );
    world.settle(&mut [&mut a]);
    assert!(is_done(&mut world, first));
    assert!(is_done(&mut world, same));
    assert_eq!(committed(&mut world, "orders", &[0]), [5]);
    // Now it has its turn.
    let other = rewind(&mut world, &[("orders", 0, 6)]);
    world.settle(&mut [&mut a]);
    assert!(is_done(&mut world, other));
    assert_eq!(committed(&mut world, "orders", &[0]), [6]);
}

#[test]
fn what_was_committed_before_can_be_read_and_committed_again() {
    let (mut world, mut a) = live_group();
    let epoch = a.epoch;
    assert_eq!(
        commit(&mut world, "a", epoch, ("orders", 0, 120)),
        ErrorCode::NONE
    );
    assert_eq!(before(&mut world), []);
    let token = rewind(&mut world, &[("orders", 0, 40), ("orders", 1, 0)]);
    a.beat(&mut world);
    // It commits what it has done before it lets go.
    assert_eq!(
        commit(&mut world, "a", epoch, ("orders", 0, 130)),
        ErrorCode::NONE
    );
    world.settle(&mut [&mut a]);
    assert!(is_done(&mut world, token));
    assert!(has_event(
        &world,
        "rewound orders-0 from 130 to 40 and orders-1 to 0"
    ));
    world.restart();
    let remembered = before(&mut world);
    assert_eq!(remembered.len(), 2);
    assert_eq!((remembered[0].0, remembered[0].1), (0, 130));
    assert_eq!((remembered[1].0, remembered[1].1), (1, -1));
    assert!(remembered[0].2.starts_with("kohort:rewind at="));
    assert!(remembered[0].2.ends_with(" to=40 metadata="));

    let token = rewind(&mut world, &[("orders", 0, 130), ("orders", 1, -1)]);
    world.settle(&mut [&mut a]);
    assert!(is_done(&mut world, token));
    assert_eq!(committed(&mut world, "orders", &[0, 1]), [130, -1]);
    assert_eq!(
        before(&mut world).iter().map(|b| b.1).collect::<Vec<_>>(),
        [40, 0]
    );
}

#[test]
fn a_rewind_of_a_topic_that_is_deleted_is_given_up_and_changes_nothing() {
    let (mut world, mut a) = live_group();
    world.topic("payments", 1);
    a.subscribe(&["orders", "payments"]);
    world.settle(&mut [&mut a]);
    let token = rewind(&mut world, &[("orders", 0, 5), ("payments", 0, 5)]);
    world.delete_topic("payments");
    let gone = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
    assert_eq!(answer(&mut world, token), Some(vec![gone; 2]));
    assert!(has_event(&world, "is given up"));
    world.settle(&mut [&mut a]);
    assert_eq!(a.owned.len(), 3);
    assert_eq!(committed(&mut world, "orders", &[0]), [-1]);
}
