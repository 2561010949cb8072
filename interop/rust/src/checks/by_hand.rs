//! A consumer whose partitions are assigned by hand.

use std::time::Duration;

use futures_util::StreamExt;
use kohort::consumer::Seek;
use kohort::{CommittedOffset, Consumer, ErrorCode, OffsetSpec, TopicPartition};

use crate::report::Report;
use crate::world::{Checked, LIMIT, QUIET, World, now_ms, number, one, unique, until, within};
use crate::{ensure, ensure_eq};

pub(crate) fn check<'a>(world: &'a World, report: &mut Report<'a>) {
    report.check("by hand: seek", seek(world));
    report.check("by hand: pause and resume", pause(world));
    report.check("by hand: position and lag", position(world));
    report.check("by hand: commit and committed", commit(world));
    report.check("by hand: where to begin without a commit", reset(world));
    report.check("by hand: out of range", range(world));
    report.check("by hand: a stream", stream(world));
    report.check("by hand: one assignment after the other", assign(world));
}

/// The next so many values.
async fn next(consumer: &mut Consumer, count: usize) -> Checked<Vec<u64>> {
    let mut values = Vec::new();
    let reading = async {
        while values.len() < count {
            for record in &consumer.poll().await? {
                values.push(number(record.value)?);
            }
        }
        Checked::Ok(values)
    };
    within("the next records", LIMIT, reading).await?
}

async fn nothing(consumer: &mut Consumer) -> Checked {
    let polled = consumer.poll_for(QUIET).await?;
    ensure!(polled.is_empty(), "{} records came", polled.len());
    Ok(())
}

/// A topic of one partition with the numbers from 0 to 99.
async fn hundred(world: &World, settings: &[(&str, &str)]) -> Checked<(Consumer, TopicPartition)> {
    let topic = world.topic("hand", 1).await?;
    world.fill(&topic, 0..100).await?;
    let consumer = world.consumer(settings).await?;
    Ok((consumer, TopicPartition::new(topic, 0)))
}

async fn seek(world: &World) -> Checked {
    let (mut consumer, partition) = hundred(world, &[("max.poll.records", "10")]).await?;
    consumer.assign([(partition.clone(), Seek::Offset(30))])?;
    ensure_eq!(
        next(&mut consumer, 10).await?,
        Vec::from_iter(30..40),
        "at 30"
    );
    for (to, first) in [
        (Seek::Earliest, 0),
        (Seek::Offset(77), 77),
        (Seek::Timestamp(world.epoch_ms + 50_500), 51),
        (Seek::Timestamp(0), 0),
        (Seek::from(5), 5),
    ] {
        consumer.seek(&partition, to)?;
        let wanted = Vec::from_iter(first..first + 10);
        ensure_eq!(next(&mut consumer, 10).await?, wanted, "{to:?}");
    }
    for to in [Seek::Latest, Seek::Timestamp(world.epoch_ms + 1_000_000)] {
        consumer.seek(&partition, to)?;
        nothing(&mut consumer).await?;
        ensure_eq!(consumer.position(&partition)?, Some(100), "{to:?}");
    }
    world.fill(&partition.topic, 100..101).await?;
    ensure_eq!(next(&mut consumer, 1).await?, [100], "what came later");
    ensure!(
        consumer.seek(&partition, -1).is_err(),
        "a negative offset was taken"
    );
    let other = TopicPartition::new("other", 0);
    ensure!(consumer.seek(&other, 0).is_err(), "not assigned");
    Ok(())
}

async fn pause(world: &World) -> Checked {
    let topic = world.topic("pause", 2).await?;
    let partitions = world.partitions(&topic).await?;
    let [first, second] = &partitions[..] else {
        return Err("two partitions".into());
    };
    let mut consumer = world.consumer(&[]).await?;
    consumer.assign(partitions.iter().cloned().map(|p| (p, Seek::Earliest)))?;
    consumer.pause(std::slice::from_ref(first))?;
    ensure_eq!(consumer.paused(), partitions[..1], "what is paused");
    world.fill(&topic, 0..200).await?;
    let there = world.ends(&topic).await?[&second.partition] as usize;
    next(&mut consumer, there).await?;
    ensure_eq!(consumer.position(first)?, Some(0), "the paused one");
    nothing(&mut consumer).await?;
    consumer.pause(std::slice::from_ref(second))?;
    consumer.resume(std::slice::from_ref(first))?;
    let rest = next(&mut consumer, 200 - there).await?;
    ensure_eq!(rest.len(), 200 - there, "after resuming");
    ensure!(consumer.pause(&[TopicPartition::new("x", 1)]).is_err(), "");
    Ok(())
}

async fn position(world: &World) -> Checked {
    let (mut consumer, partition) = hundred(world, &[("max.poll.records", "40")]).await?;
    consumer.assign([(partition.clone(), Seek::Earliest)])?;
    ensure_eq!(consumer.lag(&partition)?, None, "lag before anything");
    for (at, lag) in [(40, 60), (80, 20), (100, 0)] {
        next(&mut consumer, 1).await?;
        ensure_eq!(consumer.position(&partition)?, Some(at), "position");
        ensure_eq!(consumer.lag(&partition)?, Some(lag), "lag at {at}");
    }
    let asked = [(
        partition.clone(),
        OffsetSpec::Timestamp(world.epoch_ms + 20_000),
    )];
    let (_, found) = one(consumer.list_offsets(&asked).await)?;
    ensure_eq!(found?, Some(20), "an offset by time");
    let elsewhere = TopicPartition::new("elsewhere", 0);
    ensure!(consumer.position(&elsewhere).is_err(), "not assigned");
    Ok(())
}

async fn commit(world: &World) -> Checked {
    let group = unique("by-hand");
    let settings = [
        ("group.id", group.as_str()),
        ("enable.auto.commit", "false"),
        ("max.poll.records", "10"),
    ];
    let (mut consumer, partition) = hundred(world, &settings).await?;
    let committed = async |consumer: &Consumer| {
        let asked = consumer.committed(std::slice::from_ref(&partition)).await?;
        Checked::Ok(one(asked)?.1?)
    };
    consumer.assign([(partition.clone(), Seek::Earliest)])?;
    ensure_eq!(committed(&consumer).await?, None, "nothing is committed");
    next(&mut consumer, 10).await?;
    consumer.commit().await?;
    let found = committed(&consumer)
        .await?
        .map(|committed| committed.offset);
    ensure_eq!(found, Some(10), "after a commit");
    next(&mut consumer, 10).await?;
    let later = consumer.commit_later();
    within("a commit that is awaited later", LIMIT, later).await??;
    drop(next(&mut consumer, 10).await?);
    drop(consumer.commit_later());
    until("a commit that nobody awaits", async || {
        let found = committed(&consumer).await?;
        Ok(found.is_some_and(|committed| committed.offset == 30))
    })
    .await?;
    let remember = CommittedOffset {
        metadata: "as far as here".into(),
        ..CommittedOffset::new(55)
    };
    consumer
        .commit_offsets(&[(partition.clone(), remember.clone())])
        .await?;
    ensure_eq!(committed(&consumer).await?, Some(remember), "with metadata");
    let listed = world.admin.list_group_offsets(&group, None).await?;
    let (name, listed) = one(listed)?;
    ensure_eq!(name, partition, "the partition");
    ensure_eq!(listed?.map(|listed| listed.offset), Some(55), "an admin");
    consumer.seek(&partition, Seek::Committed)?;
    ensure_eq!(
        next(&mut consumer, 1).await?[0],
        55,
        "where it was committed"
    );
    consumer.close().await?;

    // By themselves: now and then, and at the end what was finished with.
    let settings = [
        ("group.id", group.as_str()),
        ("auto.commit.interval.ms", "200"),
        ("max.poll.records", "10"),
    ];
    let mut consumer = world.consumer(&settings).await?;
    consumer.assign([(partition.clone(), Seek::Committed)])?;
    ensure_eq!(next(&mut consumer, 10).await?[0], 55, "where to go on");
    // 65 to 74 are in hand.
    next(&mut consumer, 10).await?;
    until("an automatic commit", async || {
        let found = committed(&consumer).await?;
        Ok(found.is_some_and(|committed| committed.offset == 65))
    })
    .await?;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let found = committed(&consumer)
        .await?
        .map(|committed| committed.offset);
    ensure_eq!(found, Some(65), "what is in hand is not committed");
    consumer.finish();
    consumer.close().await?;
    let listed = world.admin.list_group_offsets(&group, None).await?;
    let found = one(listed)?.1?.map(|committed| committed.offset);
    ensure_eq!(found, Some(75), "after closing");
    Ok(())
}

async fn reset(world: &World) -> Checked {
    let topic = world.topic("reset", 1).await?;
    let partition = TopicPartition::new(topic.as_str(), 0);
    let producer = world.producer(&[]).await?;
    // Old ones, and one of now.
    for age_s in [7200, 3600, 0] {
        let at = now_ms() - age_s * 1000;
        let value = age_s.to_string();
        let record = kohort::ProducerRecord::new(&topic).value(&value);
        producer.send(record.timestamp(at)).await?.await?;
    }
    for (setting, first) in [
        ("earliest", Some(7200)),
        ("latest", None),
        ("by_duration:PT90M", Some(3600)),
        ("by_duration:PT30M", Some(0)),
    ] {
        let group = unique("reset");
        let settings = [("group.id", &*group), ("auto.offset.reset", setting)];
        let mut consumer = world.consumer(&settings).await?;
        consumer.assign([(partition.clone(), Seek::Committed)])?;
        match first {
            Some(first) => ensure_eq!(next(&mut consumer, 1).await?[0], first, "{setting}"),
            None => {
                until("it is known where to begin", async || {
                    consumer.poll_for(Duration::from_millis(10)).await?;
                    Ok(consumer.position(&partition)? == Some(3))
                })
                .await?;
            }
        }
    }
    let group = unique("reset");
    let settings = [("group.id", &*group), ("auto.offset.reset", "none")];
    let mut consumer = world.consumer(&settings).await?;
    consumer.assign([(partition, Seek::Committed)])?;
    let polled = within("an error", LIMIT, consumer.poll()).await?;
    let error = polled.err().ok_or("nothing says where to begin")?;
    ensure!(!error.is_retriable(), "none: {error}");
    Ok(())
}

async fn range(world: &World) -> Checked {
    for (setting, first) in [("earliest", Some(40)), ("none", None)] {
        let settings = [("auto.offset.reset", setting)];
        let (mut consumer, partition) = hundred(world, &settings).await?;
        let until = [(partition.clone(), 40)];
        one(world.admin.delete_records(&until).await)?.1?;
        for offset in [10, 1000] {
            consumer.assign([(partition.clone(), Seek::Offset(offset))])?;
            consumer.seek(&partition, offset)?;
            match first {
                Some(first) => ensure_eq!(next(&mut consumer, 1).await?[0], first, "{offset}"),
                None => {
                    let polled = within("an error", LIMIT, consumer.poll()).await?;
                    let error = polled.err().ok_or("out of range without an error")?;
                    let code = error.code();
                    ensure_eq!(code, Some(ErrorCode::OFFSET_OUT_OF_RANGE), "{error}");
                }
            }
        }
    }
    Ok(())
}

async fn stream(world: &World) -> Checked {
    let (mut consumer, partition) = hundred(world, &[]).await?;
    consumer.assign([(partition.clone(), Seek::Earliest)])?;
    {
        let mut records = consumer.stream();
        for wanted in 0..30 {
            let record = within("a record", LIMIT, records.next()).await?;
            let record = record.ok_or("the stream ended")??;
            ensure_eq!(number(record.value.as_deref())?, wanted, "the next one");
            let position = records.consumer().position(&partition)?;
            ensure_eq!(position, Some(wanted as i64 + 1), "");
        }
    }
    // What the stream had taken and not given out is not lost.
    ensure_eq!(
        next(&mut consumer, 70).await?,
        Vec::from_iter(30..100),
        "rest"
    );
    Ok(())
}

async fn assign(world: &World) -> Checked {
    let topic = world.topic("assign", 3).await?;
    world.fill(&topic, 0..300).await?;
    let partitions = world.partitions(&topic).await?;
    let mut consumer = world.consumer(&[]).await?;
    ensure!(consumer.poll().await.is_err(), "nothing is assigned");
    let mut seen = Vec::new();
    for partition in &partitions {
        consumer.assign([(partition.clone(), Seek::Earliest)])?;
        ensure_eq!(consumer.assignment().first(), Some(partition), "assigned");
        let end = world.ends(&topic).await?[&partition.partition];
        let read = next(&mut consumer, end as usize).await?;
        ensure_eq!(read.len() as i64, end, "records of {partition}");
        seen.extend(read);
    }
    seen.sort_unstable();
    ensure_eq!(seen, Vec::from_iter(0..300), "all of them");
    consumer.assign([])?;
    ensure!(consumer.subscribe([topic.as_str()]).is_err(), "no group.id");
    Ok(())
}
