//! Rewinds of live groups, over the wire.

mod common;

use common::*;
use kohort_broker::Broker;
use kohort_wire::{ErrorCode, Uuid, messages::*};

const GROUP: &str = "g";

fn heartbeat(
    member_id: &str,
    epoch: i32,
    owned: &[i32],
    topic: Uuid,
) -> ConsumerGroupHeartbeatRequest {
    let owned = TopicIdPartitions {
        topic_id: topic,
        partitions: owned.to_vec(),
    };
    ConsumerGroupHeartbeatRequest {
        group_id: GROUP.into(),
        member_id: member_id.into(),
        member_epoch: epoch,
        rebalance_timeout_ms: 60_000,
        subscribed_topic_names: Some(vec!["t".into()]),
        topic_partitions: Some(match epoch {
            0 => Vec::new(),
            _ => vec![owned],
        }),
        ..ConsumerGroupHeartbeatRequest::default()
    }
}

/// A member of the consumer protocol that owns all partitions of the topic, and its epoch.
async fn join(client: &mut Client, topic: Uuid) -> i32 {
    let mut owned = Vec::new();
    let mut epoch = 0;
    while owned.len() < 3 {
        let response = client.ask(1, heartbeat("m", epoch, &owned, topic)).await;
        assert_eq!(response.error_code, ErrorCode::NONE, "{response:?}");
        epoch = response.member_epoch;
        let assignment = response.assignment.expect("everything is told");
        owned = assignment
            .topic_partitions
            .first()
            .map(|t| t.partitions.clone())
            .unwrap_or_default();
    }
    epoch
}

fn commit(goals: &[(i32, i64)], metadata: &str) -> OffsetCommitRequest {
    let partitions = goals
        .iter()
        .map(|&(partition_index, offset)| OffsetCommitRequestPartition {
            partition_index,
            committed_offset: offset,
            committed_metadata: Some(metadata.into()),
            ..OffsetCommitRequestPartition::default()
        });
    OffsetCommitRequest {
        group_id: GROUP.into(),
        topics: vec![OffsetCommitRequestTopic {
            name: "t".into(),
            partitions: partitions.collect(),
            ..OffsetCommitRequestTopic::default()
        }],
        ..OffsetCommitRequest::default()
    }
}

fn codes(response: &OffsetCommitResponse) -> Vec<ErrorCode> {
    let partitions = response.topics.iter().flat_map(|topic| &topic.partitions);
    partitions.map(|partition| partition.error_code).collect()
}

async fn committed(client: &mut Client) -> Vec<(i64, String)> {
    let request = OffsetFetchRequest {
        groups: vec![OffsetFetchRequestGroup {
            group_id: GROUP.into(),
            topics: Some(vec![OffsetFetchRequestTopics {
                name: "t".into(),
                partition_indexes: vec![0, 1, 2],
                ..OffsetFetchRequestTopics::default()
            }]),
            ..OffsetFetchRequestGroup::default()
        }],
        ..OffsetFetchRequest::default()
    };
    let response = client.ask(9, request).await;
    let partitions = &response.groups[0].topics[0].partitions;
    partitions
        .iter()
        .map(|p| {
            (
                p.committed_offset,
                p.metadata.as_deref().unwrap_or_default().to_owned(),
            )
        })
        .collect()
}

async fn live_group(broker: &Broker) -> (Client, Client, Uuid, i32) {
    let (mut member, mut admin) = (Client::connect(broker).await, Client::connect(broker).await);
    let topic = member.create_topic("t", 3).await;
    for partition in 0..3 {
        member.produce("t", partition, &["a", "b", "c", "d"]).await;
    }
    member.find_coordinator(GROUP).await;
    let epoch = join(&mut member, topic).await;
    admin.find_coordinator(GROUP).await;
    (member, admin, topic, epoch)
}

#[tokio::test]
async fn the_answer_comes_when_the_owner_has_let_go_and_other_requests_go_on_meanwhile() {
    let broker = builder().start().await.unwrap();
    let (mut member, mut admin, topic, epoch) = live_group(&broker).await;
    let own = OffsetCommitRequest {
        generation_id_or_member_epoch: epoch,
        member_id: "m".into(),
        ..commit(&[(0, 4), (1, 4), (2, 4)], "")
    };
    assert_eq!(codes(&member.ask(9, own).await), [ErrorCode::NONE; 3]);

    admin
        .send(
            9,
            &commit(&[(0, 1), (1, 2)], "kohort:rewind metadata=again"),
        )
        .await;
    // The same by another administrator joins it; another one is refused at once.
    let mut other = Client::connect(&broker).await;
    let refused = loop {
        // Until the first has reached the coordinator.
        let response = other.ask(9, commit(&[(0, 3)], "kohort:rewind clmp")).await;
        assert_eq!(codes(&response), [ErrorCode::INVALID_REQUEST]);
        let response = member
            .ask(1, heartbeat("m", epoch, &[0, 1, 2], topic))
            .await;
        let left = response
            .assignment
            .expect("everything is told")
            .topic_partitions;
        if left[0].partitions == [2] {
            break other.ask(9, commit(&[(0, 3)], "kohort:rewind")).await;
        }
    };
    assert_eq!(codes(&refused), [ErrorCode::REBALANCE_IN_PROGRESS]);
    assert_eq!(committed(&mut other).await[0].0, 4);
    member.ask(1, heartbeat("m", epoch, &[2], topic)).await;
    let response = admin.receive_as::<OffsetCommitRequest>(9).await;
    assert_eq!(codes(&response), [ErrorCode::NONE; 2]);
    let now = committed(&mut other).await;
    assert_eq!(
        now,
        [
            (1, "again".to_owned()),
            (2, "again".to_owned()),
            (4, String::new())
        ]
    );
    broker.shutdown().await;
}

#[tokio::test]
async fn offsets_outside_of_the_log_are_refused_for_all_or_clamped() {
    let broker = builder().start().await.unwrap();
    let mut admin = Client::connect(&broker).await;
    admin.create_topic("t", 3).await;
    admin.produce("t", 0, &["a", "b"]).await;
    admin.find_coordinator(GROUP).await;
    let response = admin
        .ask(9, commit(&[(0, 1), (1, 1)], "kohort:rewind"))
        .await;
    assert_eq!(
        codes(&response),
        [
            ErrorCode::OPERATION_NOT_ATTEMPTED,
            ErrorCode::OFFSET_OUT_OF_RANGE
        ]
    );
    assert_eq!(committed(&mut admin).await[0].0, -1);
    let response = admin
        .ask(9, commit(&[(0, 100), (1, 1)], "kohort:rewind clamp"))
        .await;
    assert_eq!(codes(&response), [ErrorCode::NONE; 2]);
    let now: Vec<_> = committed(&mut admin)
        .await
        .into_iter()
        .map(|c| c.0)
        .collect();
    assert_eq!(now, [2, 0, -1]);
    broker.shutdown().await;
}

#[tokio::test]
async fn a_rewind_that_was_begun_is_finished_by_the_broker_that_starts_next() {
    let folder = tempfile::tempdir().unwrap();
    let broker = builder().data_dir(folder.path()).start().await.unwrap();
    let (mut member, mut admin, topic, epoch) = live_group(&broker).await;
    admin.send(9, &commit(&[(0, 1)], "kohort:rewind")).await;
    loop {
        let response = member
            .ask(1, heartbeat("m", epoch, &[0, 1, 2], topic))
            .await;
        let left = response
            .assignment
            .expect("everything is told")
            .topic_partitions;
        if left[0].partitions.len() == 2 {
            break;
        }
    }
    broker.shutdown().await;

    let broker = builder().data_dir(folder.path()).start().await.unwrap();
    let mut member = Client::connect(&broker).await;
    member.find_coordinator(GROUP).await;
    let mut epoch = epoch;
    while committed(&mut member).await[0].0 != 1 {
        let response = member.ask(1, heartbeat("m", epoch, &[1, 2], topic)).await;
        assert_eq!(response.error_code, ErrorCode::NONE);
        epoch = response.member_epoch;
    }
    broker.shutdown().await;
}

#[tokio::test]
async fn only_with_the_setting_a_commit_without_the_mark_rewinds_a_live_group() {
    let broker = builder()
        .set("kohort.group.rewind.unmarked.commits", "true")
        .start()
        .await
        .unwrap();
    let (mut member, mut admin, topic, epoch) = live_group(&broker).await;
    let outside = admin.ask(9, commit(&[(0, 5)], "")).await;
    assert_eq!(codes(&outside), [ErrorCode::OFFSET_OUT_OF_RANGE]);
    admin.send(9, &commit(&[(0, 1)], "")).await;
    let mut owned = vec![0, 1, 2];
    while committed(&mut member).await[0].0 != 1 {
        let response = member.ask(1, heartbeat("m", epoch, &owned, topic)).await;
        owned = response
            .assignment
            .expect("everything is told")
            .topic_partitions[0]
            .partitions
            .clone();
    }
    let response = admin.receive_as::<OffsetCommitRequest>(9).await;
    assert_eq!(codes(&response), [ErrorCode::NONE]);
    broker.shutdown().await;
}

/// Heartbeats until the member is told to let go of partition 0 of three, and gives its epoch.
async fn told_to_let_go(member: &mut Client, epoch: i32, topic: Uuid) -> i32 {
    loop {
        let request = heartbeat("m", epoch, &[0, 1, 2], topic);
        let response = member.ask(1, request).await;
        let left = response.assignment.expect("everything is told");
        if left.topic_partitions[0].partitions == [1, 2] {
            return response.member_epoch;
        }
    }
}

/// Heartbeats until the member owns all three partitions again, and gives its epoch.
async fn given_back(member: &mut Client, epoch: i32, topic: Uuid) -> i32 {
    let (mut epoch, mut owned) = (epoch, vec![1, 2]);
    loop {
        let response = member.ask(1, heartbeat("m", epoch, &owned, topic)).await;
        assert_eq!(response.error_code, ErrorCode::NONE, "{response:?}");
        epoch = response.member_epoch;
        let assignment = response.assignment.expect("everything is told");
        owned = assignment.topic_partitions[0].partitions.clone();
        if owned.len() == 3 {
            return epoch;
        }
    }
}

#[tokio::test]
async fn who_has_hung_up_may_ask_again_and_the_rewind_happens_once() {
    let broker = builder().start().await.unwrap();
    let (mut member, mut admin, topic, epoch) = live_group(&broker).await;
    admin.send(9, &commit(&[(0, 1)], "kohort:rewind")).await;
    let epoch = told_to_let_go(&mut member, epoch, topic).await;
    // As a client does when its own time is over.
    drop(admin);
    let epoch = given_back(&mut member, epoch, topic).await;
    let read_on = OffsetCommitRequest {
        generation_id_or_member_epoch: epoch,
        member_id: "m".into(),
        ..commit(&[(0, 3)], "")
    };
    assert_eq!(codes(&member.ask(9, read_on).await), [ErrorCode::NONE]);

    let mut admin = Client::connect(&broker).await;
    let again = admin.ask(9, commit(&[(0, 1)], "kohort:rewind")).await;
    assert_eq!(codes(&again), [ErrorCode::NONE]);
    assert_eq!(committed(&mut admin).await[0].0, 3);
    let response = member
        .ask(1, heartbeat("m", epoch, &[0, 1, 2], topic))
        .await;
    assert_eq!(response.member_epoch, epoch, "nothing is taken away");
    broker.shutdown().await;
}

#[tokio::test]
async fn a_rewind_that_waits_can_be_cancelled_by_any_administrator() {
    let broker = builder().start().await.unwrap();
    let (mut member, mut admin, topic, epoch) = live_group(&broker).await;
    admin.send(9, &commit(&[(0, 1)], "kohort:rewind")).await;
    let epoch = told_to_let_go(&mut member, epoch, topic).await;
    let mut other = Client::connect(&broker).await;
    // Wherever the offset is: it says nothing.
    let cancelled = other
        .ask(9, commit(&[(0, 1_000)], "kohort:rewind cancel"))
        .await;
    assert_eq!(codes(&cancelled), [ErrorCode::NONE]);
    let response = admin.receive_as::<OffsetCommitRequest>(9).await;
    assert_eq!(codes(&response), [ErrorCode::OPERATION_NOT_ATTEMPTED]);
    given_back(&mut member, epoch, topic).await;
    assert_eq!(committed(&mut other).await[0].0, -1);
    broker.shutdown().await;
}
