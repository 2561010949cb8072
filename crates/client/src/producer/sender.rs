//! Sends batches to the leaders of their partitions, on a task of its own.

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use futures_util::{StreamExt, future::BoxFuture, stream::FuturesUnordered};
use kohort_wire::{codec::Versions, messages::*};
use rustc_hash::{FxHashMap, FxHashSet};
use tokio::time::{Instant, sleep_until};

use super::{
    Acks,
    accumulator::{Accumulator, State},
    batch::Batch,
    delivery::Outcome,
    identity::{Identity, identity},
    request::{produce_request, versions},
};
use crate::{
    ByteString, Error, Result, TopicPartition,
    rpc::{Cluster, Connection, Destination, Lane},
};

/// How long to wait at most before looking again whether something has expired.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

pub(super) struct Sender {
    pub(super) cluster: Cluster,
    pub(super) accumulator: Arc<Accumulator>,
    /// Requests under way, by broker.
    in_flight: FxHashMap<i32, usize>,
    identity: Option<Identity>,
    /// Sequence numbers have a gap: a new epoch is needed before anything new is sent.
    pub(super) renew: bool,
    /// Nothing is sent to these for now: being connected to, or not reachable.
    brokers: FxHashMap<i32, BrokerState>,
    /// Why a broker could not be reached, if none was since.
    unreachable: Option<Error>,
    asking_identity: bool,
    /// How often asking for an identity has failed in a row, and until when it is not asked again.
    identity_failures: u32,
    identity_not_before: Option<Instant>,
    refreshing: bool,
    /// How often in a row asking for news has not brought the leaders that were missing.
    fruitless_refreshes: u32,
    /// When it was last asked for news of all topics in use.
    refreshed: Instant,
    /// Whose turn it is when not all partitions find room in a request.
    turn: usize,
    events: FuturesUnordered<Pin<Box<dyn Future<Output = Event> + Send>>>,
}

#[derive(Clone, Copy)]
enum BrokerState {
    Connecting,
    Unreachable { until: Instant },
}

enum Event {
    Connected(i32, Result<Connection>),
    Produced(i32, Vec<Batch>, Result<ProduceResponse>),
    Identity(Result<Identity>),
    /// It has been asked for news of topics; whether all of them have leaders.
    Refreshed {
        found: bool,
    },
}

impl Sender {
    pub(super) fn new(cluster: Cluster, accumulator: Arc<Accumulator>) -> Sender {
        Sender {
            cluster,
            accumulator,
            in_flight: FxHashMap::default(),
            identity: None,
            renew: false,
            brokers: FxHashMap::default(),
            unreachable: None,
            asking_identity: false,
            identity_failures: 0,
            identity_not_before: None,
            refreshing: false,
            fruitless_refreshes: 0,
            refreshed: Instant::now(),
            turn: 0,
            events: FuturesUnordered::new(),
        }
    }

    /// Runs until the producer is closed and everything is done with.
    pub(super) async fn run(mut self) {
        while !self.accumulator.is_finished() {
            let next = self.send_what_can_be_sent();
            let accumulator = self.accumulator.clone();
            tokio::select! {
                Some(event) = self.events.next(), if !self.events.is_empty() => self.on(event),
                () = accumulator.work.notified() => {}
                () = sleep_until(next) => {}
            }
        }
        self.cluster.close();
    }

    /// Sends all that can be sent now. Returns when to look again.
    fn send_what_can_be_sent(&mut self) -> Instant {
        loop {
            let (ready, expired, mut unknown, next) = self.collect(Instant::now());
            self.expire(expired);
            unknown.extend(self.outdated());
            if !unknown.is_empty() {
                self.refresh(unknown);
            }
            if self.accumulator.config.idempotence {
                let needed = self.renew || (self.identity.is_none() && !ready.is_empty());
                let backing_off = self.identity_not_before.filter(|at| *at > Instant::now());
                if needed && !self.asking_identity && backing_off.is_none() && self.is_settled() {
                    self.ask_identity();
                }
                if self.identity.is_none() {
                    return backing_off.map_or(next, |at| next.min(at));
                }
            }
            let mut sent = false;
            for (broker, mut partitions) in ready {
                self.turn = self.turn.wrapping_add(1);
                let first = self.turn % partitions.len();
                partitions.rotate_left(first);
                sent |= self.send_to(broker, partitions);
            }
            if !sent {
                return next;
            }
        }
    }

    fn expire(&mut self, expired: Vec<Batch>) {
        for batch in expired {
            let last = self.queue(&batch.outcome.partition, |queue| queue.last.clone());
            let error = self.too_late(&batch.outcome, last.as_ref());
            // One that was sent leaves a gap, unless it was written after all.
            if batch.sent_as.is_some() {
                self.gap(&batch.outcome.partition);
            }
            self.accumulator.finish(&batch, Err(error));
        }
    }

    /// Fails what waits to be sent, and nothing that comes later.
    fn fail_waiting(&mut self, error: &Error) {
        for batch in self.accumulator.take_waiting() {
            // One that was sent leaves a gap, unless it was written after all.
            if batch.sent_as.is_some() {
                self.gap(&batch.outcome.partition);
            }
            self.accumulator.finish(&batch, Err(error.clone()));
        }
    }

    fn too_late(&self, outcome: &Outcome, last: Option<&Error>) -> Error {
        let last = last.or(self.unreachable.as_ref());
        Error::Timeout {
            what: format!("write to partition {}", outcome.partition),
            after: self.accumulator.config.delivery_timeout,
            last: last.cloned().map(Box::new),
        }
    }

    /// What may be sent to whom; what has waited too long; topics whose leaders are not known; and
    /// when to look again.
    #[allow(clippy::type_complexity)]
    fn collect(
        &self,
        now: Instant,
    ) -> (
        FxHashMap<i32, Vec<TopicPartition>>,
        Vec<Batch>,
        Vec<ByteString>,
        Instant,
    ) {
        let config = &self.accumulator.config;
        let metadata = self.cluster.metadata();
        let mut ready: FxHashMap<i32, Vec<TopicPartition>> = FxHashMap::default();
        let mut expired = Vec::new();
        let mut unknown = FxHashSet::default();
        let mut next = now + LOOK_AGAIN;
        let most = if config.idempotence {
            config.in_flight_max
        } else {
            1
        };
        let exhausted = self.accumulator.is_exhausted();
        let mut guard = self.accumulator.lock();
        let State {
            topics,
            listed,
            flush_to,
            ..
        } = &mut *guard;
        listed.retain(|partition| {
            let topic = topics.get_mut(&partition.topic);
            let queues = topic.map(|topic| &mut topic.partitions);
            let queue = queues.and_then(|queues| queues.get_mut(partition.partition as usize));
            let Some(queue) = queue else { return false };
            if queue.is_idle() {
                queue.listed = false;
                return false;
            }
            if let Some(open) = &queue.open {
                let due = open.created + config.linger;
                if due <= now || open.number < *flush_to || exhausted {
                    queue.seal();
                } else {
                    next = next.min(due);
                }
            }
            if let Some(created) = now.checked_sub(config.delivery_timeout) {
                expired.extend(queue.expired(created));
                // What becomes of those is not waited for any longer.
                for outcome in queue.overdue(created) {
                    let error = self.too_late(outcome, queue.last.as_ref());
                    outcome.complete(Err(error));
                }
            }
            if let Some(oldest) = queue.oldest() {
                next = next.min((oldest + config.delivery_timeout).max(now));
            }
            // While a gap is being closed only what was sent before is sent again.
            let held = self.renew && (queue.again.is_empty() || queue.renew);
            if held || !queue.may_send(now, most) {
                if let Some(not_before) = queue.not_before {
                    next = next.min(not_before.max(now));
                }
                return true;
            }
            match metadata.leader(partition) {
                Some(leader) => ready.entry(leader).or_default().push(partition.clone()),
                None => {
                    unknown.insert(partition.topic.clone());
                }
            }
            true
        });
        drop(guard);
        ready.retain(|broker, _| match self.brokers.get(broker) {
            Some(BrokerState::Connecting) => false,
            Some(BrokerState::Unreachable { until }) if *until > now => {
                next = next.min(*until);
                false
            }
            _ => match self.throttled_until(*broker) {
                Some(until) => {
                    next = next.min(until);
                    false
                }
                None => self.in_flight.get(broker).copied().unwrap_or(0) < config.in_flight_max,
            },
        });
        (ready, expired, unknown.into_iter().collect(), next)
    }

    fn throttled_until(&self, broker: i32) -> Option<Instant> {
        let connection = self.cluster.connected(broker, Lane::Produce)?;
        connection.throttled_until()
    }

    /// Whether of everything that was sent it is known whether it was written.
    fn is_settled(&self) -> bool {
        let state = self.accumulator.lock();
        let mut queues = state.topics.values().flat_map(|topic| &topic.partitions);
        self.in_flight.values().all(|requests| *requests == 0)
            && (self.identity.is_none() || !queues.any(|queue| queue.is_unsettled()))
    }

    /// Sends one request with a batch of each partition. Returns whether there was anything.
    fn send_to(&mut self, broker: i32, partitions: Vec<TopicPartition>) -> bool {
        let Some(connection) = self.cluster.connected(broker, Lane::Produce) else {
            self.connect(broker);
            return false;
        };
        let config = &self.accumulator.config;
        let batches = {
            let mut state = self.accumulator.lock();
            let mut batches: Vec<(Batch, _)> = Vec::new();
            let mut size = 0;
            for partition in partitions {
                let Some(topic) = state.topics.get_mut(&partition.topic) else {
                    continue;
                };
                let queue = &mut topic.partitions[partition.partition as usize];
                let next_size = queue.next().map_or(0, Batch::size);
                if !batches.is_empty() && size + next_size > config.request_bytes_max {
                    continue;
                }
                size += next_size;
                batches.extend(queue.take(self.identity));
            }
            batches
        };
        let mut batches: Vec<_> = batches
            .into_iter()
            .map(|(mut batch, named)| {
                // Compressing happens here, outside of the lock.
                let (bytes, builder) = batch.bytes(named, &self.accumulator.batches);
                if let Some(builder) = builder {
                    self.accumulator.reuse(builder);
                }
                (batch, bytes)
            })
            .collect();
        if batches.is_empty() {
            return false;
        }
        let sent = self.transmit(&connection, &mut batches);
        let batches = batches.into_iter().map(|(batch, _)| batch).collect();
        *self.in_flight.entry(broker).or_default() += 1;
        match sent {
            Ok(response) => {
                let event = async move { Event::Produced(broker, batches, response.await) };
                self.events.push(Box::pin(event));
            }
            Err(error) => self.on(Event::Produced(broker, batches, Err(error))),
        }
        true
    }

    fn transmit(
        &self,
        connection: &Connection,
        batches: &mut [(Batch, bytes::Bytes)],
    ) -> Result<BoxFuture<'static, Result<ProduceResponse>>> {
        let config = &self.accumulator.config;
        let metadata = self.cluster.metadata();
        let by_id = batches.iter().all(|(batch, _)| {
            let topic = metadata.topic(&batch.outcome.partition.topic);
            topic.is_some_and(|topic| !topic.id.is_zero())
        });
        let wanted: Versions = versions(by_id);
        let version = connection.version_of::<ProduceRequest>(wanted)?;
        let request = produce_request(config, &metadata, batches);
        let timeout = config.client.request_timeout;
        if config.acks == Acks::None {
            // There will be no answer, and no more memory than for what has yet to be written.
            let written = connection.send_unanswered(&request, version)?;
            let connection = connection.clone();
            return Ok(Box::pin(async move {
                let Ok(written) = tokio::time::timeout(timeout, written).await else {
                    // Nothing else would notice that the broker does not read.
                    connection.close();
                    return Err(Error::Disconnected {
                        broker: connection.broker(),
                        address: connection.address().to_owned(),
                        reason: "a request could not be written in time".to_owned(),
                    });
                };
                written.map(|()| ProduceResponse::default())
            }));
        }
        match connection.try_send(&request, version, timeout)? {
            Some(response) => Ok(Box::pin(response)),
            None => Err(Error::Disconnected {
                broker: connection.broker(),
                address: connection.address().to_owned(),
                reason: "too many requests are under way".to_owned(),
            }),
        }
    }

    fn connect(&mut self, broker: i32) {
        self.brokers.insert(broker, BrokerState::Connecting);
        let cluster = self.cluster.clone();
        self.events.push(Box::pin(async move {
            let to = Destination::Broker(broker);
            Event::Connected(broker, cluster.connection(&to, Lane::Produce).await)
        }));
    }

    fn ask_identity(&mut self) {
        self.asking_identity = true;
        let cluster = self.cluster.clone();
        let old = self.identity;
        self.events.push(Box::pin(async move {
            Event::Identity(identity(&cluster, old).await)
        }));
    }

    /// The topics in use, when what is known of them has grown old: there may be new partitions.
    fn outdated(&mut self) -> Vec<ByteString> {
        let age = self.accumulator.config.client.metadata_max_age;
        if self.refreshing || self.refreshed.elapsed() < age {
            return Vec::new();
        }
        self.refreshed = Instant::now();
        let mut state = self.accumulator.lock();
        // Asking for one that is not written to any more might create it again.
        let topics = state.topics.values_mut();
        let used = topics.filter_map(|topic| {
            let used = std::mem::take(&mut topic.used);
            used.then(|| topic.name.clone())
        });
        used.collect()
    }

    pub(super) fn refresh(&mut self, topics: Vec<ByteString>) {
        if std::mem::replace(&mut self.refreshing, true) {
            return;
        }
        let cluster = self.cluster.clone();
        let backoff = self.accumulator.config.client.retry_backoff;
        let failures = self.fruitless_refreshes + 1;
        self.events.push(Box::pin(async move {
            let found = cluster.refresh_leaders(topics).await;
            // Not more often than that, whatever comes of it.
            tokio::time::sleep(backoff.after(failures)).await;
            Event::Refreshed { found }
        }));
    }

    fn on(&mut self, event: Event) {
        match event {
            Event::Connected(broker, Ok(_)) => {
                self.brokers.remove(&broker);
                self.unreachable = None;
            }
            Event::Connected(broker, Err(error)) => {
                tracing::debug!(broker, %error, "cannot send records");
                // The records in hand fail; those to come have another chance.
                if !error.is_retriable() {
                    self.fail_waiting(&error);
                }
                self.unreachable = Some(error);
                let until = Instant::now() + self.accumulator.config.client.retry_backoff.after(1);
                let state = BrokerState::Unreachable { until };
                self.brokers.insert(broker, state);
                // Perhaps others lead its partitions by now.
                let metadata = self.cluster.metadata();
                let topics = self
                    .accumulator
                    .lock()
                    .topics
                    .keys()
                    .cloned()
                    .collect::<Vec<_>>();
                let led = topics.into_iter().filter(|topic| {
                    let topic = metadata.topic(topic);
                    topic.is_some_and(|t| t.partitions.iter().any(|p| p.leader == Some(broker)))
                });
                self.refresh(led.collect());
            }
            Event::Identity(Ok(identity)) => {
                tracing::debug!(
                    id = identity.id,
                    epoch = identity.epoch,
                    "producer identity"
                );
                self.asking_identity = false;
                self.identity_failures = 0;
                self.renew = false;
                self.identity = Some(identity);
                let mut state = self.accumulator.lock();
                let topics = state.topics.values_mut();
                for queue in topics.flat_map(|topic| &mut topic.partitions) {
                    queue.renew = false;
                }
            }
            Event::Identity(Err(error)) => {
                self.asking_identity = false;
                self.identity_failures += 1;
                let backoff = self.accumulator.config.client.retry_backoff;
                let wait = backoff.after(self.identity_failures);
                self.identity_not_before = Some(Instant::now() + wait);
                if error.is_retriable() {
                    tracing::debug!(%error, "no producer id yet");
                } else {
                    tracing::warn!(%error, "no producer id: the records that wait for it fail");
                    self.fail_waiting(&error);
                }
            }
            Event::Refreshed { found } => {
                self.refreshing = false;
                self.fruitless_refreshes = if found {
                    0
                } else {
                    self.fruitless_refreshes + 1
                };
                let metadata = self.cluster.metadata();
                let names: Vec<_> = self.accumulator.lock().topics.keys().cloned().collect();
                for topic in names.iter().filter_map(|name| metadata.topic(name)) {
                    self.accumulator.learn(topic);
                }
            }
            Event::Produced(broker, batches, response) => {
                if let Some(requests) = self.in_flight.get_mut(&broker) {
                    *requests -= 1;
                }
                self.on_produced(batches, response);
            }
        }
    }
}
