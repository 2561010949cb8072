//! What anybody may ask: offsets, and what there is.

use super::Writer;
use crate::differential::step::*;

impl Writer {
    pub(super) fn nobody(&mut self) {
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

    pub(super) fn partitions(&mut self) -> Vec<(Topic, i32)> {
        let count = self.rng.usize(1..4);
        let mut partitions: Vec<_> = (0..count).map(|_| self.partition()).collect();
        partitions.sort_unstable();
        partitions.dedup();
        partitions
    }

    pub(super) fn commit(&mut self, who: Committer) {
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
            let mut offset = self.pick(&[0, 1, 17, 1 << 40, 2, 5]);
            if self.negative && offset == 5 {
                offset = -5;
            }
            offsets.push(Offset {
                topic,
                partition,
                offset,
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

    pub(super) fn fetch(&mut self, who: Committer) {
        let version = self.rng.i16(1..=10);
        let all = version >= 2 && self.chance(40);
        let partitions = (!all).then(|| self.partitions());
        self.steps.push(Step::Fetch {
            version,
            who,
            partitions,
        });
    }

    pub(super) fn look(&mut self) {
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

    pub(super) fn list(&mut self) -> Step {
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

    pub(super) fn look_at_everything(&mut self) {
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
