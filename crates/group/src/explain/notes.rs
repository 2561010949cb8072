//! Things worth knowing of a group that works.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{Recent, View, advice::for_cause, view::name};
use crate::{
    Id, Millis,
    history::{Few, Who, clock_span, partitions_in_words},
};

/// How many rebalances within an hour are worth a note.
const FREQUENT: usize = 5;

const HOUR_MS: Millis = 3_600_000;

/// Something worth knowing, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Note {
    /// What.
    pub text: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

/// A group's position in a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionLag {
    /// The topic.
    pub topic: Id,
    /// The partition.
    pub partition: i32,
    /// The committed offset.
    pub committed: Option<i64>,
    /// The offset of the first record that still exists.
    pub start: Option<i64>,
    /// The offset after the last record.
    pub end: Option<i64>,
}

impl PartitionLag {
    /// How many records the group has yet to read. Counts only offsets that the log still holds.
    /// Unknown without a commit: `auto.offset.reset` then decides where the group starts.
    pub fn lag(&self) -> Option<i64> {
        let (committed, end) = (self.committed?, self.end?);
        let next = committed.max(self.start.unwrap_or(0));
        Some(end.saturating_sub(next).max(0))
    }

    /// How many offsets were deleted, by retention or on request, before the group read them.
    pub fn gone(&self) -> i64 {
        match (self.committed, self.start) {
            (Some(committed), Some(start)) => start.saturating_sub(committed.max(0)).max(0),
            _ => 0,
        }
    }

    /// How far the committed offset lies beyond the end of the log: records were lost, or the topic
    /// was replaced.
    pub fn ahead(&self) -> i64 {
        match (self.committed, self.end) {
            (Some(committed), Some(end)) => committed.saturating_sub(end).max(0),
            _ => 0,
        }
    }
}

fn note(text: String, advice: Option<&str>) -> Note {
    Note {
        text,
        advice: advice.map(str::to_owned),
    }
}

/// What is worth knowing about a group.
pub(super) fn notes(view: &View, recent: &Recent, lags: &[PartitionLag], now: Millis) -> Vec<Note> {
    let mut notes = Vec::new();
    notes.extend(idle_members(view));
    notes.extend(imbalance(view));
    notes.extend(unread_topics(view));
    notes.extend(orphans(view, lags));
    notes.extend(deleted_unread(lags));
    notes.extend(beyond_the_end(lags));
    notes.extend(frequency(recent, now));
    if let Some((at, by)) = &recent.reset {
        let ago = clock_span(now - at);
        notes.push(note(
            format!("{by} set its committed offsets {ago} ago"),
            None,
        ));
    }
    notes
}

fn idle_members(view: &View) -> Option<Note> {
    if !view.is_stable() {
        return None;
    }
    let idle: Few<&Who> = view
        .members
        .iter()
        .filter(|member| member.assignment.is_empty())
        .map(|member| &member.who)
        .collect();
    let partitions: usize = view.members.iter().map(|it| it.assignment.len()).sum();
    if idle.is_empty() {
        return None;
    }
    let count = view.members.len();
    let text = if idle.count == count {
        "no member has any partitions".to_owned()
    } else {
        format!(
            "{} of {count} members have no partitions: {idle}",
            idle.count
        )
    };
    Some(if partitions < count && partitions > 0 {
        note(
            format!(
                "{text}; there {} only {}",
                if partitions == 1 { "is" } else { "are" },
                partitions_in_words(partitions)
            ),
            Some("more members do not help: add partitions or stop the idle members"),
        )
    } else {
        note(
            text,
            Some("check what they subscribe to, and whether those topics exist"),
        )
    })
}

/// Worth a word only among members that subscribe to the same.
fn imbalance(view: &View) -> Option<Note> {
    let first = view.members.first()?;
    let same =
        |other: &super::MemberView| (&other.topics, &other.regex) == (&first.topics, &first.regex);
    if !view.is_stable() || !view.members.iter().all(same) {
        return None;
    }
    let most = view.members.iter().max_by_key(|it| it.assignment.len())?;
    let least = view.members.iter().min_by_key(|it| it.assignment.len())?;
    let (many, few) = (most.assignment.len(), least.assignment.len());
    (few > 0 && many >= 2 * few + 2).then(|| {
        note(
            format!(
                "the assignment is uneven: {} has {many} partitions, {} has {few}",
                most.who, least.who
            ),
            Some("use an assignor that balances across topics: uniform, sticky or cooperative-sticky"),
        )
    })
}

fn unread_topics(view: &View) -> Option<Note> {
    let assigned: BTreeSet<&Id> = view
        .members
        .iter()
        .flat_map(|member| member.assignment.iter().map(|(topic, _)| topic))
        .collect();
    let unread: BTreeSet<&Id> = view
        .members
        .iter()
        .flat_map(|member| &member.topics)
        .filter(|topic| !assigned.contains(*topic))
        .collect();
    (view.is_stable() && !unread.is_empty()).then(|| {
        let names: Few<&Id> = unread.into_iter().collect();
        note(
            format!("members subscribe to {names}, but no member has a partition of it"),
            Some("check that the topic exists and that its name is spelled correctly"),
        )
    })
}

/// Partitions with records that no member reads.
fn orphans(view: &View, lags: &[PartitionLag]) -> Option<Note> {
    let owned: BTreeSet<(&str, i32)> = view
        .members
        .iter()
        .flat_map(|member| &member.assignment)
        .map(|(topic, partition)| (&**topic, *partition))
        .collect();
    let orphans: Vec<&PartitionLag> = lags
        .iter()
        .filter(|lag| lag.lag() > Some(0) && !owned.contains(&(&*lag.topic, lag.partition)))
        .collect();
    if orphans.is_empty() || (!view.is_stable() && !view.is_empty()) {
        return None;
    }
    let records: i64 = orphans.iter().filter_map(|lag| lag.lag()).sum();
    let names = names(orphans.iter().copied());
    Some(note(
        format!("{records} records are waiting in partitions that no member owns: {names}"),
        None,
    ))
}

fn names<'a>(lags: impl Iterator<Item = &'a PartitionLag>) -> Few<String> {
    lags.map(|lag| name(&(lag.topic.clone(), lag.partition)))
        .collect()
}

/// Records that were deleted before the group read them: they are no lag, and worth a word.
fn deleted_unread(lags: &[PartitionLag]) -> Option<Note> {
    let records: i64 = lags.iter().map(PartitionLag::gone).sum();
    let names = names(lags.iter().filter(|lag| lag.gone() > 0));
    (records > 0).then(|| {
        note(
            format!("{records} records of {names} were deleted before the group read them"),
            Some("if that is not intended, raise the topic's retention.ms or retention.bytes"),
        )
    })
}

fn beyond_the_end(lags: &[PartitionLag]) -> Option<Note> {
    let names = names(lags.iter().filter(|lag| lag.ahead() > 0));
    (!names.is_empty()).then(|| {
        note(
            format!("the committed offset lies beyond the end of {names}"),
            Some(
                "records were lost, or the topic was deleted and created again; members start \
                 where auto.offset.reset says",
            ),
        )
    })
}

fn frequency(recent: &Recent, now: Millis) -> Option<Note> {
    let lately: Vec<_> = recent
        .starts
        .iter()
        .filter(|(at, _)| now - at <= HOUR_MS)
        .collect();
    if lately.len() < FREQUENT {
        return None;
    }
    let mut kinds: BTreeMap<&str, (usize, Option<&str>)> = BTreeMap::new();
    for (_, cause) in &lately {
        let (kind, advice) = for_cause(cause);
        kinds.entry(kind).or_insert((0, advice)).0 += 1;
    }
    let (kind, (count, advice)) = kinds.into_iter().max_by_key(|(_, (count, _))| *count)?;
    Some(note(
        format!(
            "{} rebalances in the last hour, {count} of them because {kind}",
            lately.len()
        ),
        advice,
    ))
}
