//! Requests that are well formed and mean whatever chance makes them mean.

use bytes::Bytes;
use fastrand::Rng;
use kohort_coordinator::*;
use kohort_wire::{ByteString, Uuid, messages::*};

use super::topic;

pub fn pick<T: Clone>(rng: &mut Rng, all: &[T]) -> T {
    all[rng.usize(..all.len())].clone()
}

fn group(rng: &mut Rng) -> ByteString {
    pick(rng, &["g", "g", "g", "h", ""]).into()
}

fn id(rng: &mut Rng) -> ByteString {
    match rng.u8(..12) {
        // Ids as the coordinator gives them out cannot be guessed; consumers choose their own.
        0..=8 => pick(rng, &["x", "y", "z"]).into(),
        9 => " ".into(),
        _ => ByteString::new(),
    }
}

fn text(rng: &mut Rng) -> Option<ByteString> {
    let texts = [
        "", "i", "j", "é\u{0}", "a", "range", "uniform", ".*", "[", "(?:a|b)", "consumer",
    ];
    rng.bool().then(|| pick(rng, &texts).into())
}

fn number(rng: &mut Rng) -> i32 {
    let usual = rng.i32(-3..6);
    pick(
        rng,
        &[usual, usual, usual, usual, i32::MAX, i32::MIN, -1, 0],
    )
}

fn wide(rng: &mut Rng) -> i64 {
    let usual = rng.i64(-3..1_000);
    pick(rng, &[usual, usual, usual, i64::MAX, i64::MIN])
}

fn timeout_ms(rng: &mut Rng) -> i32 {
    pick(
        rng,
        &[6_000, 10_000, 60_000, 1_800_000, 0, -1, i32::MAX, i32::MIN],
    )
}

fn some<T>(rng: &mut Rng, mut one: impl FnMut(&mut Rng) -> T) -> Vec<T> {
    let count = rng.usize(..4);
    (0..count).map(|_| one(rng)).collect()
}

fn topic_name(rng: &mut Rng) -> ByteString {
    pick(rng, &["a", "b", "c", "d", "nothing", ""]).into()
}

fn topic_id(rng: &mut Rng) -> Uuid {
    let name = pick(rng, &["a", "b", "c", "d"]);
    pick(
        rng,
        &[
            topic(name, 1).id,
            topic(name, 1).id,
            Uuid::ZERO,
            Uuid(u128::MAX),
        ],
    )
}

/// What a consumer says of itself, or anything.
fn metadata(rng: &mut Rng) -> Bytes {
    match rng.u8(..4) {
        0 => some(rng, |rng| rng.u8(..)).into(),
        1 => Bytes::new(),
        _ => {
            let (version, name) = (rng.u8(..4), pick(rng, b"abcd"));
            let mut bytes = vec![0, version, 0, 0, 0, 1, 0, 1, name];
            bytes.extend([0xff; 4]);
            if rng.bool() {
                bytes.extend([0; 12]);
            }
            bytes.truncate(bytes.len() - rng.usize(..3));
            bytes.into()
        }
    }
}

fn identity(rng: &mut Rng) -> MemberIdentity {
    MemberIdentity {
        member_id: id(rng),
        group_instance_id: text(rng),
        reason: text(rng),
    }
}

pub fn request(rng: &mut Rng) -> Request {
    match rng.u8(..16) {
        0..=2 => Request::JoinGroup {
            version: rng.i16(0..=9),
            request: JoinGroupRequest {
                group_id: group(rng),
                session_timeout_ms: timeout_ms(rng),
                rebalance_timeout_ms: timeout_ms(rng),
                member_id: if rng.bool() {
                    ByteString::new()
                } else {
                    id(rng)
                },
                group_instance_id: text(rng),
                protocol_type: pick(rng, &["consumer", "consumer", "connect", ""]).into(),
                protocols: some(rng, |rng| JoinGroupProtocol {
                    name: pick(rng, &["range", "roundrobin", ""]).into(),
                    metadata: metadata(rng),
                }),
                reason: text(rng),
            },
        },
        3 => Request::SyncGroup {
            version: rng.i16(0..=5),
            request: SyncGroupRequest {
                group_id: group(rng),
                generation_id: number(rng),
                member_id: id(rng),
                group_instance_id: text(rng),
                protocol_type: text(rng),
                protocol_name: text(rng),
                assignments: some(rng, |rng| SyncGroupAssignment {
                    member_id: id(rng),
                    assignment: metadata(rng),
                }),
            },
        },
        4 => Request::Heartbeat {
            request: HeartbeatRequest {
                group_id: group(rng),
                generation_id: number(rng),
                member_id: id(rng),
                group_instance_id: text(rng),
            },
        },
        5 => Request::LeaveGroup {
            version: rng.i16(0..=5),
            request: LeaveGroupRequest {
                group_id: group(rng),
                member_id: id(rng),
                members: some(rng, identity),
            },
        },
        6..=9 => Request::ConsumerGroupHeartbeat {
            version: rng.i16(0..=1),
            request: consumer_heartbeat(rng),
        },
        10 | 11 => Request::OffsetCommit {
            version: rng.i16(2..=10),
            request: OffsetCommitRequest {
                group_id: group(rng),
                generation_id_or_member_epoch: number(rng),
                member_id: id(rng),
                group_instance_id: text(rng),
                retention_time_ms: wide(rng),
                topics: some(rng, |rng| OffsetCommitRequestTopic {
                    name: topic_name(rng),
                    topic_id: topic_id(rng),
                    partitions: some(rng, |rng| OffsetCommitRequestPartition {
                        partition_index: number(rng),
                        committed_offset: wide(rng),
                        committed_leader_epoch: number(rng),
                        committed_metadata: text(rng),
                    }),
                }),
            },
        },
        12 => Request::OffsetFetch {
            require_stable: rng.bool(),
            request: OffsetFetchRequestGroup {
                group_id: group(rng),
                member_id: rng.bool().then(|| id(rng)),
                member_epoch: number(rng),
                topics: rng.bool().then(|| {
                    some(rng, |rng| OffsetFetchRequestTopics {
                        name: topic_name(rng),
                        topic_id: topic_id(rng),
                        partition_indexes: some(rng, number),
                    })
                }),
            },
        },
        13 => Request::OffsetDelete {
            request: OffsetDeleteRequest {
                group_id: group(rng),
                topics: some(rng, |rng| OffsetDeleteRequestTopic {
                    name: topic_name(rng),
                    partitions: some(rng, |rng| OffsetDeleteRequestPartition {
                        partition_index: number(rng),
                    }),
                }),
            },
        },
        14 => match rng.u8(..4) {
            0 => Request::ListGroups {
                request: ListGroupsRequest {
                    states_filter: some(rng, |rng| text(rng).unwrap_or_default()),
                    types_filter: some(rng, |rng| text(rng).unwrap_or_default()),
                },
            },
            1 => Request::DescribeGroups {
                version: rng.i16(0..=6),
                groups: some(rng, group),
            },
            2 => Request::ConsumerGroupDescribe {
                groups: some(rng, group),
            },
            _ => Request::TopicsDeleted {
                topics: some(rng, topic_name),
            },
        },
        _ => Request::DeleteGroups {
            groups: some(rng, group),
        },
    }
}

fn consumer_heartbeat(rng: &mut Rng) -> ConsumerGroupHeartbeatRequest {
    let joins = rng.bool();
    ConsumerGroupHeartbeatRequest {
        group_id: group(rng),
        member_id: id(rng),
        member_epoch: if joins { 0 } else { number(rng) },
        instance_id: text(rng),
        rack_id: text(rng),
        rebalance_timeout_ms: timeout_ms(rng),
        subscribed_topic_names: (joins || rng.bool()).then(|| some(rng, topic_name)),
        subscribed_topic_regex: text(rng),
        server_assignor: rng.bool().then(|| pick(rng, &["range", "uniform"]).into()),
        topic_partitions: if joins {
            Some(Vec::new())
        } else {
            rng.bool().then(|| {
                some(rng, |rng| TopicIdPartitions {
                    topic_id: topic_id(rng),
                    partitions: some(rng, number),
                })
            })
        },
    }
}
