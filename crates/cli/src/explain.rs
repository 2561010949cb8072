//! `kohort groups explain`.

use std::{
    io::{self, IsTerminal, Write},
    time::Duration,
};

use clap::Args;
use clap_complete::ArgValueCandidates;
use jiff::Timestamp;
use kohort::{
    Admin, ByteString,
    admin::GroupEvents,
    history::{Explanation, PartitionLag, PendingRewind, Recent, View, explain},
};

use crate::{
    client::Connect,
    completion,
    failure::Failure,
    history::{Looks, view},
    lag::{Bounds, committed},
    output::Output,
    signals::until_interrupted,
    times::clock,
};

/// How much of the history is read.
const HISTORY_MS: i64 = 24 * 3_600_000;

/// How long nothing may come of the history for it to be read to its end.
const CATCH_UP: Duration = Duration::from_millis(100);

/// Explain what a group is doing, which members it waits for, and why
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  kohort groups explain billing
  kohort groups explain billing --watch")]
pub(crate) struct Explain {
    /// Group id
    #[arg(add = ArgValueCandidates::new(completion::groups))]
    group: String,
    /// Keep explaining until interrupted: in place on a terminal, otherwise at each change
    #[arg(short, long)]
    watch: bool,
    #[command(flatten)]
    looks: Looks,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

impl Explain {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        until_interrupted(self.watch, self.tell()).await
    }

    async fn tell(&self) -> Result<(), Failure> {
        let admin = self.connect.admin().await?;
        let mut events = self.events(&admin).await?;
        let mut recent = Recent::default();
        if let Some(events) = &mut events {
            let so_far = events.so_far().await?;
            so_far.iter().for_each(|event| recent.take(event));
        }
        let mut last = None;
        loop {
            if events.is_none() && self.watch {
                events = self.events(&admin).await?;
            }
            let view = view(&admin, &self.group).await?;
            // The history is read after that, so that it is not behind.
            if let Some(events) = &mut events {
                catch_up(events, &mut recent).await?;
            }
            let explanation = match &view {
                Some(view) => Some(self.explain(&admin, view, &recent).await?),
                None => None,
            };
            match explanation {
                Some(explanation) => self.print(&explanation, &mut last)?,
                None if self.watch => {}
                None => return Err(self.absent(&recent)),
            }
            if !self.watch {
                return Ok(());
            }
            tokio::time::sleep(self.looks.interval()).await;
        }
    }

    async fn events(&self, admin: &Admin) -> Result<Option<GroupEvents>, Failure> {
        let since_ms = Timestamp::now().as_millisecond() - HISTORY_MS;
        Ok(admin.group_events(&self.group, since_ms).await?)
    }

    async fn explain(
        &self,
        admin: &Admin,
        view: &View,
        recent: &Recent,
    ) -> Result<Explanation, Failure> {
        let group = ByteString::from(self.group.as_str());
        let committed = committed(admin, [group.clone()]).await.remove(&group);
        let committed = committed.transpose()?.unwrap_or_default();
        let bounds = Bounds::of(admin, committed.keys().cloned().collect()).await;
        let lags: Vec<PartitionLag> = committed
            .into_iter()
            .map(|(name, offset)| bounds.position(&name, offset).lag)
            .collect();
        let pending = admin.pending_rewind(&self.group).await?;
        let rewind = pending.map(|rewind| PendingRewind {
            asked_at: rewind.at,
            partitions: rewind
                .steps
                .iter()
                .map(|step| ((&*step.partition.topic).into(), step.partition.partition))
                .collect(),
        });
        let now = Timestamp::now().as_millisecond();
        let rewind = rewind.as_ref();
        Ok(explain(
            &self.group,
            view,
            recent,
            &lags,
            rewind,
            now,
            clock,
        ))
    }

    fn absent(&self, recent: &Recent) -> Failure {
        Failure::new(match &recent.deleted {
            Some((at, _)) => format!("group {} was deleted at {}", self.group, clock(*at)),
            None => format!("group {} does not exist", self.group),
        })
    }

    fn print(
        &self,
        explanation: &Explanation,
        last: &mut Option<Substance>,
    ) -> Result<(), Failure> {
        let substance = substance(explanation);
        let is_new = last.as_ref() != Some(&substance);
        let mut out = io::stdout().lock();
        if self.output.is_json() {
            let json = serde_json::to_value(explanation)
                .map_err(|error| Failure::new(error.to_string()))?;
            match self.watch {
                true if is_new => writeln!(out, "{json}")?,
                true => {}
                false => writeln!(out, "{json:#}")?,
            }
        } else if self.watch && io::stdout().is_terminal() {
            write!(out, "\x1b[2J\x1b[H{}\n{explanation}", clock(explanation.at))?;
        } else if is_new {
            if last.is_some() {
                writeln!(out, "\n— {}", clock(explanation.at))?;
            }
            write!(out, "{explanation}")?;
        }
        *last = Some(substance);
        Ok(out.flush()?)
    }
}

/// Takes what has happened up to now.
async fn catch_up(events: &mut GroupEvents, recent: &mut Recent) -> Result<(), Failure> {
    loop {
        let next = events.next_within(CATCH_UP).await?;
        if next.is_empty() {
            return Ok(());
        }
        next.iter().for_each(|event| recent.take(event));
    }
}

/// What an explanation says apart from how time passes.
#[derive(Debug, PartialEq)]
struct Substance {
    state: String,
    members: usize,
    waits_for: Vec<String>,
    rewind: Option<String>,
    causes: usize,
    notes: Vec<String>,
}

fn substance(explanation: &Explanation) -> Substance {
    let waits_for = explanation.waits_for.iter();
    Substance {
        state: explanation.state.clone(),
        members: explanation.members,
        waits_for: waits_for.map(|it| it.waited.to_string()).collect(),
        rewind: explanation.rewind.as_ref().map(|it| {
            let held_by = it.held_by.first.iter();
            let held_by = held_by.map(|held| format!("{} {}", held.member, held.partitions));
            held_by.collect()
        }),
        causes: explanation.causes.count,
        notes: explanation.notes.iter().map(|it| it.text.clone()).collect(),
    }
}
