//! Settings under Kafka's names, from a map or a file.

use std::{collections::BTreeMap, path::Path, str::FromStr, sync::Arc, time::Duration};

use kohort_wire::records::Compression;

use crate::{
    ClientConfig, ConsumerConfig, Error, IsolationLevel, ProducerConfig, Result,
    consumer::{AssignmentStrategy, GroupProtocol, OffsetReset},
    producer::{Acks, DefaultPartitioner, StickyPartitioner},
    rpc::{Security, is_setting, split_list},
};

/// Settings under Kafka's names.
///
/// ```
/// use kohort::{ConsumerConfig, Properties};
///
/// let properties: Properties = "
///     bootstrap.servers = localhost:9092
///     group.id = billing
///     auto.offset.reset = earliest
/// "
/// .parse()?;
/// let config = ConsumerConfig::from_properties(&properties)?;
/// assert_eq!(config.group_id.as_deref(), Some("billing"));
///
/// let unknown = properties.with("group.di", "billing");
/// let error = ConsumerConfig::from_properties(&unknown).unwrap_err();
/// assert!(error.to_string().starts_with("group.di: "));
/// # Ok::<(), kohort::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Properties(BTreeMap<String, String>);

impl Properties {
    /// The settings of a file, as Java reads it: lines of the form `name = value` or `name: value`;
    /// `#` or `!` begins a comment, a backslash at the end goes on in the next line, and stands for
    /// others otherwise (`\\\\` for one backslash, `\\u00e9` for é). What is said twice has to be the
    /// same.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Properties> {
        let path = path.as_ref();
        std::fs::read_to_string(path)
            .map_err(|error| Error::config(path.display().to_string(), error.to_string()))?
            .parse()
    }

    /// Adds a setting, or replaces it.
    pub fn with(mut self, name: impl Into<String>, value: impl Into<String>) -> Properties {
        self.0.insert(name.into(), value.into());
        self
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Properties {
    fn from_iter<T: IntoIterator<Item = (N, V)>>(pairs: T) -> Properties {
        let pairs = pairs.into_iter();
        Properties(
            pairs
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
        )
    }
}

impl FromStr for Properties {
    type Err = Error;

    fn from_str(text: &str) -> Result<Properties> {
        let mut properties = BTreeMap::<String, String>::new();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let mut line = line.trim_start().to_owned();
            if line.is_empty() || line.starts_with(['#', '!']) {
                continue;
            }
            while goes_on(&line) {
                line.pop();
                line.push_str(lines.next().unwrap_or_default().trim_start());
            }
            let line = line.trim_end();
            let Some((name, value)) = split(line) else {
                return Err(Error::config(line, "is not of the form name = value"));
            };
            let (name, value) = (unescaped(name), unescaped(value));
            if properties.get(&name).is_some_and(|other| *other != value) {
                return Err(Error::config(name, "is said twice, and not the same"));
            }
            properties.insert(name, value);
        }
        Ok(Properties(properties))
    }
}

/// Whether a line ends with a backslash that is not itself escaped.
fn goes_on(line: &str) -> bool {
    let backslashes = line.chars().rev().take_while(|last| *last == '\\');
    backslashes.count() % 2 == 1
}

/// The name and the value of a line.
fn split(line: &str) -> Option<(&str, &str)> {
    let mut escaped = false;
    let at = line.find(|character| {
        let separates = !escaped && matches!(character, '=' | ':');
        escaped = !escaped && character == '\\';
        separates
    })?;
    Some((line[..at].trim_end(), line[at + 1..].trim_start()))
}

/// With the characters that backslashes stand for, as in Java.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        let escaped = match character {
            '\\' => rest.next(),
            _ => None,
        };
        match escaped {
            None => out.push(character),
            Some('t') => out.push('\t'),
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('f') => out.push('\x0c'),
            Some('u') => {
                let digits = rest.as_str().get(..4);
                let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
                match code.and_then(char::from_u32) {
                    Some(character) => {
                        out.push(character);
                        rest = rest.as_str()[4..].chars();
                    }
                    None => out.push_str("\\u"),
                }
            }
            Some(other) => out.push(other),
        }
    }
    out
}

fn number<T: FromStr>(name: &str, value: &str) -> Result<T> {
    value
        .parse()
        .map_err(|_| Error::config(name, format!("{value:?} is not a number in its range")))
}

fn ms(name: &str, value: &str) -> Result<Duration> {
    Ok(Duration::from_millis(number(name, value)?))
}

fn flag(name: &str, value: &str) -> Result<bool> {
    match value {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(Error::config(
            name,
            format!("{value:?} is not true or false"),
        )),
    }
}

fn choice<T: Clone>(name: &str, value: &str, choices: &[(&str, T)]) -> Result<T> {
    let found = choices
        .iter()
        .find(|(text, _)| text.eq_ignore_ascii_case(value));
    found.map(|(_, choice)| choice.clone()).ok_or_else(|| {
        let known: Vec<_> = choices.iter().map(|(text, _)| *text).collect();
        Error::config(name, format!("{value:?} is none of {}", known.join(", ")))
    })
}

/// For a setting that this client does not have.
fn unknown(name: &str, what: &str) -> Error {
    // Those that files for Kafka's own clients are likely to have.
    let hint = match name {
        "key.serializer" | "value.serializer" | "key.deserializer" | "value.deserializer" => {
            ": keys and values are bytes here"
        }
        "retries" => ": delivery.timeout.ms says for how long is tried",
        "transactional.id" | "transaction.timeout.ms" => ": there are no transactions here",
        "ssl.keystore.password" | "ssl.truststore.password" => ": stores are read in PEM",
        _ => "",
    };
    Error::config(name, format!("there is no such setting of a {what}{hint}"))
}

impl ClientConfig {
    /// The settings under Kafka's names. One that is unknown or has no meaning here is an error.
    pub fn from_properties(properties: &Properties) -> Result<ClientConfig> {
        let mut config = ClientConfig::default();
        config.apply(properties)?;
        config.validate()?;
        Ok(config)
    }

    /// Sets what `properties` say, and leaves the rest as it is.
    pub(crate) fn apply(&mut self, properties: &Properties) -> Result<()> {
        for (name, value) in properties.iter() {
            if !self.set(name, value)? {
                return Err(unknown(name, "client"));
            }
        }
        self.secure(properties)
    }

    fn secure(&mut self, properties: &Properties) -> Result<()> {
        if properties.iter().any(|(name, _)| is_setting(name)) {
            self.security = Security::from_properties(properties)?;
        }
        Ok(())
    }

    /// Returns whether there is such a setting.
    fn set(&mut self, name: &str, value: &str) -> Result<bool> {
        match name {
            "bootstrap.servers" => self.bootstrap_servers = split_list(value),
            "client.id" => self.client_id = value.to_owned(),
            "request.timeout.ms" => self.request_timeout = ms(name, value)?,
            "default.api.timeout.ms" => self.api_timeout = ms(name, value)?,
            "socket.connection.setup.timeout.ms" => self.connect_timeout = ms(name, value)?,
            "retry.backoff.ms" => self.retry_backoff.first = ms(name, value)?,
            "retry.backoff.max.ms" => self.retry_backoff.most = ms(name, value)?,
            "reconnect.backoff.ms" => self.reconnect_backoff.first = ms(name, value)?,
            "reconnect.backoff.max.ms" => self.reconnect_backoff.most = ms(name, value)?,
            "metadata.max.age.ms" => self.metadata_max_age = ms(name, value)?,
            "allow.auto.create.topics" => self.allow_auto_create_topics = flag(name, value)?,
            _ => return Ok(is_setting(name)),
        }
        Ok(true)
    }
}

impl ConsumerConfig {
    /// The settings under Kafka's names. One that is unknown or has no meaning here is an error.
    pub fn from_properties(properties: &Properties) -> Result<ConsumerConfig> {
        let mut config = ConsumerConfig::default();
        config.apply(properties)?;
        config.validate()?;
        Ok(config)
    }

    /// Sets what `properties` say, and leaves the rest as it is.
    pub(crate) fn apply(&mut self, properties: &Properties) -> Result<()> {
        for (name, value) in properties.iter() {
            if !self.set(name, value)? && !self.client.set(name, value)? {
                return Err(unknown(name, "consumer"));
            }
        }
        self.check_meant(properties)?;
        self.client.secure(properties)
    }

    /// What is said expressly has to have a meaning beside the rest, as in Kafka's own client.
    fn check_meant(&self, properties: &Properties) -> Result<()> {
        let said = |wanted: &str| properties.iter().any(|(name, _)| name == wanted);
        if self.group_protocol == GroupProtocol::Consumer {
            let classic = [
                "partition.assignment.strategy",
                "session.timeout.ms",
                "heartbeat.interval.ms",
            ];
            if let Some(name) = classic.into_iter().find(|name| said(name)) {
                let problem = "has no meaning with group.protocol=consumer";
                return Err(Error::config(name, problem));
            }
        }
        if self.auto_commit && self.group_id.is_none() && said("enable.auto.commit") {
            return Err(Error::config("enable.auto.commit", "needs a group.id"));
        }
        Ok(())
    }

    fn set(&mut self, name: &str, value: &str) -> Result<bool> {
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
    let choices = [
        ("earliest", OffsetReset::Earliest),
        ("latest", OffsetReset::Latest),
        ("none", OffsetReset::None),
        // With a duration, as above.
        ("by_duration:P1DT2H", OffsetReset::Latest),
    ];
    choice(name, value, &choices)
}

/// `PnDTnHnMnS` (ISO 8601), as Java reads durations.
fn iso_duration(text: &str) -> Option<Duration> {
    let text = text.to_ascii_uppercase();
    let (days, time) = match text.strip_prefix('P')?.split_once('T') {
        Some((days, time)) => (days.to_owned(), time.to_owned()),
        None => (text[1..].to_owned(), String::new()),
    };
    let mut total = Duration::ZERO;
    let mut any = false;
    for (part, units) in [
        (days, &[('D', 86_400)][..]),
        (time, &[('H', 3600), ('M', 60), ('S', 1)]),
    ] {
        let mut number = String::new();
        for character in part.chars() {
            if character.is_ascii_digit() || character == '.' {
                number.push(character);
                continue;
            }
            let (_, seconds) = units.iter().find(|(unit, _)| *unit == character)?;
            let amount: f64 = number.parse().ok()?;
            let amount = Duration::try_from_secs_f64(amount * f64::from(*seconds)).ok()?;
            total = total.checked_add(amount)?;
            number.clear();
            any = true;
        }
        if !number.is_empty() {
            return None;
        }
    }
    any.then_some(total)
}

impl ProducerConfig {
    /// The settings under Kafka's names. One that is unknown or has no meaning here is an error.
    pub fn from_properties(properties: &Properties) -> Result<ProducerConfig> {
        let mut config = ProducerConfig::default();
        config.apply(properties)?;
        config.validate()?;
        Ok(config)
    }

    /// Sets what `properties` say, and leaves the rest as it is.
    pub(crate) fn apply(&mut self, properties: &Properties) -> Result<()> {
        let (mut acks, mut idempotence) = (false, false);
        // Levels belong to it.
        if let Some(value) = properties.0.get("compression.type") {
            self.set("compression.type", value)?;
        }
        for (name, value) in properties.iter() {
            acks |= name == "acks";
            idempotence |= name == "enable.idempotence";
            if !self.set(name, value)? && !self.client.set(name, value)? {
                return Err(unknown(name, "producer"));
            }
        }
        // As in Kafka: who asks for less and says nothing of idempotence does without.
        if acks && !idempotence && self.acks != Acks::All {
            self.idempotence = false;
        }
        self.client.secure(properties)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<bool> {
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
                // Whichever is used: the others do not matter.
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
            _ => return Ok(false),
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn properties(pairs: &[(&str, &str)]) -> Properties {
        let servers = [("bootstrap.servers", "a:1, b:2")];
        servers.iter().chain(pairs).copied().collect()
    }

    fn problem<T>(result: Result<T>) -> String {
        result.err().expect("it is an error").to_string()
    }

    #[test]
    fn settings_are_read_under_kafkas_names() {
        let text =
            "# a comment\nbootstrap.servers=a:1,\\\n  b:2\nacks : 1\ncompression.type=zstd\n";
        let config = ProducerConfig::from_properties(&text.parse().unwrap()).unwrap();
        assert_eq!(config.client.bootstrap_servers, ["a:1", "b:2"]);
        assert_eq!((config.acks, config.idempotence), (Acks::Leader, false));
        let pairs = [
            ("auto.offset.reset", "by_duration:P1DT2H"),
            (
                "partition.assignment.strategy",
                "org.apache.kafka.clients.consumer.RoundRobinAssignor,sticky",
            ),
        ];
        let config = ConsumerConfig::from_properties(&properties(&pairs)).unwrap();
        assert_eq!(
            config.offset_reset,
            OffsetReset::ByDuration(Duration::from_secs(26 * 3600))
        );
        assert_eq!(
            config.assignment_strategies,
            [AssignmentStrategy::RoundRobin, AssignmentStrategy::Sticky]
        );
    }

    #[test]
    fn a_file_is_read_as_java_reads_it() {
        let text = r"
            # not this
            a : 1\
                2
            b = one\\two\ \u00e9\tthree\\
            c\=d = x = y
            ! nor this
        ";
        let properties: Properties = text.parse().unwrap();
        let pairs: Vec<_> = properties.iter().collect();
        let expected = [
            ("a", "12"),
            ("b", "one\\two \u{e9}\tthree\\"),
            ("c=d", "x = y"),
        ];
        assert_eq!(pairs, expected);
        let twice = "a=1\na=1\nb=2\nb=3".parse::<Properties>();
        assert_eq!(problem(twice), "b: is said twice, and not the same");
    }

    #[test]
    fn the_level_of_the_compression_that_is_used_counts() {
        for name in ["gzip", "lz4", "zstd"] {
            let level = format!("compression.{name}.level");
            let pairs = [("compression.type", name), (&level, "3")];
            let config = ProducerConfig::from_properties(&properties(&pairs)).unwrap();
            assert_eq!(config.compression_level, Some(3), "{name}");
            let pairs = [("compression.type", name), (&level, "99")];
            let problem = problem(ProducerConfig::from_properties(&properties(&pairs)));
            assert!(
                problem.starts_with(&format!("{level}: must be from ")),
                "{problem}"
            );
        }
    }

    #[test]
    fn times_that_are_too_long_or_nothing_are_errors_that_name_the_setting() {
        let durations = [
            "request.timeout.ms",
            "default.api.timeout.ms",
            "socket.connection.setup.timeout.ms",
            "metadata.max.age.ms",
            "retry.backoff.max.ms",
            "reconnect.backoff.max.ms",
        ];
        let of_consumers = [
            "session.timeout.ms",
            "max.poll.interval.ms",
            "auto.commit.interval.ms",
        ];
        let longest = u64::MAX.to_string();
        for name in durations.into_iter().chain(of_consumers) {
            let pairs = [("group.id", "g"), (name, &*longest)];
            let problem = problem(ConsumerConfig::from_properties(&properties(&pairs)));
            assert_eq!(
                problem,
                format!("{name}: must not be longer than 2147483647 ms")
            );
        }
        for name in ["max.block.ms", "delivery.timeout.ms", "linger.ms"] {
            let pairs = [(name, &*longest)];
            let problem = problem(ProducerConfig::from_properties(&properties(&pairs)));
            assert_eq!(
                problem,
                format!("{name}: must not be longer than 2147483647 ms")
            );
        }
        for name in [
            "request.timeout.ms",
            "default.api.timeout.ms",
            "max.poll.interval.ms",
        ] {
            let pairs = [("group.id", "g"), (name, "0")];
            let problem = problem(ConsumerConfig::from_properties(&properties(&pairs)));
            assert_eq!(problem, format!("{name}: must not be 0"));
        }
    }

    #[test]
    fn unknown_wrong_and_contradictory_settings_are_errors_that_name_the_setting() {
        for (pair, expected) in [
            (("grup.id", "g"), "grup.id: "),
            (("acks", "all"), "acks: "),
            (("max.poll.records", "many"), "max.poll.records: "),
            (("max.poll.records", "0"), "max.poll.records: "),
            (("isolation.level", "none"), "isolation.level: "),
            (("session.timeout.ms", "10"), "heartbeat.interval.ms: "),
            (("bootstrap.servers", "nowhere"), "bootstrap.servers: "),
            (("bootstrap.servers", ":9092"), "bootstrap.servers: "),
            (
                ("bootstrap.servers", "PLAINTEXT://a:9092"),
                "bootstrap.servers: ",
            ),
        ] {
            let problem = problem(ConsumerConfig::from_properties(&properties(&[pair])));
            assert!(problem.starts_with(expected), "{problem}");
        }
        for (pairs, expected) in [
            (
                [
                    ("group.protocol", "consumer"),
                    ("session.timeout.ms", "9000"),
                ],
                "session.timeout.ms: has no meaning with group.protocol=consumer",
            ),
            (
                [
                    ("group.protocol", "classic"),
                    ("group.remote.assignor", "range"),
                ],
                "group.remote.assignor: has no meaning with group.protocol=classic",
            ),
            (
                [("enable.auto.commit", "true"), ("fetch.min.bytes", "1")],
                "enable.auto.commit: needs a group.id",
            ),
            (
                [("fetch.min.bytes", "-1"), ("check.crcs", "true")],
                "fetch.min.bytes: must not be negative",
            ),
        ] {
            let problem = problem(ConsumerConfig::from_properties(&properties(&pairs)));
            assert_eq!(problem, expected);
        }
        let pairs = [("acks", "1"), ("enable.idempotence", "true")];
        let problem = problem(ProducerConfig::from_properties(&properties(&pairs)));
        assert!(problem.starts_with("enable.idempotence: "), "{problem}");
    }
}
