//! How large a classic group may become.
//!
//! The group is one record, so the metadata of its members and their assignments have to fit into one.
//! JoinGroup and SyncGroup have no room for a message: the history of the group and the log name the
//! setting that a request exceeded.

use kohort_wire::{codec::Decoder, messages::*};

use super::{CONSUMER_PROTOCOL_TYPE, ClassicMember, step::ClassicStep};
use crate::{Caller, Id, Millis, Shard, step::Step};

/// Events about requests that were refused for their size come no more often than this.
const TOLD_INTERVAL_MS: Millis = 60_000;

/// How many topics a consumer names: the most of all protocols that it supports. Unreadable metadata
/// counts as none, because the coordinator does not interpret it otherwise.
fn topics_named(request: &JoinGroupRequest) -> usize {
    if *request.protocol_type != *CONSUMER_PROTOCOL_TYPE {
        return 0;
    }
    let named = request.protocols.iter().filter_map(|protocol| {
        let mut input = Decoder::new(protocol.metadata.clone());
        input.i16().ok()?;
        let named = usize::try_from(input.i32().ok()?).ok()?;
        // Each takes two bytes or more.
        (named <= protocol.metadata.len() / 2).then_some(named)
    });
    named.max().unwrap_or_default()
}

impl Shard {
    /// Whether a member brings more than any member may.
    pub(super) fn is_member_too_large(
        &mut self,
        request: &JoinGroupRequest,
        step: &mut Step<'_>,
    ) -> bool {
        let protocols = request.protocols.iter();
        let bytes: usize = protocols.map(|protocol| protocol.metadata.len()).sum();
        let bytes_max = self.config.member_metadata_max_bytes;
        let topics = topics_named(request);
        let topics_max = self.config.member_topics_max;
        let message = if bytes > bytes_max {
            format!(
                "a member was refused: it brings {bytes} bytes of metadata; \
                 kohort.group.member.metadata.max.bytes allows {bytes_max}"
            )
        } else if topics > topics_max {
            format!(
                "a member was refused: it subscribes to {topics} topics; \
                 kohort.group.member.topics.max allows {topics_max}"
            )
        } else {
            return false;
        };
        if is_due(self.limit_told_at, step.now) {
            self.limit_told_at = Some(step.now);
            step.event(&Id::from(&*request.group_id), message);
        }
        true
    }
}

fn is_due(told_at: Option<Millis>, now: Millis) -> bool {
    told_at.is_none_or(|told_at| now >= told_at + TOLD_INTERVAL_MS)
}

impl ClassicStep<'_, '_> {
    /// Whether the group would be too large with what a member brings. A group that already exceeds the
    /// limit keeps its members, unless they bring more than before.
    pub(super) fn is_too_large_with(
        &mut self,
        caller: &Caller,
        request: &JoinGroupRequest,
    ) -> bool {
        let group = &self.group;
        let holder = request.group_instance_id.as_deref();
        let holder = holder.and_then(|id| group.static_member_id(id));
        let before = group.member(&request.member_id);
        let before = before.or_else(|| group.member(holder?));
        let before = before.map_or(0, ClassicMember::metadata_bytes);
        let bytes = ClassicMember::metadata_bytes_of(caller, request);
        let group_bytes = group.metadata_bytes() - before + bytes;
        let bytes_max = self.config.group_metadata_max_bytes;
        let is_too_large = group_bytes > bytes_max && bytes > before;
        if is_too_large {
            self.tell_of_limit(format!(
                "a member was refused: with it the group would have {group_bytes} bytes of \
                 metadata; kohort.group.metadata.max.bytes allows {bytes_max}"
            ));
        }
        is_too_large
    }

    /// Whether the leader assigns more than a member or the group may have.
    pub(super) fn is_too_large_assigned(&mut self, assignments: &[SyncGroupAssignment]) -> bool {
        let group = &self.group;
        let assigned = assignments.iter();
        let assigned = assigned.filter(|one| group.member(&one.member_id).is_some());
        let sizes = assigned.map(|one| one.assignment.len());
        let largest = sizes.clone().max().unwrap_or_default();
        let group_bytes = group.metadata_bytes() + sizes.sum::<usize>();
        let member_max = self.config.member_assignment_max_bytes;
        let group_max = self.config.group_metadata_max_bytes;
        if largest > member_max {
            self.tell_of_limit(format!(
                "an assignment was refused: one member would be assigned {largest} bytes; \
                 kohort.group.member.assignment.max.bytes allows {member_max}"
            ));
        } else if group_bytes > group_max {
            self.tell_of_limit(format!(
                "an assignment was refused: with it the group would have {group_bytes} bytes; \
                 kohort.group.metadata.max.bytes allows {group_max}"
            ));
        }
        largest > member_max || group_bytes > group_max
    }

    /// Records in the group's history that a limit was exceeded, but not for each of many attempts.
    fn tell_of_limit(&mut self, message: String) {
        let now = self.step.now;
        if is_due(self.group.limit_told_at, now) {
            self.group.limit_told_at = Some(now);
            self.event(message);
        }
    }
}
