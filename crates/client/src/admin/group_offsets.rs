//! The committed offsets of groups.

use kohort_wire::{
    ApiKey, ErrorCode,
    codec::{Message, Versions},
    messages::*,
};

use super::{Admin, group, groups::subject, repeated, retriable};
use crate::{
    CommittedOffset, Each, Result, Subject, TopicPartition,
    by_leader::by_topic,
    committed::{TopicIds, check_numbers, commit_request, commit_response, committed_offsets},
    error::check,
    rpc::Lane,
};

impl Admin {
    /// What a group has committed for `partitions`, or for all of its partitions. A partition for
    /// which nothing was committed has none.
    pub async fn list_group_offsets(
        &self,
        group_id: &str,
        partitions: Option<&[TopicPartition]>,
    ) -> Result<Each<TopicPartition, Option<CommittedOffset>>> {
        let timeout = self.cluster.config().api_timeout;
        committed_offsets(
            &self.cluster,
            group_id,
            None,
            partitions,
            &TopicIds::default(),
            true,
            timeout,
        )
        .await
    }

    /// Sets what a group has committed. It must have no members. Negative offsets and leader epochs are
    /// refused: to remove an offset, use [`delete_group_offsets`](Self::delete_group_offsets).
    ///
    /// A second attempt, after one whose answer was lost, sets the same again; what others have
    /// committed in between is lost by that.
    pub async fn alter_group_offsets(
        &self,
        group_id: &str,
        offsets: &[(TopicPartition, CommittedOffset)],
    ) -> Result<Each<TopicPartition, ()>> {
        check_numbers(offsets)?;
        let request = commit_request(group_id, None, offsets);
        let retried = |response: &OffsetCommitResponse| {
            let codes = response.topics.iter().flat_map(|topic| &topic.partitions);
            super::topics::moved(
                ApiKey::OffsetCommit,
                codes.map(|partition| partition.error_code),
            )
        };
        // Version 10 names topics by id; names are what was given.
        let versions = Versions::new(2, 9);
        let timeout = self.cluster.config().api_timeout;
        let to = group(group_id);
        let request = |_| request.clone();
        let ask = self
            .cluster
            .ask_within(&to, Lane::Main, versions, timeout, request, retried);
        Ok(commit_response(ask.await?))
    }

    /// Deletes what a group has committed, for partitions of topics to which no member subscribes.
    ///
    /// It is no error if nothing was committed. A group without members is gone with its last
    /// offset: if the answer to an attempt was lost and the next one finds that there is no such
    /// group, that is [`Error::Repeated`](crate::Error::Repeated).
    pub async fn delete_group_offsets(
        &self,
        group_id: &str,
        partitions: &[TopicPartition],
    ) -> Result<Each<TopicPartition, ()>> {
        const API: ApiKey = ApiKey::OffsetDelete;
        let topics = by_topic(partitions.iter().map(|partition| (partition.clone(), ())));
        let topics = topics
            .into_iter()
            .map(|(name, partitions)| OffsetDeleteRequestTopic {
                name,
                partitions: partitions
                    .into_iter()
                    .map(|(partition_index, ())| OffsetDeleteRequestPartition { partition_index })
                    .collect(),
            });
        let request = OffsetDeleteRequest {
            group_id: group_id.into(),
            topics: topics.collect(),
        };
        let codes = |response: &OffsetDeleteResponse| {
            retriable(check(API, response.error_code, None, || subject(group_id)))
        };
        let (to, versions) = (group(group_id), OffsetDeleteRequest::VERSIONS);
        let ask = self.ask_again(to, versions, |_| request.clone(), codes);
        let (response, earlier) = ask.await?;
        let whole = check(API, response.error_code, None, || subject(group_id));
        repeated(whole, ErrorCode::GROUP_ID_NOT_FOUND, earlier.as_ref())?;
        let mut results = Vec::new();
        for topic in response.topics {
            for partition in topic.partitions {
                let name = TopicPartition::new(&*topic.name, partition.partition_index);
                let subject = || Subject::Partition(name.clone());
                let result = check(API, partition.error_code, None, subject);
                results.push((name, result));
            }
        }
        Ok(results)
    }
}
