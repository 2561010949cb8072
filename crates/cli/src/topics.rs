//! `kohort topics`.

use std::collections::HashMap;

use clap::{Args, Subcommand};
use clap_complete::ArgValueCandidates;
use kohort::{
    Admin, ByteString, IsolationLevel, OffsetSpec, TopicPartition,
    admin::{ConfigEntry, ConfigResource, ConfigSource, ConfigType, NewTopic},
};
use serde_json::Value;

use crate::{
    client::{Connect, property},
    completion,
    failure::{Failure, Failures},
    output::{Output, Table, counted, line},
};

#[derive(Debug, Subcommand)]
pub(crate) enum Topics {
    Create(Create),
    List(List),
    Describe(Describe),
    Delete(Delete),
}

/// Create a topic
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  kohort topics create orders
  kohort topics create orders -p 6 -c retention.ms=86400000")]
pub(crate) struct Create {
    /// Topic name
    topic: String,
    /// Number of partitions [default: the broker's]
    #[arg(short, long, default_value_t = -1, hide_default_value = true)]
    partitions: i32,
    /// Replicas of each partition [default: the broker's]
    #[arg(short, long, default_value_t = -1, hide_default_value = true)]
    replication_factor: i16,
    /// Topic setting, such as cleanup.policy=compact; repeatable
    #[arg(short, long = "config", value_name = "NAME=VALUE", value_parser = property)]
    configs: Vec<(String, String)>,
    /// Succeed if the topic exists already
    #[arg(long)]
    if_not_exists: bool,
    #[command(flatten)]
    connect: Connect,
}

/// List topics
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  kohort topics list
  kohort topics list --internal -o json")]
pub(crate) struct List {
    /// Include internal topics, such as __consumer_offsets
    #[arg(long)]
    internal: bool,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

/// Show the partitions of topics and the offsets they hold, or their settings
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  kohort topics describe orders
  kohort topics describe orders --configs")]
pub(crate) struct Describe {
    /// Topic names [default: all topics]
    #[arg(value_name = "TOPIC", add = ArgValueCandidates::new(completion::topics))]
    topics: Vec<String>,
    /// Show the settings that differ from the defaults instead of the partitions
    #[arg(long)]
    configs: bool,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

/// Delete topics with all their records
#[derive(Debug, Args)]
#[command(after_help = "Example:
  kohort topics delete orders")]
pub(crate) struct Delete {
    /// Topic names
    #[arg(value_name = "TOPIC", required = true, add = ArgValueCandidates::new(completion::topics))]
    topics: Vec<String>,
    #[command(flatten)]
    connect: Connect,
}

impl Topics {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        match self {
            Topics::Create(create) => create.run().await,
            Topics::List(list) => list.run().await,
            Topics::Describe(describe) => describe.run().await,
            Topics::Delete(delete) => delete.run().await,
        }
    }
}

impl Create {
    async fn run(self) -> Result<(), Failure> {
        let admin = self.connect.admin().await?;
        let mut topic = NewTopic::new(self.topic.as_str(), self.partitions)
            .replication_factor(self.replication_factor);
        for (name, value) in self.configs {
            topic = topic.config(name, value);
        }
        match admin.create_topic(&topic).await {
            Ok(created) => {
                let partitions = created.partitions.unwrap_or(self.partitions);
                line(format_args!(
                    "created {} with {}",
                    self.topic,
                    counted(partitions.max(0) as usize, "partition")
                ))?;
                Ok(())
            }
            Err(error)
                if self.if_not_exists
                    && error.code() == Some(kohort::ErrorCode::TOPIC_ALREADY_EXISTS) =>
            {
                Ok(line(format_args!("{} exists already", self.topic))?)
            }
            Err(error) => Err(error.into()),
        }
    }
}

impl List {
    async fn run(self) -> Result<(), Failure> {
        let admin = self.connect.admin().await?;
        let mut table = Table::new(&["TOPIC", "PARTITIONS", "REPLICAS", "ID"]);
        for topic in admin.list_topics(self.internal).await? {
            let replicas = topic
                .partitions
                .first()
                .map_or(0, |first| first.replicas.len());
            table.row(vec![
                topic.name.to_string().into(),
                topic.partitions.len().into(),
                replicas.into(),
                topic.id.to_string().into(),
            ]);
        }
        Ok(self.output.print(&table)?)
    }
}

impl Describe {
    async fn run(self) -> Result<(), Failure> {
        let admin = self.connect.admin().await?;
        let names: Vec<ByteString> = if self.topics.is_empty() {
            let topics = admin.list_topics(false).await?;
            topics.iter().map(|topic| topic.name.clone()).collect()
        } else {
            self.topics
                .iter()
                .map(|name| name.as_str().into())
                .collect()
        };
        let mut failures = Failures::default();
        let table = if self.configs {
            configs(&admin, &names, &mut failures).await
        } else {
            partitions(&admin, &names, &mut failures).await?
        };
        if !table.is_empty() || failures.is_empty() {
            self.output.print(&table)?;
        }
        failures.finish()
    }
}

async fn configs(admin: &Admin, names: &[ByteString], failures: &mut Failures) -> Table {
    let mut table = Table::new(&["TOPIC", "SETTING", "VALUE"]);
    let resources: Vec<_> = names.iter().cloned().map(ConfigResource::topic).collect();
    for (resource, entries) in admin.describe_configs(&resources, false).await {
        let entries = failures.take(entries).unwrap_or_default();
        for entry in entries
            .into_iter()
            .filter(|entry| entry.source == ConfigSource::Topic)
        {
            table.row(vec![
                resource.name.to_string().into(),
                entry.name.to_string().into(),
                typed(&entry),
            ]);
        }
    }
    table
}

/// The value of a setting, as the type that the broker says it has.
fn typed(entry: &ConfigEntry) -> Value {
    let Some(value) = entry.value.as_deref() else {
        return Value::Null;
    };
    let typed = match entry.config_type {
        ConfigType::Boolean => value.parse().ok().map(Value::Bool),
        ConfigType::Number => serde_json::from_str(value).ok().filter(Value::is_number),
        ConfigType::List => {
            let items = value.split(',').map(str::trim);
            Some(items.filter(|item| !item.is_empty()).collect())
        }
        ConfigType::Text => None,
    };
    typed.unwrap_or_else(|| value.into())
}

async fn partitions(
    admin: &Admin,
    names: &[ByteString],
    failures: &mut Failures,
) -> Result<Table, Failure> {
    let mut table = Table::new(&[
        "TOPIC",
        "PARTITION",
        "LEADER",
        "REPLICAS",
        "IN-SYNC",
        "EARLIEST",
        "LATEST",
    ]);
    for (_, topic) in admin.describe_topics(names).await? {
        let Some(topic) = failures.take(topic) else {
            continue;
        };
        let all = topic
            .partitions
            .iter()
            .map(|p| TopicPartition::new(topic.name.clone(), p.partition));
        let all: Vec<_> = all.collect();
        let (earliest, latest) = tokio::join!(
            listed_offsets(admin, &all, OffsetSpec::Earliest),
            listed_offsets(admin, &all, OffsetSpec::Latest)
        );
        for ((partition, earliest), latest) in topic.partitions.iter().zip(earliest).zip(latest) {
            // A partition that is not available is reported, and the others are shown.
            let earliest = failures.take(earliest).flatten();
            let latest = latest.ok().flatten();
            table.row(vec![
                topic.name.to_string().into(),
                partition.partition.into(),
                partition.leader.into(),
                ids(&partition.replicas),
                ids(&partition.in_sync),
                earliest.into(),
                latest.into(),
            ]);
        }
    }
    Ok(table)
}

fn ids(brokers: &[i32]) -> Value {
    brokers.iter().copied().collect()
}

/// The offsets of partitions, in their order; `None` where there is no record of that time.
pub(crate) async fn listed_offsets(
    admin: &Admin,
    partitions: &[TopicPartition],
    spec: OffsetSpec,
) -> Vec<Result<Option<i64>, kohort::Error>> {
    let wanted: Vec<_> = partitions
        .iter()
        .map(|partition| (partition.clone(), spec))
        .collect();
    let listed = admin
        .list_offsets(&wanted, IsolationLevel::ReadUncommitted)
        .await;
    let listed: HashMap<_, _> = listed.into_iter().collect();
    let offset = |wanted: &TopicPartition| match listed.get(wanted) {
        Some(Ok(listed)) => Ok(listed.offset),
        Some(Err(error)) => Err(error.clone()),
        None => Ok(None),
    };
    partitions.iter().map(offset).collect()
}

impl Delete {
    async fn run(self) -> Result<(), Failure> {
        let admin = self.connect.admin().await?;
        let names: Vec<ByteString> = self
            .topics
            .iter()
            .map(|name| name.as_str().into())
            .collect();
        let mut failures = Failures::default();
        for (name, result) in admin.delete_topics(&names).await? {
            if failures.take(result).is_some() {
                line(format_args!("deleted {name}"))?;
            }
        }
        failures.finish()
    }
}
