//! A client that is not a member changes nothing in a group (KAFKA-20570).
//!
//! Requests of unknown members, of epochs and generations that were or never will be, and malformed
//! ones are refused, and leave no record behind.

use kohort_coordinator::{Reply, Request};
use kohort_wire::ErrorCode;

use super::{Happened, Invariant};
use crate::{coordinator::Origin, world::World};

pub(super) struct Strangers;

impl Invariant for Strangers {
    fn name(&self) -> &'static str {
        "who has no business in a group changes nothing"
    }

    fn after(&mut self, _world: &World, happened: &Happened<'_>) -> Result<(), String> {
        let Happened::Decided {
            origin: Origin::Stranger,
            request,
            reply,
            records,
            ..
        } = happened
        else {
            return Ok(());
        };
        if !records.is_empty() {
            return Err(format!("{request:?} left {records:?}"));
        }
        match reply {
            Some(reply) if is_refused(reply) => Ok(()),
            reply => Err(format!("{} was answered with {reply:?}", words(request))),
        }
    }
}

fn words(request: &Request) -> String {
    format!("{request:?}")
}

fn is_refused(reply: &Reply) -> bool {
    let refused = |code: ErrorCode| code.is_error();
    match reply {
        Reply::JoinGroup(answer) => refused(answer.error_code),
        Reply::SyncGroup(answer) => refused(answer.error_code),
        Reply::Heartbeat(answer) => refused(answer.error_code),
        Reply::LeaveGroup(answer) => {
            refused(answer.error_code) || answer.members.iter().all(|m| refused(m.error_code))
        }
        Reply::ConsumerGroupHeartbeat(answer) => refused(answer.error_code),
        Reply::OffsetCommit(answer) => {
            let partitions = answer.topics.iter().flat_map(|topic| &topic.partitions);
            partitions.into_iter().all(|p| refused(p.error_code))
        }
        Reply::OffsetFetch(answer) => refused(answer.error_code),
        Reply::OffsetDelete(answer) => {
            refused(answer.error_code)
                || answer
                    .topics
                    .iter()
                    .flat_map(|topic| &topic.partitions)
                    .all(|p| refused(p.error_code))
        }
        Reply::DeleteGroups(answer) => answer.iter().all(|group| refused(group.error_code)),
        _ => false,
    }
}
