//! What members of the consumer protocol do.

use super::{LONG_MS, SLOTS, Writer};
use crate::differential::step::*;

impl Writer {
    pub(super) fn consumer(&mut self) {
        let slot = self.rng.u8(..SLOTS);
        let joined = self.slots[slot as usize].consumer;
        match self.rng.u8(..100) {
            0..=29 if !joined => self.consumer_join(slot),
            0..=49 => self.consumer_heartbeat(slot, false),
            50..=57 => self.consumer_heartbeat(slot, true),
            58..=67 => self.consumer_leave(slot),
            68..=77 => {
                let who = Committer::Consumer(self.consumer_who(slot));
                self.commit(who);
            }
            78..=83 => {
                let who = Committer::Consumer(self.consumer_who(slot));
                self.fetch(who);
            }
            84..=87 => self.steps.push(Step::Settle),
            _ => self.nobody(),
        }
    }

    pub(super) fn consumer_who(&mut self, slot: Slot) -> Who {
        let mut who = self.classic_who(slot);
        if self.chance(5) {
            who.epoch = self.pick(&[
                Epoch::Exactly(0),
                Epoch::Exactly(-3),
                Epoch::Own(5),
                Epoch::Own(-2),
            ]);
        }
        if who.epoch == Epoch::Exactly(-1) {
            who.epoch = Epoch::Own(0);
        }
        who
    }

    pub(super) fn assignor(&mut self) -> Option<String> {
        // All members of a script name the same: a tie is decided anew with every heartbeat by Kafka.
        let name = match (self.exact, self.uniform) {
            (true, _) => Some("range"),
            (false, true) => self.pick(&[None, Some("uniform")]),
            (false, false) => Some("range"),
        };
        name.map(str::to_owned)
    }

    pub(super) fn regex(&mut self) -> Regex {
        let all: Vec<Topic> = (0..9).collect();
        let (pattern, matches) = match self.rng.u8(..8) {
            0 | 1 => ("{}-.*", all),
            2 => ("{}-[0-1]", vec![0, 1]),
            3 => ("{}-0|{}-2", vec![0, 2]),
            4 => ("{}", vec![]),
            5 => ("^{}-\\d$", all),
            6 => ("{}-[", vec![]),
            _ => ("{}-(?:1|\\x{32})", vec![1, 2]),
        };
        Regex {
            pattern: pattern.to_owned(),
            matches,
        }
    }

    pub(super) fn consumer_join(&mut self, slot: Slot) {
        let instance = self.chance(25).then(|| format!("instance-{}", slot % 2));
        let by_regex = self.chance(15);
        let regex = by_regex.then(|| self.regex());
        let topics = (!by_regex || self.chance(20)).then(|| self.some_topics());
        self.slots[slot as usize].instance.clone_from(&instance);
        self.slots[slot as usize].consumer = true;
        let assignor = self.assignor();
        let version = i16::from(by_regex || self.chance(80));
        let mut heartbeat = ConsumerHeartbeat {
            version,
            who: Who {
                slot,
                id: Id::Own,
                epoch: Epoch::Exactly(0),
                instance,
            },
            rebalance_timeout_ms: LONG_MS,
            topics,
            regex,
            assignor,
            owned: Owned::Nothing,
        };
        if self.chance(8) {
            match self.rng.u8(..7) {
                0 => heartbeat.rebalance_timeout_ms = -1,
                1 => heartbeat.owned = Owned::More,
                2 => heartbeat.owned = Owned::Null,
                3 => heartbeat.who.id = Id::Empty,
                4 => heartbeat.who.instance = Some(String::new()),
                5 => heartbeat.assignor = Some("nonesuch".to_owned()),
                _ => {
                    heartbeat.topics = None;
                    heartbeat.regex = None;
                }
            }
        }
        self.steps.push(Step::ConsumerHeartbeat(heartbeat));
        if by_regex {
            self.steps.push(Step::Settle);
        }
    }

    /// A heartbeat as a member sends it from time to time, or with a changed subscription.
    pub(super) fn consumer_heartbeat(&mut self, slot: Slot, changes: bool) {
        let who = self.consumer_who(slot);
        let owned = self.pick(&[
            Owned::Null,
            Owned::Null,
            Owned::Assigned,
            Owned::Assigned,
            Owned::Assigned,
            Owned::Nothing,
            Owned::Fewer,
            Owned::More,
        ]);
        let full = self.chance(15);
        let mut heartbeat = ConsumerHeartbeat {
            version: 1,
            who,
            rebalance_timeout_ms: if full { LONG_MS } else { -1 },
            topics: None,
            regex: None,
            assignor: None,
            owned,
        };
        if changes || full {
            if self.chance(80) {
                heartbeat.topics = Some(self.some_topics());
            } else {
                heartbeat.regex = Some(self.regex());
            }
            if self.chance(10) {
                heartbeat.topics = Some(Vec::new());
            }
            if self.chance(30) {
                heartbeat.assignor = self.assignor();
            }
            if full {
                heartbeat.owned = Owned::Assigned;
            }
        }
        let (by_regex, by_name) = (heartbeat.regex.is_some(), heartbeat.topics.is_some());
        self.steps.push(Step::ConsumerHeartbeat(heartbeat));
        // Regular expressions are resolved aside: what follows would depend on when.
        if by_regex || by_name && self.chance(60) {
            self.steps.push(Step::Settle);
        }
    }

    pub(super) fn consumer_leave(&mut self, slot: Slot) {
        let mut who = self.consumer_who(slot);
        let temporarily = who.instance.is_some() && self.chance(60) || self.chance(4);
        who.epoch = Epoch::Exactly(if temporarily { -2 } else { -1 });
        self.slots[slot as usize].consumer = false;
        self.steps.push(Step::ConsumerHeartbeat(ConsumerHeartbeat {
            version: self.rng.i16(0..=1),
            who,
            rebalance_timeout_ms: -1,
            topics: None,
            regex: None,
            assignor: None,
            owned: Owned::Null,
        }));
    }
}
