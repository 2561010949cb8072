//! Members that are restarted one after the other.

use std::collections::BTreeMap;

use super::{
    client::{Client, assert_disjoint},
    world::World,
};
use crate::Millis;

const MEMBERS: usize = 20;
const PARTITIONS: i32 = 60;
const HEARTBEAT_INTERVAL_MS: Millis = 5_000;
/// The members heartbeat one after the other.
const TURN_MS: Millis = HEARTBEAT_INTERVAL_MS / MEMBERS as Millis;

/// Lets time pass; members acknowledge at once what they are assigned. Returns how long a partition
/// was without an owner, at most, and how often one changed its owner.
fn live(world: &mut World, clients: &mut [Client], ms: Millis) -> (Millis, usize) {
    let mut seen: BTreeMap<i32, (Millis, usize)> = BTreeMap::new();
    let (mut longest, mut moves) = (0, 0);
    let end = world.now + ms;
    let topic = world.shard.topics.get("orders").expect("a topic").id;
    while world.now < end {
        let turn = (world.now / TURN_MS) as usize % MEMBERS;
        if clients[turn].beat(world).assignment.is_some() {
            clients[turn].beat(world);
        }
        assert_disjoint(&*clients);
        for (index, client) in clients.iter().enumerate() {
            for partition in client.of(topic) {
                let before = seen.insert(partition, (world.now, index));
                moves += usize::from(before.is_some_and(|(_, owner)| owner != index));
            }
        }
        if seen.len() == PARTITIONS as usize {
            let waiting = seen.values().map(|(at, _)| world.now - at).max();
            longest = longest.max(waiting.unwrap_or_default());
        }
        world.wait(TURN_MS);
    }
    (longest, moves)
}

fn group(is_static: bool) -> (World, Vec<Client>) {
    let mut world = World::new();
    world.topic("orders", PARTITIONS);
    let mut clients: Vec<Client> = (0..MEMBERS)
        .map(|index| {
            let client = Client::new(&format!("m{index}"), &["orders"]);
            if is_static {
                client.instance(&format!("i{index}"))
            } else {
                client
            }
        })
        .collect();
    live(&mut world, &mut clients, 30_000);
    assert_eq!(world.state("group"), "Stable");
    (world, clients)
}

#[test]
fn a_rolling_restart_leaves_no_partition_without_an_owner_for_longer_than_an_interval() {
    let (mut world, mut clients) = group(false);
    for index in 0..MEMBERS {
        clients[index].leave(&mut world, -1);
        clients[index] = Client::new(&format!("m{index}-again"), &["orders"]);
        clients[index].beat(&mut world);
        let (longest, _) = live(&mut world, &mut clients, 20_000);
        assert!(longest <= HEARTBEAT_INTERVAL_MS, "{longest} ms");
        assert_eq!(world.state("group"), "Stable");
    }
    world.check();
}

#[test]
fn a_rolling_restart_of_static_members_moves_nothing() {
    let (mut world, mut clients) = group(true);
    let targets = world
        .events
        .iter()
        .filter(|event| event.what.to_string().starts_with("target"))
        .count();
    for index in 0..MEMBERS {
        let before = clients[index].owned.clone();
        clients[index].leave(&mut world, -2);
        world.wait(2_000);
        clients[index] =
            Client::new(&format!("m{index}-again"), &["orders"]).instance(&format!("i{index}"));
        clients[index].beat(&mut world);
        assert_eq!(clients[index].owned, before);
        let (longest, moves) = live(&mut world, &mut clients, 5_000);
        assert_eq!((longest, moves), (0, 0));
    }
    let again = world
        .events
        .iter()
        .filter(|event| event.what.to_string().starts_with("target"))
        .count();
    assert_eq!(again, targets, "not even the target is computed anew");
    world.check();
}
