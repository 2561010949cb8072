//! A rebalance, from the partitions that are let go of before it to those that come with it.

use kohort_group::assignor::classic::{GroupMember, PartitionCounts, RebalanceProtocol};
use kohort_wire::{ByteString, ErrorCode, messages::*};

use super::{
    super::{Action, MemberError, MemberRequest, Millis, Partitions, action::after},
    ClassicMember, ClassicState, NO_GENERATION, Step, protocol,
};

impl ClassicMember {
    /// Does what comes next, if the application is not doing something.
    pub(super) fn go_on(&mut self, now: Millis) {
        if self.step.is_some() {
            return;
        }
        match self.state {
            ClassicState::PrepareLeaving => {
                if self.owned.is_empty() {
                    self.say_goodbye(now);
                } else {
                    self.revoke(self.owned.clone());
                }
            }
            ClassicState::Leaving if self.request.is_none() && self.not_before <= now => {
                self.say_goodbye(now);
            }
            ClassicState::Completing => self.complete(now),
            ClassicState::Unsubscribed | ClassicState::Preparing | ClassicState::Stable
                if self.rejoin =>
            {
                self.prepare(now);
            }
            // A rebalance that is under way goes on with the next one.
            _ => {}
        }
    }

    pub(super) fn revoke(&mut self, partitions: Partitions) {
        let id = self.actions.id();
        self.step = Some(Step::Revoking(id, partitions.clone()));
        self.actions.push(Action::Revoke { id, partitions });
    }

    /// Before joining: all partitions are let go of, or, in the cooperative protocol, those of
    /// topics that are not subscribed to any more.
    fn prepare(&mut self, now: Millis) {
        self.state = ClassicState::Preparing;
        let given_up: Partitions = match self.protocol {
            RebalanceProtocol::Eager => self.owned.clone(),
            RebalanceProtocol::Cooperative => self
                .owned
                .iter()
                .filter(|(topic, _)| !self.subscription.topics.contains(topic))
                .cloned()
                .collect(),
        };
        if !given_up.is_empty() {
            return self.revoke(given_up);
        }
        if self.not_before > now {
            return;
        }
        self.rejoin = false;
        self.join();
    }

    /// Asks to be let in.
    pub(super) fn join(&mut self) {
        let request = protocol::join(
            &self.config,
            &self.member_id,
            &self.subscription,
            &self.owned,
            self.generation,
        );
        match request {
            Ok(request) => {
                self.state = ClassicState::Joining;
                self.request = Some(self.actions.send(MemberRequest::Join(request)));
            }
            Err(error) => self.fatal(error),
        }
    }

    pub(super) fn joined(&mut self, answer: JoinGroupResponse, now: Millis) {
        self.member_id = own(&answer.member_id);
        self.generation = answer.generation_id;
        self.assignor = answer.protocol_name.as_ref().map(own);
        self.next_heartbeat = Some(after(now, self.config.heartbeat_interval_ms));
        self.heartbeat = None;
        if answer.leader != answer.member_id {
            return self.sync(Vec::new());
        }
        let members = answer.members.iter().map(|member| {
            Ok(GroupMember {
                member_id: own(&member.member_id),
                instance_id: member.group_instance_id.as_ref().map(own),
                subscription: protocol::read_subscription(&member.metadata)?,
            })
        });
        match members.collect::<Result<Vec<_>, MemberError>>() {
            Ok(members) => {
                let topics = members
                    .iter()
                    .flat_map(|member| &member.subscription.topics);
                let mut topics: Vec<_> = topics.cloned().collect();
                topics.sort();
                topics.dedup();
                self.actions.push(Action::CountPartitions(topics));
                // A static leader that came back leaves the assignment as it is (KIP-814). It leads
                // all the same, and has to notice when there are other partitions.
                if answer.skip_assignment {
                    return self.sync(Vec::new());
                }
                self.members = members;
                self.state = ClassicState::Counting;
            }
            Err(error) => self.fatal(error),
        }
    }

    /// See [`Member::partition_counts`](super::super::Member::partition_counts).
    pub fn partition_counts(&mut self, counts: PartitionCounts) {
        if self.state != ClassicState::Counting {
            return;
        }
        let members = std::mem::take(&mut self.members);
        let chosen = self.assignor.as_deref();
        let assignor = self
            .config
            .assignors
            .iter()
            .find(|a| Some(a.name()) == chosen);
        let Some(assignor) = assignor else {
            let name = chosen.unwrap_or_default();
            let problem = format!("the group has chosen the assignor {name}, which is not here");
            return self.fatal(MemberError::Assignor(problem));
        };
        let assigned = match assignor.assign(&counts, &members) {
            Ok(assigned) => assigned,
            Err(error) => {
                let name = assignor.name();
                let problem = format!("the assignor {name} has no assignment: {error}");
                return self.fatal(MemberError::Assignor(problem));
            }
        };
        let assignments = members
            .into_iter()
            .zip(&assigned)
            .map(|(member, assignment)| {
                Ok(SyncGroupAssignment {
                    member_id: member.member_id,
                    assignment: protocol::write_assignment(assignment)?,
                })
            });
        match assignments.collect::<Result<Vec<_>, MemberError>>() {
            Ok(assignments) => self.sync(assignments),
            Err(error) => self.fatal(error),
        }
    }

    fn sync(&mut self, assignments: Vec<SyncGroupAssignment>) {
        self.state = ClassicState::Syncing;
        let request = SyncGroupRequest {
            group_id: self.config.group_id.clone(),
            generation_id: self.generation,
            member_id: self.member_id.clone(),
            group_instance_id: self.config.instance_id.clone(),
            protocol_type: Some(protocol::PROTOCOL_TYPE),
            protocol_name: self.assignor.clone(),
            assignments,
        };
        self.request = Some(self.actions.send(MemberRequest::Sync(request)));
    }

    pub(super) fn synced(&mut self, answer: &SyncGroupResponse, now: Millis) {
        let assignment = match protocol::read_assignment(&answer.assignment) {
            Ok(assignment) => assignment,
            Err(error) => return self.fatal(error),
        };
        let chosen = self.assignor.clone();
        let mut assignors = self.config.assignors.iter_mut();
        if let Some(assignor) = assignors.find(|a| Some(a.name()) == chosen.as_deref()) {
            assignor.on_assignment(&assignment, self.generation);
        }
        self.assigned = Some(protocol::partitions_of(&assignment));
        self.state = ClassicState::Completing;
        self.go_on(now);
    }

    /// The application gives up what it was not assigned again, and takes over what is new.
    fn complete(&mut self, now: Millis) {
        let Some(assigned) = &self.assigned else {
            self.state = ClassicState::Stable;
            return self.go_on(now);
        };
        let revoked: Partitions = self.owned.difference(assigned).cloned().collect();
        if !revoked.is_empty() {
            // Others get them in the next rebalance.
            self.rejoin = true;
            return self.revoke(revoked);
        }
        let added: Partitions = assigned.difference(&self.owned).cloned().collect();
        self.owned.clone_from(assigned);
        self.assigned = None;
        let id = self.actions.id();
        self.step = Some(Step::Assigning(id));
        let all = self.owned.clone();
        self.actions.push(Action::Assign { id, added, all });
    }

    /// The coordinator has forgotten the member, or a new generation has begun without it: what it
    /// had is lost, and it joins again. It keeps an id that the coordinator still knows.
    pub(super) fn forgotten(&mut self, code: ErrorCode, now: Millis) {
        self.lose_all();
        self.reset();
        if code == ErrorCode::UNKNOWN_MEMBER_ID {
            self.member_id = ByteString::new();
        }
        self.state = ClassicState::Preparing;
        self.rejoin = true;
        self.go_on(now);
    }

    /// A new generation is coming, and the member has not lost its place.
    pub(super) fn join_again(&mut self, now: Millis) {
        self.request = None;
        self.assigned = None;
        self.rejoin = true;
        if self.state != ClassicState::Preparing {
            self.state = ClassicState::Stable;
        }
        self.go_on(now);
    }

    pub(super) fn is_known(&self) -> bool {
        self.generation != NO_GENERATION
    }
}

/// A copy that does not keep the whole answer.
fn own(text: &ByteString) -> ByteString {
    ByteString::from(&**text)
}
