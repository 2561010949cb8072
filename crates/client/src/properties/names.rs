//! Names of settings: librdkafka's other names, and settings without effect here.

use std::collections::BTreeMap;

use super::Properties;
use crate::{Error, Result};

/// Another name of a setting.
struct Alias {
    name: &'static str,
    kafka: &'static str,
    convert: fn(&str) -> String,
    both: Both,
}

/// What holds when a setting is given under both names.
#[derive(Clone, Copy, PartialEq)]
enum Both {
    /// The values must agree.
    Agree,
    /// Kafka's name counts: the two differ a little in meaning.
    KafkaCounts,
    /// The other name counts: the two differ a little in meaning.
    AliasCounts,
}

const fn alias(name: &'static str, kafka: &'static str) -> Alias {
    Alias {
        name,
        kafka,
        convert: str::to_owned,
        both: Both::Agree,
    }
}

/// librdkafka's names (its CONFIGURATION.md) for what Kafka's Java clients name otherwise.
const ALIASES: [Alias; 18] = [
    alias("metadata.broker.list", "bootstrap.servers"),
    Alias {
        both: Both::KafkaCounts,
        ..alias("socket.timeout.ms", "request.timeout.ms")
    },
    // librdkafka refreshes at this interval, and forgets topics at the age of the other.
    Alias {
        convert: |value| if_is(value, "-1", FOREVER_MS),
        both: Both::AliasCounts,
        ..alias("topic.metadata.refresh.interval.ms", "metadata.max.age.ms")
    },
    alias("max.in.flight", "max.in.flight.requests.per.connection"),
    alias("sasl.mechanisms", "sasl.mechanism"),
    alias("ssl.ca.pem", "ssl.truststore.certificates"),
    alias("ssl.certificate.pem", "ssl.keystore.certificate.chain"),
    alias("ssl.key.pem", "ssl.keystore.key"),
    alias("auto.commit.enable", "enable.auto.commit"),
    alias("fetch.wait.max.ms", "fetch.max.wait.ms"),
    alias("fetch.message.max.bytes", "max.partition.fetch.bytes"),
    Alias {
        convert: kib_to_bytes,
        ..alias("queued.max.messages.kbytes", "prefetch.max.bytes")
    },
    alias("compression.codec", "compression.type"),
    alias("request.required.acks", "acks"),
    alias("queue.buffering.max.ms", "linger.ms"),
    Alias {
        convert: kib_to_bytes,
        ..alias("queue.buffering.max.kbytes", "buffer.memory")
    },
    alias("message.max.bytes", "max.request.size"),
    Alias {
        convert: |value| if_is(value, "0", FOREVER_MS),
        ..alias("message.timeout.ms", "delivery.timeout.ms")
    },
];

/// The longest time that settings take.
const FOREVER_MS: &str = "2147483647";

fn if_is(value: &str, special: &str, instead: &str) -> String {
    if value == special {
        instead.to_owned()
    } else {
        value.to_owned()
    }
}

/// An amount in KiB as one in bytes. What is no number stays what it is, for the error.
fn kib_to_bytes(value: &str) -> String {
    let bytes = value
        .parse()
        .ok()
        .and_then(|kib: u64| kib.checked_mul(1024));
    bytes.map_or(value.to_owned(), |bytes| bytes.to_string())
}

/// Settings under Kafka's names alone, and the names under which they were given.
pub(super) struct Resolved {
    pub(super) properties: Properties,
    given: BTreeMap<String, &'static str>,
}

impl Resolved {
    /// Replaces other names with Kafka's.
    pub(super) fn new(properties: &Properties) -> Result<Resolved> {
        let mut resolved = Resolved {
            properties: Properties::default(),
            given: BTreeMap::new(),
        };
        let find = |name: &str| ALIASES.iter().find(|alias| alias.name == name);
        for (name, value) in properties.iter().filter(|(name, _)| find(name).is_none()) {
            resolved.properties.0.insert(name.into(), value.into());
        }
        for (name, value) in properties.iter() {
            let Some(alias) = find(name) else {
                continue;
            };
            let value = (alias.convert)(value);
            match resolved.properties.get(alias.kafka) {
                Some(other) if *other != value && alias.both == Both::Agree => {
                    let problem = format!("is set to another value as {}", alias.kafka);
                    return Err(Error::config(name, problem));
                }
                Some(_) if alias.both == Both::KafkaCounts => continue,
                _ => {}
            }
            resolved.properties.0.insert(alias.kafka.to_owned(), value);
            resolved.given.insert(alias.kafka.to_owned(), alias.name);
        }
        Ok(resolved)
    }

    /// Gives each setting to `set`, which returns whether it knows it. One warning lists those that
    /// are known elsewhere and have no effect for a client of this `kind`.
    pub(super) fn apply(
        &self,
        kind: &str,
        mut set: impl FnMut(&str, &str) -> Result<bool>,
    ) -> Result<()> {
        let mut without_effect = Vec::new();
        for (name, value) in self.properties.iter() {
            match set(name, value).map_err(|error| self.named_as_given(error))? {
                true => {}
                false if has_no_effect(name) || super::is_setting_of_any_client(name) => {
                    without_effect.push(name);
                }
                false => return Err(unknown(name, kind)),
            }
        }
        if !without_effect.is_empty() {
            let names = without_effect.join(", ");
            tracing::warn!("settings without effect for kohort's {kind}: {names}");
        }
        Ok(())
    }

    /// An error that names a setting as the user did.
    pub(super) fn named_as_given(&self, error: Error) -> Error {
        match error {
            Error::Config { setting, problem } => Error::Config {
                setting: match self.given.get(&setting) {
                    Some(given) => (*given).to_owned(),
                    None => setting,
                },
                problem,
            },
            error => error,
        }
    }
}

fn unknown(name: &str, kind: &str) -> Error {
    let problem = match name {
        "transactional.id" | "transaction.two.phase.commit.enable" => {
            "kohort has no transactions yet".to_owned()
        }
        "enable.gapless.guarantee" => {
            "kohort has no such guarantee: a record that fails leaves a gap".to_owned()
        }
        "ssl.crl.location" => "kohort cannot check revocation lists".to_owned(),
        "bootstrap.controllers" => "kohort only connects to brokers: bootstrap.servers".to_owned(),
        _ => format!("unknown {kind} setting"),
    };
    Error::config(name, problem)
}

fn has_no_effect(name: &str) -> bool {
    WITHOUT_EFFECT.contains(&name) || name.ends_with("_cb")
}

/// Settings of Kafka's Java clients and of librdkafka that change nothing that kohort's clients
/// promise: keys and values are bytes, sockets and memory are managed otherwise, and tracing and
/// metrics have their own crates. What would be unsafe to ignore (`transactional.id`) is not here.
const WITHOUT_EFFECT: [&str; 111] = [
    "api.version.fallback.ms",
    "api.version.request",
    "api.version.request.timeout.ms",
    "auto.include.jmx.reporter",
    "batch.num.messages",
    "bootstrap.resolve.timeout.ms",
    "broker.address.family",
    "broker.address.ttl",
    "broker.version.fallback",
    "buffer.memory.allocation.strategy",
    "builtin.features",
    "client.dns.lookup",
    "client.rack",
    "client.software.name",
    "client.software.version",
    "config.providers",
    "connections.max.idle.ms",
    "consume.callback.max.messages",
    "coordinator.query.interval.ms",
    "debug",
    "default_topic_conf",
    "delivery.report.only.error",
    "enable.metrics.push",
    "enable.partition.eof",
    "enable.random.seed",
    "enable.sasl.oauthbearer.unsecure.jwt",
    "enabled_events",
    "exclude.internal.topics",
    "fetch.error.backoff.ms",
    "fetch.queue.backoff.ms",
    "group.protocol.type",
    "https.ca.location",
    "https.ca.pem",
    "interceptor.classes",
    "interceptors",
    "internal.leave.group.on.close",
    "internal.termination.signal",
    "internal.throw.on.fetch.stable.offset.unsupported",
    "key.deserializer",
    "key.deserializer.encoding",
    "key.serializer",
    "key.serializer.encoding",
    "log.connection.close",
    "log.queue",
    "log.thread.name",
    "log_level",
    "message.copy.max.bytes",
    "message.send.max.retries",
    "metadata.cluster.check.enable",
    "metadata.max.idle.ms",
    "metadata.recovery.rebootstrap.trigger.ms",
    "metadata.recovery.strategy",
    "metric.reporters",
    "metrics.num.samples",
    "metrics.recording.level",
    "metrics.sample.window.ms",
    "msg_order_cmp",
    "offset.store.method",
    "offset.store.path",
    "offset.store.sync.interval.ms",
    "opaque",
    "partitioner.adaptive.partitioning.enable",
    "partitioner.availability.timeout.ms",
    "partitioner.rack.aware",
    "plugin.library.paths",
    "produce.offset.report",
    "queue.buffering.backpressure.threshold",
    "queue.buffering.max.messages",
    "queued.min.messages",
    "queuing.strategy",
    "rebalance.timeout.ms",
    "receive.buffer.bytes",
    "reconnect.backoff.jitter.ms",
    "retries",
    "schema.registry.url",
    "security.providers",
    "send.buffer.bytes",
    "share.acknowledgement.mode",
    "share.acquire.mode",
    "socket.blocking.max.ms",
    "socket.connection.setup.timeout.max.ms",
    "socket.keepalive.enable",
    "socket.max.fails",
    "socket.nagle.disable",
    "socket.receive.buffer.bytes",
    "socket.send.buffer.bytes",
    "ssl.ca.certificate.stores",
    "ssl.cipher.suites",
    "ssl.curves.list",
    "ssl.enabled.protocols",
    "ssl.engine.factory.class",
    "ssl.engine.id",
    "ssl.engine.location",
    "ssl.keymanager.algorithm",
    "ssl.provider",
    "ssl.providers",
    "ssl.secure.random.implementation",
    "ssl.sigalgs.list",
    "ssl.trustmanager.algorithm",
    "ssl_engine_callback_data",
    "statistics.interval.ms",
    "sticky.partitioning.linger.ms",
    "topic.metadata.propagation.max.ms",
    "topic.metadata.refresh.fast.cnt",
    "topic.metadata.refresh.fast.interval.ms",
    "topic.metadata.refresh.sparse",
    "transaction.timeout.ms",
    "value.deserializer",
    "value.deserializer.encoding",
    "value.serializer",
    "value.serializer.encoding",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_meaning() {
        for alias in &ALIASES {
            assert!(!has_no_effect(alias.name), "{}", alias.name);
            let twice = ALIASES.iter().filter(|other| other.name == alias.name);
            assert_eq!(twice.count(), 1, "{}", alias.name);
            assert!(
                crate::properties::is_setting_of_any_client(alias.kafka),
                "{}",
                alias.kafka
            );
        }
        for name in WITHOUT_EFFECT {
            // A consumer has this one.
            let expected = name == "client.rack";
            let is_setting = crate::properties::is_setting_of_any_client(name);
            assert_eq!(is_setting, expected, "{name}");
        }
    }
}
