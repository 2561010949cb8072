//! `kohort produce`.

use std::{collections::VecDeque, io, path::PathBuf, time::Duration};

use clap::Args;
use kohort::{
    ErrorCode, Producer, ProducerConfig, ProducerRecord,
    producer::{Compression, Delivery},
};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, BufReader};

use crate::{client::Connect, failure::Failure};

/// How many records may be under way before the oldest is waited for.
const UNDER_WAY_MAX: usize = 10_000;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  echo hello | kohort produce -t orders
  printf 'a:1\\nb:2\\n' | kohort produce -t orders -K :
  kohort produce -t orders -z zstd records.txt")]
pub(crate) struct Produce {
    #[command(flatten)]
    connect: Connect,
    /// Topic to write to.
    #[arg(short, long)]
    topic: String,
    /// Partition [default: by hash of the key; random without a key].
    #[arg(short, long)]
    partition: Option<i32>,
    /// Compression: none, gzip, snappy, lz4 or zstd.
    #[arg(short = 'z', long, value_name = "CODEC", default_value = "none", value_parser = compression)]
    compression: Compression,
    /// Separates the key from the value in each line; \t is a tab.
    #[arg(short = 'K', long, value_name = "SEPARATOR", value_parser = crate::produce::unescape)]
    key_separator: Option<String>,
    /// Key of every record.
    #[arg(short, long, conflicts_with = "key_separator")]
    key: Option<String>,
    /// Header of every record; can be repeated.
    #[arg(short = 'H', long = "header", value_name = "NAME=VALUE")]
    headers: Vec<String>,
    /// Write empty keys and values as null, which deletes a compacted key.
    #[arg(short = 'Z', long)]
    null: bool,
    /// Report the number of records written.
    #[arg(short, long)]
    verbose: bool,
    /// Files to read instead of standard input.
    files: Vec<PathBuf>,
}

fn compression(name: &str) -> Result<Compression, String> {
    Compression::from_name(name).ok_or_else(|| "write none, gzip, snappy, lz4 or zstd".to_owned())
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
                    byte.ok_or("\\x wants two hexadecimal digits up to 7f")?
                        .into(),
                );
            }
            _ => return Err("a backslash wants t, n, r, 0, x or another one behind it".to_owned()),
        }
    }
    Ok(out)
}

impl Produce {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let config = ProducerConfig {
            client: self.connect.config()?,
            compression: self.compression,
            block_max: self.connect.timeout(),
            // A little longer than an attempt may take.
            delivery_timeout: self.connect.timeout() + Duration::from_secs(1),
            ..ProducerConfig::default()
        };
        let headers = self.headers()?;
        // All files are opened before anything is sent: half of the input would be worse than none.
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
        self.report_missing_topic().await?;
        let producer = Producer::connect(config).await?;
        let mut sent = Sent::default();
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
        // What was sent is waited for, also when what came behind it could not be.
        let written = sent.finish(&producer).await;
        read?;
        let count = written?;
        if self.verbose {
            eprintln!("{count} records written to {}", self.topic);
        }
        Ok(())
    }

    /// A misspelled topic would be created without a word, as brokers do by default.
    async fn report_missing_topic(&self) -> Result<(), Failure> {
        let admin = self.connect.admin().await?;
        for (topic, described) in admin.describe_topics(&[self.topic.as_str().into()]).await? {
            let code = described.err().and_then(|error| error.code());
            if code == Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION) {
                eprintln!("kohort: topic {topic} does not exist; asking the broker to create it");
            }
        }
        Ok(())
    }

    async fn send_lines(
        &self,
        producer: &Producer,
        mut input: impl AsyncBufRead + Unpin,
        headers: &[Header<'_>],
        sent: &mut Sent,
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
            sent.push(producer.send(record).await?).await?;
        }
    }

    fn headers(&self) -> Result<Vec<Header<'_>>, Failure> {
        self.headers
            .iter()
            .map(|header| match header.split_once('=') {
                Some((name, value)) => Ok((name, Some(value.as_bytes()))),
                None => Err(Failure::new(format!(
                    "--header {header}: write it as name=value"
                ))),
            })
            .collect()
    }

    /// The key and the value of a line.
    fn split<'a>(&'a self, line: &'a [u8]) -> (Option<&'a [u8]>, Option<&'a [u8]>) {
        let separator = self.key_separator.as_deref().unwrap_or_default().as_bytes();
        let at = match separator.is_empty() {
            true => None,
            false => line
                .windows(separator.len())
                .position(|window| window == separator),
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

/// What has been sent and may not be written yet.
#[derive(Debug, Default)]
struct Sent {
    deliveries: VecDeque<Delivery>,
    written: u64,
}

impl Sent {
    async fn push(&mut self, delivery: Delivery) -> Result<(), Failure> {
        self.deliveries.push_back(delivery);
        if self.deliveries.len() > UNDER_WAY_MAX
            && let Some(oldest) = self.deliveries.pop_front()
        {
            oldest.await?;
            self.written += 1;
        }
        Ok(())
    }

    async fn finish(mut self, producer: &Producer) -> Result<u64, Failure> {
        producer.flush().await;
        for delivery in self.deliveries {
            delivery.await?;
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
