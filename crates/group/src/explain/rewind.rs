//! A rewind that is under way, in words.

use std::{
    collections::BTreeSet,
    fmt::{self, Formatter},
};

use serde::Serialize;

use super::{
    Clock, View,
    view::{Partition, name},
};
use crate::coordinator::{
    Millis,
    history::{Few, Who, clock_span},
};

/// A rewind that is under way, as the coordinator tells of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingRewind {
    /// When it was asked for.
    pub asked_at: Millis,
    /// What is rewound: topics and partitions.
    pub partitions: BTreeSet<(crate::coordinator::Id, i32)>,
}

/// A rewind that is under way: what it waits for, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExplainedRewind {
    /// Who asked for it, if the history tells.
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
    /// Who.
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
                "it happens by itself once they have let go or are put out; to give it up instead: \
                 kohort groups rewind {group_id} --undo --execute"
            ),
        }
    }

    pub(super) fn write(&self, f: &mut Formatter<'_>, now: Millis, clock: Clock) -> fmt::Result {
        let partitions = &self.partitions;
        write!(f, "\nA rewind of {partitions} is under way, asked for ")?;
        if let Some(by) = &self.by {
            write!(f, "by {by} ")?;
        }
        let since = clock_span((now - self.asked_at).max(0));
        writeln!(f, "{} ({since} ago)", clock(self.asked_at))?;
        writeln!(
            f,
            "  until nobody has any of it, nobody is given it; then the new offsets are committed"
        )?;
        for held in &self.held_by.first {
            writeln!(f, "  {} still has {}", held.member, held.partitions)?;
        }
        match self.held_by.more() {
            0 => {}
            more => writeln!(f, "  and {more} more have some of it")?,
        }
        writeln!(f, "  → {}", self.advice)
    }
}
