//! `kohort groups rewind`.

mod file;
pub(crate) mod times;

use std::{collections::BTreeSet, path::PathBuf, time::Duration};

use clap::{ArgGroup, Args};
use kohort::{
    Admin, Error, TopicPartition,
    admin::{LastRewind, RewindStep, RewindTo},
};

use crate::{
    client::{Connect, seconds},
    failure::{Failure, Failures},
    history::{clock, view},
    output::{Output, Table},
};

/// Move a group to other offsets, while its members run.
///
/// Without --execute it prints the old and new offsets and changes nothing. On `kohort serve` the
/// members of a live group release the partitions, and the next owners start at the new offsets. On
/// other clusters the group must have no members.
#[derive(Debug, Args)]
#[command(override_usage = "kohort groups rewind [OPTIONS] <GROUP>")]
#[command(after_help = "Examples:
  kohort groups rewind billing --topic orders --to-datetime 2026-11-29T14:00
  kohort groups rewind billing --all-topics --to-earliest --execute
  kohort groups rewind billing --undo --execute")]
#[command(group(ArgGroup::new("which").required(true).args(["topics", "all_topics", "from_file", "undo"])))]
#[command(group(ArgGroup::new("where").args([
    "to_earliest", "to_latest", "to_offset", "to_datetime", "by_duration", "shift_by",
])))]
pub(crate) struct Rewind {
    #[command(flatten)]
    connect: Connect,
    #[command(flatten)]
    output: Output,
    /// Id of the group.
    group: String,
    /// A topic (orders) or some of its partitions (orders:0,1); can be repeated.
    #[arg(long = "topic", value_name = "TOPIC[:0,1]", value_parser = topic, requires = "where")]
    topics: Vec<(String, Vec<i32>)>,
    /// All partitions that the group has committed or owns.
    #[arg(long, requires = "where")]
    all_topics: bool,
    /// Read partitions and offsets from a file: topic,partition,offset per line.
    #[arg(long, value_name = "CSV", conflicts_with = "where")]
    from_file: Option<PathBuf>,
    /// Undo the last rewind, or cancel a pending one (kohort serve only).
    #[arg(long, conflicts_with = "where")]
    undo: bool,
    /// To the first record.
    #[arg(long)]
    to_earliest: bool,
    /// To the end of the log.
    #[arg(long)]
    to_latest: bool,
    /// To this offset.
    #[arg(long, value_name = "OFFSET")]
    to_offset: Option<i64>,
    /// To the first record at or after a time: 2026-11-29T20:00 (UTC) or …+01:00.
    #[arg(long, value_name = "TIME", value_parser = times::datetime)]
    to_datetime: Option<i64>,
    /// To the first record of this age or younger: PT2H30M, P7D or 90m.
    #[arg(long, value_name = "DURATION", value_parser = times::duration)]
    by_duration: Option<Duration>,
    /// By this many records from the committed offset, such as -100 or +100.
    #[arg(long, value_name = "RECORDS", allow_hyphen_values = true)]
    shift_by: Option<i64>,
    /// Move offsets outside the log to the nearest one inside it.
    #[arg(long)]
    clamp: bool,
    /// Apply the rewind.
    #[arg(long)]
    execute: bool,
    /// How long to wait for members to release partitions, in seconds.
    #[arg(long, default_value = "600", value_name = "SECONDS", value_parser = seconds)]
    wait: Duration,
    /// Save the current offsets to a file that --from-file reads.
    #[arg(long, value_name = "CSV")]
    save: Option<PathBuf>,
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
            return self.give_up(&admin, pending).await;
        }
        let steps = self.plan(&admin).await?;
        if steps.is_empty() {
            return Err(Failure::new(format!(
                "group {} has neither committed anything nor any partitions: name topics with \
                 --topic",
                self.group
            )));
        }
        if let Some(path) = &self.save {
            file::write(path, &steps)?;
        }
        if !self.execute {
            self.output.print(&self.table(&steps))?;
            let group = view(&admin, &self.group).await.unwrap_or_default();
            let members = group.map(|group| group.members.len());
            return Ok(self.output.say(what_next(members))?);
        }
        match admin.execute_rewind(&self.group, &steps, self.wait).await {
            Ok(done) => Ok(self.output.print(&self.table(&done))?),
            Err(Error::Timeout { .. }) => Err(Failure::new(format!(
                "group {}: members have not given the partitions up within {} s, and the rewind \
                 still waits for them: `kohort groups explain {}` says for whom; the same command \
                 again waits on, and `kohort groups rewind {} --undo --execute` gives it up",
                self.group,
                self.wait.as_secs_f64(),
                self.group,
                self.group
            ))),
            Err(error) => Err(error.into()),
        }
    }

    /// Undoes a rewind that has not happened yet.
    async fn give_up(&self, admin: &Admin, pending: LastRewind) -> Result<(), Failure> {
        let asked_at = clock(pending.at);
        if !self.execute {
            self.output.print(&self.table(&pending.steps))?;
            self.output.say(format_args!(
                "nothing was changed; this rewind, which was asked for {asked_at}, still waits for \
                 members to give partitions up: with --execute it is given up"
            ))?;
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
            "the rewind that was asked for {asked_at} is given up; nothing that is committed was \
             changed"
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
        all.find_map(|to| to)
            .ok_or_else(|| Failure::new("say where to: --to-earliest, --to-offset N or the like"))
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

/// `members`: how many the group has, if there is one.
fn what_next(members: Option<usize>) -> String {
    let live = match members {
        None => "there is no such group yet: it would begin there",
        Some(0) => "the group has no members",
        Some(1) => "the group has 1 member, which gives up these partitions and starts again",
        _ => "members that own these partitions give them up, and whoever gets them starts there",
    };
    format!("nothing was changed; with --execute it is done ({live})")
}

/// `orders` or `orders:0,1`.
fn topic(text: &str) -> Result<(String, Vec<i32>), String> {
    let (name, partitions) = match text.rsplit_once(':') {
        Some((name, partitions)) => (name, partitions),
        None => return Ok((text.to_owned(), Vec::new())),
    };
    let numbers = partitions.split(',').map(|number| {
        let number = number.trim().parse::<i32>().ok().filter(|&n| n >= 0);
        number.ok_or_else(|| "write a topic, or partitions of it: orders:0,1".to_owned())
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
