//! What happened to groups, as any client reads it from `__kohort_group_events`.

mod common;

use bytes::Bytes;
use common::*;
use kohort_broker::Broker;
use kohort_group::history::{Cause, Event, Failure, Needs, Phase, Waited, What};
use kohort_wire::{ErrorCode, Uuid, messages::*};

const TOPIC: &str = "__kohort_group_events";

/// All events so far, once one of them is the one that is waited for.
async fn until(client: &mut Client, is_it: impl Fn(&What) -> bool) -> Vec<Event> {
    let wait = async {
        loop {
            let data = client.fetch(TOPIC, 0, 0).await;
            let events: Vec<Event> = values(&data)
                .iter()
                .map(|value| Event::from_json(value.as_bytes()).expect("an event"))
                .collect();
            if events.iter().any(|event| is_it(&event.what)) {
                return events;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait)
        .await
        .expect("the event comes")
}

fn join(member_id: &str, instance_id: Option<&str>) -> JoinGroupRequest {
    JoinGroupRequest {
        group_id: "g".into(),
        session_timeout_ms: 30_000,
        rebalance_timeout_ms: 2_500,
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

async fn join_alone(client: &mut Client, mut request: JoinGroupRequest) -> JoinGroupResponse {
    let mut joined = client.ask(9, request.clone()).await;
    if joined.error_code == ErrorCode::MEMBER_ID_REQUIRED {
        request.member_id = joined.member_id.clone();
        joined = client.ask(9, request).await;
    }
    assert_eq!(joined.error_code, ErrorCode::NONE, "{joined:?}");
    let sync = SyncGroupRequest {
        group_id: "g".into(),
        generation_id: joined.generation_id,
        member_id: joined.member_id.clone(),
        assignments: vec![SyncGroupAssignment {
            member_id: joined.member_id.clone(),
            assignment: Bytes::from_static(b"all"),
        }],
        ..SyncGroupRequest::default()
    };
    let synced = client.ask(5, sync).await;
    assert_eq!(synced.error_code, ErrorCode::NONE, "{synced:?}");
    joined
}

async fn broker() -> Broker {
    builder()
        .set("group.min.session.timeout.ms", "100")
        .set("group.consumer.assignment.interval.ms", "0")
        .start()
        .await
        .unwrap()
}

#[tokio::test]
async fn a_classic_group_tells_of_its_beginning_and_of_a_member_that_falls_silent() {
    let broker = broker().await;
    let mut client = Client::connect(&broker).await;
    let request = JoinGroupRequest {
        session_timeout_ms: 300,
        ..join("", None)
    };
    let joined = join_alone(&mut client, request).await;
    let events = until(&mut client, |what| matches!(what, What::Emptied { .. })).await;

    let story: Vec<String> = events.iter().map(|event| event.what.to_string()).collect();
    let random = joined.member_id.rsplit_once('-').expect("an id").1;
    let who = format!(
        "{}{}… (test at 127.0.0.1)",
        joined.member_id.trim_end_matches(random),
        &random[..6]
    );
    assert_eq!(
        story[0],
        format!("rebalance of generation 0: member {who} joined")
    );
    assert!(story[1].starts_with("generation 1 has 1 member, joined in "));
    assert!(story[2].starts_with("generation 1 is assigned and stable, after "));
    assert_eq!(
        story[3],
        format!(
            "rebalance of generation 1: member {who} sent no heartbeat for 300 ms, its session \
             timeout"
        )
    );
    assert_eq!(story[4], "the group is empty, at epoch 2");
    assert!(events.iter().all(|event| &*event.group_id == "g"));
}

#[tokio::test]
async fn a_classic_group_says_who_has_not_rejoined_and_until_when() {
    let broker = broker().await;
    let (mut slow, mut new) = (
        Client::connect(&broker).await,
        Client::connect(&broker).await,
    );
    let joined = join_alone(&mut slow, join("", None)).await;
    let rejoin = async { join_alone(&mut new, join("", None)).await };
    let reader = async {
        let mut reader = Client::connect(&broker).await;
        let is_it = |what: &What| {
            matches!(
                what,
                What::Changed {
                    cause: Cause::MembersFenced {
                        failure: Failure::Rejoin,
                        ..
                    }
                }
            )
        };
        until(&mut reader, is_it).await
    };
    let (_, events) = tokio::join!(rejoin, reader);
    let began = events
        .iter()
        .rev()
        .find_map(|event| match event.what {
            What::RebalanceBegan { deadline_at, .. } => Some((event.at, deadline_at)),
            _ => None,
        })
        .expect("a rebalance");
    let waited: &Waited = events
        .iter()
        .find_map(|event| match &event.what {
            What::Waiting {
                phase: Phase::Join,
                members,
                ..
            } => members.first.first(),
            _ => None,
        })
        .expect("it says whom it waits for");
    assert_eq!(&*waited.member.id, &*joined.member_id);
    assert_eq!(waited.needs, Needs::Rejoin);
    assert_eq!(waited.deadline_at, Some(began.0 + 2_500));
    assert_eq!(began.1, waited.deadline_at);
}

fn beat(
    member: &str,
    epoch: i32,
    owned: Option<&[i32]>,
    topic_id: Uuid,
) -> ConsumerGroupHeartbeatRequest {
    ConsumerGroupHeartbeatRequest {
        group_id: "g".into(),
        member_id: member.into(),
        member_epoch: epoch,
        rebalance_timeout_ms: if epoch == 0 { 2_500 } else { -1 },
        subscribed_topic_names: (epoch == 0).then(|| vec!["t".into()]),
        topic_partitions: owned.map(|partitions| match partitions {
            [] => Vec::new(),
            _ => vec![TopicIdPartitions {
                topic_id,
                partitions: partitions.to_vec(),
            }],
        }),
        ..ConsumerGroupHeartbeatRequest::default()
    }
}

#[tokio::test]
async fn a_consumer_group_says_who_has_to_revoke_what_and_whom_that_blocks() {
    let broker = broker().await;
    let mut client = Client::connect(&broker).await;
    let topic_id = client.create_topic("t", 2).await;
    let a = client.ask(1, beat("a", 0, Some(&[]), topic_id)).await;
    assert_eq!(a.error_code, ErrorCode::NONE, "{a:?}");
    let b = client.ask(1, beat("b", 0, Some(&[]), topic_id)).await;
    assert_eq!(b.error_code, ErrorCode::NONE, "{b:?}");
    // It learns that it has to revoke, and does not.
    let told = client
        .ask(1, beat("a", a.member_epoch, Some(&[0, 1]), topic_id))
        .await;
    assert_eq!(told.error_code, ErrorCode::NONE, "{told:?}");

    let is_fenced = |what: &What| {
        let What::RebalanceBegan { causes, .. } = what else {
            return false;
        };
        causes.first.iter().any(|cause| {
            matches!(cause, Cause::MembersFenced { failure: Failure::Revoke, partitions, .. }
                if partitions.first == ["t-1"] || partitions.first == ["t-0"])
        })
    };
    let events = until(&mut client, is_fenced).await;
    let waited = events
        .iter()
        .find_map(|event| match &event.what {
            What::Waiting { members, .. } => {
                let mut members = members.first.iter();
                members.find(|waited| waited.needs == Needs::Revoke)
            }
            _ => None,
        })
        .expect("it says whom it waits for");
    assert_eq!(&*waited.member.id, "a");
    assert_eq!(waited.partitions.count, 1);
    assert_eq!(&*waited.blocks.first[0].id, "b");
    let asked_at = events
        .iter()
        .find(|event| matches!(event.what, What::RevocationAsked { .. }))
        .expect("it is asked")
        .at;
    assert_eq!(waited.deadline_at, Some(asked_at + 2_500));
}

#[tokio::test]
async fn a_static_member_that_bounces_is_told_of_as_such_and_no_rebalance_begins() {
    let broker = broker().await;
    let mut client = Client::connect(&broker).await;
    let before = join_alone(&mut client, join("", Some("i"))).await;
    let after = client.ask(9, join("", Some("i"))).await;
    let is_it = |what: &What| {
        matches!(what, What::Changed { cause: Cause::MemberReturned { member, old_member_id, .. } }
            if *member.id == *after.member_id && **old_member_id == *before.member_id)
    };
    let events = until(&mut client, is_it).await;
    let rebalances = events
        .iter()
        .filter(|event| matches!(event.what, What::RebalanceBegan { .. }));
    assert_eq!(rebalances.count(), 1);
}

#[tokio::test]
async fn the_topic_is_internal_takes_no_records_of_others_and_expires_by_time() {
    let broker = builder()
        .set("kohort.group.events.retention.ms", "3600000")
        .start()
        .await
        .unwrap();
    let mut client = Client::connect(&broker).await;
    join_alone(&mut client, join("", None)).await;
    until(&mut client, |what| matches!(what, What::Assigned { .. })).await;

    let everything = MetadataRequest {
        topics: None,
        ..MetadataRequest::default()
    };
    let metadata = client.ask(12, everything).await;
    let topic = metadata
        .topics
        .iter()
        .find(|topic| topic.name.as_deref() == Some(TOPIC))
        .expect("it is there");
    assert!(topic.is_internal);
    assert_eq!(topic.partitions.len(), 1);
    let refused = client.produce(TOPIC, 0, &["{}"]).await;
    assert_eq!(refused.error_code, ErrorCode::INVALID_TOPIC_EXCEPTION);
    let describe = DescribeConfigsRequest {
        resources: vec![DescribeConfigsResource {
            resource_type: 2,
            resource_name: TOPIC.into(),
            configuration_keys: Some(vec!["retention.ms".into()]),
        }],
        ..DescribeConfigsRequest::default()
    };
    let described = client.ask(4, describe).await;
    let value = &described.results[0].configs[0].value;
    assert_eq!(value.as_deref(), Some("3600000"));
}

#[tokio::test]
async fn history_is_kept_over_a_restart_and_can_be_turned_off() {
    let folder = tempfile::tempdir().unwrap();
    let start = |enable: &'static str| {
        let builder = builder().data_dir(folder.path());
        builder.set("kohort.group.events.enable", enable).start()
    };
    let broker = start("true").await.unwrap();
    let mut client = Client::connect(&broker).await;
    join_alone(&mut client, join("", Some("i"))).await;
    broker.shutdown().await;

    let broker = start("true").await.unwrap();
    let mut client = Client::connect(&broker).await;
    client.find_coordinator("g").await;
    // Any request has the group loaded.
    client.committed("g", "t", 0).await;
    let events = until(&mut client, |what| {
        matches!(what, What::Loaded { members: 1, .. })
    })
    .await;
    assert!(
        matches!(events[2].what, What::Assigned { .. }),
        "{events:?}"
    );
    let count = events.len();
    broker.shutdown().await;

    let broker = start("false").await.unwrap();
    let mut client = Client::connect(&broker).await;
    client.committed("g", "t", 0).await;
    broker.shutdown().await;
    let broker = start("false").await.unwrap();
    let mut client = Client::connect(&broker).await;
    assert_eq!(values(&client.fetch(TOPIC, 0, 0).await).len(), count);
}
