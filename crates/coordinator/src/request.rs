//! What a shard is asked, and what it answers.

use kohort_group::history::{Who, clean};
use kohort_wire::messages::*;

/// A connection to the broker. No two ever have the same number while the broker runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Connection(pub u64);

/// The client that sends a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caller {
    /// What the client calls itself.
    pub client_id: String,
    /// Where it is, as Kafka writes it: `/127.0.0.1`.
    pub client_host: String,
    /// Its connection; `None` if there is none, or if its end is not reported.
    pub connection: Option<Connection>,
}

impl From<&Caller> for Who {
    fn from(caller: &Caller) -> Who {
        Who {
            id: "".into(),
            instance_id: None,
            client_id: clean(&caller.client_id),
            host: clean(&caller.client_host),
        }
    }
}

/// A request to one shard. Requests over several groups are split by shard before they get here, and
/// those that a client may send for many groups at once (`OffsetFetch`) come a group at a time.
///
/// `version` is that of the request's API, where the answer depends on it. Topic ids have been
/// replaced by names, or answered, by the broker (OffsetCommit and OffsetFetch of version 10).
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub enum Request {
    JoinGroup {
        version: i16,
        request: JoinGroupRequest,
    },
    SyncGroup {
        version: i16,
        request: SyncGroupRequest,
    },
    Heartbeat {
        request: HeartbeatRequest,
    },
    LeaveGroup {
        version: i16,
        request: LeaveGroupRequest,
    },
    ConsumerGroupHeartbeat {
        version: i16,
        request: ConsumerGroupHeartbeatRequest,
    },
    OffsetCommit {
        version: i16,
        request: OffsetCommitRequest,
    },
    OffsetFetch {
        request: OffsetFetchRequestGroup,
        require_stable: bool,
    },
    OffsetDelete {
        request: OffsetDeleteRequest,
    },
    ListGroups {
        request: ListGroupsRequest,
    },
    DescribeGroups {
        version: i16,
        groups: Vec<kohort_wire::ByteString>,
    },
    ConsumerGroupDescribe {
        groups: Vec<kohort_wire::ByteString>,
    },
    DeleteGroups {
        groups: Vec<kohort_wire::ByteString>,
    },
    /// Topics have been deleted: their committed offsets go (Kafka deletes them as well).
    TopicsDeleted {
        topics: Vec<kohort_wire::ByteString>,
    },
}

/// The answer to a [`Request`] of the same name.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub enum Reply {
    JoinGroup(JoinGroupResponse),
    SyncGroup(SyncGroupResponse),
    Heartbeat(HeartbeatResponse),
    LeaveGroup(LeaveGroupResponse),
    ConsumerGroupHeartbeat(ConsumerGroupHeartbeatResponse),
    OffsetCommit(OffsetCommitResponse),
    OffsetFetch(OffsetFetchResponseGroup),
    OffsetDelete(OffsetDeleteResponse),
    ListGroups(ListGroupsResponse),
    DescribeGroups(Vec<DescribedGroup>),
    ConsumerGroupDescribe(Vec<DescribedConsumerGroup>),
    DeleteGroups(Vec<DeletableGroupResult>),
    TopicsDeleted,
}
