//! Cancelling a pending rewind on request, because an owner is slow and its partitions are needed more
//! than the rewind.

use kohort_group::history::Who;
use kohort_wire::{ErrorCode, messages::OffsetCommitRequest};

use super::start::{answer, refused};
use crate::{Caller, Id, Reply, Shard, Token, step::Step};

impl Shard {
    /// Gives up the group's rewind, all of it, if it is of the partitions that are named.
    pub(super) fn cancel_rewind(
        &mut self,
        token: Token,
        caller: &Caller,
        request: &OffsetCommitRequest,
        step: &mut Step<'_>,
    ) {
        let group_id = Id::from(&*request.group_id);
        let is_of_these = self.rewind_mut(&group_id).is_some_and(|rewind| {
            request.topics.iter().all(|topic| {
                let mut partitions = topic.partitions.iter();
                partitions.all(|partition| rewind.contains(&topic.name, partition.partition_index))
            })
        });
        if !is_of_these {
            let why = "there is none under way of these partitions that could be cancelled";
            step.event(&group_id, refused(caller, why));
            let reply: Reply = answer(request, ErrorCode::INVALID_REQUEST);
            return step.reply(token, reply);
        }
        let why = format!("{} cancelled it", Who::from(caller));
        self.give_up_rewind(&group_id, why, ErrorCode::OPERATION_NOT_ATTEMPTED, step);
        step.reply(token, answer(request, ErrorCode::NONE));
    }
}
