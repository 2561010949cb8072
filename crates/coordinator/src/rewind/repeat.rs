//! All clients retry when a response is lost, and then the rewind must not happen twice.
//!
//! While the rewind is pending, the second request joins the first. Once it is done, the same request is
//! a repetition if no client was told: because the connections had closed, or because the coordinator
//! has restarted since. A client that was told and asks again wants another rewind: its members may have
//! read on, whether or not they have committed.

use std::collections::BTreeMap;

use kohort_group::history::{Who, clock_span};

use super::{Before, Goal, Rewound};
use crate::{Caller, Id, Millis, Shard, Token, group::Group, step::Step};

/// How long a client tries again: a little more than Java and librdkafka do by default.
const AGAIN_MS: Millis = 90_000;

/// A rewind that has happened lately, and who was told.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    group_id: Id,
    at: Millis,
    tokens: Vec<Token>,
}

impl Shard {
    /// Notes that a reply could not be delivered because the connection had closed.
    pub fn reply_lost(&mut self, token: Token) {
        for told in &mut self.told {
            told.tokens.retain(|&other| other != token);
        }
    }

    pub(super) fn rewind_happened(&mut self, group_id: &Id, tokens: &[Token], now: Millis) {
        self.told
            .retain(|told| told.at > now - AGAIN_MS && told.group_id != *group_id);
        self.told.push(Told {
            group_id: group_id.clone(),
            at: now,
            tokens: tokens.to_vec(),
        });
    }

    /// Notes that a client was told of the group's last rewind.
    pub(super) fn told_of_rewind(
        &mut self,
        group_id: &Id,
        tokens: impl IntoIterator<Item = Token>,
    ) {
        if let Some(told) = self.told.iter_mut().find(|it| it.group_id == *group_id) {
            told.tokens.extend(tokens);
            return;
        }
        // The coordinator was restarted since.
        if let Some(rewound) = self.groups.get(group_id).and_then(|g| g.rewound.as_deref()) {
            self.told.push(Told {
                group_id: group_id.clone(),
                at: rewound.at,
                tokens: tokens.into_iter().collect(),
            });
        }
    }

    /// Whether the group's last rewind was the same one, and no client was told.
    pub(super) fn is_repeated(
        &self,
        caller: &Caller,
        group_id: &Id,
        goals: &BTreeMap<(Id, i32), Goal>,
        step: &mut Step<'_>,
    ) -> bool {
        let Some(rewound) = self.groups.get(group_id).and_then(|g| g.rewound.as_deref()) else {
            return false;
        };
        let mut told = self.told.iter().filter(|told| told.group_id == *group_id);
        let is_known = told.any(|told| told.at == rewound.at && !told.tokens.is_empty());
        let ago_ms = step.date() - rewound.at;
        if is_known || !(0..=AGAIN_MS).contains(&ago_ms) || !rewound.went_to(goals) {
            return false;
        }
        let (by, ago) = (Who::from(caller), clock_span(ago_ms));
        let text = format!("{by} asks once more for the rewind that has happened {ago} ago");
        step.event(group_id, text);
        true
    }
}

impl Rewound {
    fn went_to(&self, goals: &BTreeMap<(Id, i32), Goal>) -> bool {
        let is_same = |before: &Before, goal: &Goal| {
            (before.topic_id, before.to) == (goal.topic_id, goal.offset)
        };
        self.before.len() == goals.len()
            && goals.iter().all(|(place, goal)| {
                let before = self.before.get(place);
                before.is_some_and(|before| is_same(before, goal))
            })
    }
}

impl Group {
    /// What was committed before the last rewind, if that went to the same place and nobody has
    /// committed anything since.
    pub(super) fn still_rewound(&self, topic: &Id, partition: i32, goal: &Goal) -> Option<&Before> {
        let rewound = self.rewound.as_deref()?;
        let before = rewound.before.get(&(topic.clone(), partition))?;
        let is_untouched = match self.offsets.get(topic, partition) {
            Some(committed) => {
                (committed.offset, committed.committed_at) == (before.to, rewound.at)
            }
            None => before.to < 0,
        };
        let is_same = (before.topic_id, before.to) == (goal.topic_id, goal.offset);
        (is_same && is_untouched).then_some(before)
    }
}
