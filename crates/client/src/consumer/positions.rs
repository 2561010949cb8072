//! Where a consumer is in its partitions, and where it goes.

use kohort_member::reader::Reader;

use super::{Consumer, Seek};
use crate::{
    CommittedOffset, Each, Error, OffsetSpec, Result, TopicPartition, committed::committed_offsets,
    list_offsets::list_offsets,
};

impl Consumer {
    fn change(
        &self,
        partitions: &[TopicPartition],
        mut change: impl FnMut(&mut Reader, &TopicPartition) -> bool,
    ) -> Result<()> {
        let mut state = self.shared.lock();
        for name in partitions {
            if !change(&mut state.reader, name) {
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
        self.change(partitions, |reader, name| reader.set_paused(name, true))
    }

    /// Goes on with partitions that were paused.
    pub fn resume(&self, partitions: &[TopicPartition]) -> Result<()> {
        self.change(partitions, |reader, name| reader.set_paused(name, false))
    }

    /// The partitions that are paused, in order.
    pub fn paused(&self) -> Vec<TopicPartition> {
        let mut paused: Vec<_> = self.shared.lock().reader.paused().cloned().collect();
        paused.sort();
        paused
    }

    /// Goes on reading elsewhere in a partition.
    pub fn seek(&self, partition: &TopicPartition, to: impl Into<Seek>) -> Result<()> {
        let to = to.into();
        check(to, partition)?;
        self.change(std::slice::from_ref(partition), |reader, name| {
            reader.seek(name, to)
        })
    }

    /// The offset of the record of a partition that a poll will return next; `None` while it is
    /// not known where to begin.
    pub fn position(&self, partition: &TopicPartition) -> Result<Option<i64>> {
        let state = self.shared.lock();
        let position = state.reader.position(partition);
        position.ok_or_else(|| not_assigned(partition))
    }

    /// How many records of a partition are still to be read, as far as is known; `None` before
    /// anything was fetched of it.
    pub fn lag(&self, partition: &TopicPartition) -> Result<Option<i64>> {
        let state = self.shared.lock();
        let lag = state.reader.lag(partition);
        lag.ok_or_else(|| not_assigned(partition))
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
            (
                state.reader.member().cloned(),
                state.reader.topic_ids(partitions),
            )
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

pub(super) fn not_assigned(partition: &TopicPartition) -> Error {
    Error::State(format!("{partition} is not assigned to this consumer"))
}

/// An error if there can be no such position.
pub(super) fn check(to: Seek, partition: &TopicPartition) -> Result<()> {
    match to {
        Seek::Offset(..0) => Err(Error::State(format!("{partition} has no negative offsets"))),
        _ => Ok(()),
    }
}
