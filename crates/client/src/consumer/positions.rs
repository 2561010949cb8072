//! Where a consumer is in its partitions, and where it goes.

use super::{Consumer, Seek, shared::State};
use crate::{
    CommittedOffset, Each, Error, OffsetSpec, Result, TopicPartition, committed::committed_offsets,
    list_offsets::list_offsets,
};

impl Consumer {
    fn change(
        &self,
        partitions: &[TopicPartition],
        mut change: impl FnMut(&mut State, &TopicPartition) -> bool,
    ) -> Result<()> {
        let mut state = self.shared.lock();
        for name in partitions {
            if !change(&mut state, name) {
                return Err(not_assigned(name));
            }
        }
        drop(state);
        self.shared.work.notify_one();
        self.shared.ready.notify_waiters();
        Ok(())
    }

    /// Gives the application no more records of these partitions until they are resumed. A
    /// partition that is taken away and comes back is not paused any more.
    pub fn pause(&self, partitions: &[TopicPartition]) -> Result<()> {
        self.change(partitions, |state, name| {
            let partition = state.partitions.get_mut(name);
            partition.map(|partition| partition.paused = true).is_some()
        })
    }

    /// Goes on with partitions that were paused.
    pub fn resume(&self, partitions: &[TopicPartition]) -> Result<()> {
        self.change(partitions, |state, name| {
            state.add_turn(name);
            let partition = state.partitions.get_mut(name);
            partition
                .map(|partition| partition.paused = false)
                .is_some()
        })
    }

    /// The partitions that are paused, in order.
    pub fn paused(&self) -> Vec<TopicPartition> {
        let state = self.shared.lock();
        let paused = state
            .partitions
            .iter()
            .filter(|(_, partition)| partition.paused);
        let mut paused: Vec<_> = paused.map(|(name, _)| name.clone()).collect();
        paused.sort();
        paused
    }

    /// Goes on reading elsewhere in a partition.
    pub fn seek(&self, partition: &TopicPartition, to: impl Into<Seek>) -> Result<()> {
        let to = to.into();
        to.check(partition)?;
        self.change(std::slice::from_ref(partition), |state, name| {
            state.seek(name, to)
        })
    }

    /// The offset of the record of a partition that a poll will return next; `None` while it is
    /// not known where to begin.
    pub fn position(&self, partition: &TopicPartition) -> Result<Option<i64>> {
        let state = self.shared.lock();
        let known = state
            .partitions
            .get(partition)
            .ok_or_else(|| not_assigned(partition))?;
        Ok(known.progress.position().map(|position| position.offset))
    }

    /// How many records of a partition are still to be read, as far as is known; `None` before
    /// anything was fetched of it.
    pub fn lag(&self, partition: &TopicPartition) -> Result<Option<i64>> {
        let state = self.shared.lock();
        let known = state
            .partitions
            .get(partition)
            .ok_or_else(|| not_assigned(partition))?;
        Ok(known.lag(self.shared.committed_only()))
    }

    /// Offsets by time, the first or the last.
    pub async fn list_offsets(
        &self,
        partitions: &[(TopicPartition, OffsetSpec)],
    ) -> Each<TopicPartition, Option<i64>> {
        let isolation_level = self.shared.config.isolation_level;
        let timeout = self.shared.cluster.config().api_timeout;
        let partitions = partitions.to_vec();
        let listed = list_offsets(&self.shared.cluster, partitions, isolation_level, timeout);
        let results = listed.await.into_iter();
        results
            .map(|(name, result)| (name, result.map(|listed| listed.offset)))
            .collect()
    }

    /// What the group has committed for these partitions.
    pub async fn committed(
        &self,
        partitions: &[TopicPartition],
    ) -> Result<Each<TopicPartition, Option<CommittedOffset>>> {
        let Some(group_id) = &self.shared.config.group_id else {
            return Err(Error::config(
                "group.id",
                "is needed to know what was committed",
            ));
        };
        let timeout = self.shared.cluster.config().api_timeout;
        let (member, ids) = {
            let state = self.shared.lock();
            (state.committer.clone(), state.topic_ids(partitions))
        };
        let (cluster, member) = (&self.shared.cluster, member.as_ref());
        committed_offsets(
            cluster,
            group_id,
            member,
            Some(partitions),
            &ids,
            true,
            timeout,
        )
        .await
    }
}

fn not_assigned(partition: &TopicPartition) -> Error {
    Error::State(format!("{partition} is not assigned to this consumer"))
}
