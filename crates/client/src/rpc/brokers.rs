//! The connections to the brokers of a cluster.
//!
//! What is temporary and what is final is decided here, once: until a first connection has been
//! opened, a refusal (a wrong password, a certificate, a peer that doesn't speak Kafka) is
//! returned as it is, and ends what is being attempted. From then on the settings are known to
//! work: every failure to connect is one that may pass, and is tried again with backoff.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use parking_lot::{Mutex, RwLock};
use rustc_hash::FxHashMap;
use tokio::time::{Instant, sleep_until};

use super::{ClientConfig, Connection};
use crate::{Error, Result};

/// Which of the connections to a broker. Brokers answer the requests of one connection in order, so
/// what may have to wait for its answer goes over one of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Lane {
    /// For everything that is answered at once.
    Main,
    /// For Produce, which may wait for replicas.
    Produce,
    /// For Fetch, which waits for records.
    Fetch,
    /// For a member's heartbeats and commits.
    Group,
    /// For JoinGroup and SyncGroup, which wait for the other members.
    Join,
    /// For a rewind of a group, which waits for its members.
    Rewind,
}

/// The connections, by broker and lane; each is opened when it is needed.
#[derive(Debug, Default)]
pub(super) struct Brokers {
    slots: Mutex<FxHashMap<(i32, Lane), Arc<Slot>>>,
    /// Set once a connection has been opened.
    has_worked: AtomicBool,
}

#[derive(Debug, Default)]
struct Slot {
    open: RwLock<Option<Connection>>,
    opening: tokio::sync::Mutex<Failures>,
    /// Until when no attempt is made.
    retry_at: Mutex<Option<Instant>>,
}

#[derive(Debug, Default)]
struct Failures(u32);

impl Slot {
    fn open(&self) -> Option<Connection> {
        self.open
            .read()
            .clone()
            .filter(|connection| !connection.is_closed() && !connection.is_expiring())
    }
}

impl Brokers {
    fn slot(&self, broker: i32, lane: Lane) -> Arc<Slot> {
        self.slots.lock().entry((broker, lane)).or_default().clone()
    }

    /// The open connection, if there is one.
    pub(super) fn connected(&self, broker: i32, lane: Lane) -> Option<Connection> {
        self.slots
            .lock()
            .get(&(broker, lane))
            .and_then(|slot| slot.open())
    }

    /// When a connection may be attempted, if not now.
    pub(super) fn backing_off(&self, broker: i32, lane: Lane) -> Option<Instant> {
        let retry_at = *self.slots.lock().get(&(broker, lane))?.retry_at.lock();
        retry_at.filter(|retry_at| *retry_at > Instant::now())
    }

    /// The connection to a broker. Opens one if there is none, but not before the backoff of a failed
    /// attempt is over. Concurrent calls wait for the same attempt.
    pub(super) async fn connect(
        &self,
        broker: i32,
        lane: Lane,
        address: &str,
        config: &ClientConfig,
    ) -> Result<Connection> {
        let slot = self.slot(broker, lane);
        let usable = |connection: &Connection| connection.address() == address;
        if let Some(connection) = slot.open().filter(usable) {
            return Ok(connection);
        }
        let mut failures = slot.opening.lock().await;
        if let Some(connection) = slot.open().filter(usable) {
            return Ok(connection);
        }
        let retry_at = *slot.retry_at.lock();
        if let Some(retry_at) = retry_at {
            sleep_until(retry_at).await;
        }
        let opened = Connection::open_again(broker, address, config, failures.0).await;
        crate::measure::connected(&opened);
        match opened {
            Ok(connection) => {
                self.has_worked.store(true, Ordering::Relaxed);
                *failures = Failures(0);
                *slot.retry_at.lock() = None;
                *slot.open.write() = Some(connection.clone());
                Ok(connection)
            }
            Err(error) => {
                failures.0 += 1;
                let backoff = config.reconnect_backoff.after(failures.0);
                *slot.retry_at.lock() = Some(Instant::now() + backoff);
                // Not each time: it may take long.
                if failures.0.is_power_of_two() {
                    tracing::warn!(broker, address, %error, "no connection")
                } else {
                    tracing::debug!(broker, address, %error, "no connection")
                }
                if self.has_worked.load(Ordering::Relaxed) {
                    Err(error.temporary(broker, address))
                } else {
                    Err(error)
                }
            }
        }
    }

    /// Ends all connections.
    pub(super) fn close(&self) {
        for (_, slot) in self.slots.lock().drain() {
            if let Some(connection) = slot.open.write().take() {
                connection.close();
            }
        }
    }
}

/// The id by which a bootstrap server is known until its own is: −1, −2, …
pub(super) fn bootstrap_id(index: usize) -> i32 {
    -1 - index as i32
}

pub(super) fn unknown_broker(broker: i32) -> Error {
    Error::Disconnected {
        broker,
        address: "unknown".to_owned(),
        reason: "the cluster has no such broker at present".to_owned(),
    }
}
