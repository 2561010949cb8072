//! A consumer group becomes a classic group.

use crate::coordinator::{Id, Shard, shard::Step};

impl Shard {
    /// Makes a consumer group without members a classic one; its offsets stay.
    pub(crate) fn convert_empty_consumer_group(&mut self, group_id: &str, step: &mut Step<'_>) {
        let Some(group) = self.groups.get(group_id) else {
            return;
        };
        let id = group.id.clone();
        for tombstone in group
            .consumer()
            .map(|group| group.tombstones(&id))
            .unwrap_or_default()
        {
            self.emit(tombstone, step);
        }
        step.event(&id, "the empty consumer group became a classic group");
    }

    pub(super) fn can_downgrade_without(&self, _group_id: &Id, _member_ids: &[Id]) -> bool {
        false
    }

    pub(super) fn downgrade_without(
        &mut self,
        _group_id: &Id,
        _member_ids: &[Id],
        _cause: &str,
        _step: &mut Step<'_>,
    ) {
    }
}
