//! What the coordinator says of a group is what the group is (KAFKA-20431).
//!
//! People decide by descriptions: whether a group is stable, who holds a partition. They are asked
//! for as an administrator would, and compared with the state inside.

use kohort_coordinator::{
    Caller, Outbox, Reply, Request, Token,
    inspect::{ConsumerGroupState, GroupState, MembersState},
};
use kohort_wire::messages::{DescribedConsumerGroup, DescribedGroup};

use super::{Happened, Invariant};
use crate::world::World;

#[derive(Default)]
pub(super) struct Described {
    /// How much of the log and which topics were looked at last: nothing else is described.
    last: Option<(u64, i64)>,
}

impl Invariant for Described {
    fn name(&self) -> &'static str {
        "what is described is what is"
    }

    fn after(&mut self, world: &World, happened: &Happened<'_>) -> Result<(), String> {
        match happened {
            Happened::Answers(_) | Happened::Loaded { .. } => {}
            _ => return Ok(()),
        }
        let standby = &world.coordinator.standby;
        let looked_at = (standby.version(), world.cluster.version());
        if self.last.replace(looked_at) == Some(looked_at) {
            return Ok(());
        }
        let now = world.coordinator.clock(world.now);
        for (id, state) in standby.durable() {
            let mut asked = standby.fork([1; 32]);
            asked.topics_changed(world.cluster.snapshot(), now, &mut Outbox::default());
            // A rewind that is under way goes on with the news, and may end the group or turn it into
            // one of the other protocol.
            let state = match state.rewind {
                None => state.clone(),
                Some(_) => match asked.durable().remove(id) {
                    Some(state) => state,
                    None => continue,
                },
            };
            let groups = vec![(&**id).into()];
            let request = match &state.members {
                MembersState::Consumer(_) => Request::ConsumerGroupDescribe { groups },
                MembersState::Classic(_) => Request::DescribeGroups { version: 6, groups },
            };
            let mut out = Outbox::default();
            asked.request(Token(0), &Caller::default(), request, now, &mut out);
            if !out.records.is_empty() {
                return Err(format!("describing group {id} changed it"));
            }
            match out.replies.pop() {
                Some((_, Reply::ConsumerGroupDescribe(described))) => {
                    consumer(world, &described[0], &state)?;
                }
                Some((_, Reply::DescribeGroups(described))) => {
                    classic(&described[0], &state)?;
                }
                _ => return Err(format!("group {id} is not described")),
            }
        }
        Ok(())
    }
}

fn consumer(
    world: &World,
    described: &DescribedConsumerGroup,
    state: &GroupState,
) -> Result<(), String> {
    let MembersState::Consumer(group) = &state.members else {
        return Err("described as a consumer group".to_owned());
    };
    let expected = state_of(group);
    if *described.group_state != *expected {
        return Err(format!(
            "described as {}, and is {expected}",
            described.group_state
        ));
    }
    if described.group_epoch != group.epoch
        || described.assignment_epoch != group.assignment_epoch
        || described.members.len() != group.members.len()
    {
        return Err("described with other epochs or members".to_owned());
    }
    for member in &described.members {
        let Some(known) = group.members.get(&*member.member_id) else {
            return Err(format!("{} is described and no member", member.member_id));
        };
        let topics = member.assignment.topic_partitions.iter();
        let said = topics.flat_map(|topic| topic.partitions.iter().map(|p| (topic.topic_id, *p)));
        let said: std::collections::BTreeSet<_> = said.collect();
        let owned = known.assigned.keys().chain(known.revoking.keys());
        let owned = owned.filter(|(id, _)| world.cluster.by_id(*id).is_some());
        let owned: std::collections::BTreeSet<_> = owned.copied().collect();
        if said != owned || member.member_epoch != known.epoch {
            return Err(format!(
                "{} is described as the owner of {said:?}, and owns {owned:?}",
                member.member_id
            ));
        }
    }
    Ok(())
}

/// Written down once more, from KIP-848.
fn state_of(group: &ConsumerGroupState) -> &'static str {
    let is_behind = |epoch: i32, state: i8| epoch != group.assignment_epoch || state != 0;
    match group.members.is_empty() {
        true => "Empty",
        false if group.epoch > group.assignment_epoch => "Assigning",
        false if group.members.values().any(|m| is_behind(m.epoch, m.state)) => "Reconciling",
        false => "Stable",
    }
}

fn classic(described: &DescribedGroup, state: &GroupState) -> Result<(), String> {
    let MembersState::Classic(group) = &state.members else {
        return Err("described as a classic group".to_owned());
    };
    if *described.group_state != *group.state {
        return Err(format!(
            "described as {}, and is {}",
            described.group_state, group.state
        ));
    }
    let said = described.members.iter().map(|member| &*member.member_id);
    if said.eq(group.members.keys().map(|id| &**id)) {
        Ok(())
    } else {
        Err("described with other members".to_owned())
    }
}
