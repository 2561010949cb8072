//! `kohort consume`.

use std::{
    collections::BTreeMap,
    io::{self, Write},
    time::Duration,
};

use clap::Args;
use kohort::{
    Admin, ByteString, CommittedOffset, Consumer, ConsumerConfig, ErrorCode, OffsetSpec,
    TopicPartition,
    consumer::{ConsumerRecord, GroupProtocol, OffsetReset, Records, Seek},
};
use regex::Regex;

use crate::{
    client::Connect,
    failure::Failure,
    format::{self, Format},
    offsets::Position,
    signals::Signals,
    topic_pattern::Subscription,
    topics::listed_offsets,
};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  kohort consume orders -e
  kohort consume orders -o -10 -f '%p %o %k=%s\\n'
  kohort consume -G billing orders payments
  kohort consume -G audit '^orders-'")]
pub(crate) struct Consume {
    #[command(flatten)]
    connect: Connect,
    /// Topic to read, without a group.
    #[arg(short, long, conflicts_with_all = ["group", "topics"])]
    topic: Option<String>,
    /// Join this group; printed records are committed.
    #[arg(short = 'G', long, conflicts_with = "partition", requires = "topics")]
    group: Option<String>,
    /// Topics to read; in a group also patterns, such as '^orders'.
    ///
    /// A pattern starts with ^ and has to match only the beginning of a name: '^orders' reads orders
    /// and orders-eu, '^orders$' reads only orders.
    #[arg(required_unless_present = "topic")]
    topics: Vec<String>,
    /// Read only this partition; can be repeated.
    #[arg(short, long)]
    partition: Vec<i32>,
    /// Where to start: beginning, end, an offset, -N or s@MS [default: beginning].
    ///
    /// -N reads the last N records of each partition. s@MS starts at a time in milliseconds since
    /// 1970; e@MS, given as well, stops at one. In a group, beginning or end applies to partitions
    /// without a committed offset.
    #[arg(
        short,
        long = "offset",
        allow_hyphen_values = true,
        value_name = "POSITION"
    )]
    offsets: Vec<Position>,
    /// Stop after this many records.
    #[arg(short, long, value_name = "RECORDS")]
    count: Option<u64>,
    /// Stop at the end offsets seen at startup.
    #[arg(short, long = "exit")]
    exit_at_end: bool,
    /// Output format, such as '%k=%s\n'; see --help.
    ///
    /// %t topic, %p partition, %o offset, %T timestamp, %k key, %K length of the key, %s value,
    /// %S length of the value, %h headers, %% a percent sign; and \n, \t, \xHH.
    #[arg(short, long, conflicts_with = "json")]
    format: Option<Format>,
    /// Print each record as a line of JSON.
    #[arg(short = 'J', long)]
    json: bool,
    /// Print keys too, with this between key and value.
    #[arg(short = 'K', long, value_name = "SEPARATOR", conflicts_with_all = ["json", "format"],
          value_parser = crate::produce::unescape)]
    key_separator: Option<String>,
    /// Group protocol: auto, consumer or classic.
    #[arg(long, default_value = "auto", value_parser = protocol)]
    protocol: GroupProtocol,
    /// Join as a static member with this instance id.
    #[arg(long, value_name = "ID", requires = "group")]
    instance_id: Option<String>,
}

fn protocol(name: &str) -> Result<GroupProtocol, String> {
    match name {
        "auto" => Ok(GroupProtocol::Auto),
        "consumer" => Ok(GroupProtocol::Consumer),
        "classic" => Ok(GroupProtocol::Classic),
        _ => Err("write auto, consumer or classic".to_owned()),
    }
}

impl Consume {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let mut signals = Signals::new()?;
        let mut ends = Ends::new(self.count);
        let begun = async {
            match &self.group {
                Some(group) => self.join(group, &self.topics).await,
                None => self.read(&mut ends).await.map(Some),
            }
        };
        let consumer = tokio::select! {
            begun = begun => begun?,
            () = signals.next() => return Ok(()),
        };
        let Some(mut consumer) = consumer else {
            return Ok(());
        };
        let printed = self.print(&mut consumer, &mut ends, &mut signals).await;
        let closed = tokio::select! {
            closed = consumer.close_within(Duration::from_secs(10)) => closed.map_err(Failure::from),
            () = signals.next() => {
                Err(Failure::new("stopped at once, by a second signal, without leaving the group"))
            }
        };
        printed?;
        closed
    }

    fn config(&self) -> Result<ConsumerConfig, Failure> {
        Ok(ConsumerConfig {
            client: self.connect.config()?,
            ..ConsumerConfig::default()
        })
    }

    /// A member of the group; `None` if it is to stop at the end and there is no topic to read.
    async fn join(&self, group: &str, topics: &[String]) -> Result<Option<Consumer>, Failure> {
        let subscription = Subscription::parse(topics)?;
        let offset_reset = match self.offsets.as_slice() {
            [] | [Position::Beginning | Position::Stored] => OffsetReset::Earliest,
            [Position::End] => OffsetReset::Latest,
            _ => {
                return Err(Failure::new(
                    "--offset: a group continues where it stopped; only beginning or end is possible, \
                     for partitions without a committed offset",
                ));
            }
        };
        let config = ConsumerConfig {
            group_protocol: self.protocol,
            group_instance_id: self.instance_id.as_deref().map(Into::into),
            offset_reset,
            ..self.config()?.group(group)
        };
        let is_any = match &subscription {
            Subscription::Names(names) => self.report_missing(names).await?,
            Subscription::Pattern(regex) => self.report_unmatched(regex, topics).await?,
        };
        if self.exit_at_end && !is_any {
            return Ok(None);
        }
        let consumer = Consumer::connect(config).await?;
        // Nothing is awaited once it is a member, so that an interrupted program leaves the group.
        match subscription {
            Subscription::Names(names) => consumer.subscribe(names.iter().map(String::as_str))?,
            Subscription::Pattern(regex) => consumer.subscribe_regex(regex.as_str())?,
        }
        Ok(Some(consumer))
    }

    /// Reports the topics that don't exist: a misspelled one would be waited for without a word.
    /// Returns whether any exists.
    async fn report_missing(&self, topics: &[String]) -> Result<bool, Failure> {
        let admin = self.connect.admin().await?;
        let names: Vec<ByteString> = topics.iter().map(|name| name.as_str().into()).collect();
        let mut is_any = false;
        for (topic, described) in admin.describe_topics(&names).await? {
            let code = described.err().and_then(|error| error.code());
            match code {
                Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION) => eprintln!(
                    "kohort: topic {topic} does not exist{}",
                    self.unless_it_stops()
                ),
                _ => is_any = true,
            }
        }
        Ok(is_any)
    }

    /// Reports it if no topic matches. Returns whether any does.
    async fn report_unmatched(&self, regex: &Regex, topics: &[String]) -> Result<bool, Failure> {
        let whole = Regex::new(&format!("^(?:{})$", regex.as_str()));
        let whole = whole.map_err(|error| Failure::new(error.to_string()))?;
        let admin = self.connect.admin().await?;
        let existing = admin.list_topics(false).await?;
        let is_any = existing.iter().any(|topic| whole.is_match(&topic.name));
        if !is_any {
            eprintln!(
                "kohort: no topic matches {}{}",
                topics.join(" "),
                self.unless_it_stops()
            );
        }
        Ok(is_any)
    }

    fn unless_it_stops(&self) -> &'static str {
        match self.exit_at_end {
            true => "",
            false => " yet; waiting for it to be created",
        }
    }

    async fn read(&self, ends: &mut Ends) -> Result<Consumer, Failure> {
        let topic = match (&self.topic, &self.topics[..]) {
            (Some(topic), _) => ByteString::from(topic.as_str()),
            (None, [topic]) => ByteString::from(topic.as_str()),
            _ => return Err(Failure::new("only a group reads several topics: -G GROUP")),
        };
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
        let consumer = Consumer::connect(self.config()?).await?;
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
            return Err(Failure::new(format!("topic {topic} was not described")));
        };
        let count = described?.partitions.len() as i32;
        let numbers = match self.partition.is_empty() {
            true => (0..count).collect(),
            false => self.partition.clone(),
        };
        if let Some(unknown) = numbers.iter().find(|number| !(0..count).contains(*number)) {
            return Err(Failure::new(format!(
                "topic {topic} has no partition {unknown}: it has {count}, from 0"
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
            return Err(Failure::new("--offset: two places to begin at"));
        }
        let seek = match start {
            Position::Beginning | Position::Until(_) => Seek::Earliest,
            Position::End => Seek::Latest,
            Position::Offset(offset) => Seek::Offset(offset),
            Position::From(time) => Seek::Timestamp(time),
            Position::Stored => {
                return Err(Failure::new(
                    "--offset stored: only a group has stored offsets (-G)",
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

    /// Prints records until the end, or until somebody interrupts.
    async fn print(
        &self,
        consumer: &mut Consumer,
        ends: &mut Ends,
        signals: &mut Signals,
    ) -> Result<(), Failure> {
        let format = self.format.clone();
        let format = format.unwrap_or_else(|| Format::line(self.key_separator.as_deref()));
        let mut out = io::BufWriter::new(io::stdout().lock());
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
            } else if self.group.is_some() {
                consumer.commit_offsets(&after(&records, printed)).await?;
            }
            ends.drop_done(consumer)?;
            if self.exit_at_end && self.group.is_some() && records.is_empty() {
                ends.group_is_done |= is_done(consumer)?;
            }
        }
        Ok(())
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
            match self.json {
                true => writeln!(out, "{}", format::json(&record))?,
                false => format.write(&record, out)?,
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

/// The offsets of partitions. Where one cannot be had nobody knows where to begin or to end.
async fn known(
    admin: &Admin,
    partitions: &[TopicPartition],
    spec: OffsetSpec,
) -> Result<Vec<Option<i64>>, Failure> {
    let listed = listed_offsets(admin, partitions, spec).await;
    Ok(listed.into_iter().collect::<Result<_, _>>()?)
}

/// Whether a member of a group has come to the end of all that it has.
fn is_done(consumer: &Consumer) -> Result<bool, Failure> {
    let assignment = consumer.assignment();
    for partition in &assignment {
        if consumer.lag(partition)? != Some(0) {
            return Ok(false);
        }
    }
    Ok(!assignment.is_empty())
}

/// Where to end.
#[derive(Debug)]
struct Ends {
    /// How many records are still wanted.
    left: Option<u64>,
    /// By partition, the offset at which to end; those that are done are taken out.
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

    /// Takes out the partitions that have been read up to where they are to end. The position
    /// counts, not the last record: a partition may be empty, or end in a gap.
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

    /// Whether a record is to be printed.
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
