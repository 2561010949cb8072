//! Ids that were given out, and whose members have not come back with them yet.
//!
//! A peer gets such an id for the asking, so they are kept in memory alone, no longer than Kafka keeps
//! them, not past the end of their connection, and not in any number.

use std::collections::{BTreeMap, HashMap, VecDeque};

use kohort_group::history::Cause;

use crate::{Connection, Id, Millis, Shard, alarm::Deadline, step::Step};

use super::step::ClassicStep;

/// How many ids a shard may have given out to members that have not come back with them.
const HANDED_OUT_MAX: usize = 10_000;

/// The ids that a group has given out, and by when their members have to come back.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pending(HashMap<Id, Deadline>);

impl Pending {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Every id with the time that is left to come back with it.
    pub(crate) fn inspect(&self, now: Millis) -> BTreeMap<Id, Option<Millis>> {
        let ids = self.0.iter();
        ids.map(|(id, deadline)| (id.clone(), deadline.left(now)))
            .collect()
    }

    pub(crate) fn contains(&self, id: &str) -> bool {
        self.0.contains_key(id)
    }

    /// The ids, in no particular order.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &Id> {
        self.0.keys()
    }

    pub(crate) fn deadline(&self, id: &str) -> Option<&Deadline> {
        self.0.get(id)
    }

    pub(crate) fn deadline_mut(&mut self, id: &str) -> Option<&mut Deadline> {
        self.0.get_mut(id)
    }

    pub(crate) fn insert(&mut self, id: Id, deadline: Deadline) {
        self.0.insert(id, deadline);
    }

    /// Forgets an id. `false`: it was not remembered.
    pub(crate) fn remove(&mut self, id: &str) -> bool {
        self.0.remove(id).is_some()
    }
}

/// A group, and an id that it has given out.
type GroupMember = (Id, Id);

/// The ids that the groups of a shard have given out. Those that have come back are dropped in
/// passing.
#[derive(Debug, Clone, Default)]
pub(crate) struct HandedOut {
    /// The oldest first.
    order: VecDeque<GroupMember>,
    by_connection: HashMap<Connection, Vec<GroupMember>>,
}

impl HandedOut {
    pub(super) fn push(&mut self, group_id: &Id, member_id: &Id, connection: Option<Connection>) {
        let member = (group_id.clone(), member_id.clone());
        if let Some(connection) = connection {
            let own = self.by_connection.entry(connection).or_default();
            own.push(member.clone());
        }
        self.order.push_back(member);
    }

    fn retain(&mut self, is_pending: impl Fn(&GroupMember) -> bool) {
        self.order.retain(&is_pending);
        self.by_connection.retain(|_, members| {
            members.retain(&is_pending);
            !members.is_empty()
        });
    }
}

impl Shard {
    /// Forgets the oldest half of the ids that were given out, if there are too many.
    pub(super) fn limit_handed_out(&mut self, step: &mut Step<'_>) {
        if self.handed_out.order.len() < HANDED_OUT_MAX {
            return;
        }
        let mut handed_out = std::mem::take(&mut self.handed_out);
        handed_out.retain(|member| self.is_pending(member));
        while handed_out.order.len() > HANDED_OUT_MAX / 2
            && let Some(oldest) = handed_out.order.pop_front()
        {
            self.forget_handed_out(&oldest, step);
        }
        handed_out.retain(|member| self.is_pending(member));
        self.handed_out = handed_out;
    }

    fn is_pending(&self, (group_id, member_id): &GroupMember) -> bool {
        let group = self.groups.get(group_id).and_then(|group| group.classic());
        group.is_some_and(|group| group.pending.contains(member_id))
    }

    /// Forgets the ids that were given out over a connection that has closed.
    pub(crate) fn forget_handed_out_over(&mut self, connection: Connection, step: &mut Step<'_>) {
        let members = self.handed_out.by_connection.remove(&connection);
        for member in members.into_iter().flatten() {
            self.forget_handed_out(&member, step);
        }
    }

    fn forget_handed_out(&mut self, (group_id, member_id): &GroupMember, step: &mut Step<'_>) {
        if let Some(mut classic) = self.classic_step(group_id, step)
            && classic.group.pending.remove(member_id)
        {
            classic.handed_out_is_gone(member_id);
            self.forget_if_nothing_is_left(group_id);
        }
    }
}

impl ClassicStep<'_, '_> {
    /// Goes on without a member that has not come back with its id.
    pub(super) fn handed_out_is_gone(&mut self, member_id: &Id) {
        if !self.group.is_empty() {
            self.event(Cause::MemberIdUnused {
                member_id: member_id.clone(),
            });
        }
        self.maybe_complete_join();
    }
}
