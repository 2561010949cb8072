//! A consumer's settings.

use super::{
    Properties,
    names::Resolved,
    value::{choice, flag, iso_duration, ms, number},
};
use crate::{
    ConsumerConfig, Error, IsolationLevel, Result,
    consumer::{AssignmentStrategy, GroupProtocol, OffsetReset},
    rpc::split_list,
};

impl ConsumerConfig {
    /// Reads settings under Kafka's names, over the defaults. See [`Properties`].
    pub fn from_properties(properties: &Properties) -> Result<ConsumerConfig> {
        let mut config = ConsumerConfig::default();
        config.apply(properties)?;
        config.validate()?;
        Ok(config)
    }

    /// Sets what `properties` contains, and leaves the rest as it is.
    pub(crate) fn apply(&mut self, properties: &Properties) -> Result<()> {
        let resolved = Resolved::new(properties)?;
        resolved.apply("consumer", |name, value| {
            Ok(self.set(name, value)? || self.client.set(name, value)?)
        })?;
        self.check_combination(&resolved.properties)
            .map_err(|error| resolved.named_as_given(error))?;
        self.client.secure(&resolved)
    }

    /// Settings given explicitly must mean something beside the others, as in Kafka's own client.
    fn check_combination(&self, properties: &Properties) -> Result<()> {
        let is_set = |name: &str| properties.get(name).is_some();
        if self.group_protocol == GroupProtocol::Consumer {
            let classic = [
                "partition.assignment.strategy",
                "session.timeout.ms",
                "heartbeat.interval.ms",
            ];
            if let Some(name) = classic.into_iter().find(|name| is_set(name)) {
                let problem = "has no meaning with group.protocol=consumer";
                return Err(Error::config(name, problem));
            }
        }
        if self.auto_commit && self.group_id.is_none() && is_set("enable.auto.commit") {
            return Err(Error::config("enable.auto.commit", "needs a group.id"));
        }
        Ok(())
    }

    pub(super) fn set(&mut self, name: &str, value: &str) -> Result<bool> {
        let some = || Some(value.into());
        match name {
            "group.id" => self.group_id = some(),
            "group.instance.id" => self.group_instance_id = some(),
            "group.protocol" => {
                let choices = [
                    ("consumer", GroupProtocol::Consumer),
                    ("classic", GroupProtocol::Classic),
                    ("auto", GroupProtocol::Auto),
                ];
                self.group_protocol = choice(name, value, &choices)?;
            }
            "group.remote.assignor" => self.group_remote_assignor = some(),
            "partition.assignment.strategy" => {
                self.assignment_strategies = split_list(value)
                    .iter()
                    .map(|strategy| assignment_strategy(name, strategy))
                    .collect::<Result<_>>()?;
            }
            "session.timeout.ms" => self.session_timeout = ms(name, value)?,
            "heartbeat.interval.ms" => self.heartbeat_interval = ms(name, value)?,
            "max.poll.interval.ms" => self.poll_interval_max = ms(name, value)?,
            "max.poll.records" => self.poll_records_max = number(name, value)?,
            "enable.auto.commit" => self.auto_commit = flag(name, value)?,
            "auto.commit.interval.ms" => self.auto_commit_interval = ms(name, value)?,
            "auto.offset.reset" => self.offset_reset = offset_reset(name, value)?,
            "isolation.level" => {
                let choices = [
                    ("read_uncommitted", IsolationLevel::ReadUncommitted),
                    ("read_committed", IsolationLevel::ReadCommitted),
                ];
                self.isolation_level = choice(name, value, &choices)?;
            }
            "client.rack" => self.rack = some(),
            "fetch.min.bytes" => self.fetch_bytes_min = number(name, value)?,
            "fetch.max.wait.ms" => self.fetch_wait_max = ms(name, value)?,
            "fetch.max.bytes" => self.fetch_bytes_max = number(name, value)?,
            "max.partition.fetch.bytes" => self.partition_fetch_bytes_max = number(name, value)?,
            "prefetch.max.bytes" => self.prefetch_bytes_max = number(name, value)?,
            "decompressed.max.bytes" => self.decompressed_bytes_max = number(name, value)?,
            "check.crcs" => self.check_crcs = flag(name, value)?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn assignment_strategy(name: &str, value: &str) -> Result<AssignmentStrategy> {
    // Java's class names say the same.
    let class = value.rsplit('.').next().unwrap_or(value);
    let choices = [
        ("range", AssignmentStrategy::Range),
        ("roundrobin", AssignmentStrategy::RoundRobin),
        ("sticky", AssignmentStrategy::Sticky),
        ("cooperative-sticky", AssignmentStrategy::CooperativeSticky),
        ("RangeAssignor", AssignmentStrategy::Range),
        ("RoundRobinAssignor", AssignmentStrategy::RoundRobin),
        ("StickyAssignor", AssignmentStrategy::Sticky),
        (
            "CooperativeStickyAssignor",
            AssignmentStrategy::CooperativeSticky,
        ),
    ];
    choice(name, class, &choices)
}

fn offset_reset(name: &str, value: &str) -> Result<OffsetReset> {
    if let Some(age) = value.strip_prefix("by_duration:") {
        let problem = || Error::config(name, format!("{age:?} is not a duration like P1DT2H"));
        return iso_duration(age)
            .map(OffsetReset::ByDuration)
            .ok_or_else(problem);
    }
    // librdkafka has other words for the first three.
    match &*value.to_ascii_lowercase() {
        "earliest" | "smallest" | "beginning" => Ok(OffsetReset::Earliest),
        "latest" | "largest" | "end" => Ok(OffsetReset::Latest),
        "none" | "error" => Ok(OffsetReset::None),
        _ => {
            let problem =
                format!("{value:?} is none of earliest, latest, none, by_duration:P1DT2H");
            Err(Error::config(name, problem))
        }
    }
}
