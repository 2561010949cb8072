//! What agents print, one JSON object a line.

use serde::Deserialize;

use crate::failure::Failure;

/// One line; see interop/README.md for when each is printed.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Event {
    Version {
        client: String,
        compressions: Vec<String>,
        #[serde(default)]
        idempotent: bool,
    },
    Created,
    Produced,
    Rewound,
    Assigned {
        partitions: Vec<i32>,
    },
    Revoked {
        partitions: Vec<i32>,
    },
    Lost {
        partitions: Vec<i32>,
    },
    /// It is told to let go of these, and does not yet.
    Holds {
        partitions: Vec<i32>,
    },
    /// (partition, offset, value)
    Records {
        records: Vec<(i32, i64, u64)>,
    },
    /// (partition, offset of the next record)
    Committed {
        offsets: Vec<(i32, i64)>,
    },
    CommitFailed {
        offsets: Vec<(i32, i64)>,
        error: String,
    },
    CommitOvertaken {
        offsets: Vec<(i32, i64)>,
    },
    Closed,
    Group {
        state: String,
        members: Vec<GroupMember>,
        committed: Vec<(i32, i64)>,
        ends: Vec<(i32, i64)>,
    },
}

/// A member in an administrator's description of a group.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct GroupMember {
    pub(crate) id: String,
    pub(crate) partitions: Vec<i32>,
}

impl Event {
    pub(crate) fn parse(line: &str) -> Result<Self, Failure> {
        serde_json::from_str(line)
            .map_err(|error| Failure::new(format!("not an event: {line}: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::Event;

    #[test]
    fn records_are_triples_of_partition_offset_and_value() {
        let line = r#"{"event":"records","records":[[1,20,300],[1,21,301]]}"#;
        let expected = Event::Records {
            records: vec![(1, 20, 300), (1, 21, 301)],
        };
        assert_eq!(Event::parse(line).unwrap(), expected);
    }

    #[test]
    fn fields_that_a_check_does_not_need_are_ignored() {
        let line = r#"{"event":"produced","count":3}"#;
        assert_eq!(Event::parse(line).unwrap(), Event::Produced);
    }
}
