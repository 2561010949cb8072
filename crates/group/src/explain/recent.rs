//! A group's history folded to what it says of the present.

use std::collections::VecDeque;

use crate::{
    Id, Millis,
    history::{Cause, Causes, Deletion, Event, Few, Late, Needs, Phase, Waited, What, Who},
};

/// How many beginnings of rebalances are remembered.
const STARTS_MAX: usize = 1_000;

/// What the events of a group say of the present.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recent {
    /// The rebalance that goes on.
    pub rebalance: Option<Rebalance>,
    /// The last one that came to its end.
    pub last: Option<Rebalance>,
    /// The beginnings of the last rebalances, and why they began.
    pub starts: VecDeque<(Millis, Cause)>,
    /// Members of a stable classic group that have yet to ask for what they were assigned, and since
    /// when.
    pub not_synced: (Millis, Few<Waited>),
    /// When the group lost its last member; `None` if it has some.
    pub emptied_at: Option<Millis>,
    /// When the coordinator was last started.
    pub loaded_at: Option<Millis>,
    /// When the group was deleted, and why; `None` if it has come back since.
    pub deleted: Option<(Millis, Deletion)>,
    /// When a client last set the group's offsets, and which.
    pub reset: Option<(Millis, Who)>,
    /// The client that last asked for a rewind.
    pub rewinds: Option<Who>,
}

/// A rebalance, going on or past.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rebalance {
    /// When it began.
    pub began_at: Millis,
    /// The generation or epoch.
    pub epoch: i32,
    /// Why it began, and what came while it went on.
    pub causes: Causes,
    /// What it waits for.
    pub phase: Option<Phase>,
    /// Since when.
    pub phase_since: Millis,
    /// Until when.
    pub deadline_at: Option<Millis>,
    /// For whom, as it was last said.
    pub waited: Few<Waited>,
    /// Members that were asked to revoke, each with when it is fenced otherwise.
    pub asked: Vec<(Id, Millis)>,
    /// How long it took in all, once it has ended.
    pub total_ms: Option<i64>,
    /// The last member to do its part.
    pub last: Option<Late>,
}

impl Recent {
    /// Takes the next event of the group.
    pub fn take(&mut self, event: &Event) {
        let at = event.at;
        self.deleted = None;
        match &event.what {
            What::RebalanceBegan {
                epoch,
                causes,
                deadline_at,
            } => self.begin(at, *epoch, causes, *deadline_at),
            What::Changed { cause } => {
                if let Some(rebalance) = &mut self.rebalance {
                    rebalance.causes.extend([cause.clone()]);
                }
                if let Cause::MemberJoined { .. } = cause {
                    self.emptied_at = None;
                }
            }
            What::Waiting {
                phase: Phase::Sync,
                since,
                members,
                ..
            } => self.not_synced = (*since, members.clone()),
            What::Waiting {
                phase,
                since,
                deadline_at,
                members,
                ..
            } => {
                if let Some(rebalance) = &mut self.rebalance {
                    rebalance.begin_phase(*phase, *since);
                    rebalance.waited = members.clone();
                    rebalance.deadline_at = deadline_at.or(rebalance.deadline_at);
                }
            }
            What::JoinEnded { leader, last, .. } => {
                if let Some(rebalance) = &mut self.rebalance {
                    rebalance.begin_phase(Phase::Assign, at);
                    rebalance.last = last.clone();
                    rebalance.waited = [Waited {
                        member: leader.clone(),
                        needs: Needs::Assign,
                        partitions: Few::default(),
                        deadline_at: None,
                        blocks: Few::default(),
                    }]
                    .into_iter()
                    .collect();
                }
            }
            What::TargetComputed { .. } => {
                if let Some(rebalance) = &mut self.rebalance {
                    rebalance.begin_phase(Phase::Reconcile, at);
                }
            }
            What::RevocationAsked {
                member,
                deadline_at,
                ..
            } => {
                if let Some(rebalance) = &mut self.rebalance {
                    rebalance.asked.push((member.id.clone(), *deadline_at));
                }
            }
            What::Assigned { total_ms, .. } => self.end(*total_ms, None),
            What::Stable { total_ms, last, .. } => self.end(*total_ms, last.clone()),
            What::Emptied { .. } => {
                let began_at = self.rebalance.as_ref().map(|it| it.began_at);
                self.end(at - began_at.unwrap_or(at), None);
                self.emptied_at = Some(at);
            }
            What::Deleted { why } => {
                *self = Recent {
                    deleted: Some((at, *why)),
                    ..Recent::default()
                };
            }
            What::RewindAsked { by, .. } => self.rewinds = Some(by.clone()),
            What::OffsetsReset { by, .. } => self.reset = Some((at, by.clone())),
            What::Loaded { .. } => self.loaded_at = Some(at),
            _ => {}
        }
    }

    fn begin(&mut self, at: Millis, epoch: i32, causes: &Causes, deadline_at: Option<Millis>) {
        self.emptied_at = None;
        self.not_synced = Default::default();
        if let Some(cause) = causes.first.first() {
            if self.starts.len() == STARTS_MAX {
                self.starts.pop_front();
            }
            self.starts.push_back((at, cause.clone()));
        }
        let rebalance = self.rebalance.get_or_insert_with(|| Rebalance {
            began_at: at,
            epoch,
            causes: Causes::default(),
            phase: None,
            phase_since: at,
            deadline_at,
            waited: Few::default(),
            asked: Vec::new(),
            total_ms: None,
            last: None,
        });
        rebalance.epoch = epoch;
        rebalance.causes.extend(causes.first.iter().cloned());
        rebalance.deadline_at = deadline_at;
        match deadline_at {
            // Everybody in a classic group is to join again.
            Some(_) => rebalance.begin_phase(Phase::Join, at),
            None => rebalance.phase = None,
        }
    }

    fn end(&mut self, total_ms: i64, last: Option<Late>) {
        if let Some(mut rebalance) = self.rebalance.take() {
            rebalance.total_ms = Some(total_ms);
            rebalance.last = last.or(rebalance.last);
            self.last = Some(rebalance);
        }
    }
}

impl Rebalance {
    fn begin_phase(&mut self, phase: Phase, since: Millis) {
        if self.phase != Some(phase) || self.phase_since != since {
            self.phase = Some(phase);
            self.phase_since = since;
            self.waited = Few::default();
            self.asked.clear();
        }
    }

    /// When it ended.
    pub fn ended_at(&self) -> Option<Millis> {
        Some(self.began_at + self.total_ms?)
    }

    /// When the member is removed, as far as the history knows.
    pub(super) fn deadline_of(&self, member_id: &str) -> Option<Millis> {
        let waited = self.waited.first.iter();
        let mut waited = waited.filter(|waited| *waited.member.id == *member_id);
        let asked = || self.asked.iter().rev().find(|(id, _)| **id == *member_id);
        waited
            .find_map(|waited| waited.deadline_at)
            .or_else(|| Some(asked()?.1))
    }
}
