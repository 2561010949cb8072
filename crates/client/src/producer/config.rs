//! How a producer works.

use std::{sync::Arc, time::Duration};

use kohort_wire::records::{Compression, Level};

use super::{DefaultPartitioner, Partitioner};
use crate::{ClientConfig, Error, Result, rpc::check_time};

/// `acks`: when records count as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Acks {
    /// `0`: when they have been sent. Whether they arrive is not known, nor their offsets.
    None,
    /// `1`: when the leader of the partition has them.
    Leader,
    /// `all`: when all replicas in sync have them.
    #[default]
    All,
}

impl Acks {
    pub(super) const fn number(self) -> i16 {
        match self {
            Acks::None => 0,
            Acks::Leader => 1,
            Acks::All => -1,
        }
    }
}

/// How a producer works. What the fields are called in Kafka's configuration is said with each.
#[derive(Debug, Clone)]
pub struct ProducerConfig {
    /// How the cluster is reached.
    pub client: ClientConfig,
    /// `acks`. Default [`Acks::All`].
    pub acks: Acks,
    /// `enable.idempotence`: no record is written twice, nor out of order, however often it has to
    /// be sent. Default on.
    pub idempotence: bool,
    /// `compression.type`. Default none.
    pub compression: Compression,
    /// `compression.gzip.level` and so on. Default: the compression's own.
    pub compression_level: Option<Level>,
    /// `batch.size`: how many bytes of records to one partition go together, before they are
    /// compressed. Default 16 KiB.
    pub batch_bytes: usize,
    /// `linger.ms`: how long a batch that is not full waits for more records. Default 5 ms.
    pub linger: Duration,
    /// `max.request.size`: the longest record, and about the longest request, in bytes. Default
    /// 1 MiB.
    pub request_bytes_max: usize,
    /// `buffer.memory`: how many bytes of records may wait to be written; then sending waits.
    /// Default 32 MiB.
    pub buffer_bytes_max: usize,
    /// `max.block.ms`: how long sending may wait for memory, or for news of the topic. Default 60 s.
    pub block_max: Duration,
    /// `delivery.timeout.ms`: how long a record may take until it is written, with all attempts.
    /// After that it is an error; an attempt that is under way by then may write it nevertheless.
    /// Default 120 s.
    pub delivery_timeout: Duration,
    /// `max.in.flight.requests.per.connection`: how many requests to one broker may be under way.
    /// Default 5, which is also the most for an idempotent producer. Without idempotence no
    /// partition has more than one batch under way, so that order is kept.
    pub in_flight_max: usize,
    /// `partitioner.class`, or librdkafka's `partitioner`: chooses the partition of records that name
    /// none. Default [`DefaultPartitioner`], which is Java's; librdkafka's default is
    /// [`Crc32Partitioner`](super::Crc32Partitioner).
    pub partitioner: Arc<dyn Partitioner>,
}

impl Default for ProducerConfig {
    fn default() -> ProducerConfig {
        ProducerConfig {
            client: ClientConfig::default(),
            acks: Acks::All,
            idempotence: true,
            compression: Compression::None,
            compression_level: None,
            batch_bytes: 16 << 10,
            linger: Duration::from_millis(5),
            request_bytes_max: 1 << 20,
            buffer_bytes_max: 32 << 20,
            block_max: Duration::from_secs(60),
            delivery_timeout: Duration::from_secs(120),
            in_flight_max: 5,
            partitioner: Arc::new(DefaultPartitioner),
        }
    }
}

impl ProducerConfig {
    /// The defaults, and these servers (`host:port`, several separated by commas).
    pub fn new(bootstrap_servers: &str) -> ProducerConfig {
        ProducerConfig {
            client: ClientConfig::new(bootstrap_servers),
            ..ProducerConfig::default()
        }
    }

    /// How the cluster is reached: unlike other clients, a producer creates missing topics unless
    /// told not to.
    pub(super) fn cluster_config(&self) -> ClientConfig {
        let mut config = self.client.clone();
        config.allow_auto_create_topics.get_or_insert(true);
        config
    }

    /// An error if settings contradict each other or cannot be meant.
    pub fn validate(&self) -> Result<()> {
        self.client.validate()?;
        let refuse = |setting: &str, problem: &str| Err(Error::config(setting, problem));
        check_time("max.block.ms", self.block_max)?;
        check_time("delivery.timeout.ms", self.delivery_timeout)?;
        check_time("linger.ms", self.linger)?;
        if self.idempotence && self.acks != Acks::All {
            return refuse("enable.idempotence", "needs acks=all");
        }
        if self.in_flight_max == 0 || self.idempotence && self.in_flight_max > 5 {
            let problem = "must be from 1 to 5 for an idempotent producer, and not 0 for another";
            return refuse("max.in.flight.requests.per.connection", problem);
        }
        if self.delivery_timeout < self.linger + self.client.request_timeout {
            let problem = "must not be less than linger.ms and request.timeout.ms together";
            return refuse("delivery.timeout.ms", problem);
        }
        if self.buffer_bytes_max < self.batch_bytes {
            return refuse("buffer.memory", "must not be less than batch.size");
        }
        if let Some(level) = self.compression_level {
            let name = format!("compression.{}.level", self.compression.name());
            match self.compression.levels() {
                Some((range, _)) if range.contains(&level) => {}
                Some((range, _)) => {
                    let problem = format!("must be from {} to {}", range.start(), range.end());
                    return refuse(&name, &problem);
                }
                None => return refuse(&name, "there are no levels"),
            }
        }
        Ok(())
    }
}
