//! A consumer group becomes a classic group: its last member of the consumer protocol goes.

use kohort_group::history::{Causes, Protocol, What};
use kohort_wire::messages::*;

use super::{embedded, member::Member};
use crate::{
    Id, Record, Shard, Topics,
    alarm::Deadline,
    classic::{CONSUMER_PROTOCOL_TYPE, ClassicGroup, ClassicMember, MemberProtocol},
    group::Members,
    step::Step,
};

impl Shard {
    /// Makes a consumer group without members a classic one; its offsets stay.
    pub(crate) fn convert_empty_consumer_group(&mut self, group_id: &str, step: &mut Step<'_>) {
        if let Some(group) = self.groups.get(group_id) {
            let group_id = group.id.clone();
            self.emit_tombstones(&group_id, step);
            step.event(
                &group_id,
                What::Converted {
                    to: Protocol::Classic,
                    members: 0,
                    epoch: 0,
                    causes: Causes::default(),
                },
            );
        }
    }

    fn emit_tombstones(&mut self, group_id: &Id, step: &mut Step<'_>) {
        let group = self.consumer_group(group_id);
        for tombstone in group
            .map(|group| group.tombstones(group_id))
            .unwrap_or_default()
        {
            self.emit(tombstone, step);
        }
    }

    /// Whether the group becomes a classic one when these members are gone.
    pub(super) fn can_downgrade_without(&self, group_id: &Id, leaving: &[Id]) -> bool {
        let Some(group) = self.consumer_group(group_id) else {
            return false;
        };
        let is_classic = |id: &&Id| group.member(id).is_some_and(Member::is_classic);
        let leaving_classic = leaving.iter().filter(is_classic).count();
        let left = group.len() - leaving.len();
        let left_classic = group.subscriptions().classic_members() - leaving_classic;
        left > 0
            && left == left_classic
            && left <= self.config.group_max_size
            && self.config.consumer_migration_policy.downgrades()
    }

    /// Makes the group a classic one, without the members that go, and has the others rebalance.
    pub(super) fn downgrade_without(
        &mut self,
        group_id: &Id,
        leaving: &[Id],
        causes: impl Into<Causes>,
        step: &mut Step<'_>,
    ) {
        self.downgrade(group_id, leaving, causes, step);
        if let Some(mut classic) = self.classic_step(group_id, step) {
            classic.prepare_rebalance("its last member of the consumer protocol is gone");
        }
    }

    /// Makes the group a classic one, whose members keep what they own. In Kafka they get their
    /// targets. But then a partition that a member still has to revoke would have no owner, if the
    /// group became a consumer group again before the member is heard.
    pub(super) fn downgrade(
        &mut self,
        group_id: &Id,
        leaving: &[Id],
        causes: impl Into<Causes>,
        step: &mut Step<'_>,
    ) {
        let Some(group) = self.consumer_group(group_id) else {
            return;
        };
        let mut classic = ClassicGroup::default();
        for member in group.sorted_members() {
            if !leaving.contains(&member.id) {
                classic.add(to_classic(member, &self.topics), CONSUMER_PROTOCOL_TYPE);
            }
        }
        classic.generation = group.epoch;
        classic.protocol = classic.select_protocol();
        // It has no leader until it has rebalanced. A coordinator that loads it sees by that that it
        // has to rebalance (`classic_loaded`).
        let value = GroupMetadataValue {
            leader: None,
            ..classic.to_record(step.date(), |member| member.assignment.clone())
        };
        let (members, epoch) = (value.members.len(), value.generation);
        let key = GroupMetadataKey {
            group: (&**group_id).into(),
        };
        self.emit_tombstones(group_id, step);
        // The record does not hold all of it: the members keep the protocols that were not chosen.
        self.group_or_new(group_id).members = Members::Classic(classic);
        self.emit(Record::GroupMetadata(key, Some(value)), step);
        step.event(
            group_id,
            What::Converted {
                to: Protocol::Classic,
                members,
                epoch,
                causes: causes.into(),
            },
        );
        if let Some(mut classic) = self.classic_step(group_id, step) {
            for member_id in classic.group.member_ids() {
                classic.restart_session(&member_id);
            }
        }
    }
}

fn to_classic(member: &Member, topics: &Topics) -> ClassicMember {
    let current = &member.current;
    let owned = current.assigned.all().union(current.revoking.all());
    let profile = &member.profile;
    let classic = profile.classic.as_deref();
    let protocols = classic
        .map(|classic| &classic.supported_protocols[..])
        .unwrap_or_default();
    let metadata = protocols
        .first()
        .map(|protocol| protocol.metadata.clone())
        .unwrap_or_default();
    let protocols = protocols.iter().map(|protocol| MemberProtocol {
        name: (&*protocol.name).into(),
        metadata: protocol.metadata.clone(),
    });
    ClassicMember {
        id: member.id.clone(),
        instance_id: profile.instance_id.clone(),
        client_id: profile.client_id.clone(),
        client_host: profile.client_host.clone(),
        rebalance_timeout_ms: profile.rebalance_timeout_ms,
        session_timeout_ms: classic.map_or(0, |classic| classic.session_timeout_ms),
        protocols: protocols.collect(),
        assignment: embedded::write_assignment(&owned, &metadata, topics),
        parked_join: None,
        parked_sync: None,
        is_new: false,
        session: Deadline::default(),
    }
}
