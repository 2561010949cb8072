//! A rewind that is under way, in words.

use std::{collections::BTreeSet, fmt};

use serde::Serialize;

use super::{
    Clock, View,
    explanation::Lines,
    view::{Partition, name},
};
use crate::{
    Millis,
    history::{Few, Who, clock_span},
    text::printable_name,
};

/// A rewind that is under way, as the coordinator tells of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingRewind {
    /// When it was asked for.
    pub asked_at: Millis,
    /// What is rewound: topics and partitions.
    pub partitions: BTreeSet<(crate::Id, i32)>,
}

/// A rewind that is under way: what it waits for, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExplainedRewind {
    /// The client that asked for it, if the history knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<Who>,
    /// When it was asked for.
    pub asked_at: Millis,
    /// What is rewound, as `topic-partition`.
    pub partitions: Few<String>,
    /// Members that still have some of it.
    pub held_by: Few<HeldBy>,
    /// What to do about it.
    pub advice: String,
}

/// A member that has partitions that are being rewound.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HeldBy {
    /// The member.
    pub member: Who,
    /// What it has of them, as `topic-partition`.
    pub partitions: Few<String>,
}

impl ExplainedRewind {
    pub(super) fn new(
        group_id: &str,
        pending: &PendingRewind,
        by: Option<&Who>,
        view: &View,
    ) -> ExplainedRewind {
        let held_by = view.members.iter().filter_map(|member| {
            let held: Vec<&Partition> = member
                .assignment
                .intersection(&pending.partitions)
                .collect();
            (!held.is_empty()).then(|| HeldBy {
                member: member.who.clone(),
                partitions: held.into_iter().map(name).collect(),
            })
        });
        ExplainedRewind {
            by: by.cloned(),
            asked_at: pending.asked_at,
            partitions: pending.partitions.iter().map(name).collect(),
            held_by: held_by.collect(),
            advice: format!(
                "it completes by itself once they release the partitions or are removed; to cancel \
                 it: kohort groups rewind {} --undo --execute",
                printable_name(group_id)
            ),
        }
    }

    pub(super) fn write(
        &self,
        lines: &mut Lines<'_, '_>,
        now: Millis,
        clock: Clock,
    ) -> fmt::Result {
        let by = self.by.as_ref();
        let by = by.map_or(String::new(), |by| format!("by {by} "));
        let since = clock_span((now - self.asked_at).max(0));
        lines.heading(&format!(
            "A rewind of {} is pending, requested {by}{} ({since} ago)",
            self.partitions,
            clock(self.asked_at)
        ))?;
        lines.line(
            "  the partitions stay unassigned until their current owners release them; then the new \
             offsets are committed",
        )?;
        for held in &self.held_by.first {
            lines.line(format_args!(
                "  {} still owns {}",
                held.member, held.partitions
            ))?;
        }
        match self.held_by.more() {
            0 => {}
            more => lines.line(format_args!("  and {more} more members own some of them"))?,
        }
        lines.line(format_args!("  → {}", self.advice))
    }
}
