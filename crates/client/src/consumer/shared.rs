//! What the application's handle and the tasks of a consumer have in common.

use std::{collections::VecDeque, time::Duration};

use parking_lot::{Mutex, MutexGuard};
use rustc_hash::{FxHashMap, FxHashSet};
use tokio::{sync::Notify, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{
    ConsumerConfig, Seek,
    fetched::Reading,
    partition::{Partition, Position},
    reader::{handles::Handles, progress::HandleId},
    records::Records,
};
use crate::{
    ByteString, CommittedOffset, Error, IsolationLevel, Result, TopicPartition, Uuid,
    committed::{Committer, TopicIds},
    measure::Consumed,
    memory::Memory,
    rpc::Cluster,
};

/// Limits of the buffer pool: how many decompression buffers to keep, and the largest worth keeping.
const BATCHES_KEPT_MAX: usize = 16;
const BATCH_BYTES_KEPT_MAX: usize = 512 << 10;

/// What the application's handles and the consumer's tasks share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) config: ConsumerConfig,
    pub(super) cluster: Cluster,
    reading: Reading,
    state: Mutex<State>,
    /// There may be something for the application.
    pub(super) ready: Notify,
    /// There may be something to fetch or to find.
    pub(super) work: Notify,
    /// A handle has finished the records that it held, or is gone.
    pub(super) released: Notify,
    /// The application asks for records again, after it was away for too long.
    pub(super) away_no_more: Notify,
    pub(super) closed: CancellationToken,
    /// Held by the handle that polls: one takes records at a time.
    pub(super) turn: tokio::sync::Mutex<()>,
    /// In which the consumer's tasks run.
    pub(super) span: tracing::Span,
}

#[derive(Debug)]
pub(super) struct State {
    /// Empty if there is none.
    group_id: ByteString,
    pub(super) partitions: FxHashMap<TopicPartition, Partition>,
    /// Partitions with fetched records, in the order of their turns.
    turns: VecDeque<TopicPartition>,
    pub(super) fetched_bytes: usize,
    errors: VecDeque<Error>,
    next_lease: u64,
    pub(super) handles: Handles,
    /// The ids of topics that have been deleted and created again since.
    retired: FxHashMap<ByteString, FxHashSet<Uuid>>,
    /// How many handles wait for records.
    pub(super) polling: usize,
    /// When a handle last stopped waiting for records.
    pub(super) polled: Instant,
    /// Set once no handle has polled for longer than `max.poll.interval.ms`.
    pub(super) away: bool,
    /// Finished offsets of partitions that are no longer assigned by hand, to be committed.
    pub(super) departed: Vec<(TopicPartition, CommittedOffset)>,
    /// Why the last automatic commit of revoked partitions failed.
    pub(super) commit_failure: Option<Error>,
    /// Whether the group decides what is read.
    pub(super) subscribed: bool,
    /// The member that commits: this consumer's current membership.
    pub(super) committer: Option<Committer>,
    /// Why the member gave up; until the application subscribes again.
    pub(super) broken: Option<Error>,
    /// Why a task of the consumer ended; for good.
    pub(super) stopped: Option<Error>,
    /// When a final error was last returned.
    final_error_at: Option<Instant>,
    /// When a refusal that may pass was last reported.
    refused_at: Option<Instant>,
}

/// An error after which nothing more can come.
pub(super) enum FinalError {
    /// To be returned now.
    Now(Error),
    /// It has been returned: again at this time.
    At(Instant),
}

/// How long a poll waits before it returns a final error again.
const FINAL_ERROR_INTERVAL: Duration = Duration::from_secs(1);

/// How often a refusal that may pass is reported while it lasts.
const REFUSAL_INTERVAL: Duration = Duration::from_secs(60);

impl Shared {
    pub(super) fn new(config: ConsumerConfig, cluster: Cluster) -> Shared {
        Shared {
            reading: Reading {
                check_crcs: config.check_crcs,
                decompressed_bytes_max: config.decompressed_bytes_max,
                memory: Memory::new(BATCHES_KEPT_MAX, BATCH_BYTES_KEPT_MAX),
            },
            cluster,
            state: Mutex::new(State {
                group_id: config.group_id.clone().unwrap_or_default(),
                partitions: FxHashMap::default(),
                turns: VecDeque::new(),
                fetched_bytes: 0,
                errors: VecDeque::new(),
                next_lease: 0,
                handles: Handles::default(),
                retired: FxHashMap::default(),
                polling: 0,
                polled: Instant::now(),
                away: false,
                departed: Vec::new(),
                commit_failure: None,
                subscribed: false,
                committer: None,
                broken: None,
                stopped: None,
                final_error_at: None,
                refused_at: None,
            }),
            ready: Notify::new(),
            work: Notify::new(),
            released: Notify::new(),
            away_no_more: Notify::new(),
            closed: CancellationToken::new(),
            turn: tokio::sync::Mutex::default(),
            span: tracing::info_span!(
                parent: None,
                "consumer",
                client_id = config.client.client_id,
                group_id = config.group_id.as_deref()
            ),
            config,
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    pub(super) fn committed_only(&self) -> bool {
        self.config.isolation_level == IsolationLevel::ReadCommitted
    }

    /// Whether what is finished is committed without being asked for.
    pub(super) fn commits_automatically(&self) -> bool {
        self.config.auto_commit && self.config.group_id.is_some()
    }

    /// The offsets of these partitions cannot be committed any more.
    pub(super) fn not_committed(&self, mut partitions: Vec<TopicPartition>) -> Error {
        partitions.sort();
        partitions.dedup();
        Error::NotCommitted {
            group: self.config.group_id.clone().unwrap_or_default(),
            partitions,
        }
    }

    /// Tells the application of an error at its next poll.
    pub(super) fn report(&self, error: Error) {
        self.lock().report(error);
        self.ready.notify_waiters();
    }

    /// Reports a failure that is a refusal, and not an outage: now and then while it lasts.
    pub(super) fn report_refusal(&self, error: &Error) {
        let refusal = error.refusal().or((!error.is_retriable()).then_some(error));
        let Some(refusal) = refusal else { return };
        let mut state = self.lock();
        let now = Instant::now();
        if state
            .refused_at
            .is_none_or(|at| at + REFUSAL_INTERVAL <= now)
        {
            state.refused_at = Some(now);
            state.report(refusal.clone());
            drop(state);
            self.ready.notify_waiters();
        }
    }

    /// A request was answered: the next refusal is another one.
    pub(super) fn answered(&self) {
        self.lock().refused_at = None;
    }

    /// A task of the consumer has ended: nothing works any more.
    pub(super) fn stop(&self, error: Error) {
        self.lock().stopped.get_or_insert(error);
        self.ready.notify_waiters();
        self.released.notify_waiters();
    }

    /// At most `most` records from what has been fetched. `None` if there is nothing.
    ///
    /// They are delivered to `handle` at once. Without a handle, the caller delivers them one by
    /// one ([`State::deliver_one`]).
    ///
    /// Batches are taken apart outside of the lock: only one call at a time, please.
    pub(super) fn take(&self, most: usize, handle: HandleId) -> Result<Option<Records>> {
        let mut records = Records::default();
        loop {
            let mut state = self.lock();
            if records.count == 0
                && let Some(error) = state.errors.pop_front()
            {
                return Err(error);
            }
            let Some((name, lease, mut fetched)) = state.next_fetched() else {
                break;
            };
            drop(state);
            let first = records.chunks.len();
            let mut failed = None;
            let emptied = loop {
                if records.count >= most {
                    break false;
                }
                match fetched.next(most - records.count, &self.reading) {
                    Ok(Some(chunk)) => {
                        records.count += chunk.count;
                        records.chunks.push((name.clone(), chunk));
                    }
                    Ok(None) => break true,
                    Err(error) => {
                        failed = Some(error);
                        break true;
                    }
                }
            };
            let position = Position {
                offset: fetched.next,
                leader_epoch: (fetched.leader_epoch >= 0).then_some(fetched.leader_epoch),
            };
            if let Some((_, last)) = records.chunks[first..].last_mut() {
                // What follows it and holds no records is passed over with it.
                last.next = position.offset;
            }
            let mut state = self.lock();
            let size = fetched.size;
            let back = (!emptied).then_some(fetched);
            let wanted = records.chunks.len() > first;
            if !state.taken(&name, lease, back, size) {
                // It was taken away, or the application went elsewhere, in the meantime.
                let dropped: usize = records.chunks.drain(first..).map(|(_, c)| c.count).sum();
                records.count -= dropped;
                continue;
            }
            match wanted {
                true => state.deliver(&name, handle, position),
                // What holds no records for the application is passed over at once.
                false => state.skip_to(&name, position),
            }
            if let Some(partition) = state.partitions.get(&name).filter(|_| wanted) {
                let count = records.chunks[first..].iter().map(|(_, c)| c.count).sum();
                partition.measures.polled(count);
                partition.measures.lag(partition.lag(self.committed_only()));
            }
            if let Some(problem) = failed {
                state.stick(&name, lease);
                state.report(Error::Records {
                    partition: name,
                    offset: position.offset,
                    problem: problem.to_string(),
                });
            }
            drop(state);
            if emptied {
                self.work.notify_one();
            }
            if records.count >= most {
                break;
            }
        }
        Ok((records.count > 0).then_some(records))
    }

    /// A handle has finished the records that it holds.
    pub(super) fn finish(&self, handle: HandleId) {
        if self.lock().finish(handle) {
            self.released.notify_waiters();
        }
    }
}

impl State {
    /// The error after which nothing more can come, if there is one.
    pub(super) fn final_error(&mut self, now: Instant) -> Option<FinalError> {
        let idle = self.partitions.is_empty() && !self.subscribed;
        let error = match self.stopped.as_ref().or(self.broken.as_ref()) {
            Some(error) => error.clone(),
            None if idle => {
                let problem = "nothing to read: subscribe or assign partitions first";
                Error::State(problem.to_owned())
            }
            None => return None,
        };
        let again = self.final_error_at.map(|at| at + FINAL_ERROR_INTERVAL);
        Some(match again.filter(|again| *again > now) {
            Some(again) => FinalError::At(again),
            None => {
                self.final_error_at = Some(now);
                FinalError::Now(error)
            }
        })
    }

    pub(super) fn lease(&mut self) -> u64 {
        self.next_lease += 1;
        self.next_lease
    }

    pub(super) fn report(&mut self, error: Error) {
        // An application that does not poll for a long time does not need all of them.
        if self.errors.len() < 100 {
            self.errors.push_back(error);
        }
    }

    /// Adds a partition, or sends it elsewhere if it is there.
    pub(super) fn assign(&mut self, name: TopicPartition, start: Seek) {
        let lease = self.lease();
        let measures = Consumed::new(&self.group_id, &name);
        let partition = Partition::new(lease, start, measures);
        if let Some(old) = self.partitions.insert(name, partition) {
            self.fetched_bytes -= old.fetched_bytes;
        }
    }

    /// A partition was assigned under a topic's id, by the coordinator.
    pub(super) fn assigned_by_id(&mut self, name: &TopicPartition, topic_id: Uuid) {
        let is_replacement = self.retired.contains_key(&name.topic);
        if let Some(partition) = self.partitions.get_mut(name) {
            partition.topic_id = Some(topic_id);
            partition.is_assigned_by_id = true;
            partition.is_replacement = is_replacement;
        }
    }

    /// The ids of the topics of these partitions, as far as they are known.
    pub(super) fn topic_ids<'a>(
        &self,
        partitions: impl IntoIterator<Item = &'a TopicPartition>,
    ) -> TopicIds {
        let ids = partitions.into_iter().filter_map(|name| {
            let id = self.partitions.get(name)?.topic_id?;
            Some((name.topic.clone(), id))
        });
        ids.collect()
    }

    /// Compares the ids of topics with those that brokers know. Where a topic was deleted and created
    /// again, nothing of the old one counts any more: reading starts again in the new one, unless the
    /// coordinator is about to assign it.
    pub(super) fn note_topic_ids(&mut self, id_of: impl Fn(&ByteString) -> Option<Uuid>) {
        let mut replaced = Vec::new();
        for (name, partition) in &mut self.partitions {
            let Some(id) = id_of(&name.topic).filter(|id| !id.is_zero()) else {
                continue;
            };
            let retired = self.retired.get(&name.topic);
            if partition.topic_id == Some(id) || retired.is_some_and(|ids| ids.contains(&id)) {
                continue;
            }
            match partition.topic_id {
                None => partition.topic_id = Some(id),
                Some(old) => replaced.push((name.clone(), old, id)),
            }
        }
        for (name, old, id) in replaced {
            let by_id = |partition: &Partition| partition.is_assigned_by_id;
            self.retired
                .entry(name.topic.clone())
                .or_default()
                .insert(old);
            if self.partitions.get(&name).is_some_and(by_id) {
                continue;
            }
            tracing::warn!(partition = %name, "the topic was deleted and created again");
            let Some(before) = self.unassign(&name) else {
                continue;
            };
            let start = match self.group_id.is_empty() {
                true => Seek::Earliest,
                false => Seek::Committed,
            };
            self.assign(name.clone(), start);
            if let Some(partition) = self.partitions.get_mut(&name) {
                partition.topic_id = Some(id);
                partition.is_replacement = true;
                partition.paused = before.paused;
                partition.held = before.held;
            }
        }
    }

    /// Takes a partition away, with all that was fetched of it.
    pub(super) fn unassign(&mut self, name: &TopicPartition) -> Option<Partition> {
        let partition = self.partitions.remove(name)?;
        self.fetched_bytes -= partition.fetched_bytes;
        // A commit that is under way reports by itself what becomes of it.
        let uncommitted = partition.progress.has_uncommitted() && !partition.commits.is_under_way();
        self.handles
            .note_lost(name, &partition.progress, uncommitted);
        Some(partition)
    }

    /// Gives nothing more of a partition to the application.
    pub(super) fn hold(&mut self, name: &TopicPartition) {
        if let Some(partition) = self.partitions.get_mut(name) {
            partition.held = true;
            partition.fetched.clear();
            self.fetched_bytes -= std::mem::take(&mut partition.fetched_bytes);
            // Answers that are still to come do not count.
            self.next_lease += 1;
            partition.lease = self.next_lease;
        }
    }

    /// It has been found where reading begins in a partition, or goes on. Returns the partition if
    /// it is still the same.
    pub(super) fn found(
        &mut self,
        name: &TopicPartition,
        lease: u64,
        position: Position,
    ) -> Option<&mut Partition> {
        let new_lease = self.lease();
        let partition = self.partitions.get_mut(name)?;
        if partition.lease != lease {
            return None;
        }
        self.fetched_bytes -= partition.found(new_lease, position);
        Some(partition)
    }

    /// Throws away what was fetched of paused partitions, if the application could be given
    /// nothing else: it must not keep the room that the other partitions need. Returns whether
    /// there was anything.
    pub(super) fn make_room(&mut self) -> bool {
        if self.partitions.values().any(Partition::is_deliverable) {
            return false;
        }
        let before = self.fetched_bytes;
        for partition in self.partitions.values_mut() {
            if partition.paused && partition.fetched_bytes > 0 {
                self.next_lease += 1;
                self.fetched_bytes -= partition.throw_away(self.next_lease);
            }
        }
        self.fetched_bytes < before
    }

    /// Goes elsewhere in a partition.
    pub(super) fn seek(&mut self, name: &TopicPartition, to: Seek) -> bool {
        let lease = self.lease();
        let Some(partition) = self.partitions.get_mut(name) else {
            return false;
        };
        let freed = partition.seek(lease, to);
        self.fetched_bytes -= freed;
        true
    }

    /// Something has been fetched; it is the partition's turn when those before have had theirs.
    pub(super) fn add_turn(&mut self, name: &TopicPartition) {
        let partition = self.partitions.get_mut(name);
        if partition.is_some_and(|partition| !std::mem::replace(&mut partition.has_turn, true)) {
            self.turns.push_back(name.clone());
        }
    }

    fn next_fetched(&mut self) -> Option<(TopicPartition, u64, super::fetched::Fetched)> {
        for _ in 0..self.turns.len() {
            let name = self.turns.pop_front()?;
            let Some(partition) = self.partitions.get_mut(&name) else {
                continue;
            };
            partition.has_turn = false;
            if partition.is_deliverable() {
                let fetched = partition.fetched.pop_front()?;
                let lease = partition.lease;
                return Some((name, lease, fetched));
            }
            // Paused: its turn comes when it is resumed.
        }
        None
    }

    /// The application gets what was taken apart; `back` is what is left of it. Returns whether
    /// the partition is still the same.
    fn taken(
        &mut self,
        name: &TopicPartition,
        lease: u64,
        back: Option<super::fetched::Fetched>,
        size: usize,
    ) -> bool {
        let partition = self.partitions.get_mut(name);
        let Some(partition) = partition.filter(|partition| partition.lease == lease) else {
            return false;
        };
        match back {
            Some(fetched) => partition.fetched.push_front(fetched),
            None => {
                partition.fetched_bytes -= size;
                self.fetched_bytes -= size;
            }
        }
        if !partition.fetched.is_empty() {
            self.add_turn(name);
        }
        true
    }

    /// No more is read from a partition until the application says where.
    fn stick(&mut self, name: &TopicPartition, lease: u64) {
        let partition = self.partitions.get_mut(name);
        if let Some(partition) = partition.filter(|partition| partition.lease == lease) {
            partition.fetching = super::partition::Fetching::Stuck;
            self.fetched_bytes -= std::mem::take(&mut partition.fetched_bytes);
            partition.fetched.clear();
        }
    }

    /// Whether a handle holds records of one of `partitions`.
    pub(super) fn is_held(&self, partitions: &[TopicPartition]) -> bool {
        let mut partitions = partitions
            .iter()
            .filter_map(|name| self.partitions.get(name));
        partitions.any(|partition| partition.progress.is_held())
    }

    /// A handle is given the records before `end`.
    fn deliver(&mut self, name: &TopicPartition, handle: HandleId, end: Position) {
        if let Some(partition) = self.partitions.get_mut(name) {
            partition.progress.deliver(handle, end);
            self.handles.hold(handle, name);
        }
    }

    fn skip_to(&mut self, name: &TopicPartition, position: Position) {
        if let Some(partition) = self.partitions.get_mut(name) {
            partition.progress.skip_to(position);
        }
    }

    /// A handle has finished the records that it holds. Returns whether it held any.
    pub(super) fn finish(&mut self, handle: HandleId) -> bool {
        let mut held = false;
        for name in self.handles.release(handle) {
            if let Some(partition) = self.partitions.get_mut(&name) {
                held |= partition.progress.finish(handle);
            }
        }
        held
    }

    /// A handle is gone; what it holds stays unfinished. Returns whether it held any records.
    pub(super) fn remove_handle(&mut self, handle: HandleId) -> bool {
        let mut held = false;
        for name in self.handles.remove(handle) {
            if let Some(partition) = self.partitions.get_mut(&name) {
                held |= partition.progress.abandon(handle);
            }
        }
        held
    }

    /// Keeps finished offsets of partitions that are no longer assigned, to be committed later.
    pub(super) fn return_departed(&mut self, departed: Vec<(TopicPartition, CommittedOffset)>) {
        for (name, offset) in departed {
            let is_newer = |(other, _): &(TopicPartition, _)| *other == name;
            if !self.partitions.contains_key(&name) && !self.departed.iter().any(is_newer) {
                self.departed.push((name, offset));
            }
        }
    }

    /// What is finished and not committed yet, in all partitions or in some.
    pub(super) fn to_commit(
        &self,
        of: Option<&[TopicPartition]>,
    ) -> Vec<(TopicPartition, CommittedOffset)> {
        let wanted = |name: &TopicPartition| of.is_none_or(|of| of.contains(name));
        let partitions = self.partitions.iter().filter(|(name, _)| wanted(name));
        let offsets = partitions.filter_map(|(name, partition)| {
            let offset = partition.to_commit()?;
            Some((name.clone(), offset))
        });
        offsets.collect()
    }
}

#[cfg(test)]
mod tests {
    use kohort_wire::records::{BatchBuilder, Compression};

    use super::*;
    use crate::consumer::fetched::Fetched;

    fn batch(base_offset: i64, count: usize, control: bool) -> Vec<u8> {
        let mut builder = BatchBuilder::new(Compression::None, None);
        builder.set_base_offset(base_offset);
        builder.set_control(control);
        for _ in 0..count {
            // The marker that a transaction was committed.
            let key = [0, 0, 0, 1];
            builder.append(0, Some(&key), Some(&[0; 6]), []).unwrap();
        }
        builder.build().to_vec()
    }

    #[tokio::test]
    async fn who_reads_one_record_after_the_other_passes_over_what_holds_none_too() {
        let config = ConsumerConfig::new("a:1");
        let cluster = Cluster::new(config.client.clone()).unwrap();
        let shared = Shared::new(config, cluster);
        let name = TopicPartition::new("t", 0);
        let bytes = [batch(0, 2, false), batch(2, 1, true)].concat();
        {
            let mut state = shared.lock();
            state.assign(name.clone(), Seek::Offset(0));
            state.fetched_bytes += bytes.len();
            if let Some(partition) = state.partitions.get_mut(&name) {
                partition.fetched_bytes += bytes.len();
                let fetched = Fetched::new(bytes.into(), None, 0);
                partition.fetched.push_back(fetched);
            }
            state.add_turn(&name);
        }
        let records = shared.take(10, 1).unwrap().unwrap();
        assert_eq!(records.count, 2);
        // Where it is when it has been given both.
        assert_eq!(records.chunks.last().unwrap().1.next, 3);
        assert_eq!(shared.lock().fetched_bytes, 0);
    }
}
