//! Topics that are created, grown, deleted, and created again.

use super::Writer;
use crate::differential::step::*;

impl Writer {
    pub(super) fn create_topic(&mut self) {
        let partitions = self.rng.i32(1..=4);
        self.steps.push(Step::CreateTopic {
            topic: self.topics,
            partitions,
        });
        self.topics += 1;
    }

    pub(super) fn change_topics(&mut self) {
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
    pub(super) fn some_topics(&mut self) -> Vec<Topic> {
        let last = self.topics + u8::from(self.chance(10));
        let mut topics: Vec<Topic> = (0..last).filter(|_| self.rng.u8(..10) < 7).collect();
        if topics.is_empty() {
            topics.push(self.rng.u8(..self.topics));
        }
        topics
    }

    pub(super) fn partition(&mut self) -> (Topic, i32) {
        let beyond = u8::from(self.chance(8));
        let topic = self.rng.u8(..self.topics + beyond);
        (topic, self.rng.i32(0..5))
    }
}
