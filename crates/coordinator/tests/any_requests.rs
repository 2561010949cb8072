//! The coordinator is asked anything: requests that are well formed and mean whatever chance makes
//! them mean. Nothing panics, every request is answered once, and the log can always be replayed.
//!
//! `KOHORT_FUZZ_SECONDS` says for how long, `KOHORT_TEST_SEED` with which seed it begins.

mod world;

use std::time::{Duration, Instant};

use bytes::Bytes;
use fastrand::Rng;
use kohort_coordinator::RecordError;
use world::{
    any::{pick, request},
    *,
};

const SECONDS: u64 = 4;
const REQUESTS_EACH: usize = 120;
/// Longer than any session, rebalance or pending id of a request here lasts.
const LONG_MS: i64 = 40 * 60_000;

#[test]
fn whatever_it_is_asked_the_coordinator_answers_once_and_can_be_loaded_again() {
    let from = |name: &str, default| {
        std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
    };
    let first = from("KOHORT_TEST_SEED", 1);
    let end = Instant::now() + Duration::from_secs(from("KOHORT_FUZZ_SECONDS", SECONDS));
    let mut seed = first;
    while Instant::now() < end {
        // The last line before a panic says which.
        println!("KOHORT_TEST_SEED={seed}");
        run(seed);
        seed += 1;
    }
    println!("{} requests", (seed - first) as usize * REQUESTS_EACH);
}

fn run(seed: u64) {
    let mut rng = Rng::with_seed(seed);
    let mut world = World::new();
    let mut waiting = Vec::new();
    for _ in 0..REQUESTS_EACH {
        match rng.u8(..40) {
            0 => {
                world.restart();
                // Who waited has lost its connection.
                waiting.clear();
            }
            1 => {
                let mut topics = Vec::new();
                for name in ["a", "b", "c", "d"] {
                    if rng.u8(..4) > 0 {
                        topics.push(topic(name, rng.i32(0..7)));
                    }
                }
                world.set_topics(topics);
            }
            2..=8 => {
                let ms = pick(&mut rng, &[1, 50, 3_000, 45_000, 400_000]);
                world.advance(ms);
            }
            _ => waiting.push(world.send(request(&mut rng))),
        }
        waiting.retain(|token| world.take(*token).is_none());
    }
    world.advance(LONG_MS);
    waiting.retain(|token| world.take(*token).is_none());
    assert!(waiting.is_empty(), "never answered: {waiting:?}");
    world.restart();
}

/// A log that somebody else has written, or that is damaged in ways that no checksum shows: records
/// with other bytes, in another order, twice or not at all. What cannot be read is an error that says
/// so; the rest is taken for what it says, and whoever asks is answered.
#[test]
fn whatever_its_log_says_the_coordinator_reads_it_or_says_why_not_and_answers() {
    let from = |name: &str, default| {
        std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
    };
    let first = from("KOHORT_TEST_SEED", 1);
    let end = Instant::now() + Duration::from_secs(from("KOHORT_FUZZ_SECONDS", SECONDS / 2));
    let mut seed = first;
    let (mut read, mut refused) = (0, 0);
    while Instant::now() < end {
        println!("KOHORT_TEST_SEED={seed}");
        match replay(seed) {
            Ok(()) => read += 1,
            Err(_) => refused += 1,
        }
        seed += 1;
    }
    println!("{read} logs read, {refused} refused");
}

fn replay(seed: u64) -> Result<(), RecordError> {
    let mut rng = Rng::with_seed(seed);
    let mut world = World::new();
    for _ in 0..rng.usize(1..REQUESTS_EACH) {
        world.send(request(&mut rng));
        world.advance(pick(&mut rng, &[1, 50, 3_000]));
    }
    for _ in 0..rng.usize(1..8) {
        damage(&mut rng, &mut world.log);
    }
    world.try_restart()?;
    let mut waiting = Vec::new();
    for _ in 0..20 {
        waiting.push(world.send(request(&mut rng)));
        world.advance(pick(&mut rng, &[1, 3_000, 45_000]));
        waiting.retain(|token| world.take(*token).is_none());
    }
    world.advance(LONG_MS);
    waiting.retain(|token| world.take(*token).is_none());
    assert!(waiting.is_empty(), "never answered: {waiting:?}");
    // What it has written itself it can read, on top of what it has read.
    world.restart();
    Ok(())
}

fn damage(rng: &mut Rng, log: &mut Vec<(Bytes, Option<Bytes>)>) {
    if log.is_empty() {
        return;
    }
    let (one, other) = (rng.usize(..log.len()), rng.usize(..log.len()));
    match rng.u8(..8) {
        0 => log.swap(one, other),
        1 => drop(log.remove(one)),
        2 => {
            let record = log[one].clone();
            log.insert(other, record);
        }
        // A value under another key.
        3 => log[one].1 = log[other].1.clone(),
        4 => log[one].1 = None,
        5 => log[one].0 = damaged(rng, &log[one].0),
        _ => {
            let value = log[one].1.clone().unwrap_or_default();
            log[one].1 = Some(damaged(rng, &value));
        }
    }
}

fn damaged(rng: &mut Rng, bytes: &Bytes) -> Bytes {
    let mut bytes = bytes.to_vec();
    for _ in 0..rng.usize(1..3) {
        let at = rng.usize(..=bytes.len());
        match rng.u8(..6) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, rng.u8(..)),
            2 => {
                let end = bytes.len().min(at + 4);
                let wide = pick(rng, &[i32::MAX, i32::MIN, -1, 0, 1]);
                bytes.splice(at..end, wide.to_be_bytes());
            }
            _ if at < bytes.len() => bytes[at] ^= 1 << rng.u8(..8),
            _ => {}
        }
    }
    bytes.into()
}
