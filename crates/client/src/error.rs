//! What can go wrong.

use std::{fmt, io, sync::Arc, time::Duration};

use bytestring::ByteString;
use kohort_group::text::{printable_line, printable_name};
use kohort_wire::{
    ApiKey, ErrorCode,
    codec::{DecodeError, EncodeError},
};

use crate::TopicPartition;

/// The result of everything that can go wrong here.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A result for each of several things.
pub type Each<K, V> = Vec<(K, Result<V>)>;

/// What an error is about.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Subject {
    /// The cluster as a whole.
    Cluster,
    /// A broker, by its id; negative while only its bootstrap address is known.
    Broker(i32),
    /// A topic.
    Topic(ByteString),
    /// A partition.
    Partition(TopicPartition),
    /// A group.
    Group(ByteString),
    /// A member of a group.
    Member {
        /// The group.
        group: ByteString,
        /// The member's id, or its instance id.
        member: ByteString,
    },
    /// A configuration resource, a transactional id or the like, by its name.
    Named(ByteString),
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Cluster => f.write_str("the cluster"),
            Subject::Broker(id) if *id < 0 => f.write_str("the bootstrap server"),
            Subject::Broker(id) => write!(f, "broker {id}"),
            Subject::Topic(topic) => write!(f, "topic {}", printable_name(topic)),
            Subject::Partition(partition) => write!(f, "partition {partition}"),
            Subject::Group(group) => write!(f, "group {}", printable_name(group)),
            Subject::Member { group, member } => {
                let (group, member) = (printable_name(group), printable_name(member));
                write!(f, "member {member} of group {group}")
            }
            Subject::Named(name) => f.write_str(&printable_name(name)),
        }
    }
}

/// What can go wrong. [`is_retriable`](Error::is_retriable) says whether trying again can help.
///
/// Variants may be added, and fields to variants: match with `..`.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A broker answered with an error code.
    #[error("{subject}: {}({api} was answered with {code})", words(.code, .message))]
    #[non_exhaustive]
    Kafka {
        /// What was asked.
        api: ApiKey,
        /// What the answer is about.
        subject: Subject,
        /// The answer.
        code: ErrorCode,
        /// What the broker says about it.
        message: Option<ByteString>,
    },
    /// No connection to a broker came about.
    ///
    /// Also when a broker refuses a client that has worked before (its credentials, its certificate,
    /// its versions) or something else answers at its address: the client keeps trying, as this
    /// may pass. The refusal is then in `source`, as an `Error` of its own.
    #[error("could not connect to {}: {}", at(.address, .broker), reason(.source))]
    #[non_exhaustive]
    Connect {
        /// The broker's id; negative for a bootstrap server.
        broker: i32,
        /// Its address.
        address: String,
        /// Why not.
        source: Arc<io::Error>,
    },
    /// One side does not accept who the other says it is.
    #[error("authentication by {mechanism} at {address} failed: {problem}")]
    #[non_exhaustive]
    Authentication {
        /// Its address.
        address: String,
        /// The SASL mechanism, or `TLS`.
        mechanism: &'static str,
        /// What is wrong, in the broker's words if it has found out.
        problem: String,
    },
    /// A connection ended before the answer came.
    #[error("the connection to {} ended: {reason}", at(.address, .broker))]
    #[non_exhaustive]
    Disconnected {
        /// The broker's id; negative for a bootstrap server.
        broker: i32,
        /// Its address.
        address: String,
        /// How it ended.
        reason: String,
    },
    /// Another server than a Kafka broker answers at the address, or one that expects TLS.
    ///
    /// Trying again can help: a load balancer may answer for its brokers while none is up.
    #[error("no Kafka broker at {address}: {problem}")]
    #[non_exhaustive]
    NotKafka {
        /// The address.
        address: String,
        /// What answers there.
        problem: String,
    },
    /// A broker broke the protocol; the connection to it has been closed.
    #[error("{} broke the protocol: {problem}", at(.address, .broker))]
    #[non_exhaustive]
    Protocol {
        /// The broker's id; negative for a bootstrap server.
        broker: i32,
        /// Its address.
        address: String,
        /// What was wrong.
        problem: String,
    },
    /// A broker does not know what we need of it.
    #[error("{} does not support {api}{}", Subject::Broker(*.broker), detail(.reason))]
    #[non_exhaustive]
    UnsupportedVersion {
        /// The broker's id; negative for a bootstrap server.
        broker: i32,
        /// The API that it lacks, or lacks in a version that both know.
        api: ApiKey,
        /// What for.
        reason: Option<ByteString>,
    },
    /// A request cannot be written in the version that the broker knows.
    #[error("{api} cannot be sent: {source}")]
    #[non_exhaustive]
    Encode {
        /// What was to be asked.
        api: ApiKey,
        /// Why not.
        source: EncodeError,
    },
    /// It took too long.
    #[error("could not {what} within {}{}", short(.after), because(.what, .last))]
    #[non_exhaustive]
    Timeout {
        /// What was not done in time, as a verb: "list the groups".
        what: String,
        /// The time limit.
        after: Duration,
        /// What went wrong last, if anything did.
        last: Option<Box<Error>>,
    },
    /// What was asked may have been done, although the answer is that it cannot be: the answer to an
    /// earlier attempt was lost, and this one is such as would come if that attempt had got there
    /// (that a topic which is to be created exists, say). [`code`](Error::code) is that of the
    /// answer.
    #[error("{answer}; an earlier attempt may have done it, of which no answer came: {earlier}")]
    #[non_exhaustive]
    Repeated {
        /// The answer to the last attempt.
        answer: Box<Error>,
        /// Why there was no answer to an earlier one, or none that tells what came of it.
        earlier: Box<Error>,
    },
    /// Offsets were not committed because the consumer lost their partitions before, or left or was
    /// evicted from its group. Other members may have the partitions already; the records are
    /// delivered again there. Trying again does not help.
    #[error("group {group}: the offsets of {} were not committed: the partitions were taken away before", list(.partitions))]
    #[non_exhaustive]
    NotCommitted {
        /// The group.
        group: ByteString,
        /// The partitions, in order.
        partitions: Vec<TopicPartition>,
    },
    /// Records that are not what they should be.
    #[error("partition {partition}: the records at offset {offset} cannot be read: {problem}")]
    #[non_exhaustive]
    Records {
        /// The partition.
        partition: TopicPartition,
        /// The offset of the batch.
        offset: i64,
        /// What is wrong with them.
        problem: String,
    },
    /// A setting that is unknown, contradictory or out of range.
    #[error("{setting}: {problem}")]
    #[non_exhaustive]
    Config {
        /// Kafka's name of the setting.
        setting: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Something that is not possible in the state that the client is in.
    #[error("{0}")]
    State(String),
    /// The client has been closed.
    #[error("the client has been closed")]
    Closed,
    /// The tokio runtime on which the client's tasks ran has ended, and the tasks with it. A producer
    /// or consumer has to be built again, on a runtime that lives as long as it is used; an
    /// [`Admin`](crate::Admin) or [`Cluster`](crate::rpc::Cluster) connects again by itself.
    #[error("the tokio runtime that the client was built on has ended")]
    RuntimeEnded,
}

fn detail(message: &Option<ByteString>) -> String {
    match message {
        Some(message) if !message.is_empty() => format!(": {message}"),
        _ => String::new(),
    }
}

/// What the broker says, or else what its code means, in the middle of a sentence.
fn words(code: &ErrorCode, message: &Option<ByteString>) -> String {
    let message = message.as_deref().filter(|message| !message.is_empty());
    let Some(words) = message.or(code.meaning()) else {
        return String::new();
    };
    // The broker's words may contain what another client calls itself.
    let words = printable_line(words);
    let mut chars = words.trim_end_matches('.').chars();
    let first = chars.next().map(|first| {
        if chars.as_str().starts_with(char::is_uppercase) {
            first
        } else {
            first.to_ascii_lowercase()
        }
    });
    first.into_iter().chain(chars).chain([' ']).collect()
}

/// A broker's address, and its id once it is known.
fn at(address: &str, broker: &i32) -> String {
    match broker {
        ..0 => address.to_owned(),
        id => format!("{address} (broker {id})"),
    }
}

/// What went wrong last, without an address that `what` has named.
fn because(what: &str, last: &Option<Box<Error>>) -> String {
    match last.as_deref() {
        Some(Error::Connect {
            address, source, ..
        }) if what.ends_with(address.as_str()) => format!(": {}", reason(source)),
        Some(error) => format!(": {error}"),
        None => String::new(),
    }
}

/// Why a connection failed, without the system's number for it.
fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut characters = text.chars();
    let first = characters.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(characters).collect()
}

/// A duration as people write it: `10s`, `1.5s`, `250ms`.
fn short(duration: &Duration) -> String {
    match duration.as_millis() {
        ms @ ..1000 => format!("{ms}ms"),
        ms => format!("{}s", (ms as f64 / 100.0).round() / 10.0),
    }
}

/// The first few, and how many more there are.
fn list(partitions: &[TopicPartition]) -> String {
    const SHOWN: usize = 5;
    let shown = partitions.iter().take(SHOWN).map(ToString::to_string);
    let shown = shown.collect::<Vec<_>>().join(", ");
    match partitions.len() {
        ..=SHOWN => shown,
        more => format!("{shown} and {} more", more - SHOWN),
    }
}

impl Error {
    /// Whether the same may succeed later, perhaps at another broker.
    pub fn is_retriable(&self) -> bool {
        match self {
            Error::Kafka { code, .. } => code.is_retriable(),
            // One that breaks the protocol may keep to it on the next connection.
            Error::Connect { .. }
            | Error::Disconnected { .. }
            | Error::NotKafka { .. }
            | Error::Protocol { .. }
            | Error::Timeout { .. } => true,
            _ => false,
        }
    }

    /// Why a broker refuses a client that has worked before, if that is what this error is.
    pub(crate) fn refusal(&self) -> Option<&Error> {
        match self {
            Error::Connect { source, .. } => source.get_ref()?.downcast_ref(),
            _ => None,
        }
    }

    /// The same failure to connect, as one that may pass.
    pub(crate) fn temporary(self, broker: i32, address: &str) -> Error {
        if self.is_retriable() {
            self
        } else {
            Error::Connect {
                broker,
                address: address.to_owned(),
                source: Arc::new(io::Error::other(self)),
            }
        }
    }

    /// The code with which a broker answered, if this is such an answer, also to a repeated attempt,
    /// or a time-out after one.
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Error::Kafka { code, .. } => Some(*code),
            Error::Timeout {
                last: Some(last), ..
            } => last.code(),
            Error::Repeated { answer, .. } => answer.code(),
            _ => None,
        }
    }

    /// The error for an error code in a response, for requests sent through the [RPC
    /// layer](crate::rpc).
    pub fn kafka(api: ApiKey, subject: Subject, code: ErrorCode) -> Error {
        Error::Kafka {
            api,
            subject,
            code,
            message: None,
        }
    }

    pub(crate) fn config(setting: impl Into<String>, problem: impl Into<String>) -> Error {
        Error::Config {
            setting: setting.into(),
            problem: problem.into(),
        }
    }

    pub(crate) fn decode(broker: i32, address: &str, api: ApiKey, error: DecodeError) -> Error {
        Error::Protocol {
            broker,
            address: address.to_owned(),
            problem: format!("its answer to {api} cannot be read: {error}"),
        }
    }
}

/// An error for a code other than `NONE`. The subject and the message are only made if needed.
pub(crate) fn check(
    api: ApiKey,
    code: ErrorCode,
    message: Option<&ByteString>,
    subject: impl FnOnce() -> Subject,
) -> Result<()> {
    match code {
        ErrorCode::NONE => Ok(()),
        code => Err(Error::Kafka {
            api,
            subject: subject(),
            code,
            message: message.map(|text| ByteString::from(&**text)),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(code: ErrorCode, message: Option<&str>) -> String {
        let error = Error::Kafka {
            api: ApiKey::Metadata,
            subject: Subject::Topic("t".into()),
            code,
            message: message.map(Into::into),
        };
        error.to_string()
    }

    #[test]
    fn an_answer_is_told_in_the_brokers_words_or_else_by_what_its_code_means() {
        let code = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
        assert_eq!(
            answered(code, Some("There is no such topic.")),
            "topic t: there is no such topic (Metadata was answered with UNKNOWN_TOPIC_OR_PARTITION)"
        );
        assert_eq!(
            answered(code, None),
            "topic t: this broker has no such topic or partition, perhaps not yet (Metadata was \
             answered with UNKNOWN_TOPIC_OR_PARTITION)"
        );
        assert_eq!(
            answered(ErrorCode(999), Some("")),
            "topic t: (Metadata was answered with error code 999)"
        );
    }

    #[test]
    fn names_and_words_of_others_stay_in_their_line() {
        let error = Error::Kafka {
            api: ApiKey::Metadata,
            subject: Subject::Group("g\nfake line\u{1b}[2J".into()),
            code: ErrorCode::INVALID_REQUEST,
            message: Some("no\r\u{202e}".into()),
        };
        let text = error.to_string();
        assert_eq!(kohort_group::text::printable(&text), text);
    }

    #[test]
    fn words_that_begin_with_a_name_keep_it() {
        let told = answered(ErrorCode::INVALID_REQUEST, Some("SASL is not for this."));
        assert!(
            told.starts_with("topic t: SASL is not for this ("),
            "{told}"
        );
    }

    #[test]
    fn a_bootstrap_server_has_no_id_to_be_told() {
        let error = |broker| Error::Disconnected {
            broker,
            address: "a:1".to_owned(),
            reason: "enough".to_owned(),
        };
        assert_eq!(error(-1).to_string(), "the connection to a:1 ended: enough");
        assert_eq!(
            error(3).to_string(),
            "the connection to a:1 (broker 3) ended: enough"
        );
    }
}
