//! The task that sends the reader's requests and hands it the responses.

use std::sync::Arc;

use futures_util::{FutureExt, StreamExt, future::BoxFuture, stream::FuturesUnordered};
use kohort_member::reader::{Leader, ReaderRequest};
use kohort_wire::{codec::Versions, messages::*};
use tokio::time::sleep_until;

use super::{lookups, shared::Shared};
use crate::{
    ByteString, Result, TopicPartition, Uuid,
    rpc::{BrokerMetadata, Cluster, Destination, Lane, Metadata},
};

/// Runs until the consumer is closed.
pub(super) async fn run(shared: Arc<Shared>) {
    let mut in_flight = FuturesUnordered::new();
    loop {
        let metadata = shared.cluster.metadata();
        let plan = shared.lock().reader.plan(&*metadata, shared.now());
        for request in plan.requests {
            in_flight.push(send(shared.clone(), request));
        }
        tokio::select! {
            Some(()) = in_flight.next(), if !in_flight.is_empty() => {}
            () = shared.work.notified() => {}
            () = sleep_until(shared.at(plan.wake_at)) => {}
            () = shared.closed.cancelled() => return,
        }
    }
}

/// Sends a request and hands its outcome to the reader.
fn send(shared: Arc<Shared>, request: ReaderRequest) -> BoxFuture<'static, ()> {
    async move {
        match request {
            ReaderRequest::Fetch {
                broker,
                request,
                by_id,
            } => fetch(&shared, broker, request, by_id).await,
            ReaderRequest::FindCommitted(asked) => lookups::find_committed(&shared, asked).await,
            ReaderRequest::FindOffsets(asked) => lookups::find_offsets(&shared, asked).await,
            ReaderRequest::CheckPositions(leader, checks) => {
                lookups::check_positions(&shared, leader, checks).await;
            }
            ReaderRequest::Refresh(topics) => {
                let found = shared.cluster.refresh_leaders(topics).await;
                let now = shared.now();
                shared.lock().reader.metadata_refreshed(found, now);
            }
        }
        // Wakes polls that wait for records or errors, and calls that wait for a position.
        shared.ready.notify_waiters();
    }
    .boxed()
}

async fn fetch(shared: &Shared, broker: i32, request: FetchRequest, by_id: bool) {
    let response = match fetch_once(&shared.cluster, broker, request, by_id).await {
        Ok(response) => {
            shared.answered();
            note_leaders(&shared.cluster, &response);
            Some(response)
        }
        Err(error) => {
            tracing::debug!(broker, %error, "cannot fetch");
            crate::measure::fetch_failed();
            shared.report_refusal(&error);
            None
        }
    };
    let metadata = shared.cluster.metadata();
    let now = shared.now();
    let group_id = shared.config.group_id.clone().unwrap_or_default();
    let mut state = shared.lock();
    for (name, bytes) in state.reader.fetched(broker, response, &*metadata, now) {
        state.note_fetched(&group_id, name, bytes);
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

/// Takes over what a response says about brokers and leaders (KIP-951).
fn note_leaders(cluster: &Cluster, response: &FetchResponse) {
    for node in &response.node_endpoints {
        cluster.note_broker(BrokerMetadata {
            id: node.node_id,
            host: ByteString::from(&*node.host),
            port: node.port,
            rack: node.rack.as_deref().map(ByteString::from),
        });
    }
    let metadata = cluster.metadata();
    for topic in &response.responses {
        let by_id = metadata.topic_by_id(topic.topic_id);
        let name = by_id.map_or(&topic.topic, |known| &known.name);
        for data in &topic.partitions {
            let leader = &data.current_leader;
            if leader.leader_id >= 0 {
                let name = TopicPartition::new(name.clone(), data.partition_index);
                cluster.note_leader(&name, leader.leader_id, leader.leader_epoch);
            }
        }
    }
}

impl kohort_member::reader::Metadata for Metadata {
    fn topic_id(&self, topic: &str) -> Option<Uuid> {
        self.topic(topic).map(|topic| topic.id)
    }

    fn partition(&self, partition: &TopicPartition) -> Option<Leader> {
        let known = Metadata::partition(self, partition)?;
        Some(Leader {
            leader: known.leader,
            epoch: known.leader_epoch,
        })
    }

    fn has_broker(&self, id: i32) -> bool {
        self.broker(id).is_some()
    }
}
