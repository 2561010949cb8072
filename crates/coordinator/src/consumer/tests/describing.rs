//! ConsumerGroupDescribe.

use kohort_wire::{ErrorCode, messages::DescribedConsumerGroup};

use super::{client::Client, world::World};
use crate::{Reply, Request};

fn describe(world: &mut World, group_id: &str) -> DescribedConsumerGroup {
    let groups = vec![group_id.into()];
    match world.request(Request::ConsumerGroupDescribe { groups }) {
        Some(Reply::ConsumerGroupDescribe(mut groups)) => groups.remove(0),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_group_is_described_with_its_members() {
    let mut world = World::new();
    let topic = world.topic("orders", 2);
    Client::new("a", &["orders"]).instance("i").beat(&mut world);
    let group = describe(&mut world, "group");
    assert_eq!(group.error_code, ErrorCode::NONE);
    assert_eq!(
        (
            &*group.group_state,
            group.group_epoch,
            group.assignment_epoch
        ),
        ("Stable", 2, 2)
    );
    assert_eq!(&*group.assignor_name, "uniform");
    let member = &group.members[0];
    assert_eq!(&*member.member_id, "a");
    assert_eq!(member.instance_id.as_deref(), Some("i"));
    assert_eq!(
        (&*member.client_id, &*member.client_host),
        ("client", "/127.0.0.1")
    );
    assert_eq!(member.member_type, 1);
    let assigned = &member.assignment.topic_partitions[0];
    assert_eq!(
        (assigned.topic_id, &*assigned.topic_name),
        (topic, "orders")
    );
    assert_eq!(assigned.partitions, [0, 1]);
    assert_eq!(member.assignment, member.target_assignment);
}

/// KAFKA-20431
#[test]
fn a_description_lists_the_partitions_that_a_member_is_still_revoking() {
    let mut world = World::new();
    world.topic("orders", 4);
    let mut a = Client::new("a", &["orders"]);
    a.beat(&mut world);
    world.wait(1_000);
    a.keeps_all = true;
    Client::new("b", &["orders"]).beat(&mut world);
    a.beat(&mut world);
    let group = describe(&mut world, "group");
    assert_eq!(&*group.group_state, "Reconciling");
    assert_eq!(
        group.members[0].assignment.topic_partitions[0].partitions,
        [0, 1, 2, 3]
    );
    assert_eq!(
        group.members[0].target_assignment.topic_partitions[0]
            .partitions
            .len(),
        2
    );
    assert!(group.members[1].assignment.topic_partitions.is_empty());
}

#[test]
fn a_group_that_is_not_there_is_not_found() {
    let mut world = World::new();
    let group = describe(&mut world, "group");
    assert_eq!(group.error_code, ErrorCode::GROUP_ID_NOT_FOUND);
    assert_eq!(&*group.group_id, "group");
}
