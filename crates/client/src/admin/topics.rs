//! Topics.

use bytestring::ByteString;
use kohort_wire::{ApiKey, ErrorCode, Request, Uuid, messages::*};

use super::{Admin, repeated};
use crate::{
    Each, Error, Result, Subject,
    error::check,
    rpc::{Destination, TopicMetadata, Topics},
};
use std::sync::Arc;

/// A topic to be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTopic {
    /// Its name.
    pub name: ByteString,
    /// How many partitions; −1 for the broker's default.
    pub partitions: i32,
    /// How many replicas of each; −1, the default, for the broker's default.
    pub replication_factor: i16,
    /// The brokers that are to hold each partition, instead of the two numbers.
    pub assignments: Vec<Vec<i32>>,
    /// Settings, by Kafka's names.
    pub configs: Vec<(ByteString, ByteString)>,
}

impl NewTopic {
    /// A topic with so many partitions (−1 for the broker's default).
    pub fn new(name: impl Into<ByteString>, partitions: i32) -> NewTopic {
        NewTopic {
            name: name.into(),
            partitions,
            replication_factor: -1,
            assignments: Vec::new(),
            configs: Vec::new(),
        }
    }

    /// Sets how many replicas there are of each partition.
    pub fn replication_factor(mut self, replication_factor: i16) -> NewTopic {
        self.replication_factor = replication_factor;
        self
    }

    /// Adds a setting, by Kafka's name.
    pub fn config(mut self, name: impl Into<ByteString>, value: impl Into<ByteString>) -> NewTopic {
        self.configs.push((name.into(), value.into()));
        self
    }

    fn to_request(&self) -> CreatableTopic {
        let assigned = !self.assignments.is_empty();
        let assignments = (0..)
            .zip(&self.assignments)
            .map(|(partition_index, brokers)| CreatableReplicaAssignment {
                partition_index,
                broker_ids: brokers.clone(),
            });
        let configs = self
            .configs
            .iter()
            .map(|(name, value)| CreatableTopicConfig {
                name: name.clone(),
                value: Some(value.clone()),
            });
        CreatableTopic {
            name: self.name.clone(),
            num_partitions: if assigned { -1 } else { self.partitions },
            replication_factor: if assigned {
                -1
            } else {
                self.replication_factor
            },
            assignments: assignments.collect(),
            configs: configs.collect(),
        }
    }
}

/// A topic that was created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CreatedTopic {
    /// Its id; zero from brokers that are too old to tell.
    pub id: Uuid,
    /// How many partitions it has, if the broker tells.
    pub partitions: Option<i32>,
    /// How many replicas of each, if the broker tells.
    pub replication_factor: Option<i16>,
}

fn topic(name: &ByteString) -> Subject {
    Subject::Topic(ByteString::from(&**name))
}

/// An error to be tried again: a broker that is not in office, or not any more.
pub(super) fn moved(api: ApiKey, codes: impl Iterator<Item = ErrorCode>) -> Result<()> {
    let mut codes = codes;
    let retriable = |code: &ErrorCode| {
        matches!(
            *code,
            ErrorCode::NOT_CONTROLLER
                | ErrorCode::COORDINATOR_LOAD_IN_PROGRESS
                | ErrorCode::NOT_COORDINATOR
                | ErrorCode::COORDINATOR_NOT_AVAILABLE
        )
    };
    match codes.find(retriable) {
        Some(code) => Err(Error::kafka(api, Subject::Cluster, code)),
        None => Ok(()),
    }
}

impl Admin {
    /// [`ask_again`](Admin::ask_again) for the controller.
    async fn ask_controller<R: Request>(
        &self,
        request: impl Fn(i16) -> R,
        check: impl Fn(&R::Response) -> Result<()>,
    ) -> Result<(R::Response, Option<Error>)> {
        self.ask_again(Destination::Controller, R::VERSIONS, request, check)
            .await
    }

    /// Creates topics. With `validate_only` it is only checked whether that would work.
    ///
    /// If the answer to an attempt was lost and the next one finds that a topic exists, that is
    /// [`Error::Repeated`]: it may have been created by the first. `TOPIC_ALREADY_EXISTS` without
    /// that can have the same cause where a controller has just failed, since brokers of Apache
    /// Kafka pass the request on to it, and try again themselves. A topic for which the answer is
    /// `REQUEST_TIMED_OUT` may come into being yet.
    pub async fn create_topics(
        &self,
        topics: &[NewTopic],
        validate_only: bool,
    ) -> Result<Each<ByteString, CreatedTopic>> {
        const API: ApiKey = ApiKey::CreateTopics;
        let request = CreateTopicsRequest {
            topics: topics.iter().map(NewTopic::to_request).collect(),
            timeout_ms: self.timeout_ms(),
            validate_only,
        };
        let (response, earlier) = self
            .ask_controller(
                |_| request.clone(),
                |response| moved(API, response.topics.iter().map(|topic| topic.error_code)),
            )
            .await?;
        let earlier = earlier.filter(|_| !validate_only);
        let results = response.topics.into_iter().map(|created| {
            let (code, message) = (created.error_code, created.error_message.as_ref());
            let result = check(API, code, message, || topic(&created.name));
            let result = repeated(result, ErrorCode::TOPIC_ALREADY_EXISTS, earlier.as_ref());
            let result = result.map(|()| CreatedTopic {
                id: created.topic_id,
                partitions: (created.num_partitions >= 0).then_some(created.num_partitions),
                replication_factor: (created.replication_factor >= 0)
                    .then_some(created.replication_factor),
            });
            (ByteString::from(&*created.name), result)
        });
        Ok(results.collect())
    }

    /// Creates a topic, as [`create_topics`](Admin::create_topics) does.
    pub async fn create_topic(&self, topic: &NewTopic) -> Result<CreatedTopic> {
        let results = self
            .create_topics(std::slice::from_ref(topic), false)
            .await?;
        one(results, ApiKey::CreateTopics, || {
            Subject::Topic(topic.name.clone())
        })
    }

    /// Deletes topics, with all their records.
    ///
    /// If the answer to an attempt was lost and the next one finds that a topic does not exist, that
    /// is [`Error::Repeated`]: it may have been deleted by the first. A topic that others created
    /// under the name between two attempts is deleted like the one before.
    pub async fn delete_topics(&self, names: &[ByteString]) -> Result<Each<ByteString, ()>> {
        const API: ApiKey = ApiKey::DeleteTopics;
        let request = |version| match version {
            ..=5 => DeleteTopicsRequest {
                topic_names: names.to_vec(),
                timeout_ms: self.timeout_ms(),
                ..Default::default()
            },
            _ => DeleteTopicsRequest {
                topics: names
                    .iter()
                    .map(|name| DeleteTopicState {
                        name: Some(name.clone()),
                        topic_id: Uuid(0),
                    })
                    .collect(),
                timeout_ms: self.timeout_ms(),
                ..Default::default()
            },
        };
        let (response, earlier) = self
            .ask_controller(request, |response| {
                moved(API, response.responses.iter().map(|topic| topic.error_code))
            })
            .await?;
        let results = response.responses.into_iter().map(|deleted| {
            let name = deleted
                .name
                .as_deref()
                .map_or_else(ByteString::new, ByteString::from);
            let (code, message) = (deleted.error_code, deleted.error_message.as_ref());
            let result = check(API, code, message, || topic(&name));
            let gone = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
            (name, repeated(result, gone, earlier.as_ref()))
        });
        Ok(results.collect())
    }

    /// Deletes a topic, with all its records, as [`delete_topics`](Admin::delete_topics) does.
    pub async fn delete_topic(&self, name: &str) -> Result<()> {
        let results = self.delete_topics(&[name.into()]).await?;
        one(results, ApiKey::DeleteTopics, || {
            Subject::Topic(name.into())
        })
    }

    /// Sets how many partitions a topic has: there can only be more than before.
    ///
    /// If the answer to an attempt was lost and the next one finds that there are as many already
    /// (`INVALID_PARTITIONS`), that is [`Error::Repeated`]: they may have come by the first.
    pub async fn create_partitions(&self, name: &str, total: i32) -> Result<()> {
        const API: ApiKey = ApiKey::CreatePartitions;
        let request = CreatePartitionsRequest {
            topics: vec![CreatePartitionsTopic {
                name: name.into(),
                count: total,
                assignments: None,
            }],
            timeout_ms: self.timeout_ms(),
            validate_only: false,
        };
        let (response, earlier) = self
            .ask_controller(
                |_| request.clone(),
                |response| moved(API, response.results.iter().map(|topic| topic.error_code)),
            )
            .await?;
        let results = response.results.into_iter().map(|result| {
            let (code, message) = (result.error_code, result.error_message.as_ref());
            let checked = check(API, code, message, || topic(&result.name));
            let there = ErrorCode::INVALID_PARTITIONS;
            (result.name, repeated(checked, there, earlier.as_ref()))
        });
        one(results.collect(), API, || Subject::Topic(name.into()))
    }

    /// All topics, by name; with `internal` also Kafka's own.
    pub async fn list_topics(&self, internal: bool) -> Result<Vec<Arc<TopicMetadata>>> {
        let mut retry = self.cluster.retry("list the topics");
        let metadata = loop {
            match retry.attempt(self.cluster.refresh(&Topics::All)).await {
                Ok(metadata) => break metadata,
                Err(error) => retry.failed(error).await?,
            }
        };
        let topics = metadata
            .topics()
            .filter(|topic| internal || !topic.internal);
        let mut topics: Vec<_> = topics.cloned().collect();
        topics.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(topics)
    }

    /// What there is to know of topics: their ids, partitions, leaders and replicas.
    pub async fn describe_topics(
        &self,
        names: &[ByteString],
    ) -> Result<Each<ByteString, Arc<TopicMetadata>>> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let mut retry = self.cluster.retry("describe topics");
        let topics = Topics::Named(names.to_vec());
        let (metadata, errors) = loop {
            match retry.attempt(self.cluster.refresh_errors(&topics)).await {
                Ok(answer) => break answer,
                Err(error) => retry.failed(error).await?,
            }
        };
        let describe = |name: &ByteString| {
            let error = errors.iter().find(|(topic, _)| topic == name);
            let result = match (error, metadata.topic(name)) {
                (None, Some(topic)) => Ok(topic.clone()),
                (error, _) => {
                    let code = error.map_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, |e| e.1);
                    Err(Error::kafka(ApiKey::Metadata, topic(name), code))
                }
            };
            (name.clone(), result)
        };
        Ok(names.iter().map(describe).collect())
    }
}

/// The only result.
pub(super) fn one<K, V>(
    mut results: Each<K, V>,
    api: ApiKey,
    subject: impl FnOnce() -> Subject,
) -> Result<V> {
    match results.pop() {
        Some((_, result)) => result,
        None => Err(Error::kafka(
            api,
            subject(),
            ErrorCode::UNKNOWN_SERVER_ERROR,
        )),
    }
}
