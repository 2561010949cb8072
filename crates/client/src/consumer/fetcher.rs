//! Fetches ahead of the application: from each broker one answer at a time, for as much as the
//! prefetch allows.

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use futures_util::{StreamExt, stream::FuturesUnordered};
use kohort_wire::{codec::Versions, messages::*};
use rustc_hash::{FxHashMap, FxHashSet};
use tokio::time::{Instant, sleep_until};

use super::{
    fetch_answer::{Asked, apply},
    partition::{Fetching, Partition, Position},
    resolve,
    session::{Session, Wanted},
    shared::{Shared, State},
    validate::{Doubt, validate},
};
use crate::{
    ByteString, Result, TopicPartition,
    rpc::{Cluster, Destination, Lane, Metadata},
};

/// How long to wait at most before looking again.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

pub(super) struct Fetcher {
    shared: Arc<Shared>,
    sessions: FxHashMap<i32, Session>,
    /// The brokers that have been asked, and for how many bytes.
    busy: FxHashMap<i32, usize>,
    unreachable: FxHashMap<i32, Instant>,
    /// How often in a row a broker has not answered, or only with an error.
    failures: FxHashMap<i32, u32>,
    refreshing: bool,
    /// How often in a row asking for news has not brought the leaders that were missing.
    fruitless_refreshes: u32,
    refreshed: Instant,
    events: FuturesUnordered<Pin<Box<dyn Future<Output = Event> + Send>>>,
}

pub(super) enum Event {
    Fetched(i32, Vec<Asked>, Result<FetchResponse>),
    /// Something was asked about partitions, and they know.
    Resolved,
    /// The same, and news of these topics is needed.
    Validated(Vec<ByteString>),
    /// It has been asked for news of topics; whether all of them have leaders.
    Refreshed {
        found: bool,
    },
}

type Plan = FxHashMap<i32, (FxHashMap<TopicPartition, Wanted>, Vec<Asked>)>;

impl Fetcher {
    pub(super) fn new(shared: Arc<Shared>) -> Fetcher {
        Fetcher {
            shared,
            sessions: FxHashMap::default(),
            busy: FxHashMap::default(),
            unreachable: FxHashMap::default(),
            failures: FxHashMap::default(),
            refreshing: false,
            fruitless_refreshes: 0,
            refreshed: Instant::now(),
            events: FuturesUnordered::new(),
        }
    }

    /// Runs until the consumer is closed.
    pub(super) async fn run(mut self) {
        let shared = self.shared.clone();
        loop {
            let next = self.start_what_can_be_started();
            tokio::select! {
                Some(event) = self.events.next(), if !self.events.is_empty() => self.on(event),
                () = shared.work.notified() => {}
                () = sleep_until(next) => {}
                () = shared.closed.cancelled() => return,
            }
        }
    }

    /// Asks for all that can be asked for now. Returns when to look again.
    fn start_what_can_be_started(&mut self) -> Instant {
        let now = Instant::now();
        let mut next = now + LOOK_AGAIN;
        let metadata = self.shared.cluster.metadata();
        self.unreachable.retain(|_, until| *until > now);
        let mut plan = Plan::default();
        let mut unknown = FxHashSet::default();
        let mut committed = Vec::new();
        let mut by_time = Vec::new();
        let mut doubts: FxHashMap<i32, Vec<_>> = FxHashMap::default();
        {
            let shared = self.shared.clone();
            let mut state = shared.lock();
            state.note_topic_ids(|topic| metadata.topic(topic).map(|topic| topic.id));
            let share = self.share(&state);
            let is_member = state.committer.is_some();
            let wait = |partition: &Partition| partition.not_before.filter(|until| *until > now);
            for (name, partition) in &mut state.partitions {
                if let Some(until) = wait(partition) {
                    next = next.min(until);
                    continue;
                }
                // Another topic of that name: not what was assigned.
                if let (Some(topic), Some(id)) = (metadata.topic(&name.topic), partition.topic_id)
                    && !topic.id.is_zero()
                    && topic.id != id
                {
                    unknown.insert(name.topic.clone());
                    continue;
                }
                match partition.fetching {
                    // A member of the classic protocol may be assigned, by name, a partition that
                    // does not exist (yet). If it came after the answer that nothing is committed
                    // for it, it would not start at its first record.
                    Fetching::FindCommitted if is_member && metadata.partition(name).is_none() => {
                        unknown.insert(name.topic.clone());
                    }
                    Fetching::FindCommitted => {
                        partition.fetching = Fetching::Finding;
                        committed.push((name.clone(), partition.lease));
                    }
                    Fetching::Find(spec) => {
                        partition.fetching = Fetching::Finding;
                        by_time.push((name.clone(), spec, partition.lease));
                    }
                    Fetching::At(position) if partition.is_fetchable(share) => {
                        let known = metadata.partition(name);
                        let Some((known, leader)) = known.and_then(|k| Some((k, k.leader?))) else {
                            unknown.insert(name.topic.clone());
                            continue;
                        };
                        match partition.doubt(position, known.leader_epoch) {
                            Some(doubt) => {
                                partition.fetching = Fetching::Finding;
                                doubts
                                    .entry(leader)
                                    .or_default()
                                    .push((name.clone(), doubt));
                            }
                            None => self.plan(&mut plan, &metadata, name, partition, leader),
                        }
                    }
                    _ => {}
                }
            }
            self.reserve(&mut plan, &mut state, &mut next);
        }
        for (broker, (wanted, asked)) in plan {
            self.fetch(broker, wanted, asked);
        }
        if !committed.is_empty() {
            let shared = self.shared.clone();
            self.events.push(Box::pin(async move {
                resolve::find_committed(&shared, committed).await;
                Event::Resolved
            }));
        }
        // One leader that does not answer holds up its own partitions only.
        let mut by_leader: FxHashMap<_, Vec<_>> = FxHashMap::default();
        for asked in by_time {
            by_leader
                .entry(metadata.leader(&asked.0))
                .or_default()
                .push(asked);
        }
        for by_time in by_leader.into_values() {
            let shared = self.shared.clone();
            self.events.push(Box::pin(async move {
                resolve::find_by_time(&shared, by_time).await;
                Event::Resolved
            }));
        }
        for (leader, doubts) in doubts {
            let shared = self.shared.clone();
            self.events.push(Box::pin(async move {
                Event::Validated(validate(&shared, leader, doubts).await)
            }));
        }
        let outdated = self.refreshed + self.shared.cluster.config().metadata_max_age <= now;
        if outdated {
            let state = self.shared.lock();
            unknown.extend(state.partitions.keys().map(|name| name.topic.clone()));
        }
        self.refresh(unknown.into_iter().collect());
        next
    }

    /// How many fetched bytes of one partition may wait for the application before no more of it
    /// is fetched.
    fn share(&self, state: &State) -> usize {
        self.shared.config.prefetch_bytes_max / state.partitions.len().max(1)
    }

    fn plan(
        &self,
        plan: &mut Plan,
        metadata: &Metadata,
        name: &TopicPartition,
        partition: &mut Partition,
        leader: i32,
    ) {
        let Fetching::At(position) = partition.fetching else {
            return;
        };
        let preferred = partition
            .preferred_replica
            .filter(|(id, until)| *until > Instant::now() && metadata.broker(*id).is_some());
        let broker = preferred.map_or(leader, |(id, _)| id);
        if self.busy.contains_key(&broker) || self.unreachable.contains_key(&broker) {
            return;
        }
        let known = metadata.partition(name);
        let topic_id = partition.topic_id.unwrap_or_default();
        let (wanted, asked) = plan.entry(broker).or_default();
        let bytes_max = self.shared.config.partition_fetch_bytes_max;
        wanted.insert(
            name.clone(),
            Wanted {
                topic_id,
                offset: position.offset,
                leader_epoch: known.map_or(-1, |known| known.leader_epoch),
                last_fetched_epoch: position.leader_epoch.unwrap_or(-1),
                bytes_max: i32::try_from(bytes_max).unwrap_or(i32::MAX),
            },
        );
        asked.push(Asked {
            name: name.clone(),
            topic_id,
            lease: partition.lease,
            offset: position.offset,
        });
    }

    /// Lets those requests pass for whose answers there is room.
    fn reserve(&mut self, plan: &mut Plan, state: &mut State, next: &mut Instant) {
        for until in self.unreachable.values() {
            *next = (*next).min(*until);
        }
        let most = self.shared.config.prefetch_bytes_max;
        let each = most / 2 / (self.busy.len() + plan.len()).max(1);
        let busy = self.busy.values().sum::<usize>();
        let mut used = state.fetched_bytes + busy;
        let full = used > 0 && used + each > most;
        if full && !plan.is_empty() && state.make_room() {
            used = state.fetched_bytes + busy;
        }
        // Those of whose partitions least is waiting come first: others must not take their room.
        let mut order: Vec<_> = plan
            .iter()
            .map(|(broker, (_, asked))| {
                let waiting = asked.iter().filter_map(|asked| {
                    let partition = state.partitions.get(&asked.name)?;
                    Some(partition.fetched_bytes)
                });
                (waiting.sum::<usize>(), *broker)
            })
            .collect();
        order.sort_unstable();
        for (_, broker) in order {
            if used > 0 && used + each > most {
                plan.remove(&broker);
                continue;
            }
            used += each;
            self.busy.insert(broker, each);
            for asked in plan.get(&broker).into_iter().flat_map(|(_, asked)| asked) {
                if let Some(partition) = state.partitions.get_mut(&asked.name) {
                    partition.in_flight = true;
                }
            }
        }
    }

    fn fetch(&mut self, broker: i32, wanted: FxHashMap<TopicPartition, Wanted>, asked: Vec<Asked>) {
        let config = &self.shared.config;
        let by_id = asked.iter().all(|asked| !asked.topic_id.is_zero());
        let session = self.sessions.entry(broker).or_default();
        let (session_id, session_epoch, topics, forgotten_topics_data) = session.next(&wanted);
        let bytes_max = self.busy.get(&broker).copied().unwrap_or(0).max(1);
        let request = FetchRequest {
            replica_id: -1,
            max_wait_ms: config.fetch_wait_max.as_millis() as i32,
            min_bytes: config.fetch_bytes_min,
            max_bytes: i32::try_from(bytes_max.min(config.fetch_bytes_max)).unwrap_or(i32::MAX),
            isolation_level: config.isolation_level.number(),
            session_id,
            session_epoch,
            topics,
            forgotten_topics_data,
            rack_id: config.rack.clone().unwrap_or_default(),
            ..Default::default()
        };
        let cluster = self.shared.cluster.clone();
        self.events.push(Box::pin(async move {
            let answer = fetch_once(&cluster, broker, request, by_id).await;
            Event::Fetched(broker, asked, answer)
        }));
    }

    fn refresh(&mut self, topics: Vec<ByteString>) {
        if topics.is_empty() || std::mem::replace(&mut self.refreshing, true) {
            return;
        }
        let cluster = self.shared.cluster.clone();
        let failures = self.fruitless_refreshes + 1;
        self.events.push(Box::pin(async move {
            let found = cluster.refresh_leaders(topics).await;
            // Not more often than that, whatever comes of it.
            tokio::time::sleep(cluster.config().retry_backoff.after(failures)).await;
            Event::Refreshed { found }
        }));
    }

    /// Lets a broker rest that doesn't answer, or answers with errors again and again. A first error
    /// is how brokers say that a fetch session is to begin anew.
    fn pace(&mut self, broker: i32, answer: &Result<FetchResponse>) {
        let is_first_error = match answer {
            Ok(response) if !response.error_code.is_error() => {
                self.failures.remove(&broker);
                return;
            }
            Ok(_) => !self.failures.contains_key(&broker),
            Err(_) => false,
        };
        let failures = self.failures.entry(broker).or_default();
        *failures += 1;
        if !is_first_error {
            let backoff = self.shared.cluster.config().retry_backoff;
            let until = Instant::now() + backoff.after(*failures);
            self.unreachable.insert(broker, until);
        }
    }

    fn on(&mut self, event: Event) {
        match event {
            Event::Resolved => {}
            Event::Validated(outdated) => self.refresh(outdated),
            Event::Refreshed { found } => {
                self.refreshing = false;
                self.fruitless_refreshes = match found {
                    true => 0,
                    false => self.fruitless_refreshes + 1,
                };
                self.refreshed = Instant::now();
            }
            Event::Fetched(broker, asked, answer) => {
                self.busy.remove(&broker);
                let session = self.sessions.entry(broker).or_default();
                match &answer {
                    Ok(response) => {
                        self.shared.answered();
                        session.answered(response.session_id, response.error_code);
                    }
                    Err(error) => {
                        tracing::debug!(broker, %error, "cannot fetch");
                        crate::measure::fetch_failed();
                        session.reset();
                    }
                }
                self.pace(broker, &answer);
                let outdated = apply(&self.shared, broker, asked, answer);
                self.refresh(outdated);
            }
        }
    }
}

impl Partition {
    /// Whether there may be something else at the position than there was: another leader than the
    /// one under which it is known to be in the log.
    fn doubt(&mut self, position: Position, current_epoch: i32) -> Option<Doubt> {
        let known = position.leader_epoch.is_none() || current_epoch < 0;
        if known || self.validated == Some(current_epoch) {
            // Records that are read now are in the log.
            self.validated = Some(current_epoch);
            return None;
        }
        Some(Doubt {
            lease: self.lease,
            position,
            current_epoch,
        })
    }

    fn is_fetchable(&self, share: usize) -> bool {
        !self.in_flight
            && !self.paused
            && !self.held
            && (self.fetched.is_empty() || self.fetched_bytes < share)
    }
}

async fn fetch_once(
    cluster: &Cluster,
    broker: i32,
    request: FetchRequest,
    by_id: bool,
) -> Result<FetchResponse> {
    let to = Destination::Broker(broker);
    let connection = cluster.connection(&to, Lane::Fetch).await?;
    // Since version 13 topics are named by id.
    let versions = Versions::new(4, if by_id { i16::MAX } else { 12 });
    let version = connection.version_of::<FetchRequest>(versions)?;
    let timeout = cluster.config().request_timeout;
    connection.call(&request, version, timeout).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ConsumerConfig, Uuid, committed::Committer, consumer::Seek};

    #[tokio::test]
    async fn a_broker_of_which_much_is_waiting_leaves_room_for_the_others() {
        for (much, nothing) in [(1, 2), (2, 1), (7, 3), (3, 7)] {
            let mut config = ConsumerConfig::new("a:1");
            config.prefetch_bytes_max = 100;
            let cluster = Cluster::new(config.client.clone()).unwrap();
            let shared = Arc::new(Shared::new(config, cluster));
            let mut fetcher = Fetcher::new(shared.clone());
            let mut state = shared.lock();
            let mut plan = Plan::default();
            for (broker, waiting) in [(much, 60), (nothing, 0)] {
                let name = TopicPartition::new("t", broker);
                state.assign(name.clone(), Seek::Offset(0));
                state.fetched_bytes += waiting;
                if let Some(partition) = state.partitions.get_mut(&name) {
                    partition.fetched_bytes = waiting;
                }
                let asked = Asked {
                    name,
                    topic_id: Uuid(0),
                    lease: 0,
                    offset: 0,
                };
                plan.insert(broker, (FxHashMap::default(), vec![asked]));
            }
            fetcher.reserve(&mut plan, &mut state, &mut Instant::now());
            let asked: Vec<_> = plan.keys().copied().collect();
            assert_eq!(asked, [nothing]);
            assert!(fetcher.busy.contains_key(&nothing));
        }
    }

    #[tokio::test]
    async fn a_member_asks_where_to_begin_once_the_partition_exists() {
        let cluster = Cluster::new(ConsumerConfig::new("a:1").client).unwrap();
        let shared = Arc::new(Shared::new(ConsumerConfig::new("a:1").group("g"), cluster));
        let mut fetcher = Fetcher::new(shared.clone());
        let name = TopicPartition::new("t", 0);
        let mut state = shared.lock();
        state.committer = Some(Committer {
            member_id: "m".into(),
            instance_id: None,
            epoch: 1,
            consumer_protocol: false,
        });
        state.assign(name.clone(), Seek::Committed);
        drop(state);
        fetcher.start_what_can_be_started();
        let mut state = shared.lock();
        assert_eq!(state.partitions[&name].fetching, Fetching::FindCommitted);
        // Without a group that assigns, the application is told that there is no such partition.
        state.committer = None;
        drop(state);
        fetcher.start_what_can_be_started();
        assert_eq!(shared.lock().partitions[&name].fetching, Fetching::Finding);
    }
}
