//! Who commits offsets: an acknowledged one is never behind later, and what is committed in one
//! request is there as a whole or not at all. Beside it groups come and go.

use std::collections::BTreeSet;

use kohort_wire::ErrorCode;
use kohort_wire::messages::*;

use super::witness::{Made, Next, Outcome, Witness, answer, ask, ask_loaded, fault};
use crate::differential::Connection;

/// Commits under way at a time.
const IN_FLIGHT: i64 = 3;
/// How many of the groups that come and go are there.
const GROUPS: usize = 3;
const COMMIT: i16 = 9;

pub(super) struct Committer {
    topic: &'static str,
    partitions: i32,
    group: String,
    /// The last offset that was asked for, and the last that was acknowledged.
    sent: i64,
    acknowledged: i64,
    groups: Made<()>,
}

impl Committer {
    pub(super) fn new(topic: &'static str, partitions: i32, number: usize) -> Self {
        Self {
            topic,
            partitions,
            group: format!("committer-{number}"),
            sent: 0,
            acknowledged: 0,
            groups: Made::new(format!("committer-{number}-brief-"), GROUPS),
        }
    }

    fn request(&self, group: &str, offset: i64) -> OffsetCommitRequest {
        let partitions = 0..self.partitions;
        OffsetCommitRequest {
            group_id: group.into(),
            topics: vec![OffsetCommitRequestTopic {
                name: self.topic.into(),
                partitions: partitions
                    .map(|partition| OffsetCommitRequestPartition {
                        partition_index: partition,
                        committed_offset: offset,
                        committed_metadata: Some(format!("at {offset}").into()),
                        ..Default::default()
                    })
                    .collect(),
                ..Default::default()
            }],
            ..Default::default()
        }
    }

    /// The groups that come and go, as they are.
    fn listed(&self, connection: &mut Connection) -> Outcome<Vec<(String, ())>> {
        let request = ListGroupsRequest::default();
        let listed = ask_loaded(connection, &request, 4, |it| it.error_code)?;
        let ids = listed.groups.iter().map(|it| it.group_id.to_string());
        Ok(ids
            .filter(|id| id.starts_with(self.groups.prefix()))
            .map(|id| (id, ()))
            .collect())
    }

    fn make_and_remove(&mut self, connection: &mut Connection) -> Outcome<()> {
        match self.groups.next() {
            Next::Make(group) => {
                let response = ask(connection, &self.request(&group, 1), COMMIT)?;
                no_error(&group, commit_error(&response))?;
                self.groups.made(group, ());
            }
            Next::Remove(group) => {
                let request = DeleteGroupsRequest {
                    groups_names: vec![group.as_str().into()],
                };
                let response = ask(connection, &request, 2)?;
                let codes = response.results.iter().map(|it| it.error_code);
                no_error(&group, codes.fold(ErrorCode::NONE, worse))?;
                self.groups.removed(&group);
            }
        }
        Ok(())
    }
}

fn worse(one: ErrorCode, other: ErrorCode) -> ErrorCode {
    if one.is_error() { one } else { other }
}

fn commit_error(response: &OffsetCommitResponse) -> ErrorCode {
    let partitions = response.topics.iter().flat_map(|topic| &topic.partitions);
    partitions
        .map(|partition| partition.error_code)
        .fold(ErrorCode::NONE, worse)
}

fn no_error(what: &str, code: ErrorCode) -> Outcome<()> {
    if code.is_error() {
        fault(format!("{what}: {code}"))
    } else {
        Ok(())
    }
}

impl Witness for Committer {
    fn name(&self) -> String {
        format!("the group {}", self.group)
    }

    fn check(&mut self, connection: &mut Connection) -> Outcome<()> {
        let request = OffsetFetchRequest {
            groups: vec![OffsetFetchRequestGroup {
                group_id: self.group.as_str().into(),
                topics: None,
                ..Default::default()
            }],
            ..Default::default()
        };
        let error = |response: &OffsetFetchResponse| {
            let codes = response.groups.iter().map(|it| it.error_code);
            codes.fold(ErrorCode::NONE, worse)
        };
        let fetched = ask_loaded(connection, &request, 8, error)?;
        no_error("fetching offsets", error(&fetched))?;
        let topics = fetched.groups.iter().flat_map(|group| &group.topics);
        let partitions: Vec<_> = topics.flat_map(|topic| &topic.partitions).collect();
        let offsets: BTreeSet<i64> = partitions.iter().map(|it| it.committed_offset).collect();
        let texts = partitions.iter().all(|it| {
            let wanted = format!("at {}", it.committed_offset);
            it.metadata
                .as_ref()
                .is_some_and(|text| *text == *wanted.as_str())
        });
        let whole = partitions.len() == self.partitions as usize && offsets.len() == 1;
        let none = partitions.is_empty() && self.acknowledged == 0;
        if !texts || !(whole || none) {
            return fault(format!("offsets that were never committed: {partitions:?}"));
        }
        let committed = offsets.first().copied().unwrap_or_default();
        if !(self.acknowledged..=self.sent).contains(&committed) {
            return fault(format!(
                "{} was acknowledged, {} was sent, and {committed} is committed",
                self.acknowledged, self.sent
            ));
        }
        // Nothing of a connection that was cut comes later.
        (self.acknowledged, self.sent) = (committed, committed);
        let listed = self.listed(connection)?;
        self.groups.compare(listed)
    }

    fn work(&mut self, connection: &mut Connection) -> Outcome<()> {
        for _ in 0..IN_FLIGHT {
            self.sent += 1;
            let request = self.request(&self.group, self.sent);
            connection.send(&request, COMMIT)?;
        }
        for _ in 0..IN_FLIGHT {
            let response = answer::<OffsetCommitRequest>(connection, COMMIT)?;
            no_error("a commit", commit_error(&response))?;
            self.acknowledged += 1;
        }
        self.make_and_remove(connection)
    }

    fn audit(&mut self, _: &mut Connection) -> Outcome<()> {
        Ok(())
    }

    fn acknowledged(&self) -> Vec<(usize, &'static str)> {
        vec![
            (self.acknowledged as usize, "commits"),
            (self.groups.changes(), "groups made or deleted"),
        ]
    }
}
