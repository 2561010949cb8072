//! `kohort groups history`.

use std::{io::Write, time::Duration};

use clap::Args;
use clap_complete::ArgValueCandidates;
use jiff::Timestamp;
use kohort::{
    Admin, ErrorCode,
    admin::GroupEvents,
    history::{Event, Observer, Timeline, View},
};
use serde_json::Value;

use crate::{
    client::{Connect, seconds},
    completion,
    failure::Failure,
    output::{Output, line, remark},
    signals::until_interrupted,
    times::{clock, since},
};

/// Show what happened to a group, when and why
///
/// On clusters that keep no history, which is every one but `kohort serve`, --watch reports what can
/// be seen by describing the group repeatedly.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  kohort groups history billing --since 12h
  kohort groups history billing --since 2026-11-30 -o json
  kohort groups history billing --watch")]
pub(crate) struct History {
    /// Group id
    #[arg(add = ArgValueCandidates::new(completion::groups))]
    group: String,
    /// Start: a time such as 2026-11-29 or 2026-11-29T20:00 (UTC), or an age such as 90m or 7d
    #[arg(long, default_value = "1d", value_name = "TIME", value_parser = since)]
    since: Timestamp,
    /// Keep printing events as they happen, until interrupted
    #[arg(short, long)]
    watch: bool,
    #[command(flatten)]
    looks: Looks,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

/// How often to describe a group.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Looks {
    /// With --watch: seconds between two looks at the group
    #[arg(long, default_value = "1", value_name = "SECONDS", value_parser = seconds)]
    interval: Duration,
}

impl Looks {
    /// Not so often that it would be a burden.
    pub(crate) fn interval(self) -> Duration {
        self.interval
            .clamp(Duration::from_millis(100), Duration::from_secs(3_600))
    }
}

/// Describes a group; `None` if it does not exist.
pub(crate) async fn view(admin: &Admin, group: &str) -> Result<Option<View>, kohort::Error> {
    match admin.describe_group(group).await {
        Ok(described) => Ok(Some(View::from(&described))),
        Err(error) if error.code() == Some(ErrorCode::GROUP_ID_NOT_FOUND) => Ok(None),
        Err(error) => Err(error),
    }
}

impl History {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        until_interrupted(self.watch, self.tell()).await
    }

    async fn tell(&self) -> Result<(), Failure> {
        let admin = self.connect.admin().await?;
        let since_ms = self.since.as_millisecond();
        let mut printer = Printer::new(self.output, self.watch);
        let mut events = match admin.group_events(&self.group, since_ms).await? {
            Some(events) => events,
            // A kohort broker begins one with the first thing that happens to one of its groups.
            None => self.without_history(&admin, &mut printer).await?,
        };
        printer.print(events.so_far().await?)?;
        if !self.watch {
            let is_known = printer.has_printed || view(&admin, &self.group).await?.is_some();
            return if is_known {
                printer.finish(&self.group, &clock(since_ms))
            } else {
                Err(Failure::new(format!(
                    "group {} does not exist, and has no history since {}",
                    self.group,
                    clock(since_ms)
                )))
            };
        }
        loop {
            printer.print(events.next_within(Duration::from_secs(1)).await?)?;
        }
    }

    /// On a cluster that keeps no history: reports what can be seen by describing the group, until
    /// there is a history after all.
    async fn without_history(
        &self,
        admin: &Admin,
        printer: &mut Printer,
    ) -> Result<GroupEvents, Failure> {
        if !self.watch {
            if view(admin, &self.group).await?.is_none() {
                let group = &self.group;
                return Err(Failure::new(format!("group {group} does not exist")));
            }
            return Err(Failure::new(format!(
                "this cluster keeps no history of groups (only kohort serve does, in the topic \
                 __kohort_group_events); to watch the group from now on: kohort groups history {} \
                 --watch",
                self.group
            )));
        }
        remark(
            "this cluster keeps no history of groups: watching the group from outside, which does \
             not show the reasons of changes",
        );
        let mut observer = Observer::new(&self.group);
        loop {
            let now_ms = Timestamp::now().as_millisecond();
            let since_ms = self.since.as_millisecond();
            if let Some(events) = admin.group_events(&self.group, since_ms).await? {
                return Ok(events);
            }
            let view = view(admin, &self.group).await?;
            printer.print(observer.look(view, now_ms))?;
            tokio::time::sleep(self.looks.interval()).await;
        }
    }
}

/// Prints events: lines for people, JSON for programs (an array, or with --watch a line each).
struct Printer {
    output: Output,
    is_endless: bool,
    timeline: Timeline,
    has_printed: bool,
    values: Vec<Value>,
}

impl Printer {
    fn new(output: Output, is_endless: bool) -> Printer {
        Printer {
            output,
            is_endless,
            timeline: Timeline::new(clock),
            has_printed: false,
            values: Vec::new(),
        }
    }

    fn print(&mut self, events: Vec<Event>) -> Result<(), Failure> {
        self.has_printed |= !events.is_empty();
        let mut out = std::io::stdout().lock();
        for event in events {
            match (self.output.is_json(), self.is_endless) {
                (false, _) => writeln!(out, "{}", self.timeline.line(&event))?,
                (true, true) => writeln!(out, "{}", event.to_json())?,
                (true, false) => self.values.push(event.to_json()),
            }
        }
        Ok(out.flush()?)
    }

    fn finish(self, group: &str, since: &str) -> Result<(), Failure> {
        if self.output.is_json() {
            writeln!(std::io::stdout(), "{:#}", Value::Array(self.values))?;
        } else if !self.has_printed {
            line(format_args!("no events of group {group} since {since}"))?;
        }
        Ok(())
    }
}
