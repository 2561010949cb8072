//! A member of the group.

use std::{sync::Arc, time::Duration};

use kohort::{
    ClientConfig, Consumer, ConsumerConfig,
    consumer::{GroupProtocol, OffsetReset, Rebalance, RebalanceHandler},
};
use tokio::{runtime::Runtime, sync::oneshot, task::JoinHandle};

use super::{GROUP, TOPIC, ledger::Ledger};
use crate::failure::Failure;

/// A member of the group, on a runtime of its own.
pub(super) struct Member {
    name: &'static str,
    runtime: OwnRuntime,
    stop: oneshot::Sender<()>,
    work: JoinHandle<kohort::Result<()>>,
}

/// A runtime that ends when it is dropped, wherever that is: tokio's own must not be dropped by a
/// task, as it is when the demo is interrupted.
struct OwnRuntime(Option<Runtime>);

impl Drop for OwnRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl Member {
    pub(super) fn start(
        name: &'static str,
        address: &str,
        ledger: Arc<Ledger>,
    ) -> Result<Member, Failure> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(|error| Failure::new(format!("cannot start a thread: {error}")))?;
        let config = ConsumerConfig {
            client: ClientConfig {
                client_id: name.to_owned(),
                ..ClientConfig::new(address)
            },
            group_protocol: GroupProtocol::Consumer,
            offset_reset: OffsetReset::Earliest,
            auto_commit_interval: Duration::from_secs(1),
            ..ConsumerConfig::default().group(GROUP)
        };
        let (stop, stopped) = oneshot::channel();
        let work = runtime.spawn(async move {
            let done = work(name, config, &ledger, stopped).await;
            if let Err(error) = &done {
                ledger.fail(format!("{name} failed: {error}"));
            }
            done
        });
        Ok(Member {
            name,
            runtime: OwnRuntime(Some(runtime)),
            stop,
            work,
        })
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// Takes it out of the world: it commits nothing more and does not leave the group.
    pub(super) fn kill(self) {
        drop(self.runtime);
    }

    /// Has it commit, leave the group and end.
    pub(super) async fn stop(self) -> Result<(), Failure> {
        let _ = self.stop.send(());
        let done = self.work.await;
        drop(self.runtime);
        match done {
            Ok(done) => Ok(done?),
            Err(error) => Err(Failure::new(format!("{} ended badly: {error}", self.name))),
        }
    }
}

async fn work(
    name: &'static str,
    config: ConsumerConfig,
    ledger: &Arc<Ledger>,
    mut stopped: oneshot::Receiver<()>,
) -> kohort::Result<()> {
    let mut consumer = Consumer::connect(config).await?;
    consumer.set_rebalance_handler(Notes {
        name,
        ledger: ledger.clone(),
    })?;
    consumer.subscribe([TOPIC])?;
    loop {
        let records = tokio::select! {
            records = consumer.poll() => records?,
            _ = &mut stopped => break,
        };
        for record in &records {
            ledger.processed(name, record.partition, record.offset, record.value);
        }
    }
    // What was received is processed.
    consumer.finish();
    consumer.close().await
}

/// Notes who owns what.
struct Notes {
    name: &'static str,
    ledger: Arc<Ledger>,
}

impl Notes {
    fn numbers(rebalance: &Rebalance) -> Vec<i32> {
        rebalance
            .partitions()
            .iter()
            .map(|partition| partition.partition)
            .collect()
    }
}

impl RebalanceHandler for Notes {
    async fn assigned(&self, rebalance: &Rebalance) {
        self.ledger.assigned(self.name, &Notes::numbers(rebalance));
    }

    async fn revoked(&self, rebalance: &Rebalance) {
        self.ledger
            .released(self.name, &Notes::numbers(rebalance), "releases");
    }

    async fn lost(&self, rebalance: &Rebalance) {
        self.ledger
            .released(self.name, &Notes::numbers(rebalance), "has lost");
    }
}
