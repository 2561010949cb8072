//! Rewinds in virtual time.

mod asking;
mod bounded;
mod classic;
mod consumer;
mod crashes;
mod random;
mod repeats;

use kohort_group::rewind::{BEFORE_MEMBER, MARK};
use kohort_wire::{ErrorCode, messages::*};

use crate::{Reply, Request, Token, consumer::tests::world::World};

pub(super) const GROUP: &str = "group";

/// A commit of partitions of topics, by an administrator, with this metadata.
pub(super) fn request(goals: &[(&str, i32, i64)], metadata: &str) -> OffsetCommitRequest {
    let topics = goals.iter().map(
        |&(topic, partition_index, offset)| OffsetCommitRequestTopic {
            name: topic.into(),
            partitions: vec![OffsetCommitRequestPartition {
                partition_index,
                committed_offset: offset,
                committed_metadata: Some(metadata.into()),
                ..OffsetCommitRequestPartition::default()
            }],
            ..OffsetCommitRequestTopic::default()
        },
    );
    OffsetCommitRequest {
        group_id: GROUP.into(),
        topics: topics.collect(),
        ..OffsetCommitRequest::default()
    }
}

pub(super) fn send(world: &mut World, request: OffsetCommitRequest) -> Token {
    world.send(Request::OffsetCommit {
        version: 9,
        request,
    })
}

/// Asks for a rewind.
pub(super) fn rewind(world: &mut World, goals: &[(&str, i32, i64)]) -> Token {
    send(world, request(goals, MARK))
}

/// The answer for each partition, if there is one.
pub(super) fn answer(world: &mut World, token: Token) -> Option<Vec<ErrorCode>> {
    match world.reply(token)? {
        Reply::OffsetCommit(response) => {
            let topics = response.topics.iter();
            let partitions = topics.flat_map(|topic| &topic.partitions);
            Some(partitions.map(|partition| partition.error_code).collect())
        }
        other => panic!("{other:?}"),
    }
}

/// Whether the rewind has happened.
pub(super) fn is_done(world: &mut World, token: Token) -> bool {
    match answer(world, token) {
        Some(codes) => {
            assert!(codes.iter().all(|code| !code.is_error()), "{codes:?}");
            true
        }
        None => false,
    }
}

/// A member's commit.
pub(super) fn commit(
    world: &mut World,
    member_id: &str,
    epoch: i32,
    (topic, partition, offset): (&str, i32, i64),
) -> ErrorCode {
    let request = OffsetCommitRequest {
        generation_id_or_member_epoch: epoch,
        member_id: member_id.into(),
        ..request(&[(topic, partition, offset)], "")
    };
    let token = send(world, request);
    answer(world, token).expect("answered at once")[0]
}

fn fetch(world: &mut World, request: OffsetFetchRequestGroup) -> Vec<OffsetFetchResponseTopics> {
    let request = Request::OffsetFetch {
        request: OffsetFetchRequestGroup {
            group_id: GROUP.into(),
            member_epoch: -1,
            ..request
        },
        require_stable: true,
    };
    match world.request(request) {
        Some(Reply::OffsetFetch(response)) => {
            assert_eq!(response.error_code, ErrorCode::NONE);
            response.topics
        }
        other => panic!("{other:?}"),
    }
}

/// What is committed for partitions of a topic.
pub(super) fn committed(world: &mut World, topic: &str, partitions: &[i32]) -> Vec<i64> {
    let request = OffsetFetchRequestGroup {
        topics: Some(vec![OffsetFetchRequestTopics {
            name: topic.into(),
            partition_indexes: partitions.to_vec(),
            ..OffsetFetchRequestTopics::default()
        }]),
        ..OffsetFetchRequestGroup::default()
    };
    let topics = fetch(world, request);
    let partitions = topics.iter().flat_map(|topic| &topic.partitions);
    partitions.map(|p| p.committed_offset).collect()
}

/// What was committed before the last rewind: partition, offset, metadata.
pub(super) fn before(world: &mut World) -> Vec<(i32, i64, String)> {
    seen_by(world, BEFORE_MEMBER)
}

/// What the member is shown: partition, offset, metadata.
pub(super) fn seen_by(world: &mut World, member_id: &str) -> Vec<(i32, i64, String)> {
    let request = OffsetFetchRequestGroup {
        member_id: Some(member_id.into()),
        topics: None,
        ..OffsetFetchRequestGroup::default()
    };
    let topics = fetch(world, request);
    let partitions = topics.iter().flat_map(|topic| &topic.partitions);
    let before = partitions.map(|partition| {
        let metadata = partition.metadata.as_deref().unwrap_or_default();
        (
            partition.partition_index,
            partition.committed_offset,
            metadata.to_owned(),
        )
    });
    before.collect()
}

pub(super) fn has_event(world: &World, part: &str) -> bool {
    world
        .events
        .iter()
        .any(|event| event.what.to_string().contains(part))
}
