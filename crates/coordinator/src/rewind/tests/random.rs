//! Members that join, leave, commit and come late, coordinators that die, and rewinds, in any order.

use std::collections::BTreeMap;

use kohort_wire::ErrorCode;
use rand::{RngExt, SeedableRng, rngs::StdRng};

use super::*;
use crate::{
    Token,
    consumer::tests::{client::Client, world::World},
};

const PARTITIONS: i32 = 6;

/// A commit that a client has sent, and that the coordinator may get at any later time.
struct Late {
    member_id: String,
    epoch: i32,
    partition: i32,
    offset: i64,
    /// How often the partition had been rewound when the client was last given it.
    given_at: usize,
}

/// What an administrator asks for: topics, partitions, offsets.
type Goals = Vec<(&'static str, i32, i64)>;

/// What the clients and the administrator know.
#[derive(Default)]
struct Model {
    /// When the last rewind has happened, and which it was. Nobody was told.
    untold: Option<(i64, Goals)>,
    /// By member and partition: how often it had been rewound when the member was last given it.
    given_at: BTreeMap<(String, i32), usize>,
    rewound: BTreeMap<i32, usize>,
    under_way: Option<(Token, Vec<i32>)>,
    goals: Goals,
    next: i64,
}

impl Model {
    fn rewound(&self, partition: i32) -> usize {
        self.rewound.get(&partition).copied().unwrap_or_default()
    }
}

#[test]
fn no_order_of_events_undoes_a_rewind() {
    for seed in 0..25 {
        run(seed);
    }
}

fn run(seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let mut world = World::new();
    world.topic("orders", PARTITIONS);
    let mut clients: Vec<Client> = (0..3)
        .map(|index| Client::new(&format!("m{index}"), &["orders"]))
        .collect();
    let mut model = Model::default();
    let mut late: Vec<Late> = Vec::new();
    for step in 0..300 {
        let index = random.random_range(0..clients.len());
        match random.random_range(0..20) {
            0..9 => beat(&mut world, &mut clients[index], &mut model),
            9..13 => {
                let client = &clients[index];
                let at = (seed, step);
                if let Some(sent) = send_commit(&mut world, client, &mut model, &mut random, at) {
                    late.push(sent);
                }
            }
            13..16 if !late.is_empty() => {
                let chosen = random.random_range(0..late.len());
                arrive(&mut world, &late[chosen], &model, (seed, step));
                if random.random_bool(0.5) {
                    late.swap_remove(chosen);
                }
            }
            16 if clients[index].epoch > 0 && random.random_bool(0.4) => {
                clients[index].leave(&mut world, -1);
            }
            17 if model.under_way.is_none() => ask(&mut world, &mut model, &mut random),
            17 if random.random_bool(0.1) => cancel(&mut world, &mut model, (seed, step)),
            19 if random.random_bool(0.3) => ask_again(&mut world, &model, (seed, step)),
            18 if random.random_bool(0.15) => {
                world.restart();
                // Nobody is answered any more; whether it goes on is in the log.
                if let Some((_, partitions)) = model.under_way.take() {
                    model.under_way = Some((Token(0), partitions));
                }
            }
            _ => world.wait(random.random_range(0..3_000)),
        }
        happened(&mut world, &mut model, (seed, step));
        if step % 30 == 0 {
            world.check();
        }
    }
    assert!(
        model.rewound.len() > 1 || model.next < 3,
        "{seed}: nothing was rewound"
    );
}

fn beat(world: &mut World, client: &mut Client, model: &mut Model) {
    let before = client.owned.clone();
    client.beat(world);
    // A rewind may have happened in this very step.
    happened(world, model, (0, 0));
    for &(_, partition) in client.owned.difference(&before) {
        let rewound = model.rewound(partition);
        model
            .given_at
            .insert((client.id.clone(), partition), rewound);
    }
}

/// A commit of a partition that the client has been given some time. One that it owns may stay on
/// its way for any time, and arrive twice; one that it has lost arrives at once.
fn send_commit(
    world: &mut World,
    client: &Client,
    model: &mut Model,
    random: &mut StdRng,
    at: (u64, i32),
) -> Option<Late> {
    let known: Vec<(i32, usize)> = model
        .given_at
        .iter()
        .filter(|((id, _), _)| *id == client.id)
        .map(|((_, partition), given_at)| (*partition, *given_at))
        .collect();
    if known.is_empty() || client.epoch <= 0 {
        return None;
    }
    let (partition, given_at) = known[random.random_range(0..known.len())];
    model.next += 1;
    let sent = Late {
        member_id: client.id.clone(),
        epoch: client.epoch,
        partition,
        // Nothing that a rewind goes to.
        offset: 1_000_000 + model.next,
        given_at,
    };
    if client.owned.iter().any(|&(_, owned)| owned == partition) {
        return Some(sent);
    }
    arrive(world, &sent, model, at);
    None
}

fn arrive(world: &mut World, sent: &Late, model: &Model, at: (u64, i32)) {
    let place = ("orders", sent.partition, sent.offset);
    let code = commit(world, &sent.member_id, sent.epoch, place);
    // What is under way may still be changed by whoever has not let go.
    let is_under_way = matches!(&model.under_way, Some((_, p)) if p.contains(&sent.partition));
    if code == ErrorCode::NONE && !is_under_way {
        assert_eq!(
            sent.given_at,
            model.rewound(sent.partition),
            "{at:?}: {} at epoch {} undid the rewind of {}",
            sent.member_id,
            sent.epoch,
            sent.partition
        );
    }
}

fn ask(world: &mut World, model: &mut Model, random: &mut StdRng) {
    let count = random.random_range(1..=PARTITIONS);
    let first = random.random_range(0..=PARTITIONS - count);
    let partitions: Vec<i32> = (first..first + count).collect();
    model.next += 1;
    let goals: Vec<_> = partitions
        .iter()
        .map(|&partition| ("orders", partition, model.next))
        .collect();
    let token = rewind(world, &goals);
    model.under_way = Some((token, partitions));
    model.goals = goals;
    model.untold = None;
}

/// Gives up the rewind that is under way: it has not happened then.
fn cancel(world: &mut World, model: &mut Model, at: (u64, i32)) {
    let Some((token, partitions)) = model.under_way.take() else {
        return;
    };
    let named: Vec<_> = partitions.iter().map(|&it| ("orders", it, 0)).collect();
    let cancelled = send(world, request(&named, "kohort:rewind cancel"));
    assert!(is_done(world, cancelled), "{at:?}");
    if token != Token(0) {
        let codes = vec![ErrorCode::OPERATION_NOT_ATTEMPTED; partitions.len()];
        assert_eq!(answer(world, token), Some(codes), "{at:?}");
    }
    assert!(world.shard.rewinding.is_empty(), "{at:?}");
}

/// A client that has lost the answer asks once more: it is told, and nothing happens.
fn ask_again(world: &mut World, model: &Model, at: (u64, i32)) {
    let recent = model.untold.as_ref();
    let Some((_, goals)) = recent.filter(|(at, _)| world.now - at < 80_000) else {
        return;
    };
    let partitions: Vec<i32> = (0..PARTITIONS).collect();
    let before = committed(world, "orders", &partitions);
    let token = rewind(world, goals);
    assert!(is_done(world, token), "{at:?}");
    world.shard.reply_lost(token);
    assert!(world.shard.rewinding.is_empty(), "{at:?}");
    assert_eq!(committed(world, "orders", &partitions), before, "{at:?}");
}

/// Takes note of a rewind that has happened: then all of it has.
fn happened(world: &mut World, model: &mut Model, at: (u64, i32)) {
    let Some((token, partitions)) = model.under_way.clone() else {
        return;
    };
    if !world.shard.rewinding.is_empty() {
        assert!(answer(world, token).is_none(), "{at:?}");
        return;
    }
    if token != Token(0) {
        assert!(is_done(world, token), "{at:?}");
    }
    model.under_way = None;
    world.shard.reply_lost(token);
    model.untold = Some((world.now, model.goals.clone()));
    for partition in partitions {
        *model.rewound.entry(partition).or_default() += 1;
    }
}
