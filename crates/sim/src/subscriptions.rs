//! What the coordinator has been told of subscriptions.
//!
//! A client may change its subscription and change it back before it is heard of again. What the
//! coordinator may do in between follows from what it was told.

use bytes::Bytes;
use kohort_coordinator::{Reply, Request};
use kohort_member::Subscription;
use kohort_wire::{
    ByteString,
    codec::{Decoder, Message},
    messages::ConsumerProtocolSubscription,
};

use crate::{coordinator::Origin, world::World};

impl World {
    /// Notes to what a member has said that it subscribes, unless it was refused.
    pub(crate) fn note_subscription(
        &mut self,
        origin: Origin,
        request: &Request,
        answer: Option<&Reply>,
    ) {
        let Origin::Node { node, .. } = origin else {
            return;
        };
        let told = &mut self.nodes[node].told_subscription;
        match (request, answer) {
            (
                Request::ConsumerGroupHeartbeat { request, .. },
                Some(Reply::ConsumerGroupHeartbeat(answer)),
            ) if !answer.error_code.is_error() => {
                if let Some(topics) = &request.subscribed_topic_names {
                    told.topics.clone_from(topics);
                }
                if let Some(regex) = &request.subscribed_topic_regex {
                    told.regex = Some(regex.clone()).filter(|regex| !regex.is_empty());
                }
            }
            (Request::JoinGroup { .. }, Some(Reply::JoinGroup(answer)))
                if answer.error_code.is_error() => {}
            (Request::JoinGroup { request, .. }, _) => {
                let protocols = request.protocols.iter();
                let mut topics = protocols.map(|protocol| subscribed_topics(&protocol.metadata));
                *told = Subscription {
                    topics: topics.next().unwrap_or_default(),
                    regex: None,
                };
            }
            _ => {}
        }
    }
}

/// The topics in what a member of the classic protocol sends along when it joins.
fn subscribed_topics(metadata: &Bytes) -> Vec<ByteString> {
    let mut input = Decoder::new(metadata.clone());
    let version = input.i16().unwrap_or_default();
    let subscription = ConsumerProtocolSubscription::decode(&mut input, version);
    subscription.map_or_else(|_| Vec::new(), |it| it.topics)
}
