//! `kohort topics`.

use std::collections::HashMap;

use clap::{Args, Subcommand};
use kohort::{
    ByteString, IsolationLevel, OffsetSpec, TopicPartition,
    admin::{ConfigResource, ConfigSource, NewTopic},
};

use crate::{
    client::Connect,
    failure::{Failure, Failures},
    output::{Output, Table, line},
};

#[derive(Debug, Subcommand)]
pub(crate) enum Topics {
    /// Create a topic.
    #[command(after_help = "Example:
  kohort topics create orders -p 6 -c retention.ms=86400000")]
    Create(Create),
    /// List topics.
    #[command(after_help = "Example:
  kohort topics list -o json")]
    List(List),
    /// Show topics' partitions, leaders, replicas and offsets, or their settings.
    #[command(after_help = "Examples:
  kohort topics describe orders
  kohort topics describe orders --configs")]
    Describe(Describe),
    /// Delete topics and all their records.
    #[command(after_help = "Example:
  kohort topics delete orders payments")]
    Delete(Delete),
}

#[derive(Debug, Args)]
pub(crate) struct Create {
    #[command(flatten)]
    connect: Connect,
    /// Name of the topic.
    topic: String,
    /// Number of partitions [default: the broker's num.partitions].
    #[arg(short, long, value_name = "COUNT", default_value_t = -1, hide_default_value = true)]
    partitions: i32,
    /// Replicas of each partition [default: the broker's setting].
    #[arg(short, long, value_name = "COUNT", default_value_t = -1, hide_default_value = true)]
    replication_factor: i16,
    /// Topic setting, such as cleanup.policy=compact; can be repeated.
    #[arg(short, long = "config", value_name = "NAME=VALUE", value_parser = setting)]
    configs: Vec<(String, String)>,
    /// Succeed if the topic exists already.
    #[arg(long)]
    if_not_exists: bool,
}

#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    connect: Connect,
    #[command(flatten)]
    output: Output,
    /// Include internal topics.
    #[arg(long)]
    internal: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Describe {
    #[command(flatten)]
    connect: Connect,
    #[command(flatten)]
    output: Output,
    /// Names of the topics [default: all].
    topics: Vec<String>,
    /// Show the settings that differ from the defaults instead.
    #[arg(long)]
    configs: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Delete {
    #[command(flatten)]
    connect: Connect,
    /// Names of the topics.
    #[arg(required = true)]
    topics: Vec<String>,
}

fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write it as name=value".to_owned()),
    }
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
                    "created {} with {partitions} {}",
                    self.topic,
                    match partitions {
                        1 => "partition",
                        _ => "partitions",
                    }
                ))?;
                Ok(())
            }
            Err(error)
                if self.if_not_exists
                    && error.code() == Some(kohort::ErrorCode::TOPIC_ALREADY_EXISTS) =>
            {
                Ok(line(format_args!("{} exists", self.topic))?)
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
        let names: Vec<ByteString> = match self.topics.is_empty() {
            true => {
                let topics = admin.list_topics(false).await?;
                topics.iter().map(|topic| topic.name.clone()).collect()
            }
            false => self
                .topics
                .iter()
                .map(|name| name.as_str().into())
                .collect(),
        };
        let mut failures = Failures::default();
        let table = match self.configs {
            true => configs(&admin, &names, &mut failures).await,
            false => partitions(&admin, &names, &mut failures).await?,
        };
        if !table.is_empty() || failures.is_empty() {
            self.output.print(&table)?;
        }
        failures.finish()
    }
}

async fn configs(admin: &kohort::Admin, names: &[ByteString], failures: &mut Failures) -> Table {
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
                entry.value.map(|value| value.to_string()).into(),
            ]);
        }
    }
    table
}

async fn partitions(
    admin: &kohort::Admin,
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
        let earliest = listed_offsets(admin, &all, OffsetSpec::Earliest).await;
        let latest = offsets(admin, &all, OffsetSpec::Latest).await;
        for ((partition, earliest), latest) in topic.partitions.iter().zip(earliest).zip(latest) {
            // What it does not say of one it says on standard error, and shows the others.
            let earliest = failures.take(earliest).flatten();
            table.row(vec![
                topic.name.to_string().into(),
                partition.partition.into(),
                partition.leader.into(),
                partition.replicas.clone().into(),
                partition.in_sync.clone().into(),
                earliest.into(),
                latest.into(),
            ]);
        }
    }
    Ok(table)
}

/// The offsets of partitions, in their order; `None` for those whose leader does not answer.
pub(crate) async fn offsets(
    admin: &kohort::Admin,
    partitions: &[TopicPartition],
    spec: OffsetSpec,
) -> Vec<Option<i64>> {
    let listed = listed_offsets(admin, partitions, spec).await;
    listed.into_iter().map(|it| it.ok().flatten()).collect()
}

/// The offsets of partitions, in their order; `None` where there is no record of that time.
pub(crate) async fn listed_offsets(
    admin: &kohort::Admin,
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
        Some(found) => found.as_ref().map(|it| it.offset).map_err(Clone::clone),
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
