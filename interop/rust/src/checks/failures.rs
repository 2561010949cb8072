//! Brokers that die, fall asleep, are restarted, and leaders that move, under a producer and a
//! group of each protocol.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kohort::rpc::{Destination, Lane};
use kohort::{Admin, ProducerRecord};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::hands::please;
use crate::members::{Book, Member};
use crate::report::Report;
use crate::subscribing::{PROTOCOLS, member, values};
use crate::world::{AT_ONCE, Checked, World, one, unique, until};
use crate::{ensure, ensure_eq};

const PARTITIONS: usize = 6;
const MEMBERS: usize = 3;
/// From one record to the next.
const PAUSE: Duration = Duration::from_millis(4);
/// Longer than sessions and requests may take.
const AWAY: Duration = Duration::from_secs(8);

pub(crate) fn check<'a>(world: &'a World, report: &mut Report<'a>) {
    let name = "failures: kill, sleep and restart of the coordinator, and leaders that move";
    report.check(name, everything(world));
    for protocol in PROTOCOLS {
        let name = format!("failures ({protocol}): closing does not wait for one that sleeps");
        report.check(name, close(world, protocol));
    }
}

/// A producer that writes numbers until it is told to stop.
struct Writing {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Checked<u64>>,
}

impl Writing {
    async fn begin(world: &World, topic: &str) -> Checked<Writing> {
        let settings = [
            ("request.timeout.ms", "5000"),
            ("delivery.timeout.ms", "90000"),
            ("compression.type", "lz4"),
        ];
        let producer = world.producer(&settings).await?;
        ensure!(producer.config().idempotence, "it is not idempotent");
        let (stop, mut stopped) = oneshot::channel();
        let topic = topic.to_owned();
        let task = tokio::spawn(async move {
            let mut ticks = interval(PAUSE);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            let mut deliveries = Vec::new();
            while stopped.try_recv().is_err() {
                ticks.tick().await;
                let text = deliveries.len().to_string();
                let record = ProducerRecord::new(&topic).key(&text).value(&text);
                deliveries.push(producer.send(record).await?);
            }
            let count = deliveries.len() as u64;
            for (number, delivery) in deliveries.into_iter().enumerate() {
                delivery
                    .await
                    .map_err(|error| format!("record {number}: {error}"))?;
            }
            producer.close().await;
            Ok(count)
        });
        Ok(Writing { stop, task })
    }

    /// Stops; how many records there are.
    async fn end(self) -> Checked<u64> {
        let _ = self.stop.send(());
        self.task.await?
    }
}

/// The groups of one scenario.
struct Groups {
    ids: Vec<String>,
    books: Vec<Arc<Book>>,
    members: Vec<Member>,
}

impl Groups {
    /// A group of each protocol, both with the same coordinator.
    async fn begin(world: &World, topic: &str) -> Checked<Groups> {
        let mut groups = Groups {
            ids: Vec::new(),
            books: Vec::new(),
            members: Vec::new(),
        };
        let mut node = None;
        for protocol in PROTOCOLS {
            let id = loop {
                let id = unique(protocol);
                let found = coordinator(&world.admin, &id).await?;
                if *node.get_or_insert(found) == found {
                    break id;
                }
            };
            let book = Arc::<Book>::default();
            let settings = [("group.id", &*id), ("group.protocol", protocol)];
            for number in 0..MEMBERS {
                let member = Member::join(world, number, &book, &[topic], &settings).await?;
                groups.members.push(member);
            }
            groups.ids.push(id);
            groups.books.push(book);
        }
        Ok(groups)
    }

    /// Waits until all members have their share and both groups have seen so many more records.
    async fn go_on(&self, what: &str, records: usize) -> Checked {
        let before: Vec<_> = self.books.iter().map(|book| book.values()).collect();
        let all = Vec::from_iter(0..MEMBERS);
        until(what, async || {
            let mut books = self.books.iter().zip(&before);
            Ok(books.all(|(book, before)| {
                let shares = book.shares(&all, PARTITIONS);
                let even = [PARTITIONS / MEMBERS; MEMBERS];
                shares.is_some_and(|shares| shares == even) && book.values() >= before + records
            }))
        })
        .await
        .map_err(|problem| {
            let seen: Vec<_> = self.books.iter().map(|book| book.values()).collect();
            let all = self.books.iter().map(|book| book.shares(&all, PARTITIONS));
            let shares: Vec<_> = all.collect();
            format!("{problem}; seen {before:?} before, now {seen:?}; shares {shares:?}").into()
        })
    }
}

async fn coordinator(admin: &Admin, group: &str) -> Checked<i32> {
    let to = Destination::Group(group.into());
    // The topic with the offsets may still have to be created.
    let mut retry = admin.cluster().retry("find a coordinator");
    loop {
        match admin.cluster().connection(&to, Lane::Main).await {
            Ok(connection) => return Ok(connection.broker()),
            Err(error) => retry.failed(error).await?,
        }
    }
}

/// Waits until all replicas of a topic are in sync and every partition is led by the replica that
/// is meant to.
async fn whole(world: &World, topic: &str) -> Checked {
    until("all replicas in sync, and their leaders back", async || {
        let described = world.admin.describe_topics(&[topic.into()]).await?;
        let (_, described) = one(described)?;
        Ok(described.is_ok_and(|topic| {
            topic.partitions.iter().all(|partition| {
                partition.in_sync.len() == partition.replicas.len()
                    && partition.leader == partition.replicas.first().copied()
            })
        }))
    })
    .await
}

async fn everything(world: &World) -> Checked {
    let topic = world.topic("failures", PARTITIONS as i32).await?;
    let groups = Groups::begin(world, &topic).await?;
    let writing = Writing::begin(world, &topic).await?;
    groups.go_on("the groups begin", 100).await?;
    let several = world.nodes > 1;

    let node = coordinator(&world.admin, &groups.ids[0]).await?;
    please(format!("kill node {node}")).await?;
    if several {
        groups
            .go_on("the groups go on without a node that was killed", 300)
            .await?;
    } else {
        sleep(AWAY).await;
    }
    please(format!("start node {node}")).await?;
    groups.go_on("the groups go on after a kill", 300).await?;
    whole(world, &topic).await?;

    let node = moved(world, &groups).await?;
    please(format!("suspend node {node}")).await?;
    if several {
        groups
            .go_on("the groups go on without a node that sleeps", 300)
            .await?;
    } else {
        sleep(AWAY).await;
    }
    please(format!("resume node {node}")).await?;
    groups.go_on("the groups go on after a sleep", 300).await?;
    whole(world, &topic).await?;

    // Each in turn: what it leads and coordinates goes to others, and comes back to it.
    for node in 1..=world.nodes {
        please(format!("stop node {node}")).await?;
        please(format!("start node {node}")).await?;
        groups
            .go_on("the groups go on after a restart", 200)
            .await?;
        whole(world, &topic).await?;
    }

    let count = writing.end().await?;
    for (book, id) in groups.books.iter().zip(&groups.ids) {
        let all = async || Ok(book.values() as u64 == count);
        until("every record is seen", all).await?;
        book.faultless()?;
        let (assigned, revoked, lost) = book.changes();
        println!(
            "note {count} records, {} again in {} ({assigned} assigned, {revoked} revoked, {lost} lost)",
            book.again(),
            id.split('-').next().unwrap_or_default(),
        );
    }
    for member in groups.members {
        member.close().await?;
    }
    let ends = world.ends(&topic).await?;
    for id in &groups.ids {
        let committed = world.admin.list_group_offsets(id, None).await?;
        ensure_eq!(committed.len(), ends.len(), "partitions with commits");
        for (name, committed) in committed {
            let committed = committed?.map(|committed| committed.offset);
            ensure_eq!(
                committed.as_ref(),
                ends.get(&name.partition),
                "{id}, {name}"
            );
        }
    }
    exactly_once(world, &topic, count).await
}

/// Where the coordinator of the groups is by now.
async fn moved(world: &World, groups: &Groups) -> Checked<i32> {
    let described = world.admin.describe_group(&groups.ids[0]).await?;
    Ok(described.coordinator)
}

/// Every number from 0 on stands in the log once, and in each partition they grow.
async fn exactly_once(world: &World, topic: &str, count: u64) -> Checked {
    let log = world.read_all(topic).await?;
    for pair in log.windows(2) {
        let [(partition, at, value), (next_partition, _, next)] = pair else {
            continue;
        };
        ensure!(
            partition != next_partition || value < next,
            "{next} stands behind {value} in partition {partition}, at {at}"
        );
    }
    let mut values: Vec<_> = log.into_iter().map(|(_, _, value)| value).collect();
    values.sort_unstable();
    let twice = values.windows(2).find(|pair| pair[0] == pair[1]);
    ensure!(twice.is_none(), "{twice:?} stand in the log");
    ensure_eq!(values.len() as u64, count, "records in the log");
    Ok(())
}

/// A coordinator that does not answer holds nobody up who leaves.
async fn close(world: &World, protocol: &str) -> Checked {
    let topic = world.topic("close", 1).await?;
    world.fill(&topic, 0..10).await?;
    let (closed, dropped) = (unique("closed"), unique("dropped"));
    let mut first = member(world, &closed, protocol, &[]).await?;
    let mut second = member(world, &dropped, protocol, &[]).await?;
    for consumer in [&mut first, &mut second] {
        consumer.subscribe([topic.as_str()])?;
        values(consumer, 10).await?;
    }
    let nodes = 1..=world.nodes;
    for node in nodes.clone() {
        please(format!("suspend node {node}")).await?;
    }
    let began = Instant::now();
    drop(second);
    let took = began.elapsed();
    let result = first.close_within(Duration::from_secs(2)).await;
    let closing = began.elapsed();
    for node in nodes {
        please(format!("resume node {node}")).await?;
    }
    ensure!(took < AT_ONCE, "dropping took {took:?}");
    ensure!(closing < Duration::from_secs(6), "closing took {closing:?}");
    ensure!(result.is_err(), "nobody can have answered");
    // What comes next is not to meet a cluster that still looks for itself.
    until("all nodes are back", async || {
        let cluster = world.admin.describe_cluster().await;
        Ok(cluster.is_ok_and(|cluster| {
            let there = cluster.brokers.iter().filter(|broker| !broker.fenced);
            there.count() == world.nodes
        }))
    })
    .await?;
    whole(world, &topic).await
}
