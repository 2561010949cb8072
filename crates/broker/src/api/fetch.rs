//! Fetch (1): records for consumers.

use std::{sync::Arc, time::Duration};

use kohort_wire::{ErrorCode, messages::*};
use tokio::{sync::Notify, time::Instant};

use super::{Call, Outcome};
use crate::{
    fetching::{Backlog, Batches, Context, Limits, TopicKey, Wanted, read},
    net::Reserved,
    node::Node,
    topics::Snapshot,
};

/// The first version of Fetch that has topic ids.
const BY_ID: i16 = 13;

/// How much one response takes of the memory for responses at most, as a part of all of it.
const BUDGET_SHARE: usize = 16;

/// The least that a response is given when memory is short.
const BYTES_MIN: usize = 1 << 20;

/// How long a fetch waits for memory at least.
const MEMORY_PATIENCE: Duration = Duration::from_secs(2);

/// A peer that has read nothing for so long may lose its connection when memory is short.
const DEAF_AFTER: Duration = Duration::from_secs(1);

/// How long a consumer that waits for more than a byte is left asleep after a wake-up, so that it
/// does not look at each single append.
const NAP: Duration = Duration::from_millis(5);

pub(super) async fn handle(call: Call, request: FetchRequest) -> Outcome<FetchResponse> {
    let node = &call.node;
    let by_id = call.version() >= BY_ID;
    let forgotten = forgotten(&request, by_id);
    let asked = wanted(&request, by_id);
    let begun = node.fetch_sessions.begin(
        request.session_id,
        request.session_epoch,
        by_id,
        asked,
        &forgotten,
    );
    let (context, wanted) = match begun {
        Ok(begun) => begun,
        Err(error_code) => {
            return FetchResponse {
                error_code,
                ..FetchResponse::default()
            }
            .into();
        }
    };
    let (batches, reserved) = Waiting {
        node,
        wanted: &wanted,
        bytes_min: request.min_bytes.max(0) as usize,
        bytes_max: request.max_bytes.clamp(0, node.fixed.fetch_max_bytes) as usize,
        until: Instant::now() + Duration::from_millis(request.max_wait_ms.max(0) as u64),
    }
    .read()
    .await;
    let in_response = node.fetch_sessions.finish(context, &wanted, &batches);
    let response = respond(
        context,
        wanted,
        batches,
        &in_response,
        request.isolation_level,
    );
    Outcome::Hold(response, reserved)
}

fn key(name: &str, id: kohort_wire::Uuid, by_id: bool) -> TopicKey {
    if by_id {
        TopicKey::Id(id)
    } else {
        TopicKey::Name(name.into())
    }
}

fn wanted(request: &FetchRequest, by_id: bool) -> Vec<Wanted> {
    let mut wanted = Vec::new();
    for topic in &request.topics {
        let key = key(&topic.topic, topic.topic_id, by_id);
        wanted.extend(topic.partitions.iter().map(|partition| Wanted {
            topic: key.clone(),
            partition: partition.partition,
            offset: partition.fetch_offset,
            bytes_max: partition.partition_max_bytes,
            current_leader_epoch: partition.current_leader_epoch,
            last_fetched_epoch: partition.last_fetched_epoch,
        }));
    }
    wanted
}

fn forgotten(request: &FetchRequest, by_id: bool) -> Vec<(TopicKey, i32)> {
    let topics = request.forgotten_topics_data.iter();
    topics
        .flat_map(|topic| {
            let key = key(&topic.topic, topic.topic_id, by_id);
            let partitions = topic.partitions.iter();
            partitions.map(move |&partition| (key.clone(), partition))
        })
        .collect()
}

/// A consumer that waits for records.
struct Waiting<'a> {
    node: &'a Arc<Node>,
    wanted: &'a [Wanted],
    bytes_min: usize,
    bytes_max: usize,
    until: Instant,
}

impl Waiting<'_> {
    /// Reads what there is, when there is enough of it, or the time is up.
    async fn read(&self) -> (Vec<Batches>, Reserved) {
        let enough = self.enough();
        loop {
            let (batches, reserved) = self.read_now().await;
            let bytes: usize = batches.iter().map(|batches| batches.records.len()).sum();
            if bytes >= enough
                || batches.iter().any(Batches::is_urgent)
                || self.wanted.is_empty()
                || self.is_over()
            {
                return (batches, reserved);
            }
            let backlog = Backlog::new(&self.node.snapshot(), self.wanted, &batches);
            // There is enough, but whole batches of it do not fill the response.
            if backlog.bytes_when_read() >= enough as u64 {
                return (batches, reserved);
            }
            // What waits holds no records.
            drop((batches, reserved));
            self.wait(&backlog, enough as u64).await;
        }
    }

    /// How many bytes are worth a response: what the consumer waits for, or, if that is more than a
    /// response ever carries, as much as one carries.
    fn enough(&self) -> usize {
        let wanted = self.wanted.iter();
        let bytes_max = wanted.map(|wanted| wanted.bytes_max.max(0) as usize);
        let bytes_max = bytes_max.fold(0, usize::saturating_add);
        let bytes_max = bytes_max.min(self.bytes_max).min(self.share());
        // One batch comes however little the consumer takes.
        self.bytes_min.min(bytes_max.max(1))
    }

    fn is_over(&self) -> bool {
        self.node.stopping.is_cancelled() || Instant::now() >= self.until
    }

    /// Waits until there is enough, or something to tell.
    async fn wait(&self, backlog: &Backlog, enough: u64) {
        let notify = Arc::new(Notify::new());
        loop {
            // First asked, then looked: nothing comes between unnoticed.
            backlog.wake(&notify);
            if backlog.bytes().is_none_or(|bytes| bytes >= enough) || self.is_over() {
                return;
            }
            tokio::select! {
                () = notify.notified() => {}
                () = tokio::time::sleep_until(self.until) => {}
                () = self.node.stopping.cancelled() => {}
            }
            if enough > 1 {
                tokio::time::sleep_until(self.until.min(Instant::now() + NAP)).await;
            }
        }
    }

    /// Waits for memory. When it takes long, a peer that holds much of it and does not read what it
    /// has asked for has to go.
    async fn take(&self, bytes: usize) -> Reserved {
        loop {
            tokio::select! {
                reserved = self.node.response_bytes.take(bytes) => return reserved,
                () = tokio::time::sleep(DEAF_AFTER / 4) => {
                    self.node.response_holders.dismiss_largest(DEAF_AFTER);
                }
            }
        }
    }

    /// How many bytes there may be at most, and whether they are all in memory.
    fn look(&self, snapshot: &Snapshot) -> (usize, bool) {
        let mut bytes = 0;
        let mut is_cached = true;
        for wanted in self.wanted {
            let log = wanted
                .find(snapshot)
                .ok()
                .and_then(|partition| partition.opened());
            match log {
                Some(log) if log.end_offset() <= wanted.offset => {}
                Some(log) => {
                    bytes += wanted.bytes_max.max(0) as usize;
                    is_cached &= log.is_cached(wanted.offset);
                }
                // Not opened yet, or there will be an error.
                None => {
                    bytes += wanted.bytes_max.max(0) as usize;
                    is_cached = false;
                }
            }
        }
        (bytes, is_cached)
    }

    /// The most that one response takes of the memory for all.
    fn share(&self) -> usize {
        (self.node.fixed.queued_response_bytes_max / BUDGET_SHARE).max(BYTES_MIN)
    }

    /// Reads what there is now, as far as there is memory for it.
    async fn read_now(&self) -> (Vec<Batches>, Reserved) {
        let snapshot = self.node.snapshot();
        let (there_may_be, is_cached) = self.look(&snapshot);
        let budget = &self.node.response_bytes;
        let mut bytes_max = self.bytes_max.min(there_may_be).min(self.share());
        let mut reserved = match budget.try_take(bytes_max.max(there_may_be.min(1))) {
            Some(reserved) => reserved,
            None => {
                bytes_max = bytes_max.min(BYTES_MIN);
                let patience = self.until.max(Instant::now() + MEMORY_PATIENCE);
                let waited = tokio::time::timeout_at(patience, self.take(bytes_max)).await;
                waited.unwrap_or_else(|_| {
                    bytes_max = 0;
                    Reserved::default()
                })
            }
        };
        // Without memory not even one batch: the consumer asks again.
        let at_least_one = reserved.bytes() > 0 || there_may_be == 0;
        let limits = Limits {
            bytes_max,
            at_least_one,
        };
        let log_limit = &self.node.log_limits.reads;
        let read = || read(&snapshot, self.wanted, limits, log_limit);
        let batches = if is_cached {
            read()
        } else {
            crate::heavy(read)
        };
        reserved.shrink(batches.iter().map(|batches| batches.records.len()).sum());
        (batches, reserved)
    }
}

fn respond(
    context: Context,
    wanted: Vec<Wanted>,
    batches: Vec<Batches>,
    in_response: &[bool],
    isolation_level: i8,
) -> FetchResponse {
    let mut responses: Vec<FetchableTopicResponse> = Vec::new();
    let mut topic_before: Option<TopicKey> = None;
    for ((wanted, batches), is_in) in wanted.into_iter().zip(batches).zip(in_response) {
        if !is_in {
            continue;
        }
        let data = partition_data(wanted.partition, batches, isolation_level);
        match responses.last_mut() {
            Some(topic) if topic_before.as_ref() == Some(&wanted.topic) => {
                topic.partitions.push(data)
            }
            _ => {
                let mut topic = FetchableTopicResponse {
                    partitions: vec![data],
                    ..FetchableTopicResponse::default()
                };
                match &wanted.topic {
                    TopicKey::Name(name) => topic.topic = (&**name).into(),
                    TopicKey::Id(id) => topic.topic_id = *id,
                }
                responses.push(topic);
                topic_before = Some(wanted.topic);
            }
        }
    }
    FetchResponse {
        error_code: ErrorCode::NONE,
        session_id: context.id(),
        responses,
        ..FetchResponse::default()
    }
}

fn partition_data(
    partition_index: i32,
    batches: Batches,
    isolation_level: i8,
) -> FetchPartitionData {
    let mut data = FetchPartitionData {
        partition_index,
        error_code: batches.error,
        high_watermark: batches.high_watermark,
        // There are no transactions, so everything is stable.
        last_stable_offset: batches.high_watermark,
        log_start_offset: batches.start_offset,
        aborted_transactions: (isolation_level == 1).then(Vec::new),
        records: Some(batches.records),
        ..FetchPartitionData::default()
    };
    if let Some((epoch, end_offset)) = batches.diverging {
        data.diverging_epoch = EpochEndOffset { epoch, end_offset };
    }
    data
}
