//! Offsets and groups that are no longer used.

use kohort_group::history::{Deletion, What};

use super::store::{self, CommittedOffset};
use crate::{
    Config, Millis, Shard,
    alarm::Alarm,
    classic::ClassicState,
    group::{Group, Members},
    step::Step,
};

impl Shard {
    pub(crate) fn schedule_offset_expiry(&mut self, now: Millis) {
        let at = now + self.config.offsets_retention_check_interval_ms;
        self.alarms.set(at, Alarm::OffsetExpiry);
    }

    pub(crate) fn on_offset_expiry_alarm(&mut self, step: &mut Step<'_>) {
        for group_id in self.group_ids() {
            let Some(group) = self.groups.get(&group_id) else {
                continue;
            };
            let expired: Vec<_> = expired(group, &self.config, step.date())
                .map(|(topic, partition)| store::tombstone(&group_id, topic, partition))
                .collect();
            let expired_count = expired.len();
            for record in expired {
                self.emit(record, step);
            }
            if expired_count > 0 {
                step.event(
                    &group_id,
                    What::OffsetsExpired {
                        count: expired_count,
                    },
                );
            }
            self.delete_if_unused(&group_id, step);
        }
        self.schedule_offset_expiry(step.now);
    }

    /// Deletes a group without members and offsets.
    fn delete_if_unused(&mut self, group_id: &str, step: &mut Step<'_>) {
        let Some(group) = self.groups.get(group_id) else {
            return;
        };
        if !group.offsets.is_empty() || !group.is_empty() {
            return;
        }
        let id = group.id.clone();
        for record in group.tombstones() {
            self.emit(record, step);
        }
        step.event(
            &id,
            What::Deleted {
                why: Deletion::Unused,
            },
        );
    }
}

fn expired<'a>(
    group: &'a Group,
    config: &'a Config,
    now: Millis,
) -> impl Iterator<Item = (&'a str, i32)> {
    let retention = Retention::of(group);
    let topics = group
        .offsets
        .iter()
        .filter(|(topic, _)| !group.subscribes_to(topic));
    let offsets = topics.flat_map(|(topic, partitions)| {
        partitions
            .iter()
            .map(move |(&partition, offset)| (&**topic, partition, offset))
    });
    offsets
        .filter(move |(_, _, offset)| retention.has_expired(offset, config, now))
        .map(|(topic, partition, _)| (topic, partition))
}

/// From when on the retention of a group's offsets counts.
#[derive(Debug, Clone, Copy)]
enum Retention {
    /// From the commit.
    FromCommit,
    /// From when the group lost its last member.
    From(Millis),
    /// Not at all, while the group is in use.
    Never,
}

impl Retention {
    fn of(group: &Group) -> Retention {
        let Members::Classic(classic) = &group.members else {
            return Retention::FromCommit;
        };
        match (&classic.protocol_type, classic.state) {
            (None, _) => Retention::FromCommit,
            (Some(_), ClassicState::Empty) => classic
                .state_since
                .map_or(Retention::FromCommit, Retention::From),
            (Some(_), ClassicState::Stable) if classic.subscribed_topics.is_some() => {
                Retention::FromCommit
            }
            (Some(_), _) => Retention::Never,
        }
    }

    fn has_expired(self, offset: &CommittedOffset, config: &Config, now: Millis) -> bool {
        let since = match (offset.expires_at, self) {
            (_, Retention::Never) => return false,
            (Some(expires_at), _) => return now >= expires_at,
            (None, Retention::FromCommit) => offset.committed_at,
            (None, Retention::From(since)) => since,
        };
        now - since >= config.offsets_retention_ms
    }
}
