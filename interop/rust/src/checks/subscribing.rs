//! Consumers as members of groups, in both protocols.

use std::sync::Arc;
use std::time::Duration;

use kohort::admin::RewindTo;
use kohort::consumer::Seek;
use kohort::{Consumer, TopicPartition};

use crate::members::{Book, Member};
use crate::report::Report;
use crate::world::{Checked, LIMIT, QUIET, World, number, one, unique, until, within};
use crate::{ensure, ensure_eq};

pub(crate) const PROTOCOLS: [&str; 2] = ["consumer", "classic"];
const ASSIGNORS: [&str; 4] = ["range", "roundrobin", "sticky", "cooperative-sticky"];

pub(crate) fn check<'a>(world: &'a World, report: &mut Report<'a>) {
    for protocol in ["consumer", "classic", "auto"] {
        let name = format!("group ({protocol}): one member, and where the next one begins");
        report.check(name, resumes(world, protocol));
    }
    for protocol in PROTOCOLS {
        let named = |what: &str| format!("group ({protocol}): {what}");
        let check = by_regex(world, protocol);
        report.check(named("by a regular expression"), check);
        let check = again(world, protocol);
        report.check(named("other topics, none, by hand"), check);
        let check = auto_commit(world, protocol);
        report.check(named("what is committed by itself"), check);
        let check = in_hand(world, protocol);
        report.check(named("seek, pause and lag of a member"), check);
        let check = static_member(world, protocol);
        report.check(named("a static member comes back"), check);
        let check = poll_interval(world, protocol);
        report.check(named("too long without a poll"), check);
    }
    for assignor in ["uniform", "range"] {
        let settings = [
            ("group.protocol", "consumer"),
            ("group.remote.assignor", assignor),
        ];
        let name = format!("group (consumer): members come and go, {assignor}");
        report.check(name, come_and_go(world, settings));
    }
    for assignor in ASSIGNORS {
        let settings = [
            ("group.protocol", "classic"),
            ("partition.assignment.strategy", assignor),
        ];
        let name = format!("group (classic): members come and go, {assignor}");
        report.check(name, come_and_go(world, settings));
    }
}

/// A consumer of a group that reads from the start.
pub(crate) async fn member(
    world: &World,
    group: &str,
    protocol: &str,
    more: &[(&str, &str)],
) -> Checked<Consumer> {
    let mut settings = vec![
        ("group.id", group),
        ("group.protocol", protocol),
        ("auto.offset.reset", "earliest"),
    ];
    settings.extend(more);
    if protocol == "classic" {
        settings.extend([
            ("session.timeout.ms", "6000"),
            ("heartbeat.interval.ms", "500"),
        ]);
    }
    world.consumer(&settings).await
}

/// The next so many values, sorted.
pub(crate) async fn values(consumer: &mut Consumer, count: usize) -> Checked<Vec<u64>> {
    let mut values = Vec::new();
    let reading = async {
        while values.len() < count {
            for record in &consumer.poll().await? {
                values.push(number(record.value)?);
            }
        }
        Checked::Ok(())
    };
    if within("records", LIMIT, reading).await.is_err() {
        return Err(format!("{} of {count} records came", values.len()).into());
    }
    values.sort_unstable();
    Ok(values)
}

async fn resumes(world: &World, protocol: &str) -> Checked {
    let topic = world.topic("resumes", 3).await?;
    world.fill(&topic, 0..1000).await?;
    let group = unique("resumes");
    let mut consumer = member(world, &group, protocol, &[]).await?;
    consumer.subscribe([topic.as_str()])?;
    ensure_eq!(
        values(&mut consumer, 1000).await?,
        Vec::from_iter(0..1000),
        ""
    );
    ensure_eq!(consumer.assignment().len(), 3, "partitions");
    consumer.finish();
    consumer.close().await?;
    world.fill(&topic, 1000..1010).await?;
    let mut consumer = member(world, &group, protocol, &[]).await?;
    consumer.subscribe([topic.as_str()])?;
    let wanted = Vec::from_iter(1000..1010);
    ensure_eq!(values(&mut consumer, 10).await?, wanted, "where to go on");
    Ok(consumer.close().await?)
}

async fn by_regex(world: &World, protocol: &str) -> Checked {
    let prefix = unique("regex");
    let (first, second) = (format!("{prefix}-one"), format!("{prefix}-two"));
    world.create(&first, 2).await?;
    world.create(&format!("not-{prefix}"), 2).await?;
    world.fill(&first, 0..50).await?;
    world.fill(&format!("not-{prefix}"), 500..550).await?;
    let more = [("metadata.max.age.ms", "1000")];
    let mut consumer = member(world, &unique("regex"), protocol, &more).await?;
    consumer.subscribe_regex(format!("{prefix}-.*"))?;
    ensure_eq!(values(&mut consumer, 50).await?, Vec::from_iter(0..50), "");
    // A topic that matches and comes later.
    world.create(&second, 2).await?;
    world.fill(&second, 50..100).await?;
    let wanted = Vec::from_iter(50..100);
    ensure_eq!(values(&mut consumer, 50).await?, wanted, "a new topic");
    ensure_eq!(consumer.assignment().len(), 4, "partitions");
    Ok(consumer.close().await?)
}

async fn again(world: &World, protocol: &str) -> Checked {
    let first = world.topic("first", 2).await?;
    let second = world.topic("second", 2).await?;
    world.fill(&first, 0..20).await?;
    world.fill(&second, 20..40).await?;
    let mut consumer = member(world, &unique("again"), protocol, &[]).await?;
    consumer.subscribe([first.as_str()])?;
    ensure_eq!(
        values(&mut consumer, 20).await?,
        Vec::from_iter(0..20),
        "first"
    );
    consumer.subscribe([second.as_str()])?;
    ensure_eq!(
        values(&mut consumer, 20).await?,
        Vec::from_iter(20..40),
        "second"
    );
    let topics = consumer.assignment().into_iter().map(|name| name.topic);
    ensure!(topics.into_iter().all(|topic| *topic == *second), "topics");
    consumer.subscribe([first.as_str(), second.as_str()])?;
    world.fill(&first, 100..110).await?;
    ensure_eq!(
        values(&mut consumer, 10).await?,
        Vec::from_iter(100..110),
        "both"
    );
    within("leaving", LIMIT, consumer.unsubscribe()).await??;
    ensure!(consumer.assignment().is_empty(), "after unsubscribing");
    consumer.assign([(TopicPartition::new(first, 0), Seek::Earliest)])?;
    values(&mut consumer, 1).await?;
    Ok(consumer.close().await?)
}

async fn auto_commit(world: &World, protocol: &str) -> Checked {
    let topic = world.topic("auto", 1).await?;
    world.fill(&topic, 0..30).await?;
    let group = unique("auto");
    let committed = async || {
        let listed = world.admin.list_group_offsets(&group, None).await?;
        Checked::Ok(if listed.is_empty() {
            None
        } else {
            one(listed)?.1?.map(|committed| committed.offset)
        })
    };
    let more = [
        ("max.poll.records", "10"),
        ("auto.commit.interval.ms", "200"),
    ];
    let mut consumer = member(world, &group, protocol, &more).await?;
    consumer.subscribe([topic.as_str()])?;
    ensure_eq!(values(&mut consumer, 10).await?, Vec::from_iter(0..10), "");
    tokio::time::sleep(Duration::from_millis(600)).await;
    ensure_eq!(committed().await?.unwrap_or(0), 0, "these are in hand");
    values(&mut consumer, 10).await?;
    until("an automatic commit", async || {
        Ok(committed().await? == Some(10))
    })
    .await?;
    // Gone without a word: what is in hand comes again.
    drop(consumer);
    let mut consumer = member(world, &group, protocol, &more).await?;
    consumer.subscribe([topic.as_str()])?;
    ensure_eq!(
        values(&mut consumer, 20).await?,
        Vec::from_iter(10..30),
        "again"
    );
    consumer.finish();
    consumer.close().await?;
    ensure_eq!(committed().await?, Some(30), "after closing");
    Ok(())
}

async fn in_hand(world: &World, protocol: &str) -> Checked {
    let topic = world.topic("in-hand", 1).await?;
    world.fill(&topic, 0..20).await?;
    let partition = TopicPartition::new(topic.as_str(), 0);
    let mut consumer = member(world, &unique("in-hand"), protocol, &[]).await?;
    consumer.subscribe([topic.as_str()])?;
    values(&mut consumer, 20).await?;
    ensure_eq!(consumer.lag(&partition)?, Some(0), "lag");
    consumer.seek(&partition, 15)?;
    ensure_eq!(
        values(&mut consumer, 5).await?,
        Vec::from_iter(15..20),
        "seek"
    );
    consumer.pause(std::slice::from_ref(&partition))?;
    world.fill(&topic, 20..25).await?;
    let polled = consumer.poll_for(Duration::from_millis(700)).await?;
    ensure!(polled.is_empty(), "a paused partition gives records");
    consumer.resume(std::slice::from_ref(&partition))?;
    ensure_eq!(values(&mut consumer, 5).await?, Vec::from_iter(20..25), "");
    // Of the whole group, while it runs: a coordinator that cannot says so, and nothing moves.
    let start = [(partition.clone(), RewindTo::Earliest)];
    match consumer.rewind(&start).await {
        Ok(_) => {
            let all = values(&mut consumer, 25).await?;
            ensure_eq!(all, Vec::from_iter(0..25), "after a rewind");
        }
        Err(error) => {
            let polled = consumer.poll_for(QUIET).await?;
            ensure!(polled.is_empty(), "it moved in spite of {error}");
        }
    }
    Ok(consumer.close().await?)
}

async fn static_member(world: &World, protocol: &str) -> Checked {
    let topic = world.topic("static", 4).await?;
    let group = unique("static");
    let join = async |id: &str| {
        let more = [("group.instance.id", id)];
        let consumer = member(world, &group, protocol, &more).await?;
        consumer.subscribe([topic.as_str()])?;
        Checked::Ok(consumer)
    };
    let (mut first, mut second) = (join("one").await?, join("two").await?);
    let settle = async |first: &mut Consumer, second: &mut Consumer| {
        until("two partitions each", async || {
            first.poll_for(Duration::from_millis(20)).await?;
            second.poll_for(Duration::from_millis(20)).await?;
            Ok(first.assignment().len() == 2 && second.assignment().len() == 2)
        })
        .await
    };
    settle(&mut first, &mut second).await?;
    let had = second.assignment();
    drop(second);
    let mut second = join("two").await?;
    settle(&mut first, &mut second).await?;
    ensure_eq!(second.assignment(), had, "what the static member gets back");
    first.close().await?;
    Ok(second.close().await?)
}

async fn poll_interval(world: &World, protocol: &str) -> Checked {
    let topic = world.topic("slow", 1).await?;
    world.fill(&topic, 0..10).await?;
    let more = [("max.poll.interval.ms", "1500"), ("max.poll.records", "5")];
    let group = unique("slow");
    let mut consumer = member(world, &group, protocol, &more).await?;
    consumer.subscribe([topic.as_str()])?;
    values(&mut consumer, 5).await?;
    // Longer than the interval: the partitions go, and come again with the next poll.
    until("the slow member is out", async || {
        let described = world.admin.describe_group(&group).await?;
        let owns = |member: &kohort::admin::MemberDescription| !member.assignment.is_empty();
        Ok(!described.members.iter().any(owns))
    })
    .await?;
    let again = values(&mut consumer, 10).await?;
    ensure_eq!(again, Vec::from_iter(0..10), "from what was committed");
    Ok(consumer.close().await?)
}

/// Two members, three, one fewer: everything is seen, nothing is committed that was not, and every
/// partition has one owner.
async fn come_and_go(world: &World, settings: [(&'static str, &'static str); 2]) -> Checked {
    const PARTITIONS: usize = 6;
    let topic = world.topic("come-and-go", PARTITIONS as i32).await?;
    world.fill(&topic, 0..600).await?;
    let group = unique("come-and-go");
    let mut settings = settings.to_vec();
    settings.push(("group.id", &group));
    let book = Arc::new(Book::default());
    let mut members = Vec::new();
    let shared = async |members: &[usize]| {
        until("the members share the partitions", async || {
            let shares = book.shares(members, PARTITIONS);
            let even = PARTITIONS / members.len();
            Ok(shares.is_some_and(|shares| shares.iter().all(|share| *share == even)))
        })
        .await
    };
    for number in 0..3 {
        let topics = [topic.as_str()];
        members.push(Member::join(world, number, &book, &topics, &settings).await?);
        if number > 0 {
            shared(&Vec::from_iter(0..=number)).await?;
        }
    }
    world.fill(&topic, 600..900).await?;
    members.remove(0).close().await?;
    shared(&[1, 2]).await?;
    members.remove(0).drop_it().await?;
    shared(&[2]).await?;
    until("everything is seen", async || Ok(book.values() == 900)).await?;
    members.remove(0).close().await?;
    book.faultless()?;
    let ends = world.ends(&topic).await?;
    for (name, committed) in world.admin.list_group_offsets(&group, None).await? {
        let committed = committed?.map(|committed| committed.offset);
        ensure_eq!(committed.as_ref(), ends.get(&name.partition), "{name}");
    }
    Ok(())
}
