//! Groups as an administrator sees and changes them.

use std::time::Duration;

use kohort::admin::{GroupFilter, GroupState, GroupType, MemberProtocol, MemberToRemove};
use kohort::{CommittedOffset, Consumer, ErrorCode, TopicPartition};

use crate::report::Report;
use crate::subscribing::{PROTOCOLS, member, values};
use crate::world::{Checked, World, one, refused, unique, until};
use crate::{ensure, ensure_eq};

pub(crate) fn check<'a>(world: &'a World, report: &mut Report<'a>) {
    for protocol in PROTOCOLS {
        let named = |what: &str| format!("admin ({protocol}): {what}");
        let check = described(world, protocol);
        report.check(named("groups are listed and described"), check);
        let check = offsets(world, protocol);
        report.check(named("offsets are listed, altered, deleted"), check);
    }
    report.check("admin (classic): members are removed", removed(world));
}

fn of_protocol(protocol: &str) -> (GroupType, MemberProtocol) {
    match protocol {
        "classic" => (GroupType::Classic, MemberProtocol::Classic),
        _ => (GroupType::Consumer, MemberProtocol::Consumer),
    }
}

/// A member that has settled and holds all partitions.
async fn settled(world: &World, group: &str, protocol: &str, topic: &str) -> Checked<Consumer> {
    let more = [("client.id", "the-client"), ("enable.auto.commit", "false")];
    let mut consumer = member(world, group, protocol, &more).await?;
    consumer.subscribe([topic])?;
    until("a stable group", async || {
        consumer.poll_for(Duration::from_millis(20)).await?;
        let described = world.admin.describe_group(group).await;
        Ok(described.is_ok_and(|group| {
            group.state == GroupState::Stable && !group.members[0].assignment.is_empty()
        }))
    })
    .await?;
    Ok(consumer)
}

async fn described(world: &World, protocol: &str) -> Checked {
    let admin = &world.admin;
    let topic = world.topic("described", 3).await?;
    let partitions = world.partitions(&topic).await?;
    let group = unique("described");
    let unknown = admin.describe_group(&group).await;
    refused("no such group", unknown, ErrorCode::GROUP_ID_NOT_FOUND)?;
    let mut consumer = settled(world, &group, protocol, &topic).await?;
    let (group_type, member_protocol) = of_protocol(protocol);
    let described = admin.describe_group(&group).await?;
    ensure_eq!(described.group_type, group_type, "type");
    ensure_eq!(described.members.len(), 1, "members");
    let member = &described.members[0];
    ensure_eq!(member.protocol, member_protocol, "the member's protocol");
    ensure_eq!(&*member.client_id, "the-client", "client id");
    ensure!(!member.member_id.is_empty(), "no member id");
    ensure!(member.client_host.contains("127.0.0.1"), "{member:?}");
    let mut assigned = member.assignment.clone();
    assigned.sort();
    ensure_eq!(assigned, partitions, "assignment");
    match protocol {
        "consumer" => {
            ensure_eq!(member.subscribed_topics, [topic.as_str()], "topics");
            ensure!(described.group_epoch >= Some(1), "{described:?}");
            ensure!(member.epoch >= Some(1), "{described:?}");
            let mut target = member.target_assignment.clone().unwrap_or_default();
            target.sort();
            ensure_eq!(target, partitions, "target assignment");
        }
        _ => ensure_eq!(&*described.assignor, "range", "the assignor"),
    }

    let listed = async |states: &[GroupState], types: &[GroupType]| {
        let filter = GroupFilter {
            states: states.to_vec(),
            types: types.to_vec(),
        };
        let listed = admin.list_groups(&filter).await?;
        Checked::Ok(listed.into_iter().find(|listed| *listed.group_id == *group))
    };
    let found = listed(&[], &[]).await?.ok_or("the group is not listed")?;
    ensure_eq!(found.group_type, group_type, "listed type");
    ensure_eq!(found.state, GroupState::Stable, "listed state");
    ensure_eq!(&*found.protocol_type, "consumer", "listed protocol type");
    let other = match group_type {
        GroupType::Classic => GroupType::Consumer,
        _ => GroupType::Classic,
    };
    let stable = [GroupState::Stable];
    let group_types = std::slice::from_ref(&group_type);
    ensure!(listed(&stable, group_types).await?.is_some(), "stable ones");
    ensure!(
        listed(&[GroupState::Empty], &[]).await?.is_none(),
        "empty ones"
    );
    ensure!(listed(&[], &[other]).await?.is_none(), "the other type");

    refused(
        "deleting a group with members",
        admin.delete_group(&group).await,
        ErrorCode::NON_EMPTY_GROUP,
    )?;
    world.fill(&topic, 0..10).await?;
    values(&mut consumer, 10).await?;
    consumer.commit().await?;
    consumer.close().await?;
    until("the group is empty", async || {
        let described = admin.describe_group(&group).await?;
        Ok(described.state == GroupState::Empty && described.members.is_empty())
    })
    .await?;
    ensure!(listed(&[GroupState::Empty], &[]).await?.is_some(), "empty");
    admin.delete_group(&group).await?;
    ensure!(listed(&[], &[]).await?.is_none(), "it was deleted");
    let none = admin.list_group_offsets(&group, None).await?;
    ensure!(none.is_empty(), "offsets of a deleted group: {none:?}");
    refused(
        "deleting it again",
        admin.delete_group(&group).await,
        ErrorCode::GROUP_ID_NOT_FOUND,
    )
}

async fn offsets(world: &World, protocol: &str) -> Checked {
    let admin = &world.admin;
    let topic = world.topic("offsets", 2).await?;
    let other = world.topic("other", 1).await?;
    let partitions = world.partitions(&topic).await?;
    let group = unique("offsets");
    let mut consumer = settled(world, &group, protocol, &topic).await?;
    world.fill(&topic, 0..100).await?;
    values(&mut consumer, 100).await?;
    consumer.commit().await?;

    // With members in it a group's offsets are theirs.
    let back = CommittedOffset {
        metadata: "set back".into(),
        ..CommittedOffset::new(3)
    };
    let wanted: Vec<_> = partitions
        .iter()
        .map(|partition| (partition.clone(), back.clone()))
        .collect();
    for (_, altered) in admin.alter_group_offsets(&group, &wanted).await? {
        ensure!(altered.is_err(), "altered while there are members");
    }
    let deleted = admin.delete_group_offsets(&group, &partitions).await?;
    for (_, deleted) in deleted {
        refused(
            "deleting while it is subscribed",
            deleted,
            ErrorCode::GROUP_SUBSCRIBED_TO_TOPIC,
        )?;
    }
    consumer.close().await?;

    for (_, altered) in admin.alter_group_offsets(&group, &wanted).await? {
        altered?;
    }
    let elsewhere = [(
        TopicPartition::new(other.as_str(), 0),
        CommittedOffset::new(7),
    )];
    one(admin.alter_group_offsets(&group, &elsewhere).await?)?.1?;
    let nowhere = [(
        TopicPartition::new(topic.as_str(), 9),
        CommittedOffset::new(7),
    )];
    refused(
        "a partition that does not exist",
        one(admin.alter_group_offsets(&group, &nowhere).await?)?.1,
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
    )?;
    let listed = admin.list_group_offsets(&group, None).await?;
    ensure_eq!(listed.len(), 3, "partitions with offsets");
    for (name, listed) in admin.list_group_offsets(&group, Some(&partitions)).await? {
        ensure_eq!(listed?, Some(back.clone()), "{name}");
    }
    let mut consumer = member(world, &group, protocol, &[]).await?;
    consumer.subscribe([topic.as_str()])?;
    let again = values(&mut consumer, 94).await?;
    ensure_eq!(again.len(), 94, "records after they were set back");
    consumer.close().await?;

    for (_, deleted) in admin.delete_group_offsets(&group, &partitions).await? {
        deleted?;
    }
    let listed = admin.list_group_offsets(&group, None).await?;
    let (name, left) = one(listed)?;
    ensure_eq!(
        (&*name.topic, left?.map(|left| left.offset)),
        (&*other, Some(7)),
        "left"
    );

    // A group that never had members.
    let made = unique("made");
    one(admin.alter_group_offsets(&made, &elsewhere).await?)?.1?;
    let listed = one(admin.list_group_offsets(&made, None).await?)?.1?;
    ensure_eq!(listed.map(|listed| listed.offset), Some(7), "a made group");
    for (_, deleted) in admin
        .delete_groups(&[made.into(), group.as_str().into()])
        .await
    {
        deleted?;
    }
    Ok(())
}

async fn removed(world: &World) -> Checked {
    let admin = &world.admin;
    let topic = world.topic("removed", 1).await?;
    let group = unique("removed");
    let mut consumer = settled(world, &group, "classic", &topic).await?;
    let id = async || {
        let described = admin.describe_group(&group).await?;
        let ids = described.members.into_iter().map(|member| member.member_id);
        Checked::Ok(ids.collect::<Vec<_>>())
    };
    let first = one(id().await?)?;
    admin
        .remove_member(&group, MemberToRemove::Id(first.clone()))
        .await?;
    // The member notices, and comes back as another one.
    until("it is back under another id", async || {
        consumer.poll_for(Duration::from_millis(20)).await?;
        Ok(one(id().await?).is_ok_and(|now| now != first))
    })
    .await?;
    let nobody = MemberToRemove::Id("nobody".into());
    refused(
        "nobody",
        admin.remove_member(&group, nobody).await,
        ErrorCode::UNKNOWN_MEMBER_ID,
    )?;
    consumer.close().await?;

    let more = [("group.instance.id", "the-instance")];
    let mut consumer = member(world, &group, "classic", &more).await?;
    consumer.subscribe([topic.as_str()])?;
    until("a static member", async || {
        consumer.poll_for(Duration::from_millis(20)).await?;
        Ok(!consumer.assignment().is_empty())
    })
    .await?;
    drop(consumer);
    let members = [MemberToRemove::Instance("the-instance".into())];
    let removed = admin.remove_members(&group, &members, "a check").await?;
    let (name, removed) = one(removed)?;
    removed?;
    ensure_eq!(&*name, "the-instance", "who was removed");
    ensure!(id().await?.is_empty(), "there are still members");
    Ok(())
}
