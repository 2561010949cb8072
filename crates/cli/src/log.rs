//! `kohort log`: looking at the files of a stopped broker, and giving up what cannot be saved.

use std::{
    io::{self, Write},
    path::PathBuf,
};

use clap::{Args, Subcommand};
use kohort_broker::{Checked, Damage, StartError, StoppedBroker, StoppedPartition};
use serde_json::json;

use crate::{
    failure::Failure,
    output::{Output, Table, line},
    serve::default_data_dir,
};

/// Check and repair the log files of a stopped broker
#[derive(Debug, Subcommand)]
#[command(after_help = "Example:
  kohort log check --data-dir ./data")]
pub(crate) enum Log {
    /// Show damaged and missing files, partition by partition
    ///
    /// Reads every file of the data folder and changes nothing. Exits with status 1 if anything is damaged.
    #[command(after_help = "Examples:
  kohort log check --data-dir ./data
  kohort log check orders-0 -o json")]
    Check(Check),
    /// Give up damaged and missing records, and keep everything else
    ///
    /// Without --execute it only shows what it would do. Damaged files are kept beside the repaired
    /// ones under names that end in .damaged. Offsets of lost records are never assigned again.
    #[command(after_help = "Examples:
  kohort log repair --data-dir ./data
  kohort log repair orders-0 --execute")]
    Repair(Repair),
}

#[derive(Debug, Args)]
struct Place {
    /// Data folder of the broker, which must be stopped [default: as for `kohort serve`]
    #[arg(long, env = "KOHORT_DATA_DIR")]
    data_dir: Option<PathBuf>,
    /// Only these partitions, such as orders-0 [default: all]
    partitions: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Check {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Repair {
    #[command(flatten)]
    place: Place,
    /// Begin partitions whose folder is missing at this offset
    ///
    /// Nothing on disk says which offsets such a partition had assigned. Choose one that no
    /// consumer has reached, so that no offset is assigned twice.
    #[arg(long, value_name = "OFFSET", default_value_t = 0, value_parser = clap::value_parser!(i64).range(0..))]
    start_offset: i64,
    /// Apply the changes
    #[arg(long)]
    execute: bool,
}

/// A partition and what is wrong with it.
struct Found<'a> {
    partition: &'a StoppedPartition,
    /// `None` if its folder is missing.
    checked: Option<Checked>,
}

impl Found<'_> {
    fn is_damaged(&self) -> bool {
        self.checked
            .as_ref()
            .is_none_or(|checked| !checked.damage.is_empty())
    }

    fn lines(&self) -> Vec<String> {
        match &self.checked {
            None => vec!["the folder is missing, and all records with it".to_owned()],
            Some(checked) => checked.damage.iter().map(Damage::to_string).collect(),
        }
    }

    fn lost(&self) -> Option<i64> {
        let checked = self.checked.as_ref()?;
        let lost = checked.damage.iter().map(|it| it.lost.end - it.lost.start);
        Some(lost.sum())
    }
}

impl Log {
    pub(crate) fn run(self) -> Result<(), Failure> {
        match self {
            Log::Check(check) => check.run(),
            Log::Repair(repair) => repair.run(),
        }
    }
}

impl Place {
    fn open(&self) -> Result<StoppedBroker, Failure> {
        let folder = self.data_dir.clone().unwrap_or_else(default_data_dir);
        StoppedBroker::open(&folder).map_err(|error| match error {
            StartError::Locked(_) => Failure::new(format!("{error}; stop the broker first")),
            error => Failure::new(format!("{error}; --data-dir names another folder")),
        })
    }

    fn check<'a>(&self, broker: &'a StoppedBroker) -> Result<Vec<Found<'a>>, Failure> {
        let all = broker.partitions();
        if let Some(unknown) = self
            .partitions
            .iter()
            .find(|name| !all.iter().any(|partition| partition.name() == **name))
        {
            return Err(Failure::new(format!(
                "partition {unknown:?} does not exist; write TOPIC-NUMBER, such as orders-0"
            )));
        }
        let is_wanted = |partition: &&StoppedPartition| {
            self.partitions.is_empty() || self.partitions.contains(&partition.name())
        };
        let mut found = Vec::new();
        for partition in all.iter().filter(is_wanted) {
            let checked = if partition.is_missing {
                None
            } else {
                Some(
                    kohort_broker::check_log(&partition.folder)
                        .map_err(|error| Failure::new(format!("{}: {error}", partition.name())))?,
                )
            };
            found.push(Found { partition, checked });
        }
        Ok(found)
    }
}

impl Check {
    fn run(self) -> Result<(), Failure> {
        let broker = self.place.open()?;
        let found = self.place.check(&broker)?;
        let damaged: Vec<_> = found.iter().filter(|it| it.is_damaged()).collect();
        if self.output.is_json() {
            let partitions: Vec<_> = found.iter().map(to_json).collect();
            writeln!(io::stdout(), "{:#}", json!(partitions))?;
        } else {
            let mut table = Table::new(&[
                "PARTITION",
                "STATE",
                "START",
                "END",
                "SEGMENTS",
                "BYTES",
                "LOST",
            ]);
            for it in &found {
                table.row(row(it));
            }
            self.output.print(&table)?;
            for it in &damaged {
                for text in it.lines() {
                    line(format!("{}: {text}", it.partition.name()))?;
                }
            }
        }
        match damaged.len() {
            0 => Ok(()),
            count => Err(Failure::new(format!(
                "{count} of {} partitions are damaged; `kohort log repair` shows what can be done",
                found.len()
            ))),
        }
    }
}

fn row(found: &Found<'_>) -> Vec<serde_json::Value> {
    let name = found.partition.name().into();
    let Some(checked) = &found.checked else {
        let nothing = serde_json::Value::Null;
        return vec![
            name,
            "missing".into(),
            nothing.clone(),
            nothing.clone(),
            nothing.clone(),
            nothing.clone(),
            nothing,
        ];
    };
    let state = if checked.damage.is_empty() {
        "ok"
    } else {
        "damaged"
    };
    vec![
        name,
        state.into(),
        checked.start_offset.into(),
        checked.end_offset.into(),
        checked.segments.into(),
        checked.bytes.into(),
        found.lost().into(),
    ]
}

fn to_json(found: &Found<'_>) -> serde_json::Value {
    let partition = found.partition;
    let Some(checked) = &found.checked else {
        return json!({
            "topic": partition.topic,
            "partition": partition.index,
            "state": "missing",
        });
    };
    let damage = checked.damage.iter().map(|damage| {
        json!({
            "file": damage.file,
            "position": damage.position,
            "reason": damage.reason,
            "lost_from": damage.lost.start,
            "lost_to": damage.lost.end,
        })
    });
    json!({
        "topic": partition.topic,
        "partition": partition.index,
        "state": if checked.damage.is_empty() { "ok" } else { "damaged" },
        "start_offset": checked.start_offset,
        "end_offset": checked.end_offset,
        "segments": checked.segments,
        "bytes": checked.bytes,
        "unfinished_bytes": checked.unfinished_bytes,
        "damage": damage.collect::<Vec<_>>(),
    })
}

impl Repair {
    fn run(self) -> Result<(), Failure> {
        let broker = self.place.open()?;
        let found = self.place.check(&broker)?;
        let damaged: Vec<_> = found.iter().filter(|it| it.is_damaged()).collect();
        if damaged.is_empty() {
            line("nothing is damaged")?;
            return Ok(());
        }
        for it in damaged {
            let name = it.partition.name();
            for text in it.lines() {
                line(format!("{name}: {text}"))?;
            }
            let failed = |error| Failure::new(format!("{name}: {error}"));
            match (&it.checked, self.execute) {
                (None, false) => line(format!(
                    "{name}: would begin again, empty, at offset {} (--start-offset)",
                    self.start_offset
                ))?,
                (None, true) => {
                    broker
                        .create_folder(it.partition, self.start_offset)
                        .map_err(failed)?;
                    line(format!(
                        "{name}: begins again, empty, at offset {}",
                        self.start_offset
                    ))?;
                }
                (Some(checked), false) => line(format!(
                    "{name}: would give up {}; the log would go on at offset {}",
                    records(it.lost().unwrap_or(0)),
                    checked.end_offset
                ))?,
                (Some(checked), true) => {
                    let repaired =
                        kohort_broker::repair_log(&it.partition.folder).map_err(failed)?;
                    let kept = if repaired.kept.is_empty() {
                        String::new()
                    } else {
                        format!("; kept as it was: {}", repaired.kept.join(", "))
                    };
                    line(format!(
                        "{name}: gave up {}; the log goes on at offset {}{kept}",
                        records(it.lost().unwrap_or(0)),
                        checked.end_offset
                    ))?;
                }
            }
        }
        if !self.execute {
            line("Dry run: nothing changed. Pass --execute to apply.")?;
        }
        Ok(())
    }
}

fn records(lost: i64) -> String {
    match lost {
        0 => "no records".to_owned(),
        1 => "1 offset".to_owned(),
        lost => format!("{lost} offsets"),
    }
}
