//! What a script is made of: requests whose ids, epochs and offsets are filled in while it is
//! played, since each broker gives out its own.

use serde::{Deserialize, Serialize};

/// A script and the seed it was made from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Script {
    /// Names the script's group and topics too.
    pub(crate) seed: u64,
    /// Whether both brokers are asked for assignors that leave no choice. If not, who gets which
    /// partitions of a consumer group is not compared, nor what follows from it.
    pub(crate) exact: bool,
    pub(crate) steps: Vec<Step>,
}

impl Script {
    /// The same script with a group and topics of its own.
    pub(crate) fn again(&self, time: u64) -> Script {
        Script {
            seed: self.seed + 1_000_000_000 * time,
            ..self.clone()
        }
    }
}

/// One request, or a wait for what goes on by itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Step {
    Join(Join),
    Sync(Sync),
    Heartbeat {
        version: i16,
        who: Who,
    },
    Leave {
        version: i16,
        who: Vec<Who>,
    },
    ConsumerHeartbeat(ConsumerHeartbeat),
    Commit {
        version: i16,
        who: Committer,
        offsets: Vec<Offset>,
    },
    Fetch {
        version: i16,
        who: Committer,
        /// `None` for all that have an offset
        partitions: Option<Vec<(Topic, i32)>>,
    },
    DeleteOffsets {
        partitions: Vec<(Topic, i32)>,
    },
    DescribeGroup {
        version: i16,
    },
    DescribeConsumerGroup {
        version: i16,
    },
    ListGroups {
        version: i16,
        states: Vec<String>,
        types: Vec<String>,
    },
    DeleteGroup {
        version: i16,
    },
    CreateTopic {
        topic: Topic,
        partitions: i32,
    },
    GrowTopic {
        topic: Topic,
        partitions: i32,
    },
    DeleteTopic {
        topic: Topic,
    },
    /// Sends the heartbeats of a consumer group's members until nothing changes any more.
    Settle,
}

/// A topic of the script: `<script>-<number>`.
pub(crate) type Topic = u8;

/// A member of the script: the number of its place.
pub(crate) type Slot = u8;

/// The member id in a request.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Id {
    /// What the broker gave to the slot, or the slot chose
    Own,
    Empty,
    Unknown,
    /// That of another slot
    Of(Slot),
}

/// The generation or epoch in a request.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Epoch {
    /// The last that the slot was told, plus this
    Own(i32),
    Exactly(i32),
}

/// Who sends a request, as the request says it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Who {
    pub(crate) slot: Slot,
    pub(crate) id: Id,
    pub(crate) epoch: Epoch,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) instance: Option<String>,
}

/// Who commits or fetches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Committer {
    Classic(Who),
    Consumer(Who),
    /// Nobody's member: an administrator, or a consumer that assigns itself
    NoMember,
}

/// A protocol's name, with the topics subscribed to.
pub(crate) type Protocol = (String, Vec<Topic>);

/// JoinGroup.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Join {
    pub(crate) version: i16,
    pub(crate) who: Who,
    pub(crate) protocol_type: String,
    pub(crate) protocols: Vec<Protocol>,
    pub(crate) session_timeout_ms: i32,
}

/// SyncGroup.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sync {
    pub(crate) version: i16,
    pub(crate) who: Who,
    /// The protocol type and name that the member believes in; `None` for what it was told
    pub(crate) protocol: Option<(String, String)>,
}

/// ConsumerGroupHeartbeat.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ConsumerHeartbeat {
    pub(crate) version: i16,
    pub(crate) who: Who,
    pub(crate) rebalance_timeout_ms: i32,
    pub(crate) topics: Option<Vec<Topic>>,
    pub(crate) regex: Option<Regex>,
    pub(crate) assignor: Option<String>,
    pub(crate) owned: Owned,
}

/// A pattern in which `{}` stands for the script's name, and which topics it matches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Regex {
    pub(crate) pattern: String,
    pub(crate) matches: Vec<Topic>,
}

/// The partitions that a member says it owns.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Owned {
    Null,
    Nothing,
    /// All that it was assigned
    Assigned,
    /// And one more
    More,
    /// One fewer
    Fewer,
}

/// An offset to commit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Offset {
    pub(crate) topic: Topic,
    pub(crate) partition: i32,
    pub(crate) offset: i64,
    pub(crate) leader_epoch: i32,
    pub(crate) metadata: Option<String>,
}
