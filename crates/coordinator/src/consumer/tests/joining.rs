//! Members that join.

use kohort_wire::ErrorCode;

use super::{
    client::{Client, assert_disjoint},
    world::World,
};

#[test]
fn the_first_member_gets_everything_at_once() {
    let mut world = World::new();
    let topic = world.topic("orders", 3);
    let mut a = Client::new("a", &["orders"]);
    let response = a.beat(&mut world);
    assert_eq!(response.member_epoch, 2);
    assert_eq!(response.heartbeat_interval_ms, 250);
    assert_eq!(a.of(topic), [0, 1, 2]);
    assert_eq!(world.state("group"), "Stable");
    world.check();
}

/// nisshi #625
#[test]
fn the_second_member_gets_its_partitions_and_stays_known() {
    let mut world = World::new();
    let topic = world.topic("orders", 4);
    let mut a = Client::new("a", &["orders"]);
    let mut b = Client::new("b", &["orders"]);
    a.beat(&mut world);
    world.wait(1_000);
    b.beat(&mut world);
    assert_eq!(b.of(topic), [0; 0], "nothing is free yet");
    world.settle(&mut [&mut a, &mut b]);
    assert_eq!((a.of(topic).len(), b.of(topic).len()), (2, 2));
    assert_disjoint([&a, &b]);
    for _ in 0..20 {
        world.wait(5_000);
        assert!(a.beat(&mut world).assignment.is_none());
        assert!(b.beat(&mut world).assignment.is_none());
    }
}

#[test]
fn the_coordinator_makes_member_ids_for_clients_that_do_not() {
    let mut world = World::new();
    world.topic("orders", 1);
    let mut a = Client::new("", &["orders"]);
    let response = world.heartbeat(0, a.request());
    a.take(&response);
    assert!(a.id.starts_with("group-127.0.0.1-1-"), "{}", a.id);
    assert_eq!(world.heartbeat(0, a.request()).error_code, ErrorCode::NONE);
}

#[test]
fn members_that_join_together_share_one_new_target() {
    let mut world = World::new();
    let topic = world.topic("orders", 12);
    let mut clients: Vec<Client> = (0..6)
        .map(|n| Client::new(&format!("m{n}"), &["orders"]))
        .collect();
    for client in &mut clients {
        client.beat(&mut world);
    }
    let targets = world
        .events
        .iter()
        .filter(|event| event.what.to_string().starts_with("target"))
        .count();
    assert_eq!(targets, 1, "the interval holds the others back");
    world.wait(1_000);
    let targets = world
        .events
        .iter()
        .filter(|event| event.what.to_string().starts_with("target"))
        .count();
    assert_eq!(targets, 2, "and then they get one without a heartbeat");
    let mut all: Vec<&mut Client> = clients.iter_mut().collect();
    world.settle(&mut all);
    for client in &clients {
        assert_eq!(client.of(topic).len(), 2);
    }
    assert_disjoint(&clients);
}

#[test]
fn a_member_may_join_without_a_subscription() {
    let mut world = World::new();
    let mut a = Client::new("a", &[]);
    let response = a.beat(&mut world);
    assert_eq!(response.member_epoch, 1);
    assert_eq!(
        response.assignment.map(|a| a.topic_partitions.len()),
        Some(0)
    );
    assert_eq!(world.state("group"), "Stable");
    world.check();
}

#[test]
fn a_topic_that_does_not_exist_yet_is_assigned_once_it_does() {
    let mut world = World::new();
    let mut a = Client::new("a", &["orders"]);
    assert_eq!(a.beat(&mut world).member_epoch, 2);
    let topic = world.topic("orders", 2);
    world.wait(5_000);
    a.beat(&mut world);
    assert_eq!(a.of(topic), [0, 1]);
    world.check();
}

/// KAFKA-19233
#[test]
fn a_fenced_member_rejoins_with_its_id_at_epoch_0() {
    let mut world = World::new();
    let topic = world.topic("orders", 2);
    let mut a = Client::new("a", &["orders"]);
    a.beat(&mut world);
    a.epoch = 77;
    assert_eq!(
        a.beat(&mut world).error_code,
        ErrorCode::FENCED_MEMBER_EPOCH
    );
    assert_eq!(a.of(topic), [0; 0]);
    assert_eq!(a.beat(&mut world).error_code, ErrorCode::NONE);
    assert_eq!(a.of(topic), [0, 1]);
    assert_eq!(world.group("group").len(), 1);
    world.check();
}

#[test]
fn a_full_group_takes_nobody_but_its_members() {
    let mut world = World::with(|config| config.consumer_max_size = 1);
    world.topic("orders", 2);
    let mut a = Client::new("a", &["orders"]);
    a.beat(&mut world);
    let mut b = Client::new("b", &["orders"]);
    let response = world.heartbeat(1, b.request());
    assert_eq!(response.error_code, ErrorCode::GROUP_MAX_SIZE_REACHED);
    a.epoch = 0;
    assert_eq!(a.beat(&mut world).error_code, ErrorCode::NONE);
    world.check();
}

/// KAFKA-20434
#[test]
fn changing_the_assignor_recomputes_the_assignment() {
    let mut world = World::new();
    world.topic("one", 4);
    world.topic("two", 4);
    let mut a = Client::new("a", &["one", "two"]);
    let mut b = Client::new("b", &["one", "two"]);
    a.beat(&mut world);
    b.beat(&mut world);
    world.settle(&mut [&mut a, &mut b]);
    let epoch = world.group("group").epoch;
    a.assignor = Some("range".to_owned());
    a.say_all();
    a.beat(&mut world);
    assert_eq!(world.group("group").epoch, epoch + 1);
    world.settle(&mut [&mut a, &mut b]);
    let parts = |client: &Client| client.owned.iter().map(|&(_, p)| p).collect::<Vec<_>>();
    assert_eq!(parts(&a), [0, 1, 0, 1]);
    assert_eq!(parts(&b), [2, 3, 2, 3]);
    // The one that most ask for, not the last one.
    b.assignor = Some("range".to_owned());
    b.say_all();
    b.beat(&mut world);
    assert_eq!(world.group("group").epoch, epoch + 1);
}

#[test]
fn huge_groups_have_their_targets_computed_elsewhere() {
    let mut world = World::new();
    let topic = world.topic("orders", 3_000);
    world.works = false;
    let mut clients: Vec<Client> = (0..1_500)
        .map(|n| Client::new(&format!("m{n}"), &["orders"]))
        .collect();
    for client in &mut clients {
        client.beat(&mut world);
    }
    world.wait(1_000);
    assert_eq!(world.work.len(), 1);
    assert_eq!(world.state("group"), "Assigning");
    // Somebody leaves meanwhile, somebody else comes.
    let mut gone = clients.pop().expect("many");
    gone.leave(&mut world, -1);
    let mut late = Client::new("late", &["orders"]);
    late.beat(&mut world);
    world.works = true;
    world.do_work();
    world.check();
    clients.push(late);
    let mut all: Vec<&mut Client> = clients.iter_mut().collect();
    world.settle(&mut all);
    assert!(clients.iter().all(|client| client.of(topic).len() == 2));
}
