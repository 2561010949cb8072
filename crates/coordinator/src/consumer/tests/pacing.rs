//! How soon members learn of things, and how soon there are things to learn.

use kohort_group::history::What;

use super::{client::Client, world::World};
use crate::{Millis, Pace};

fn members(count: usize) -> Vec<Client> {
    let member = |n| Client::new(&format!("m{n:03}"), &["orders"]);
    (0..count).map(member).collect()
}

fn settled(world: &mut World, count: usize) -> Vec<Client> {
    let mut members = members(count);
    world.settle(&mut members.iter_mut().collect::<Vec<_>>());
    members
}

fn targets(world: &World) -> usize {
    let events = world.events.iter();
    events
        .filter(|event| matches!(event.what, What::TargetComputed { .. }))
        .count()
}

#[test]
fn a_large_group_heartbeats_less_often_and_who_waits_as_often_as_ever() {
    let mut world = World::new();
    world.topic("orders", 40);
    world.shard.set_pace(Pace::from_number(24 * 60));
    let mut members = settled(&mut world, 20);
    world.wait(10_000);
    assert_eq!(members[0].beat(&mut world).heartbeat_interval_ms, 1_000);

    let mut late = Client::new("late", &["orders"]);
    let interval_ms = late.beat(&mut world).heartbeat_interval_ms;
    assert_eq!(interval_ms, 250, "others have to revoke first");
    assert_eq!(members[0].beat(&mut world).heartbeat_interval_ms, 1_000);
    for member in &mut members {
        member.beat(&mut world);
        member.beat(&mut world);
    }
    assert_eq!(late.beat(&mut world).heartbeat_interval_ms, 1_000);
    assert_eq!(world.state("group"), "Stable");
}

#[test]
fn many_who_wait_wait_longer() {
    let mut world = World::new();
    world.topic("orders", 40);
    world.shard.set_pace(Pace::from_number(24 * 60));
    let mut members = members(21);
    for member in &mut members {
        member.beat(&mut world);
    }
    // One has everything, twenty wait for it.
    assert_eq!(members[20].beat(&mut world).heartbeat_interval_ms, 1_000);
}

#[test]
fn a_new_pace_reaches_members_with_their_next_heartbeat() {
    let mut world = World::new();
    world.topic("orders", 4);
    let mut members = settled(&mut world, 4);
    assert_eq!(members[0].beat(&mut world).heartbeat_interval_ms, 250);
    world.shard.set_pace(Pace::from_number(60));
    assert_eq!(members[0].beat(&mut world).heartbeat_interval_ms, 4_000);
    world.shard.set_pace(Pace::FREE);
    assert_eq!(members[0].beat(&mut world).heartbeat_interval_ms, 250);
}

/// The session is what it was, however short the interval.
#[test]
fn the_session_does_not_change_with_the_interval() {
    let mut world = World::new();
    world.topic("orders", 1);
    let mut a = Client::new("a", &["orders"]);
    a.beat(&mut world);
    world.wait(44_999);
    assert!(world.is_member("group", "a"));
    world.wait(1);
    assert!(!world.is_member("group", "a"));
}

#[test]
fn one_that_joins_or_leaves_a_group_at_rest_causes_a_target_at_once() {
    let mut world = World::new();
    world.topic("orders", 4);
    let mut members = settled(&mut world, 2);
    world.wait(5_000);
    let before = targets(&world);
    let mut late = Client::new("late", &["orders"]);
    late.beat(&mut world);
    assert_eq!(targets(&world), before + 1);
    world.wait(5_000);
    members[0].leave(&mut world, -1);
    assert_eq!(targets(&world), before + 2);
}

#[test]
fn what_follows_soon_after_a_target_waits_until_it_is_calm() {
    let mut world = World::new();
    world.topic("orders", 4);
    settled(&mut world, 1);
    world.wait(5_000);
    let before = targets(&world);
    for n in 0..5 {
        Client::new(&format!("late{n}"), &["orders"]).beat(&mut world);
        world.wait(20);
    }
    assert_eq!(targets(&world), before + 1, "the first, at once");
    world.wait(79);
    assert_eq!(targets(&world), before + 1);
    world.wait(1);
    assert_eq!(targets(&world), before + 2, "the others together");
}

#[test]
fn joins_without_end_cause_a_target_an_interval() {
    let mut world = World::new();
    world.topic("orders", 4);
    settled(&mut world, 1);
    world.wait(5_000);
    let (before, start) = (targets(&world), world.now);
    let mut n = 0;
    while world.now < start + 5_000 {
        n += 1;
        Client::new(&format!("late{n}"), &["orders"]).beat(&mut world);
        world.wait(50);
    }
    assert_eq!(
        targets(&world) - before,
        6,
        "one at once, then one a second"
    );
}

#[test]
fn one_joins_and_all_are_stable_in_less_than_a_second() {
    let mut world = World::new();
    world.topic("orders", 200);
    let mut members = settled(&mut world, 100);
    world.wait(5_000);
    let mut clock = Clock::new(&world, members.iter_mut().collect());
    let mut late = Client::new("late", &["orders"]);
    let start = world.now;
    clock.due.push(start);
    clock.members.push(&mut late);
    let stable_at = clock.run(&mut world, |world| world.state("group") == "Stable");
    assert!(stable_at - start < 600, "{} ms", stable_at - start);
}

/// Members that heartbeat when they are told to, and at once when they have something to say.
struct Clock<'a> {
    members: Vec<&'a mut Client>,
    due: Vec<Millis>,
}

impl<'a> Clock<'a> {
    /// Heartbeats that are spread over the interval.
    fn new(world: &World, members: Vec<&'a mut Client>) -> Clock<'a> {
        let count = members.len() as Millis;
        let due = (0..count).map(|n| world.now + n * 250 / count);
        Clock {
            due: due.collect(),
            members,
        }
    }

    fn run(&mut self, world: &mut World, done: impl Fn(&World) -> bool) -> Millis {
        while !done(world) {
            for (member, due) in self.members.iter_mut().zip(&mut self.due) {
                if *due <= world.now {
                    let response = member.beat(world);
                    *due = world.now
                        + match response.assignment {
                            // It takes its time to revoke.
                            Some(_) => 20,
                            None => Millis::from(response.heartbeat_interval_ms),
                        };
                }
            }
            world.wait(1);
        }
        world.now
    }
}
