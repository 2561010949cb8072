//! `kohort produce`.

use std::{collections::VecDeque, io, path::PathBuf};

use clap::Args;
use clap_complete::ArgValueCandidates;
use kohort::{
    ErrorCode, Producer, ProducerRecord,
    producer::{Compression, Delivery},
};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, BufReader};

use crate::{
    client::Connect,
    completion,
    failure::Failure,
    output::{counted, remark},
};

/// How many records may be in flight before the oldest is waited for.
const IN_FLIGHT_MAX: usize = 10_000;

/// The longest record, unless the user sets another limit. The topic's `max.message.bytes` decides,
/// and the broker knows it; this is what fits into the largest request that brokers accept by default
/// (`socket.request.max.bytes`).
const RECORD_BYTES_MAX: usize = 96 << 20;

/// Write lines from standard input or from files to a topic
///
/// Each line becomes a record. A topic that does not exist is created if the cluster does that
/// (auto.create.topics.enable). Records may be as large as the topic allows (max.message.bytes).
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  echo hello | kohort produce -t orders
  printf 'a:1\\nb:2\\n' | kohort produce -t orders -K :
  kohort produce -t orders -z zstd -H source=import day.txt")]
pub(crate) struct Produce {
    /// Topic
    #[arg(short, long, add = ArgValueCandidates::new(completion::topics))]
    topic: String,
    /// Partition [default: by hash of the key; random without a key]
    #[arg(short, long)]
    partition: Option<i32>,
    /// Separator between key and value, such as : or \t; without it, lines are values
    #[arg(short = 'K', long, value_name = "SEPARATOR", value_parser = crate::produce::unescape)]
    key_separator: Option<String>,
    /// Key of all records
    #[arg(short, long, conflicts_with = "key_separator")]
    key: Option<String>,
    /// Header of all records; repeatable
    #[arg(short = 'H', long = "header", value_name = "NAME=VALUE")]
    headers: Vec<String>,
    /// Write empty keys and values as null (null deletes a key from a compacted topic)
    #[arg(short = 'Z', long)]
    null: bool,
    /// Compression: none, gzip, snappy, lz4 or zstd [default: none]
    #[arg(short = 'z', long, value_name = "TYPE", value_parser = compression)]
    compression: Option<Compression>,
    /// Print how many records were written
    #[arg(short, long)]
    verbose: bool,
    /// Files to read instead of standard input
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    connect: Connect,
}

fn compression(name: &str) -> Result<Compression, String> {
    Compression::from_name(name)
        .ok_or_else(|| "expected none, gzip, snappy, lz4 or zstd".to_owned())
}

/// A text with `\t`, `\n`, `\r`, `\0`, `\\` and `\xHH` replaced.
pub(crate) fn unescape(text: &str) -> Result<String, String> {
    let mut out = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            out.push(character);
            continue;
        }
        match characters.next() {
            Some('t') => out.push('\t'),
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('0') => out.push('\0'),
            Some('\\') => out.push('\\'),
            Some('x') => {
                let digits: String = characters.by_ref().take(2).collect();
                let byte = u8::from_str_radix(&digits, 16).ok().filter(u8::is_ascii);
                out.push(
                    byte.ok_or("\\x must be followed by two hexadecimal digits up to 7f")?
                        .into(),
                );
            }
            _ => {
                return Err(
                    "a backslash must be followed by t, n, r, 0, x or another backslash".to_owned(),
                );
            }
        }
    }
    Ok(out)
}

impl Produce {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let mut config = self.connect.producer_config(|properties, config| {
            let names = ["max.request.size", "message.max.bytes"];
            if names.iter().all(|name| properties.get(name).is_none()) {
                config.request_bytes_max = RECORD_BYTES_MAX;
            }
        })?;
        if let Some(compression) = self.compression {
            config.compression = compression;
            config.compression_level = None;
        }
        let headers = self.headers()?;
        // Opens all files before anything is sent, so that a missing one leaves nothing half done.
        let mut files = Vec::with_capacity(self.files.len());
        for path in &self.files {
            let failed =
                |error| Failure::new(format!("{} cannot be read: {error}", path.display()));
            let file = tokio::fs::File::open(path).await.map_err(failed)?;
            if file.metadata().await.map_err(failed)?.is_dir() {
                return Err(failed(io::ErrorKind::IsADirectory.into()));
            }
            files.push(file);
        }
        let producer = self.connect.producer(config).await?;
        let mut sent = Sent::new(&self.topic);
        let mut read = Ok(());
        if files.is_empty() {
            let input = BufReader::new(tokio::io::stdin());
            read = self.send_lines(&producer, input, &headers, &mut sent).await;
        }
        for file in files {
            if read.is_ok() {
                let input = BufReader::new(file);
                read = self.send_lines(&producer, input, &headers, &mut sent).await;
            }
        }
        // What was sent is waited for, even if a later line could not be.
        let written = sent.finish(&producer).await;
        read?;
        let count = written?;
        if self.verbose {
            remark(format_args!(
                "{} written to {}",
                counted(count as usize, "record"),
                self.topic
            ));
        }
        Ok(())
    }

    async fn send_lines(
        &self,
        producer: &Producer,
        mut input: impl AsyncBufRead + Unpin,
        headers: &[Header<'_>],
        sent: &mut Sent<'_>,
    ) -> Result<(), Failure> {
        let mut line = Vec::new();
        loop {
            line.clear();
            if input.read_until(b'\n', &mut line).await? == 0 {
                return Ok(());
            }
            if line.last() == Some(&b'\n') {
                line.pop();
            }
            if sent.is_first() {
                self.create_topic(producer).await?;
            }
            let (key, value) = self.split(&line);
            let mut record = ProducerRecord::new(&self.topic).headers(headers);
            if let Some(key) = &key {
                record = record.key(key);
            }
            if let Some(value) = &value {
                record = record.value(value);
            }
            if let Some(partition) = self.partition {
                record = record.partition(partition);
            }
            let delivery = producer.send(record).await;
            sent.push(delivery.map_err(|error| self.explain(error))?)
                .await?;
        }
    }

    /// Makes sure that the topic exists. One that does not is created by the broker when a producer
    /// asks for it: that is said, since the name may be misspelled.
    async fn create_topic(&self, producer: &Producer) -> Result<(), Failure> {
        let admin = self.connect.admin().await?;
        let name = self.topic.as_str().into();
        let described = admin.describe_topics(std::slice::from_ref(&name)).await?;
        let codes = described.into_iter().map(|(_, topic)| topic.err()?.code());
        if !codes
            .into_iter()
            .any(|code| code == Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION))
        {
            // What else is wrong with it the producer reports.
            return Ok(());
        }
        remark(format_args!(
            "topic {} does not exist; asking the broker to create it",
            self.topic
        ));
        let created = producer.partitions(&self.topic);
        match tokio::time::timeout(self.connect.timeout(), created).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) if error.code() != Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION) => {
                Err(error.into())
            }
            _ => Err(Failure::new(format!(
                "topic {} does not exist, and the cluster does not create topics by itself: kohort \
                 topics create {}",
                self.topic, self.topic
            ))),
        }
    }

    fn explain(&self, error: kohort::Error) -> Failure {
        explain(&self.topic, error)
    }

    fn headers(&self) -> Result<Vec<Header<'_>>, Failure> {
        self.headers
            .iter()
            .map(|header| match header.split_once('=') {
                Some((name, value)) => Ok((name, Some(value.as_bytes()))),
                None => Err(Failure::new(format!(
                    "--header {header}: expected NAME=VALUE"
                ))),
            })
            .collect()
    }

    /// The key and the value of a line.
    fn split<'a>(&'a self, line: &'a [u8]) -> (Option<&'a [u8]>, Option<&'a [u8]>) {
        let separator = self.key_separator.as_deref().unwrap_or_default().as_bytes();
        let at = if separator.is_empty() {
            None
        } else {
            line.windows(separator.len())
                .position(|window| window == separator)
        };
        let (key, value) = match at {
            Some(at) => (Some(&line[..at]), &line[at + separator.len()..]),
            None => (self.key.as_deref().map(str::as_bytes), line),
        };
        let keep = |bytes: &&[u8]| !self.null || !bytes.is_empty();
        (key.filter(keep), Some(value).filter(keep))
    }
}

/// A header: its name and its value.
type Header<'a> = (&'a str, Option<&'a [u8]>);

/// A delivery error, with what to do about it.
fn explain(topic: &str, error: kohort::Error) -> Failure {
    let too_large = [
        ErrorCode::MESSAGE_TOO_LARGE,
        ErrorCode::RECORD_LIST_TOO_LARGE,
    ];
    if error.code().is_some_and(|code| too_large.contains(&code)) {
        return Failure::new(format!(
            "a record is larger than topic {topic} allows: raise the topic's max.message.bytes \
             ({error})"
        ));
    }
    error.into()
}

/// Records that have been sent and may not be written yet.
#[derive(Debug)]
struct Sent<'a> {
    topic: &'a str,
    deliveries: VecDeque<Delivery>,
    written: u64,
}

impl<'a> Sent<'a> {
    fn new(topic: &'a str) -> Sent<'a> {
        Sent {
            topic,
            deliveries: VecDeque::new(),
            written: 0,
        }
    }

    /// Whether nothing has been sent yet.
    fn is_first(&self) -> bool {
        self.deliveries.is_empty() && self.written == 0
    }

    async fn push(&mut self, delivery: Delivery) -> Result<(), Failure> {
        self.deliveries.push_back(delivery);
        if self.deliveries.len() > IN_FLIGHT_MAX
            && let Some(oldest) = self.deliveries.pop_front()
        {
            oldest.await.map_err(|error| explain(self.topic, error))?;
            self.written += 1;
        }
        Ok(())
    }

    async fn finish(mut self, producer: &Producer) -> Result<u64, Failure> {
        producer.flush().await;
        for delivery in self.deliveries {
            delivery.await.map_err(|error| explain(self.topic, error))?;
            self.written += 1;
        }
        Ok(self.written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_are_written_with_backslashes() {
        assert_eq!(unescape(r"\t"), Ok("\t".to_owned()));
        assert_eq!(unescape(r"a\\b\x3a"), Ok("a\\b:".to_owned()));
        for text in [r"\", r"\q", r"\x", r"\xff", r"\xg0"] {
            assert!(unescape(text).is_err(), "{text}");
        }
    }
}
