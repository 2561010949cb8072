//! New partitions start at their first record, in both protocols.

use kohort_wire::messages::*;

use super::{
    classic::{Classic, rebalance},
    client::Client,
    world::World,
};
use crate::{Record, Reply, Request, starts::NOTICE_MS};

/// The committed offsets of a topic, by partition.
fn committed(world: &World, topic: &str) -> Vec<(i32, i64)> {
    let Some(group) = world.shard.groups.get("group") else {
        return Vec::new();
    };
    let topics = group.offsets.iter();
    let partitions = topics
        .filter(|(name, _)| ***name == *topic)
        .flat_map(|(_, partitions)| partitions);
    partitions.map(|(&p, offset)| (p, offset.offset)).collect()
}

/// Lets members heartbeat for some time, until news of topics have come through.
fn go_on(world: &mut World, members: &mut [&mut Client]) {
    for _ in 0..15 {
        world.wait(1_000);
        for member in members.iter_mut() {
            member.beat(world);
        }
    }
    world.settle(members);
    world.check();
}

fn commit(world: &mut World, topic: &str, partition: i32, offset: i64) {
    let request = OffsetCommitRequest {
        group_id: "group".into(),
        topics: vec![OffsetCommitRequestTopic {
            name: topic.into(),
            partitions: vec![OffsetCommitRequestPartition {
                partition_index: partition,
                committed_offset: offset,
                ..OffsetCommitRequestPartition::default()
            }],
            ..OffsetCommitRequestTopic::default()
        }],
        ..OffsetCommitRequest::default()
    };
    let version = 9;
    match world.request(Request::OffsetCommit { version, request }) {
        Some(Reply::OffsetCommit(response)) => {
            assert!(!response.topics[0].partitions[0].error_code.is_error());
        }
        other => panic!("{other:?}"),
    }
}

/// That a topic is created, or gets more partitions.
fn topic(name: &'static str, partitions: i32) -> impl Fn(&mut World, &mut Client) {
    move |world, _| {
        world.topic(name, partitions);
    }
}

/// Something that happens to a group, step by step.
type Step<'a> = &'a dyn Fn(&mut World, &mut Client);

/// Runs the steps as they are, and with a restart after each of them, and after all.
fn with_restarts(
    new: impl Fn() -> Client,
    steps: &[Step<'_>],
    check: impl Fn(&mut World, &Client),
) {
    for restart_after in 0..=steps.len() + 1 {
        let mut world = World::new();
        let mut member = new();
        for (index, step) in steps.iter().enumerate() {
            step(&mut world, &mut member);
            if restart_after == index || restart_after == steps.len() {
                world.restart();
            }
        }
        check(&mut world, &member);
    }
}

fn settled(world: &mut World, member: &mut Client) {
    go_on(world, &mut [member]);
}

#[test]
fn a_new_group_starts_where_its_clients_say() {
    let new = || Client::new("a", &["orders"]);
    let steps: [Step<'_>; 3] = [&topic("orders", 3), &settled, &settled];
    with_restarts(new, &steps, |world, member| {
        assert_eq!(member.owned.len(), 3);
        assert_eq!(committed(world, "orders"), []);
    });
}

#[test]
fn partitions_that_are_added_start_at_their_first_record_and_old_ones_are_left_alone() {
    let new = || Client::new("a", &["orders"]);
    let steps: [Step<'_>; 4] = [&topic("orders", 2), &settled, &topic("orders", 4), &settled];
    with_restarts(new, &steps, |world, member| {
        assert_eq!(member.owned.len(), 4);
        assert_eq!(committed(world, "orders"), [(2, 0), (3, 0)]);
    });
}

#[test]
fn a_topic_created_after_it_was_subscribed_starts_at_its_first_record() {
    let new = || Client::new("a", &["orders"]);
    let steps: [Step<'_>; 3] = [&settled, &topic("orders", 2), &settled];
    with_restarts(new, &steps, |world, member| {
        assert_eq!(member.owned.len(), 2);
        assert_eq!(committed(world, "orders"), [(0, 0), (1, 0)]);
    });
}

#[test]
fn a_topic_that_an_expression_matches_newly_starts_at_its_first_record() {
    let new = || Client::with_regex("a", "orders-.*");
    let steps: [Step<'_>; 5] = [
        &topic("orders-old", 1),
        &settled,
        &topic("orders-new", 2),
        // A rebalance for another reason, before the expression is resolved again.
        &|world, member| {
            let mut other = Client::new("b", &["orders-old"]);
            other.beat(world);
            member.beat(world);
            other.leave(world, -1);
        },
        &settled,
    ];
    with_restarts(new, &steps, |world, member| {
        assert_eq!(member.owned.len(), 3);
        assert_eq!(committed(world, "orders-new"), [(0, 0), (1, 0)]);
        assert_eq!(committed(world, "orders-old"), []);
    });
}

/// As Java's `subscribe(Pattern)`, which resolves the pattern itself.
#[test]
fn a_young_topic_that_a_member_subscribes_to_starts_at_its_first_record() {
    let new = || Client::new("a", &["orders"]);
    for (age_ms, expected) in [(NOTICE_MS / 3, vec![(0, 0)]), (2 * NOTICE_MS, vec![])] {
        let wait = |world: &mut World, member: &mut Client| {
            let until = world.now + age_ms - 20_000;
            while world.now < until {
                world.wait(20_000);
                member.beat(world);
            }
        };
        let steps: [Step<'_>; 6] = [
            &topic("orders", 1),
            &settled,
            &topic("payments", 1),
            &wait,
            &|_, member| member.subscribe(&["orders", "payments"]),
            &settled,
        ];
        with_restarts(new, &steps, |world, member| {
            assert_eq!(member.owned.len(), 2);
            assert_eq!(committed(world, "payments"), expected, "after {age_ms} ms");
        });
    }
}

#[test]
fn a_topic_older_than_the_group_starts_where_clients_say_however_young() {
    let new = || Client::new("a", &["orders"]);
    let steps: [Step<'_>; 5] = [
        &topic("payments", 1),
        &topic("orders", 1),
        &|world, member| {
            world.wait(1);
            settled(world, member);
        },
        &|_, member| member.subscribe(&["orders", "payments"]),
        &settled,
    ];
    with_restarts(new, &steps, |world, member| {
        assert_eq!(member.owned.len(), 2);
        assert_eq!(committed(world, "payments"), []);
    });
}

#[test]
fn what_came_while_the_group_had_no_members_starts_at_its_first_record() {
    let new = || Client::new("a", &["orders"]);
    let steps: [Step<'_>; 8] = [
        &topic("orders", 1),
        &settled,
        &|world, member| member.leave(world, -1),
        // A group that has committed nothing does not outlive its members for long.
        &|world, _| commit(world, "orders", 0, 3),
        &topic("orders", 2),
        &topic("payments", 1),
        &|world, member| {
            world.wait(3_600_000);
            member.subscribe(&["orders", "payments"]);
        },
        &settled,
    ];
    with_restarts(new, &steps, |world, member| {
        assert_eq!(member.owned.len(), 3);
        assert_eq!(committed(world, "orders"), [(0, 3), (1, 0)]);
        assert_eq!(committed(world, "payments"), [(0, 0)]);
    });
}

#[test]
fn a_partition_with_a_committed_offset_is_left_alone() {
    let new = || Client::new("a", &["orders"]);
    let steps: [Step<'_>; 6] = [
        &topic("orders", 1),
        &settled,
        &|world, member| member.leave(world, -1),
        &topic("orders", 3),
        &|world, _| commit(world, "orders", 1, 7),
        &settled,
    ];
    with_restarts(new, &steps, |world, _| {
        assert_eq!(committed(world, "orders"), [(1, 7), (2, 0)]);
    });
}

#[test]
fn a_topic_created_again_starts_at_its_first_record() {
    let new = || Client::new("a", &["orders"]);
    let steps: [Step<'_>; 6] = [
        &topic("orders", 2),
        &settled,
        &|world, _| world.delete_topic("orders"),
        &settled,
        &topic("orders", 1),
        &settled,
    ];
    with_restarts(new, &steps, |world, member| {
        assert_eq!(member.owned.len(), 1);
        assert_eq!(committed(world, "orders"), [(0, 0)]);
        // The news that the other topic was deleted may come late.
        let topics = vec!["orders".into()];
        world.request(Request::TopicsDeleted { topics });
        assert_eq!(committed(world, "orders"), [(0, 0)]);
    });
}

#[test]
fn the_first_record_is_the_first_that_is_left() {
    let mut world = World::new();
    world.topic("orders", 1);
    let mut a = Client::new("a", &["orders"]);
    settled(&mut world, &mut a);
    world.log_start = 50;
    world.topic("orders", 2);
    settled(&mut world, &mut a);
    assert_eq!(committed(&world, "orders"), [(1, 50)]);
}

#[test]
fn it_can_be_turned_off_and_is_not_made_up_for_later() {
    let mut world = World::with(|config| config.new_partitions_from_start = false);
    world.topic("orders", 1);
    let mut a = Client::new("a", &["orders"]);
    settled(&mut world, &mut a);
    world.topic("orders", 2);
    settled(&mut world, &mut a);
    assert_eq!(a.owned.len(), 2);
    assert_eq!(committed(&world, "orders"), []);
    world.config.new_partitions_from_start = true;
    world.restart();
    world.topic("orders", 3);
    settled(&mut world, &mut a);
    assert_eq!(committed(&world, "orders"), [(2, 0)]);
}

/// Who may be assigned the partition fetches its offset right away.
#[test]
fn the_offset_is_committed_before_the_partition_is_assigned() {
    let mut world = World::new();
    let orders = world.topic("orders", 1);
    let mut a = Client::new("a", &["orders"]);
    settled(&mut world, &mut a);
    world.topic("orders", 2);
    settled(&mut world, &mut a);
    let offset = world
        .log
        .iter()
        .position(|record| matches!(record, Record::OffsetCommit(..)));
    let names = |topics: &[TopicIdPartitions]| {
        let mut topics = topics.iter();
        topics.any(|topic: &TopicIdPartitions| {
            topic.topic_id == orders && topic.partitions.contains(&1)
        })
    };
    let target = world.log.iter().position(|record| {
        matches!(record, Record::ConsumerTargetAssignmentMember(_, Some(value))
            if names(&value.topic_partitions))
    });
    assert!(offset.unwrap() < target.unwrap());
}

/// The target of a large group is computed elsewhere, and the group goes on meanwhile.
#[test]
fn no_target_has_partitions_that_the_group_has_not_looked_at() {
    let mut world = World::new();
    world.topic("orders", 1);
    let mut members: Vec<Client> = (0..1_001)
        .map(|n| Client::new(&format!("m{n}"), &["orders"]))
        .collect();
    for member in &mut members {
        member.beat(&mut world);
    }
    world.wait(1_000);
    world.works = false;
    Client::new("late", &["orders"]).beat(&mut world);
    world.wait(1_000);
    world.topic("orders", 2);
    // A member leaves, so that another target is due when this one is done.
    members[5].leave(&mut world, -1);
    world.works = true;
    world.do_work();
    world.wait(2_000);
    let group = world.group("group");
    let orders = |p| {
        let targets = group.all_targets();
        targets
            .values()
            .any(|target| target.iter().any(|(_, partition)| partition == p))
    };
    assert!(orders(1));
    assert_eq!(committed(&world, "orders"), [(1, 0)]);
}

#[test]
fn a_group_that_was_deleted_begins_anew() {
    let mut world = World::new();
    world.topic("orders", 1);
    let mut a = Client::new("a", &["orders"]);
    settled(&mut world, &mut a);
    a.leave(&mut world, -1);
    let groups = vec!["group".into()];
    world.request(Request::DeleteGroups { groups });
    assert!(!world.shard.groups.contains_key("group"));
    assert!(world.loaded(&world.log).groups.is_empty());
    world.topic("orders", 2);
    settled(&mut world, &mut a);
    assert_eq!(committed(&world, "orders"), []);
}

#[test]
fn topics_that_nobody_subscribes_to_are_forgotten() {
    let mut world = World::new();
    for n in 0..20 {
        world.topic(&format!("t{n}"), 1);
    }
    let mut a = Client::new("a", &["t0"]);
    for n in 0..20 {
        a.subscribe(&[&format!("t{n}")]);
        settled(&mut world, &mut a);
    }
    let group = &world.shard.groups["group"];
    assert!((0..19).all(|n| group.seen.topic(&format!("t{n}")).is_none()));
    assert!(group.seen.topic("t19").is_some());
}

/// Two members of a classic group.
fn classic(world: &mut World, topics: &[&str]) -> (Classic, Classic) {
    let mut a = Classic::new(topics);
    let mut b = Classic::new(topics);
    rebalance(world, &mut [&mut a, &mut b], "orders", 2);
    (a, b)
}

fn again(world: &mut World, a: &mut Classic, b: &mut Classic, partitions: i32) {
    rebalance(world, &mut [a, b], "orders", partitions);
    world.check();
}

#[test]
fn in_a_classic_group_partitions_that_are_added_start_at_their_first_record() {
    for restarts in [false, true] {
        let mut world = World::new();
        world.topic("orders", 2);
        let (mut a, mut b) = classic(&mut world, &["orders"]);
        assert_eq!(committed(&world, "orders"), [], "a new group");
        world.topic("orders", 4);
        if restarts {
            world.restart();
        }
        // The leader has noticed, and joins again.
        let before = world.log.len();
        again(&mut world, &mut a, &mut b, 4);
        assert_eq!(committed(&world, "orders"), [(2, 0), (3, 0)]);
        let log = &world.log[before..];
        let position = |is: fn(&Record) -> bool| log.iter().position(is).unwrap();
        let offset = position(|record| matches!(record, Record::OffsetCommit(..)));
        let assignment = position(|record| matches!(record, Record::GroupMetadata(..)));
        assert!(offset < assignment);
    }
}

#[test]
fn in_a_classic_group_a_topic_created_after_it_was_subscribed_starts_at_its_first_record() {
    let mut world = World::new();
    world.topic("orders", 2);
    let (mut a, mut b) = classic(&mut world, &["orders", "payments"]);
    world.topic("payments", 1);
    world.restart();
    again(&mut world, &mut a, &mut b, 2);
    assert_eq!(committed(&world, "payments"), [(0, 0)]);
    assert_eq!(committed(&world, "orders"), []);
}

/// Classic consumers match expressions themselves, and subscribe to what they find.
#[test]
fn in_a_classic_group_a_young_topic_starts_at_its_first_record_and_an_old_one_does_not() {
    let mut world = World::new();
    world.topic("orders", 2);
    world.topic("old", 1);
    world.wait(1);
    let (mut a, mut b) = classic(&mut world, &["orders"]);
    world.topic("young", 1);
    world.wait(5 * 60_000);
    for member in [&mut a, &mut b] {
        member.id = String::new();
        member.topics = ["orders", "young", "old"].map(str::to_owned).into();
    }
    again(&mut world, &mut a, &mut b, 2);
    assert_eq!(committed(&world, "young"), [(0, 0)]);
    assert_eq!(committed(&world, "old"), []);
}

/// It is given what the one before it had, by name, and nobody rebalances. (Simulator, seed 2061.)
#[test]
fn a_static_classic_member_that_comes_back_to_a_topic_created_again_starts_at_its_first_record() {
    let mut world = World::new();
    world.topic("orders", 2);
    let mut a = Classic::new(&["orders"]).instance("i");
    rebalance(&mut world, &mut [&mut a], "orders", 2);
    world.delete_topic("orders");
    world.topic("orders", 2);
    let mut b = Classic::new(&["orders"]).instance("i");
    assert_eq!(b.join(&mut world).generation_id, a.generation);
    assert_eq!(b.sync(&mut world), kohort_wire::ErrorCode::NONE);
    assert_eq!(b.owned.len(), 2);
    assert_eq!(committed(&world, "orders"), [(0, 0), (1, 0)]);
    world.check();
}

/// It was assigned names, and asks where to begin when there is another topic of the name.
/// (Simulator, seed 379.)
#[test]
fn a_classic_member_that_asks_where_to_begin_starts_a_topic_created_again_at_its_first_record() {
    for in_consumer_group in [false, true] {
        let mut world = World::new();
        world.topic("orders", 2);
        let mut a = Classic::new(&["orders"]);
        if in_consumer_group {
            Client::new("c", &["others"]).beat(&mut world);
            a.join(&mut world);
            a.sync(&mut world);
            world.wait(10_000);
            a.beat(&mut world);
        } else {
            rebalance(&mut world, &mut [&mut a], "orders", 2)
        }
        world.delete_topic("orders");
        world.topic("orders", 2);
        let topic = OffsetFetchRequestTopics {
            name: "orders".into(),
            partition_indexes: vec![0, 1],
            ..OffsetFetchRequestTopics::default()
        };
        let request = OffsetFetchRequestGroup {
            group_id: "group".into(),
            member_epoch: -1,
            topics: Some(vec![topic]),
            ..OffsetFetchRequestGroup::default()
        };
        let require_stable = true;
        let reply = world.request(Request::OffsetFetch {
            request,
            require_stable,
        });
        let Some(Reply::OffsetFetch(answer)) = reply else {
            panic!("{reply:?}");
        };
        let partitions = answer.topics.iter().flat_map(|topic| &topic.partitions);
        let offsets: Vec<i64> = partitions.map(|p| p.committed_offset).collect();
        assert_eq!(offsets, [0, 0], "in a consumer group: {in_consumer_group}");
        world.check();
    }
}

#[test]
fn a_classic_group_that_comes_back_starts_what_came_meanwhile_at_its_first_record() {
    let mut world = World::new();
    world.topic("orders", 2);
    let (mut a, mut b) = classic(&mut world, &["orders"]);
    a.leave(&mut world);
    b.leave(&mut world);
    commit(&mut world, "orders", 0, 3);
    world.wait(3_600_000);
    world.topic("orders", 3);
    world.restart();
    world.wait(3_600_000);
    classic(&mut world, &["orders"]);
    assert_eq!(committed(&world, "orders"), [(0, 3), (2, 0)]);
}

#[test]
fn what_a_group_has_seen_survives_the_change_of_its_protocol() {
    // A classic group, whose members are replaced by members of the consumer protocol.
    let mut world = World::new();
    world.topic("orders", 2);
    let (mut a, mut b) = classic(&mut world, &["orders"]);
    let mut c = Client::new("c", &["orders"]);
    c.beat(&mut world);
    world.topic("orders", 3);
    world.restart();
    for _ in 0..10 {
        world.wait(1_000);
        a.beat(&mut world);
        b.beat(&mut world);
        c.beat(&mut world);
    }
    assert_eq!(committed(&world, "orders"), [(2, 0)]);
    // And back.
    world.topic("orders", 4);
    c.leave(&mut world, -1);
    assert!(world.shard.groups["group"].classic().is_some());
    world.restart();
    again(&mut world, &mut a, &mut b, 4);
    assert_eq!(committed(&world, "orders"), [(2, 0), (3, 0)]);
    world.check();
}

#[test]
fn groups_that_are_not_of_consumers_are_left_alone() {
    let mut world = World::new();
    world.topic("orders", 2);
    commit(&mut world, "orders", 0, 5);
    world.topic("orders", 3);
    assert_eq!(committed(&world, "orders"), [(0, 5)]);
    assert!(world.shard.groups["group"].seen.is_empty());
}
