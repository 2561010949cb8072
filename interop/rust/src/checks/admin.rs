//! Topics, partitions, configurations, the cluster, offsets by time, deletion of records.

use kohort::admin::{ConfigOperation, ConfigResource, ConfigResourceType, ConfigSource, NewTopic};
use kohort::rpc::Destination;
use kohort::rpc::messages::ListGroupsRequest;
use kohort::{ErrorCode, IsolationLevel, OffsetSpec, TopicPartition};

use crate::report::Report;
use crate::world::{Checked, World, one, refused, unique, until};
use crate::{ensure, ensure_eq};

pub(crate) fn check<'a>(world: &'a World, report: &mut Report<'a>) {
    report.check("admin: topics", topics(world));
    report.check("admin: partitions", partitions(world));
    report.check("admin: configurations", configs(world));
    report.check("admin: the cluster", cluster(world));
    report.check("admin: offsets by time", offsets_by_time(world));
    report.check("admin: records are deleted", delete_records(world));
}

async fn topics(world: &World) -> Checked {
    let admin = &world.admin;
    let name = unique("topics");
    let topic = NewTopic::new(name.as_str(), 3).config("retention.ms", "123456789");
    let tried = admin
        .create_topics(std::slice::from_ref(&topic), true)
        .await?;
    one(tried)?.1?;
    let there = async || {
        let listed = admin.list_topics(false).await?;
        Ok(listed.iter().any(|topic| *topic.name == *name))
    };
    ensure!(!there().await?, "validating has created the topic");

    let created = admin.create_topic(&topic).await?;
    ensure_eq!(created.partitions, Some(3), "partitions of the new topic");
    let replicas = world.nodes as i16;
    ensure_eq!(created.replication_factor, Some(replicas), "replication");
    let again = admin.create_topic(&topic).await;
    refused("creating it again", again, ErrorCode::TOPIC_ALREADY_EXISTS)?;
    until("the new topic is listed", there).await?;
    let (_, described) = one(admin.describe_topics(&[name.as_str().into()]).await?)?;
    let described = described?;
    ensure_eq!(described.id, created.id, "the topic's id");
    for partition in &described.partitions {
        ensure_eq!(partition.replicas.len(), world.nodes, "replicas");
        ensure!(partition.leader.is_some(), "no leader: {partition:?}");
    }

    let bad = NewTopic::new("not/a/name", 1);
    refused(
        "a bad name",
        admin.create_topic(&bad).await,
        ErrorCode::INVALID_TOPIC_EXCEPTION,
    )?;
    let bad = NewTopic::new(unique("bad"), 1).config("retention.ms", "soon");
    refused(
        "a bad setting",
        admin.create_topic(&bad).await,
        ErrorCode::INVALID_CONFIG,
    )?;
    let bad = NewTopic::new(unique("bad"), 1).replication_factor(9);
    refused(
        "too many replicas",
        admin.create_topic(&bad).await,
        ErrorCode::INVALID_REPLICATION_FACTOR,
    )?;

    let broker = admin.describe_cluster().await?.brokers[0].broker.id;
    let placed = NewTopic {
        partitions: -1,
        assignments: vec![vec![broker], vec![broker]],
        ..NewTopic::new(unique("placed"), -1)
    };
    let created = admin.create_topic(&placed).await?;
    ensure_eq!(created.partitions, Some(2), "partitions that were placed");

    let names = [placed.name.clone(), name.as_str().into()];
    for (_, deleted) in admin.delete_topics(&names).await? {
        deleted?;
    }
    until("the topic is gone", async || Ok(!there().await?)).await?;
    let gone = admin.delete_topic(&name).await;
    refused(
        "deleting it again",
        gone,
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
    )
}

async fn partitions(world: &World) -> Checked {
    let topic = world.topic("partitions", 1).await?;
    world.fill(&topic, 0..10).await?;
    world.admin.create_partitions(&topic, 4).await?;
    until("four partitions", async || {
        Ok(world.partitions(&topic).await?.len() == 4)
    })
    .await?;
    let fewer = world.admin.create_partitions(&topic, 2).await;
    refused("fewer partitions", fewer, ErrorCode::INVALID_PARTITIONS)?;
    let unknown = world.admin.create_partitions(&unique("none"), 2).await;
    refused(
        "partitions of no topic",
        unknown,
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
    )
}

async fn configs(world: &World) -> Checked {
    let admin = &world.admin;
    let topic = world.topic("configs", 1).await?;
    let resource = ConfigResource::topic(topic.as_str());
    let entry = async |name: &str| {
        let described = admin.describe_configs(std::slice::from_ref(&resource), true);
        let (_, entries) = one(described.await)?;
        let found = entries?.into_iter().find(|entry| *entry.name == *name);
        let missing = || format!("there is no {name}");
        Checked::Ok(found.ok_or_else(missing)?)
    };
    let set = |value: &str| ConfigOperation::Set(value.into());
    let default = entry("retention.ms").await?;
    ensure!(
        default.source != ConfigSource::Topic && default.documentation.is_some(),
        "a default: {default:?}"
    );
    let change = [("retention.ms".into(), set("54321"))];
    admin.alter_configs(&resource, &change, true).await?;
    ensure_eq!(
        entry("retention.ms").await?.value,
        default.value,
        "after validating"
    );
    let changes = [change[0].clone(), ("cleanup.policy".into(), set("compact"))];
    admin.alter_configs(&resource, &changes, false).await?;
    until("the setting is seen", async || {
        let entry = entry("retention.ms").await?;
        Ok(entry.value.as_deref() == Some("54321") && entry.source == ConfigSource::Topic)
    })
    .await?;
    for (operation, wanted) in [
        (ConfigOperation::Append("delete".into()), "compact,delete"),
        (ConfigOperation::Subtract("compact".into()), "delete"),
    ] {
        let change = [("cleanup.policy".into(), operation)];
        admin.alter_configs(&resource, &change, false).await?;
        until(wanted, async || {
            Ok(entry("cleanup.policy").await?.value.as_deref() == Some(wanted))
        })
        .await?;
    }
    let change = [("retention.ms".into(), ConfigOperation::Delete)];
    admin.alter_configs(&resource, &change, false).await?;
    until("the default again", async || {
        Ok(entry("retention.ms").await?.value == default.value)
    })
    .await?;
    let bad = [("retention.ms".into(), set("soon"))];
    let bad = admin.alter_configs(&resource, &bad, false).await;
    refused("a bad value", bad, ErrorCode::INVALID_CONFIG)?;

    let broker = admin.describe_cluster().await?.brokers[0].broker.id;
    let resource = [ConfigResource::broker(broker)];
    let (_, entries) = one(admin.describe_configs(&resource, false).await)?;
    let entries = entries?;
    let offsets = entries
        .iter()
        .find(|entry| &*entry.name == "offsets.topic.num.partitions");
    ensure_eq!(
        offsets.and_then(|entry| entry.value.as_deref()),
        Some("8"),
        "a setting of the broker"
    );

    let group = ConfigResource::group(unique("group"));
    let change = [("consumer.session.timeout.ms".into(), set("7000"))];
    admin.alter_configs(&group, &change, false).await?;
    until("the group's setting", async || {
        let described = admin.describe_configs(std::slice::from_ref(&group), false);
        let (_, entries) = one(described.await)?;
        Ok(entries?.iter().any(|entry| {
            &*entry.name == "consumer.session.timeout.ms" && entry.value.as_deref() == Some("7000")
        }))
    })
    .await?;
    // Another broker than the one before may answer, and hear of the group later.
    until("the group among the listed", async || {
        let listed = admin.list_config_resources(&[ConfigResourceType::Group]);
        Ok(listed.await?.contains(&group))
    })
    .await
}

async fn cluster(world: &World) -> Checked {
    let described = world.admin.describe_cluster().await?;
    ensure_eq!(described.brokers.len(), world.nodes, "brokers");
    ensure!(
        described.cluster_id.is_some() && described.controller.is_some(),
        "{described:?}"
    );
    // Many requests on one connection, their answers in whatever order they are wanted.
    let cluster = world.admin.cluster();
    let mut answers = Vec::new();
    for broker in &described.brokers {
        let to = Destination::Broker(broker.broker.id);
        for _ in 0..20 {
            answers.push(cluster.send(&to, &ListGroupsRequest::default()).await?);
        }
    }
    while let Some(answer) = answers.pop() {
        ensure_eq!(answer.await?.error_code, ErrorCode::NONE, "listing groups");
    }
    let missing = cluster
        .call(&Destination::Broker(77), &ListGroupsRequest::default())
        .await;
    ensure!(missing.is_err(), "there is a broker 77");
    Ok(())
}

async fn offsets_by_time(world: &World) -> Checked {
    let topic = world.topic("times", 1).await?;
    world.fill(&topic, 0..100).await?;
    let partition = TopicPartition::new(topic.as_str(), 0);
    let start = world.epoch_ms;
    for (spec, wanted) in [
        (OffsetSpec::Earliest, Some(0)),
        (OffsetSpec::Latest, Some(100)),
        (OffsetSpec::Timestamp(start), Some(0)),
        (OffsetSpec::Timestamp(start + 41_500), Some(42)),
        (OffsetSpec::Timestamp(start + 42_000), Some(42)),
        (OffsetSpec::Timestamp(start + 100_000), None),
        (OffsetSpec::MaxTimestamp, Some(99)),
    ] {
        for isolation in [
            IsolationLevel::ReadUncommitted,
            IsolationLevel::ReadCommitted,
        ] {
            let asked = [(partition.clone(), spec)];
            let (_, listed) = one(world.admin.list_offsets(&asked, isolation).await)?;
            ensure_eq!(listed?.offset, wanted, "{spec:?}, {isolation:?}");
        }
    }
    let nowhere = [(TopicPartition::new(topic, 7), OffsetSpec::Latest)];
    let listed = world
        .admin
        .list_offsets(&nowhere, IsolationLevel::ReadUncommitted);
    let (_, listed) = one(listed.await)?;
    ensure!(
        listed.is_err(),
        "a partition that does not exist has an end"
    );
    Ok(())
}

async fn delete_records(world: &World) -> Checked {
    let topic = world.topic("deleted", 1).await?;
    world.fill(&topic, 0..100).await?;
    let partition = TopicPartition::new(topic.as_str(), 0);
    let delete = async |offset| {
        let asked = [(partition.clone(), offset)];
        Checked::Ok(one(world.admin.delete_records(&asked).await)?.1)
    };
    ensure_eq!(delete(40).await??, 40, "the first offset that is left");
    let left = world.read_all(&topic).await?;
    ensure_eq!(left.first(), Some(&(0, 40, 40)), "the first record");
    ensure_eq!(left.len(), 60, "records that are left");
    refused(
        "beyond the end",
        delete(101).await?,
        ErrorCode::OFFSET_OUT_OF_RANGE,
    )?;
    ensure_eq!(delete(-1).await??, 100, "nothing is left");
    Ok(())
}
