//! Scripts from seeds: mostly what members do, with what they should not do in between.

mod anybody;
mod classic;
mod consumer;
mod topics;

use fastrand::Rng;

use super::step::*;

/// Longer than any script, so that nobody's session ends by accident.
const LONG_MS: i32 = 300_000;
const SLOTS: u8 = 4;

/// The script of a seed.
pub(crate) fn script(seed: u64) -> Script {
    let mut writer = Writer {
        rng: Rng::with_seed(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x6b6f_686f_7274),
        steps: Vec::new(),
        slots: vec![Slots::default(); SLOTS as usize],
        topics: 0,
        exact: true,
        settles: false,
        opaque: false,
        uniform: false,
        negative: seed % 64 == 7,
    };
    writer.uniform = writer.rng.bool();
    let length = writer.rng.usize(8..28);
    for _ in 0..writer.rng.u8(1..=3) {
        writer.create_topic();
    }
    match writer.rng.u8(..10) {
        0..=3 => {
            writer.opaque = writer.chance(15);
            writer.write(length, Writer::classic);
        }
        4..=7 => {
            writer.settles = true;
            writer.exact = writer.chance(75);
            writer.write(length, Writer::consumer);
        }
        8 => {
            writer.settles = true;
            // The coordinator names classic members, and assignors go by names.
            writer.exact = false;
            writer.write(length, |writer| {
                if writer.rng.bool() {
                    writer.classic();
                } else {
                    writer.consumer();
                }
            });
        }
        _ => writer.write(length, Writer::nobody),
    }
    if writer.settles {
        writer.steps.push(Step::Settle);
    }
    writer.look_at_everything();
    // Assignors go by member ids, and here the coordinator gives out one.
    let is_named_by_coordinator = |step: &Step| matches!(step, Step::ConsumerHeartbeat(heartbeat) if heartbeat.who.id == Id::Empty);
    let is_exact = writer.exact && !writer.steps.iter().any(is_named_by_coordinator);
    Script {
        seed,
        exact: is_exact,
        steps: writer.steps,
    }
}

/// What has been written about a slot.
#[derive(Clone, Default)]
struct Slots {
    classic: bool,
    consumer: bool,
    instance: Option<String>,
    join: Option<(Vec<Protocol>, i16)>,
}

struct Writer {
    rng: Rng,
    steps: Vec<Step>,
    slots: Vec<Slots>,
    topics: u8,
    exact: bool,
    settles: bool,
    opaque: bool,
    uniform: bool,
    /// Whether negative offsets are committed, which Kafka accepts and kohort does not.
    negative: bool,
}

impl Writer {
    fn chance(&mut self, percent: u8) -> bool {
        self.rng.u8(..100) < percent
    }

    fn pick<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.rng.usize(..choices.len())].clone()
    }

    fn write(&mut self, length: usize, mut more: impl FnMut(&mut Writer)) {
        while self.steps.len() < length {
            more(self);
            if self.chance(20) {
                self.look();
            }
            if self.chance(4) {
                self.change_topics();
            }
        }
    }
}
