//! Rewinding groups.

use std::time::Duration;

use super::Admin;
use crate::{
    Result, TopicPartition,
    rewind::{self, LastRewind, RewindStep, RewindTo},
};

impl Admin {
    /// Moves the group's position in these partitions, and returns once that is done. Returns what was
    /// committed before, and what is committed now.
    ///
    /// On `kohort serve` this works while the members run: they release the partitions, and the next
    /// owners start at the new offsets. Commits of the former owners no longer count, and nothing else
    /// in the group stops. It takes as long as the owners need to release the partitions, at most
    /// their rebalance timeouts; this waits up to ten minutes. On other clusters it works for groups
    /// without members.
    ///
    /// All of it happens, or nothing: what cannot be found, or lies outside of the log, is an error
    /// that names the partition. To see first what would happen, or to clamp offsets:
    /// [`plan_rewind`](Admin::plan_rewind) and [`execute_rewind`](Admin::execute_rewind).
    ///
    /// # Errors
    ///
    /// [`Error::State`](crate::Error::State) says what is to be done when the cluster cannot do it.
    /// After a time-out it may happen yet.
    pub async fn rewind_group(
        &self,
        group_id: &str,
        partitions: &[(TopicPartition, RewindTo)],
    ) -> Result<Vec<RewindStep>> {
        let steps = self.plan_rewind(group_id, partitions, false).await?;
        self.execute_rewind(group_id, &steps, rewind::TIMEOUT).await
    }

    /// Finds out where a rewind would go, and changes nothing. With `clamp` offsets outside of the
    /// log become the nearest ones inside.
    pub async fn plan_rewind(
        &self,
        group_id: &str,
        partitions: &[(TopicPartition, RewindTo)],
        clamp: bool,
    ) -> Result<Vec<RewindStep>> {
        rewind::plan(&self.cluster, group_id, partitions, clamp).await
    }

    /// Whether the cluster can rewind the group while its members run, as `kohort serve` can. On other
    /// clusters only a group without members can be rewound. `partitions` are those to rewind.
    pub async fn rewinds_live_groups(
        &self,
        group_id: &str,
        partitions: &[TopicPartition],
    ) -> Result<bool> {
        rewind::is_known(&self.cluster, group_id, partitions).await
    }

    /// Finds out what undoing the group's last rewind would go back to, and changes nothing. Only
    /// `kohort serve` remembers that, for the last rewind of each group.
    pub async fn plan_undo(&self, group_id: &str, clamp: bool) -> Result<Vec<RewindStep>> {
        rewind::plan_undo(&self.cluster, group_id, clamp).await
    }

    /// Does what was planned: see [`rewind_group`](Admin::rewind_group). After `timeout` it is no
    /// longer waited for, and may happen yet.
    pub async fn execute_rewind(
        &self,
        group_id: &str,
        steps: &[RewindStep],
        timeout: Duration,
    ) -> Result<Vec<RewindStep>> {
        rewind::execute(&self.cluster, group_id, steps, timeout).await
    }

    /// Undoes the group's last rewind: it goes on where it was before. That is a rewind as well, and
    /// can be undone.
    pub async fn undo_rewind(&self, group_id: &str) -> Result<Vec<RewindStep>> {
        let steps = self.plan_undo(group_id, false).await?;
        self.execute_rewind(group_id, &steps, rewind::TIMEOUT).await
    }

    /// The rewind of the group that is under way, if there is one: members that own its partitions
    /// have yet to give them up. [`RewindStep::before`] is what is committed now.
    pub async fn pending_rewind(&self, group_id: &str) -> Result<Option<LastRewind>> {
        rewind::pending(&self.cluster, group_id).await
    }

    /// Cancels the pending rewind of the group: committed offsets stay as they are, and the partitions
    /// are assigned again. The client that asked for the rewind gets an error. Returns what would have
    /// been done.
    ///
    /// # Errors
    ///
    /// [`Error::State`](crate::Error::State) if there is none, or it has just happened.
    pub async fn cancel_rewind(&self, group_id: &str) -> Result<Vec<RewindStep>> {
        rewind::cancel(&self.cluster, group_id).await
    }

    /// The group's last rewind, if its coordinator remembers one.
    pub async fn last_rewind(&self, group_id: &str) -> Result<Option<LastRewind>> {
        rewind::last_rewind(&self.cluster, group_id).await
    }
}
