//! How large a consumer group may become: a subscription that would make it larger is refused.
//!
//! A group may exceed a limit that was lowered, or that it exceeded before it was converted. Then it
//! keeps its members, which may repeat or reduce their subscriptions.

use kohort_wire::messages::{
    ConsumerGroupHeartbeatRequest, ConsumerProtocolSubscription, JoinGroupRequest,
};

use super::{ConsumerGroup, admission::Admission, member::Profile, refusal::Refusal};
use crate::Config;

/// The subscription of a member, once its request is accepted.
pub(super) struct Subscribing<'a> {
    /// Sorted and distinct.
    topics: Vec<&'a str>,
    pub(super) metadata_bytes: usize,
}

impl<'a> Subscribing<'a> {
    /// That of a heartbeat; `None` if it has neither topics nor a regular expression.
    pub(super) fn of_heartbeat(
        request: &'a ConsumerGroupHeartbeatRequest,
        before: Option<&'a Profile>,
    ) -> Option<Subscribing<'a>> {
        let names = request.subscribed_topic_names.as_ref();
        let regex = request.subscribed_topic_regex.as_ref();
        if names.is_none() && regex.is_none() {
            return None;
        }
        let topics = match (names, before) {
            (Some(names), _) => sorted(names.iter().map(|name| &**name)),
            (None, Some(before)) => before.topics.iter().map(|name| &**name).collect(),
            (None, None) => Vec::new(),
        };
        let regex_bytes = match regex {
            Some(regex) => regex.len(),
            None => before
                .and_then(|before| before.regex.as_ref())
                .map_or(0, |regex| regex.len()),
        };
        let texts = [&request.instance_id, &request.rack_id];
        let text_bytes: usize = texts.into_iter().flatten().map(|text| text.len()).sum();
        let metadata_bytes = bytes(&topics) + regex_bytes + text_bytes;
        Some(Subscribing {
            topics,
            metadata_bytes,
        })
    }

    /// That of a join of the classic protocol.
    pub(super) fn of_join(
        request: &'a JoinGroupRequest,
        subscription: &'a ConsumerProtocolSubscription,
    ) -> Subscribing<'a> {
        let topics = sorted(subscription.topics.iter().map(|name| &**name));
        let texts = [&request.group_instance_id, &subscription.rack_id];
        let text_bytes: usize = texts.into_iter().flatten().map(|text| text.len()).sum();
        let protocols = request.protocols.iter();
        let protocol_bytes: usize = protocols
            .map(|one| one.name.len() + one.metadata.len())
            .sum();
        let metadata_bytes = bytes(&topics) + text_bytes + protocol_bytes;
        Subscribing {
            topics,
            metadata_bytes,
        }
    }
}

fn sorted<'n>(names: impl Iterator<Item = &'n str>) -> Vec<&'n str> {
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn bytes(names: &[&str]) -> usize {
    names.iter().map(|name| name.len()).sum()
}

/// Refuses a member with which the group would have too many bytes of metadata.
pub(super) fn refuse_metadata(group_bytes: usize, config: &Config) -> Result<(), Refusal> {
    let bytes_max = config.group_metadata_max_bytes;
    if group_bytes > bytes_max {
        Err(Refusal::invalid(format!(
            "With this member the group would have {group_bytes} bytes of metadata; \
             kohort.group.metadata.max.bytes allows {bytes_max}."
        )))
    } else {
        Ok(())
    }
}

impl ConsumerGroup {
    /// Refuses a subscription with which the group would be larger than it may be.
    pub(super) fn refuse_too_large(
        &self,
        admission: &Admission,
        subscribing: &Subscribing<'_>,
        config: &Config,
    ) -> Result<(), Refusal> {
        let before = match admission {
            Admission::Known(id) | Admission::Replaces { old: id, .. } => self.member(id),
            Admission::New(_) => None,
        };
        let before = before.map(|member| &member.profile);
        let bytes_before = before.map_or(0, Profile::metadata_bytes);
        let group_bytes =
            self.subscriptions().metadata_bytes() - bytes_before + subscribing.metadata_bytes;
        if subscribing.metadata_bytes > bytes_before {
            refuse_metadata(group_bytes, config)?;
        }
        let topics_max = config.group_topics_max;
        // Only near the limit does it matter which of the topics the group has already.
        let subscriptions = self.subscriptions();
        if subscriptions.named_topics() + subscribing.topics.len() <= topics_max {
            return Ok(());
        }
        let added = subscribing.topics.iter();
        let added = added
            .filter(|topic| subscriptions.members_naming(topic) == 0)
            .count();
        let dropped = before.into_iter().flat_map(|before| before.topics.iter());
        let dropped = dropped
            .filter(|topic| subscriptions.members_naming(topic) == 1)
            .filter(|topic| subscribing.topics.binary_search(&&***topic).is_err())
            .count();
        let group_topics = subscriptions.named_topics() + added - dropped;
        if group_topics > topics_max && added > dropped {
            return Err(Refusal::invalid(format!(
                "With this member the group would subscribe to {group_topics} topics; \
                 kohort.group.topics.max allows {topics_max}."
            )));
        }
        Ok(())
    }
}
