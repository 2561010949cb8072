//! A producer's settings.

use std::sync::Arc;

use kohort_wire::records::Compression;

use super::{
    Properties,
    names::Resolved,
    value::{choice, flag, ms, number},
};
use crate::{
    Error, ProducerConfig, Result,
    producer::{Acks, Crc32Partitioner, DefaultPartitioner, StickyPartitioner},
};

impl ProducerConfig {
    /// Reads settings under Kafka's names, over the defaults. See [`Properties`].
    pub fn from_properties(properties: &Properties) -> Result<ProducerConfig> {
        let mut config = ProducerConfig::default();
        config.apply(properties)?;
        config.validate()?;
        Ok(config)
    }

    /// Sets what `properties` contains, and leaves the rest as it is.
    pub(crate) fn apply(&mut self, properties: &Properties) -> Result<()> {
        let resolved = Resolved::new(properties)?;
        // Levels are those of a compression, which therefore comes first.
        if let Some(value) = resolved.properties.get("compression.type") {
            self.set("compression.type", value)
                .map_err(|error| resolved.named_as_given(error))?;
        }
        resolved.apply("producer", |name, value| {
            Ok(self.set(name, value)? || self.client.set(name, value)?)
        })?;
        let is_set = |name: &str| resolved.properties.get(name).is_some();
        // As in Kafka, weaker acks turn idempotence off unless it is asked for.
        if is_set("acks") && !is_set("enable.idempotence") && self.acks != Acks::All {
            self.idempotence = false;
        }
        self.client.secure(&resolved)
    }

    pub(super) fn set(&mut self, name: &str, value: &str) -> Result<bool> {
        match name {
            "acks" => {
                let choices = [
                    ("0", Acks::None),
                    ("1", Acks::Leader),
                    ("all", Acks::All),
                    ("-1", Acks::All),
                ];
                self.acks = choice(name, value, &choices)?;
            }
            "enable.idempotence" => self.idempotence = flag(name, value)?,
            "compression.type" => {
                let choices = Compression::ALL.map(|compression| (compression.name(), compression));
                self.compression = choice(name, value, &choices)?;
            }
            "compression.gzip.level" | "compression.lz4.level" | "compression.zstd.level" => {
                let level = number(name, value)?;
                let compression = name.split('.').nth(1).and_then(Compression::from_name);
                let wanted = compression.and_then(Compression::levels);
                if let Some((range, _)) = wanted.filter(|(range, _)| !range.contains(&level)) {
                    let problem = format!("must be from {} to {}", range.start(), range.end());
                    return Err(Error::config(name, problem));
                }
                if compression == Some(self.compression) {
                    self.compression_level = Some(level);
                }
            }
            "batch.size" => self.batch_bytes = number(name, value)?,
            "linger.ms" => self.linger = ms(name, value)?,
            "max.request.size" => self.request_bytes_max = number(name, value)?,
            "buffer.memory" => self.buffer_bytes_max = number(name, value)?,
            "max.block.ms" => self.block_max = ms(name, value)?,
            "delivery.timeout.ms" => self.delivery_timeout = ms(name, value)?,
            "max.in.flight.requests.per.connection" => self.in_flight_max = number(name, value)?,
            // librdkafka's level of whichever compression is used; −1 is its default.
            "compression.level" => {
                let level = number(name, value)?;
                let has_levels = level != -1 && self.compression.levels().is_some();
                self.compression_level = has_levels.then_some(level);
            }
            "partitioner.class" => {
                let class = value.rsplit('.').next().unwrap_or(value);
                self.partitioner = match class {
                    "DefaultPartitioner" | "default" => Arc::new(DefaultPartitioner),
                    "StickyPartitioner" | "UniformStickyPartitioner" | "sticky" => {
                        Arc::new(StickyPartitioner)
                    }
                    _ => {
                        let problem = format!("{value:?} is none of default, sticky");
                        return Err(Error::config(name, problem));
                    }
                };
            }
            "partitioner.ignore.keys" => {
                if flag(name, value)? {
                    self.partitioner = Arc::new(StickyPartitioner);
                }
            }
            // librdkafka's names for its default, for Java's default, and for no use of keys.
            "partitioner" => {
                self.partitioner = match value {
                    "consistent_random" => Arc::new(Crc32Partitioner),
                    "murmur2_random" => Arc::new(DefaultPartitioner),
                    "random" => Arc::new(StickyPartitioner),
                    _ => {
                        let problem = format!(
                            "{value:?} is none of consistent_random, murmur2_random, random"
                        );
                        return Err(Error::config(name, problem));
                    }
                };
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}
