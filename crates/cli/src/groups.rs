//! `kohort groups`.

use std::collections::BTreeMap;

use clap::{Args, Subcommand};
use kohort::{
    Admin, ByteString, ErrorCode, OffsetSpec, TopicPartition,
    admin::{GroupDescription, GroupFilter, MemberDescription, MemberProtocol},
};
use serde_json::Value;

use crate::{
    client::Connect,
    failure::{Failure, Failures},
    output::{Output, Table, line},
    topics::offsets,
};

#[derive(Debug, Subcommand)]
pub(crate) enum Groups {
    /// List groups.
    #[command(after_help = "Example:
  kohort groups list --state stable,empty")]
    List(List),
    /// Show a group's offsets and lag, its members, or its state.
    #[command(after_help = "Examples:
  kohort groups describe billing
  kohort groups describe billing --members
  kohort groups describe --all --state -o json")]
    Describe(Describe),
    /// Explain what a group waits for, why, until when, and what to do about it.
    #[command(after_help = "Example:
  kohort groups explain billing --watch")]
    Explain(crate::explain::Explain),
    /// Show what happened to a group, when and why, and which member delayed it.
    #[command(after_help = "Example:
  kohort groups history billing --since 2h")]
    History(crate::history::History),
    Rewind(Box<crate::rewind::Rewind>),
    /// Delete groups without members and their committed offsets.
    #[command(after_help = "Example:
  kohort groups delete billing")]
    Delete(Delete),
}

#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    connect: Connect,
    #[command(flatten)]
    output: Output,
    /// Only groups in these states, such as stable or empty.
    #[arg(long, value_delimiter = ',', value_name = "STATE", value_parser = state)]
    state: Vec<String>,
    /// Only groups of these types: classic, consumer, share or streams.
    #[arg(long = "type", value_delimiter = ',', value_name = "TYPE", value_parser = kind)]
    kind: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Describe {
    #[command(flatten)]
    connect: Connect,
    #[command(flatten)]
    output: Output,
    /// Ids of the groups.
    #[arg(required_unless_present = "all")]
    groups: Vec<String>,
    /// Describe all groups.
    #[arg(long, conflicts_with = "groups")]
    all: bool,
    /// Committed offset, lag and owner of each partition (the default).
    #[arg(long, conflicts_with_all = ["members", "state"])]
    offsets: bool,
    /// Members and their assignments.
    #[arg(long, conflicts_with = "state")]
    members: bool,
    /// State, assignor, epochs and number of members.
    #[arg(long)]
    state: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Delete {
    #[command(flatten)]
    connect: Connect,
    /// Ids of the groups.
    #[arg(required = true)]
    groups: Vec<String>,
}

/// The states that groups of any kind may have, on any cluster.
const STATES: [&str; 8] = [
    "PreparingRebalance",
    "CompletingRebalance",
    "Assigning",
    "Reconciling",
    "Stable",
    "Empty",
    "NotReady",
    "Dead",
];

fn state(text: &str) -> Result<String, String> {
    one_of(&STATES, text)
}

fn kind(text: &str) -> Result<String, String> {
    one_of(&["classic", "consumer", "share", "streams"], text)
}

/// Clusters list no groups, and say nothing, if asked for what there is not.
fn one_of(known: &[&str], text: &str) -> Result<String, String> {
    let found = known.iter().find(|name| name.eq_ignore_ascii_case(text));
    found
        .map(|name| (*name).to_owned())
        .ok_or_else(|| format!("write one of {}", known.join(", ")))
}

impl Groups {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        match self {
            Groups::List(list) => list.run().await,
            Groups::Describe(describe) => describe.run().await,
            Groups::Explain(explain) => explain.run().await,
            Groups::History(history) => history.run().await,
            Groups::Rewind(rewind) => rewind.run().await,
            Groups::Delete(delete) => delete.run().await,
        }
    }
}

impl List {
    async fn run(self) -> Result<(), Failure> {
        let admin = self.connect.admin().await?;
        let filter = GroupFilter {
            states: self
                .state
                .iter()
                .map(|state| state.as_str().into())
                .collect(),
            types: self.kind.iter().map(|kind| kind.as_str().into()).collect(),
        };
        let mut groups = admin.list_groups(&filter).await?;
        groups.sort_by(|a, b| a.group_id.cmp(&b.group_id));
        let mut table = Table::new(&["GROUP", "TYPE", "PROTOCOL", "STATE"]);
        for group in groups {
            table.row(vec![
                group.group_id.to_string().into(),
                group.group_type.to_string().into(),
                Some(group.protocol_type.to_string())
                    .filter(|name| !name.is_empty())
                    .into(),
                group.state.to_string().into(),
            ]);
        }
        Ok(self.output.print(&table)?)
    }
}

impl Describe {
    async fn run(self) -> Result<(), Failure> {
        let admin = self.connect.admin().await?;
        let ids: Vec<ByteString> = match self.all {
            true => {
                let groups = admin.list_groups(&GroupFilter::default()).await?;
                groups.into_iter().map(|group| group.group_id).collect()
            }
            false => self.groups.iter().map(|id| id.as_str().into()).collect(),
        };
        let mut failures = Failures::default();
        let mut described = Vec::new();
        for (_, result) in admin.describe_groups(&ids).await {
            described.extend(failures.take(result));
        }
        let table = if self.members {
            members(&described)
        } else if self.state {
            states(&described)
        } else {
            let mut table = Table::new(&OFFSETS);
            for group in &described {
                let rows = group_offsets(&admin, group).await;
                for row in failures.take(rows).unwrap_or_default() {
                    table.row(row);
                }
            }
            table
        };
        if !table.is_empty() || failures.is_empty() {
            self.output.print(&table)?;
        }
        if !self.members && !self.state {
            for group in &described {
                remark_if_inactive(self.output, group, &table);
            }
        }
        failures.finish()
    }
}

fn remark_if_inactive(output: Output, group: &GroupDescription, table: &Table) {
    let group_id = group.group_id.replace(char::is_control, "\u{fffd}");
    if group.members.is_empty() {
        output.remark(format_args!("group {group_id} has no members"));
    } else if table.is_empty() {
        output.remark(format_args!("group {group_id} has committed nothing"));
    }
}

const OFFSETS: [&str; 9] = [
    "GROUP",
    "TOPIC",
    "PARTITION",
    "CURRENT-OFFSET",
    "LOG-END-OFFSET",
    "LAG",
    "CONSUMER-ID",
    "HOST",
    "CLIENT-ID",
];

/// A row for each partition that the group has committed or that a member owns.
async fn group_offsets(
    admin: &Admin,
    group: &GroupDescription,
) -> Result<Vec<Vec<Value>>, kohort::Error> {
    let mut partitions: BTreeMap<TopicPartition, (Option<i64>, Option<&MemberDescription>)> =
        BTreeMap::new();
    for (partition, committed) in admin.list_group_offsets(&group.group_id, None).await? {
        let offset = committed?.map(|committed| committed.offset);
        partitions.entry(partition).or_default().0 = offset;
    }
    for member in &group.members {
        for partition in &member.assignment {
            partitions.entry(partition.clone()).or_default().1 = Some(member);
        }
    }
    let names: Vec<_> = partitions.keys().cloned().collect();
    let ends = offsets(admin, &names, OffsetSpec::Latest).await;
    let rows = partitions
        .into_iter()
        .zip(ends)
        .map(|((partition, (committed, owner)), end)| {
            let lag = committed
                .zip(end)
                .map(|(committed, end)| (end - committed).max(0));
            vec![
                group.group_id.to_string().into(),
                partition.topic.to_string().into(),
                partition.partition.into(),
                committed.into(),
                end.into(),
                lag.into(),
                owner.map(|member| member.member_id.to_string()).into(),
                owner.map(|member| member.client_host.to_string()).into(),
                owner.map(|member| member.client_id.to_string()).into(),
            ]
        });
    Ok(rows.collect())
}

fn members(groups: &[GroupDescription]) -> Table {
    let mut table = Table::new(&[
        "GROUP",
        "CONSUMER-ID",
        "INSTANCE-ID",
        "HOST",
        "CLIENT-ID",
        "PROTOCOL",
        "EPOCH",
        "PARTITIONS",
        "ASSIGNMENT",
        "TARGET",
    ]);
    for group in groups {
        for member in &group.members {
            let protocol = match member.protocol {
                MemberProtocol::Classic => "classic",
                MemberProtocol::Consumer => "consumer",
            };
            table.row(vec![
                group.group_id.to_string().into(),
                member.member_id.to_string().into(),
                member.instance_id.as_ref().map(ToString::to_string).into(),
                member.client_host.to_string().into(),
                member.client_id.to_string().into(),
                protocol.into(),
                member.epoch.into(),
                member.assignment.len().into(),
                by_topic(&member.assignment),
                member.target_assignment.as_deref().map(by_topic).into(),
            ]);
        }
    }
    table
}

/// The numbers of the partitions, by topic.
fn by_topic(partitions: &[TopicPartition]) -> Value {
    let mut topics: BTreeMap<&str, Vec<i32>> = BTreeMap::new();
    for partition in partitions {
        topics
            .entry(&partition.topic)
            .or_default()
            .push(partition.partition);
    }
    let sorted = |(topic, mut numbers): (&str, Vec<i32>)| {
        numbers.sort_unstable();
        (topic.to_owned(), numbers.into())
    };
    Value::Object(topics.into_iter().map(sorted).collect())
}

fn states(groups: &[GroupDescription]) -> Table {
    let mut table = Table::new(&[
        "GROUP",
        "COORDINATOR",
        "TYPE",
        "ASSIGNOR",
        "STATE",
        "GROUP-EPOCH",
        "TARGET-EPOCH",
        "MEMBERS",
    ]);
    for group in groups {
        table.row(vec![
            group.group_id.to_string().into(),
            group.coordinator.into(),
            group.group_type.to_string().into(),
            Some(group.assignor.to_string())
                .filter(|name| !name.is_empty())
                .into(),
            group.state.to_string().into(),
            group.group_epoch.into(),
            group.assignment_epoch.into(),
            group.members.len().into(),
        ]);
    }
    table
}

impl Delete {
    async fn run(self) -> Result<(), Failure> {
        let admin = self.connect.admin().await?;
        let ids: Vec<ByteString> = self.groups.iter().map(|id| id.as_str().into()).collect();
        let mut failures = Failures::default();
        for (id, result) in admin.delete_groups(&ids).await {
            let result = result.map_err(|error| match error.code() {
                Some(ErrorCode::NON_EMPTY_GROUP) => {
                    format!("group {id} has members: stop them first")
                }
                _ => error.to_string(),
            });
            if failures.take(result).is_some() {
                line(format_args!("deleted {id}"))?;
            }
        }
        failures.finish()
    }
}
