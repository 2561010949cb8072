//! News of topics.

use super::{client::Client, world::World};

#[test]
fn a_topic_that_grows_is_shared_out_anew() {
    let mut world = World::new();
    let topic = world.topic("orders", 2);
    let mut a = Client::new("a", &["orders"]);
    a.beat(&mut world);
    let epoch = world.group("group").epoch;
    world.topic("orders", 5);
    world.wait(1_000);
    a.beat(&mut world);
    assert_eq!(a.of(topic), [0, 1, 2, 3, 4]);
    assert_eq!(world.group("group").epoch, epoch + 1);
    world.check();
}

#[test]
fn a_topic_that_is_deleted_is_taken_away() {
    let mut world = World::new();
    let orders = world.topic("orders", 2);
    let payments = world.topic("payments", 2);
    let mut a = Client::new("a", &["orders", "payments"]);
    a.beat(&mut world);
    world.delete_topic("payments");
    world.wait(1_000);
    world.settle(&mut [&mut a]);
    assert_eq!(a.of(orders), [0, 1]);
    assert!(a.of(payments).is_empty());
    world.check();
}

#[test]
fn topics_of_others_change_nothing() {
    let mut world = World::new();
    world.topic("orders", 2);
    let mut a = Client::new("a", &["orders"]);
    a.beat(&mut world);
    let written = world.log.len();
    world.topic("payments", 2);
    world.wait(5_000);
    a.beat(&mut world);
    assert_eq!(world.log.len(), written);
}
