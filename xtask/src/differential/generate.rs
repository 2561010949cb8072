//! Scripts from seeds: mostly what members do, with what they should not do in between.

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
    Script {
        seed,
        exact: writer.exact,
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

    // Topics.

    fn create_topic(&mut self) {
        let partitions = self.rng.i32(1..=4);
        self.steps.push(Step::CreateTopic {
            topic: self.topics,
            partitions,
        });
        self.topics += 1;
    }

    fn change_topics(&mut self) {
        let topic = self.rng.u8(..self.topics);
        match self.rng.u8(..4) {
            0 if self.topics < 4 => self.create_topic(),
            1 => self.steps.push(Step::DeleteTopic { topic }),
            2 => {
                let partitions = self.rng.i32(1..=4);
                self.steps.push(Step::CreateTopic { topic, partitions });
            }
            _ => {
                let partitions = self.rng.i32(3..=6);
                self.steps.push(Step::GrowTopic { topic, partitions });
            }
        }
        if self.settles {
            self.steps.push(Step::Settle);
        }
    }

    /// Some topics, perhaps one that does not exist.
    fn some_topics(&mut self) -> Vec<Topic> {
        let last = self.topics + u8::from(self.chance(10));
        let mut topics: Vec<Topic> = (0..last).filter(|_| self.rng.u8(..10) < 7).collect();
        if topics.is_empty() {
            topics.push(self.rng.u8(..self.topics));
        }
        topics
    }

    fn partition(&mut self) -> (Topic, i32) {
        let beyond = u8::from(self.chance(8));
        let topic = self.rng.u8(..self.topics + beyond);
        (topic, self.rng.i32(0..5))
    }

    // Classic members.

    fn classic(&mut self) {
        let slot = self.rng.u8(..SLOTS);
        let joined = self.slots[slot as usize].classic;
        match self.rng.u8(..100) {
            0..=29 if !joined => self.join_anew(slot),
            0..=44 => self.round(),
            45..=54 => {
                let who = self.classic_who(slot);
                let version = self.rng.i16(0..=4);
                self.steps.push(Step::Heartbeat { version, who });
            }
            55..=61 => self.sync(slot),
            62..=66 => self.rejoin(slot),
            67..=76 => self.leave(slot),
            77..=86 => {
                let who = Committer::Classic(self.classic_who(slot));
                self.commit(who);
            }
            87..=91 => {
                let who = Committer::Classic(self.classic_who(slot));
                self.fetch(who);
            }
            _ => self.nobody(),
        }
    }

    /// Who a request says it comes from: mostly who it does come from.
    fn classic_who(&mut self, slot: Slot) -> Who {
        let instance = self.slots[slot as usize].instance.clone();
        let mut who = Who {
            slot,
            id: Id::Own,
            epoch: Epoch::Own(0),
            instance,
        };
        if self.chance(25) {
            match self.rng.u8(..6) {
                0 => who.epoch = Epoch::Own(-1),
                1 => who.epoch = Epoch::Own(1),
                2 => who.id = self.pick(&[Id::Empty, Id::Unknown]),
                3 => who.id = Id::Of(self.rng.u8(..SLOTS)),
                4 => who.instance = self.some_instance(),
                _ => who.epoch = Epoch::Exactly(-1),
            }
        }
        who
    }

    fn some_instance(&mut self) -> Option<String> {
        self.pick(&[
            Some("instance-0"),
            Some("instance-1"),
            Some("stranger"),
            None,
        ])
        .map(str::to_owned)
    }

    fn protocols(&mut self) -> Vec<Protocol> {
        let topics = self.some_topics();
        let names: &[&str] = match self.rng.u8(..10) {
            0..=6 => &["range"],
            7..=8 => &["range", "roundrobin"],
            _ => &["roundrobin"],
        };
        let named = names
            .iter()
            .map(|name| ((*name).to_owned(), topics.clone()));
        named.collect()
    }

    fn join_anew(&mut self, slot: Slot) {
        let version = self.pick(&[0, 1, 2, 3, 4, 5, 5, 6, 7, 8, 9, 9]);
        let instance = if version >= 5 && self.chance(30) {
            Some(format!("instance-{}", slot % 2))
        } else {
            None
        };
        let protocols = self.protocols();
        let own = &mut self.slots[slot as usize];
        own.instance.clone_from(&instance);
        own.classic = true;
        own.join = Some((protocols.clone(), version));
        let dynamic = instance.is_none();
        self.join(slot, Id::Empty, instance, protocols, version);
        if version >= 4 && dynamic && self.chance(95) {
            self.rejoin(slot);
        }
        if self.chance(50) {
            self.round();
        }
    }

    fn join(
        &mut self,
        slot: Slot,
        id: Id,
        instance: Option<String>,
        protocols: Vec<Protocol>,
        version: i16,
    ) {
        let protocol_type = if self.opaque { "connect" } else { "consumer" };
        let protocol_type = if self.chance(2) {
            "other"
        } else {
            protocol_type
        };
        let session_timeout_ms = if self.chance(1) { 1 } else { LONG_MS };
        self.steps.push(Step::Join(Join {
            version,
            who: Who {
                slot,
                id,
                epoch: Epoch::Own(0),
                instance,
            },
            protocol_type: protocol_type.to_owned(),
            protocols,
            session_timeout_ms,
        }));
    }

    /// A join of a slot that has joined before.
    fn rejoin(&mut self, slot: Slot) {
        let own = self.slots[slot as usize].clone();
        let Some((mut protocols, version)) = own.join else {
            return self.join_anew(slot);
        };
        if self.chance(15) {
            protocols = self.protocols();
        }
        let id = match self.rng.u8(..20) {
            0 => Id::Unknown,
            1 => Id::Empty,
            2 => Id::Of(self.rng.u8(..SLOTS)),
            _ => Id::Own,
        };
        self.join(slot, id, own.instance, protocols, version);
    }

    fn sync(&mut self, slot: Slot) {
        let who = self.classic_who(slot);
        let wrong = self.chance(8);
        let version = self.rng.i16(0..=5);
        let protocol = wrong.then(|| {
            let protocol_type = self.pick(&["consumer", "connect"]);
            let name = self.pick(&["range", "roundrobin", "none"]);
            (protocol_type.to_owned(), name.to_owned())
        });
        self.steps.push(Step::Sync(Sync {
            version,
            who,
            protocol,
        }));
    }

    /// Everybody joins again, then everybody asks for an assignment.
    fn round(&mut self) {
        let joined: Vec<Slot> = (0..SLOTS)
            .filter(|slot| self.slots[*slot as usize].classic)
            .collect();
        for &slot in &joined {
            let own = self.slots[slot as usize].clone();
            if let Some((protocols, version)) = own.join {
                self.join(slot, Id::Own, own.instance, protocols, version);
            }
        }
        if self.chance(92) {
            for slot in joined {
                let version = self.rng.i16(0..=5);
                let instance = self.slots[slot as usize].instance.clone();
                self.steps.push(Step::Sync(Sync {
                    version,
                    who: Who {
                        slot,
                        id: Id::Own,
                        epoch: Epoch::Own(0),
                        instance,
                    },
                    protocol: None,
                }));
            }
        }
    }

    fn leave(&mut self, slot: Slot) {
        let mut who = vec![self.classic_who(slot)];
        if self.chance(30) {
            let other = self.rng.u8(..SLOTS);
            who.push(self.classic_who(other));
        }
        if self.chance(20)
            && let Some(instance) = self.slots[slot as usize].instance.clone()
        {
            // As an administrator removes a static member.
            who[0].id = Id::Empty;
            who[0].instance = Some(instance);
        }
        for one in &who {
            if one.id == Id::Own {
                self.slots[one.slot as usize].classic = false;
            }
        }
        let version = self.rng.i16(0..=5);
        self.steps.push(Step::Leave { version, who });
    }

    // Consumer members.

    fn consumer(&mut self) {
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

    fn consumer_who(&mut self, slot: Slot) -> Who {
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

    fn assignor(&mut self) -> Option<String> {
        // All members of a script name the same: a tie is decided anew with every heartbeat by Kafka.
        let name = match (self.exact, self.uniform) {
            (true, _) => Some("range"),
            (false, true) => self.pick(&[None, Some("uniform")]),
            (false, false) => Some("range"),
        };
        name.map(str::to_owned)
    }

    fn regex(&mut self) -> Regex {
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

    fn consumer_join(&mut self, slot: Slot) {
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
    fn consumer_heartbeat(&mut self, slot: Slot, changes: bool) {
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

    fn consumer_leave(&mut self, slot: Slot) {
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

    // Everybody else.

    fn nobody(&mut self) {
        match self.rng.u8(..10) {
            0..=3 => self.commit(Committer::NoMember),
            4..=6 => self.fetch(Committer::NoMember),
            7 => {
                let partitions = self.partitions();
                self.steps.push(Step::DeleteOffsets { partitions });
            }
            8 if self.chance(40) => {
                let version = self.rng.i16(0..=3);
                self.steps.push(Step::DeleteGroup { version });
            }
            _ => self.look(),
        }
    }

    fn partitions(&mut self) -> Vec<(Topic, i32)> {
        let count = self.rng.usize(1..4);
        let mut partitions: Vec<_> = (0..count).map(|_| self.partition()).collect();
        partitions.sort_unstable();
        partitions.dedup();
        partitions
    }

    fn commit(&mut self, who: Committer) {
        let version = self.pick(&[2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 10, 10]);
        let mut offsets = Vec::new();
        for (topic, partition) in self.partitions() {
            let metadata = match self.rng.u8(..12) {
                0 => None,
                1 => Some("x".repeat(4097)),
                2 => Some("x".repeat(4096)),
                3 => Some("é".repeat(2049)),
                _ => Some("m".to_owned()),
            };
            offsets.push(Offset {
                topic,
                partition,
                offset: self.pick(&[0, 1, 17, 1 << 40, -1, -5]),
                leader_epoch: self.pick(&[-1, -1, 0, 3]),
                metadata,
            });
        }
        self.steps.push(Step::Commit {
            version,
            who,
            offsets,
        });
    }

    fn fetch(&mut self, who: Committer) {
        let version = self.rng.i16(1..=10);
        let all = version >= 2 && self.chance(40);
        let partitions = (!all).then(|| self.partitions());
        self.steps.push(Step::Fetch {
            version,
            who,
            partitions,
        });
    }

    fn look(&mut self) {
        let step = match self.rng.u8(..3) {
            0 => Step::DescribeGroup {
                version: self.rng.i16(0..=6),
            },
            1 => Step::DescribeConsumerGroup {
                version: self.rng.i16(0..=1),
            },
            _ => self.list(),
        };
        self.steps.push(step);
    }

    fn list(&mut self) -> Step {
        let version = self.rng.i16(0..=5);
        let states = match self.rng.u8(..6) {
            0 if version >= 4 => vec!["Stable"],
            1 if version >= 4 => vec!["empty", "PreparingRebalance", "nonesuch"],
            _ => Vec::new(),
        };
        let types = match self.rng.u8(..6) {
            0 if version >= 5 => vec!["classic"],
            1 if version >= 5 => vec!["Consumer", "share"],
            _ => Vec::new(),
        };
        let texts = |all: Vec<&str>| all.into_iter().map(str::to_owned).collect();
        Step::ListGroups {
            version,
            states: texts(states),
            types: texts(types),
        }
    }

    fn look_at_everything(&mut self) {
        self.steps.extend([
            Step::DescribeGroup { version: 6 },
            Step::DescribeConsumerGroup { version: 1 },
            Step::ListGroups {
                version: 5,
                states: Vec::new(),
                types: Vec::new(),
            },
            Step::Fetch {
                version: 9,
                who: Committer::NoMember,
                partitions: None,
            },
            Step::DeleteGroup { version: 3 },
        ]);
    }
}
