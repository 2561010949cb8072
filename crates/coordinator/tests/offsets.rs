//! Committed offsets, stepped through virtual time.

mod world;

use kohort_coordinator::*;
use kohort_group::rewind;
use kohort_wire::{ErrorCode, Uuid, messages::*};
use world::{World, commit_partition, commit_request, subscription, topic};

const DAY_MS: i64 = 24 * 3_600_000;

/// A group `g` of one member, subscribed to topic `b`, and the member's id.
fn group_of_one(world: &mut World, session_timeout_ms: i32) -> String {
    let mut request = JoinGroupRequest {
        group_id: "g".into(),
        session_timeout_ms,
        rebalance_timeout_ms: 10_000,
        protocol_type: "consumer".into(),
        protocols: vec![JoinGroupProtocol {
            name: "range".into(),
            metadata: subscription(&["b"]),
        }],
        ..JoinGroupRequest::default()
    };
    let Reply::JoinGroup(response) = world.ask(Request::JoinGroup {
        version: 9,
        request: request.clone(),
    }) else {
        panic!()
    };
    request.member_id = response.member_id.clone();
    let token = world.send(Request::JoinGroup {
        version: 9,
        request,
    });
    world.advance(3_000);
    assert!(world.take(token).is_some());
    let request = SyncGroupRequest {
        group_id: "g".into(),
        generation_id: 1,
        member_id: response.member_id.clone(),
        ..SyncGroupRequest::default()
    };
    world.ask(Request::SyncGroup {
        version: 5,
        request,
    });
    response.member_id.to_string()
}

fn delete_offsets(world: &mut World, topic: &str, partitions: &[i32]) -> OffsetDeleteResponse {
    let partitions = partitions
        .iter()
        .map(|&partition_index| OffsetDeleteRequestPartition { partition_index });
    let request = OffsetDeleteRequest {
        group_id: "g".into(),
        topics: vec![OffsetDeleteRequestTopic {
            name: topic.into(),
            partitions: partitions.collect(),
        }],
    };
    match world.ask(Request::OffsetDelete { request }) {
        Reply::OffsetDelete(response) => response,
        other => panic!("{other:?}"),
    }
}

#[test]
fn offsets_are_kept_across_a_restart() {
    let mut world = World::new();
    assert_eq!(world.commit("g", "", -1, &[10, 20]), [ErrorCode::NONE; 2]);
    assert_eq!(world.committed("g"), [10, 20, -1, -1]);
    world.restart();
    assert_eq!(world.committed("g"), [10, 20, -1, -1]);
    assert_eq!(world.groups(), ["g"]);
}

/// ydb PR 49893.
#[test]
fn an_offset_that_was_never_committed_is_minus_one_without_an_error() {
    let mut world = World::new();
    assert_eq!(world.committed("nobody"), [-1; 4]);
    let request = OffsetFetchRequestGroup {
        group_id: "nobody".into(),
        topics: None,
        ..OffsetFetchRequestGroup::default()
    };
    let Reply::OffsetFetch(response) = world.ask(Request::OffsetFetch {
        request,
        require_stable: true,
    }) else {
        panic!()
    };
    assert_eq!(
        (response.error_code, response.topics.len()),
        (ErrorCode::NONE, 0)
    );
    assert!(world.groups().is_empty(), "asking makes no group");
}

#[test]
fn a_commit_from_an_older_generation_or_by_a_stranger_changes_nothing() {
    let mut world = World::new();
    let member = group_of_one(&mut world, 10_000);
    assert_eq!(world.commit("g", &member, 1, &[10]), [ErrorCode::NONE]);
    assert_eq!(
        world.commit("g", &member, 0, &[1]),
        [ErrorCode::ILLEGAL_GENERATION]
    );
    assert_eq!(
        world.commit("g", &member, 2, &[1]),
        [ErrorCode::ILLEGAL_GENERATION]
    );
    assert_eq!(
        world.commit("g", "stranger", 1, &[1]),
        [ErrorCode::UNKNOWN_MEMBER_ID]
    );
    assert_eq!(
        world.commit("g", "", -1, &[1]),
        [ErrorCode::UNKNOWN_MEMBER_ID]
    );
    assert_eq!(world.committed("g"), [10, -1, -1, -1]);
}

#[test]
fn a_commit_with_a_generation_to_a_group_that_does_not_exist_is_refused() {
    let mut world = World::new();
    assert_eq!(
        world.commit("g", "m", 3, &[1]),
        [ErrorCode::GROUP_ID_NOT_FOUND]
    );
    let topics = vec![OffsetCommitRequestTopic {
        name: "a".into(),
        partitions: vec![commit_partition(0, 1)],
        ..OffsetCommitRequestTopic::default()
    }];
    let request = OffsetCommitRequest {
        topics,
        ..commit_request("g", "m", 3)
    };
    assert_eq!(world.commit_as(8, request), [ErrorCode::ILLEGAL_GENERATION]);
}

#[test]
fn metadata_over_the_limit_fails_for_that_partition_alone() {
    let mut world = World::new();
    let partition = |index, length| OffsetCommitRequestPartition {
        committed_metadata: Some("m".repeat(length).into()),
        ..commit_partition(index, 7)
    };
    let request = OffsetCommitRequest {
        topics: vec![OffsetCommitRequestTopic {
            name: "a".into(),
            partitions: vec![partition(0, 4_096), partition(1, 4_097)],
            ..OffsetCommitRequestTopic::default()
        }],
        ..commit_request("g", "", -1)
    };
    let codes = world.commit_as(9, request);
    assert_eq!(
        codes,
        [ErrorCode::NONE, ErrorCode::OFFSET_METADATA_TOO_LARGE]
    );
    assert_eq!(world.committed("g"), [7, -1, -1, -1]);
}

#[test]
fn negative_offsets_and_leader_epochs_fail_for_their_partitions_alone() {
    let mut world = World::new();
    let partitions = [(-1, -1), (-1001, 3), (7, -2), (8, -1)];
    let partitions = partitions.iter().enumerate();
    let partitions = partitions.map(|(index, &(offset, leader_epoch))| {
        let partition = commit_partition(index as i32, offset);
        OffsetCommitRequestPartition {
            committed_leader_epoch: leader_epoch,
            ..partition
        }
    });
    let request = OffsetCommitRequest {
        topics: vec![OffsetCommitRequestTopic {
            name: "a".into(),
            partitions: partitions.collect(),
            ..OffsetCommitRequestTopic::default()
        }],
        ..commit_request("g", "", -1)
    };
    assert_eq!(
        world.commit_as(9, request),
        [
            ErrorCode::OFFSET_OUT_OF_RANGE,
            ErrorCode::OFFSET_OUT_OF_RANGE,
            ErrorCode::INVALID_REQUEST,
            ErrorCode::NONE
        ]
    );
    assert_eq!(world.committed("g"), [-1, -1, -1, 8]);
}

#[test]
fn a_marked_rewind_may_have_no_offset_but_no_negative_leader_epoch() {
    let mut world = World::new();
    world.commit("g", "", -1, &[7, 7]);
    let request = |leader_epoch| {
        let partition = OffsetCommitRequestPartition {
            committed_leader_epoch: leader_epoch,
            committed_metadata: Some(rewind::MARK.into()),
            ..commit_partition(0, -1)
        };
        OffsetCommitRequest {
            topics: vec![OffsetCommitRequestTopic {
                name: "a".into(),
                partitions: vec![partition],
                ..OffsetCommitRequestTopic::default()
            }],
            ..commit_request("g", "", -1)
        }
    };
    let refused = world.commit_as(9, request(-2));
    assert_eq!(refused, [ErrorCode::INVALID_REQUEST]);
    assert_eq!(world.commit_as(9, request(-1)), [ErrorCode::NONE]);
    assert_eq!(world.committed("g"), [-1, 7, -1, -1]);
}

#[test]
fn a_negative_offset_in_an_old_log_is_none() {
    let mut world = World::new();
    let committed = |partition, offset, leader_epoch| {
        let key = OffsetCommitKey {
            group: "g".into(),
            topic: "a".into(),
            partition,
        };
        let value = OffsetCommitValue {
            offset,
            leader_epoch,
            ..OffsetCommitValue::default()
        };
        let record = Record::OffsetCommit(key, Some(value));
        record.encode().expect("encodable")
    };
    world.log = vec![
        committed(0, 7, -1),
        committed(0, -5, -1),
        committed(1, -1, -1),
    ];
    world.restart();
    assert_eq!(world.committed("g"), [-1; 4]);
    assert_eq!(world.shard.group_count(), 0);
    world.log.push(committed(2, 7, -9));
    world.restart();
    assert_eq!(world.committed("g"), [-1, -1, 7, -1]);
    assert_eq!(world.commit("g", "", -1, &[1]), [ErrorCode::NONE]);
}

#[test]
fn a_topic_that_does_not_exist_fails_alone() {
    let mut world = World::new();
    let topics =
        [("a", 0), ("nothing", 0), ("b", 99)].map(|(name, partition)| OffsetCommitRequestTopic {
            name: name.into(),
            partitions: vec![commit_partition(partition, 7)],
            ..OffsetCommitRequestTopic::default()
        });
    let request = OffsetCommitRequest {
        topics: topics.to_vec(),
        ..commit_request("g", "", -1)
    };
    let unknown = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
    assert_eq!(
        world.commit_as(9, request),
        [ErrorCode::NONE, unknown, unknown]
    );
    assert_eq!(world.committed("g"), [7, -1, -1, -1]);
}

#[test]
fn a_commit_is_as_good_as_a_heartbeat() {
    let mut world = World::new();
    let member = group_of_one(&mut world, 10_000);
    for _ in 0..5 {
        world.advance(9_000);
        assert_eq!(world.commit("g", &member, 1, &[1]), [ErrorCode::NONE]);
    }
    world.advance(10_000);
    assert_eq!(
        world.commit("g", &member, 1, &[1]),
        [ErrorCode::UNKNOWN_MEMBER_ID]
    );
}

/// kop #1289.
#[test]
fn a_commit_is_seen_by_whoever_asks_next() {
    let mut world = World::new();
    let member = group_of_one(&mut world, 10_000);
    world.commit("g", &member, 1, &[42]);
    assert_eq!(world.committed("g")[0], 42);
}

#[test]
fn an_offset_of_a_topic_created_again_under_its_name_is_not_handed_out() {
    let before = topic("a", 4).id;
    // Whether the commit names the topic by its id or by its name.
    for topic_id in [before, Uuid::ZERO] {
        let mut world = World::new();
        assert_eq!(
            world.commit_as(10, commit_of_a(topic_id)),
            [ErrorCode::NONE]
        );
        // The broker was lost before it had the offset deleted.
        world.set_topics([Topic {
            id: Uuid(2),
            ..topic("a", 4)
        }]);
        world.restart();
        let mut fetch = |topic_id| {
            let request = OffsetFetchRequestGroup {
                group_id: "g".into(),
                topics: Some(vec![OffsetFetchRequestTopics {
                    name: "a".into(),
                    topic_id,
                    partition_indexes: vec![0],
                }]),
                ..OffsetFetchRequestGroup::default()
            };
            match world.ask(Request::OffsetFetch {
                request,
                require_stable: false,
            }) {
                Reply::OffsetFetch(response) => response.topics[0].partitions[0].committed_offset,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(
            [before, Uuid(2), Uuid::ZERO].map(&mut fetch),
            [7, -1, -1],
            "{topic_id}"
        );
    }
}

#[test]
fn a_commit_for_a_topic_that_had_the_name_before_is_refused() {
    let mut world = World::new();
    let answer = world.commit_as(10, commit_of_a(Uuid(1)));
    assert_eq!(answer, [ErrorCode::UNKNOWN_TOPIC_ID]);
}

fn commit_of_a(topic_id: Uuid) -> OffsetCommitRequest {
    OffsetCommitRequest {
        topics: vec![OffsetCommitRequestTopic {
            name: "a".into(),
            topic_id,
            partitions: vec![commit_partition(0, 7)],
        }],
        ..commit_request("g", "", -1)
    }
}

#[test]
fn offsets_of_topics_in_use_are_not_deleted() {
    let mut world = World::new();
    let member = group_of_one(&mut world, 10_000);
    world.commit("g", &member, 1, &[1, 2]);
    let response = delete_offsets(&mut world, "b", &[0]);
    let in_use = ErrorCode::GROUP_SUBSCRIBED_TO_TOPIC;
    assert_eq!(response.topics[0].partitions[0].error_code, in_use);
    let response = delete_offsets(&mut world, "a", &[0, 3]);
    assert!(
        response.topics[0]
            .partitions
            .iter()
            .all(|p| p.error_code == ErrorCode::NONE)
    );
    assert_eq!(world.committed("g"), [-1, 2, -1, -1]);
    world.restart();
    assert_eq!(world.committed("g"), [-1, 2, -1, -1]);
}

#[test]
fn a_group_with_members_is_not_deleted() {
    let mut world = World::new();
    group_of_one(&mut world, 10_000);
    assert_eq!(world.delete_group("g"), ErrorCode::NON_EMPTY_GROUP);
    assert_eq!(world.delete_group("h"), ErrorCode::GROUP_ID_NOT_FOUND);
}

/// redpanda #4900.
#[test]
fn a_deleted_group_stays_deleted_after_a_restart() {
    let mut world = World::new();
    let member = group_of_one(&mut world, 10_000);
    world.commit("g", &member, 1, &[1, 2, 3]);
    world.advance(10_000);
    assert_eq!(world.delete_group("g"), ErrorCode::NONE);
    for _ in 0..2 {
        assert!(world.groups().is_empty());
        assert_eq!(world.committed("g"), [-1; 4]);
        world.restart();
    }
}

#[test]
fn offsets_of_a_deleted_topic_go_with_it() {
    // Whether the news of it comes first or last.
    for is_first in [true, false] {
        let mut world = World::new();
        world.commit("g", "", -1, &[1, 2]);
        if is_first {
            world.set_topics([topic("b", 4)]);
        }
        world.ask(Request::TopicsDeleted {
            topics: vec!["a".into()],
        });
        if !is_first {
            world.set_topics([topic("b", 4)]);
        }
        assert_eq!(world.committed("g"), [-1; 4]);
        world.restart();
        assert_eq!(world.committed("g"), [-1; 4]);
    }
}

#[test]
fn offsets_of_a_group_without_members_expire_by_the_time_of_the_commit() {
    let mut world = World::new();
    world.commit("g", "", -1, &[1]);
    world.advance(6 * DAY_MS);
    world.commit("g", "", -1, &[1, 2]);
    world.advance(2 * DAY_MS);
    assert_eq!(world.committed("g"), [1, 2, -1, -1]);
    world.advance(5 * DAY_MS + 600_000);
    assert_eq!(world.committed("g"), [-1; 4]);
}

#[test]
fn offsets_of_an_emptied_group_expire_by_when_it_became_empty() {
    let mut world = World::new();
    let member = group_of_one(&mut world, 1_800_000);
    world.commit("g", &member, 1, &[1]);
    for _ in 0..8 * DAY_MS / 1_700_000 {
        world.advance(1_700_000);
        let request = HeartbeatRequest {
            group_id: "g".into(),
            generation_id: 1,
            member_id: member.as_str().into(),
            group_instance_id: None,
        };
        world.ask(Request::Heartbeat { request });
    }
    assert_eq!(
        world.committed("g"),
        [-1; 4],
        "nobody subscribes to the topic"
    );
    world.commit("g", &member, 1, &[1]);
    world.advance(6 * DAY_MS);
    assert_eq!(world.committed("g")[0], 1);
    world.restart();
    world.advance(DAY_MS + 3_600_000);
    assert_eq!(world.committed("g"), [-1; 4]);
    assert!(world.groups().is_empty());
}

/// redpanda #23054.
#[test]
fn short_lived_groups_leave_no_lasting_memory() {
    let config = Config {
        offsets_retention_check_interval_ms: DAY_MS,
        ..Config::default()
    };
    let mut world = World::with(config);
    for index in 0..200_000 {
        world.commit(&format!("group-{index}"), "", -1, &[1]);
    }
    assert_eq!(world.shard.group_count(), 200_000);
    world.advance(9 * DAY_MS);
    assert_eq!(world.shard.group_count(), 0);
    world.restart();
    assert_eq!(world.shard.group_count(), 0);
}

/// KAFKA-17306.
#[test]
fn replay_survives_tombstones_for_what_is_not_there_and_unknown_types() {
    let mut world = World::new();
    world.commit("g", "", -1, &[1]);
    world.delete_group("g");
    let tombstones: Vec<_> = world
        .log
        .iter()
        .filter(|(_, v)| v.is_none())
        .cloned()
        .collect();
    world.log = tombstones;
    let unknown = bytes::Bytes::from_static(&[0, 15, 1, 2, 3]);
    world.log.push((unknown.clone(), Some(unknown)));
    world.restart();
    assert_eq!(world.shard.group_count(), 0);
    let broken = bytes::Bytes::from_static(&[0, 1, 0, 99]);
    assert!(world.shard.load(broken, None).is_err());
}

#[test]
fn a_topic_that_grows_takes_commits_of_its_new_partitions() {
    let mut world = World::new();
    let unknown = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
    assert_eq!(world.commit("g", "", -1, &[1; 5])[4], unknown);
    world.set_topics([topic("a", 5)]);
    assert_eq!(world.commit("g", "", -1, &[1; 5])[4], ErrorCode::NONE);
}
