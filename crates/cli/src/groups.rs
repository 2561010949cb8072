//! `kohort groups`.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use clap::{Args, Subcommand};
use clap_complete::ArgValueCandidates;
use kohort::{
    Admin, ByteString, ErrorCode, TopicPartition,
    admin::{GroupDescription, GroupFilter, MemberDescription, MemberProtocol},
};
use serde_json::Value;

use crate::{
    client::Connect,
    completion,
    failure::{Failure, Failures},
    lag::{Bounds, Committed, committed},
    output::{Output, Table, line, remark},
};

#[derive(Debug, Subcommand)]
pub(crate) enum Groups {
    List(List),
    Describe(Describe),
    Explain(crate::explain::Explain),
    History(crate::history::History),
    Rewind(Box<crate::rewind::Rewind>),
    Delete(Delete),
}

/// List groups
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  kohort groups list
  kohort groups list --state stable --type consumer -o json")]
pub(crate) struct List {
    /// Only groups in these states, such as stable or empty
    #[arg(long, value_delimiter = ',', value_name = "STATE", value_parser = state)]
    state: Vec<String>,
    /// Only groups of these types, such as classic or consumer
    #[arg(long = "type", value_delimiter = ',', value_name = "TYPE", value_parser = kind)]
    kind: Vec<String>,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

/// Show a group's offsets and lag, its members, or its state
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  kohort groups describe billing
  kohort groups describe billing --members
  kohort groups describe --all -o json")]
pub(crate) struct Describe {
    /// Group ids
    #[arg(value_name = "GROUP", required_unless_present = "all",
          add = ArgValueCandidates::new(completion::groups))]
    groups: Vec<String>,
    /// All groups
    #[arg(long, conflicts_with = "groups")]
    all: bool,
    /// Committed offset, end of the log, lag and owner of each partition (default)
    #[arg(long, conflicts_with_all = ["members", "state"])]
    offsets: bool,
    /// Members and their partitions
    #[arg(long, conflicts_with = "state")]
    members: bool,
    /// State, coordinator, assignor and epochs
    #[arg(long)]
    state: bool,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

/// Delete groups that have no members, including their committed offsets
#[derive(Debug, Args)]
#[command(after_help = "Example:
  kohort groups delete billing")]
pub(crate) struct Delete {
    /// Group ids
    #[arg(value_name = "GROUP", required = true,
          add = ArgValueCandidates::new(completion::groups))]
    groups: Vec<String>,
    #[command(flatten)]
    connect: Connect,
}

/// The states of groups of any type, on any cluster.
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

/// A cluster that is asked for an unknown state lists no groups and reports no error.
fn one_of(known: &[&str], text: &str) -> Result<String, String> {
    let found = known.iter().find(|name| name.eq_ignore_ascii_case(text));
    found
        .map(|name| (*name).to_owned())
        .ok_or_else(|| format!("expected one of {}", known.join(", ")))
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
        let ids: Vec<ByteString> = if self.all {
            let groups = admin.list_groups(&GroupFilter::default()).await?;
            groups.into_iter().map(|group| group.group_id).collect()
        } else {
            self.groups.iter().map(|id| id.as_str().into()).collect()
        };
        let mut failures = Failures::default();
        let mut described = Vec::new();
        for (_, result) in admin.describe_groups(&ids).await {
            described.extend(failures.take(result));
        }
        let is_offsets = !self.members && !self.state;
        let mut remarks = Vec::new();
        let table = if self.members {
            members(&described)
        } else if self.state {
            states(&described)
        } else {
            offsets(&admin, &described, &mut remarks, &mut failures).await
        };
        if !table.is_empty() || failures.is_empty() {
            self.output.print(&table)?;
        }
        if is_offsets {
            remark_empty(&described);
        }
        remarks.iter().for_each(remark);
        failures.finish()
    }
}

/// Says which groups have no members, or of many groups how many.
fn remark_empty(described: &[GroupDescription]) {
    const NAMED_MAX: usize = 5;
    let empty = || described.iter().filter(|group| group.members.is_empty());
    let count = empty().count();
    if count > NAMED_MAX {
        remark(format_args!(
            "{count} of {} groups have no members",
            described.len()
        ));
        return;
    }
    for group in empty() {
        remark(format_args!("group {} has no members", group.group_id));
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

/// How a group stands in each partition it has committed or owns.
type Partitions<'a> = BTreeMap<TopicPartition, (Option<i64>, Option<&'a MemberDescription>)>;

/// A row for each partition that a group has committed or that a member owns.
async fn offsets(
    admin: &Admin,
    groups: &[GroupDescription],
    remarks: &mut Vec<String>,
    failures: &mut Failures,
) -> Table {
    let ids = groups.iter().map(|group| group.group_id.clone());
    let mut committed: HashMap<ByteString, _> = committed(admin, ids).await;
    let mut all: Vec<(&GroupDescription, Partitions<'_>)> = Vec::with_capacity(groups.len());
    for group in groups {
        let offsets: Option<Committed> = committed
            .remove(&group.group_id)
            .and_then(|offsets| failures.take(offsets));
        if let Some(offsets) = offsets {
            all.push((group, partitions(group, offsets)));
        }
    }
    let names: BTreeSet<TopicPartition> = all
        .iter()
        .flat_map(|(_, partitions)| partitions.keys().cloned())
        .collect();
    let bounds = Bounds::of(admin, names).await;
    let mut table = Table::with_details(&OFFSETS, &["LOG-START-OFFSET", "DELETED-UNREAD"]);
    for (group, partitions) in all {
        if partitions.is_empty() && !group.members.is_empty() {
            remarks.push(format!(
                "group {} has no committed offsets and owns no partitions",
                group.group_id
            ));
        }
        for (name, (offset, owner)) in partitions {
            let position = bounds.position(&name, offset);
            let lag = &position.lag;
            table.row(vec![
                group.group_id.to_string().into(),
                name.topic.to_string().into(),
                name.partition.into(),
                offset.into(),
                lag.end.into(),
                lag.lag().into(),
                owner.map(|member| member.member_id.to_string()).into(),
                owner.map(|member| member.client_host.to_string()).into(),
                owner.map(|member| member.client_id.to_string()).into(),
                lag.start.into(),
                lag.gone().into(),
            ]);
            remarks.extend(position.remark(&group.group_id));
            if let Some(problem) = position.problem {
                failures.add(format!("the lag of {name} is unknown: {problem}"));
            }
        }
    }
    table
}

fn partitions(group: &GroupDescription, committed: Committed) -> Partitions<'_> {
    let committed = committed.into_iter();
    let mut partitions: Partitions<'_> = committed
        .map(|(partition, offset)| (partition, (offset, None)))
        .collect();
    for member in &group.members {
        for partition in &member.assignment {
            partitions.entry(partition.clone()).or_default().1 = Some(member);
        }
    }
    partitions
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

/// The partitions by topic.
fn by_topic(partitions: &[TopicPartition]) -> Value {
    let mut topics: BTreeMap<&str, BTreeSet<i32>> = BTreeMap::new();
    for partition in partitions {
        let numbers = topics.entry(&partition.topic).or_default();
        numbers.insert(partition.partition);
    }
    let topics = topics.into_iter();
    let topics = topics.map(|(topic, numbers)| (topic.to_owned(), numbers.into_iter().collect()));
    Value::Object(topics.collect())
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
                    format!("group {id} has members: stop them, then delete it")
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
