//! The state of a classic group.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
};

use bytes::Bytes;
use kohort_wire::{
    ErrorCode,
    codec::{Decoder, Message},
    messages::{
        ConsumerProtocolSubscription, GroupMetadataValue, JoinGroupProtocol,
        JoinGroupResponseMember,
    },
};

use super::{CONSUMER_PROTOCOL_TYPE, ClassicMember, pending::Pending};
use crate::{
    Id, Millis, Record, alarm::Deadline, consumer::embedded, progress::Progress, step::Apply,
};

/// Where a classic group is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ClassicState {
    /// Without members.
    #[default]
    Empty,
    /// Members are joining.
    PreparingRebalance,
    /// All have joined; the leader is assigning.
    CompletingRebalance,
    /// All have been assigned.
    Stable,
}

impl fmt::Display for ClassicState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// A classic group.
#[derive(Debug, Clone, Default)]
pub(crate) struct ClassicGroup {
    pub(crate) state: ClassicState,
    /// When it got there; `None` for a group that no record has told of.
    pub(crate) state_since: Option<Millis>,
    pub(crate) generation: i32,
    /// The generation that the members' assignments are of.
    pub(crate) assigned_generation: i32,
    /// The assignment of this generation by partition, once it was needed.
    assignees: Option<HashMap<(Id, i32), Id>>,
    /// `consumer`, `connect` or the like; `None` for a group that only has offsets.
    pub(crate) protocol_type: Option<Id>,
    /// The protocol that the members agreed on.
    pub(crate) protocol: Option<Id>,
    pub(crate) leader: Option<Id>,
    members: BTreeMap<Id, ClassicMember>,
    instances: HashMap<Id, Id>,
    /// Ids given out to members that have to come back with them (KIP-394).
    pub(crate) pending: Pending,
    /// Members that have not synced in this generation.
    pub(crate) pending_sync: BTreeSet<Id>,
    parked_joins: usize,
    /// By protocol, how many members support it.
    support: HashMap<Id, usize>,
    metadata_bytes: usize,
    /// What the members subscribe to, as far as it can be read.
    pub(crate) subscribed_topics: Option<BTreeSet<Id>>,
    /// The version of the topics that it last looked at.
    pub(crate) topics_version: Option<i64>,
    /// The end of the join phase or of the sync phase.
    pub(crate) rebalance: Deadline,
    /// The join phase was due to end, but no member had joined, so it continues.
    pub(crate) is_overdue: bool,
    /// While a group that was empty waits for more members.
    pub(crate) initial_delay: Option<InitialDelay>,
    pub(crate) progress: Progress,
    /// When an event last told that the group would be too large.
    pub(crate) limit_told_at: Option<Millis>,
}

/// The wait of a group that was empty (`group.initial.rebalance.delay.ms`). It ends once no new member
/// has arrived for [`calm_ms`](Self::calm_ms), and at `ends_at` in any case.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InitialDelay {
    pub(crate) ends_at: Millis,
    delay_ms: i32,
}

impl InitialDelay {
    /// As in Kafka it lasts at most for the rebalance timeout of the first member, or for the delay
    /// if that is longer.
    pub(crate) fn new(now: Millis, delay_ms: i32, rebalance_timeout_ms: i32) -> InitialDelay {
        InitialDelay {
            ends_at: now + Millis::from(delay_ms.max(rebalance_timeout_ms)),
            delay_ms,
        }
    }

    /// The quiet time after which the group counts as complete: a tenth of the delay.
    fn calm_ms(self) -> i32 {
        self.delay_ms.max(0).unsigned_abs().div_ceil(10) as i32
    }

    /// How long to wait for the next member at `now`.
    pub(crate) fn left_ms(self, now: Millis) -> i32 {
        let left = (self.ends_at - now).clamp(0, i32::MAX.into());
        self.calm_ms().min(left as i32)
    }
}

impl Apply for ClassicGroup {
    fn apply(&mut self, record: &Record) {
        if let Record::GroupMetadata(_, Some(value)) = record {
            self.take_up(value);
        }
    }
}

impl ClassicGroup {
    /// Takes up what a record says. Members that the group has keep what no record holds.
    pub(crate) fn take_up(&mut self, value: &GroupMetadataValue) {
        let protocol = value.protocol.as_deref().unwrap_or_default();
        let mut known = std::mem::take(&mut self.members);
        self.instances.clear();
        self.support.clear();
        self.parked_joins = 0;
        self.metadata_bytes = 0;
        for record in &value.members {
            let member = match known.remove(&*record.member_id) {
                Some(mut member) => {
                    member.update(record, protocol);
                    member
                }
                None => ClassicMember::from_record(record, protocol),
            };
            self.insert(member);
        }
        self.generation = value.generation;
        self.assigned_generation = value.generation;
        self.assignees = None;
        self.protocol_type = Some(&*value.protocol_type)
            .filter(|t| !t.is_empty())
            .map(Id::from);
        self.protocol = value.protocol.as_deref().map(Id::from);
        self.leader = value.leader.as_deref().map(Id::from);
        self.state = if self.members.is_empty() {
            ClassicState::Empty
        } else {
            ClassicState::Stable
        };
        self.state_since = Some(value.current_state_timestamp).filter(|&at| at >= 0);
        self.subscribed_topics = self.read_subscribed_topics();
    }

    /// The group as a record, each member with what `assignment` says.
    pub(crate) fn to_record(
        &self,
        now: Millis,
        assignment: impl Fn(&ClassicMember) -> Bytes,
    ) -> GroupMetadataValue {
        let protocol = self.protocol.as_deref();
        let members = self.members.values();
        GroupMetadataValue {
            protocol_type: self.protocol_type.as_deref().unwrap_or_default().into(),
            generation: self.generation,
            protocol: protocol.map(Into::into),
            leader: self.leader.as_deref().map(Into::into),
            current_state_timestamp: now,
            members: members
                .map(|m| m.to_record(protocol, assignment(m)))
                .collect(),
        }
    }

    pub(crate) fn is(&self, state: ClassicState) -> bool {
        self.state == state
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.is(ClassicState::Empty)
    }

    /// Whether no rebalance is under way, and the group is as its record says.
    pub(crate) fn is_settled(&self) -> bool {
        matches!(self.state, ClassicState::Empty | ClassicState::Stable)
    }

    pub(crate) fn is_consumer_type(&self) -> bool {
        self.protocol_type.as_deref() == Some(CONSUMER_PROTOCOL_TYPE)
    }

    pub(crate) fn move_to(&mut self, state: ClassicState, now: Millis) {
        self.state = state;
        self.state_since = Some(now);
    }

    pub(crate) fn members(&self) -> impl ExactSizeIterator<Item = &ClassicMember> {
        self.members.values()
    }

    pub(crate) fn member_ids(&self) -> Vec<Id> {
        self.members.keys().cloned().collect()
    }

    pub(crate) fn member(&self, id: &str) -> Option<&ClassicMember> {
        self.members.get(id)
    }

    /// A member, for changes that concern neither its protocols nor its parked join: see
    /// [`update`](Self::update), [`park_join`](Self::park_join), [`take_join`](Self::take_join).
    pub(crate) fn member_mut(&mut self, id: &str) -> Option<&mut ClassicMember> {
        self.members.get_mut(id)
    }

    pub(crate) fn static_member_id(&self, instance_id: &str) -> Option<&Id> {
        self.instances.get(instance_id)
    }

    pub(crate) fn parked_joins(&self) -> usize {
        self.parked_joins
    }

    pub(crate) fn metadata_bytes(&self) -> usize {
        self.metadata_bytes
    }

    pub(crate) fn have_all_joined(&self) -> bool {
        self.parked_joins == self.members.len() && self.pending.is_empty()
    }

    /// Adds a member, which is the leader if there is none.
    pub(crate) fn add(&mut self, member: ClassicMember, protocol_type: &str) {
        if self.members.is_empty() {
            self.protocol_type = Some(protocol_type.into());
        }
        self.leader.get_or_insert_with(|| member.id.clone());
        self.pending.remove(&member.id);
        self.insert(member);
    }

    fn insert(&mut self, member: ClassicMember) {
        if let Some(instance_id) = &member.instance_id {
            self.instances
                .insert(instance_id.clone(), member.id.clone());
        }
        for protocol in &member.protocols {
            *self.support.entry(protocol.name.clone()).or_default() += 1;
        }
        self.parked_joins += usize::from(member.parked_join.is_some());
        self.metadata_bytes += member.metadata_bytes();
        self.members.insert(member.id.clone(), member);
    }

    /// Removes a member, or an id that was only given out. Another leads if it led.
    pub(crate) fn remove(&mut self, id: &str) -> Option<ClassicMember> {
        self.pending.remove(id);
        self.pending_sync.remove(id);
        let member = self.take_out(id);
        if self.leader.as_deref() == Some(id) {
            self.leader = self.members.keys().next().cloned();
        }
        member
    }

    fn take_out(&mut self, id: &str) -> Option<ClassicMember> {
        let member = self.members.remove(id)?;
        for protocol in &member.protocols {
            if let Some(count) = self.support.get_mut(&protocol.name) {
                *count -= 1;
                if *count == 0 {
                    self.support.remove(&protocol.name);
                }
            }
        }
        self.parked_joins -= usize::from(member.parked_join.is_some());
        self.metadata_bytes -= member.metadata_bytes();
        if let Some(instance_id) = &member.instance_id
            && self
                .instances
                .get(instance_id)
                .is_some_and(|holder| **holder == *id)
        {
            self.instances.remove(instance_id);
        }
        Some(member)
    }

    /// Changes a member's protocols, timeouts, id or parked requests.
    pub(crate) fn update(&mut self, id: &str, change: impl FnOnce(&mut ClassicMember)) {
        if let Some(mut member) = self.take_out(id) {
            change(&mut member);
            let new_id = member.id.clone();
            self.insert(member);
            if *new_id != *id {
                if self.leader.as_deref() == Some(id) {
                    self.leader = Some(new_id.clone());
                }
                if self.pending_sync.remove(id) {
                    self.pending_sync.insert(new_id);
                }
            }
        }
    }

    /// Whether `id`, under `instance_id`, is a member.
    pub(crate) fn validate(&self, id: &str, instance_id: Option<&str>) -> Result<(), ErrorCode> {
        if let Some(instance_id) = instance_id.filter(|id| !id.is_empty()) {
            match self.instances.get(instance_id) {
                None => return Err(ErrorCode::UNKNOWN_MEMBER_ID),
                Some(holder) if **holder != *id => return Err(ErrorCode::FENCED_INSTANCE_ID),
                Some(_) => {}
            }
        }
        if self.members.contains_key(id) {
            Ok(())
        } else {
            Err(ErrorCode::UNKNOWN_MEMBER_ID)
        }
    }

    /// Whether a member with these protocols fits the others.
    pub(crate) fn supports(&self, protocol_type: &str, protocols: &[JoinGroupProtocol]) -> bool {
        if self.is_empty() {
            return !protocol_type.is_empty() && !protocols.is_empty();
        }
        self.protocol_type.as_deref() == Some(protocol_type)
            && protocols
                .iter()
                .any(|protocol| self.all_support(&protocol.name))
    }

    fn all_support(&self, protocol: &str) -> bool {
        self.support.get(protocol).copied().unwrap_or_default() == self.members.len()
    }

    /// The protocol that all support and most prefer; of equals the first by name, so that the
    /// choice is the same each time.
    pub(crate) fn select_protocol(&self) -> Option<Id> {
        let mut votes: BTreeMap<&Id, usize> = BTreeMap::new();
        for member in self.members.values() {
            let favourite = member
                .protocols
                .iter()
                .map(|p| &p.name)
                .find(|name| self.all_support(name));
            if let Some(name) = favourite {
                *votes.entry(name).or_default() += 1;
            }
        }
        let best = votes.into_iter().rev().max_by_key(|&(_, count)| count);
        best.map(|(name, _)| name.clone())
    }

    /// The longest rebalance timeout of all members.
    pub(crate) fn rebalance_timeout_ms(&self) -> i32 {
        self.members
            .values()
            .map(|member| member.rebalance_timeout_ms)
            .max()
            .unwrap_or_default()
    }

    /// Makes sure that the leader has joined. Returns false if no member has.
    pub(crate) fn elect_joined_leader(&mut self) -> bool {
        let has_joined = |member: &ClassicMember| member.parked_join.is_some();
        let leader = self.leader.as_ref().and_then(|id| self.members.get(id));
        if leader.is_some_and(has_joined) {
            return true;
        }
        match self.members.values().find(|member| has_joined(member)) {
            Some(member) => {
                self.leader = Some(member.id.clone());
                true
            }
            None => false,
        }
    }

    pub(crate) fn is_leader(&self, id: &str) -> bool {
        self.leader.as_deref() == Some(id)
    }

    /// What the leader is told of the members.
    pub(crate) fn members_for_leader(&self) -> Vec<JoinGroupResponseMember> {
        let protocol = self.protocol.as_deref().unwrap_or_default();
        let member = |member: &ClassicMember| JoinGroupResponseMember {
            member_id: (&*member.id).into(),
            group_instance_id: member.instance_id.as_deref().map(Into::into),
            metadata: member.metadata(protocol),
        };
        self.members.values().map(member).collect()
    }

    /// What the members subscribe to; `None` when that cannot be told. The subscription is read as
    /// its version 0, which all later ones begin with.
    pub(crate) fn read_subscribed_topics(&self) -> Option<BTreeSet<Id>> {
        if !self.is_consumer_type() {
            return None;
        }
        if self.members.is_empty() {
            return Some(BTreeSet::new());
        }
        let protocol = self.protocol.as_deref()?;
        let mut topics = BTreeSet::new();
        for member in self.members.values() {
            topics.extend(read_topics(member.metadata(protocol))?);
        }
        Some(topics)
    }

    /// What a member subscribes to; `None` when that cannot be told.
    pub(super) fn topics_of(&self, member_id: &str) -> Option<BTreeSet<Id>> {
        let protocol = self
            .protocol
            .as_deref()
            .filter(|_| self.is_consumer_type())?;
        read_topics(self.member(member_id)?.metadata(protocol))
    }

    /// Whether offsets of a topic are in use: Kafka deletes none of a topic that members subscribe
    /// to, nor any while it cannot tell.
    pub(crate) fn subscribes_to(&self, topic: &str) -> bool {
        match &self.subscribed_topics {
            Some(topics) => topics.contains(topic),
            None => self.is_consumer_type(),
        }
    }

    /// The member that is assigned the partition in this generation; `None` if the assignment cannot
    /// be read.
    pub(crate) fn assignee(&mut self, topic: &str, partition: i32) -> Option<&Id> {
        let members = &self.members;
        let assignees = self.assignees.get_or_insert_with(|| {
            let mut assignees = HashMap::new();
            for member in members.values() {
                let assignment = embedded::read_assignment(&member.assignment);
                for topic in assignment.unwrap_or_default().assigned_partitions {
                    let name = Id::from(&*topic.topic);
                    for partition in topic.partitions {
                        assignees.insert((name.clone(), partition), member.id.clone());
                    }
                }
            }
            assignees
        });
        let assignee = assignees.get(&(Id::from(topic), partition))?;
        members.contains_key(assignee).then_some(assignee)
    }

    /// Whether a commit is accepted: from a member in its generation, or from anyone while the group
    /// is empty.
    pub(crate) fn validate_commit(
        &self,
        member_id: &str,
        instance_id: Option<&str>,
        generation: i32,
    ) -> Result<(), ErrorCode> {
        let instance_id = instance_id.filter(|id| !id.is_empty());
        if generation < 0 && self.is_empty() {
            return Ok(());
        }
        if generation < 0 && member_id.is_empty() && instance_id.is_none() {
            return Err(ErrorCode::UNKNOWN_MEMBER_ID);
        }
        self.validate(member_id, instance_id)?;
        if generation != self.generation {
            return Err(ErrorCode::ILLEGAL_GENERATION);
        }
        if self.is(ClassicState::CompletingRebalance) {
            Err(ErrorCode::REBALANCE_IN_PROGRESS)
        } else {
            Ok(())
        }
    }
}

fn read_topics(metadata: Bytes) -> Option<BTreeSet<Id>> {
    let mut input = Decoder::new(metadata);
    input.i16().ok()?;
    let subscription = ConsumerProtocolSubscription::decode(&mut input, 0).ok()?;
    Some(
        subscription
            .topics
            .iter()
            .map(|topic| Id::from(&**topic))
            .collect(),
    )
}
