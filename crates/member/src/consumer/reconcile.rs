//! Reconciliation: what the member has becomes what it is meant to have, in steps that the
//! application takes.

use std::collections::BTreeMap;

use kohort_wire::{ByteString, Uuid};

use super::{
    super::{Action, Millis, Partitions, StepId},
    ConsumerMember, Ids, MemberState,
};

/// What the application is doing.
#[derive(Debug)]
pub(super) enum Step {
    /// It lets go of partitions.
    Revoking(StepId, Ids),
    /// It takes over partitions.
    Assigning(StepId),
}

impl Step {
    fn id(&self) -> StepId {
        match self {
            Step::Revoking(id, _) | Step::Assigning(id) => *id,
        }
    }
}

impl ConsumerMember {
    pub(super) fn named(&self, partitions: &Ids) -> Partitions {
        let named = partitions.iter().filter_map(|(id, partition)| {
            let name = self.names.get(id)?;
            Some((name.clone(), *partition))
        });
        named.collect()
    }

    /// Takes the next step towards the target, if the application is not taking one.
    pub(super) fn reconcile(&mut self) {
        if self.step.is_some() || self.losing.is_some() {
            return;
        }
        match self.state {
            MemberState::Joining
            | MemberState::Stable
            | MemberState::Reconciling
            | MemberState::Acknowledging => {}
            _ => return,
        }
        if self.target == self.owned {
            if self.state == MemberState::Reconciling {
                self.go(MemberState::Stable);
            }
            return;
        }
        // What has to be said is said before anything new is begun.
        if self.state == MemberState::Acknowledging {
            return;
        }
        self.go(MemberState::Reconciling);
        self.ask_for_names();
        // Partitions of topics whose names are not known yet come when they are (KAFKA-16198).
        let reachable: Ids = self
            .target
            .iter()
            .filter(|(id, _)| self.names.contains_key(id))
            .copied()
            .collect();
        let revoked: Ids = self.owned.difference(&self.target).copied().collect();
        if !revoked.is_empty() {
            let id = self.actions.id();
            let partitions = self.named(&revoked);
            self.step = Some(Step::Revoking(id, revoked));
            self.actions.push(Action::Revoke { id, partitions });
            return;
        }
        let added: Ids = reachable.difference(&self.owned).copied().collect();
        if added.is_empty() || self.is_unsure() {
            return;
        }
        self.assign(&added);
    }

    /// Whether the coordinator may have heard, by a heartbeat that has not been answered, that the
    /// member does not have what it was last told to take over. It may have given that to another
    /// since, so nothing is taken over before it has answered.
    fn is_unsure(&self) -> bool {
        self.in_flight.is_some() || self.known.is_none()
    }

    fn assign(&mut self, added: &Ids) {
        let id = self.actions.id();
        self.owned.extend(added);
        self.step = Some(Step::Assigning(id));
        self.actions.push(Action::Assign {
            id,
            added: self.named(added),
            all: self.named(&self.owned),
        });
    }

    fn ask_for_names(&mut self) {
        let unknown: Vec<Uuid> = self
            .target
            .iter()
            .map(|(id, _)| *id)
            .filter(|id| !self.names.contains_key(id) && self.resolving.insert(*id))
            .collect();
        if !unknown.is_empty() {
            self.actions.push(Action::ResolveTopics(unknown));
        }
    }

    /// See [`Member::topics`](super::super::Member::topics).
    pub fn topics(&mut self, names: &BTreeMap<Uuid, ByteString>, now: Millis) {
        for (id, name) in names {
            self.resolving.remove(id);
            self.names.insert(*id, name.clone());
        }
        let (target, owned) = (&self.target, &self.owned);
        let used = |id: &Uuid| target.iter().chain(owned).any(|(other, _)| other == id);
        self.names.retain(|id, _| used(id));
        self.reconcile();
        self.beat(now);
    }

    /// See [`Member::done`](super::super::Member::done).
    pub fn done(&mut self, id: StepId, now: Millis) {
        if self.losing == Some(id) {
            self.losing = None;
            match self.state {
                MemberState::Fenced => self.join(now),
                MemberState::Stale if self.polled => self.join(now),
                _ => {}
            }
            return;
        }
        let Some(step) = self.step.take_if(|step| step.id() == id) else {
            return;
        };
        if let Step::Revoking(_, partitions) = &step {
            self.owned
                .retain(|partition| !partitions.contains(partition));
        }
        match self.state {
            MemberState::PrepareLeaving => self.let_go_of_all(now),
            MemberState::Reconciling => {
                let revoked = matches!(step, Step::Revoking(..));
                let added = self.target.difference(&self.owned);
                let waits_for_names = added.clone().all(|(id, _)| !self.names.contains_key(id));
                // First let go, then take over, then tell; nothing to take over means tell now.
                if revoked && !waits_for_names && !self.is_unsure() {
                    self.reconcile();
                } else {
                    self.go(MemberState::Acknowledging);
                    self.next_heartbeat = Some(now);
                    self.beat(now);
                }
            }
            _ => {}
        }
    }

    /// The coordinator is being told what the member has.
    pub(super) fn acknowledged(&mut self) {
        if self.target == self.owned {
            self.go(MemberState::Stable)
        } else {
            self.go(MemberState::Reconciling)
        }
    }

    /// Before leaving: the application lets go of everything, after what it is doing.
    pub(super) fn let_go_of_all(&mut self, now: Millis) {
        if self.step.is_some() {
            return;
        }
        if !self.owned.is_empty() {
            let id = self.actions.id();
            let partitions = self.named(&self.owned);
            self.step = Some(Step::Revoking(id, self.owned.clone()));
            self.actions.push(Action::Revoke { id, partitions });
            return;
        }
        let unknown_to_the_coordinator =
            self.epoch == super::JOIN_EPOCH && self.in_flight.is_none() && self.known.is_none();
        if unknown_to_the_coordinator {
            self.has_left(now);
            return;
        }
        self.go(MemberState::Leaving);
        self.next_heartbeat = Some(now);
        self.beat(now);
    }

    /// Everything the member had is lost.
    pub(super) fn lose_all(&mut self) {
        self.actions.forget_steps();
        self.step = None;
        self.target.clear();
        if self.owned.is_empty() {
            return;
        }
        let lost = std::mem::take(&mut self.owned);
        let id = self.actions.id();
        self.losing = Some(id);
        let partitions = self.named(&lost);
        self.actions.push(Action::Lose { id, partitions });
    }
}
