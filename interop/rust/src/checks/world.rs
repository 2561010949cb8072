//! The cluster under the checks, and what most of them need.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kohort::admin::NewTopic;
use kohort::consumer::Seek;
use kohort::rpc::Destination;
use kohort::rpc::messages::{MetadataRequest, MetadataRequestTopic};
use kohort::{
    Admin, ClientConfig, Consumer, ConsumerConfig, ErrorCode, IsolationLevel, OffsetSpec, Producer,
    ProducerConfig, ProducerRecord, Properties, TopicPartition,
};
use tokio::time::{sleep, timeout};

pub(crate) type Checked<T = ()> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// For something that must happen.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);
/// For what waits for nobody, on a machine that has much to do.
pub(crate) const AT_ONCE: Duration = Duration::from_secs(1);
/// For something that must not.
pub(crate) const QUIET: Duration = Duration::from_millis(300);

/// An error unless something holds.
#[macro_export]
macro_rules! ensure {
    ($condition:expr, $($said:tt)+) => {
        if !$condition {
            return Err(format!($($said)+).into());
        }
    };
}

/// An error unless two things are equal.
#[macro_export]
macro_rules! ensure_eq {
    ($left:expr, $right:expr, $($said:tt)+) => {
        match (&$left, &$right) {
            (left, right) => $crate::ensure!(
                left == right,
                "{}: {left:?} is not {right:?}",
                format!($($said)+)
            ),
        }
    };
}

pub(crate) struct World {
    pub(crate) servers: String,
    pub(crate) nodes: usize,
    pub(crate) admin: Admin,
    /// The time of the number 0 in ms: not so long ago that brokers would delete it, nor to come.
    pub(crate) epoch_ms: i64,
}

impl World {
    /// Waits until all nodes of the cluster are there.
    pub(crate) async fn reach(servers: &str, nodes: usize) -> Checked<World> {
        let properties = Properties::default()
            .with("bootstrap.servers", servers)
            // One that sleeps is not to be waited for.
            .with("request.timeout.ms", "5000");
        let admin = Admin::connect(ClientConfig::from_properties(&properties)?).await?;
        let world = World {
            servers: servers.to_owned(),
            nodes,
            admin,
            epoch_ms: now_ms() - 3_600_000,
        };
        until("all nodes in the cluster", async || {
            let cluster = world.admin.describe_cluster().await?;
            let there = cluster.brokers.iter().filter(|broker| !broker.fenced);
            Ok(there.count() == nodes)
        })
        .await?;
        Ok(world)
    }

    /// The settings that every client has.
    pub(crate) fn properties(&self) -> Properties {
        Properties::default().with("bootstrap.servers", &self.servers)
    }

    /// A new topic, replicated as the broker likes it.
    pub(crate) async fn topic(&self, prefix: &str, partitions: i32) -> Checked<String> {
        let name = unique(prefix);
        self.create(&name, partitions).await?;
        Ok(name)
    }

    pub(crate) async fn create(&self, name: &str, partitions: i32) -> Checked {
        let topic = NewTopic::new(name, partitions);
        match self.admin.create_topic(&topic).await {
            // The name is nobody else's: an attempt before this one has created it, and its answer
            // was lost. Controllers that lose their office answer NOT_CONTROLLER to what they have
            // done, and brokers send such a request again themselves.
            Err(error) if error.code() == Some(ErrorCode::TOPIC_ALREADY_EXISTS) => {}
            created => drop(created?),
        }
        // Every broker learns of it a little later, one after the other.
        let named = MetadataRequestTopic {
            name: Some(name.into()),
            ..Default::default()
        };
        let asked = MetadataRequest {
            topics: Some(vec![named]),
            ..Default::default()
        };
        let cluster = self.admin.cluster();
        let ids: Vec<_> = cluster
            .metadata()
            .brokers()
            .map(|broker| broker.id)
            .collect();
        until("every broker knows the new topic", async || {
            for &id in &ids {
                // Sent once: a connection that has just ended is no reason to give up.
                let Ok(known) = cluster.call(&Destination::Broker(id), &asked).await else {
                    return Ok(false);
                };
                let there = known.topics.iter().flat_map(|topic| &topic.partitions);
                if there.filter(|partition| partition.leader_id >= 0).count() != partitions as usize
                {
                    return Ok(false);
                }
            }
            Ok(true)
        })
        .await
    }

    pub(crate) async fn producer(&self, settings: &[(&str, &str)]) -> Checked<Producer> {
        let properties = with(self.properties(), settings);
        Ok(Producer::connect(ProducerConfig::from_properties(&properties)?).await?)
    }

    pub(crate) async fn consumer(&self, settings: &[(&str, &str)]) -> Checked<Consumer> {
        let properties = with(self.properties(), settings);
        Ok(Consumer::connect(ConsumerConfig::from_properties(&properties)?).await?)
    }

    /// Writes numbers as values, each with itself as its key, and one second after the other.
    pub(crate) async fn fill(&self, topic: &str, numbers: std::ops::Range<u64>) -> Checked {
        let producer = self.producer(&[]).await?;
        let mut deliveries = Vec::new();
        for number in numbers {
            let text = number.to_string();
            let record = ProducerRecord::new(topic).key(&text).value(&text);
            let record = record.timestamp(self.epoch_ms + number as i64 * 1000);
            deliveries.push(producer.send(record).await?);
        }
        for delivery in deliveries {
            delivery.await?;
        }
        producer.close().await;
        Ok(())
    }

    /// The end of each partition that has records.
    pub(crate) async fn ends(&self, topic: &str) -> Checked<BTreeMap<i32, i64>> {
        let asked: Vec<_> = self.partitions(topic).await?;
        let asked: Vec<_> = asked
            .into_iter()
            .map(|partition| (partition, OffsetSpec::Latest))
            .collect();
        let listed = self
            .admin
            .list_offsets(&asked, IsolationLevel::ReadUncommitted);
        let mut ends = BTreeMap::new();
        for (partition, listed) in listed.await {
            ends.insert(partition.partition, listed?.offset.unwrap_or(0));
        }
        ends.retain(|_, end| *end > 0);
        Ok(ends)
    }

    pub(crate) async fn partitions(&self, topic: &str) -> Checked<Vec<TopicPartition>> {
        let (_, described) = one(self.admin.describe_topics(&[topic.into()]).await?)?;
        let count = described?.partitions.len() as i32;
        Ok((0..count)
            .map(|partition| TopicPartition::new(topic, partition))
            .collect())
    }

    /// All records of a topic, from the first to what is the end now: partition, offset, value.
    pub(crate) async fn read_all(&self, topic: &str) -> Checked<Vec<(i32, i64, u64)>> {
        let mut consumer = self.consumer(&[]).await?;
        let ends = self.ends(topic).await?;
        let from_start = ends
            .keys()
            .map(|&partition| (TopicPartition::new(topic, partition), Seek::Earliest));
        consumer.assign(from_start)?;
        let mut found = Vec::new();
        let reading = async {
            for (&partition, &end) in &ends {
                let partition = TopicPartition::new(topic, partition);
                while consumer.position(&partition)?.is_none_or(|at| at < end) {
                    for record in &consumer.poll().await? {
                        let number = number(record.value)?;
                        found.push((record.partition, record.offset, number));
                    }
                }
            }
            Checked::Ok(())
        };
        within("reading a topic to its end", LIMIT, reading).await??;
        found.sort_unstable();
        Ok(found)
    }
}

pub(crate) fn with(properties: Properties, settings: &[(&str, &str)]) -> Properties {
    let settings = settings.iter();
    settings.fold(properties, |properties, (name, value)| {
        properties.with(*name, *value)
    })
}

pub(crate) fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| now.as_millis() as i64)
}

/// A name that nothing else has, in this run or another.
pub(crate) fn unique(prefix: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{prefix}-{}-{next}", now_ms() % 1_000_000_000)
}

/// The value of a record of these checks.
pub(crate) fn number(value: Option<&[u8]>) -> Checked<u64> {
    let text = std::str::from_utf8(value.unwrap_or_default())?;
    Ok(text.trim_end().parse()?)
}

/// The only one.
pub(crate) fn one<T>(mut all: Vec<T>) -> Checked<T> {
    match (all.pop(), all.is_empty()) {
        (Some(one), true) => Ok(one),
        _ => Err("there is not one answer".into()),
    }
}

/// An error unless it ends in time.
pub(crate) async fn within<T>(
    what: &str,
    limit: Duration,
    future: impl Future<Output = T>,
) -> Checked<T> {
    let ended = timeout(limit, future).await;
    ended.map_err(|_| format!("{what}: not within {} s", limit.as_secs()).into())
}

/// Asks again and again until something holds.
pub(crate) async fn until(
    what: &str,
    mut condition: impl AsyncFnMut() -> Checked<bool>,
) -> Checked {
    let waiting = async {
        while !condition().await? {
            sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    };
    within(what, LIMIT, waiting).await?
}

/// An error unless this is an error with the code.
pub(crate) fn refused<T: std::fmt::Debug>(
    what: &str,
    result: kohort::Result<T>,
    code: kohort::ErrorCode,
) -> Checked {
    match result {
        Err(error) if error.code() == Some(code) => Ok(()),
        other => Err(format!("{what}: {other:?} is not {code}").into()),
    }
}
