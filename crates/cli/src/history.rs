//! `kohort groups history`.

use std::{io::Write, time::Duration};

use clap::Args;
use jiff::{SignedDuration, Span, SpanRelativeTo, Timestamp};
use kohort::{
    Admin, ErrorCode,
    admin::GroupEvents,
    history::{Event, Observer, Timeline, View},
};
use serde_json::Value;

use crate::{
    client::{Connect, seconds},
    failure::Failure,
    output::{Output, line},
    rewind::times::datetime,
    signals::until_interrupted,
};

#[derive(Debug, Args)]
pub(crate) struct History {
    #[command(flatten)]
    connect: Connect,
    #[command(flatten)]
    output: Output,
    /// Id of the group.
    group: String,
    /// Start: a time such as 2026-11-29 or 2026-11-29T20:00, or an age such as 90m.
    #[arg(long, default_value = "1d", value_name = "TIME", value_parser = since)]
    since: Timestamp,
    /// Continue with new events until interrupted.
    #[arg(short, long)]
    watch: bool,
    #[command(flatten)]
    looks: Looks,
}

/// How often one looks at a group from outside.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Looks {
    /// With --watch: seconds between looks at a group without a history.
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

/// A time (in UTC unless it names a zone), or an age.
fn since(text: &str) -> Result<Timestamp, String> {
    let wrong = || "write a time such as 2026-11-29T20:00 or an age such as 90m".to_owned();
    if let Ok(time_ms) = datetime(text) {
        return Timestamp::from_millisecond(time_ms).map_err(|_| wrong());
    }
    let span: Span = text.parse().map_err(|_| wrong())?;
    let ago: SignedDuration = span
        .to_duration(SpanRelativeTo::days_are_24_hours())
        .map_err(|_| wrong())?;
    Timestamp::now().checked_sub(ago.abs()).map_err(|_| wrong())
}

/// The time as people read it.
pub(crate) fn clock(at_ms: i64) -> String {
    match Timestamp::from_millisecond(at_ms) {
        Ok(time) => time.strftime("%Y-%m-%d %H:%M:%SZ").to_string(),
        Err(_) => format!("{at_ms} ms"),
    }
}

/// How a group stands; `None` if it does not exist.
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
            return match is_known {
                true => printer.finish(&self.group, &clock(since_ms)),
                false => Err(Failure::new(format!(
                    "there is no group {}, and nothing is known of one since {}",
                    self.group,
                    clock(since_ms)
                ))),
            };
        }
        loop {
            printer.print(events.next_within(Duration::from_secs(1)).await?)?;
        }
    }

    /// What can be told of a group of a cluster that keeps no history: what happens from now on, seen
    /// from outside; until there is a history after all.
    async fn without_history(
        &self,
        admin: &Admin,
        printer: &mut Printer,
    ) -> Result<GroupEvents, Failure> {
        if !self.watch {
            if view(admin, &self.group).await?.is_none() {
                return Err(Failure::new(format!("there is no group {}", self.group)));
            }
            return Err(Failure::new(format!(
                "this cluster keeps no history of groups (it has no topic __kohort_group_events, \
                 which kohort serve writes); what happens from now on, as far as it can be seen from \
                 outside, shows: kohort groups history {} --watch",
                self.group
            )));
        }
        eprintln!(
            "kohort: this cluster keeps no history of groups: what follows is seen from outside, by \
             describing the group, and reasons are not"
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
            line(format_args!("{:#}", Value::Array(self.values)))?;
        } else if !self.has_printed {
            line(format_args!(
                "nothing has happened to group {group} since {since}"
            ))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_is_a_time_or_how_long_ago_it_was() {
        let time = since("2026-11-29T20:00Z").expect("a time");
        assert_eq!(clock(time.as_millisecond()), "2026-11-29 20:00:00Z");
        for (text, hours) in [
            ("90m", 1.5),
            ("7d", 168.0),
            ("1h 30m", 1.5),
            ("PT12H", 12.0),
        ] {
            let ago = Timestamp::now().duration_since(since(text).expect(text));
            assert!((ago.as_secs_f64() - hours * 3_600.0).abs() < 5.0, "{text}");
        }
        assert!(since("yesterday").is_err());
    }
}
