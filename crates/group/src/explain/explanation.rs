//! What a group is doing, in words.

use std::fmt::{self, Display, Formatter};

use serde::Serialize;

use super::{
    ExplainedRewind, Note, PartitionLag, PendingRewind, Rebalance, Recent, View, advice::for_needs,
    notes::notes,
};
use crate::{
    Millis,
    history::{Causes, Few, Late, Needs, Phase, Protocol, Waited, clock_span, partitions_in_words},
    text::{printable_line, printable_name},
};

/// How a time is written.
pub type Clock = fn(Millis) -> String;

/// What a group is doing, which members it waits for, and what to do about it.
#[derive(Debug, Clone, Serialize)]
pub struct Explanation {
    /// The group.
    pub group: String,
    /// Its protocol.
    pub protocol: Protocol,
    /// Its state, in Kafka's words.
    pub state: String,
    /// When this was so.
    pub at: Millis,
    /// Since when it has been so, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Millis>,
    /// How many members it has.
    pub members: usize,
    /// What it is doing: a sentence.
    pub summary: String,
    /// The members it waits for.
    pub waits_for: Vec<Holdup>,
    /// How many more members it waits for.
    pub waits_for_more: usize,
    /// The rewind that is under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rewind: Option<ExplainedRewind>,
    /// Why the rebalance that goes on began.
    #[serde(skip_serializing_if = "Few::is_empty")]
    pub causes: Causes,
    /// The last rebalance that came to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_rebalance: Option<LastRebalance>,
    /// Things worth knowing.
    pub notes: Vec<Note>,
    #[serde(skip)]
    clock: Clock,
}

/// A member that others wait for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Holdup {
    /// The member, what it has to do, and which members that blocks.
    #[serde(flatten)]
    pub waited: Waited,
    /// Since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Millis>,
    /// How much time it has left before it is removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_ms: Option<i64>,
    /// What to do about it.
    pub advice: String,
}

/// A rebalance that has come to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LastRebalance {
    /// When it began.
    pub began_at: Millis,
    /// How long it took.
    pub took_ms: i64,
    /// Why it began, and what came while it went on.
    pub causes: Causes,
    /// The last member to do its part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<Late>,
}

/// Explains a group: from how it stands, from its history as far as there is one, from its offsets,
/// and from the rewind that is under way, if there is one.
pub fn explain(
    group_id: &str,
    view: &View,
    recent: &Recent,
    lags: &[PartitionLag],
    rewind: Option<&PendingRewind>,
    now: Millis,
    clock: Clock,
) -> Explanation {
    // The history may be a moment behind, or have a hole: how the group stands decides.
    let rebalance = recent
        .rebalance
        .as_ref()
        .filter(|_| !view.is_stable() && !view.is_empty());
    let waits_for = holdups(view, rebalance, recent, rewind, now);
    let since = match rebalance {
        Some(rebalance) => Some(rebalance.began_at),
        None if view.is_empty() => recent.emptied_at,
        None if view.is_stable() => recent.last.as_ref().and_then(Rebalance::ended_at),
        None => None,
    };
    let last_rebalance = recent.last.as_ref().map(|last| LastRebalance {
        began_at: last.began_at,
        took_ms: last.total_ms.unwrap_or_default(),
        causes: last.causes.clone(),
        last: last.last.clone(),
    });
    Explanation {
        group: group_id.to_owned(),
        protocol: view.protocol,
        state: view.state.clone(),
        at: now,
        since,
        members: view.members.len(),
        summary: summary(view, rebalance, waits_for.count, now, clock),
        waits_for_more: waits_for.more(),
        waits_for: waits_for.first,
        rewind: rewind.map(|it| ExplainedRewind::new(group_id, it, recent.rewinds.as_ref(), view)),
        causes: rebalance.map(|it| it.causes.clone()).unwrap_or_default(),
        last_rebalance,
        notes: notes(view, recent, lags, now),
        clock,
    }
}

/// Whom the group waits for. Of a consumer group that can be seen; of a classic one only its history
/// tells.
fn holdups(
    view: &View,
    rebalance: Option<&Rebalance>,
    recent: &Recent,
    rewind: Option<&PendingRewind>,
    now: Millis,
) -> Few<Holdup> {
    let withheld = rewind.map(|it| it.partitions.clone()).unwrap_or_default();
    let not_synced = &recent.not_synced;
    let waited: Few<Waited> = match view.protocol {
        Protocol::Consumer if view.state == "Reconciling" => {
            view.waited(&withheld).into_iter().collect()
        }
        Protocol::Consumer => Few::default(),
        Protocol::Classic if view.is_stable() => not_synced.1.clone(),
        Protocol::Classic => rebalance.map(|it| it.waited.clone()).unwrap_or_default(),
    };
    let holdup = |waited: Waited| {
        let deadline_at = waited
            .deadline_at
            .or_else(|| rebalance?.deadline_of(&waited.member.id));
        Holdup {
            since: match rebalance {
                Some(rebalance) => rebalance.phase.map(|_| rebalance.phase_since),
                None => (waited.needs == Needs::Sync).then_some(not_synced.0),
            },
            left_ms: deadline_at.map(|at| (at - now).max(0)),
            advice: for_needs(waited.needs).to_owned(),
            waited: Waited {
                deadline_at,
                ..waited
            },
        }
    };
    Few {
        count: waited.count,
        first: waited.first.into_iter().map(holdup).collect(),
    }
}

fn summary(
    view: &View,
    rebalance: Option<&Rebalance>,
    waits_for: usize,
    now: Millis,
    clock: Clock,
) -> String {
    let count = view.members.len();
    let members = match count {
        1 => "its one member".to_owned(),
        count => format!("its {count} members"),
    };
    let of = format!("{waits_for} of {count} members");
    let partitions: usize = view.members.iter().map(|it| it.assignment.len()).sum();
    let until = match rebalance.and_then(|it| it.deadline_at) {
        Some(at) if at > now => format!(
            ", until {} at the latest ({} left)",
            clock(at),
            clock_span(at - now)
        ),
        _ => String::new(),
    };
    let has = match waits_for {
        1 => "has",
        _ => "have",
    };
    match &*view.state {
        "Stable" if waits_for > 0 => {
            format!("{of} {has} not fetched the assignment from the leader{until}")
        }
        "Stable" => {
            let have = match count {
                1 => "has",
                _ => "share",
            };
            format!("{members} {have} {}", partitions_in_words(partitions))
        }
        "Empty" => "it has no members".to_owned(),
        "Dead" => "it does not exist".to_owned(),
        "PreparingRebalance" => match rebalance.and_then(|it| it.phase) {
            Some(Phase::MoreMembers) => {
                format!("it was empty and waits for more members to join{until}")
            }
            _ if waits_for > 0 => {
                format!("{of} {has} not rejoined{until}; the others wait")
            }
            _ => format!("{members} must rejoin{until}"),
        },
        "CompletingRebalance" => {
            format!("{members} have joined and wait for the leader to assign partitions")
        }
        "Assigning" => format!("a new assignment for {members} is about to be computed"),
        "Reconciling" if waits_for > 0 => {
            format!("{of} {has} not applied the new assignment")
        }
        "Reconciling" => format!("{members} are applying a new assignment"),
        state => format!("its state is {state}"),
    }
}

impl Display for Explanation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let clock = self.clock;
        let mut lines = Lines(f);
        let since = self.since.map_or(String::new(), |since| {
            let span = clock_span(self.at - since);
            format!(", since {} ({span})", clock(since))
        });
        let group = printable_name(&self.group);
        lines.line(format_args!(
            "{group} is {}{since}: {}",
            self.state, self.summary
        ))?;
        if !self.waits_for.is_empty() {
            lines.heading("Waiting for")?;
        }
        for holdup in &self.waits_for {
            self.holdup(&mut lines, holdup)?;
        }
        if self.waits_for_more > 0 {
            lines.line(format_args!("  and {} more", self.waits_for_more))?;
        }
        self.advice(&mut lines)?;
        if let Some(rewind) = &self.rewind {
            rewind.write(&mut lines, self.at, clock)?;
        }
        if !self.causes.is_empty() {
            lines.heading("Why it rebalances")?;
            list(&mut lines, &self.causes)?;
        }
        if let Some(last) = &self.last_rebalance {
            let (at, took) = (clock(last.began_at), clock_span(last.took_ms));
            lines.heading(&format!("The last rebalance began {at} and took {took}"))?;
            list(&mut lines, &last.causes)?;
            if let Some(late) = last.last.as_ref().filter(|late| late.is_notable()) {
                lines.line(format_args!("  {late}"))?;
            }
        }
        if !self.notes.is_empty() {
            lines.heading("Worth knowing")?;
        }
        for note in &self.notes {
            lines.line(format_args!("  {}", note.text))?;
            if let Some(advice) = &note.advice {
                lines.line(format_args!("    → {advice}"))?;
            }
        }
        Ok(())
    }
}

/// Writes whole lines, so that nothing a peer has named itself can end a line or change the terminal.
pub(super) struct Lines<'a, 'b>(&'a mut Formatter<'b>);

impl Lines<'_, '_> {
    pub(super) fn line(&mut self, text: impl Display) -> fmt::Result {
        writeln!(self.0, "{}", printable_line(&text.to_string()))
    }

    /// A line after an empty one.
    pub(super) fn heading(&mut self, text: &str) -> fmt::Result {
        writeln!(self.0)?;
        self.line(text)
    }
}

impl Explanation {
    fn holdup(&self, lines: &mut Lines<'_, '_>, holdup: &Holdup) -> fmt::Result {
        let waited = &holdup.waited;
        let mut text = format!("  {} to {}", waited.member, waited.needs);
        if !waited.partitions.is_empty() {
            text.push_str(&format!(" {}", waited.partitions));
        }
        if let Some(since) = holdup.since {
            let span = clock_span(self.at - since);
            text.push_str(&format!(", since {} ({span})", (self.clock)(since)));
        }
        lines.line(text)?;
        if !waited.blocks.is_empty() {
            let verb = match waited.blocks.count {
                1 => "waits",
                _ => "wait",
            };
            lines.line(format_args!("    {} {verb} for that", waited.blocks))?;
        }
        if let (Some(left_ms), Some(at)) = (holdup.left_ms, waited.deadline_at) {
            let (left, at) = (clock_span(left_ms), (self.clock)(at));
            lines.line(format_args!(
                "    removed in {left} ({at}) unless it responds; the others then continue"
            ))?;
        }
        Ok(())
    }

    /// Once for all members that have the same to do.
    fn advice(&self, lines: &mut Lines<'_, '_>) -> fmt::Result {
        let mut given: Vec<Needs> = Vec::new();
        for holdup in &self.waits_for {
            if !given.contains(&holdup.waited.needs) {
                given.push(holdup.waited.needs);
                lines.line(format_args!("  → {}", holdup.advice))?;
            }
        }
        Ok(())
    }
}

/// Causes, a line each.
fn list(lines: &mut Lines<'_, '_>, causes: &Causes) -> fmt::Result {
    for cause in &causes.first {
        lines.line(format_args!("  {cause}"))?;
    }
    match causes.more() {
        0 => Ok(()),
        more => lines.line(format_args!("  and {more} more")),
    }
}
