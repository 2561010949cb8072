//! What is known of a cluster: asking for it, and news of it that comes with other answers.

use std::{sync::Arc, time::Duration};

use bytestring::ByteString;
use kohort_wire::{ApiKey, ErrorCode, Uuid, codec::Message, messages::*};
use rustc_hash::FxHashMap;
use tokio::{sync::watch, time::Instant};

use super::{Cluster, Lane, Metadata, TopicMetadata, metadata::BrokerMetadata};
use crate::{Error, Result, Subject, TopicPartition, error::check};

/// The version of Metadata since which topics can be asked for by id; 10 and 11 say so, but their
/// brokers do not understand it.
const TOPIC_IDS_SINCE: i16 = 12;

/// Which topics to learn about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Topics {
    /// All that there are.
    All,
    /// These, by name.
    Named(Vec<ByteString>),
    /// These, by id (KIP-516); all, if the broker cannot be asked that.
    Ids(Vec<Uuid>),
}

/// When what was last asked for.
#[derive(Debug, Default)]
pub(super) struct Refreshed {
    all: Option<Instant>,
    topics: FxHashMap<ByteString, Instant>,
}

impl Cluster {
    /// What is known of the cluster at present.
    pub fn metadata(&self) -> Arc<Metadata> {
        self.0.metadata.borrow().clone()
    }

    /// Tells of every change of what is known.
    pub fn watch_metadata(&self) -> watch::Receiver<Arc<Metadata>> {
        self.0.metadata.subscribe()
    }

    /// Asks a broker for metadata, once. Topics that do not exist are unknown afterwards; see
    /// [`topic`](Cluster::topic) for one that must exist.
    ///
    /// Concurrent calls for the same topics share a request.
    pub async fn refresh(&self, topics: &Topics) -> Result<Arc<Metadata>> {
        self.refresh_errors(topics)
            .await
            .map(|(metadata, _)| metadata)
    }

    /// [`refresh`](Cluster::refresh), and what was wrong with topics.
    pub(crate) async fn refresh_errors(
        &self,
        topics: &Topics,
    ) -> Result<(Arc<Metadata>, Vec<(ByteString, ErrorCode)>)> {
        let asked = Instant::now();
        let mut refreshed = self.0.refreshed.lock().await;
        if refreshed.covers(topics, asked) {
            return Ok((self.metadata(), Vec::new()));
        }
        let started = Instant::now();
        let connection = self.any(Lane::Main).await?;
        let version = connection.version::<MetadataRequest>()?;
        let create = self.0.config.allow_auto_create_topics.unwrap_or(false);
        let request = metadata_request(topics, version, create);
        let timeout = self.0.config.request_timeout;
        let response = connection.call(&request, version, timeout).await?;
        check(ApiKey::Metadata, response.error_code, None, || {
            Subject::Cluster
        })?;
        let errors = self.update_metadata(&response, *topics == Topics::All);
        refreshed.note(topics, started);
        Ok((self.metadata(), errors))
    }

    /// Asks once for news of topics. Returns whether all their partitions have leaders now.
    pub(crate) async fn refresh_leaders(&self, topics: Vec<ByteString>) -> bool {
        let topics = Topics::Named(topics);
        let Ok(metadata) = self.refresh(&topics).await else {
            return false;
        };
        let Topics::Named(names) = &topics else {
            return false;
        };
        names.iter().all(|name| {
            let topic = metadata.topic(name);
            topic.is_some_and(|topic| topic.partitions.iter().all(|p| p.leader.is_some()))
        })
    }

    fn update_metadata(
        &self,
        response: &MetadataResponse,
        all: bool,
    ) -> Vec<(ByteString, ErrorCode)> {
        let mut errors = Vec::new();
        self.0.metadata.send_modify(|metadata| {
            errors = Arc::make_mut(metadata).update(response, all);
        });
        errors
    }

    /// A topic. Asks for it, unless it is known, within [`ClientConfig::api_timeout`]: as long as
    /// it doesn't exist it may still be created, and brokers learn of a new topic one after the
    /// other. See [`refresh`](Cluster::refresh) for a single look.
    ///
    /// [`ClientConfig::api_timeout`]: super::ClientConfig::api_timeout
    pub async fn topic(&self, name: &ByteString) -> Result<Arc<TopicMetadata>> {
        self.topic_within(name, self.0.config.api_timeout).await
    }

    /// The same for as long as `timeout`.
    pub(crate) async fn topic_within(
        &self,
        name: &ByteString,
        timeout: Duration,
    ) -> Result<Arc<TopicMetadata>> {
        // One that is being created may have no partitions yet.
        let ready = |metadata: &Metadata| {
            let topic = metadata.topic(name);
            topic.filter(|topic| !topic.partitions.is_empty()).cloned()
        };
        if let Some(topic) = ready(&self.metadata()) {
            return Ok(topic);
        }
        let mut retry = self.retry_for(format!("find topic {name}"), timeout);
        loop {
            let topics = Topics::Named(vec![name.clone()]);
            let error = match retry.attempt(self.refresh_errors(&topics)).await {
                Ok((metadata, errors)) => match ready(&metadata) {
                    Some(topic) => return Ok(topic),
                    None => {
                        let code = errors.iter().find(|(topic, _)| topic == name);
                        let code = code.map_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, |e| e.1);
                        Error::kafka(ApiKey::Metadata, Subject::Topic(name.clone()), code)
                    }
                },
                Err(error) => error,
            };
            retry.failed(error).await?;
        }
    }

    /// Takes over the leader of a partition that an answer to Produce or Fetch told of (KIP-951).
    /// Returns whether it is news.
    pub fn note_leader(&self, partition: &TopicPartition, leader: i32, epoch: i32) -> bool {
        self.0.metadata.send_if_modified(|metadata| {
            Arc::make_mut(metadata).update_leader(partition, leader, epoch)
        })
    }

    /// Takes over the address of a broker that such an answer told of.
    pub fn note_broker(&self, broker: BrokerMetadata) {
        self.0.metadata.send_if_modified(|metadata| {
            let news = metadata.broker(broker.id) != Some(&broker);
            if news {
                Arc::make_mut(metadata).add_broker(broker);
            }
            news
        });
    }
}

impl Refreshed {
    fn covers(&self, topics: &Topics, asked: Instant) -> bool {
        let since = |started: Option<&Instant>| started.is_some_and(|started| *started >= asked);
        since(self.all.as_ref())
            || match topics {
                Topics::All | Topics::Ids(_) => false,
                Topics::Named(names) => {
                    !names.is_empty() && names.iter().all(|name| since(self.topics.get(name)))
                }
            }
    }

    fn note(&mut self, topics: &Topics, started: Instant) {
        match topics {
            Topics::Ids(_) => {}
            Topics::All => {
                self.all = Some(started);
                self.topics.clear();
            }
            Topics::Named(names) => {
                for name in names {
                    self.topics.insert(name.clone(), started);
                }
            }
        }
    }
}

fn metadata_request(topics: &Topics, version: i16, create: bool) -> MetadataRequest {
    debug_assert!(MetadataRequest::VERSIONS.contains(version));
    let topics = match topics {
        // Version 0 has no null: there an empty list means all.
        Topics::All => (version == 0).then(Vec::new),
        Topics::Named(names) => {
            let names = names.iter().map(|name| MetadataRequestTopic {
                name: Some(name.clone()),
                ..Default::default()
            });
            Some(names.collect())
        }
        Topics::Ids(_) if version < TOPIC_IDS_SINCE => (version == 0).then(Vec::new),
        Topics::Ids(ids) => {
            let ids = ids.iter().map(|id| MetadataRequestTopic {
                topic_id: *id,
                name: None,
            });
            Some(ids.collect())
        }
    };
    MetadataRequest {
        topics,
        // Old brokers always create.
        allow_auto_topic_creation: version < 4 || create,
        ..Default::default()
    }
}
