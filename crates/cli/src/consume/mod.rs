//! `kohort consume`.

use std::{
    collections::BTreeMap,
    io::{self, Write},
    time::Duration,
};

use clap::Args;
use clap_complete::ArgValueCandidates;
use kohort::{
    Admin, ByteString, CommittedOffset, Consumer, OffsetSpec, TopicPartition,
    consumer::{ConsumerRecord, GroupProtocol, OffsetReset, Records, Seek},
};

use crate::{
    client::Connect,
    completion,
    failure::Failure,
    format::{self, Format},
    offsets::Position,
    output::remark,
    signals::Signals,
    topics::listed_offsets,
};
use subscription::Subscription;
use tokio::time::Instant;

mod subscription;

/// With `--exit`: how often a member without partitions looks whether that stays so.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// With `--exit`: after how many such looks in a row it ends.
const LOOKS: u32 = 3;

/// Print the records of a topic, alone or as a member of a group
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  kohort consume -t orders -o beginning -e
  kohort consume -t orders -o s@2026-11-29T14:00 -f '%p %o %k=%s\\n'
  kohort consume -G billing orders payments
  kohort consume -G billing '^ord'")]
pub(crate) struct Consume {
    /// Topic to read, without a group
    #[arg(short, long, required_unless_present = "group",
          add = ArgValueCandidates::new(completion::topics))]
    topic: Option<String>,
    /// Group to join, and the topics it reads; printed records are committed
    ///
    /// Each member of the group reads some of the partitions. A topic that begins with ^ is a regular
    /// expression for the beginning of topic names: ^ord matches orders, ^ord$ only ord.
    #[arg(short = 'G', long, num_args = 2.., value_names = ["GROUP", "TOPIC"],
          conflicts_with_all = ["topic", "partition"])]
    group: Vec<String>,
    /// Only this partition; repeatable
    #[arg(short, long)]
    partition: Vec<i32>,
    /// Where to start: beginning, end, an offset, -N, or s@TIME [default: beginning]
    ///
    /// -N means the last N records of each partition; s@TIME the records since a time, as
    /// milliseconds since 1970 or such as s@2026-11-29T20:00 (UTC). e@TIME, also in addition, says
    /// where to stop. In a group, beginning or end applies to partitions without a committed offset.
    #[arg(
        short,
        long = "offset",
        allow_hyphen_values = true,
        value_name = "POSITION"
    )]
    offsets: Vec<Position>,
    /// Stop after this many records
    #[arg(short, long)]
    count: Option<u64>,
    /// Stop at the end offsets seen at startup
    ///
    /// A member of a group stops when it has read everything in its partitions.
    #[arg(short, long = "exit")]
    exit_at_end: bool,
    /// Output format with %t %p %o %k %s %T %h and \n
    ///
    /// %t topic, %p partition, %o offset, %k key, %K its length, %s value, %S its length, %T
    /// timestamp, %h headers, %% a percent sign; \n, \t and the like as in C.
    #[arg(short, long, conflicts_with = "json")]
    format: Option<Format>,
    /// Print each record as a line of JSON
    #[arg(short = 'J', long)]
    json: bool,
    /// Print the key too, followed by this separator
    #[arg(short = 'K', long, value_name = "SEPARATOR", conflicts_with_all = ["json", "format"],
          value_parser = crate::produce::unescape)]
    key_separator: Option<String>,
    /// Group protocol: auto (the default), consumer or classic
    #[arg(long, value_parser = protocol)]
    protocol: Option<GroupProtocol>,
    /// Instance id of a static member
    #[arg(long, value_name = "ID", requires = "group")]
    instance_id: Option<String>,
    #[command(flatten)]
    connect: Connect,
}

fn protocol(name: &str) -> Result<GroupProtocol, String> {
    match name {
        "auto" => Ok(GroupProtocol::Auto),
        "consumer" => Ok(GroupProtocol::Consumer),
        "classic" => Ok(GroupProtocol::Classic),
        _ => Err("expected auto, consumer or classic".to_owned()),
    }
}

impl Consume {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let mut signals = Signals::new()?;
        let mut ends = Ends::new(self.count);
        let begun = async {
            match self.group.split_first() {
                Some((group, topics)) => self.join(group, topics).await,
                None => self.read(&mut ends).await.map(Some),
            }
        };
        let begun = tokio::select! {
            begun = begun => begun?,
            () = signals.next() => return Ok(()),
        };
        // None of the topics exists: that is the end already.
        let Some(mut consumer) = begun else {
            return Ok(());
        };
        let printed = self.print(&mut consumer, &mut ends, &mut signals).await;
        let closed = tokio::select! {
            closed = consumer.close_within(Duration::from_secs(10)) => closed.map_err(Failure::from),
            () = signals.next() => {
                Err(Failure::new("stopped by a second signal before leaving the group"))
            }
        };
        printed?;
        closed
    }

    async fn join(&self, group: &str, topics: &[String]) -> Result<Option<Consumer>, Failure> {
        let mut config = self.connect.consumer_config(|properties, config| {
            if properties.get("auto.offset.reset").is_none() {
                config.offset_reset = OffsetReset::Earliest;
            }
        })?;
        match self.offsets.as_slice() {
            [] => {}
            [Position::Beginning | Position::Stored] => {
                config.offset_reset = OffsetReset::Earliest;
            }
            [Position::End] => config.offset_reset = OffsetReset::Latest,
            _ => {
                return Err(Failure::new(
                    "--offset: a group continues at its committed offsets; only beginning or end, \
                     for partitions without one, can be chosen (see kohort groups rewind)",
                ));
            }
        }
        if let Some(protocol) = self.protocol {
            config.group_protocol = protocol;
        }
        if let Some(id) = &self.instance_id {
            config.group_instance_id = Some(id.as_str().into());
        }
        let subscription = Subscription::new(topics)?;
        // Everything is asked before the consumer becomes a member: from then on an interruption has
        // to leave the group.
        let admin = self.connect.admin().await?;
        let missing = subscription.missing(&admin).await?;
        if self.exit_at_end && missing.is_all {
            remark(missing);
            return Ok(None);
        }
        if !missing.is_none() {
            remark(format_args!("{missing} yet"));
        }
        let consumer = self.connect.consumer(config.group(group)).await?;
        match subscription {
            Subscription::Pattern { regex, .. } => consumer.subscribe_regex(regex)?,
            Subscription::Topics(names) => consumer.subscribe(names)?,
        }
        Ok(Some(consumer))
    }

    async fn read(&self, ends: &mut Ends) -> Result<Consumer, Failure> {
        let topic = ByteString::from(self.topic.as_deref().unwrap_or_default());
        let admin = self.connect.admin().await?;
        let partitions = self.partitions(&admin, topic).await?;
        let starts = self.starts(&admin, &partitions).await?;
        let until = self.offsets.iter().find_map(|position| match position {
            Position::Until(time) => Some(*time),
            _ => None,
        });
        if self.exit_at_end || until.is_some() {
            let until = match until {
                Some(time) => known(&admin, &partitions, OffsetSpec::Timestamp(time)).await?,
                None => vec![None; partitions.len()],
            };
            let latest = known(&admin, &partitions, OffsetSpec::Latest).await?;
            let bounds = until
                .into_iter()
                .zip(latest)
                .map(|(until, latest)| until.or(latest));
            let bounds = partitions.iter().zip(bounds);
            ends.stop_at = Some(
                bounds
                    .map(|(p, end)| (p.clone(), end.unwrap_or_default()))
                    .collect(),
            );
        }
        let consumer = self
            .connect
            .consumer(self.connect.consumer_config(|_, _| {})?)
            .await?;
        consumer.assign(partitions.into_iter().zip(starts))?;
        Ok(consumer)
    }

    async fn partitions(
        &self,
        admin: &Admin,
        topic: ByteString,
    ) -> Result<Vec<TopicPartition>, Failure> {
        let mut described = admin.describe_topics(std::slice::from_ref(&topic)).await?;
        let Some((_, described)) = described.pop() else {
            return Err(Failure::new(format!(
                "the cluster did not describe topic {topic}"
            )));
        };
        let count = described?.partitions.len() as i32;
        let numbers = if self.partition.is_empty() {
            (0..count).collect()
        } else {
            self.partition.clone()
        };
        if let Some(unknown) = numbers.iter().find(|number| !(0..count).contains(*number)) {
            return Err(Failure::new(format!(
                "topic {topic} has no partition {unknown}: it has partitions 0 to {}",
                count - 1
            )));
        }
        Ok(numbers
            .into_iter()
            .map(|number| TopicPartition::new(topic.clone(), number))
            .collect())
    }

    async fn starts(
        &self,
        admin: &Admin,
        partitions: &[TopicPartition],
    ) -> Result<Vec<Seek>, Failure> {
        let mut starts = self
            .offsets
            .iter()
            .filter(|position| !matches!(position, Position::Until(_)));
        let start = starts.next().copied().unwrap_or(Position::Beginning);
        if starts.next().is_some() {
            return Err(Failure::new(
                "--offset: there are two positions to start at",
            ));
        }
        let seek = match start {
            Position::Beginning | Position::Until(_) => Seek::Earliest,
            Position::End => Seek::Latest,
            Position::Offset(offset) => Seek::Offset(offset),
            Position::From(time) => Seek::Timestamp(time),
            Position::Stored => {
                return Err(Failure::new(
                    "--offset stored: only a group (-G) has committed offsets",
                ));
            }
            Position::BeforeEnd(count) => {
                let earliest = known(admin, partitions, OffsetSpec::Earliest).await?;
                let latest = known(admin, partitions, OffsetSpec::Latest).await?;
                let starts = earliest.into_iter().zip(latest).map(|(earliest, latest)| {
                    let (earliest, latest) =
                        (earliest.unwrap_or_default(), latest.unwrap_or_default());
                    Seek::Offset((latest - count).max(earliest))
                });
                return Ok(starts.collect());
            }
        };
        Ok(vec![seek; partitions.len()])
    }

    /// Prints records until the end or an interruption.
    async fn print(
        &self,
        consumer: &mut Consumer,
        ends: &mut Ends,
        signals: &mut Signals,
    ) -> Result<(), Failure> {
        let format = self.format.clone();
        let format = format.unwrap_or_else(|| Format::line(self.key_separator.as_deref()));
        let mut out = io::BufWriter::new(io::stdout().lock());
        let mut idle = Idle::default();
        while !ends.reached() {
            let records = tokio::select! {
                records = consumer.poll_for(Duration::from_millis(200)) => records?,
                () = signals.next() => break,
            };
            let printed = self.print_records(&records, &format, ends, &mut out)?;
            out.flush()?;
            // Only what has been printed is committed.
            if printed == records.len() {
                consumer.finish();
            } else if !self.group.is_empty() {
                consumer.commit_offsets(&after(&records, printed)).await?;
            }
            ends.drop_done(consumer)?;
            if self.exit_at_end && !self.group.is_empty() && records.is_empty() {
                ends.group_is_done |=
                    is_done(consumer)? || self.is_idle(consumer, &mut idle).await?;
            }
        }
        Ok(())
    }

    /// Whether this member has no partitions, and the group is not about to give it any: the other
    /// members have them all.
    async fn is_idle(&self, consumer: &Consumer, idle: &mut Idle) -> Result<bool, Failure> {
        if !consumer.assignment().is_empty() {
            *idle = Idle::default();
            return Ok(false);
        }
        if idle
            .looked_at
            .is_some_and(|at| at.elapsed() < LOOK_INTERVAL)
        {
            return Ok(false);
        }
        idle.looked_at = Some(Instant::now());
        let admin = Admin::new(consumer.cluster().clone());
        // A group that does not exist yet is about to.
        let group = crate::history::view(&admin, &self.group[0]).await?;
        idle.looks = if group.is_some_and(|group| group.is_stable()) {
            idle.looks + 1
        } else {
            0
        };
        if idle.looks < LOOKS {
            return Ok(false);
        }
        remark("this member was assigned no partitions");
        Ok(true)
    }

    fn print_records(
        &self,
        records: &Records,
        format: &Format,
        ends: &mut Ends,
        out: &mut impl Write,
    ) -> io::Result<usize> {
        let mut printed = 0;
        for record in records {
            if !ends.take(&record) {
                continue;
            }
            printed += 1;
            if self.json {
                writeln!(out, "{}", format::json(&record))?
            } else {
                format.write(&record, out)?
            }
        }
        Ok(printed)
    }
}

/// The offsets to commit after the first `count` records.
fn after(records: &Records, count: usize) -> Vec<(TopicPartition, CommittedOffset)> {
    let mut next = BTreeMap::new();
    for record in records.iter().take(count) {
        let partition = TopicPartition::new(record.topic.clone(), record.partition);
        next.insert(partition, CommittedOffset::new(record.offset + 1));
    }
    next.into_iter().collect()
}

/// The offsets of partitions: all of them, since one that is unknown leaves no place to start or stop.
async fn known(
    admin: &Admin,
    partitions: &[TopicPartition],
    spec: OffsetSpec,
) -> Result<Vec<Option<i64>>, Failure> {
    let listed = listed_offsets(admin, partitions, spec).await;
    Ok(listed.into_iter().collect::<Result<_, _>>()?)
}

/// A member that has no partitions.
#[derive(Debug, Default)]
struct Idle {
    looked_at: Option<Instant>,
    /// How many looks in a row found the group stable.
    looks: u32,
}

/// Whether a member of a group has read everything in its partitions.
fn is_done(consumer: &Consumer) -> Result<bool, Failure> {
    let assignment = consumer.assignment();
    for partition in &assignment {
        if consumer.lag(partition)? != Some(0) {
            return Ok(false);
        }
    }
    Ok(!assignment.is_empty())
}

/// Where to stop.
#[derive(Debug)]
struct Ends {
    /// How many more records to print.
    left: Option<u64>,
    /// By partition, the offset at which to stop; finished partitions are removed.
    stop_at: Option<BTreeMap<TopicPartition, i64>>,
    group_is_done: bool,
}

impl Ends {
    fn new(count: Option<u64>) -> Ends {
        Ends {
            left: count,
            stop_at: None,
            group_is_done: false,
        }
    }

    fn reached(&self) -> bool {
        self.left == Some(0)
            || self.group_is_done
            || self.stop_at.as_ref().is_some_and(BTreeMap::is_empty)
    }

    /// Removes the partitions that have been read to where they stop. The position counts, not the
    /// last record: a partition may be empty, or end with a gap.
    fn drop_done(&mut self, consumer: &Consumer) -> Result<(), Failure> {
        let Some(stop_at) = &mut self.stop_at else {
            return Ok(());
        };
        let mut done = Vec::new();
        for (partition, &end) in stop_at.iter() {
            if consumer
                .position(partition)?
                .is_some_and(|position| position >= end)
            {
                done.push(partition.clone());
            }
        }
        done.iter().for_each(|partition| {
            stop_at.remove(partition);
        });
        Ok(())
    }

    /// Whether to print a record.
    fn take(&mut self, record: &ConsumerRecord<'_>) -> bool {
        if self.left == Some(0) {
            return false;
        }
        if let Some(stop_at) = &self.stop_at {
            let partition = TopicPartition::new(record.topic.clone(), record.partition);
            if stop_at
                .get(&partition)
                .is_none_or(|&end| record.offset >= end)
            {
                return false;
            }
        }
        if let Some(left) = &mut self.left {
            *left -= 1;
        }
        true
    }
}
