//! Who creates and deletes topics: one that was acknowledged is there under its id, and one whose
//! deletion was acknowledged does not come back.

use kohort_wire::messages::*;
use kohort_wire::{ErrorCode, Uuid};

use super::witness::{Made, Next, Outcome, Witness, ask, fault};
use crate::differential::Connection;

const PREFIX: &str = "made-";
/// How many of them are there.
const TOPICS: usize = 4;
const PARTITIONS: i32 = 2;

pub(super) struct Topics {
    topics: Made<Uuid>,
}

impl Topics {
    pub(super) fn new() -> Self {
        Self {
            topics: Made::new(PREFIX, TOPICS),
        }
    }
}

impl Witness for Topics {
    fn name(&self) -> String {
        "who makes topics".to_owned()
    }

    fn check(&mut self, connection: &mut Connection) -> Outcome<()> {
        let request = MetadataRequest {
            topics: None,
            ..Default::default()
        };
        let response = ask(connection, &request, 12)?;
        let mut found = Vec::new();
        for it in &response.topics {
            let name = it.name.clone().unwrap_or_default().to_string();
            if !name.starts_with(PREFIX) {
                continue;
            }
            if it.error_code.is_error() || it.partitions.len() != PARTITIONS as usize {
                return fault(format!("{name} is not whole: {it:?}"));
            }
            let partitions = it.partitions.iter();
            if let Some(ill) = partitions.clone().find(|it| it.error_code.is_error()) {
                return fault(format!("{name}: {ill:?}"));
            }
            found.push((name, it.topic_id));
        }
        self.topics.compare(found)
    }

    fn work(&mut self, connection: &mut Connection) -> Outcome<()> {
        match self.topics.next() {
            Next::Make(made) => {
                let request = CreateTopicsRequest {
                    timeout_ms: 30_000,
                    topics: vec![CreatableTopic {
                        name: made.as_str().into(),
                        num_partitions: PARTITIONS,
                        replication_factor: 1,
                        ..Default::default()
                    }],
                    ..Default::default()
                };
                let response = ask(connection, &request, 7)?;
                let Some(created) = response.topics.first() else {
                    return fault("a topic was created without an answer");
                };
                if created.error_code.is_error() {
                    return fault(format!("creating {made}: {}", created.error_code));
                }
                self.topics.made(made, created.topic_id);
            }
            Next::Remove(made) => {
                let request = DeleteTopicsRequest {
                    timeout_ms: 30_000,
                    topics: vec![DeleteTopicState {
                        name: Some(made.as_str().into()),
                        ..Default::default()
                    }],
                    ..Default::default()
                };
                let response = ask(connection, &request, 6)?;
                let codes = response.responses.iter().map(|it| it.error_code);
                if let Some(code) = codes.clone().find(|code| *code != ErrorCode::NONE) {
                    return fault(format!("deleting {made}: {code}"));
                }
                self.topics.removed(&made);
            }
        }
        Ok(())
    }

    fn audit(&mut self, _: &mut Connection) -> Outcome<()> {
        Ok(())
    }

    fn acknowledged(&self) -> Vec<(usize, &'static str)> {
        vec![(self.topics.changes(), "topics made or deleted")]
    }
}
