//! Which requests to send: lookups, and fetches ahead of the application. Each broker has one fetch
//! in flight at a time, for as many bytes as the prefetch limit leaves it.

use kohort_wire::{ByteString, Uuid, messages::*};
use rustc_hash::FxHashMap;

use super::{
    Reader, TopicPartition,
    offsets::Target,
    partition::Next,
    session::{Session, Wanted},
    truncation::PositionCheck,
};
use crate::Millis;

/// When to plan again at the latest.
const PLAN_INTERVAL_MS: Millis = 5_000;

/// What is known of the cluster.
pub trait Metadata {
    /// The id of a topic; zero if the brokers are too old to have any.
    fn topic_id(&self, topic: &str) -> Option<Uuid>;
    /// A partition's leader; `None` if the partition is not known.
    fn partition(&self, partition: &TopicPartition) -> Option<Leader>;
    /// Whether there is such a broker.
    fn has_broker(&self, id: i32) -> bool;
}

/// The leader of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leader {
    /// The broker, if there is a leader.
    pub leader: Option<i32>,
    /// The leader epoch, or −1.
    pub epoch: i32,
}

/// A request to send. The numbers that come with partitions are given back with the outcome.
#[derive(Debug)]
pub enum ReaderRequest {
    /// Fetch records, and hand the outcome to [`Reader::fetched`].
    Fetch {
        /// The broker to ask.
        broker: i32,
        /// The request.
        request: FetchRequest,
        /// Whether all topics have ids (version 13 and later).
        by_id: bool,
    },
    /// Look up what the group has committed: [`Reader::committed_found`].
    FindCommitted(Vec<(TopicPartition, u64)>),
    /// Look up offsets at one leader, if it is known: [`Reader::offset_found`].
    FindOffsets(Vec<(TopicPartition, Target, u64)>),
    /// Ask a leader whether positions are in its log: [`Reader::position_checked`].
    CheckPositions(i32, Vec<(TopicPartition, PositionCheck)>),
    /// Refresh the metadata of these topics: [`Reader::metadata_refreshed`].
    Refresh(Vec<ByteString>),
}

/// What to do now.
#[derive(Debug)]
pub struct Plan {
    /// The requests to send.
    pub requests: Vec<ReaderRequest>,
    /// When to plan again if nothing happens before.
    pub wake_at: Millis,
}

/// What is known of a broker that records are fetched from.
#[derive(Debug, Default)]
pub(crate) struct Broker {
    session: Session,
    in_flight: Option<InFlight>,
    /// When to ask it again after it has failed.
    not_before: Option<Millis>,
    failures: u32,
}

#[derive(Debug)]
struct InFlight {
    /// The size of the response, at most.
    bytes: usize,
    asked: Vec<Asked>,
}

/// A partition in a fetch request.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) name: TopicPartition,
    pub(crate) topic_id: Uuid,
    pub(crate) lease: u64,
    pub(crate) offset: i64,
}

/// A fetch that may be sent to a broker.
#[derive(Debug, Default)]
struct Fetch {
    wanted: FxHashMap<TopicPartition, Wanted>,
    asked: Vec<Asked>,
}

/// Refreshes of metadata, one at a time.
#[derive(Debug, Default)]
pub(crate) struct Refreshes {
    is_in_flight: bool,
    /// How many in a row have not brought the missing leaders.
    fruitless: u32,
    last: Option<Millis>,
    not_before: Millis,
}

impl Reader {
    /// Everything that can be asked for now.
    pub fn plan(&mut self, metadata: &impl Metadata, now: Millis) -> Plan {
        let mut wake_at = now + PLAN_INTERVAL_MS;
        let mut fetches: FxHashMap<i32, Fetch> = FxHashMap::default();
        let mut committed = Vec::new();
        // A leader that does not respond delays its own partitions only.
        let mut offsets: FxHashMap<Option<i32>, Vec<_>> = FxHashMap::default();
        let mut checks: FxHashMap<i32, Vec<_>> = FxHashMap::default();
        self.note_topic_ids(|topic| metadata.topic_id(topic));
        for broker in self.brokers.values_mut() {
            broker.not_before = broker.not_before.filter(|time| *time > now);
            wake_at = wake_at.min(broker.not_before.unwrap_or(Millis::MAX));
        }
        let share = self.config.prefetch_bytes_max / self.partitions.len().max(1);
        let partition_bytes_max = i32::try_from(self.config.partition_fetch_bytes_max);
        for (name, partition) in &mut self.partitions {
            if partition.not_before > now {
                wake_at = wake_at.min(partition.not_before);
                continue;
            }
            let current_id = metadata.topic_id(&name.topic).filter(|id| !id.is_zero());
            if let (Some(current), Some(id)) = (current_id, partition.topic_id)
                && current != id
            {
                // Another topic of that name, which was not assigned.
                self.outdated.insert(name.topic.clone());
                continue;
            }
            let known = metadata.partition(name);
            let leader = known.and_then(|known| known.leader);
            match partition.next {
                // A member of the classic protocol may be assigned, by name, a partition that does
                // not exist (yet). If it came after the response that nothing is committed for it,
                // reading would not start at its first record.
                Next::LookUpCommitted if self.member.is_some() && known.is_none() => {
                    self.outdated.insert(name.topic.clone());
                }
                Next::LookUpCommitted if !self.config.has_group => {
                    committed.push((name.clone(), partition.lease));
                }
                Next::LookUpCommitted => {
                    partition.next = Next::Waiting;
                    committed.push((name.clone(), partition.lease));
                }
                Next::LookUp(target) => {
                    partition.next = Next::Waiting;
                    let asked = (name.clone(), target, partition.lease);
                    offsets.entry(leader).or_default().push(asked);
                }
                Next::Fetch(position) if partition.is_fetchable(share) => {
                    let (Some(known), Some(leader)) = (known, leader) else {
                        self.outdated.insert(name.topic.clone());
                        continue;
                    };
                    if let Some(check) = partition.check_due(position, known.epoch) {
                        partition.next = Next::Waiting;
                        checks
                            .entry(leader)
                            .or_default()
                            .push((name.clone(), check));
                        continue;
                    }
                    let preferred = partition
                        .preferred_replica
                        .filter(|(id, until)| *until > now && metadata.has_broker(*id));
                    let broker = preferred.map_or(leader, |(id, _)| id);
                    let is_busy = self.brokers.get(&broker).is_some_and(|broker| {
                        broker.in_flight.is_some() || broker.not_before.is_some()
                    });
                    if !is_busy {
                        let topic_id = partition.topic_id.unwrap_or_default();
                        let fetch = fetches.entry(broker).or_default();
                        let wanted = Wanted {
                            topic_id,
                            offset: position.offset,
                            leader_epoch: known.epoch,
                            last_fetched_epoch: position.leader_epoch.unwrap_or(-1),
                            bytes_max: partition_bytes_max.unwrap_or(i32::MAX),
                        };
                        fetch.wanted.insert(name.clone(), wanted);
                        fetch.asked.push(Asked {
                            name: name.clone(),
                            topic_id,
                            lease: partition.lease,
                            offset: position.offset,
                        });
                    }
                }
                _ => {}
            }
        }
        if !self.config.has_group {
            for (name, lease) in std::mem::take(&mut committed) {
                self.committed_found(&name, lease, None);
                wake_at = now;
            }
        }
        let mut requests = self.send_fetches(fetches);
        if !committed.is_empty() {
            requests.push(ReaderRequest::FindCommitted(committed));
        }
        requests.extend(offsets.into_values().map(ReaderRequest::FindOffsets));
        let checks = checks.into_iter();
        requests
            .extend(checks.map(|(leader, checks)| ReaderRequest::CheckPositions(leader, checks)));
        requests.extend(self.refresh(now, &mut wake_at));
        Plan { requests, wake_at }
    }

    /// The fetches for whose responses there is room.
    fn send_fetches(&mut self, mut fetches: FxHashMap<i32, Fetch>) -> Vec<ReaderRequest> {
        let most = self.config.prefetch_bytes_max;
        let in_flight = self.brokers.values();
        let in_flight: Vec<usize> = in_flight
            .filter_map(|broker| Some(broker.in_flight.as_ref()?.bytes))
            .collect();
        let each = most / 2 / (in_flight.len() + fetches.len()).max(1);
        let reserved: usize = in_flight.iter().sum();
        let is_full = |used: usize| used > 0 && used + each > most;
        if is_full(self.fetched_bytes + reserved) && !fetches.is_empty() {
            self.drop_paused();
        }
        let mut used = self.fetched_bytes + reserved;
        // Brokers of whose partitions the least is waiting come first: others must not take their
        // room.
        let mut order: Vec<_> = fetches
            .iter()
            .map(|(broker, fetch)| {
                let asked = fetch.asked.iter();
                let waiting = asked.filter_map(|asked| self.partitions.get(&asked.name));
                (waiting.map(|p| p.fetched_bytes).sum::<usize>(), *broker)
            })
            .collect();
        order.sort_unstable();
        let mut requests = Vec::new();
        for (_, broker) in order {
            if !is_full(used)
                && let Some(fetch) = fetches.remove(&broker)
            {
                used += each;
                requests.push(self.send_fetch(broker, fetch, each));
            }
        }
        requests
    }

    fn send_fetch(&mut self, broker_id: i32, fetch: Fetch, bytes: usize) -> ReaderRequest {
        let Fetch { wanted, asked } = fetch;
        let mut by_id = true;
        for asked in &asked {
            by_id &= !asked.topic_id.is_zero();
            if let Some(partition) = self.partitions.get_mut(&asked.name) {
                partition.is_in_flight = true;
            }
        }
        let broker = self.brokers.entry(broker_id).or_default();
        broker.in_flight = Some(InFlight { bytes, asked });
        let (session_id, session_epoch, topics, forgotten_topics_data) =
            broker.session.next(&wanted);
        let config = &self.config;
        let bytes_max = bytes.max(1).min(config.fetch_bytes_max);
        let request = FetchRequest {
            replica_id: -1,
            max_wait_ms: config.fetch_wait_max.as_millis() as i32,
            min_bytes: config.fetch_bytes_min,
            max_bytes: i32::try_from(bytes_max).unwrap_or(i32::MAX),
            isolation_level: config.committed_only.into(),
            session_id,
            session_epoch,
            topics,
            forgotten_topics_data,
            rack_id: config.rack.clone(),
            ..Default::default()
        };
        ReaderRequest::Fetch {
            broker: broker_id,
            request,
            by_id,
        }
    }

    /// Drops what was fetched of paused partitions if nothing else can be delivered: it must not
    /// take the room that the other partitions need.
    fn drop_paused(&mut self) {
        if self.partitions.values().any(|p| p.is_deliverable()) {
            return;
        }
        for partition in self.partitions.values_mut() {
            if partition.is_paused && partition.fetched_bytes > 0 {
                self.last_lease += 1;
                self.fetched_bytes -= partition.refetch(self.last_lease);
            }
        }
    }

    /// A fetch has ended. Returns what was asked for. A broker that fails again and again is left
    /// alone for a while; a first error is how brokers say that a session has to start again.
    pub(crate) fn fetch_ended(
        &mut self,
        broker: i32,
        response: Option<&FetchResponse>,
        now: Millis,
    ) -> Vec<Asked> {
        let broker = self.brokers.entry(broker).or_default();
        let mut may_go_on = false;
        match response {
            Some(response) => {
                let code = response.error_code;
                broker.session.answered(response.session_id, code);
                may_go_on = !code.is_error() || broker.failures == 0;
                broker.failures = if code.is_error() {
                    broker.failures + 1
                } else {
                    0
                };
            }
            None => {
                broker.session.reset();
                broker.failures += 1;
            }
        }
        if !may_go_on {
            let wait = (self.config.backoff)(broker.failures);
            broker.not_before = Some(now + wait.as_millis() as Millis);
        }
        let in_flight = broker.in_flight.take();
        in_flight.map_or_else(Vec::new, |in_flight| in_flight.asked)
    }

    fn refresh(&mut self, now: Millis, wake_at: &mut Millis) -> Option<ReaderRequest> {
        let last = *self.refreshes.last.get_or_insert(now);
        if last + self.config.metadata_max_age.as_millis() as Millis <= now {
            let topics = self.partitions.keys().map(|name| name.topic.clone());
            self.outdated.extend(topics);
        }
        if self.outdated.is_empty() || self.refreshes.is_in_flight {
            return None;
        }
        if self.refreshes.not_before > now {
            *wake_at = (*wake_at).min(self.refreshes.not_before);
            return None;
        }
        self.refreshes.is_in_flight = true;
        let topics = std::mem::take(&mut self.outdated);
        Some(ReaderRequest::Refresh(topics.into_iter().collect()))
    }

    /// Metadata were refreshed; `found` says whether all topics have leaders.
    pub fn metadata_refreshed(&mut self, found: bool, now: Millis) {
        let refreshes = &mut self.refreshes;
        refreshes.is_in_flight = false;
        refreshes.last = Some(now);
        let wait = (self.config.backoff)(refreshes.fruitless + 1);
        refreshes.not_before = now + wait.as_millis() as Millis;
        refreshes.fruitless = if found { 0 } else { refreshes.fruitless + 1 };
    }
}
