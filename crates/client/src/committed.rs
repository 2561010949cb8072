//! The offsets that a group has committed: reading them and the form of commits.

use std::time::Duration;

use bytestring::ByteString;
use kohort_group::rewind;
/// The member that commits or asks.
pub(crate) use kohort_member::Identity as Committer;
use kohort_wire::{ApiKey, codec::Versions, messages::*};
use rustc_hash::FxHashMap;

use crate::{
    CommittedOffset, Each, Error, Result, Subject, TopicPartition, Uuid,
    by_leader::by_topic,
    error::check,
    rpc::{Cluster, Destination, Lane},
};

/// The ids of topics, by name.
pub(crate) type TopicIds = FxHashMap<ByteString, Uuid>;

/// What `group_id` has committed for `partitions`, or for all. `member` is who asks, in the
/// consumer protocol. With `stable`, offsets of open transactions are waited for. If the `ids` of all
/// topics are known, offsets of an earlier topic with the same name are not returned; brokers that
/// don't know version 10 are asked by name.
pub(crate) async fn committed_offsets(
    cluster: &Cluster,
    group_id: &str,
    member: Option<&Committer>,
    partitions: Option<&[TopicPartition]>,
    ids: &TopicIds,
    stable: bool,
    timeout: Duration,
) -> Result<Each<TopicPartition, Option<CommittedOffset>>> {
    let topics = partitions.map(|partitions| {
        by_topic(partitions.iter().map(|partition| (partition.clone(), ())))
            .into_iter()
            .map(|(name, partitions)| {
                let indexes: Vec<_> = partitions.into_iter().map(|(index, ())| index).collect();
                (name, indexes)
            })
            .collect::<Vec<_>>()
    });
    let to = Destination::Group(group_id.into());
    let request = |version| request(group_id, member, topics.as_deref(), ids, stable, version);
    // All partitions can be asked for since version 2; version 10 names topics by id.
    let oldest = if partitions.is_some() { 1 } else { 2 };
    let has_ids =
        |partitions: &[TopicPartition]| partitions.iter().all(|name| ids.contains_key(&name.topic));
    let newest = if partitions.is_some_and(has_ids) {
        10
    } else {
        9
    };
    let versions = Versions::new(oldest, newest);
    let lane = Lane::Group;
    let ask = cluster.ask_within(&to, lane, versions, timeout, request, |response| {
        retried(group_id, response)
    });
    Ok(results(ask.await?, ids))
}

fn request(
    group_id: &str,
    member: Option<&Committer>,
    topics: Option<&[(ByteString, Vec<i32>)]>,
    ids: &TopicIds,
    stable: bool,
    version: i16,
) -> OffsetFetchRequest {
    let topics = topics.map(<[_]>::iter);
    if version <= 7 {
        let topics = topics.map(|topics| {
            topics
                .map(|(name, indexes)| OffsetFetchRequestTopic {
                    name: name.clone(),
                    partition_indexes: indexes.clone(),
                })
                .collect()
        });
        return OffsetFetchRequest {
            group_id: group_id.into(),
            topics,
            require_stable: stable && version == 7,
            ..Default::default()
        };
    }
    let topics = topics.map(|topics| {
        topics
            .map(|(name, indexes)| OffsetFetchRequestTopics {
                name: name.clone(),
                topic_id: ids.get(name).copied().unwrap_or_default(),
                partition_indexes: indexes.clone(),
            })
            .collect()
    });
    let member = member.filter(|member| member.consumer_protocol);
    OffsetFetchRequest {
        groups: vec![OffsetFetchRequestGroup {
            group_id: group_id.into(),
            member_id: member.map(|member| member.member_id.clone()),
            member_epoch: member.map_or(-1, |member| member.epoch),
            topics,
        }],
        require_stable: stable,
        ..Default::default()
    }
}

/// Errors of the whole request, and those of partitions that go away by themselves.
fn retried(group_id: &str, response: &OffsetFetchResponse) -> Result<()> {
    let subject = || Subject::Group(group_id.into());
    check(ApiKey::OffsetFetch, response.error_code, None, subject)?;
    let groups = &response.groups;
    for group in groups {
        check(ApiKey::OffsetFetch, group.error_code, None, subject)?;
    }
    let old = response.topics.iter().flat_map(|topic| &topic.partitions);
    let new = groups
        .iter()
        .flat_map(|group| &group.topics)
        .flat_map(|topic| &topic.partitions);
    let mut codes = old.map(|p| p.error_code).chain(new.map(|p| p.error_code));
    let unstable = kohort_wire::ErrorCode::UNSTABLE_OFFSET_COMMIT;
    match codes.find(|code| *code == unstable) {
        Some(code) => check(ApiKey::OffsetFetch, code, None, subject),
        None => Ok(()),
    }
}

fn results(
    response: OffsetFetchResponse,
    ids: &TopicIds,
) -> Each<TopicPartition, Option<CommittedOffset>> {
    let names: FxHashMap<Uuid, &ByteString> = ids.iter().map(|(name, id)| (*id, name)).collect();
    let mut results = Vec::new();
    for topic in response.topics {
        for p in topic.partitions {
            let name = TopicPartition::new(&*topic.name, p.partition_index);
            let answer = (p.committed_offset, p.committed_leader_epoch, p.metadata);
            results.push(result(name, p.error_code, answer));
        }
    }
    for topic in response.groups.into_iter().flat_map(|group| group.topics) {
        let by_id = names.get(&topic.topic_id).filter(|_| topic.name.is_empty());
        let topic_name = by_id.map_or(&topic.name, |name| *name);
        for p in topic.partitions {
            let name = TopicPartition::new(topic_name.clone(), p.partition_index);
            let answer = (p.committed_offset, p.committed_leader_epoch, p.metadata);
            results.push(result(name, p.error_code, answer));
        }
    }
    results
}

fn result(
    partition: TopicPartition,
    code: kohort_wire::ErrorCode,
    (offset, epoch, metadata): (i64, i32, Option<ByteString>),
) -> (TopicPartition, Result<Option<CommittedOffset>>) {
    let subject = || Subject::Partition(partition.clone());
    let result = check(ApiKey::OffsetFetch, code, None, subject).map(|()| {
        (offset >= 0).then(|| CommittedOffset {
            offset,
            leader_epoch: (epoch >= 0).then_some(epoch),
            metadata: metadata
                .as_deref()
                .map_or_else(ByteString::new, ByteString::from),
            topic_id: None,
        })
    });
    (partition, result)
}

/// Refuses what is not an offset or not a leader's epoch, which Kafka would store. A marked rewind may
/// have no offset to go to.
pub(crate) fn check_numbers(offsets: &[(TopicPartition, CommittedOffset)]) -> Result<()> {
    for (name, committed) in offsets {
        let is_rewind = committed.metadata.starts_with(rewind::MARK);
        if committed.offset < 0 && !is_rewind {
            let offset = committed.offset;
            return Err(Error::State(format!(
                "cannot commit {offset} for {name}: offsets start at 0"
            )));
        }
        if let Some(epoch @ ..0) = committed.leader_epoch {
            return Err(Error::State(format!(
                "cannot commit leader epoch {epoch} for {name}: epochs start at 0"
            )));
        }
    }
    Ok(())
}

pub(crate) fn commit_request(
    group_id: &str,
    committer: Option<&Committer>,
    offsets: &[(TopicPartition, CommittedOffset)],
) -> OffsetCommitRequest {
    let topics = by_topic(offsets.iter().cloned())
        .into_iter()
        .map(|(name, partitions)| {
            let topic_id = partitions.first().and_then(|(_, offset)| offset.topic_id);
            let partitions = partitions.into_iter().map(|(partition_index, committed)| {
                OffsetCommitRequestPartition {
                    partition_index,
                    committed_offset: committed.offset,
                    committed_leader_epoch: committed.leader_epoch.unwrap_or(-1),
                    committed_metadata: Some(committed.metadata),
                }
            });
            OffsetCommitRequestTopic {
                name,
                topic_id: topic_id.unwrap_or_default(),
                partitions: partitions.collect(),
            }
        });
    OffsetCommitRequest {
        group_id: group_id.into(),
        generation_id_or_member_epoch: committer.map_or(-1, |member| member.epoch),
        member_id: committer.map_or_else(ByteString::new, |member| member.member_id.clone()),
        group_instance_id: committer.and_then(|member| member.instance_id.clone()),
        topics: topics.collect(),
        ..Default::default()
    }
}

pub(crate) fn commit_response(response: OffsetCommitResponse) -> Each<TopicPartition, ()> {
    let mut results = Vec::new();
    for topic in response.topics {
        for partition in topic.partitions {
            let name = TopicPartition::new(&*topic.name, partition.partition_index);
            let subject = || Subject::Partition(name.clone());
            let result = check(ApiKey::OffsetCommit, partition.error_code, None, subject);
            results.push((name, result));
        }
    }
    results
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_asked_for_and_told_apart_by_the_ids_of_topics() {
        let (name, id) = (ByteString::from("orders"), Uuid::from_bytes([7; 16]));
        let ids = TopicIds::from_iter([(name.clone(), id)]);
        let topics = [(name, vec![3])];
        let mut asked = request("g", None, Some(&topics), &ids, true, 10).groups;
        let topic = asked.pop().unwrap().topics.unwrap().pop().unwrap();
        assert_eq!((topic.topic_id, topic.partition_indexes), (id, vec![3]));

        let answer = |topic_id| OffsetFetchResponse {
            groups: vec![OffsetFetchResponseGroup {
                topics: vec![OffsetFetchResponseTopics {
                    topic_id,
                    partitions: vec![OffsetFetchResponsePartitions {
                        partition_index: 3,
                        committed_offset: 5,
                        ..Default::default()
                    }],
                    ..Default::default()
                }],
                ..Default::default()
            }],
            ..Default::default()
        };
        let (partition, committed) = results(answer(id), &ids).pop().unwrap();
        assert_eq!(partition, TopicPartition::new("orders", 3));
        assert_eq!(committed.unwrap().unwrap().offset, 5);
        let (partition, _) = results(answer(Uuid::from_bytes([8; 16])), &ids)
            .pop()
            .unwrap();
        assert_ne!(partition.topic, "orders");
    }
}
