//! The broker's settings as the code reads them.

use std::time::Duration;

use super::{BROKER, Values, View, words::Protocol};

/// The settings that hold from start to stop.
#[derive(Debug, Clone)]
pub(crate) struct Fixed {
    pub(crate) node_id: i32,
    pub(crate) rack: Option<String>,
    pub(crate) connections_max_idle: Duration,
    pub(crate) request_max_bytes: usize,
    pub(crate) control_request_max_bytes: usize,
    pub(crate) queued_request_bytes_max: usize,
    pub(crate) queued_response_bytes_max: usize,
    pub(crate) connection_requests_max: usize,
    pub(crate) stall_timeout: Duration,
    pub(crate) connection_min_bytes_per_second: u32,
    pub(crate) auto_create_topics: bool,
    pub(crate) num_partitions: i32,
    pub(crate) delete_topic_enable: bool,
    pub(crate) partitions_max: usize,
    pub(crate) retention_check_interval: Duration,
    pub(crate) cleaner_backoff: Duration,
    pub(crate) fetch_max_bytes: i32,
    pub(crate) fetch_sessions_max: usize,
    pub(crate) consumer_protocol: bool,
    pub(crate) offsets_partitions: i32,
    pub(crate) offsets_segment_bytes: i32,
    pub(crate) events_retention_ms: i64,
    pub(crate) listen_backlog: u32,
}

impl Fixed {
    pub(crate) fn new(values: &Values) -> Fixed {
        let view = View {
            table: BROKER,
            values,
        };
        let millis = |name| Duration::from_millis(view.long(name).max(0) as u64);
        let protocols = view.words::<Protocol>("group.coordinator.rebalance.protocols");
        Fixed {
            node_id: view.int("node.id"),
            rack: view.text("broker.rack").map(str::to_owned),
            connections_max_idle: millis("connections.max.idle.ms"),
            // What can never be held cannot be received.
            request_max_bytes: view
                .size("socket.request.max.bytes")
                .min(view.size("queued.max.request.bytes")),
            control_request_max_bytes: view.size("kohort.control.request.max.bytes"),
            queued_request_bytes_max: view.size("queued.max.request.bytes"),
            queued_response_bytes_max: view.size("kohort.queued.max.response.bytes"),
            connection_requests_max: view.size("kohort.connection.max.requests"),
            stall_timeout: millis("kohort.connection.stall.timeout.ms"),
            connection_min_bytes_per_second: view.int("kohort.connection.min.bytes.per.second")
                as u32,
            auto_create_topics: view.flag("auto.create.topics.enable"),
            num_partitions: view.int("num.partitions"),
            delete_topic_enable: view.flag("delete.topic.enable"),
            partitions_max: view.size("kohort.max.partitions"),
            retention_check_interval: millis("log.retention.check.interval.ms"),
            cleaner_backoff: millis("log.cleaner.backoff.ms"),
            fetch_max_bytes: view.int("fetch.max.bytes"),
            fetch_sessions_max: view.size("max.incremental.fetch.session.cache.slots"),
            consumer_protocol: protocols.contains(&Protocol::Consumer),
            offsets_partitions: view.int("offsets.topic.num.partitions"),
            events_retention_ms: view.long("kohort.group.events.retention.ms"),
            offsets_segment_bytes: view.int("offsets.topic.segment.bytes"),
            listen_backlog: view.int("socket.listen.backlog.size") as u32,
        }
    }
}

/// The settings that may change while the broker runs.
#[derive(Debug, Clone)]
pub(crate) struct Live {
    pub(crate) connections_max: usize,
    pub(crate) connections_per_ip_max: usize,
    pub(crate) heartbeats_per_second: u32,
    pub(crate) keeps_group_events: bool,
}

impl Live {
    pub(crate) fn new(values: &Values) -> Live {
        let view = View {
            table: BROKER,
            values,
        };
        Live {
            connections_max: view.size("max.connections"),
            connections_per_ip_max: view.size("max.connections.per.ip"),
            heartbeats_per_second: view.int("kohort.group.consumer.heartbeats.per.second") as u32,
            keeps_group_events: view.flag("kohort.group.events.enable"),
        }
    }
}
