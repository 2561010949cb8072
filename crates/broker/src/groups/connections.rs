//! Which members heartbeat over which connections, so that the coordinator learns of members whose
//! connections close.

use kohort_group::coordinator::{Connection, Id, Request};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

/// How many members of one connection are remembered. A client has one; a proxy may have many. Of
/// the rest their sessions tell.
const MEMBERS_MAX: usize = 256;

/// A group, and a member of it.
pub(super) type GroupMember = (Id, Id);

/// Which members heartbeat over which connections.
#[derive(Debug, Default)]
pub(super) struct Connections(Mutex<FxHashMap<Connection, Vec<GroupMember>>>);

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
        let members = connections.entry(connection).or_default();
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

    /// The members of a connection that has closed.
    pub(super) fn closed(&self, connection: Connection) -> Vec<GroupMember> {
        self.0.lock().remove(&connection).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use kohort_wire::messages::ConsumerGroupHeartbeatRequest;

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
        assert_eq!(connections.closed(connection), [("g".into(), "a".into())]);
        assert!(connections.closed(connection).is_empty());
    }

    #[test]
    fn a_connection_of_very_many_members_remembers_the_last() {
        let connections = Connections::default();
        for n in 0..1_000 {
            connections.note(Some(Connection(1)), &heartbeat(&n.to_string(), 1));
        }
        let members = connections.closed(Connection(1));
        assert_eq!(members.len(), MEMBERS_MAX);
        assert_eq!(&*members[MEMBERS_MAX - 1].1, "999");
    }
}
