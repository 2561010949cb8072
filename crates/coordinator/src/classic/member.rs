//! A member of a classic group.

use bytes::Bytes;
use kohort_group::history::Who;
use kohort_wire::messages::{GroupMetadataMember, JoinGroupProtocol, JoinGroupRequest};

use crate::{Caller, Id, Token, alarm::Deadline};

/// A member of a classic group.
#[derive(Debug, Clone)]
pub(crate) struct ClassicMember {
    pub(crate) id: Id,
    pub(crate) instance_id: Option<Id>,
    pub(crate) client_id: Id,
    pub(crate) client_host: Id,
    pub(crate) rebalance_timeout_ms: i32,
    pub(crate) session_timeout_ms: i32,
    /// What it can do, the most wanted first. After loading only the protocol that was chosen.
    pub(crate) protocols: Vec<MemberProtocol>,
    pub(crate) assignment: Bytes,
    /// Where the answer to its JoinGroup goes, once the join phase is over.
    pub(crate) parked_join: Option<Token>,
    /// Where the answer to its SyncGroup goes, once the leader has assigned.
    pub(crate) parked_sync: Option<Token>,
    /// Whether it waits for the answer to its very first join, and so cannot heartbeat yet.
    pub(crate) is_new: bool,
    pub(crate) session: Deadline,
}

/// A protocol that a member supports, and its metadata for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MemberProtocol {
    pub(crate) name: Id,
    pub(crate) metadata: Bytes,
}

impl MemberProtocol {
    fn of_record(record: &GroupMetadataMember, protocol: &str) -> MemberProtocol {
        MemberProtocol {
            name: protocol.into(),
            metadata: Bytes::copy_from_slice(&record.subscription),
        }
    }

    /// Copies out of a request, whose frame would be kept in memory otherwise.
    pub(crate) fn copy_all(protocols: &[JoinGroupProtocol]) -> Vec<MemberProtocol> {
        let copy = |protocol: &JoinGroupProtocol| MemberProtocol {
            name: Id::from(&*protocol.name),
            metadata: Bytes::copy_from_slice(&protocol.metadata),
        };
        protocols.iter().map(copy).collect()
    }
}

impl ClassicMember {
    pub(crate) fn new(id: Id, caller: &Caller, request: &JoinGroupRequest) -> ClassicMember {
        ClassicMember {
            id,
            instance_id: instance_id(request),
            client_id: Id::from(&*caller.client_id),
            client_host: Id::from(&*caller.client_host),
            rebalance_timeout_ms: rebalance_timeout_ms(request),
            session_timeout_ms: request.session_timeout_ms,
            protocols: MemberProtocol::copy_all(&request.protocols),
            assignment: Bytes::new(),
            parked_join: None,
            parked_sync: None,
            is_new: true,
            session: Deadline::default(),
        }
    }

    /// The member of a record.
    pub(crate) fn from_record(record: &GroupMetadataMember, protocol: &str) -> ClassicMember {
        ClassicMember {
            id: Id::from(&*record.member_id),
            instance_id: record.group_instance_id.as_deref().map(Id::from),
            client_id: Id::from(&*record.client_id),
            client_host: Id::from(&*record.client_host),
            rebalance_timeout_ms: rebalance_timeout_of(record),
            session_timeout_ms: record.session_timeout,
            protocols: vec![MemberProtocol::of_record(record, protocol)],
            assignment: Bytes::copy_from_slice(&record.assignment),
            parked_join: None,
            parked_sync: None,
            is_new: false,
            session: Deadline::default(),
        }
    }

    /// Takes over what a later record says. The member keeps what no record holds: the protocols that
    /// were not chosen, and what it waits for.
    pub(crate) fn update(&mut self, record: &GroupMetadataMember, protocol: &str) {
        let set = |own: &mut Id, new: &str| {
            if **own != *new {
                *own = Id::from(new);
            }
        };
        set(&mut self.client_id, &record.client_id);
        set(&mut self.client_host, &record.client_host);
        if self.instance_id.as_deref() != record.group_instance_id.as_deref() {
            self.instance_id = record.group_instance_id.as_deref().map(Id::from);
        }
        self.session_timeout_ms = record.session_timeout;
        self.rebalance_timeout_ms = rebalance_timeout_of(record);
        self.assignment = Bytes::copy_from_slice(&record.assignment);
        let mut protocols = self.protocols.iter_mut();
        match protocols.find(|own| *own.name == *protocol) {
            Some(chosen) if chosen.metadata == record.subscription => {}
            Some(chosen) => chosen.metadata = Bytes::copy_from_slice(&record.subscription),
            // It comes from an earlier record, when another protocol was chosen.
            None => self.protocols = vec![MemberProtocol::of_record(record, protocol)],
        }
    }

    /// The member as it is written, with what it was assigned.
    pub(crate) fn to_record(
        &self,
        protocol: Option<&str>,
        assignment: Bytes,
    ) -> GroupMetadataMember {
        GroupMetadataMember {
            member_id: (&*self.id).into(),
            group_instance_id: self.instance_id.as_deref().map(Into::into),
            client_id: (&*self.client_id).into(),
            client_host: (&*self.client_host).into(),
            rebalance_timeout: self.rebalance_timeout_ms,
            session_timeout: self.session_timeout_ms,
            subscription: protocol.map(|name| self.metadata(name)).unwrap_or_default(),
            assignment,
        }
    }

    /// The member as events name it.
    pub(crate) fn who(&self) -> Who {
        let instance_id = self.instance_id.as_ref();
        Who::new(&self.id, instance_id, &self.client_id, &self.client_host)
    }

    pub(crate) fn is_static(&self) -> bool {
        self.instance_id.is_some()
    }

    /// Its metadata for a protocol; empty for one that it does not support.
    pub(crate) fn metadata(&self, protocol: &str) -> Bytes {
        let found = self.protocols.iter().find(|own| *own.name == *protocol);
        found.map(|own| own.metadata.clone()).unwrap_or_default()
    }

    /// Whether a request brings just what the member has brought before.
    pub(crate) fn matches(&self, protocols: &[JoinGroupProtocol]) -> bool {
        self.protocols.len() == protocols.len()
            && self
                .protocols
                .iter()
                .zip(protocols)
                .all(|(own, other)| *own.name == *other.name && own.metadata == other.metadata)
    }

    /// Whether the end of its session means nothing: while the coordinator owes it an answer, it
    /// cannot heartbeat. Except for a new member, which may be gone for good before it ever learned
    /// its id.
    pub(crate) fn is_excused(&self) -> bool {
        !self.is_new && (self.parked_join.is_some() || self.parked_sync.is_some())
    }

    /// The bytes that a member brings with a request, except for the id of one that has none yet.
    pub(crate) fn metadata_bytes_of(caller: &Caller, request: &JoinGroupRequest) -> usize {
        let protocols = request.protocols.iter();
        let protocols = protocols.map(|protocol| protocol.name.len() + protocol.metadata.len());
        let instance_id = request.group_instance_id.as_deref();
        let Caller {
            client_id,
            client_host,
            ..
        } = caller;
        bytes_of(
            protocols,
            [&request.member_id, client_id, client_host],
            instance_id,
        )
    }

    /// The bytes that it brought: no fewer than it takes in the group's record, apart from its
    /// assignment.
    pub(crate) fn metadata_bytes(&self) -> usize {
        let protocols = self.protocols.iter();
        let protocols = protocols.map(|protocol| protocol.name.len() + protocol.metadata.len());
        let texts: [&str; 3] = [&self.id, &self.client_id, &self.client_host];
        bytes_of(protocols, texts, self.instance_id.as_deref())
    }
}

/// What a member takes in the group's record, apart from its assignment, or more.
fn bytes_of(
    protocols: impl Iterator<Item = usize>,
    texts: [&str; 3],
    instance_id: Option<&str>,
) -> usize {
    /// The fields that always take the same, and the lengths of the others.
    const FIXED_BYTES: usize = 64;
    let texts = texts.into_iter().chain(instance_id).map(str::len);
    protocols.chain(texts).sum::<usize>() + FIXED_BYTES
}

/// An empty instance id is none (sarama #2157).
pub(crate) fn instance_id(request: &JoinGroupRequest) -> Option<Id> {
    request
        .group_instance_id
        .as_deref()
        .filter(|id| !id.is_empty())
        .map(Id::from)
}

/// Version 0 of JoinGroup has no rebalance timeout: the session timeout stands for it.
pub(crate) fn rebalance_timeout_ms(request: &JoinGroupRequest) -> i32 {
    match request.rebalance_timeout_ms {
        ..0 => request.session_timeout_ms,
        timeout_ms => timeout_ms,
    }
}

/// Records of the oldest versions have none.
fn rebalance_timeout_of(record: &GroupMetadataMember) -> i32 {
    match record.rebalance_timeout {
        -1 => record.session_timeout,
        timeout_ms => timeout_ms,
    }
}
