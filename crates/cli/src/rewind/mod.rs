//! `kohort groups rewind`.

mod file;
mod standing;

use std::{collections::BTreeSet, path::PathBuf, time::Duration};

use clap::{ArgGroup, Args};
use clap_complete::ArgValueCandidates;
use kohort::{
    Admin, Error, TopicPartition,
    admin::{LastRewind, RewindStep, RewindTo},
};

use crate::{
    client::{Connect, seconds},
    completion,
    failure::{Failure, Failures},
    output::{Output, Table, counted, remark},
    signals::Signals,
    times::{clock, datetime, duration},
};
use standing::Standing;

/// How long to look, after an interruption, whether the rewind is still pending.
const LOOK_AFTERWARDS: Duration = Duration::from_secs(2);

/// Set a group's committed offsets, on kohort serve also while its members run
///
/// Without --execute this is a dry run that shows the current and the new offsets. On kohort serve,
/// the members of a running group release the partitions, and their next owners start at the new
/// offsets. On other clusters the group must not have members.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("which").required(true).args(["topics", "all_topics", "from_file", "undo"])))]
#[command(group(ArgGroup::new("where").args([
    "to_earliest", "to_latest", "to_offset", "to_datetime", "by_duration", "shift_by",
])))]
#[command(
    override_usage = "kohort groups rewind <GROUP> <PARTITIONS> <TARGET> [OPTIONS]
       kohort groups rewind <GROUP> --from-file <CSV> [OPTIONS]
       kohort groups rewind <GROUP> --undo [OPTIONS]"
)]
#[command(after_help = "Examples:
  kohort groups rewind billing --topic orders --to-earliest
  kohort groups rewind billing --topic orders:0,1 --by-duration 2h --execute
  kohort groups rewind billing --all-topics --to-datetime 2026-11-29T14:00 --execute
  kohort groups rewind billing --undo --execute")]
pub(crate) struct Rewind {
    /// Group id
    #[arg(add = ArgValueCandidates::new(completion::groups))]
    group: String,
    /// Topic, or partitions of it, such as orders or orders:0,1; repeatable
    #[arg(long = "topic", value_name = "TOPIC[:0,1]", value_parser = topic, requires = "where",
          add = ArgValueCandidates::new(completion::topics))]
    topics: Vec<(String, Vec<i32>)>,
    /// All partitions the group has committed or owns
    #[arg(long, requires = "where")]
    all_topics: bool,
    /// Read partitions and offsets from a file with lines of topic,partition,offset
    #[arg(long, value_name = "CSV", conflicts_with = "where")]
    from_file: Option<PathBuf>,
    /// Cancel the pending rewind, or else revert the last one (kohort serve only)
    #[arg(long, conflicts_with = "where")]
    undo: bool,
    /// To the first record
    #[arg(long)]
    to_earliest: bool,
    /// To the end, after the last record
    #[arg(long)]
    to_latest: bool,
    /// To this offset
    #[arg(long, value_name = "OFFSET")]
    to_offset: Option<i64>,
    /// To the first record at or after a time, such as 2026-11-29T20:00 (UTC)
    #[arg(long, value_name = "TIME", value_parser = datetime)]
    to_datetime: Option<i64>,
    /// To the first record of the last 90m, 7d or PT2H30M
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    by_duration: Option<Duration>,
    /// By a number of records from the committed offset, such as -100 or +100
    #[arg(long, value_name = "RECORDS", allow_hyphen_values = true)]
    shift_by: Option<i64>,
    /// Use the nearest offset in the log instead of refusing one outside it
    #[arg(long)]
    clamp: bool,
    /// Apply the change
    #[arg(long)]
    execute: bool,
    /// With --execute: create the group if it does not exist
    #[arg(long, requires = "execute")]
    create: bool,
    /// Seconds to wait for members to release the partitions
    #[arg(long, default_value = "600", value_name = "SECONDS", value_parser = seconds)]
    wait: Duration,
    /// First save the committed offsets to a file that --from-file accepts
    #[arg(long, value_name = "CSV")]
    save: Option<PathBuf>,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

const HEADINGS: [&str; 6] = [
    "GROUP",
    "TOPIC",
    "PARTITION",
    "CURRENT-OFFSET",
    "NEW-OFFSET",
    "CHANGE",
];

impl Rewind {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let admin = self.connect.admin().await?;
        if self.undo
            && let Some(pending) = admin.pending_rewind(&self.group).await?
        {
            return self.cancel(&admin, pending).await;
        }
        let steps = self.plan(&admin).await?;
        if steps.is_empty() {
            return Err(Failure::new(format!(
                "group {} has no committed offsets and owns no partitions: name topics with --topic",
                self.group
            )));
        }
        let standing = Standing::of(&admin, &self.group, &steps).await?;
        if self.execute {
            standing.may_execute(&self.group, self.create)?;
        }
        if let Some(path) = &self.save {
            file::write(path, &steps)?;
        }
        if !self.execute {
            self.output.print(&self.table(&steps))?;
            remark(format_args!(
                "dry run: nothing changed. {}",
                standing.what_execute_does(&self.group)
            ));
            return Ok(());
        }
        self.execute(&admin, &steps, &standing).await
    }

    /// Shows the plan, says what is pending and how to cancel it, and reports what was done.
    async fn execute(
        &self,
        admin: &Admin,
        steps: &[RewindStep],
        standing: &Standing,
    ) -> Result<(), Failure> {
        let mut signals = Signals::new()?;
        if !self.output.is_json() {
            self.output.print(&self.table(steps))?;
        }
        if standing.members > 0 {
            remark(format_args!(
                "waiting for {} to release the partitions. Ctrl-C stops waiting, but the rewind \
                 stays pending; to cancel it: {}",
                counted(standing.members, "member"),
                self.how_to_cancel()
            ));
        }
        let done = tokio::select! {
            done = admin.execute_rewind(&self.group, steps, self.wait) => done,
            () = signals.next() => return Err(self.interrupted(admin).await),
        };
        let done = done.map_err(|error| match error {
            Error::Timeout { .. } => Failure::new(format!(
                "the members of group {} have not released the partitions within {}s. The rewind is \
                 still pending: `kohort groups explain {}` shows what it waits for, the same command \
                 waits again, and `{}` cancels it",
                self.group,
                self.wait.as_secs_f64(),
                self.group,
                self.how_to_cancel()
            )),
            error => error.into(),
        })?;
        // The members may have committed since the plan was made.
        if self.output.is_json() || done != steps {
            self.output.print(&self.table(&done))?;
        }
        self.output.say(format_args!(
            "rewound group {}: {} changed",
            self.group,
            counted(done.len(), "partition")
        ))?;
        Ok(())
    }

    fn how_to_cancel(&self) -> String {
        format!("kohort groups rewind {} --undo --execute", self.group)
    }

    /// What has become of the rewind that is no longer waited for.
    async fn interrupted(&self, admin: &Admin) -> Failure {
        let group = &self.group;
        let pending = tokio::time::timeout(LOOK_AFTERWARDS, admin.pending_rewind(group)).await;
        Failure::new(match pending {
            Ok(Ok(Some(_))) => format!(
                "interrupted: the rewind of group {group} is still pending, and completes when the \
                 members have released the partitions; to cancel it: {}",
                self.how_to_cancel()
            ),
            Ok(Ok(None)) => format!(
                "interrupted: no rewind of group {group} is pending; whether it was applied shows: \
                 kohort groups describe {group}"
            ),
            _ => format!(
                "interrupted: the rewind of group {group} may still be pending, see `kohort groups \
                 explain {group}`; to cancel it: {}",
                self.how_to_cancel()
            ),
        })
    }

    /// Cancels a rewind that is pending.
    async fn cancel(&self, admin: &Admin, pending: LastRewind) -> Result<(), Failure> {
        let asked_at = clock(pending.at);
        if !self.execute {
            self.output.print(&self.table(&pending.steps))?;
            remark(format_args!(
                "dry run: nothing changed. This rewind, requested at {asked_at}, is still pending. \
                 Pass --execute to cancel it"
            ));
            return Ok(());
        }
        let stays: Vec<RewindStep> = admin
            .cancel_rewind(&self.group)
            .await?
            .into_iter()
            .map(|step| RewindStep {
                to: step.before.clone(),
                ..step
            })
            .collect();
        self.output.print(&self.table(&stays))?;
        self.output.say(format_args!(
            "cancelled the rewind that was requested at {asked_at}; no offset was changed"
        ))?;
        Ok(())
    }

    async fn plan(&self, admin: &Admin) -> Result<Vec<RewindStep>, Failure> {
        if self.undo {
            return Ok(admin.plan_undo(&self.group, self.clamp).await?);
        }
        let goals = match &self.from_file {
            Some(path) => file::read(path)?,
            None => {
                let to = self.to()?;
                let partitions = self.partitions(admin).await?;
                partitions.into_iter().map(|name| (name, to)).collect()
            }
        };
        Ok(admin.plan_rewind(&self.group, &goals, self.clamp).await?)
    }

    fn to(&self) -> Result<RewindTo, Failure> {
        let mut all = [
            self.to_earliest.then_some(RewindTo::Earliest),
            self.to_latest.then_some(RewindTo::Latest),
            self.to_offset.map(RewindTo::Offset),
            self.to_datetime.map(RewindTo::Timestamp),
            self.by_duration.map(RewindTo::Ago),
            self.shift_by.map(RewindTo::ShiftBy),
        ]
        .into_iter();
        all.find_map(|to| to).ok_or_else(|| {
            Failure::new("missing target: pass --to-earliest, --to-offset N or another --to option")
        })
    }

    async fn partitions(&self, admin: &Admin) -> Result<BTreeSet<TopicPartition>, Failure> {
        let mut partitions = BTreeSet::new();
        if self.all_topics {
            let offsets = admin.list_group_offsets(&self.group, None).await?;
            partitions.extend(offsets.into_iter().map(|(name, _)| name));
            if let Ok(group) = admin.describe_group(&self.group).await {
                let members = group.members.into_iter();
                partitions.extend(members.flat_map(|member| member.assignment));
            }
            return Ok(partitions);
        }
        let whole: Vec<_> = self
            .topics
            .iter()
            .filter(|(_, some)| some.is_empty())
            .map(|(name, _)| name.as_str().into())
            .collect();
        let mut failures = Failures::default();
        for (name, described) in admin.describe_topics(&whole).await? {
            if let Some(topic) = failures.take(described) {
                let all = topic.partitions.iter();
                partitions.extend(all.map(|p| TopicPartition::new(name.clone(), p.partition)));
            }
        }
        failures.finish()?;
        for (name, some) in &self.topics {
            let some = some.iter();
            partitions.extend(some.map(|&index| TopicPartition::new(name.as_str(), index)));
        }
        Ok(partitions)
    }

    fn table(&self, steps: &[RewindStep]) -> Table {
        let mut steps: Vec<&RewindStep> = steps.iter().collect();
        steps.sort_by(|a, b| a.partition.cmp(&b.partition));
        let mut table = Table::new(&HEADINGS);
        for step in steps {
            let from = step.before.as_ref().map(|before| before.offset);
            let to = step.to.as_ref().map(|to| to.offset);
            table.row(vec![
                self.group.as_str().into(),
                step.partition.topic.to_string().into(),
                step.partition.partition.into(),
                from.into(),
                to.into(),
                from.zip(to).map(|(from, to)| to - from).into(),
            ]);
        }
        table
    }
}

/// `orders` or `orders:0,1`.
fn topic(text: &str) -> Result<(String, Vec<i32>), String> {
    let (name, partitions) = match text.rsplit_once(':') {
        Some((name, partitions)) => (name, partitions),
        None => return Ok((text.to_owned(), Vec::new())),
    };
    let numbers = partitions.split(',').map(|number| {
        let number = number.trim().parse::<i32>().ok().filter(|&n| n >= 0);
        number.ok_or_else(|| "expected a topic, or partitions of it such as orders:0,1".to_owned())
    });
    Ok((name.to_owned(), numbers.collect::<Result<_, _>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_are_named_whole_or_by_their_partitions() {
        assert_eq!(topic("orders"), Ok(("orders".to_owned(), vec![])));
        assert_eq!(
            topic("orders:0, 12"),
            Ok(("orders".to_owned(), vec![0, 12]))
        );
        for wrong in ["orders:", "orders:a", "orders:-1", "orders:1,"] {
            assert!(topic(wrong).is_err(), "{wrong}");
        }
    }
}
