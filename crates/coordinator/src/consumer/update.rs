//! What a member's word changes: its subscription, the group's epoch and target, and what it owns.

use std::collections::BTreeSet;

use kohort_group::history::{Cause, Causes, Few, TopicChange, What, clean, short};
use kohort_wire::{Uuid, messages::TopicIdPartitions};

use super::{
    ConsumerGroup,
    admission::Admission,
    member::{Current, Member, MemberState, Profile},
    metadata_hash::TopicHashes,
    reconcile::Reconcile,
    records,
    step::ConsumerStep,
    waiting::named,
};
use crate::Id;

impl ConsumerStep<'_, '_> {
    /// Takes up what a member says and owns: it joins or changes, the group gets a new epoch and a
    /// new target if need be, and the member comes a step closer to it.
    pub(super) fn update(
        &mut self,
        admission: Admission,
        owned: Option<&[TopicIdPartitions]>,
        change: impl FnOnce(&mut Profile, &mut ConsumerGroup),
    ) -> Id {
        let subscription = self.update_subscription(admission, change);
        self.refresh_metadata(subscription.group_change.map(Causes::from));
        self.refresh_regexes();
        self.refresh_target();
        self.reconcile(&subscription.member_id, subscription.has_changed, owned);
        subscription.member_id
    }

    /// Whether the member subscribes to other topics than before, and whether the group needs
    /// another target for what has changed.
    pub(super) fn update_subscription(
        &mut self,
        admission: Admission,
        change: impl FnOnce(&mut Profile, &mut ConsumerGroup),
    ) -> Subscription {
        let assignor_before = self.group.assignor(self.config);
        let member_id = match admission {
            Admission::Known(member_id) => member_id,
            Admission::New(member_id) => member_id,
            Admission::Replaces { old, new } => {
                self.replace(&old, &new);
                new
            }
        };
        let mut profile = match self.member(&member_id) {
            Some(member) => member.profile.clone(),
            None => Member::new(member_id.clone()).profile,
        };
        change(&mut profile, self.group);
        let mut subscription = Subscription {
            member_id,
            has_changed: false,
            group_change: None,
        };
        let member_id = &subscription.member_id;
        let before = match self.member(member_id) {
            Some(member) if member.profile == profile => return subscription,
            Some(member) => Some(member.profile.clone()),
            None => None,
        };
        let is_new = before.is_none();
        let before = before.unwrap_or_default();
        self.emit(records::member(self.id, member_id, &profile));
        let names_changed = before.topics != profile.topics;
        let regex_changed = before.regex != profile.regex;
        subscription.has_changed = names_changed || regex_changed;
        if regex_changed
            && let Some(old) = &before.regex
            && !self.group.knows_regex(old)
            && self.group.resolved(old).is_some()
        {
            self.emit(records::no_regex(self.id, old));
        }
        // A regular expression that has yet to be resolved changes the group once it is.
        let is_resolved = profile
            .regex
            .as_deref()
            .is_none_or(|regex| self.group.resolved(regex).is_some());
        let assignor = self.group.assignor(self.config);
        subscription.group_change = if names_changed || (regex_changed && is_resolved) {
            let member = self.who(member_id);
            Some(if is_new {
                Cause::MemberJoined {
                    member,
                    reason: None,
                }
            } else {
                Cause::SubscriptionChanged {
                    member,
                    topics: profile.topics.iter().map(short).collect(),
                    regex: profile.regex.as_deref().map(clean),
                }
            })
        } else if assignor != assignor_before {
            Some(Cause::AssignorChanged {
                from: assignor_before.name().into(),
                to: assignor.name().into(),
            })
        } else {
            None
        };
        // What begins a rebalance is told of as its cause.
        if is_new && !matches!(subscription.group_change, Some(Cause::MemberJoined { .. })) {
            self.event(Cause::MemberJoined {
                member: self.who(member_id),
                reason: None,
            });
        }
        subscription
    }

    /// Gives the place of a static member to another incarnation of it, which owns what it owned.
    fn replace(&mut self, old_id: &Id, new_id: &Id) {
        let Some(old) = self.group.member(old_id) else {
            return;
        };
        let profile = old.profile.clone();
        let current = Current {
            epoch: 0,
            previous_epoch: 0,
            ..old.current.clone()
        };
        let target = self.group.target(old_id).cloned().unwrap_or_default();
        for record in records::removal(self.id, old_id) {
            self.emit(record);
        }
        self.emit(records::member(self.id, new_id, &profile));
        self.emit(records::target(self.id, new_id, &target));
        self.emit(records::current(self.id, new_id, &current));
        self.event(Cause::MemberReturned {
            member: self.who(new_id),
            old_member_id: short(old_id),
            reason: None,
        });
    }

    /// Members of the classic protocol may go on with other topics of the names that they know.
    pub(crate) fn look_for_classic_members(&mut self) {
        let is_due = self.group.topics_version != Some(self.topics.version());
        if is_due && self.group.subscriptions().classic_members() > 0 {
            let changed = self.changed_topics();
            self.look_at_topics(changed.as_ref());
        }
    }

    /// The topics that may have changed since the group last looked at them; `None` if that is unknown.
    /// So the cost of a look depends on what has changed, not on how many topics the members name.
    fn changed_topics(&self) -> Option<BTreeSet<Id>> {
        let changes = self.topics.changes_since(self.group.topics_version?)?;
        let changed = changes.map(|change| &change.topic);
        let changed = changed.filter(|topic| self.group.subscribes_to(topic));
        let added = &self.group.subscriptions().changes().added;
        Some(changed.chain(added).cloned().collect())
    }

    /// Looks at the topics that have changed, or at all of them.
    fn look_at_topics(&mut self, changed: Option<&BTreeSet<Id>>) {
        let (look, group) = self.topics_and_group();
        let subscriptions = group.subscriptions();
        match changed {
            Some(changed) if !subscriptions.has_no_topics() => {
                look.at_changes(changed, &subscriptions.changes().removed);
            }
            Some(changed) => look.at_changes(changed, &BTreeSet::new()),
            None => look.at(subscriptions.topics()),
        }
    }

    /// The hash of the group's topics, which it has just looked at.
    fn refresh_hash(&mut self, changed: Option<&BTreeSet<Id>>) -> i64 {
        let group = &mut *self.group;
        let mut hashes = std::mem::take(&mut group.topic_hashes);
        match changed {
            Some(changed) => {
                for name in &group.subscriptions().changes().removed {
                    hashes.remove(name);
                }
                for name in changed {
                    hashes.update(name, self.topics);
                }
            }
            None => hashes = TopicHashes::new(group.subscriptions().topics(), self.topics),
        }
        group.topic_hashes = hashes;
        group.has_seen_changes();
        group.topic_hashes.digest()
    }

    /// Compares the group's topics with what they were, and gives the group a new epoch if they have
    /// changed or something else has.
    pub(super) fn refresh_metadata(&mut self, change: Option<Causes>) {
        let version = Some(self.topics.version());
        if change.is_none() && self.group.topics_version == version {
            return;
        }
        // Before anybody is assigned a new partition, its first offset is committed.
        let changed = self.changed_topics();
        self.look_at_topics(changed.as_ref());
        let hash = self.refresh_hash(changed.as_ref());
        let known_version = std::mem::replace(&mut self.group.topics_version, version);
        let causes = match change {
            Some(change) => change,
            None if hash != self.group.metadata_hash => Cause::TopicsChanged {
                topics: self.topic_changes(known_version),
            }
            .into(),
            None => return self.drop_partition_metadata(),
        };
        let epoch = self.group.epoch.saturating_add(1);
        self.emit(records::group(self.id, epoch, hash));
        self.event(What::RebalanceBegan {
            epoch,
            causes,
            deadline_at: None,
        });
        self.group.progress.begin(self.step.now);
        self.group.epoch_since = self.step.now;
        self.drop_partition_metadata();
    }

    /// What became of the group's topics since a version of them, as far as that is known.
    fn topic_changes(&self, since: Option<i64>) -> Few<TopicChange> {
        let Some(changes) = since.and_then(|version| self.topics.changes_since(version)) else {
            return Few::default();
        };
        changes
            .filter(|change| self.group.subscribes_to(&change.topic))
            .cloned()
            .collect()
    }

    fn drop_partition_metadata(&mut self) {
        if self.group.has_partition_metadata {
            self.emit(records::no_partition_metadata(self.id));
        }
    }

    /// Brings the member a step closer to its target.
    pub(super) fn reconcile(
        &mut self,
        member_id: &Id,
        subscription_changed: bool,
        owned: Option<&[TopicIdPartitions]>,
    ) {
        let Some(member) = self.group.member(member_id) else {
            return;
        };
        if !subscription_changed && member.is_reconciled_to(self.group.assignment_epoch) {
            return;
        }
        let target = self.group.target(member_id).cloned().unwrap_or_default();
        let target = match self.withheld {
            Some(withheld) => target.difference(withheld),
            None => target,
        };
        let next = Reconcile {
            current: &member.current,
            target_epoch: self.group.assignment_epoch,
            target: &target,
            is_subscribed: &|topic_id: Uuid| {
                self.topics
                    .by_id(topic_id)
                    .is_some_and(|topic| self.group.is_subscribed(&member.profile, topic))
            },
            subscription_changed,
            is_taken: &|topic_id, partition| {
                self.group
                    .owner(topic_id, partition)
                    .is_some_and(|owner| *owner != *member_id)
            },
            owned,
        }
        .step();
        if let Some(next) = next {
            self.move_member(member_id, next);
        }
    }

    fn move_member(&mut self, member_id: &Id, next: Current) {
        let before = match self.group.member(member_id) {
            Some(member) => member.current.state,
            None => return,
        };
        self.emit(records::current(self.id, member_id, &next));
        if next.state == MemberState::UnrevokedPartitions
            && self.group.progress.tells_of_revocation()
            && let Some(member) = self.group.member(member_id)
        {
            let timeout_ms = i64::from(member.profile.rebalance_timeout_ms.max(0));
            let asked = What::RevocationAsked {
                member: member.who(),
                partitions: named(next.revoking.all(), self.topics),
                timeout_ms,
                deadline_at: self.step.now + timeout_ms,
            };
            self.event(asked);
        }
        self.restart_revocation(member_id);
        self.has_moved(member_id, before);
    }
}

/// What a member's word has changed.
pub(super) struct Subscription {
    pub(super) member_id: Id,
    /// Whether the member subscribes to other topics than before.
    pub(super) has_changed: bool,
    /// Why the group needs another target, if it does.
    pub(super) group_change: Option<Cause>,
}
