//! Groups, over the wire: what concerns the shards' shell.

mod common;

use std::time::Duration;

use bytes::Bytes;
use common::*;
use kohort_broker::Broker;
use kohort_wire::{ByteString, ErrorCode, messages::*};

fn join(group: &str, member_id: &str, instance_id: Option<&str>) -> JoinGroupRequest {
    JoinGroupRequest {
        group_id: group.into(),
        session_timeout_ms: 6_000,
        rebalance_timeout_ms: 6_000,
        member_id: member_id.into(),
        group_instance_id: instance_id.map(Into::into),
        protocol_type: "consumer".into(),
        protocols: vec![JoinGroupProtocol {
            name: "range".into(),
            metadata: Bytes::from_static(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        }],
        reason: None,
    }
}

fn sync(group: &str, joined: &JoinGroupResponse, instance_id: Option<&str>) -> SyncGroupRequest {
    SyncGroupRequest {
        group_id: group.into(),
        generation_id: joined.generation_id,
        member_id: joined.member_id.clone(),
        group_instance_id: instance_id.map(Into::into),
        protocol_type: Some("consumer".into()),
        protocol_name: Some("range".into()),
        assignments: vec![SyncGroupAssignment {
            member_id: joined.member_id.clone(),
            assignment: Bytes::from_static(b"all"),
        }],
    }
}

fn heartbeat(
    group: &str,
    joined: &JoinGroupResponse,
    instance_id: Option<&str>,
) -> HeartbeatRequest {
    HeartbeatRequest {
        group_id: group.into(),
        generation_id: joined.generation_id,
        member_id: joined.member_id.clone(),
        group_instance_id: instance_id.map(Into::into),
    }
}

/// Joins as the only member, and syncs.
async fn join_alone(
    client: &mut Client,
    group: &str,
    instance_id: Option<&str>,
) -> JoinGroupResponse {
    let mut joined = client.ask(9, join(group, "", instance_id)).await;
    if joined.error_code == ErrorCode::MEMBER_ID_REQUIRED {
        let member_id = joined.member_id.clone();
        joined = client.ask(9, join(group, &member_id, instance_id)).await;
    }
    assert_eq!(joined.error_code, ErrorCode::NONE, "{joined:?}");
    let synced = client.ask(5, sync(group, &joined, instance_id)).await;
    assert_eq!(synced.error_code, ErrorCode::NONE, "{synced:?}");
    assert_eq!(&synced.assignment[..], b"all");
    joined
}

async fn in_folder(folder: &std::path::Path) -> Broker {
    builder().data_dir(folder).start().await.unwrap()
}

#[tokio::test]
async fn a_group_forms_commits_and_is_described_listed_and_deleted() {
    let broker = builder().start().await.unwrap();
    let mut client = Client::connect(&broker).await;
    client.create_topic("t", 1).await;
    let joined = join_alone(&mut client, "g", None).await;
    let beat = client.ask(4, heartbeat("g", &joined, None)).await;
    assert_eq!(beat.error_code, ErrorCode::NONE);

    let mut request = commit("g", "t", 0, 7);
    request.generation_id_or_member_epoch = joined.generation_id;
    request.member_id = joined.member_id.clone();
    let committed = client.ask(9, request).await;
    assert_eq!(
        committed.topics[0].partitions[0].error_code,
        ErrorCode::NONE
    );
    assert_eq!(client.committed("g", "t", 0).await, 7);

    let listed = client.ask(5, ListGroupsRequest::default()).await;
    assert_eq!(&*listed.groups[0].group_id, "g");
    assert_eq!(&*listed.groups[0].group_type, "classic");
    let describe = DescribeGroupsRequest {
        groups: vec!["g".into(), "nobody".into()],
        include_authorized_operations: true,
    };
    let described = client.ask(5, describe).await;
    assert_eq!(described.groups.len(), 2);
    let group = described
        .groups
        .iter()
        .find(|it| &*it.group_id == "g")
        .unwrap();
    assert_eq!(&*group.group_state, "Stable");
    assert_eq!(&*group.members[0].client_host, "/127.0.0.1");
    assert_ne!(group.authorized_operations, i32::MIN);

    let delete = || DeleteGroupsRequest {
        groups_names: vec!["g".into()],
    };
    let refused = client.ask(2, delete()).await;
    assert_eq!(refused.results[0].error_code, ErrorCode::NON_EMPTY_GROUP);
    let leave = LeaveGroupRequest {
        group_id: "g".into(),
        member_id: ByteString::new(),
        members: vec![MemberIdentity {
            member_id: joined.member_id.clone(),
            ..MemberIdentity::default()
        }],
    };
    client.ask(5, leave).await;
    let deleted = client.ask(2, delete()).await;
    assert_eq!(deleted.results[0].error_code, ErrorCode::NONE);
}

#[tokio::test]
async fn a_join_that_waits_is_answered_when_the_group_is_ready() {
    let broker = Broker::builder()
        .set("group.initial.rebalance.delay.ms", "300")
        .start()
        .await
        .unwrap();
    let mut first = Client::connect(&broker).await;
    let mut second = Client::connect(&broker).await;
    // Version 3 needs no second try to get an id.
    first.send(3, &join("g", "", None)).await;
    second.send(3, &join("g", "", None)).await;
    let first = first.receive_as::<JoinGroupRequest>(3).await;
    let second = second.receive_as::<JoinGroupRequest>(3).await;
    assert_eq!(
        (first.error_code, second.error_code),
        (ErrorCode::NONE, ErrorCode::NONE)
    );
    assert_eq!(first.generation_id, second.generation_id);
    assert_ne!(first.member_id, second.member_id);
}

/// KAFKA-16973.
#[tokio::test]
async fn what_is_answered_is_there_after_a_restart_without_shutdown() {
    let folder = tempfile::tempdir().unwrap();
    let broker = in_folder(folder.path()).await;
    let mut client = Client::connect(&broker).await;
    client.create_topic("t", 1).await;
    for offset in 1..20 {
        assert_eq!(client.commit("g", "t", 0, offset).await, ErrorCode::NONE);
    }
    drop(client);
    drop(broker);
    // As soon as the one that was dropped has let go of the folder.
    let started = async {
        loop {
            match builder().data_dir(folder.path()).start().await {
                Ok(broker) => return broker,
                Err(_) => tokio::time::sleep(Duration::from_millis(1)).await,
            }
        }
    };
    let broker = tokio::time::timeout(PATIENCE, started).await.unwrap();
    let mut client = Client::connect(&broker).await;
    assert_eq!(client.committed("g", "t", 0).await, 19);
}

/// KAFKA-19246. And a shard whose log is damaged costs its own groups only.
#[tokio::test]
async fn an_error_of_the_group_reaches_clients_of_every_version() {
    let folder = tempfile::tempdir().unwrap();
    let broker = in_folder(folder.path()).await;
    let mut client = Client::connect(&broker).await;
    client.create_topic("t", 1).await;
    client.commit("g", "t", 0, 3).await;
    client.commit("other", "t", 0, 4).await;
    broker.shutdown().await;
    let shard = kohort_coordinator::partition_of("g", 50);
    let log = folder.path().join(format!(
        "__consumer_offsets-{shard}/00000000000000000000.log"
    ));
    let mut bytes = std::fs::read(&log).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&log, &bytes).unwrap();

    let broker = in_folder(folder.path()).await;
    let mut client = Client::connect(&broker).await;
    for version in [1, 2, 5, 7] {
        let request = OffsetFetchRequest {
            group_id: "g".into(),
            topics: Some(vec![OffsetFetchRequestTopic {
                name: "t".into(),
                partition_indexes: vec![0],
            }]),
            ..OffsetFetchRequest::default()
        };
        let response = client.ask(version, request).await;
        let code = match version {
            1 => response.topics[0].partitions[0].error_code,
            _ => response.error_code,
        };
        assert!(
            code.is_error() && code.is_retriable(),
            "version {version}: {response:?}"
        );
    }
    for version in [8, 9] {
        let response = client.ask(version, offset_fetch("g", "t", 0)).await;
        assert!(response.groups[0].error_code.is_retriable());
    }
    assert_eq!(client.committed("other", "t", 0).await, 4);
    // Nothing is damaged further.
    assert_eq!(std::fs::read(&log).unwrap(), bytes);
}

/// redpanda #4900.
#[tokio::test]
async fn a_deleted_group_stays_deleted_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let broker = in_folder(folder.path()).await;
    let mut client = Client::connect(&broker).await;
    client.create_topic("t", 1).await;
    client.commit("g", "t", 0, 3).await;
    client.commit("other", "t", 0, 4).await;
    let delete = DeleteGroupsRequest {
        groups_names: vec!["g".into()],
    };
    let deleted = client.ask(2, delete).await;
    assert_eq!(deleted.results[0].error_code, ErrorCode::NONE);
    broker.shutdown().await;

    let broker = in_folder(folder.path()).await;
    let mut client = Client::connect(&broker).await;
    let listed = client.ask(5, ListGroupsRequest::default()).await;
    let ids: Vec<_> = listed
        .groups
        .iter()
        .map(|it| it.group_id.to_string())
        .collect();
    assert_eq!(ids, ["other"]);
    assert_eq!(client.committed("g", "t", 0).await, -1);
}

/// kop #1289.
#[tokio::test]
async fn a_member_that_joins_right_after_a_commit_starts_from_that_commit() {
    let broker = builder().start().await.unwrap();
    let mut committer = Client::connect(&broker).await;
    let mut member = Client::connect(&broker).await;
    committer.create_topic("t", 1).await;
    for offset in 1..50 {
        assert_eq!(committer.commit("g", "t", 0, offset).await, ErrorCode::NONE);
        assert_eq!(member.committed("g", "t", 0).await, offset);
    }
}

/// ydb PR 49893.
#[tokio::test]
async fn an_offset_that_was_never_committed_is_minus_one_without_an_error() {
    let broker = builder().start().await.unwrap();
    let mut client = Client::connect(&broker).await;
    client.create_topic("t", 1).await;
    let response = client.ask(8, offset_fetch("never", "t", 0)).await;
    let group = &response.groups[0];
    assert_eq!(group.error_code, ErrorCode::NONE);
    assert_eq!(group.topics[0].partitions[0].error_code, ErrorCode::NONE);
    assert_eq!(group.topics[0].partitions[0].committed_offset, -1);
}

/// confluent-kafka-go #494.
#[tokio::test]
async fn a_static_member_survives_a_restart_of_the_coordinator_unfenced() {
    let folder = tempfile::tempdir().unwrap();
    let broker = in_folder(folder.path()).await;
    let mut client = Client::connect(&broker).await;
    let joined = join_alone(&mut client, "g", Some("one")).await;
    broker.shutdown().await;

    let broker = in_folder(folder.path()).await;
    let mut client = Client::connect(&broker).await;
    let beat = client.ask(4, heartbeat("g", &joined, Some("one"))).await;
    assert_eq!(beat.error_code, ErrorCode::NONE);
    let synced = client.ask(5, sync("g", &joined, Some("one"))).await;
    assert_eq!(synced.error_code, ErrorCode::NONE);
    assert_eq!(&synced.assignment[..], b"all");
}

#[tokio::test]
async fn commits_and_fetches_by_topic_id_find_the_names() {
    let broker = builder().start().await.unwrap();
    let mut client = Client::connect(&broker).await;
    let id = client.create_topic("t", 1).await;
    let mut request = commit("g", "", 0, 5);
    request.topics[0].topic_id = id;
    let mut unknown = request.topics[0].clone();
    unknown.topic_id = kohort_wire::Uuid(77);
    request.topics.push(unknown);
    let committed = client.ask(10, request).await;
    let codes: Vec<_> = committed
        .topics
        .iter()
        .map(|topic| (topic.topic_id, topic.partitions[0].error_code))
        .collect();
    assert!(codes.contains(&(id, ErrorCode::NONE)), "{codes:?}");
    assert!(codes.contains(&(kohort_wire::Uuid(77), ErrorCode::UNKNOWN_TOPIC_ID)));

    let mut request = offset_fetch("g", "", 0);
    request.groups[0].topics.as_mut().unwrap()[0].topic_id = id;
    let fetched = client.ask(10, request).await;
    let topic = &fetched.groups[0].topics[0];
    assert_eq!(
        (topic.topic_id, topic.partitions[0].committed_offset),
        (id, 5)
    );
}

#[tokio::test]
async fn what_was_committed_for_a_deleted_topic_is_forgotten() {
    let broker = builder().start().await.unwrap();
    let mut client = Client::connect(&broker).await;
    client.create_topic("t", 1).await;
    client.commit("g", "t", 0, 5).await;
    let delete = DeleteTopicsRequest {
        topic_names: vec!["t".into()],
        timeout_ms: 1000,
        ..DeleteTopicsRequest::default()
    };
    client.ask(5, delete).await;
    client.create_topic("t", 1).await;
    let forgotten = async {
        while client.committed("g", "t", 0).await != -1 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, forgotten).await.unwrap();
}

/// sarama #2157.
#[tokio::test]
async fn an_empty_or_absent_instance_id_is_a_dynamic_member() {
    let broker = builder().start().await.unwrap();
    let mut client = Client::connect(&broker).await;
    for instance_id in [None, Some("")] {
        let asked = client.ask(9, join("g", "", instance_id)).await;
        // A static member is let in at once, a dynamic one has to come back with its id.
        assert_eq!(
            asked.error_code,
            ErrorCode::MEMBER_ID_REQUIRED,
            "{instance_id:?}"
        );
        let joined = client
            .ask(9, join("g", &asked.member_id, instance_id))
            .await;
        assert_eq!(joined.error_code, ErrorCode::NONE);
        let leave = LeaveGroupRequest {
            group_id: "g".into(),
            member_id: joined.member_id,
            ..LeaveGroupRequest::default()
        };
        assert_eq!(client.ask(2, leave).await.error_code, ErrorCode::NONE);
    }
}

#[tokio::test]
async fn a_member_that_leaves_and_hangs_up_at_once_has_left() {
    let broker = builder().start().await.unwrap();
    let mut client = Client::connect(&broker).await;
    client.find_coordinator("g").await;
    client.create_topic("t", 1).await;
    for _ in 0..20 {
        let mut member = Client::connect(&broker).await;
        let joined = join_alone(&mut member, "g", None).await;
        // The shard has other things to do first.
        for _ in 0..5 {
            let request = commit("other", "t", 0, 1);
            member.send(8, &request).await;
        }
        let request = LeaveGroupRequest {
            group_id: "g".into(),
            members: vec![MemberIdentity {
                member_id: joined.member_id,
                ..MemberIdentity::default()
            }],
            ..LeaveGroupRequest::default()
        };
        member.send(5, &request).await;
        drop(member);
        // Otherwise it would be missed only when its session of 6 s ends.
        let gone = async {
            loop {
                let request = DescribeGroupsRequest {
                    groups: vec!["g".into()],
                    ..DescribeGroupsRequest::default()
                };
                let described = client.ask(5, request).await;
                if described.groups[0].members.is_empty() {
                    break;
                }
            }
        };
        let left = tokio::time::timeout(Duration::from_secs(5), gone).await;
        left.expect("the member has left");
    }
}

/// librdkafka asks again after any other error, until its patience ends.
#[tokio::test]
async fn a_transactional_producer_learns_at_once_that_there_are_no_transactions() {
    let broker = builder().start().await.unwrap();
    let mut client = Client::connect(&broker).await;
    let request = FindCoordinatorRequest {
        key: "t".into(),
        key_type: 1,
        ..FindCoordinatorRequest::default()
    };
    let old = client.ask(2, request).await;
    assert_eq!(
        old.error_code,
        ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    );
    let message = old.error_message.unwrap_or_default();
    assert_eq!(&*message, "this broker has no transactions");
    let request = FindCoordinatorRequest {
        key_type: 1,
        coordinator_keys: vec!["t".into()],
        ..FindCoordinatorRequest::default()
    };
    let new = client.ask(6, request).await.coordinators.remove(0);
    assert_eq!(new.error_code, ErrorCode::INVALID_REQUEST);
}

#[tokio::test]
async fn what_does_not_exist_is_said_whoever_commits_or_deletes_offsets() {
    let broker = builder().start().await.unwrap();
    let mut client = Client::connect(&broker).await;
    client.create_topic("t", 1).await;
    join_alone(&mut client, "g", None).await;
    let mut request = commit("g", "t", 0, 7);
    request.generation_id_or_member_epoch = 1;
    request.member_id = "stranger".into();
    let mut missing = request.topics[0].partitions[0].clone();
    missing.partition_index = 1;
    request.topics[0].partitions.push(missing);
    let answer = client.ask(9, request.clone()).await;
    assert_eq!(answer.topics.len(), 1, "{answer:?}");
    let codes = answer.topics[0].partitions.iter();
    let codes: Vec<_> = codes
        .map(|one| (one.partition_index, one.error_code))
        .collect();
    let unknown = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
    assert_eq!(codes, [(0, ErrorCode::UNKNOWN_MEMBER_ID), (1, unknown)]);
    request.topics[0].name = "nothing".into();
    let answer = client.ask(9, request).await;
    let mut partitions = answer.topics[0].partitions.iter();
    assert!(
        partitions.all(|one| one.error_code == unknown),
        "{answer:?}"
    );

    client.ask(9, commit("alone", "t", 0, 7)).await;
    let partitions = [0, 1].map(|partition_index| OffsetDeleteRequestPartition { partition_index });
    let delete = OffsetDeleteRequest {
        group_id: "alone".into(),
        topics: vec![OffsetDeleteRequestTopic {
            name: "t".into(),
            partitions: partitions.to_vec(),
        }],
    };
    let answer = client.ask(0, delete).await;
    let codes = answer.topics[0].partitions.iter();
    let codes: Vec<_> = codes
        .map(|one| (one.partition_index, one.error_code))
        .collect();
    assert_eq!(codes, [(0, ErrorCode::NONE), (1, unknown)]);
}

#[tokio::test]
async fn a_refused_join_names_no_protocol_in_the_way_of_its_version() {
    let broker = builder().start().await.unwrap();
    let mut client = Client::connect(&broker).await;
    for (version, name) in [(4, Some(ByteString::new())), (7, None)] {
        let refused = client.ask(version, join("g", "", None)).await;
        assert_eq!(refused.error_code, ErrorCode::MEMBER_ID_REQUIRED);
        assert_eq!(refused.protocol_name, name);
    }
}

#[tokio::test]
async fn a_group_in_a_rebalance_shows_what_its_members_had() {
    let broker = builder().start().await.unwrap();
    let mut client = Client::connect(&broker).await;
    join_alone(&mut client, "g", None).await;
    let mut other = Client::connect(&broker).await;
    let id = other.ask(9, join("g", "", None)).await.member_id;
    other.send(9, &join("g", &id, None)).await;
    let describe = || DescribeGroupsRequest {
        groups: vec!["g".into()],
        ..DescribeGroupsRequest::default()
    };
    let group = loop {
        let mut answer = client.ask(5, describe()).await;
        let group = answer.groups.pop().unwrap();
        if &*group.group_state == "PreparingRebalance" && group.members.len() == 2 {
            break group;
        }
    };
    let mut assignments: Vec<_> = group
        .members
        .iter()
        .map(|it| &it.member_assignment[..])
        .collect();
    assignments.sort_unstable();
    assert_eq!(assignments, [&b""[..], b"all"]);
}
