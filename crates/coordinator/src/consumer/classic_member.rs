//! Members of a consumer group that speak the classic protocol.
//!
//! Their generation is their epoch. JoinGroup takes them a step closer to their target, SyncGroup
//! tells them what they own, and Heartbeat tells them when to join again. No member waits for another.

use kohort_group::history::{Causes, Who};
use kohort_wire::{ErrorCode, messages::*};

use super::{
    ConsumerGroup,
    admission::{Admission, refuse_fenced_instance, unknown_instance},
    embedded::{self, first_protocol},
    heartbeat::refuse_if_full,
    limits::Subscribing,
    member::{Member, MemberState, Profile},
    refusal::Refusal,
    step::ConsumerStep,
};
use crate::{
    Caller, Id, MigrationPolicy, Reply, Shard, Token,
    classic::{CONSUMER_PROTOCOL_TYPE, leave_response, leaves, left, rebalance_timeout_ms},
    step::Step,
};

/// Since this version a new member has to come back with the id that it is given (KIP-394).
const MEMBER_ID_REQUIRED: i16 = 4;

impl Shard {
    pub(crate) fn consumer_join_group(
        &mut self,
        token: Token,
        caller: &Caller,
        version: i16,
        mut request: JoinGroupRequest,
        step: &mut Step<'_>,
    ) {
        let is_unknown = request.member_id.is_empty();
        if is_unknown {
            request.member_id = (&*self.new_member_id(&request.group_id, caller)).into();
        }
        let instance_id = request.group_instance_id.take();
        request.group_instance_id = instance_id.filter(|id| !id.is_empty());

        let Some(mut consumer) = self.consumer_step(&request.group_id, step) else {
            return;
        };
        let join = match consumer.admit_classic(version, is_unknown, &request) {
            Ok(join) => join,
            Err(refusal) => {
                // Like Kafka, which names the member only where it gives out its id.
                let member_id = match refusal.error_code {
                    ErrorCode::MEMBER_ID_REQUIRED => &*request.member_id,
                    _ => "",
                };
                return step.refuse_join(token, member_id, refusal.error_code);
            }
        };
        let leaves_consumer = match &join.admission {
            Admission::Replaces { old, .. } => consumer.is_last_consumer(old),
            Admission::Known(_) | Admission::New(_) => false,
        };

        // Nothing is refused from here on.
        let subscription = consumer.update_subscription(join.admission, |profile, group| {
            update_profile(profile, group, caller, &request, &join.subscription);
        });
        let member_id = subscription.member_id;
        consumer.refresh_metadata(subscription.group_change.map(Causes::from));
        let group_id = consumer.id.clone();
        if leaves_consumer && self.can_downgrade_without(&group_id, &[]) {
            let cause = format!("member {member_id} took the last place of the consumer protocol");
            // The member joins the rebalance, and learns whether it leads: from now on only a leader
            // looks for new partitions.
            self.downgrade_without(&group_id, &[], cause, step);
            request.member_id = (&*member_id).into();
            return self.join_group(token, caller, version, request, step);
        }
        let Some(mut consumer) = self.consumer_step(&group_id, step) else {
            return;
        };
        consumer.refresh_regexes();
        consumer.refresh_target();
        consumer.reconcile(&member_id, subscription.has_changed, Some(&join.owned));
        consumer.restart_session(&member_id);
        consumer.unlimit(&member_id, |rebalance| &mut rebalance.join);
        consumer.limit_rewound(&member_id);
        let timeout_ms = rebalance_timeout_ms(&request);
        consumer.limit(&member_id, timeout_ms, |rebalance| &mut rebalance.sync);
        let response = consumer.joined(&member_id);
        step.reply(token, Reply::JoinGroup(response));
    }

    pub(crate) fn consumer_sync_group(
        &mut self,
        token: Token,
        _version: i16,
        request: SyncGroupRequest,
        step: &mut Step<'_>,
    ) {
        let Some(mut consumer) = self.consumer_step(&request.group_id, step) else {
            return;
        };
        match consumer.sync(&request) {
            Ok(response) => step.reply(token, Reply::SyncGroup(response)),
            Err(refusal) => step.refuse_sync(token, refusal.error_code),
        }
    }

    pub(crate) fn consumer_classic_heartbeat(
        &mut self,
        token: Token,
        request: HeartbeatRequest,
        step: &mut Step<'_>,
    ) {
        let Some(mut consumer) = self.consumer_step(&request.group_id, step) else {
            return;
        };
        let response = HeartbeatResponse {
            error_code: match consumer.classic_heartbeat(&request) {
                Ok(error_code) => error_code,
                Err(refusal) => refusal.error_code,
            },
            ..HeartbeatResponse::default()
        };
        step.reply(token, Reply::Heartbeat(response));
    }

    /// LeaveGroup also removes members of the consumer protocol: administrators send it.
    pub(crate) fn consumer_leave_group(
        &mut self,
        token: Token,
        caller: &Caller,
        version: i16,
        request: LeaveGroupRequest,
        step: &mut Step<'_>,
    ) {
        let Some(consumer) = self.consumer_step(&request.group_id, step) else {
            return;
        };
        let mut leaving = Vec::new();
        let mut causes = Causes::default();
        let by = Who::from(caller);
        let members = request.members.iter().map(|identity| {
            // An administrator names the instance alone.
            let instance_id = identity
                .group_instance_id
                .as_deref()
                .filter(|id| !id.is_empty());
            let holder = instance_id.and_then(|id| consumer.group.static_member(id));
            let member_id = match (&*identity.member_id, holder) {
                ("", Some(holder)) => &*holder.id,
                (member_id, _) => member_id,
            };
            let error_code = match consumer.leaving_member(member_id, instance_id) {
                Ok(member) => {
                    causes.extend([leaves(member.who(), identity, &by)]);
                    leaving.push(member.id.clone());
                    ErrorCode::NONE
                }
                Err(refusal) => refusal.error_code,
            };
            left(identity, error_code)
        });
        let response = LeaveGroupResponse {
            members: members.collect(),
            ..LeaveGroupResponse::default()
        };
        let group_id = consumer.id.clone();
        leaving.sort_unstable();
        leaving.dedup();
        self.fence(&group_id, &leaving, causes, step);
        step.reply(token, Reply::LeaveGroup(leave_response(version, response)));
    }
}

/// A join that has been let in.
struct ClassicJoin {
    admission: Admission,
    subscription: ConsumerProtocolSubscription,
    /// What the member says it owns.
    owned: Vec<TopicIdPartitions>,
}

impl ConsumerStep<'_, '_> {
    fn admit_classic(
        &mut self,
        version: i16,
        is_unknown: bool,
        request: &JoinGroupRequest,
    ) -> Result<ClassicJoin, Refusal> {
        let refuse = |error_code| Err(Refusal::new(error_code, ""));
        if self.config.consumer_migration_policy == MigrationPolicy::Disabled {
            return refuse(ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
        }
        let member_id = &*request.member_id;
        let instance_id = request.group_instance_id.as_deref();
        let holder = instance_id.and_then(|id| self.group.static_member(id));
        let is_known = self.member(member_id).is_some() || holder.is_some();
        refuse_if_full(self.group.len(), is_known, self.config.consumer_max_size)?;
        let supports = |name: &str| self.group.subscriptions().all_classic_support(name);
        if *request.protocol_type != *CONSUMER_PROTOCOL_TYPE
            || !request
                .protocols
                .iter()
                .any(|protocol| supports(&protocol.name))
        {
            return refuse(ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
        }
        if is_unknown && instance_id.is_none() && version >= MEMBER_ID_REQUIRED {
            return refuse(ErrorCode::MEMBER_ID_REQUIRED);
        }
        let metadata = request.protocols.first().map(|protocol| &protocol.metadata);
        let subscription = metadata.map(embedded::read_subscription);
        let Some(Ok(subscription)) = subscription else {
            return refuse(ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
        };
        let admission = match (instance_id, holder) {
            (Some(_), Some(holder)) if is_unknown => {
                let old = holder.id.clone();
                let new = self.group.intern(member_id);
                Admission::Replaces { old, new }
            }
            (Some(instance_id), None) if !is_unknown => return Err(unknown_instance(instance_id)),
            (Some(instance_id), Some(holder)) => {
                refuse_fenced_instance(holder, member_id, instance_id)?;
                Admission::Known(holder.id.clone())
            }
            (_, None) => match self.member(member_id) {
                Some(member) => Admission::Known(member.id.clone()),
                // It was removed and does not know: other members may own what it still has.
                None if !is_unknown && !subscription.owned_partitions.is_empty() => {
                    return Err(Refusal::unknown_member(member_id, self.id));
                }
                None => Admission::New(self.group.intern(member_id)),
            },
            (None, Some(_)) => unreachable!("only an instance has a holder"),
        };
        let subscribing = Subscribing::of_join(request, &subscription);
        self.group
            .refuse_too_large(&admission, &subscribing, self.config)?;
        let owned = embedded::to_ids(&subscription.owned_partitions, self.topics);
        Ok(ClassicJoin {
            admission,
            subscription,
            owned,
        })
    }

    /// Whether the member is the only one left of the consumer protocol.
    fn is_last_consumer(&self, member_id: &str) -> bool {
        let consumers = self.group.len() - self.group.subscriptions().classic_members();
        consumers == 1
            && self
                .member(member_id)
                .is_some_and(|member| !member.is_classic())
    }

    fn joined(&self, member_id: &Id) -> JoinGroupResponse {
        let member = self.member(member_id);
        let protocol = member.and_then(first_protocol);
        JoinGroupResponse {
            member_id: (&**member_id).into(),
            generation_id: member.map_or(-1, |member| member.current.epoch),
            protocol_type: Some(CONSUMER_PROTOCOL_TYPE.into()),
            protocol_name: Some(
                protocol
                    .map(|protocol| protocol.name.clone())
                    .unwrap_or_default(),
            ),
            ..JoinGroupResponse::default()
        }
    }

    fn classic_member(
        &self,
        member_id: &str,
        instance_id: Option<&str>,
        generation: i32,
    ) -> Result<&Member, Refusal> {
        let instance_id = instance_id.filter(|id| !id.is_empty());
        let member = self.leaving_member(member_id, instance_id)?;
        if !member.is_classic() {
            return Err(Refusal::unknown_member(member_id, self.id));
        }
        if generation != member.current.epoch {
            return Err(Refusal::new(ErrorCode::ILLEGAL_GENERATION, ""));
        }
        Ok(member)
    }

    fn sync(&mut self, request: &SyncGroupRequest) -> Result<SyncGroupResponse, Refusal> {
        let instance_id = request.group_instance_id.as_deref();
        let member = self.classic_member(&request.member_id, instance_id, request.generation_id)?;
        let member_id = member.id.clone();
        let protocol = first_protocol(member).cloned().unwrap_or_default();
        let fits = |given: &Option<kohort_wire::ByteString>, expected: &str| {
            given.as_deref().is_none_or(|given| given == expected)
        };
        if !fits(&request.protocol_type, CONSUMER_PROTOCOL_TYPE)
            || !fits(&request.protocol_name, &protocol.name)
        {
            return Err(Refusal::new(ErrorCode::INCONSISTENT_GROUP_PROTOCOL, ""));
        }
        // A member that has to revoke has joined already. First it has to learn what it keeps.
        if self.group.assignment_epoch > member.current.epoch
            && member.current.state != MemberState::UnrevokedPartitions
        {
            self.expect_join(&member_id);
            return Err(Refusal::new(ErrorCode::REBALANCE_IN_PROGRESS, ""));
        }
        let assignment = embedded::write_assignment(
            member.current.assigned.all(),
            &protocol.metadata,
            self.topics,
        );
        self.unlimit(&member_id, |rebalance| &mut rebalance.sync);
        self.restart_session(&member_id);
        Ok(SyncGroupResponse {
            protocol_type: request.protocol_type.clone(),
            protocol_name: request.protocol_name.clone(),
            assignment,
            ..SyncGroupResponse::default()
        })
    }

    fn classic_heartbeat(&mut self, request: &HeartbeatRequest) -> Result<ErrorCode, Refusal> {
        let instance_id = request.group_instance_id.as_deref();
        let member = self.classic_member(&request.member_id, instance_id, request.generation_id)?;
        let member_id = member.id.clone();
        // There may be no other member whose heartbeats make the group look.
        self.refresh_metadata(None);
        self.refresh_target();
        let member = self.classic_member(&request.member_id, instance_id, request.generation_id)?;
        let must_rejoin = member.current.epoch < self.group.assignment_epoch
            || match member.current.state {
                MemberState::UnrevokedPartitions => true,
                MemberState::UnreleasedPartitions => {
                    !self.group.waits_for_others(member, self.topics)
                }
                MemberState::Stable | MemberState::Unknown => false,
            };
        self.restart_session(&member_id);
        if must_rejoin {
            self.expect_join(&member_id);
            return Ok(ErrorCode::REBALANCE_IN_PROGRESS);
        }
        Ok(ErrorCode::NONE)
    }

    /// Gives a member that was told to join again its rebalance timeout to do so, once.
    fn expect_join(&mut self, member_id: &Id) {
        if let Some(member) = self.group.member(member_id)
            && member.rebalance.join.is_none()
        {
            let timeout_ms = member.profile.rebalance_timeout_ms;
            self.limit(member_id, timeout_ms, |rebalance| &mut rebalance.join);
        }
    }
}

fn update_profile(
    profile: &mut Profile,
    group: &mut ConsumerGroup,
    caller: &Caller,
    request: &JoinGroupRequest,
    subscription: &ConsumerProtocolSubscription,
) {
    if let Some(instance_id) = &request.group_instance_id {
        profile.instance_id = Some(group.intern(instance_id));
    }
    if let Some(rack) = embedded::rack(subscription) {
        profile.rack_id = Some(group.intern(rack));
    }
    profile.client_id = group.intern(&caller.client_id);
    profile.client_host = group.intern(&caller.client_host);
    profile.topics = group.intern_names(subscription.topics.iter().map(|topic| &**topic));
    profile.regex = None;
    profile.rebalance_timeout_ms = rebalance_timeout_ms(request);
    let protocols = request.protocols.iter().map(|protocol| ClassicProtocol {
        name: protocol.name.clone(),
        metadata: protocol.metadata.clone(),
    });
    profile.classic = Some(Box::new(ClassicMemberMetadata {
        session_timeout_ms: request.session_timeout_ms,
        supported_protocols: protocols.collect(),
    }));
}
