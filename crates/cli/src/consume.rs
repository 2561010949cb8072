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

use crate::{
    client::Connect,
    failure::Failure,
    format::{self, Format},
    offsets::Position,
    signals::Signals,
    topics::listed_offsets,
};

#[derive(Debug, Args)]
pub(crate) struct Consume {
    #[command(flatten)]
    connect: Connect,
    /// The topic, all of whose partitions are read.
    #[arg(short, long, required_unless_present = "group")]
    topic: Option<String>,
    /// A group to join, and the topics that it shares: each member gets some of the partitions, and
    /// what has been printed is committed. A topic that begins with ^ is a regular expression.
    #[arg(short = 'G', long, num_args = 2.., value_names = ["GROUP", "TOPIC"],
          conflicts_with_all = ["topic", "partition"])]
    group: Vec<String>,
    /// Only this partition. May be given several times.
    #[arg(short, long)]
    partition: Vec<i32>,
    /// Where to begin: beginning, end, an offset, -N for the last N records, s@MS for a time in
    /// milliseconds since 1970. With e@MS, given as well, where to end. In a group: where to begin
    /// without a committed offset.
    #[arg(
        short,
        long = "offset",
        allow_hyphen_values = true,
        value_name = "POSITION"
    )]
    offsets: Vec<Position>,
    /// End after so many records.
    #[arg(short, long)]
    count: Option<u64>,
    /// End where the partitions ended when this began.
    #[arg(short, long = "exit")]
    exit_at_end: bool,
    /// How to print a record: %t topic, %p partition, %o offset, %k key, %K its length, %s value,
    /// %S its length, %T timestamp, %h headers, and \n, \t and the like.
    #[arg(short, long, conflicts_with = "json")]
    format: Option<Format>,
    /// Print each record as a line of JSON.
    #[arg(short = 'J', long)]
    json: bool,
    /// Print the key, and this between key and value.
    #[arg(short = 'K', long, value_name = "SEPARATOR", conflicts_with_all = ["json", "format"],
          value_parser = crate::produce::unescape)]
    key_separator: Option<String>,
    /// The protocol of the group: auto, consumer or classic.
    #[arg(long, default_value = "auto", value_parser = protocol)]
    protocol: GroupProtocol,
    /// The instance id, which makes a static member of the group.
    #[arg(long, requires = "group")]
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
            match self.group.split_first() {
                Some((group, topics)) => self.join(group, topics).await,
                None => self.read(&mut ends).await,
            }
        };
        let mut consumer = tokio::select! {
            begun = begun => begun?,
            () = signals.next() => return Ok(()),
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

    async fn join(&self, group: &str, topics: &[String]) -> Result<Consumer, Failure> {
        let offset_reset = match self.offsets.as_slice() {
            [] | [Position::Beginning | Position::Stored] => OffsetReset::Earliest,
            [Position::End] => OffsetReset::Latest,
            _ => {
                return Err(Failure::new(
                    "--offset: a group goes on where it stopped; say beginning or end for \
                     partitions of which it has committed nothing",
                ));
            }
        };
        let config = ConsumerConfig {
            group_protocol: self.protocol,
            group_instance_id: self.instance_id.as_deref().map(Into::into),
            offset_reset,
            ..self.config()?.group(group)
        };
        let consumer = Consumer::connect(config).await?;
        // Nothing is waited for once it is a member: whoever is interrupted then leaves.
        match topics {
            [pattern] if pattern.starts_with('^') => consumer.subscribe_regex(pattern.as_str())?,
            topics => {
                self.say_what_is_waited_for(topics).await?;
                consumer.subscribe(topics.iter().map(String::as_str))?;
            }
        }
        Ok(consumer)
    }

    /// A group reads topics as soon as they are there: whoever has misspelt one would wait without
    /// knowing why.
    async fn say_what_is_waited_for(&self, topics: &[String]) -> Result<(), Failure> {
        let admin = self.connect.admin().await?;
        let names: Vec<ByteString> = topics.iter().map(|name| name.as_str().into()).collect();
        for (topic, described) in admin.describe_topics(&names).await? {
            let code = described.err().and_then(|error| error.code());
            if code == Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION) {
                eprintln!("kohort: there is no topic {topic} yet: it is read once it is there");
            }
        }
        Ok(())
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
            } else if !self.group.is_empty() {
                consumer.commit_offsets(&after(&records, printed)).await?;
            }
            ends.drop_done(consumer)?;
            if self.exit_at_end && !self.group.is_empty() && records.is_empty() {
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
