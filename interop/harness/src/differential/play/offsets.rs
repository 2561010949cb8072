//! Commits, fetches and deletions of offsets.

use std::collections::BTreeMap;

use kohort_wire::ByteString;
use kohort_wire::messages::*;

use super::Play;
use crate::differential::step::*;
use crate::failure::Failure;

impl Play<'_> {
    pub(super) fn committer(&mut self, who: &Committer) -> (ByteString, i32, Option<String>) {
        match who {
            Committer::NoMember => (ByteString::default(), -1, None),
            Committer::Classic(who) => (
                self.classic_id(who),
                self.generation(who),
                who.instance.clone(),
            ),
            Committer::Consumer(who) => {
                (self.consumer_id(who), self.epoch(who), who.instance.clone())
            }
        }
    }

    pub(super) fn commit(
        &mut self,
        version: i16,
        who: &Committer,
        offsets: &[Offset],
    ) -> Result<(), Failure> {
        let (member_id, generation, instance) = self.committer(who);
        let mut topics: BTreeMap<Topic, Vec<OffsetCommitRequestPartition>> = BTreeMap::new();
        for offset in offsets {
            topics
                .entry(offset.topic)
                .or_default()
                .push(OffsetCommitRequestPartition {
                    partition_index: offset.partition,
                    committed_offset: offset.offset,
                    committed_leader_epoch: offset.leader_epoch,
                    committed_metadata: offset.metadata.as_deref().map(ByteString::from),
                });
        }
        let topics = topics
            .into_iter()
            .map(|(topic, partitions)| OffsetCommitRequestTopic {
                name: self.topic_name(topic),
                topic_id: self.topic_id(topic),
                partitions,
            })
            .collect();
        let request = OffsetCommitRequest {
            group_id: self.group(),
            generation_id_or_member_epoch: generation,
            member_id,
            group_instance_id: instance.filter(|_| version >= 7).map(ByteString::from),
            topics,
            ..Default::default()
        };
        let answer = self.ask(&request, version)?;
        self.note(answer);
        Ok(())
    }

    pub(super) fn fetch(
        &mut self,
        version: i16,
        who: &Committer,
        partitions: Option<&[(Topic, i32)]>,
    ) -> Result<(), Failure> {
        let (member_id, epoch, _) = self.committer(who);
        let by_topic = partitions.map(by_topic);
        let mut request = OffsetFetchRequest {
            ..Default::default()
        };
        if version < 8 {
            request.group_id = self.group();
            request.topics = by_topic.map(|all| {
                let topics =
                    all.into_iter()
                        .map(|(topic, partition_indexes)| OffsetFetchRequestTopic {
                            name: self.topic_name(topic),
                            partition_indexes,
                        });
                topics.collect()
            });
        } else {
            request.groups = vec![OffsetFetchRequestGroup {
                group_id: self.group(),
                member_id: (*who != Committer::NoMember).then_some(member_id),
                member_epoch: epoch,
                topics: by_topic.map(|all| {
                    let topics = all.into_iter().map(|(topic, partition_indexes)| {
                        OffsetFetchRequestTopics {
                            name: self.topic_name(topic),
                            topic_id: self.topic_id(topic),
                            partition_indexes,
                        }
                    });
                    topics.collect()
                }),
            }];
        }
        let answer = self.ask(&request, version)?;
        self.note(answer);
        Ok(())
    }

    pub(super) fn delete_offsets(&mut self, partitions: &[(Topic, i32)]) -> Result<(), Failure> {
        let topics = by_topic(partitions)
            .into_iter()
            .map(|(topic, partitions)| OffsetDeleteRequestTopic {
                name: self.topic_name(topic),
                partitions: partitions
                    .into_iter()
                    .map(|partition_index| OffsetDeleteRequestPartition { partition_index })
                    .collect(),
            })
            .collect();
        let request = OffsetDeleteRequest {
            group_id: self.group(),
            topics,
        };
        let answer = self.ask(&request, 0)?;
        self.note(answer);
        Ok(())
    }
}

fn by_topic(partitions: &[(Topic, i32)]) -> BTreeMap<Topic, Vec<i32>> {
    let mut topics: BTreeMap<Topic, Vec<i32>> = BTreeMap::new();
    for &(topic, partition) in partitions {
        topics.entry(topic).or_default().push(partition);
    }
    topics
}
