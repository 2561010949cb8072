//! Which members heartbeat over which connections, and which shards were asked for member ids over
//! them, so that the coordinator learns of members whose connections close.

use kohort_coordinator::{Connection, Request};
use kohort_group::Id;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

/// How many members of one connection are remembered. A client has one; a proxy may have many. Of
/// the rest their sessions tell.
const MEMBERS_MAX: usize = 256;

/// A group, and a member of it.
pub(super) type GroupMember = (Id, Id);

/// What is remembered of each connection.
#[derive(Debug, Default)]
pub(super) struct Connections(Mutex<FxHashMap<Connection, Noted>>);

/// What is remembered of a connection.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Noted {
    /// The members that have sent heartbeats over it.
    pub(super) members: Vec<GroupMember>,
    /// The shards that were asked for ids of new members over it.
    pub(super) shards: Vec<i32>,
}

impl Connections {
    /// Notes over which connection a member sends its heartbeat.
    pub(super) fn note(&self, connection: Option<Connection>, request: &Request) {
        let (Some(connection), Request::ConsumerGroupHeartbeat { request, .. }) =
            (connection, request)
        else {
            return;
        };
        // The coordinator makes the ids of clients that bring none: those are told of with the next.
        if request.member_epoch < 0 || request.member_id.is_empty() {
            return;
        }
        let mut connections = self.0.lock();
        let members = &mut connections.entry(connection).or_default().members;
        let is_noted = members.iter().any(|(group_id, member_id)| {
            **member_id == *request.member_id && **group_id == *request.group_id
        });
        if !is_noted {
            if members.len() == MEMBERS_MAX {
                members.remove(0);
            }
            members.push(((&*request.group_id).into(), (&*request.member_id).into()));
        }
    }

    /// Notes that a shard is asked for the id of a new member, which is not known yet.
    pub(super) fn note_join(&self, connection: Option<Connection>, request: &Request, shard: i32) {
        if let (Some(connection), Request::JoinGroup { request, .. }) = (connection, request)
            && request.member_id.is_empty()
        {
            let mut connections = self.0.lock();
            let shards = &mut connections.entry(connection).or_default().shards;
            if !shards.contains(&shard) {
                shards.push(shard);
            }
        }
    }

    /// What is remembered of a connection that has closed.
    pub(super) fn closed(&self, connection: Connection) -> Noted {
        self.0.lock().remove(&connection).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use kohort_wire::messages::{ConsumerGroupHeartbeatRequest, JoinGroupRequest};

    use super::*;

    fn heartbeat(member_id: &str, member_epoch: i32) -> Request {
        Request::ConsumerGroupHeartbeat {
            version: 1,
            request: ConsumerGroupHeartbeatRequest {
                group_id: "g".into(),
                member_id: member_id.into(),
                member_epoch,
                ..ConsumerGroupHeartbeatRequest::default()
            },
        }
    }

    #[test]
    fn a_connection_tells_of_its_members_once() {
        let connections = Connections::default();
        let connection = Connection(1);
        for epoch in [0, 1, 1, 2] {
            connections.note(Some(connection), &heartbeat("a", epoch));
        }
        connections.note(Some(connection), &heartbeat("b", -1));
        connections.note(None, &heartbeat("c", 1));
        let members = connections.closed(connection).members;
        assert_eq!(members, [("g".into(), "a".into())]);
        assert_eq!(connections.closed(connection), Noted::default());
    }

    #[test]
    fn a_connection_tells_which_shards_gave_it_ids() {
        let connections = Connections::default();
        let join = |member_id: &str| Request::JoinGroup {
            version: 9,
            request: JoinGroupRequest {
                member_id: member_id.into(),
                ..JoinGroupRequest::default()
            },
        };
        for shard in [3, 3, 5] {
            connections.note_join(Some(Connection(1)), &join(""), shard);
        }
        connections.note_join(Some(Connection(1)), &join("known"), 7);
        connections.note_join(Some(Connection(1)), &heartbeat("", 0), 8);
        assert_eq!(connections.closed(Connection(1)).shards, [3, 5]);
    }

    #[test]
    fn a_connection_of_very_many_members_remembers_the_last() {
        let connections = Connections::default();
        for n in 0..1_000 {
            connections.note(Some(Connection(1)), &heartbeat(&n.to_string(), 1));
        }
        let members = connections.closed(Connection(1)).members;
        assert_eq!(members.len(), MEMBERS_MAX);
        assert_eq!(&*members[MEMBERS_MAX - 1].1, "999");
    }
}
