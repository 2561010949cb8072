//! What a group is doing, in words.

use std::fmt::{self, Display, Formatter};

use serde::Serialize;

use super::{
    ExplainedRewind, Note, PartitionLag, PendingRewind, Rebalance, Recent, View, advice::for_needs,
    notes::notes,
};
use crate::coordinator::{
    Millis,
    history::{Causes, Few, Late, Needs, Phase, Protocol, Waited, clock_span, partitions_in_words},
};

/// How a time is written.
pub type Clock = fn(Millis) -> String;

/// What a group is doing, whom it waits for, and what to do about it.
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
    /// Whom it waits for.
    pub waits_for: Vec<Holdup>,
    /// How many more it waits for that are not named.
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
    /// Who, what it has to do, and whom that blocks.
    #[serde(flatten)]
    pub waited: Waited,
    /// Since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Millis>,
    /// How much time it has left until it is put out.
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
    /// Who was last to do its part.
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
    let members = match view.members.len() {
        1 => "its one member".to_owned(),
        count => format!("its {count} members"),
    };
    let partitions: usize = view.members.iter().map(|it| it.assignment.len()).sum();
    let until = match rebalance.and_then(|it| it.deadline_at) {
        Some(at) if at > now => format!(
            ", until {} ({} left) at the latest",
            clock(at),
            clock_span(at - now)
        ),
        _ => String::new(),
    };
    match &*view.state {
        "Stable" if waits_for > 0 => {
            format!("{waits_for} of {members} did not ask for what the leader has assigned{until}")
        }
        "Stable" => {
            let have = match view.members.len() {
                1 => "has",
                _ => "share",
            };
            format!(
                "nothing to wait for: {members} {have} {}",
                partitions_in_words(partitions)
            )
        }
        "Empty" => "it has no members: nobody consumes".to_owned(),
        "Dead" => "it does not exist".to_owned(),
        "PreparingRebalance" => match rebalance.and_then(|it| it.phase) {
            Some(Phase::MoreMembers) => {
                format!("it was empty, and waits for more members to come{until}")
            }
            _ if waits_for > 0 => {
                let verb = match waits_for {
                    1 => "has",
                    _ => "have",
                };
                format!("{waits_for} of {members} {verb} not joined again{until}; the others wait")
            }
            _ => format!("{members} are to join again{until}"),
        },
        "CompletingRebalance" => {
            format!("{members} have joined, and wait for their leader to assign")
        }
        "Assigning" => format!("a new assignment for {members} is about to be computed"),
        "Reconciling" if waits_for > 0 => {
            let verb = match waits_for {
                1 => "has",
                _ => "have",
            };
            format!("{waits_for} of {members} {verb} not done what the new assignment asks of them")
        }
        "Reconciling" => format!("{members} are taking up a new assignment"),
        state => format!("it is in the state {state}"),
    }
}

impl Display for Explanation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let clock = self.clock;
        write!(f, "{} is {}", self.group, self.state)?;
        if let Some(since) = self.since {
            write!(
                f,
                ", since {} ({})",
                clock(since),
                clock_span(self.at - since)
            )?;
        }
        writeln!(f, ": {}", self.summary)?;
        if !self.waits_for.is_empty() {
            writeln!(f, "\nIt waits for")?;
        }
        for holdup in &self.waits_for {
            self.holdup(f, holdup)?;
        }
        if self.waits_for_more > 0 {
            writeln!(f, "  and {} more", self.waits_for_more)?;
        }
        self.advice(f)?;
        if let Some(rewind) = &self.rewind {
            rewind.write(f, self.at, clock)?;
        }
        if !self.causes.is_empty() {
            writeln!(f, "\nWhy it rebalances")?;
            list(f, &self.causes)?;
        }
        if let Some(last) = &self.last_rebalance {
            let (at, took) = (clock(last.began_at), clock_span(last.took_ms));
            writeln!(f, "\nThe last rebalance began {at} and took {took}")?;
            list(f, &last.causes)?;
            if let Some(late) = last.last.as_ref().filter(|late| late.is_notable()) {
                writeln!(f, "  {late}")?;
            }
        }
        if !self.notes.is_empty() {
            writeln!(f, "\nWorth knowing")?;
        }
        for note in &self.notes {
            writeln!(f, "  {}", note.text)?;
            if let Some(advice) = &note.advice {
                writeln!(f, "    → {advice}")?;
            }
        }
        Ok(())
    }
}

impl Explanation {
    fn holdup(&self, f: &mut Formatter<'_>, holdup: &Holdup) -> fmt::Result {
        let waited = &holdup.waited;
        write!(f, "  {} to {}", waited.member, waited.needs)?;
        if !waited.partitions.is_empty() {
            write!(f, " {}", waited.partitions)?;
        }
        if let Some(since) = holdup.since {
            write!(
                f,
                ", since {} ({})",
                (self.clock)(since),
                clock_span(self.at - since)
            )?;
        }
        writeln!(f)?;
        if !waited.blocks.is_empty() {
            let verb = match waited.blocks.count {
                1 => "waits",
                _ => "wait",
            };
            writeln!(f, "    {} {verb} for that", waited.blocks)?;
        }
        if let (Some(left_ms), Some(at)) = (holdup.left_ms, waited.deadline_at) {
            let (left, at) = (clock_span(left_ms), (self.clock)(at));
            writeln!(
                f,
                "    {left} left: {at} it is put out, and the others go on"
            )?;
        }
        Ok(())
    }

    /// Once for all who are to do the same.
    fn advice(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut given: Vec<Needs> = Vec::new();
        for holdup in &self.waits_for {
            if !given.contains(&holdup.waited.needs) {
                given.push(holdup.waited.needs);
                writeln!(f, "  → {}", holdup.advice)?;
            }
        }
        Ok(())
    }
}

/// Causes, a line each.
fn list(f: &mut Formatter<'_>, causes: &Causes) -> fmt::Result {
    for cause in &causes.first {
        writeln!(f, "  {cause}")?;
    }
    match causes.more() {
        0 => Ok(()),
        more => writeln!(f, "  and {more} more"),
    }
}
