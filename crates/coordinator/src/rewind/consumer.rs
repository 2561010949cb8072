//! What a rewind does to a consumer group.

use kohort_group::history::{Cause, What};

use crate::{
    Id, Shard, Topics,
    consumer::{ConsumerGroup, ConsumerStep, Current, Member, records},
    step::Step,
};

impl Member {
    /// Whether it is a static member that has left and means to come back. It has closed, and can
    /// commit nothing any more.
    pub(super) fn has_left_for_a_while(&self) -> bool {
        self.current.epoch == crate::consumer::LEAVE_STATIC_EPOCH
    }
}

impl ConsumerGroup {
    /// The members of the classic protocol that have been given topics which are no more.
    ///
    /// They know topics only by name. If there is another topic of the name, they read it, which goes
    /// unnoticed until they rejoin, and then it is unknown what they have read.
    pub(super) fn with_topics_that_are_gone(&self, topics: &Topics) -> Vec<Id> {
        let has_gone = |member: &&Member| {
            let current = &member.current;
            let owned = [&current.assigned, &current.revoking];
            let mut ids = owned.into_iter().flat_map(|owned| owned.all().topics());
            member.is_classic() && ids.any(|(topic_id, _)| topics.by_id(topic_id).is_none())
        };
        let mut members = self.sorted_members();
        members.retain(has_gone);
        members
            .into_iter()
            .map(|member| member.id.clone())
            .collect()
    }
}

impl Shard {
    /// Fences a member of a consumer group: it loses its partitions, and rejoins as a new member.
    pub(super) fn put_out_for_rewind(
        &mut self,
        group_id: &Id,
        member_id: &Id,
        step: &mut Step<'_>,
    ) {
        if let Some(consumer) = self.consumer_step(group_id, step) {
            let member = consumer.who(member_id);
            let cause = Cause::PutOutForRewind { member };
            self.fence(group_id, std::slice::from_ref(member_id), cause, step);
        }
    }
}

impl ConsumerStep<'_, '_> {
    /// Makes all owners of the rewound partitions revoke them: at the next epoch, no target has them.
    pub(super) fn take_back(&mut self, cause: Cause) {
        let Some(withheld) = self.withheld.cloned() else {
            return;
        };
        let away: Vec<_> = self
            .group
            .sorted_members()
            .into_iter()
            .filter(|member| member.has_left_for_a_while())
            .filter(|member| !member.current.assigned.all().is_disjoint(&withheld))
            .map(|member| (member.id.clone(), member.current.clone()))
            .collect();
        for (member_id, current) in away {
            let next = Current {
                assigned: current.assigned.difference(&withheld),
                ..current
            };
            self.emit(records::current(self.id, &member_id, &next));
        }
        self.next_epoch(cause);
    }

    /// Has the members look for what they can be given again: at an epoch that no commit of a former
    /// owner can have.
    pub(super) fn hand_out_again(&mut self, cause: Cause) {
        if !self.group.is_empty() {
            self.next_epoch(cause);
        }
    }

    /// Moves the epochs of the group and of its target on; the target stays as it is, and one that
    /// is due remains due.
    fn next_epoch(&mut self, cause: Cause) {
        let group = &self.group;
        let epoch = group.epoch.saturating_add(1);
        let assignment_epoch = group.assignment_epoch.saturating_add(1).max(1);
        let (hash, at) = (group.metadata_hash, group.assignment_timestamp);
        self.emit(records::group(self.id, epoch, hash));
        self.emit(records::target_epoch(self.id, assignment_epoch, at));
        self.event(What::RebalanceBegan {
            epoch,
            causes: cause.into(),
            deadline_at: None,
        });
        self.group.progress.begin(self.step.now);
        self.begin_reconciling();
    }
}
