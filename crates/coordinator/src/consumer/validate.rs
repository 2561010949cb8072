//! Heartbeats that are refused for their contents, whichever member sends them.

use kohort_wire::{ErrorCode, messages::ConsumerGroupHeartbeatRequest};

use super::{
    member::{LEAVE_EPOCH, LEAVE_STATIC_EPOCH},
    refusal::Refusal,
};
use crate::Config;

/// Since this version clients make their member ids themselves (KIP-1082).
const CLIENT_MADE_MEMBER_IDS: i16 = 1;

pub(crate) fn validate(
    version: i16,
    request: &ConsumerGroupHeartbeatRequest,
    config: &Config,
) -> Result<(), Refusal> {
    let refuse = |message| Err(Refusal::invalid(message));
    let needs_member_id = version >= CLIENT_MADE_MEMBER_IDS
        || request.member_epoch > 0
        || request.member_epoch == LEAVE_EPOCH;
    let is_blank = |text: &Option<kohort_wire::ByteString>| {
        text.as_deref().is_some_and(|text| text.trim().is_empty())
    };
    if needs_member_id && request.member_id.trim().is_empty() {
        return refuse("The member id is empty.");
    }
    if request.group_id.trim().is_empty() {
        return refuse("The group id is empty.");
    }
    if is_blank(&request.instance_id) {
        return refuse("The instance id is empty; without one, leave it out.");
    }
    if is_blank(&request.rack_id) {
        return refuse("The rack id is empty; without one, leave it out.");
    }
    match request.member_epoch {
        0 => {
            if request.rebalance_timeout_ms == -1 {
                return refuse("A member that joins has to name its rebalance timeout.");
            }
            if request
                .topic_partitions
                .as_ref()
                .is_none_or(|owned| !owned.is_empty())
            {
                return refuse("A member that joins has to say that it owns no partitions.");
            }
            if request.subscribed_topic_names.is_none() && request.subscribed_topic_regex.is_none()
            {
                return refuse(
                    "A member that joins has to subscribe, be it to no topics or with an empty \
                     regular expression.",
                );
            }
        }
        LEAVE_STATIC_EPOCH if request.instance_id.is_none() => {
            return refuse("Only a static member can leave for a while (epoch -2).");
        }
        ..LEAVE_STATIC_EPOCH => return refuse("There is no such member epoch."),
        _ => {}
    }
    if let Some(assignor) = &request.server_assignor
        && !config
            .consumer_assignors
            .iter()
            .any(|known| *known.name() == **assignor)
    {
        let known: Vec<&str> = config
            .consumer_assignors
            .iter()
            .map(|one| one.name())
            .collect();
        return Err(Refusal::new(
            ErrorCode::UNSUPPORTED_ASSIGNOR,
            format!(
                "There is no assignor {assignor}; there are: {}.",
                known.join(", ")
            ),
        ));
    }
    let topics = request.subscribed_topic_names.as_ref().map_or(0, Vec::len);
    if topics > config.member_topics_max {
        return Err(Refusal::invalid(format!(
            "The member subscribes to {topics} topics; kohort.group.member.topics.max allows {}.",
            config.member_topics_max
        )));
    }
    let metadata_bytes = request
        .subscribed_topic_names
        .iter()
        .flatten()
        .chain(&request.subscribed_topic_regex)
        .chain(&request.instance_id)
        .chain(&request.rack_id)
        .map(|text| text.len())
        .sum::<usize>();
    if metadata_bytes > config.member_metadata_max_bytes {
        return refuse(
            "The subscription is larger than kohort.group.member.metadata.max.bytes allows.",
        );
    }
    Ok(())
}
