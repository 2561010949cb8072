//! A shard: the groups of one partition of `__consumer_offsets`.

use std::{collections::BTreeSet, sync::Arc};

use bytes::Bytes;
use kohort_wire::ByteString;
use rand::{Rng, SeedableRng, rngs::StdRng};
use rustc_hash::FxHashMap;

use super::{
    Caller, Config, Id, Load, Millis, Outbox, Pace, Record, RecordError, Request, Token, Topics,
    WorkDone,
    alarm::{Alarm, Alarms},
    classic::HandedOut,
    group::Group,
    rewind::Told,
    step::{Apply, Step},
};

/// How many characters of a group's id a generated member id begins with: far less than a text may
/// have, so that the member id can be written into records and responses.
const GROUP_ID_CHARS_MAX: usize = 1_000;

/// The groups of one partition of `__consumer_offsets`.
///
/// Life of a shard: [`new`](Shard::new), [`load`](Shard::load) for every record of the partition,
/// [`loaded`](Shard::loaded); then requests, alarms and news in any order, each leaving records and
/// replies in the [`Outbox`].
#[derive(Debug)]
pub struct Shard {
    pub(crate) config: Arc<Config>,
    pub(crate) topics: Arc<Topics>,
    pub(crate) groups: FxHashMap<Id, Group>,
    /// The groups that have a rewind under way.
    pub(crate) rewinding: BTreeSet<Id>,
    /// The rewinds of the last minute, and who was told that they have happened.
    pub(crate) told: Vec<Told>,
    /// Deleted topics that [`topics_changed`](Shard::topics_changed) may not have reported yet.
    pub(crate) deleted_topics: Vec<ByteString>,
    pub(crate) alarms: Alarms,
    pub(crate) handed_out: HandedOut,
    pub(crate) pace: Pace,
    pub(super) random: StdRng,
    pub(super) member_sequence: u64,
    /// When an event last told that a member was too large.
    pub(crate) limit_told_at: Option<Millis>,
    /// How far the wall clock is ahead of the time that steps are taken at.
    pub(super) date_offset_ms: Millis,
}

impl Shard {
    /// A shard without groups. `seed` must be unpredictable where peers are not trusted, since the
    /// member ids, which must not be guessed, come from it.
    pub fn new(config: Arc<Config>, topics: Arc<Topics>, seed: [u8; 32]) -> Shard {
        Shard {
            config,
            topics,
            groups: FxHashMap::default(),
            rewinding: BTreeSet::new(),
            told: Vec::new(),
            deleted_topics: Vec::new(),
            alarms: Alarms::default(),
            handed_out: HandedOut::default(),
            pace: Pace::FREE,
            random: StdRng::from_seed(seed),
            member_sequence: 0,
            limit_told_at: None,
            date_offset_ms: 0,
        }
    }

    /// Takes how far the wall clock is ahead of the time that the shard is told; negative if it is
    /// behind. It changes when the wall clock is set, or the machine sleeps.
    pub fn set_date_offset(&mut self, offset_ms: Millis) {
        self.date_offset_ms = offset_ms;
    }

    pub(crate) fn step<'a>(&self, now: Millis, out: &'a mut Outbox) -> Step<'a> {
        Step::new(now, self.date_offset_ms, out)
    }

    /// Applies a record of the log. Records of unknown types are passed over.
    pub fn load(&mut self, key: Bytes, value: Option<Bytes>) -> Result<(), RecordError> {
        if let Some(record) = Record::decode(key, value)? {
            self.apply(&record);
        }
        Ok(())
    }

    /// The end of loading: sessions of all members begin now, and what the coordinator has to do on
    /// its own is set in motion.
    pub fn loaded(&mut self, now: Millis, out: &mut Outbox) {
        let mut step = self.step(now, out);
        let group_ids: Vec<Id> = self.groups.keys().cloned().collect();
        for group_id in &group_ids {
            self.classic_loaded(group_id, &mut step);
            self.consumer_loaded(group_id, &mut step);
            self.classic_rewound_loaded(group_id, &mut step);
        }
        self.rewinds_loaded(&mut step);
        self.schedule_offset_expiry(now);
    }

    /// Takes a request. Its reply comes at once, or in a later step, under `token`.
    pub fn request(
        &mut self,
        token: Token,
        caller: &Caller,
        request: Request,
        now: Millis,
        out: &mut Outbox,
    ) {
        let step = &mut self.step(now, out);
        self.note_sign_of_life(&request, step);
        match request {
            Request::JoinGroup { version, request } => {
                self.join_group(token, caller, version, request, step);
            }
            Request::SyncGroup { version, request } => {
                self.sync_group(token, version, request, step);
            }
            Request::Heartbeat { request } => self.heartbeat(token, request, step),
            Request::LeaveGroup { version, request } => {
                self.leave_group(token, caller, version, request, step);
            }
            Request::ConsumerGroupHeartbeat { version, request } => {
                self.consumer_group_heartbeat(token, caller, version, request, step);
            }
            Request::OffsetCommit { version, request } => {
                self.offset_commit(token, caller, version, request, step);
            }
            Request::OffsetFetch {
                request,
                require_stable,
            } => {
                self.offset_fetch(token, request, require_stable, step);
            }
            Request::OffsetDelete { request } => self.offset_delete(token, request, step),
            Request::ListGroups { request } => self.list_groups(token, request, step),
            Request::DescribeGroups { version, groups } => {
                self.describe_groups(token, version, groups, step);
            }
            Request::ConsumerGroupDescribe { groups } => {
                self.consumer_group_describe(token, groups, step);
            }
            Request::DeleteGroups { groups } => self.delete_groups(token, groups, step),
            Request::TopicsDeleted { topics } => self.topics_deleted(token, topics, step),
        }
        self.advance_rewinds(step);
        self.sweep_alarms();
    }

    /// When [`on_alarm`](Shard::on_alarm) wants to be called; perhaps for nothing.
    pub fn next_alarm(&self) -> Option<Millis> {
        self.alarms.next()
    }

    /// Does what is due at `now`.
    pub fn on_alarm(&mut self, now: Millis, out: &mut Outbox) {
        let step = &mut self.step(now, out);
        while let Some(alarm) = self.alarms.take(now) {
            match alarm {
                Alarm::ClassicMember {
                    group_id,
                    member_id,
                } => {
                    self.on_classic_member_alarm(&group_id, &member_id, step);
                }
                Alarm::ClassicRebalance { group_id } => {
                    self.on_classic_rebalance_alarm(&group_id, step);
                }
                Alarm::ConsumerSession {
                    group_id,
                    member_id,
                } => {
                    self.on_consumer_session_alarm(&group_id, &member_id, step);
                }
                Alarm::ConsumerRebalance {
                    group_id,
                    member_id,
                } => {
                    self.on_consumer_rebalance_alarm(&group_id, &member_id, step);
                }
                Alarm::ConsumerGroup { group_id } => {
                    self.on_consumer_group_alarm(&group_id, step);
                }
                Alarm::History { group_id } => self.on_history_alarm(&group_id, step),
                Alarm::OffsetExpiry => self.on_offset_expiry_alarm(step),
            }
            self.advance_rewinds(step);
        }
    }

    /// Takes news of topics.
    pub fn topics_changed(&mut self, topics: Arc<Topics>, now: Millis, out: &mut Outbox) {
        self.topics = topics;
        let step = &mut self.step(now, out);
        self.finish_topics_deleted(step);
        self.consumer_topics_changed(step);
        self.advance_rewinds(step);
    }

    /// Takes new settings. Members learn of them with their next heartbeat.
    pub fn config_changed(&mut self, config: Arc<Config>) {
        self.config = config;
    }

    /// How many members send heartbeats of the consumer protocol.
    pub fn load_of_heartbeats(&self) -> Load {
        let mut load = Load::default();
        for group in self.groups.values() {
            if let Some(consumer) = group.consumer() {
                let bounds = self.config.consumer_heartbeat_bounds(&group.id);
                load.add_group(consumer.heartbeating(), bounds);
            }
        }
        load
    }

    /// Takes the pace at which groups may send heartbeats. Members learn of it with their next one.
    pub fn set_pace(&mut self, pace: Pace) {
        self.pace = pace;
    }

    /// Takes the result of [`Work`](super::Work).
    pub fn done(&mut self, done: WorkDone, now: Millis, out: &mut Outbox) {
        let step = &mut self.step(now, out);
        self.consumer_work_done(done, step);
        self.advance_rewinds(step);
    }

    /// How many groups there are.
    pub fn group_count(&self) -> usize {
        self.groups.len()
    }

    /// Changes the state of the shard by a record.
    pub(crate) fn emit(&mut self, record: Record, step: &mut Step<'_>) {
        step.emit(self, record);
    }

    /// An id for a new member. People recognise it, it is never given out twice, and it cannot be
    /// guessed. It begins with the group's id, or, if that is very long, with as much of it as
    /// leaves the member's id short enough for records and responses.
    pub(crate) fn new_member_id(&mut self, group_id: &str, caller: &Caller) -> Id {
        self.member_sequence += 1;
        let host = caller.client_host.trim_start_matches('/');
        let random =
            (u128::from(self.random.next_u64()) << 64) | u128::from(self.random.next_u64());
        let group_id: String = group_id.chars().take(GROUP_ID_CHARS_MAX).collect();
        format!("{group_id}-{host}-{}-{random:032x}", self.member_sequence).into()
    }

    /// The group of an id, created if need be.
    pub(crate) fn group_or_new(&mut self, group_id: &str) -> &mut Group {
        if !self.groups.contains_key(group_id) {
            let id: Id = group_id.into();
            self.groups.insert(id.clone(), Group::new(id));
        }
        self.groups.get_mut(group_id).expect("inserted above")
    }
}

impl Apply for Shard {
    fn apply(&mut self, record: &Record) {
        match record {
            Record::LegacyOffsetCommit(key, value) => {
                self.apply_legacy_offset_commit(key, value.as_ref());
            }
            Record::OffsetCommit(key, value) => self.apply_offset_commit(key, value.as_ref()),
            Record::GroupMetadata(key, value) => self.apply_group_metadata(key, value.as_ref()),
            Record::Rewind(key, value) => self.apply_rewind(key, value.as_ref()),
            Record::Rewound(key, value) => self.apply_rewound(key, value.as_ref()),
            Record::GroupSeen(key, value) => self.apply_group_seen(key, value.as_ref()),
            Record::TopicSeen(key, value) => self.apply_topic_seen(key, value.as_ref()),
            consumer => self.apply_consumer(consumer),
        }
    }
}
