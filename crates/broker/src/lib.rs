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
//! Inside, connections (`net`) hand requests to the APIs (`api`), which look at topics (`topics`)
//! and their logs, and ask the coordinator's shards (`groups`).

mod api;
mod broker;
mod builder;
mod clock;
mod complaints;
mod fetching;
mod groups;
mod logs;
mod maintenance;
mod net;
mod node;
mod settings;
mod topics;

pub use broker::Broker;
pub use builder::{Builder, StartError};

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

/// Bytes that nobody can guess.
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
