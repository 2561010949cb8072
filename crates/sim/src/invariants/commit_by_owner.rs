//! A commit is accepted from nobody but the owner (KIP-848, KIP-1251).
//!
//! An application that has lost a partition and does not know yet must not move the offset of
//! whoever has it now. Judged before the shard decides, by a rule that is written down here once
//! more: in a consumer group the member has to be known; its epoch is the member's own, or an older
//! one that is not older than the partition's assignment to it; and the partition may not be
//! somebody else's. In a classic group: a member, in the present generation, and not while the
//! leader assigns. Without a member only while the group is empty.

use kohort_coordinator::{
    Record, Reply, Request,
    inspect::{ConsumerGroupState, MembersState, Place},
};
use kohort_wire::messages::{OffsetCommitRequest, OffsetCommitResponse};

use super::{Happened, Invariant};
use crate::{coordinator::Origin, world::World};

pub(super) struct CommitByOwner;

impl Invariant for CommitByOwner {
    fn name(&self) -> &'static str {
        "a commit is accepted from nobody but the owner"
    }

    fn after(&mut self, _world: &World, happened: &Happened<'_>) -> Result<(), String> {
        let Happened::Decided {
            origin,
            request: Request::OffsetCommit { request, .. },
            before,
            reply: Some(Reply::OffsetCommit(response)),
            records,
            ..
        } = happened
        else {
            return Ok(());
        };
        // What administrators ask for happens as a rewind: see there.
        if let Origin::Administrator { .. } | Origin::Broker = origin {
            return Ok(());
        }
        let members = before.get(&*request.group_id).map(|group| &group.members);
        for (topic, partition) in accepted(response) {
            // The topic that the coordinator took it for: it may not have heard of another yet.
            let mut written = records.iter().filter_map(|record| match record {
                Record::OffsetCommit(key, Some(value))
                    if *key.topic == *topic && key.partition == partition =>
                {
                    Some(value.topic_id)
                }
                _ => None,
            });
            let Some(topic_id) = written.next() else {
                // It asks for a rewind by mistake.
                continue;
            };
            let place = (topic_id, partition);
            let verdict = match members {
                Some(MembersState::Consumer(group)) => consumer(group, request, place),
                Some(MembersState::Classic(group)) => {
                    let is_empty = group.state == "Empty";
                    let generation = request.generation_id_or_member_epoch;
                    match generation {
                        ..0 if is_empty => Ok(()),
                        _ if !group.members.contains_key(&*request.member_id) => {
                            Err("not a member")
                        }
                        _ if generation != group.generation => Err("of another generation"),
                        _ if group.state == "CompletingRebalance" => {
                            Err("while the leader assigns")
                        }
                        _ => Ok(()),
                    }
                }
                None if request.generation_id_or_member_epoch < 0 => Ok(()),
                None => Err("of a group that does not exist"),
            };
            if let Err(why) = verdict {
                return Err(format!(
                    "the commit of {} at epoch {} for {topic}-{partition} was accepted: {why}",
                    request.member_id, request.generation_id_or_member_epoch
                ));
            }
        }
        Ok(())
    }
}

fn consumer(
    group: &ConsumerGroupState,
    request: &OffsetCommitRequest,
    place: Place,
) -> Result<(), &'static str> {
    let epoch = request.generation_id_or_member_epoch;
    if epoch < 0 && group.members.is_empty() {
        return Ok(());
    }
    let member = group.members.get(&*request.member_id);
    let member = member.ok_or("not a member")?;
    if group
        .owners
        .get(&place)
        .is_some_and(|owner| **owner != *request.member_id)
    {
        return Err("another member owns it");
    }
    match epoch.cmp(&member.epoch) {
        std::cmp::Ordering::Equal => Ok(()),
        std::cmp::Ordering::Greater => Err("at an epoch that is yet to come"),
        std::cmp::Ordering::Less => match member.owned_since(&place) {
            Some(since) if since <= epoch => Ok(()),
            Some(_) => Err("it was assigned after that epoch"),
            None => Err("it is not the member's"),
        },
    }
}

fn accepted(response: &OffsetCommitResponse) -> impl Iterator<Item = (&str, i32)> {
    response.topics.iter().flat_map(|topic| {
        let partitions = topic.partitions.iter();
        partitions
            .filter(|partition| !partition.error_code.is_error())
            .map(|partition| (&*topic.name, partition.partition_index))
    })
}
