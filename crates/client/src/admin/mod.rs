//! Looking after topics, configurations and groups.
//!
//! ```no_run
//! use kohort::{Admin, ClientConfig, OffsetSpec, TopicPartition, admin::NewTopic};
//!
//! # async fn example() -> kohort::Result<()> {
//! let admin = Admin::connect(ClientConfig::new("localhost:9092")).await?;
//!
//! let topic = NewTopic::new("orders", 6).replication_factor(1).config("retention.ms", "60000");
//! admin.create_topic(&topic).await?;
//!
//! for group in admin.list_groups(&Default::default()).await? {
//!     println!("{} {} {}", group.group_id, group.group_type, group.state);
//! }
//! let ends = [(TopicPartition::new("orders", 0), OffsetSpec::Latest)];
//! for (partition, end) in admin.list_offsets(&ends, Default::default()).await {
//!     println!("{partition} ends at {:?}", end?.offset);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! What concerns several things at once answers for each of them ([`Each`](crate::Each)).
//! Everything is tried again while that can help, for as long as
//! [`ClientConfig::api_timeout`] (that a topic doesn't exist is believed after two seconds: brokers
//! learn of a new one one after the other); also when the answer to an attempt was lost, and with it whether
//! the attempt was carried out. Where the same request a second time is refused for that reason,
//! the error is [`Error::Repeated`]; each method says when. When time is up
//! ([`Error::Timeout`]), and when the future is dropped, what was asked may
//! have been done, or be done yet.

mod cluster;
mod configs;
mod describe_groups;
mod group_events;
mod group_offsets;
mod groups;
mod partitions;
mod rewind;
mod topics;

pub use cluster::{BrokerDescription, ClusterDescription};
pub use configs::{
    ConfigEntry, ConfigOperation, ConfigResource, ConfigResourceType, ConfigSource, ConfigType,
};
pub use describe_groups::{GroupDescription, MemberDescription, MemberProtocol};
pub use group_events::GroupEvents;
pub use groups::{GroupFilter, GroupListing, GroupState, GroupType, MemberToRemove};
pub use topics::{CreatedTopic, NewTopic};

use kohort_wire::{Request, codec::Versions};

pub use crate::rewind::{LastRewind, RewindStep, RewindTo};
use crate::{
    ClientConfig, Error, ErrorCode, Result,
    rpc::{Cluster, Destination, Lane},
};

/// Looks after topics, configurations and groups. Cloning it gives another handle of the same
/// connections.
#[derive(Debug, Clone)]
pub struct Admin {
    cluster: Cluster,
}

impl Admin {
    /// For the cluster at `config`, which is reached first.
    pub async fn connect(config: ClientConfig) -> Result<Admin> {
        let config = ClientConfig {
            allow_auto_create_topics: Some(false),
            ..config
        };
        Ok(Admin::new(Cluster::connect(config).await?))
    }

    /// For `cluster`, whose connections are shared.
    pub fn new(cluster: Cluster) -> Admin {
        Admin { cluster }
    }

    /// The cluster, for requests that are not offered here.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Asks until there is an answer that `check` lets pass. Tells with it of an earlier attempt of
    /// which it is not known what came of it.
    async fn ask_again<R: Request>(
        &self,
        to: Destination,
        versions: Versions,
        request: impl Fn(i16) -> R,
        check: impl Fn(&R::Response) -> Result<()>,
    ) -> Result<(R::Response, Option<Error>)> {
        let timeout = self.cluster.config().api_timeout;
        self.cluster
            .ask_again(&to, Lane::Main, versions, timeout, request, check)
            .await
    }

    fn timeout_ms(&self) -> i32 {
        let timeout = self.cluster.config().request_timeout.as_millis();
        i32::try_from(timeout).unwrap_or(i32::MAX)
    }
}

fn group(group_id: &str) -> Destination {
    Destination::Group(group_id.into())
}

/// Only an error that trying again may help.
fn retriable(result: Result<()>) -> Result<()> {
    match result {
        Err(error) if error.is_retriable() => Err(error),
        _ => Ok(()),
    }
}

/// Makes an error of a response that may only mean that an earlier attempt, whose response was lost,
/// succeeded.
fn repeated<T>(result: Result<T>, refusal: ErrorCode, earlier: Option<&Error>) -> Result<T> {
    match (result, earlier) {
        (Err(answer), Some(earlier)) if answer.code() == Some(refusal) => Err(Error::Repeated {
            answer: Box::new(answer),
            earlier: Box::new(earlier.clone()),
        }),
        (result, _) => result,
    }
}
