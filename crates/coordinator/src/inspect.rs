//! The state of a shard, for those that check it: the simulator and the model checker.
//!
//! [`Shard::durable`] is all that outlives a shard, with what follows from it (who owns what, what
//! is subscribed to); a shard that was loaded from the log of another has the same. [`Shard::soft`]
//! is the rest, which members rebuild by themselves when a coordinator is lost.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use kohort_wire::Uuid;
use rand::{SeedableRng, rngs::StdRng};

use super::{
    Id, Millis, Record, Shard,
    alarm::Deadline,
    classic::ClassicGroup,
    consumer::{ConsumerGroup, inspect},
    group::{Group, Members},
};

/// A partition of a topic.
pub type Place = (Uuid, i32);

/// Where partitions are rewound to.
pub type Goals = BTreeMap<(Id, i32), i64>;

/// The durable state of a group.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GroupState {
    /// Its members.
    pub members: MembersState,
    /// Its committed offsets, by topic and partition.
    pub offsets: BTreeMap<(Id, i32), OffsetState>,
    /// The rewind that is under way: where its partitions go, and what else its record says.
    pub rewind: Option<(Goals, String)>,
    /// The last rewind, in the words of [`Debug`](std::fmt::Debug).
    pub rewound: Option<String>,
    /// What it has seen of its topics.
    pub seen: SeenState,
}

/// What a group has seen of its topics: whatever comes later is new to it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct SeenState {
    /// When it first looked.
    pub began_at: Option<Millis>,
    /// Since when it has had no members.
    pub empty_since: Option<Millis>,
    /// The id of each topic, zero if there was none of that name, and how many partitions it had.
    pub topics: BTreeMap<Id, (Uuid, i32)>,
}

/// The durable state of the members of a group.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[allow(clippy::large_enum_variant)]
pub enum MembersState {
    /// In the classic protocol.
    Classic(ClassicGroupState),
    /// In the consumer protocol.
    Consumer(ConsumerGroupState),
}

/// A committed offset.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OffsetState {
    /// The offset.
    pub offset: i64,
    /// The topic that was meant; zero if it was not said.
    pub topic_id: Uuid,
    /// The encoded value of the record that tells of it.
    pub record: Bytes,
}

/// The durable state of a classic group. While a rebalance is under way, that is what its last
/// record says, which the group itself does not remember: then `record` is `None`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClassicGroupState {
    /// In Kafka's words.
    pub state: String,
    /// The generation.
    pub generation: i32,
    /// The encoded value of the record that tells of the group; empty if there is none.
    pub record: Option<Bytes>,
    /// The leader.
    pub leader: Option<Id>,
    /// The members: their instance ids and assignments.
    pub members: BTreeMap<Id, (Option<Id>, Bytes)>,
}

/// The durable state of a consumer group.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ConsumerGroupState {
    /// The group's epoch.
    pub epoch: i32,
    /// The hash of its topics.
    pub metadata_hash: i64,
    /// The epoch of its target.
    pub assignment_epoch: i32,
    /// When that was computed.
    pub assignment_timestamp: Millis,
    /// Whether its log has a record that brokers before 4.1 wrote.
    pub has_partition_metadata: bool,
    /// Its members.
    pub members: BTreeMap<Id, ConsumerMemberState>,
    /// What each is meant to own.
    pub targets: BTreeMap<Id, BTreeSet<Place>>,
    /// The member of each instance id.
    pub instances: BTreeMap<Id, Id>,
    /// What each regular expression matched: the topics, their version, and when.
    pub resolved: BTreeMap<Id, (Vec<Id>, i64, Millis)>,
    /// The owner of each partition.
    pub owners: BTreeMap<Place, Id>,
    /// What the members subscribe to and ask for, counted.
    pub subscriptions: BTreeMap<(&'static str, Id), (usize, usize)>,
}

/// A member of a consumer group.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ConsumerMemberState {
    /// Its instance id.
    pub instance_id: Option<Id>,
    /// Whether it speaks the classic protocol.
    pub is_classic: bool,
    /// The encoded value of the record that tells of what it says of itself.
    pub profile: Bytes,
    /// Its epoch.
    pub epoch: i32,
    /// The epoch before.
    pub previous_epoch: i32,
    /// How far it has come, as the record has it.
    pub state: i8,
    /// What it has been assigned, with the epoch at which it was.
    pub assigned: BTreeMap<Place, i32>,
    /// What it has to revoke, likewise.
    pub revoking: BTreeMap<Place, i32>,
}

impl ConsumerMemberState {
    /// Since which epoch the member owns a partition, if it does.
    pub fn owned_since(&self, place: &Place) -> Option<i32> {
        let owned = self
            .assigned
            .get(place)
            .or_else(|| self.revoking.get(place));
        owned.copied()
    }
}

/// What no record holds of a group, with times as the milliseconds that are left.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SoftState {
    /// Of each member.
    pub members: BTreeMap<Id, SoftMemberState>,
    /// Of a classic group: who leads, the protocol, the protocol type, what is subscribed to.
    pub classic: Option<SoftClassicState>,
    /// When the group is looked at again, or the phase of its rebalance ends.
    pub alarm: Option<Millis>,
    /// Whether regular expressions are being resolved, and whether a target is being computed.
    pub at_work: (bool, bool),
    /// The version of the topics that the group has seen.
    pub topics_version: Option<i64>,
}

/// What no record holds of a classic group while it rebalances.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SoftClassicState {
    /// The encoded value of the record that would be written now.
    pub record: Bytes,
    /// Ids that have been given out, with the time left to come back with them.
    pub pending: BTreeMap<Id, Option<Millis>>,
    /// Members that have not synced in this generation.
    pub pending_sync: BTreeSet<Id>,
    /// How long the wait for more members may still last.
    pub initial_delay: Option<Millis>,
}

/// What no record holds of a member.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct SoftMemberState {
    /// Its session.
    pub session: Option<Millis>,
    /// The time to revoke, to rejoin and to sync.
    pub rebalance: [Option<Millis>; 3],
    /// As a member of a classic group: all of its protocols.
    pub protocols: Vec<(Id, Bytes)>,
    /// Likewise: whether a join and a sync of it wait.
    pub parked: (bool, bool),
    /// Likewise: whether it waits for the answer to its first join.
    pub is_new: bool,
}

impl Shard {
    /// All that outlives the shard.
    pub fn durable(&self) -> BTreeMap<Id, GroupState> {
        let groups = self.groups.values();
        groups
            .map(|group| (group.id.clone(), durable(group)))
            .collect()
    }

    /// What does not.
    pub fn soft(&self, now: Millis) -> BTreeMap<Id, SoftState> {
        let groups = self.groups.values();
        groups
            .map(|group| {
                let soft = match &group.members {
                    Members::Classic(classic) => soft_classic(&group.id, classic, now),
                    Members::Consumer(consumer) => soft_consumer(consumer, now),
                };
                (group.id.clone(), soft)
            })
            .collect()
    }

    /// Passes over so many member ids, which a shard before this one may have given out.
    pub fn skip_member_ids(&mut self, count: u64) {
        self.member_sequence += count;
    }

    /// A copy with random numbers of its own, in which the same goes on from here.
    pub fn fork(&self, seed: [u8; 32]) -> Shard {
        Shard {
            config: self.config.clone(),
            topics: self.topics.clone(),
            groups: self.groups.clone(),
            rewinding: self.rewinding.clone(),
            told: self.told.clone(),
            deleted_topics: self.deleted_topics.clone(),
            alarms: self.alarms.clone(),
            handed_out: self.handed_out.clone(),
            pace: self.pace,
            random: StdRng::from_seed(seed),
            member_sequence: self.member_sequence,
            limit_told_at: self.limit_told_at,
            date_offset_ms: self.date_offset_ms,
        }
    }
}

fn durable(group: &Group) -> GroupState {
    let members = match &group.members {
        Members::Classic(classic) => MembersState::Classic(durable_classic(&group.id, classic)),
        Members::Consumer(consumer) => {
            MembersState::Consumer(inspect::durable(consumer, &group.id))
        }
    };
    let offsets = group.offsets.iter().flat_map(|(topic, partitions)| {
        partitions.iter().map(move |(&partition, offset)| {
            let state = OffsetState {
                offset: offset.offset,
                topic_id: offset.topic_id,
                record: value(&offset.to_record(&group.id, topic, partition)),
            };
            ((topic.clone(), partition), state)
        })
    });
    let rewind = group.rewind.as_ref().map(|rewind| {
        let goals = rewind.goals.iter();
        let to = goals.map(|(place, goal)| (place.clone(), goal.offset));
        let record = (
            rewind.asked_at,
            &rewind.client_id,
            &rewind.client_host,
            &rewind.goals,
            &rewind.partitions,
        );
        (to.collect(), format!("{record:?}"))
    });
    GroupState {
        members,
        offsets: offsets.collect(),
        rewind,
        rewound: group.rewound.as_ref().map(|rewound| format!("{rewound:?}")),
        seen: group.seen.inspect(),
    }
}

fn durable_classic(group_id: &Id, group: &ClassicGroup) -> ClassicGroupState {
    let members = group.members().map(|member| {
        let state = (member.instance_id.clone(), member.assignment.clone());
        (member.id.clone(), state)
    });
    ClassicGroupState {
        state: group.state.to_string(),
        generation: group.generation,
        record: match group.is_settled() {
            true if group.state_since.is_none() => Some(Bytes::new()),
            true => Some(classic_record(group_id, group)),
            false => None,
        },
        leader: group.leader.clone(),
        members: members.collect(),
    }
}

fn classic_record(group_id: &Id, group: &ClassicGroup) -> Bytes {
    let at = group.state_since.unwrap_or(-1);
    let record = group.to_record(at, |member| member.assignment.clone());
    let key = kohort_wire::messages::GroupMetadataKey {
        group: (&**group_id).into(),
    };
    value(&Record::GroupMetadata(key, Some(record)))
}

fn soft_classic(group_id: &Id, group: &ClassicGroup, now: Millis) -> SoftState {
    let members = group.members().map(|member| {
        let protocols = member.protocols.iter();
        let soft = SoftMemberState {
            session: member.session.left(now),
            protocols: protocols
                .map(|protocol| (protocol.name.clone(), protocol.metadata.clone()))
                .collect(),
            parked: (member.parked_join.is_some(), member.parked_sync.is_some()),
            is_new: member.is_new,
            ..SoftMemberState::default()
        };
        (member.id.clone(), soft)
    });
    SoftState {
        members: members.collect(),
        classic: Some(SoftClassicState {
            record: classic_record(group_id, group),
            pending: group.pending.inspect(now),
            pending_sync: group.pending_sync.clone(),
            initial_delay: group.initial_delay.map(|delay| delay.ends_at - now),
        }),
        alarm: group.rebalance.left(now),
        at_work: (false, false),
        topics_version: None,
    }
}

fn soft_consumer(group: &ConsumerGroup, now: Millis) -> SoftState {
    let members = group.sorted_members().into_iter().map(|member| {
        let left = |deadline: &Option<Deadline>| deadline.as_ref().and_then(|d| d.left(now));
        let rebalance = &member.rebalance;
        let soft = SoftMemberState {
            session: member.session.left(now),
            rebalance: [
                left(&rebalance.revoke),
                left(&rebalance.join),
                left(&rebalance.sync),
            ],
            ..SoftMemberState::default()
        };
        (member.id.clone(), soft)
    });
    SoftState {
        members: members.collect(),
        classic: None,
        alarm: group.look.left(now),
        at_work: (group.is_resolving, group.is_assigning),
        topics_version: group.topics_version,
    }
}

/// The encoded value of a record.
pub(super) fn value(record: &Record) -> Bytes {
    match record.encode() {
        Ok((_, value)) => value.unwrap_or_default(),
        // What cannot be encoded cannot be written either, and is seen there.
        Err(error) => Bytes::from(format!("{error}")),
    }
}

pub(super) fn places(partitions: &kohort_group::TopicPartitions) -> BTreeSet<Place> {
    partitions.iter().collect()
}
