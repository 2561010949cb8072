//! ConsumerGroupHeartbeat: members join, say what they own, learn what they are to own, and leave.

use kohort_group::history::{Causes, Protocol, What};
use kohort_wire::{ErrorCode, messages::*};

use super::{
    ConsumerGroup,
    admission::Admission,
    limits::{Subscribing, refuse_metadata},
    member::{LEAVE_EPOCH, LEAVE_STATIC_EPOCH, Profile},
    records,
    refusal::Refusal,
    regex::Pattern,
    step::ConsumerStep,
    validate::validate,
};
use crate::{
    Caller, Id, Record, Reply, Shard, Token, classic::ClassicGroup, group::Members, step::Step,
};

impl Shard {
    pub(crate) fn consumer_group_heartbeat(
        &mut self,
        token: Token,
        caller: &Caller,
        version: i16,
        request: ConsumerGroupHeartbeatRequest,
        step: &mut Step<'_>,
    ) {
        let response =
            validate(version, &request, &self.config).and_then(|()| match request.member_epoch {
                LEAVE_EPOCH | LEAVE_STATIC_EPOCH => self.leave_consumer_group(&request, step),
                _ => self.stay_in_consumer_group(caller, request, step),
            });
        let response = response.unwrap_or_else(Into::into);
        step.reply(token, Reply::ConsumerGroupHeartbeat(response));
    }

    fn stay_in_consumer_group(
        &mut self,
        caller: &Caller,
        mut request: ConsumerGroupHeartbeatRequest,
        step: &mut Step<'_>,
    ) -> Result<ConsumerGroupHeartbeatResponse, Refusal> {
        let group_id = request.group_id.clone();
        if request.member_epoch == 0 {
            self.open_consumer_group(&request, step)?;
            if request.member_id.is_empty() {
                request.member_id = (&*self.new_member_id(&group_id, caller)).into();
            }
        }
        match self.consumer_step(&group_id, step) {
            Some(mut consumer) => consumer.heartbeat(caller, request),
            None => Err(match self.groups.contains_key(&*group_id) {
                true => not_found(format!("group {group_id} is a classic group")),
                false => not_found(format!("there is no group {group_id}")),
            }),
        }
    }

    /// Sees to it that there is a consumer group for a member that joins. Nothing is changed for a
    /// member that would be refused.
    fn open_consumer_group(
        &mut self,
        request: &ConsumerGroupHeartbeatRequest,
        step: &mut Step<'_>,
    ) -> Result<(), Refusal> {
        let classic = match self
            .groups
            .get(&*request.group_id)
            .map(|group| &group.members)
        {
            Some(Members::Consumer(_)) => return Ok(()),
            Some(Members::Classic(classic)) => Some(classic),
            None => None,
        };
        refuse_invalid_regex(&ConsumerGroup::default(), request)?;
        match classic {
            Some(classic) if !classic.is_empty() => {
                let is_known = classic.member(&request.member_id).is_some()
                    || request
                        .instance_id
                        .as_deref()
                        .is_some_and(|id| classic.static_member_id(id).is_some());
                refuse_if_full(
                    classic.members().len(),
                    is_known,
                    self.config.consumer_max_size,
                )?;
                if !is_known && let Some(brings) = Subscribing::of_heartbeat(request, None) {
                    let group_bytes = classic.metadata_bytes() + brings.metadata_bytes;
                    refuse_metadata(group_bytes, &self.config)?;
                }
                self.upgrade(&request.group_id, step)
            }
            _ => {
                refuse_if_full(0, false, self.config.consumer_max_size)?;
                self.convert_empty_classic_group(&request.group_id, step);
                self.consumer_group_or_new(&request.group_id);
                Ok(())
            }
        }
    }

    /// Makes an end of a classic group without members; its offsets stay.
    fn convert_empty_classic_group(&mut self, group_id: &str, step: &mut Step<'_>) {
        let is_written = |group: &ClassicGroup| group.state_since.is_some();
        if let Some(group) = self.groups.get(group_id)
            && group.classic().is_some_and(is_written)
        {
            let group_id = group.id.clone();
            let key = GroupMetadataKey {
                group: (&*group_id).into(),
            };
            self.emit(Record::GroupMetadata(key, None), step);
            step.event(
                &group_id,
                What::Converted {
                    to: Protocol::Consumer,
                    members: 0,
                    epoch: 0,
                    causes: Causes::default(),
                },
            );
        }
    }
}

fn not_found(message: String) -> Refusal {
    Refusal::new(ErrorCode::GROUP_ID_NOT_FOUND, message)
}

/// A member of the group, or one that takes the place of a static member, adds nothing to it
/// (KAFKA-20601).
pub(super) fn refuse_if_full(
    member_count: usize,
    is_known: bool,
    max_size: usize,
) -> Result<(), Refusal> {
    match is_known || member_count < max_size {
        true => Ok(()),
        false => Err(Refusal::new(
            ErrorCode::GROUP_MAX_SIZE_REACHED,
            format!("The group has {max_size} members, and may not have more."),
        )),
    }
}

/// An expression that a member already subscribes with is known to be valid.
fn refuse_invalid_regex(
    group: &ConsumerGroup,
    request: &ConsumerGroupHeartbeatRequest,
) -> Result<(), Refusal> {
    match request.subscribed_topic_regex.as_deref() {
        None | Some("") => Ok(()),
        Some(regex) if group.knows_regex(regex) => Ok(()),
        Some(regex) => match Pattern::new(regex) {
            Ok(_) => Ok(()),
            Err(problem) => Err(Refusal::new(
                ErrorCode::INVALID_REGULAR_EXPRESSION,
                format!("`{regex}` is not a regular expression that can be used: {problem}."),
            )),
        },
    }
}

impl ConsumerStep<'_, '_> {
    fn heartbeat(
        &mut self,
        caller: &Caller,
        request: ConsumerGroupHeartbeatRequest,
    ) -> Result<ConsumerGroupHeartbeatResponse, Refusal> {
        let admission = self.admit(&request)?;
        refuse_invalid_regex(self.group, &request)?;
        let before = match &admission {
            Admission::Known(id) | Admission::Replaces { old: id, .. } => self.member(id),
            Admission::New(_) => None,
        };
        let before = before.map(|member| &member.profile);
        if let Some(subscribing) = Subscribing::of_heartbeat(&request, before) {
            self.group
                .refuse_too_large(&admission, &subscribing, self.config)?;
        }

        // Nothing is refused from here on.
        let owned = request.topic_partitions.as_deref();
        let assigned_before = match &admission {
            Admission::Known(member_id) => self
                .member(member_id)
                .filter(|member| member.current.epoch == request.member_epoch)
                .map(|member| member.current.assigned.all().clone()),
            Admission::New(_) | Admission::Replaces { .. } => None,
        };
        let member_id = self.update(admission, owned, |profile, group| {
            update_profile(profile, group, caller, &request);
        });
        self.heard_from(&member_id, caller);
        self.forget_classic_limits(&member_id);
        let interval_ms = self.heartbeat_interval_ms(&member_id);
        Ok(self.respond(&member_id, request, assigned_before, interval_ms))
    }

    /// How long the member waits before its next heartbeat.
    fn heartbeat_interval_ms(&mut self, member_id: &Id) -> i32 {
        let bounds = self.config.consumer_heartbeat_bounds(self.id);
        let members = self.group.heartbeating();
        let steady_ms = self.group.pace.interval_ms(members, self.pace, bounds);
        let member = self.group.member(member_id);
        match member.is_some_and(|member| self.group.is_waiting(member)) {
            true => steady_ms.min(self.pace.waiting_interval_ms(self.group.waiting(), bounds)),
            false => steady_ms,
        }
    }

    /// The assignment is sent along when it has changed, when the member says that it knows
    /// nothing (KAFKA-16367), or when it has missed an answer.
    fn respond(
        &self,
        member_id: &Id,
        request: ConsumerGroupHeartbeatRequest,
        assigned_before: Option<kohort_group::TopicPartitions>,
        heartbeat_interval_ms: i32,
    ) -> ConsumerGroupHeartbeatResponse {
        let Some(member) = self.member(member_id) else {
            return Refusal::unknown_member(member_id, self.id).into();
        };
        let current = &member.current;
        let is_full = request.rebalance_timeout_ms != -1
            && (request.subscribed_topic_names.is_some()
                || request.subscribed_topic_regex.is_some())
            && request.topic_partitions.is_some();
        let is_told =
            is_full || assigned_before.is_none_or(|before| before != *current.assigned.all());
        let assignment = is_told.then(|| ConsumerGroupHeartbeatAssignment {
            topic_partitions: records::to_topics(current.assigned.all()),
        });
        ConsumerGroupHeartbeatResponse {
            member_id: Some(request.member_id),
            member_epoch: current.epoch,
            heartbeat_interval_ms,
            assignment,
            ..ConsumerGroupHeartbeatResponse::default()
        }
    }
}

/// Takes over what the request says; what it does not say stays.
fn update_profile(
    profile: &mut Profile,
    group: &mut ConsumerGroup,
    caller: &Caller,
    request: &ConsumerGroupHeartbeatRequest,
) {
    let mut set = |text: &mut Id, new: &str| {
        if **text != *new {
            *text = group.intern(new);
        }
    };
    set(&mut profile.client_id, &caller.client_id);
    set(&mut profile.client_host, &caller.client_host);
    let mut set = |text: &mut Option<Id>, new: &Option<kohort_wire::ByteString>| {
        if let Some(new) = new
            && text.as_deref() != Some(&**new)
        {
            *text = Some(group.intern(new)).filter(|new| !new.is_empty());
        }
    };
    set(&mut profile.instance_id, &request.instance_id);
    set(&mut profile.rack_id, &request.rack_id);
    set(&mut profile.server_assignor, &request.server_assignor);
    set(&mut profile.regex, &request.subscribed_topic_regex);
    if let Some(names) = &request.subscribed_topic_names {
        profile.topics = group.intern_names(names.iter().map(|name| &**name));
    }
    if request.rebalance_timeout_ms != -1 {
        profile.rebalance_timeout_ms = request.rebalance_timeout_ms;
    }
    profile.classic = None;
}
