//! What happened to groups, as a kohort broker keeps it.

use std::time::Duration;

use bytestring::ByteString;
use kohort_group::{
    explain::{MemberView, View},
    history::{Event, Protocol, Who},
};

use super::{Admin, GroupDescription, GroupType, MemberDescription};
use crate::{
    Consumer, ConsumerConfig, Error, ErrorCode, IsolationLevel, OffsetSpec, Result, TopicPartition,
    consumer::Seek,
};

/// The topic in which a kohort broker keeps what happened to groups.
const TOPIC: &str = "__kohort_group_events";

/// A reader of what happened to a group.
#[derive(Debug)]
pub struct GroupEvents {
    consumer: Consumer,
    group_id: ByteString,
    /// Where the partitions ended at the beginning.
    ends: Vec<(TopicPartition, i64)>,
}

impl Admin {
    /// What happened to a group from a time on, in milliseconds since 1970. `None`: the cluster keeps
    /// no history. Apache Kafka never does; a kohort broker does once something has happened to one
    /// of its groups, unless it was told not to (`kohort.group.events.enable`).
    pub async fn group_events(&self, group_id: &str, since_ms: i64) -> Result<Option<GroupEvents>> {
        let described = self.describe_topics(&[TOPIC.into()]).await?;
        let topic = match described.into_iter().next() {
            Some((_, Ok(topic))) => topic,
            Some((_, Err(error))) if !is_absent(&error) => return Err(error),
            Some((_, Err(_))) | None => return Ok(None),
        };
        let partitions: Vec<_> = topic
            .partitions
            .iter()
            .map(|partition| TopicPartition::new(TOPIC, partition.partition))
            .collect();
        let latest: Vec<_> = partitions
            .iter()
            .map(|partition| (partition.clone(), OffsetSpec::Latest))
            .collect();
        let mut ends = Vec::with_capacity(partitions.len());
        for (partition, end) in self
            .list_offsets(&latest, IsolationLevel::ReadUncommitted)
            .await
        {
            ends.push((partition, end?.offset.unwrap_or_default()));
        }
        let consumer = Consumer::connect(ConsumerConfig {
            client: self.cluster.config().clone(),
            ..ConsumerConfig::default()
        })
        .await?;
        let start = |partition| (partition, Seek::Timestamp(since_ms));
        consumer.assign(partitions.into_iter().map(start))?;
        Ok(Some(GroupEvents {
            consumer,
            group_id: group_id.into(),
            ends,
        }))
    }
}

fn is_absent(error: &Error) -> bool {
    error.code() == Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)
}

impl GroupEvents {
    /// What had happened when the reader was made.
    pub async fn so_far(&mut self) -> Result<Vec<Event>> {
        let mut events = Vec::new();
        loop {
            let mut is_done = true;
            for (partition, end) in &self.ends {
                let position = self.consumer.position(partition)?;
                is_done &= position.is_some_and(|position| position >= *end);
            }
            if is_done {
                return Ok(events);
            }
            events.extend(self.next_within(Duration::from_millis(100)).await?);
        }
    }

    /// What happens next: waits for some of it, or for as long as given. What cannot be read is passed
    /// over.
    pub async fn next_within(&mut self, wait: Duration) -> Result<Vec<Event>> {
        let records = self.consumer.poll_for(wait).await?;
        let own = records
            .iter()
            .filter(|record| record.key == Some(self.group_id.as_bytes()));
        let events = own.filter_map(|record| Event::from_json(record.value?).ok());
        Ok(events.collect())
    }
}

impl From<&GroupDescription> for View {
    fn from(described: &GroupDescription) -> View {
        View {
            protocol: match described.group_type {
                GroupType::Consumer => Protocol::Consumer,
                _ => Protocol::Classic,
            },
            state: described.state.to_string(),
            epoch: described.group_epoch,
            assignment_epoch: described.assignment_epoch,
            members: described.members.iter().map(MemberView::from).collect(),
        }
    }
}

impl From<&MemberDescription> for MemberView {
    fn from(member: &MemberDescription) -> MemberView {
        let named = |partitions: &[TopicPartition]| {
            let partitions = partitions.iter();
            partitions
                .map(|partition| ((&*partition.topic).into(), partition.partition))
                .collect()
        };
        MemberView {
            who: Who {
                id: (&*member.member_id).into(),
                instance_id: member.instance_id.as_deref().map(Into::into),
                client_id: (&*member.client_id).into(),
                host: (&*member.client_host).into(),
            },
            epoch: member.epoch,
            assignment: named(&member.assignment),
            target: member.target_assignment.as_deref().map(named),
            topics: member
                .subscribed_topics
                .iter()
                .map(|topic| (&**topic).into())
                .collect(),
            regex: member.subscribed_regex.as_deref().map(Into::into),
        }
    }
}
