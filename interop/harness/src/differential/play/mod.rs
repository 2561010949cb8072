//! A script played on one broker: what it answered to every step.
//!
//! Joins and syncs may be parked by the broker until others have come. They have connections of
//! their own, and after each step the group is described until it is clear which of them can still
//! be waiting: answers are therefore listed under the step that brought them about, whatever the
//! broker's speed.

mod classic;
mod consumer;
mod offsets;
mod topics;
mod waiting;

use std::collections::BTreeMap;
use std::time::Instant;

use bytes::Bytes;
use kohort_wire::messages::*;
use kohort_wire::{ByteString, Uuid};

use super::connection::Connection;
use super::normal::Names;
use super::probe::Probe;
use super::step::*;
use crate::failure::Failure;

/// How long a rebalance and a session may last: longer than any script.
const LONG_MS: i32 = 300_000;

/// What a broker answered: for each step its answers, one a line.
pub(crate) type Transcript = Vec<Vec<String>>;

/// Plays `script` on the broker at `address`.
pub(crate) fn play(script: &Script, address: &str) -> Result<Transcript, Failure> {
    play_among(script, BTreeMap::new(), address)
}

/// The same where the script's topics are there already, or some of them.
pub(crate) fn play_among(
    script: &Script,
    topics: BTreeMap<Topic, (Uuid, i32)>,
    address: &str,
) -> Result<Transcript, Failure> {
    let mut play = Play::new(script, address)?;
    for (&topic, &(id, _)) in &topics {
        play.names.learn_topic(id, topic);
    }
    play.topics = topics;
    let mut transcript = Vec::new();
    for (index, step) in script.steps.iter().enumerate() {
        play.step(index, step)
            .and_then(|()| play.wait_for_answers())
            .map_err(|failure| failure.during(format!("step {index}, at {address}")))?;
        transcript.push(std::mem::take(&mut play.lines));
        if play.stuck {
            break;
        }
    }
    play.finish();
    Ok(transcript)
}

pub(super) struct Play<'a> {
    script: &'a Script,
    address: &'a str,
    pub(super) names: Names,
    connection: Connection,
    free: Vec<Connection>,
    /// Connections over which ids of new members were asked for: kohort forgets such an id with its
    /// connection, Kafka does not.
    held: Vec<Connection>,
    parked: Vec<Parked>,
    slots: BTreeMap<Slot, Member>,
    pub(super) topics: BTreeMap<Topic, (Uuid, i32)>,
    regexes: BTreeMap<String, Vec<Topic>>,
    probe: Option<Probe>,
    lines: Vec<String>,
    arrived: Vec<Arrived>,
    /// The ids that were given out and have not come back.
    pending: Vec<String>,
    /// What the parked requests wait for: the group as it was when that was found out.
    waits_for: Option<(usize, DescribedGroup)>,
    /// The errors of heartbeats while a group was to settle
    complaints: Vec<String>,
    /// Something was not answered that should have been: the rest would only wait.
    stuck: bool,
}

/// A request that has not been answered.
struct Parked {
    step: usize,
    slot: Slot,
    version: i16,
    kind: Kind,
    /// The member id in the request
    id: ByteString,
    sent: Instant,
    connection: Connection,
}

/// The answer to a request that was parked; no frame if the connection was closed.
struct Arrived {
    step: usize,
    slot: Slot,
    version: i16,
    kind: Kind,
    frame: Option<Bytes>,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Join,
    Sync { leads: bool },
}

/// What the member in a slot was last told.
#[derive(Default, Clone)]
struct Member {
    classic_id: String,
    generation: i32,
    protocol: String,
    protocol_type: String,
    leads: bool,
    /// Whom the leader shall give partitions.
    members: Vec<String>,
    last_join: Option<Join>,
    consumer_id: String,
    epoch: i32,
    assigned: Vec<TopicIdPartitions>,
}

impl<'a> Play<'a> {
    fn new(script: &'a Script, address: &'a str) -> Result<Self, Failure> {
        let names = Names {
            group: format!("group-{}", script.seed),
            exact: script.exact,
            ..Names::default()
        };
        Ok(Self {
            script,
            address,
            names,
            connection: Connection::open(address)?,
            free: Vec::new(),
            held: Vec::new(),
            parked: Vec::new(),
            slots: BTreeMap::new(),
            topics: BTreeMap::new(),
            regexes: BTreeMap::new(),
            probe: None,
            lines: Vec::new(),
            arrived: Vec::new(),
            pending: Vec::new(),
            waits_for: None,
            complaints: Vec::new(),
            stuck: false,
        })
    }

    fn group(&self) -> ByteString {
        self.names.group.as_str().into()
    }

    pub(super) fn topic_name(&self, topic: Topic) -> ByteString {
        format!("topic-{}-{topic}", self.script.seed).into()
    }

    fn topic_id(&self, topic: Topic) -> Uuid {
        self.topics.get(&topic).map_or(Uuid(77), |known| known.0)
    }

    fn topic_names(&self, topics: &[Topic]) -> Vec<ByteString> {
        topics.iter().map(|topic| self.topic_name(*topic)).collect()
    }

    fn member(&mut self, slot: Slot) -> &mut Member {
        self.slots.entry(slot).or_insert_with(|| Member {
            consumer_id: format!("consumer-{slot}"),
            ..Member::default()
        })
    }

    fn classic_id(&mut self, who: &Who) -> ByteString {
        match who.id {
            Id::Own => self.member(who.slot).classic_id.as_str().into(),
            Id::Empty => ByteString::default(),
            Id::Unknown => "nobody".into(),
            Id::Of(slot) => self.member(slot).classic_id.as_str().into(),
        }
    }

    fn consumer_id(&mut self, who: &Who) -> ByteString {
        match who.id {
            Id::Own => self.member(who.slot).consumer_id.as_str().into(),
            Id::Empty => ByteString::default(),
            Id::Unknown => "nobody".into(),
            Id::Of(slot) => self.member(slot).consumer_id.as_str().into(),
        }
    }

    fn generation(&mut self, who: &Who) -> i32 {
        match who.epoch {
            Epoch::Own(more) => self.member(who.slot).generation + more,
            Epoch::Exactly(generation) => generation,
        }
    }

    fn epoch(&mut self, who: &Who) -> i32 {
        match who.epoch {
            Epoch::Own(more) => self.member(who.slot).epoch + more,
            Epoch::Exactly(epoch) => epoch,
        }
    }

    /// Asks on the connection for everything that is answered at once.
    fn ask<R: kohort_wire::Request>(
        &mut self,
        request: &R,
        version: i16,
    ) -> Result<Option<R::Response>, Failure> {
        let answer = self.connection.ask(request, version)?;
        if answer.is_none() {
            self.connection = Connection::open(self.address)?;
        }
        Ok(answer)
    }

    fn note<A: super::normal::Normal>(&mut self, answer: Option<A>) {
        let line = match answer {
            Some(answer) => self.names.text(answer),
            None => "the connection was closed".to_owned(),
        };
        self.lines.push(line);
    }

    fn step(&mut self, index: usize, step: &Step) -> Result<(), Failure> {
        match step {
            Step::Join(join) => self.join(index, join),
            Step::Sync(sync) => self.sync(index, sync),
            Step::Heartbeat { version, who } => {
                let request = HeartbeatRequest {
                    group_id: self.group(),
                    generation_id: self.generation(who),
                    member_id: self.classic_id(who),
                    group_instance_id: instance(who, *version, 3),
                };
                let answer = self.ask(&request, *version)?;
                self.note(answer);
                Ok(())
            }
            Step::Leave { version, who } => self.leave(*version, who),
            Step::ConsumerHeartbeat(heartbeat) => {
                let answer = self.consumer_heartbeat(heartbeat)?;
                self.note(answer);
                Ok(())
            }
            Step::Commit {
                version,
                who,
                offsets,
            } => self.commit(*version, who, offsets),
            Step::Fetch {
                version,
                who,
                partitions,
            } => self.fetch(*version, who, partitions.as_deref()),
            Step::DeleteOffsets { partitions } => self.delete_offsets(partitions),
            Step::DescribeGroup { version } => {
                let answer = self.describe_group(*version)?;
                self.note(answer);
                Ok(())
            }
            Step::DescribeConsumerGroup { version } => {
                let answer = self.describe_consumer_group(*version)?;
                self.note(answer);
                Ok(())
            }
            Step::ListGroups {
                version,
                states,
                types,
            } => {
                let texts =
                    |texts: &[String]| texts.iter().map(|text| text.as_str().into()).collect();
                let request = ListGroupsRequest {
                    states_filter: texts(states),
                    types_filter: texts(types),
                };
                let answer = self.ask(&request, *version)?;
                self.note(answer);
                Ok(())
            }
            Step::DeleteGroup { version } => {
                let request = DeleteGroupsRequest {
                    groups_names: vec![self.group()],
                };
                let answer = self.ask(&request, *version)?;
                self.note(answer);
                Ok(())
            }
            Step::CreateTopic { topic, partitions } => self.create_topic(*topic, *partitions),
            Step::GrowTopic { topic, partitions } => self.grow_topic(*topic, *partitions),
            Step::DeleteTopic { topic } => self.delete_topic(*topic),
            Step::Settle => self.settle(),
        }
    }

    fn describe_group(&mut self, version: i16) -> Result<Option<DescribeGroupsResponse>, Failure> {
        let request = DescribeGroupsRequest {
            groups: vec![self.group()],
            ..Default::default()
        };
        self.ask(&request, version)
    }

    fn describe_consumer_group(
        &mut self,
        version: i16,
    ) -> Result<Option<ConsumerGroupDescribeResponse>, Failure> {
        let request = ConsumerGroupDescribeRequest {
            group_ids: vec![self.group()],
            ..Default::default()
        };
        self.ask(&request, version)
    }

    fn finish(&mut self) {
        if let Some(probe) = self.probe.take() {
            probe.leave(&mut self.connection);
        }
    }
}

fn instance(who: &Who, version: i16, since: i16) -> Option<ByteString> {
    let instance = who.instance.as_deref().filter(|_| version >= since);
    instance.map(ByteString::from)
}
