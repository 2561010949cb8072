//! Heartbeats: what they say, and what their answers mean.

use kohort_wire::{ByteString, ErrorCode, messages::*};

use super::{
    super::{
        Action, MemberError, MemberRequest, Millis, RequestId, Subscription,
        action::{REFUSED_RETRY_MS, after},
    },
    ConsumerMember, Ids, LEAVE_EPOCH, LEAVE_STATIC_EPOCH, MemberState,
};

/// What the coordinator knows of a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Known {
    subscription: Subscription,
    owned: Ids,
}

impl ConsumerMember {
    /// Sends a heartbeat if it is time for one and none is under way.
    pub(super) fn beat(&mut self, now: Millis) {
        let due = self.next_heartbeat.is_some_and(|next| next <= now);
        if !due || self.in_flight.is_some() {
            return;
        }
        self.next_heartbeat = Some(after(now, self.heartbeat_interval_ms));
        let request = match self.state {
            MemberState::Joining
            | MemberState::Stable
            | MemberState::Reconciling
            | MemberState::Acknowledging
            | MemberState::PrepareLeaving => self.heartbeat(),
            MemberState::Leaving => self.goodbye(),
            MemberState::Unsubscribed
            | MemberState::Stale
            | MemberState::Fenced
            | MemberState::Fatal => {
                self.next_heartbeat = None;
                return;
            }
        };
        let request = MemberRequest::ConsumerHeartbeat(request);
        self.in_flight = Some(self.actions.send(request));
        // What it says it has, it has: there is nothing more to tell.
        if self.state == MemberState::Acknowledging {
            self.acknowledged();
        }
    }

    fn heartbeat(&mut self) -> ConsumerGroupHeartbeatRequest {
        let config = &self.config;
        let joining = self.state == MemberState::Joining;
        let now = Known {
            subscription: self.subscription.clone(),
            owned: self.owned.clone(),
        };
        let before = self.known.as_ref().filter(|_| !joining);
        let full = before.is_none();
        let topics_changed =
            before.is_none_or(|k| k.subscription.topics != now.subscription.topics);
        let regex_changed = before.is_none_or(|k| k.subscription.regex != now.subscription.regex);
        let owned_changed = before.is_none_or(|k| k.owned != now.owned);
        let request = ConsumerGroupHeartbeatRequest {
            group_id: config.group_id.clone(),
            member_id: config.member_id.clone(),
            member_epoch: self.epoch,
            instance_id: config.instance_id.clone(),
            rack_id: config.rack_id.clone().filter(|_| full),
            rebalance_timeout_ms: if full {
                config.rebalance_timeout_ms
            } else {
                -1
            },
            subscribed_topic_names: topics_changed.then(|| now.subscription.topics.clone()),
            // The empty expression takes back the one before. A full heartbeat says it as well: the
            // coordinator may have an expression from a heartbeat whose response was lost, or from
            // the static member whose place this one takes, and `None` would keep it.
            subscribed_topic_regex: regex_changed
                .then(|| now.subscription.regex.clone().unwrap_or_default()),
            server_assignor: config.server_assignor.clone().filter(|_| full),
            topic_partitions: owned_changed.then(|| by_topic(&now.owned)),
        };
        self.saying = Some(now);
        request
    }

    fn goodbye(&mut self) -> ConsumerGroupHeartbeatRequest {
        self.saying = None;
        let config = &self.config;
        // After the application has been away too long, a static member's partitions go to others.
        let member_epoch = match config.instance_id {
            Some(_) if !self.poll_interval_exceeded => LEAVE_STATIC_EPOCH,
            _ => LEAVE_EPOCH,
        };
        ConsumerGroupHeartbeatRequest {
            group_id: config.group_id.clone(),
            member_id: config.member_id.clone(),
            member_epoch,
            instance_id: config.instance_id.clone(),
            ..Default::default()
        }
    }

    /// See [`Member::answered`](super::super::Member::answered).
    pub fn answered(
        &mut self,
        id: RequestId,
        answer: &ConsumerGroupHeartbeatResponse,
        now: Millis,
    ) {
        if self.in_flight != Some(id) {
            return;
        }
        self.in_flight = None;
        match answer.error_code {
            ErrorCode::NONE => self.accepted(answer, now),
            code => {
                self.known = None;
                self.rejected(code, answer.error_message.clone(), now);
            }
        }
        self.beat(now);
    }

    fn accepted(&mut self, answer: &ConsumerGroupHeartbeatResponse, now: Millis) {
        self.backoff.reset();
        self.release_deadline = None;
        self.was_admitted = true;
        let saying = self.saying.take();
        match self.state {
            MemberState::Leaving => {
                // It may be the answer to a heartbeat from before.
                if answer.member_epoch < 0 {
                    self.has_left(now);
                } else {
                    self.next_heartbeat = Some(now);
                }
                return;
            }
            MemberState::Joining
            | MemberState::Stable
            | MemberState::Reconciling
            | MemberState::Acknowledging => {}
            MemberState::PrepareLeaving => {
                self.known = saying;
                self.epoch = answer.member_epoch;
                self.next_heartbeat = Some(after(now, answer.heartbeat_interval_ms));
                return;
            }
            _ => return,
        }
        self.known = saying;
        self.epoch = answer.member_epoch;
        self.heartbeat_interval_ms = answer.heartbeat_interval_ms;
        let next = after(now, self.heartbeat_interval_ms);
        // Something new may be waiting to be said.
        let urgent = self.state == MemberState::Acknowledging
            || self
                .known
                .as_ref()
                .is_some_and(|known| known.subscription != self.subscription);
        self.next_heartbeat = Some(if urgent { now } else { next });
        if let Some(assignment) = &answer.assignment {
            let topics = assignment.topic_partitions.iter();
            self.target = topics
                .flat_map(|topic| topic.partitions.iter().map(|p| (topic.topic_id, *p)))
                .collect();
        }
        if self.state == MemberState::Joining && self.target == self.owned {
            self.go(MemberState::Stable);
        }
        self.reconcile();
    }

    fn rejected(&mut self, code: ErrorCode, message: Option<ByteString>, now: Millis) {
        match code {
            ErrorCode::FENCED_MEMBER_EPOCH | ErrorCode::UNKNOWN_MEMBER_ID => self.fenced(now),
            // The group has gone, and the member with it; with epoch 0 it would have been made.
            ErrorCode::GROUP_ID_NOT_FOUND if self.epoch > 0 || self.is_leaving() => {
                self.fenced(now);
            }
            code if self.state == MemberState::Leaving && !code.is_retriable() => {
                self.has_left(now);
            }
            // It may be let in later; until then it has nothing.
            ErrorCode::TOPIC_AUTHORIZATION_FAILED => self.refused_for_now(code, message, now),
            // It was allowed before: an administrator may undo this.
            ErrorCode::GROUP_AUTHORIZATION_FAILED if self.was_admitted => {
                self.refused_for_now(code, message, now);
            }
            // It was killed and has come back before its session has ended.
            ErrorCode::UNRELEASED_INSTANCE_ID if self.awaits_release(now) => {
                self.next_heartbeat = Some(after(now, REFUSED_RETRY_MS));
            }
            code if code.is_retriable() => {
                self.next_heartbeat = Some(after(now, self.backoff.next()));
            }
            code => self.fatal(code, message),
        }
    }

    fn refused_for_now(&mut self, code: ErrorCode, message: Option<ByteString>, now: Millis) {
        self.actions
            .push(Action::Report(MemberError::Refused { code, message }));
        let wait = self.heartbeat_interval_ms.max(REFUSED_RETRY_MS);
        self.next_heartbeat = Some(after(now, wait));
    }

    /// Whether the instance id may still be released: the session of the member that holds it has
    /// not had the time to end.
    fn awaits_release(&mut self, now: Millis) -> bool {
        if let Some(deadline) = self.release_deadline {
            return now < deadline;
        }
        self.release_deadline = Some(after(now, self.config.session_timeout_ms));
        self.actions.push(Action::Waiting(MemberError::Refused {
            code: ErrorCode::UNRELEASED_INSTANCE_ID,
            message: None,
        }));
        true
    }

    fn is_leaving(&self) -> bool {
        matches!(
            self.state,
            MemberState::Leaving | MemberState::PrepareLeaving
        )
    }

    /// See [`Member::failed`](super::super::Member::failed).
    pub fn failed(&mut self, id: RequestId, retry_ms: Millis, now: Millis) {
        if self.in_flight != Some(id) {
            return;
        }
        self.in_flight = None;
        // Whether it arrived is not known.
        self.known = None;
        self.saying = None;
        self.next_heartbeat = self.next_heartbeat.map(|_| now + retry_ms);
    }

    /// See [`Member::refused`](super::super::Member::refused).
    pub fn refused(&mut self, id: RequestId, code: ErrorCode, message: Option<ByteString>) {
        if self.in_flight == Some(id) {
            self.in_flight = None;
            self.fatal(code, message);
        }
    }
}

fn by_topic(partitions: &Ids) -> Vec<TopicIdPartitions> {
    let mut topics: Vec<TopicIdPartitions> = Vec::new();
    for &(topic_id, partition) in partitions {
        match topics.last_mut() {
            Some(topic) if topic.topic_id == topic_id => topic.partitions.push(partition),
            _ => topics.push(TopicIdPartitions {
                topic_id,
                partitions: vec![partition],
            }),
        }
    }
    topics
}
