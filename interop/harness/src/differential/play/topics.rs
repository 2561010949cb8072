//! Topics that are created, grown and deleted, each until the coordinator knows.

use kohort_wire::messages::*;
use kohort_wire::{ByteString, ErrorCode, Uuid};

use super::Play;
use crate::differential::probe::Probe;
use crate::differential::step::Topic;
use crate::failure::Failure;

impl Play<'_> {
    pub(super) fn create_topic(&mut self, topic: Topic, partitions: i32) -> Result<(), Failure> {
        let request = CreateTopicsRequest {
            topics: vec![CreatableTopic {
                name: self.topic_name(topic),
                num_partitions: partitions,
                replication_factor: 1,
                ..Default::default()
            }],
            ..Default::default()
        };
        let answer = self.ask(&request, 7)?;
        let result = answer.and_then(|mut answer| answer.topics.pop());
        let error = result.as_ref().map(|topic| topic.error_code);
        if let Some(created) = result.filter(|topic| !topic.error_code.is_error()) {
            self.names.learn_topic(created.topic_id, topic);
            self.topics.insert(topic, (created.topic_id, partitions));
        }
        self.topics_changed(error)
    }

    pub(super) fn grow_topic(&mut self, topic: Topic, partitions: i32) -> Result<(), Failure> {
        let request = CreatePartitionsRequest {
            topics: vec![CreatePartitionsTopic {
                name: self.topic_name(topic),
                count: partitions,
                assignments: None,
            }],
            timeout_ms: 10_000,
            ..Default::default()
        };
        let answer = self.ask(&request, 3)?;
        let error = answer
            .and_then(|mut answer| answer.results.pop())
            .map(|one| one.error_code);
        if error == Some(ErrorCode::NONE)
            && let Some(known) = self.topics.get_mut(&topic)
        {
            known.1 = partitions;
        }
        self.topics_changed(error)
    }

    pub(super) fn delete_topic(&mut self, topic: Topic) -> Result<(), Failure> {
        let request = DeleteTopicsRequest {
            topic_names: vec![self.topic_name(topic)],
            timeout_ms: 10_000,
            ..Default::default()
        };
        let answer = self.ask(&request, 5)?;
        let error = answer
            .and_then(|mut answer| answer.responses.pop())
            .map(|one| one.error_code);
        if error == Some(ErrorCode::NONE) {
            self.topics.remove(&topic);
        }
        self.topics_changed(error)
    }

    /// Waits until the group's coordinator has heard of the change.
    pub(super) fn topics_changed(&mut self, error: Option<ErrorCode>) -> Result<(), Failure> {
        self.lines.push(format!("{error:?}"));
        let mut probe = match self.probe.take() {
            Some(probe) => probe,
            None => Probe::new(&self.names.group),
        };
        let topics: Vec<(ByteString, Uuid, i32)> = (self.topics.iter())
            .map(|(&topic, &(id, count))| (self.topic_name(topic), id, count))
            .collect();
        probe.wait_for(&mut self.connection, &topics)?;
        self.probe = Some(probe);
        Ok(())
    }
}
