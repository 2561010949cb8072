//! Members of a group that commit after every poll, and a book of what they were given.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kohort::consumer::{Rebalance, RebalanceHandler, Records};
use kohort::{CommittedOffset, Consumer, TopicPartition};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::ensure;
use crate::world::{AT_ONCE, Checked, World, number};

const POLL: Duration = Duration::from_millis(100);
const CLOSE: Duration = Duration::from_secs(20);

/// What a group was given and has committed. Faults are noted when they happen.
#[derive(Default)]
pub(crate) struct Book(Mutex<Pages>);

#[derive(Default)]
struct Pages {
    /// By partition and offset: the value, and how often it was delivered.
    delivered: BTreeMap<(TopicPartition, i64), (u64, usize)>,
    /// Up to where everything was delivered.
    front: BTreeMap<TopicPartition, i64>,
    /// The last commit that was acknowledged.
    committed: BTreeMap<TopicPartition, i64>,
    /// Who says that it owns what.
    owned: BTreeMap<TopicPartition, Vec<usize>>,
    assigned: usize,
    revoked: usize,
    lost: usize,
    faults: Vec<String>,
}

impl Book {
    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn deliver(&self, member: usize, records: &Records) {
        let mut pages = self.pages();
        for record in records {
            let name = TopicPartition::new(record.topic.clone(), record.partition);
            let owners = pages.owned.get(&name);
            if !owners.is_some_and(|owners| owners.contains(&member)) {
                let fault = format!("member {member} was given a record of {name}, not its own");
                pages.faults.push(fault);
            }
            match number(record.value) {
                Ok(value) => {
                    let place = (name.clone(), record.offset);
                    let entry = pages.delivered.entry(place).or_insert((value, 0));
                    entry.1 += 1;
                    if entry.0 != value {
                        let fault = format!("{name} has changed at {}", record.offset);
                        pages.faults.push(fault);
                    }
                }
                Err(problem) => pages.faults.push(format!("{name}: {problem}")),
            }
            let mut front = pages.front.get(&name).copied().unwrap_or(0);
            while pages.delivered.contains_key(&(name.clone(), front)) {
                front += 1;
            }
            pages.front.insert(name, front);
        }
    }

    fn commit(&self, offsets: &[(TopicPartition, CommittedOffset)]) {
        let mut pages = self.pages();
        for (name, next) in offsets {
            let front = pages.front.get(name).copied().unwrap_or(0);
            if next.offset > front {
                let fault = format!("{name}: {} committed, seen up to {front}", next.offset);
                pages.faults.push(fault);
            }
            let before = pages.committed.insert(name.clone(), next.offset);
            if before.is_some_and(|before| before > next.offset) {
                let fault = format!("{name}: {} committed after {before:?}", next.offset);
                pages.faults.push(fault);
            }
        }
    }

    fn own(&self, member: usize, partitions: &[TopicPartition]) {
        let mut pages = self.pages();
        pages.assigned += 1;
        for name in partitions {
            pages.owned.entry(name.clone()).or_default().push(member);
        }
    }

    fn let_go(&self, member: usize, partitions: &[TopicPartition], lost: bool) {
        let mut pages = self.pages();
        if lost {
            pages.lost += 1
        } else {
            pages.revoked += 1
        }
        for name in partitions {
            if let Some(owners) = pages.owned.get_mut(name) {
                owners.retain(|owner| *owner != member);
            }
        }
    }

    /// A member is gone without a word.
    fn vanish(&self, member: usize) {
        let mut pages = self.pages();
        for owners in pages.owned.values_mut() {
            owners.retain(|owner| *owner != member);
        }
    }

    /// How many different values were delivered.
    pub(crate) fn values(&self) -> usize {
        let pages = self.pages();
        let mut values: Vec<_> = pages.delivered.values().map(|(value, _)| *value).collect();
        values.sort_unstable();
        values.dedup();
        values.len()
    }

    /// How many deliveries there were beyond the first of each record.
    pub(crate) fn again(&self) -> usize {
        let pages = self.pages();
        let counts = pages.delivered.values().map(|(_, count)| count - 1);
        counts.sum()
    }

    /// How often partitions came, went, and were lost.
    pub(crate) fn changes(&self) -> (usize, usize, usize) {
        let pages = self.pages();
        (pages.assigned, pages.revoked, pages.lost)
    }

    /// How many partitions each of these members owns; `None` while one has two owners, or another
    /// owner than these, or none.
    pub(crate) fn shares(&self, members: &[usize], partitions: usize) -> Option<Vec<usize>> {
        let pages = self.pages();
        let owners: Vec<_> = pages
            .owned
            .values()
            .filter(|owners| !owners.is_empty())
            .map(|owners| match owners[..] {
                [owner] => Some(owner),
                _ => None,
            })
            .collect::<Option<_>>()?;
        let known = owners.iter().all(|owner| members.contains(owner));
        let shares = members
            .iter()
            .map(|member| owners.iter().filter(|owner| *owner == member).count());
        (known && owners.len() == partitions).then(|| shares.collect())
    }

    /// An error if something was not as it must be.
    pub(crate) fn faultless(&self) -> Checked {
        let pages = self.pages();
        ensure!(pages.faults.is_empty(), "{}", pages.faults.join("; "));
        Ok(())
    }
}

/// A member that reads and commits until it is closed.
pub(crate) struct Member {
    stop: oneshot::Sender<bool>,
    task: JoinHandle<Checked>,
}

impl Member {
    /// Joins a group of classic or consumer members under a number, which the book knows it by.
    pub(crate) async fn join(
        world: &World,
        number: usize,
        book: &Arc<Book>,
        topics: &[&str],
        settings: &[(&str, &str)],
    ) -> Checked<Member> {
        let mut all = vec![
            ("auto.offset.reset", "earliest"),
            ("enable.auto.commit", "false"),
            ("max.poll.records", "100"),
            // A dead broker is to be noticed soon.
            ("request.timeout.ms", "5000"),
            ("default.api.timeout.ms", "5000"),
            ("max.poll.interval.ms", "20000"),
        ];
        all.extend(settings);
        if settings.contains(&("group.protocol", "classic")) {
            // With the other protocol the coordinator decides.
            all.extend([
                ("session.timeout.ms", "6000"),
                ("heartbeat.interval.ms", "1000"),
            ]);
        }
        let consumer = world.consumer(&all).await?;
        let progress = Arc::new(Progress {
            number,
            book: book.clone(),
            pending: Mutex::default(),
        });
        consumer.set_rebalance_handler(Handler(progress.clone()))?;
        consumer.subscribe(topics.iter().copied())?;
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(progress.read(consumer, stopped));
        Ok(Member { stop, task })
    }

    /// Leaves the group.
    pub(crate) async fn close(self) -> Checked {
        let _ = self.stop.send(true);
        self.task.await?
    }

    /// Vanishes without a word of its own.
    pub(crate) async fn drop_it(self) -> Checked {
        let _ = self.stop.send(false);
        self.task.await?
    }
}

/// What was given to a member and is not committed: the next offset by partition.
struct Progress {
    number: usize,
    book: Arc<Book>,
    pending: Mutex<BTreeMap<TopicPartition, i64>>,
}

impl Progress {
    async fn read(
        self: Arc<Self>,
        mut consumer: Consumer,
        mut stop: oneshot::Receiver<bool>,
    ) -> Checked {
        loop {
            tokio::select! {
                polled = consumer.poll_for(POLL) => match polled {
                    Ok(records) => self.take(&records),
                    Err(error) => {
                        tracing::info!(member = self.number, %error, "poll");
                        tokio::time::sleep(POLL).await;
                    }
                },
                leave = &mut stop => {
                    if leave.unwrap_or(false) {
                        return Ok(consumer.close_within(CLOSE).await?);
                    }
                    let began = Instant::now();
                    drop(consumer);
                    // Nothing of it is waited for: this is one thread.
                    let took = began.elapsed();
                    self.book.vanish(self.number);
                    ensure!(took < AT_ONCE, "dropping took {took:?}");
                    return Ok(());
                }
            }
            let offsets = self.pending(|_| true);
            if !offsets.is_empty() {
                self.ended(&offsets, consumer.commit_offsets(&offsets).await);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<TopicPartition, i64>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, records: &Records) {
        self.book.deliver(self.number, records);
        let mut pending = self.lock();
        for record in records {
            let name = TopicPartition::new(record.topic.clone(), record.partition);
            pending.insert(name, record.offset + 1);
        }
    }

    fn pending(
        &self,
        wanted: impl Fn(&TopicPartition) -> bool,
    ) -> Vec<(TopicPartition, CommittedOffset)> {
        let pending = self.lock();
        let wanted = pending.iter().filter(|(name, _)| wanted(name));
        wanted
            .map(|(name, &next)| (name.clone(), CommittedOffset::new(next)))
            .collect()
    }

    fn ended(&self, offsets: &[(TopicPartition, CommittedOffset)], result: kohort::Result<()>) {
        match result {
            Ok(()) => {
                self.book.commit(offsets);
                let mut pending = self.lock();
                for (name, done) in offsets {
                    if pending.get(name).is_some_and(|next| *next <= done.offset) {
                        pending.remove(name);
                    }
                }
            }
            Err(error) => tracing::info!(member = self.number, %error, "commit"),
        }
    }

    fn gone(&self, partitions: &[TopicPartition], lost: bool) {
        let mut pending = self.lock();
        pending.retain(|name, _| !partitions.contains(name));
        self.book.let_go(self.number, partitions, lost);
    }
}

struct Handler(Arc<Progress>);

impl RebalanceHandler for Handler {
    async fn assigned(&self, rebalance: &Rebalance) {
        self.0.book.own(self.0.number, rebalance.partitions());
    }

    async fn revoked(&self, rebalance: &Rebalance) {
        let offsets = self.0.pending(|name| rebalance.partitions().contains(name));
        if !offsets.is_empty() {
            let committed = rebalance.commit_offsets(&offsets).await;
            self.0.ended(&offsets, committed);
        }
        self.0.gone(rebalance.partitions(), false);
    }

    async fn lost(&self, rebalance: &Rebalance) {
        self.0.gone(rebalance.partitions(), true);
    }
}
