//! Admin against a broker.

mod common;

use common::{servers, unique, with_topic};
use kohort::{
    CommittedOffset, ErrorCode, OffsetSpec, TopicPartition,
    admin::{ConfigOperation, ConfigResource, GroupState, GroupType},
};

#[tokio::test]
async fn a_topic_is_created_listed_described_extended_and_deleted() {
    let servers = servers().await;
    let (admin, topic) = with_topic(&servers, 2).await;
    let listed = admin.list_topics(false).await.unwrap();
    assert!(listed.iter().any(|listed| *listed.name == *topic));

    admin.create_partitions(&topic, 3).await.unwrap();
    let named = [topic.as_str().into(), unique("absent").into()];
    // Brokers learn of new partitions a little later.
    let described = loop {
        let described = admin.describe_topics(&named).await.unwrap();
        match described[0].1.as_ref().unwrap().partitions.len() {
            3 => break described,
            partitions => assert_eq!(partitions, 2),
        }
    };
    let absent = described[1].1.as_ref().unwrap_err();
    assert_eq!(absent.code(), Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION));

    admin.delete_topic(&topic).await.unwrap();
    let again = admin.delete_topic(&topic).await.unwrap_err();
    assert!(again.to_string().contains(&topic), "{again}");
}

#[tokio::test]
async fn the_settings_of_a_topic_are_described_and_changed() {
    let servers = servers().await;
    let (admin, topic) = with_topic(&servers, 1).await;
    let resource = ConfigResource::topic(topic.as_str());
    let change = ("retention.ms".into(), ConfigOperation::Set("12345".into()));
    admin
        .alter_configs(&resource, &[change], false)
        .await
        .unwrap();
    let described = admin.describe_configs(&[resource], false).await;
    let entries = described[0].1.as_ref().unwrap();
    let retention = entries
        .iter()
        .find(|entry| entry.name == "retention.ms")
        .unwrap();
    assert_eq!(retention.value.as_deref(), Some("12345"));
}

#[tokio::test]
async fn the_offsets_of_a_group_are_set_listed_and_deleted() {
    let servers = servers().await;
    let (admin, topic) = with_topic(&servers, 2).await;
    let group = unique("group");
    let partition = TopicPartition::new(topic.as_str(), 1);
    let committed = CommittedOffset {
        offset: 7,
        leader_epoch: None,
        metadata: "why".into(),
        topic_id: None,
    };
    let offsets = [(partition.clone(), committed.clone())];
    for (_, result) in admin.alter_group_offsets(&group, &offsets).await.unwrap() {
        result.unwrap();
    }

    let all = admin.list_group_offsets(&group, None).await.unwrap();
    assert_eq!(all.len(), 1);
    assert_eq!(all[0].1.as_ref().unwrap().as_ref(), Some(&committed));
    let other = [TopicPartition::new(topic.as_str(), 0)];
    let none = admin
        .list_group_offsets(&group, Some(&other))
        .await
        .unwrap();
    assert_eq!(none[0].1.as_ref().unwrap(), &None);

    let listed = admin.list_groups(&Default::default()).await.unwrap();
    let listed = listed
        .iter()
        .find(|listed| *listed.group_id == *group)
        .unwrap();
    assert_eq!(listed.group_type, GroupType::Classic);
    let described = admin.describe_group(&group).await.unwrap();
    assert_eq!(described.state, GroupState::Empty);

    for (_, result) in admin
        .delete_group_offsets(&group, &[partition])
        .await
        .unwrap()
    {
        result.unwrap();
    }
    let _ = admin.delete_group(&group).await;
    let gone = admin.describe_group(&group).await.unwrap_err();
    assert_eq!(gone.code(), Some(ErrorCode::GROUP_ID_NOT_FOUND));
}

#[tokio::test]
async fn offsets_by_time_of_an_empty_topic_are_zero_and_of_an_absent_one_an_error() {
    let servers = servers().await;
    let (admin, topic) = with_topic(&servers, 1).await;
    let there = TopicPartition::new(topic.as_str(), 0);
    let absent = TopicPartition::new(unique("absent"), 0);
    let asked = [
        (there.clone(), OffsetSpec::Latest),
        (absent, OffsetSpec::Earliest),
    ];
    let answers = admin.list_offsets(&asked, Default::default()).await;
    assert_eq!(answers[0].1.as_ref().unwrap().offset, Some(0));
    let error = answers[1].1.as_ref().unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION));
    let twice = [(there.clone(), OffsetSpec::MaxTimestamp), asked[0].clone()];
    let answers = admin.list_offsets(&twice, Default::default()).await;
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert_eq!(answers[0].1.as_ref().unwrap().offset, Some(0));
    let deleted = admin.delete_records(&[(there, -1)]).await;
    assert_eq!(*deleted[0].1.as_ref().unwrap(), 0);
}

#[tokio::test]
async fn the_cluster_is_described() {
    let servers = servers().await;
    let (admin, _) = with_topic(&servers, 1).await;
    let cluster = admin.describe_cluster().await.unwrap();
    assert!(!cluster.brokers.is_empty() && cluster.cluster_id.is_some());
    assert!(cluster.controller.is_some());
}
