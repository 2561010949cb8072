//! Alarms of what is gone.
//!
//! Every join sets an alarm, which may be due in minutes. A peer that joins and leaves again and again
//! must not fill the memory with them.

use super::{
    Millis, Shard,
    alarm::{Alarm, Deadline},
    group::{Group, Members},
};

impl Shard {
    /// Forgets the alarms that mean nothing any more, once they are the most.
    pub(super) fn sweep_alarms(&mut self) {
        if self.alarms.are_to_be_swept() {
            let groups = &self.groups;
            self.alarms.sweep(|at, alarm| {
                let Some(group_id) = alarm.group_id() else {
                    return true;
                };
                groups
                    .get(group_id)
                    .is_some_and(|group| group.awaits(at, alarm))
            });
        }
    }
}

impl Group {
    /// Whether the alarm stands for one of the group's deadlines.
    fn awaits(&self, at: Millis, alarm: &Alarm) -> bool {
        let has_alarm =
            |deadline: Option<&Deadline>| deadline.is_some_and(|it| it.has_alarm_at(at));
        match (&self.members, alarm) {
            (Members::Classic(group), Alarm::ClassicMember { member_id, .. }) => {
                let session = group.member(member_id).map(|member| &member.session);
                has_alarm(session) || has_alarm(group.pending.deadline(member_id))
            }
            (Members::Classic(group), Alarm::ClassicRebalance { .. }) => {
                group.rebalance.has_alarm_at(at)
            }
            (Members::Classic(group), Alarm::History { .. }) => {
                group.progress.look.has_alarm_at(at)
            }
            (Members::Consumer(group), Alarm::ConsumerSession { member_id, .. }) => {
                has_alarm(group.member(member_id).map(|member| &member.session))
            }
            (Members::Consumer(group), Alarm::ConsumerRebalance { member_id, .. }) => {
                group.member(member_id).is_some_and(|member| {
                    let rebalance = &member.rebalance;
                    let mut deadlines =
                        [&rebalance.revoke, &rebalance.join, &rebalance.sync].into_iter();
                    deadlines.any(|deadline| has_alarm(deadline.as_ref()))
                })
            }
            (Members::Consumer(group), Alarm::ConsumerGroup { .. }) => group.look.has_alarm_at(at),
            (Members::Consumer(group), Alarm::History { .. }) => {
                group.progress.look.has_alarm_at(at)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kohort_wire::{ByteString, messages::*};

    use crate::*;

    fn ask(shard: &mut Shard, request: Request) -> Reply {
        let mut out = Outbox::default();
        shard.request(Token(1), &Caller::default(), request, 0, &mut out);
        assert!(shard.alarms.len() <= 2_002, "{}", shard.alarms.len());
        out.replies.pop().expect("answered at once").1
    }

    fn ask_for_an_id(shard: &mut Shard, group_id: &str) -> ByteString {
        let request = JoinGroupRequest {
            group_id: group_id.into(),
            session_timeout_ms: 30_000,
            protocol_type: "consumer".into(),
            protocols: vec![JoinGroupProtocol::default()],
            ..JoinGroupRequest::default()
        };
        let request = Request::JoinGroup {
            version: 9,
            request,
        };
        match ask(shard, request) {
            Reply::JoinGroup(response) => response.member_id,
            other => panic!("{other:?}"),
        }
    }

    fn leave(shard: &mut Shard, group_id: &str, member_id: ByteString) {
        let member = MemberIdentity {
            member_id,
            ..MemberIdentity::default()
        };
        let request = LeaveGroupRequest {
            group_id: group_id.into(),
            members: vec![member],
            ..LeaveGroupRequest::default()
        };
        let request = Request::LeaveGroup {
            version: 5,
            request,
        };
        ask(shard, request);
    }

    #[test]
    fn members_that_join_and_leave_over_and_over_leave_no_alarms_behind() {
        let (config, topics) = (Config::default(), Topics::default());
        let mut shard = Shard::new(Arc::new(config), Arc::new(topics), [0; 32]);
        let stays: Vec<ByteString> = (0..1_000)
            .map(|_| ask_for_an_id(&mut shard, "classic"))
            .collect();
        for number in 0..5_000 {
            let member_id = ask_for_an_id(&mut shard, "classic");
            leave(&mut shard, "classic", member_id);
            for member_epoch in [0, -1] {
                let request = ConsumerGroupHeartbeatRequest {
                    group_id: "consumers".into(),
                    member_id: format!("member-{number}").into(),
                    member_epoch,
                    rebalance_timeout_ms: 60_000,
                    subscribed_topic_names: Some(Vec::new()),
                    topic_partitions: Some(Vec::new()),
                    ..ConsumerGroupHeartbeatRequest::default()
                };
                let version = 1;
                ask(
                    &mut shard,
                    Request::ConsumerGroupHeartbeat { version, request },
                );
            }
        }
        // The alarms of those that are still awaited are among the rest.
        shard.on_alarm(30_000, &mut Outbox::default());
        let group = shard
            .groups
            .get("classic")
            .and_then(|group| group.classic());
        assert!(group.is_none_or(|group| !group.pending.contains(&stays[0])));
    }
}
