//! The topics that a member of a group reads: by name, or by a pattern as kcat takes it.

use std::{collections::BTreeSet, fmt};

use kohort::{Admin, ByteString, ErrorCode};
use regex::Regex;

use crate::failure::Failure;

/// The topics that a member of a group reads.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Subscription {
    /// Topics by name.
    Topics(Vec<ByteString>),
    /// A regular expression for whole topic names.
    Pattern {
        /// As the cluster gets it.
        regex: String,
        /// As the user wrote it.
        given: String,
    },
}

/// Topics of a subscription that do not exist.
#[derive(Debug)]
pub(super) struct Missing {
    what: Vec<String>,
    /// Whether there is nothing to read.
    pub(super) is_all: bool,
}

impl Subscription {
    /// Names, and patterns, which begin with `^`. As in librdkafka, a pattern matches the beginning
    /// of a name, unless it ends with `$`. Clusters match whole names, so that it is completed.
    pub(super) fn new(topics: &[String]) -> Result<Subscription, Failure> {
        if !topics.iter().any(|topic| is_pattern(topic)) {
            let names = topics.iter().map(|name| name.as_str().into());
            return Ok(Subscription::Topics(names.collect()));
        }
        let parts = topics.iter().map(|topic| {
            if is_pattern(topic) {
                Regex::new(topic)
                    .map(|_| format!("(?:{topic}).*"))
                    .map_err(|error| {
                        // The error shows the expression in several lines.
                        let error = error.to_string();
                        let reason = error.lines().last().unwrap_or_default();
                        Failure::new(format!("{topic} is not a regular expression: {reason}"))
                    })
            } else {
                Ok(regex::escape(topic))
            }
        });
        let parts: Vec<String> = parts.collect::<Result<_, _>>()?;
        Ok(Subscription::Pattern {
            regex: parts.join("|"),
            given: topics.join(" "),
        })
    }

    /// What of it does not exist at present.
    pub(super) async fn missing(&self, admin: &Admin) -> Result<Missing, Failure> {
        match self {
            Subscription::Topics(names) => {
                let described = admin.describe_topics(names).await?;
                let unknown = described.into_iter().filter_map(|(topic, described)| {
                    let code = described.err().and_then(|error| error.code());
                    (code == Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)).then_some(topic)
                });
                let unknown: BTreeSet<ByteString> = unknown.collect();
                Ok(Missing {
                    is_all: unknown.len() == names.len(),
                    what: unknown
                        .iter()
                        .map(|topic| format!("topic {topic} does not exist"))
                        .collect(),
                })
            }
            Subscription::Pattern { regex, given } => {
                let topics = admin.list_topics(false).await?;
                let matches = topics.iter().any(|topic| is_match(regex, &topic.name));
                Ok(Missing {
                    is_all: !matches,
                    what: if matches {
                        Vec::new()
                    } else {
                        vec![format!("no topic matches {given}")]
                    },
                })
            }
        }
    }
}

fn is_pattern(topic: &str) -> bool {
    topic.starts_with('^')
}

fn is_match(pattern: &str, name: &str) -> bool {
    Regex::new(&format!("^(?:{pattern})$")).is_ok_and(|whole| whole.is_match(name))
}

impl Missing {
    pub(super) fn is_none(&self) -> bool {
        self.what.is_empty()
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matched(topics: &[&str]) -> Vec<&'static str> {
        let topics: Vec<String> = topics.iter().map(|&topic| topic.to_owned()).collect();
        let subscription = Subscription::new(&topics).expect("a subscription");
        let Subscription::Pattern { regex, .. } = subscription else {
            panic!("not a pattern: {subscription:?}");
        };
        ["ord", "orders", "orders.eu", "payments", "reorder"]
            .into_iter()
            .filter(|name| is_match(&regex, name))
            .collect()
    }

    #[test]
    fn a_pattern_matches_the_beginning_of_names_unless_it_is_anchored() {
        assert_eq!(matched(&["^ord"]), ["ord", "orders", "orders.eu"]);
        assert_eq!(matched(&["^ord$"]), ["ord"]);
        assert_eq!(
            matched(&["^ord|^pay"]),
            ["ord", "orders", "orders.eu", "payments"]
        );
        assert_eq!(matched(&["^.*order"]), ["orders", "orders.eu", "reorder"]);
        assert_eq!(matched(&["^pay", "orders"]), ["orders", "payments"]);
        assert_eq!(matched(&["^pay", "orders.eu"]), ["orders.eu", "payments"]);
        assert_eq!(matched(&["^x"]), [""; 0]);
    }

    #[test]
    fn names_are_names() {
        let names = ["a.b".to_owned(), "c".to_owned()];
        let expected = Subscription::Topics(vec!["a.b".into(), "c".into()]);
        assert_eq!(Subscription::new(&names).expect("names"), expected);
        assert!(Subscription::new(&["^(".to_owned()]).is_err());
    }
}
