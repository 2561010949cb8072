//! An embeddable Kafka broker: any client, in any language, can produce, consume and join groups.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let broker = kohort_broker::Broker::builder().start().await?;
//! println!("bootstrap.servers={}", broker.address());
//! broker.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Limits
//!
//! The cost of each peer is limited. A peer that exceeds a limit loses its connection. Each limit is a
//! setting, changed with [`Builder::set`].
//!
//! | what | setting | default |
//! |---|---|---|
//! | connections | `max.connections` | 50,000, at most three quarters of the open-file limit; the oldest silent one makes room |
//! | connections of one address | `max.connections.per.ip` | no limit |
//! | length of a request | `socket.request.max.bytes` | 100 MiB |
//! | length of a request other than Produce | `kohort.control.request.max.bytes` | 8 MiB |
//! | memory for all requests | `queued.max.request.bytes` | 256 MiB; the largest unfinished one makes room |
//! | memory for all responses with records | `kohort.queued.max.response.bytes` | 256 MiB; the largest unread one makes room |
//! | concurrent requests of one connection, waiting ones included | `kohort.connection.max.requests` | 32 |
//! | an incomplete request, or an unread response | `kohort.connection.stall.timeout.ms` | 30 s |
//! | a request that is sent, or a response that is read, slowly | `kohort.connection.min.bytes.per.second` | 4,096 bytes a second |
//! | an idle connection | `connections.max.idle.ms` | 10 min |
//! | records in one response | `fetch.max.bytes` | 55 MiB, and a 16th of the memory for responses |
//! | fetch sessions | `max.incremental.fetch.session.cache.slots` | 1,000 |
//! | partitions | `kohort.max.partitions` | 200,000 |
//! | a batch, as it is stored | `message.max.bytes` | 1 MiB |
//! | members of a group | `group.max.size`, `group.consumer.max.size` | no limit |
//! | metadata of a member | `kohort.group.member.metadata.max.bytes` | 1 MiB |
//! | topics that a member names | `kohort.group.member.topics.max` | 20,000 |
//! | assignment of a member of a classic group | `kohort.group.member.assignment.max.bytes` | 4 MiB |
//! | different topics that the members of a consumer group name | `kohort.group.topics.max` | 50,000 |
//! | metadata of a group, with the assignments of a classic one | `kohort.group.metadata.max.bytes` | 64 MiB |
//! | metadata of a committed offset | `offset.metadata.max.bytes` | 4,096 bytes |
//!
//! A buffer grows with what has arrived, not with what a peer announces.
//!
//! Inside, connections (`net`) hand requests to the APIs (`api`), which look at topics (`topics`)
//! and their logs, and ask the coordinator's shards (`groups`).

mod api;
mod broker;
mod builder;
mod clock;
mod data_folder;
mod endpoints;
mod fetching;
mod file_budget;
mod groups;
#[cfg(test)]
mod lines;
mod log_limits;
mod logs;
mod maintenance;
mod net;
mod node;
mod pauses;
mod settings;
mod stopped;
mod topics;

pub use broker::Broker;
pub use builder::{Builder, StartError};
pub use kohort_log::{
    Checked, Damage, LogError, Repaired, check as check_log, repair as repair_log,
};
pub use stopped::{StoppedBroker, StoppedPartition};

/// A random id that is none of Kafka's reserved ones, which a text would begin with a dash.
fn random_uuid() -> kohort_wire::Uuid {
    loop {
        let mut bytes = [0; 16];
        random_bytes(&mut bytes);
        // Version 4, variant 1, as Java's UUIDs.
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        let id = kohort_wire::Uuid::from_bytes(bytes);
        if !id.to_string().starts_with('-') {
            return id;
        }
    }
}

/// Unpredictable bytes.
///
/// # Panics
///
/// If the operating system has no randomness to give, as the standard library does.
fn random_bytes(bytes: &mut [u8]) {
    getrandom::fill(bytes).expect("the operating system gives random bytes");
}

/// Does something that takes a processor or a disk for a while, in its place among what comes before
/// and after it. On a runtime with several threads the others take over what else this thread had
/// to do.
fn heavy<T>(work: impl FnOnce() -> T) -> T {
    match tokio::runtime::Handle::current().runtime_flavor() {
        tokio::runtime::RuntimeFlavor::MultiThread => tokio::task::block_in_place(work),
        _ => work(),
    }
}

/// The epoch of the one leader that every partition has, and never changes.
const LEADER_EPOCH: i32 = 0;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
