//! What a member's word changes: its subscription, the group's epoch and target, and what it owns.

use kohort_wire::{Uuid, messages::TopicIdPartitions};

use super::{
    ConsumerGroup,
    admission::Admission,
    member::{Current, Member, MemberState, Profile},
    metadata_hash::metadata_hash,
    reconcile::Reconcile,
    records,
    step::ConsumerStep,
};
use crate::coordinator::Id;

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
        self.refresh_metadata(subscription.group_change.as_deref());
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
        if is_new {
            self.event(format!(
                "member {member_id} joined from {}{}",
                profile.client_host,
                of_instance(&profile)
            ));
        }

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
        subscription.group_change = if names_changed {
            Some(format!(
                "member {member_id} subscribes to {}",
                list(&profile.topics)
            ))
        } else if regex_changed && is_resolved {
            let regex = profile.regex.as_deref().unwrap_or_default();
            Some(format!(
                "member {member_id} subscribes with the regular expression '{regex}'"
            ))
        } else if assignor != assignor_before {
            Some(format!(
                "most members ask for the assignor {} now",
                assignor.name()
            ))
        } else {
            None
        };
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
        self.event(format!(
            "member {new_id} took the place of {old_id}{}",
            of_instance(&profile)
        ));
    }

    /// Compares the group's topics with what they were, and gives the group a new epoch if they have
    /// changed or something else has.
    pub(super) fn refresh_metadata(&mut self, change: Option<&str>) {
        let version = Some(self.topics.version());
        if change.is_none() && self.group.topics_version == version {
            return;
        }
        let hash = metadata_hash(self.group.subscriptions().topics(), self.topics);
        self.group.topics_version = version;
        let cause = match change {
            Some(change) => change,
            None if hash != self.group.metadata_hash => "its topics have changed",
            None => return self.drop_partition_metadata(),
        };
        let epoch = self.group.epoch.saturating_add(1);
        self.emit(records::group(self.id, epoch, hash));
        self.event(format!("epoch {epoch}: {cause}"));
        self.drop_partition_metadata();
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
        let nothing = crate::TopicPartitions::new();
        let next = Reconcile {
            current: &member.current,
            target_epoch: self.group.assignment_epoch,
            target: self.group.target(member_id).unwrap_or(&nothing),
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
        self.emit(records::current(self.id, member_id, &next));
        let Some(member) = self.group.member(member_id) else {
            return;
        };
        if next.state == MemberState::UnrevokedPartitions {
            let count = next.revoking.all().len();
            self.event(format!(
                "member {member_id} has to revoke {count} partitions, within {} ms",
                member.profile.rebalance_timeout_ms
            ));
        }
        self.restart_revocation(member_id);
    }
}

/// What a member's word has changed.
pub(super) struct Subscription {
    pub(super) member_id: Id,
    /// Whether the member subscribes to other topics than before.
    pub(super) has_changed: bool,
    /// Why the group needs another target, if it does.
    pub(super) group_change: Option<String>,
}

/// The instance id as part of a sentence.
pub(super) fn of_instance(profile: &Profile) -> String {
    match &profile.instance_id {
        Some(instance_id) => format!(", instance {instance_id}"),
        None => String::new(),
    }
}

/// Some names as part of a sentence.
fn list(names: &[Id]) -> String {
    match names {
        [] => "no topics".to_owned(),
        [first, second, third, rest @ ..] if !rest.is_empty() => {
            format!("{first}, {second}, {third} and {} more topics", rest.len())
        }
        names => names
            .iter()
            .map(|name| &**name)
            .collect::<Vec<_>>()
            .join(", "),
    }
}
