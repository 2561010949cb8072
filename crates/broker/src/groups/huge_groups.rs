//! Tests: huge groups don't affect the other groups of their shard.

use std::sync::Arc;

use kohort_coordinator::{Caller, Reply, Request};
use kohort_wire::{ErrorCode, messages::*};
use tokio::task::JoinSet;

use super::Patience;
use crate::{Broker, node::Node, topics::OFFSETS_TOPIC};

const MIB: usize = 1 << 20;

async fn ask(node: &Arc<Node>, group: &str, request: Request) -> Result<Reply, ErrorCode> {
    let caller = Caller::default();
    let groups = &node.groups;
    groups
        .ask(node, group, caller, request, Patience::Parked)
        .await
}

async fn join(node: &Arc<Node>, group: &str, member: usize, bytes: usize) -> JoinGroupResponse {
    let request = JoinGroupRequest {
        group_id: group.into(),
        session_timeout_ms: 1_800_000,
        rebalance_timeout_ms: 1_800_000,
        group_instance_id: Some(format!("i{member}").into()),
        protocol_type: "other".into(),
        protocols: vec![JoinGroupProtocol {
            name: "p".into(),
            metadata: vec![7; bytes].into(),
        }],
        ..JoinGroupRequest::default()
    };
    let version = 5;
    match ask(node, group, Request::JoinGroup { version, request }).await {
        Ok(Reply::JoinGroup(response)) if !response.error_code.is_error() => response,
        other => panic!("{group}: {other:?}"),
    }
}

async fn sync(
    node: &Arc<Node>,
    group: &str,
    leader: &JoinGroupResponse,
    bytes: usize,
) -> ErrorCode {
    let members = leader.members.iter();
    let assignments = members.map(|member| SyncGroupAssignment {
        member_id: member.member_id.clone(),
        assignment: vec![8; bytes].into(),
    });
    let request = SyncGroupRequest {
        group_id: group.into(),
        generation_id: leader.generation_id,
        member_id: leader.member_id.clone(),
        group_instance_id: Some("i0".into()),
        assignments: assignments.collect(),
        ..SyncGroupRequest::default()
    };
    let version = 3;
    match ask(node, group, Request::SyncGroup { version, request }).await {
        Ok(Reply::SyncGroup(response)) => response.error_code,
        other => panic!("{group}: {other:?}"),
    }
}

/// A group of static members, and what its leader was answered.
async fn group(
    node: &Arc<Node>,
    name: &'static str,
    members: usize,
    bytes: usize,
) -> JoinGroupResponse {
    let mut joining = JoinSet::new();
    for member in 0..members {
        let node = Arc::clone(node);
        joining.spawn(async move { join(&node, name, member, bytes).await });
    }
    let joined = joining.join_all().await;
    let leader = joined.into_iter().find(|one| one.leader == one.member_id);
    leader.expect("a leader")
}

async fn heartbeat(node: &Arc<Node>, group: &str, member: &JoinGroupResponse) -> ErrorCode {
    let request = HeartbeatRequest {
        group_id: group.into(),
        generation_id: member.generation_id,
        member_id: member.member_id.clone(),
        group_instance_id: Some("i0".into()),
    };
    match ask(node, group, Request::Heartbeat { request }).await {
        Ok(Reply::Heartbeat(response)) => response.error_code,
        Err(code) => code,
        other => panic!("{other:?}"),
    }
}

/// What the groups write at once is larger than a segment, and so is each of their records.
#[tokio::test(start_paused = true)]
async fn huge_groups_in_one_shard_do_not_take_it_from_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let broker = Broker::builder()
        .data_dir(folder.path())
        .set("offsets.topic.num.partitions", "1")
        .set("offsets.topic.segment.bytes", "1048576");
    let broker = broker.start().await.unwrap();
    let node = broker.node();
    let neighbor = group(node, "neighbor", 1, 10).await;
    assert_eq!(sync(node, "neighbor", &neighbor, 10).await, ErrorCode::NONE);

    let huge = tokio::join!(
        group(node, "huge-1", 4, MIB / 2),
        group(node, "huge-2", 4, MIB / 2),
        group(node, "huge-3", 4, MIB / 2),
    );
    // What is too large for a group fails by itself.
    let refused = sync(node, "huge-1", &huge.0, 5 * MIB).await;
    assert_eq!(refused, ErrorCode::INVALID_REQUEST);
    let answers = tokio::join!(
        sync(node, "huge-1", &huge.0, MIB / 2),
        sync(node, "huge-2", &huge.1, MIB / 2),
        heartbeat(node, "neighbor", &neighbor),
        sync(node, "huge-3", &huge.2, MIB / 2),
        heartbeat(node, "neighbor", &neighbor),
    );
    assert_eq!(<[ErrorCode; 5]>::from(answers), [ErrorCode::NONE; 5]);
    {
        let topic = node.snapshot().topic(OFFSETS_TOPIC).cloned().unwrap();
        let log = topic.partition(0).unwrap().log().unwrap();
        assert!(log.end_offset() > 5 && log.config().segment_bytes == 1 << 20);
    }
    broker.shutdown().await;

    // They are there after a restart.
    let broker = Broker::builder()
        .data_dir(folder.path())
        .start()
        .await
        .unwrap();
    let beat = heartbeat(broker.node(), "neighbor", &neighbor).await;
    assert_eq!(beat, ErrorCode::NONE);
    let beat = heartbeat(broker.node(), "huge-2", &huge.1).await;
    assert_eq!(beat, ErrorCode::NONE);
    broker.shutdown().await;
}
