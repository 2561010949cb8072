//! Settings under Kafka's names, from a map or a file.

mod client;
mod consumer;
mod names;
mod producer;
#[cfg(test)]
mod tests;
mod value;

use std::{collections::BTreeMap, path::Path, str::FromStr};

use crate::{ClientConfig, ConsumerConfig, Error, ProducerConfig, Result};

/// Settings under Kafka's names.
///
/// librdkafka's names are accepted too where they differ (`metadata.broker.list`,
/// `compression.codec`, …). A setting of Kafka's or librdkafka's clients that means nothing here,
/// such as a serializer, has no effect: one warning in the log lists all of those. An unknown name
/// is an error, because it is most likely a typing mistake.
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
/// assert_eq!(error.to_string(), "group.di: unknown consumer setting");
/// # Ok::<(), kohort::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Properties(BTreeMap<String, String>);

impl Properties {
    /// Reads a properties file as Java does.
    ///
    /// A line reads `name = value` or `name: value`. `#` or `!` starts a comment. A backslash at the
    /// end of a line continues it on the next; elsewhere it starts an escape (`\\\\` is one
    /// backslash, `\\u00e9` is é). Unlike in Java, a name that occurs twice with different values is
    /// an error.
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

    /// All settings, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }

    /// The value of a setting.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
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
            while continues(&line) {
                line.pop();
                line.push_str(lines.next().unwrap_or_default().trim_start());
            }
            let line = line.trim_end();
            let Some((name, value)) = split(line) else {
                return Err(Error::config(line, "is not of the form name = value"));
            };
            let (name, value) = (unescaped(name), unescaped(value));
            if properties.get(&name).is_some_and(|other| *other != value) {
                return Err(Error::config(name, "is set twice with different values"));
            }
            properties.insert(name, value);
        }
        Ok(Properties(properties))
    }
}

/// Whether a line ends with a backslash that is not itself escaped.
fn continues(line: &str) -> bool {
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

/// Replaces escapes with the characters they stand for, as in Java.
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

/// Whether a client of some kind has this setting, whatever its value may be.
fn is_setting_of_any_client(name: &str) -> bool {
    // A bad value is an error only of a setting that exists.
    let exists = |result: Result<bool>| result.unwrap_or(true);
    exists(ClientConfig::default().set(name, ""))
        || exists(ConsumerConfig::default().set(name, ""))
        || exists(ProducerConfig::default().set(name, ""))
}
