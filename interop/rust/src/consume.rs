//! A member of a group that commits after every poll.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use clap::Args;
use kohort::consumer::{Rebalance, RebalanceHandler, Records};
use kohort::{CommittedOffset, Consumer, ConsumerConfig, Properties, Result, TopicPartition};
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::sleep;

use crate::At;
use crate::event::emit;

/// How long a poll waits: as long as a commit that failed waits to be repeated.
const POLL: Duration = Duration::from_millis(100);
/// How long to take for leaving.
const CLOSE: Duration = Duration::from_secs(10);

#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    at: At,
    #[arg(long)]
    group: String,
    #[arg(long, default_value = "classic")]
    protocol: String,
    #[arg(long)]
    instance_id: Option<String>,
    #[arg(long)]
    assignor: Option<String>,
    #[arg(long, default_value = "earliest")]
    reset: String,
}

impl Options {
    fn properties(&self) -> Properties {
        let classic = self.protocol == "classic";
        let mut properties = self
            .at
            .properties()
            .with("group.id", &self.group)
            .with("group.protocol", &self.protocol)
            .with("auto.offset.reset", &self.reset)
            .with("enable.auto.commit", "false")
            .with("max.poll.records", "100")
            // How long a commit is tried before it counts as failed.
            .with("default.api.timeout.ms", "5000");
        if classic {
            properties = properties
                .with("session.timeout.ms", "6000")
                .with("heartbeat.interval.ms", "1000");
        }
        if self.reset == "latest" {
            // How soon it notices new partitions by itself.
            properties = properties.with("metadata.max.age.ms", "3000");
        }
        if let Some(id) = &self.instance_id {
            properties = properties.with("group.instance.id", id);
        }
        if let Some(assignor) = &self.assignor {
            let setting = if classic {
                "partition.assignment.strategy"
            } else {
                "group.remote.assignor"
            };
            properties = properties.with(setting, assignor);
        }
        properties
    }
}

pub(crate) async fn consume(
    options: Options,
) -> std::result::Result<(), Box<dyn std::error::Error>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut consumer =
        Consumer::connect(ConsumerConfig::from_properties(&options.properties())?).await?;
    let progress = Arc::new(Progress::default());
    consumer.set_rebalance_handler(Says(progress.clone()))?;
    consumer.subscribe([options.at.topic.as_str()])?;
    loop {
        tokio::select! {
            polled = consumer.poll_for(POLL) => match polled {
                Ok(records) => progress.take(&records)?,
                Err(error) => {
                    eprintln!("poll: {error}");
                    sleep(POLL).await;
                }
            },
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
        }
        let offsets = progress.pending();
        if !offsets.is_empty() {
            progress.ended(&offsets, consumer.commit_offsets(&offsets).await);
        }
    }
    consumer.close_within(CLOSE).await?;
    emit(&json!({"event": "closed"}));
    Ok(())
}

/// What was given to the application and is not committed: the next offset by partition.
#[derive(Default)]
struct Progress(Mutex<BTreeMap<TopicPartition, i64>>);

type Offsets = Vec<(TopicPartition, CommittedOffset)>;

impl Progress {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<TopicPartition, i64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prints records.
    fn take(&self, records: &Records) -> io::Result<()> {
        let mut given = Vec::new();
        let mut pending = self.lock();
        for record in records {
            let number = number_in(record.value.unwrap_or_default())?;
            given.push(json!([record.partition, record.offset, number]));
            let name = TopicPartition::new(record.topic.clone(), record.partition);
            pending.insert(name, record.offset + 1);
        }
        if !given.is_empty() {
            emit(&json!({"event": "records", "records": given}));
        }
        Ok(())
    }

    fn pending(&self) -> Offsets {
        let pending = self.lock();
        let offsets = pending.iter();
        offsets
            .map(|(name, &next)| (name.clone(), CommittedOffset::new(next)))
            .collect()
    }

    /// Prints how a commit ended; what was committed is not pending any more.
    fn ended(&self, offsets: &Offsets, result: Result<()>) {
        let pairs: Vec<_> = offsets
            .iter()
            .map(|(name, next)| json!([name.partition, next.offset]))
            .collect();
        match result {
            Ok(()) => {
                emit(&json!({"event": "committed", "offsets": pairs}));
                let mut pending = self.lock();
                pending.retain(|name, next| {
                    let done = offsets.iter().find(|(committed, _)| committed == name);
                    done.is_none_or(|(_, done)| done.offset < *next)
                });
            }
            Err(error) => emit(&json!({
                "event": "commit_failed",
                "offsets": pairs,
                "error": error.to_string(),
            })),
        }
    }

    /// Prints that partitions are gone, and with them what was not committed.
    fn gone(&self, event: &str, partitions: &[TopicPartition]) {
        let mut pending = self.lock();
        for name in partitions {
            pending.remove(name);
        }
        says(event, partitions);
    }
}

fn number_in(value: &[u8]) -> io::Result<u64> {
    let number = str::from_utf8(value).ok();
    let number = number.and_then(|text| text.trim_end().parse().ok());
    number.ok_or_else(|| io::Error::other(format!("not a value of these tests: {value:?}")))
}

fn says(event: &str, partitions: &[TopicPartition]) {
    let partitions: Vec<_> = partitions.iter().map(|name| name.partition).collect();
    emit(&json!({"event": event, "partitions": partitions}));
}

/// Prints what comes and goes, and commits what a commit has failed for.
struct Says(Arc<Progress>);

impl RebalanceHandler for Says {
    async fn assigned(&self, rebalance: &Rebalance) {
        says("assigned", rebalance.partitions());
    }

    async fn revoked(&self, rebalance: &Rebalance) {
        let mut offsets = self.0.pending();
        offsets.retain(|(name, _)| rebalance.partitions().contains(name));
        if !offsets.is_empty() {
            self.0
                .ended(&offsets, rebalance.commit_offsets(&offsets).await);
        }
        self.0.gone("revoked", rebalance.partitions());
    }

    async fn lost(&self, rebalance: &Rebalance) {
        self.0.gone("lost", rebalance.partitions());
    }
}
