//! DeleteTopics (20).

use std::collections::BTreeMap;

use kohort_wire::{ByteString, ErrorCode, Uuid, messages::*};

use super::Call;
use crate::topics::OFFSETS_TOPIC;

pub(super) async fn handle(call: Call, request: DeleteTopicsRequest) -> DeleteTopicsResponse {
    let mut wanted = request.topics;
    wanted.extend(
        request
            .topic_names
            .into_iter()
            .map(|name| DeleteTopicState {
                name: Some(name),
                topic_id: Uuid::ZERO,
            }),
    );
    let snapshot = call.node.snapshot();
    let mut responses = Vec::with_capacity(wanted.len());
    let mut named: BTreeMap<Uuid, Vec<DeleteTopicState>> = BTreeMap::new();
    for topic in wanted {
        let found = match (&topic.name, topic.topic_id.is_zero()) {
            _ if !call.node.fixed.delete_topic_enable => Err(disabled(&call)),
            (None, true) => Err((
                ErrorCode::INVALID_REQUEST,
                "A topic is to be deleted, and the request does not say which.",
            )),
            (Some(_), false) => Err((
                ErrorCode::INVALID_REQUEST,
                "A topic is named by its name or by its id, not by both.",
            )),
            (Some(name), true) => snapshot.topic(name).ok_or((
                ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
                "There is no such topic.",
            )),
            (None, false) => snapshot.topic_by_id(topic.topic_id).ok_or((
                ErrorCode::UNKNOWN_TOPIC_ID,
                "There is no topic with this id.",
            )),
        };
        match found {
            // Shards are at work on it.
            Ok(found) if &*found.name == OFFSETS_TOPIC => responses.push(result(
                topic.name,
                topic.topic_id,
                ErrorCode::INVALID_REQUEST,
                "The broker keeps its groups in this topic, and cannot do without it.",
            )),
            Ok(found) => named.entry(found.id).or_default().push(topic),
            Err((code, message)) => {
                responses.push(result(topic.name, topic.topic_id, code, message))
            }
        }
    }
    let mut ids = Vec::with_capacity(named.len());
    for (id, mentions) in named {
        match mentions.as_slice() {
            [_] => ids.push(id),
            several => responses.extend(several.iter().map(|topic| {
                let message = "The topic was named more than once.";
                result(
                    topic.name.clone(),
                    topic.topic_id,
                    ErrorCode::INVALID_REQUEST,
                    message,
                )
            })),
        }
    }
    let deleted = call.node.catalog.delete_topics(&ids).await;
    if let Ok(gone) = &deleted {
        let names = gone
            .iter()
            .map(|topic| ByteString::from(&*topic.name))
            .collect();
        call.node.groups.topics_deleted(&call.node, names);
    }
    for id in ids {
        let name = snapshot
            .topic_by_id(id)
            .map(|topic| ByteString::from(&*topic.name));
        responses.push(match &deleted {
            Ok(_) => DeletableTopicResult {
                name,
                topic_id: id,
                ..DeletableTopicResult::default()
            },
            Err(error) => result(name, id, error.code, &error.message),
        });
    }
    DeleteTopicsResponse {
        responses,
        ..DeleteTopicsResponse::default()
    }
}

fn disabled(call: &Call) -> (ErrorCode, &'static str) {
    let code = match call.version() {
        ..3 => ErrorCode::INVALID_REQUEST,
        _ => ErrorCode::TOPIC_DELETION_DISABLED,
    };
    (code, "delete.topic.enable is false.")
}

fn result(
    name: Option<ByteString>,
    topic_id: Uuid,
    error_code: ErrorCode,
    message: &str,
) -> DeletableTopicResult {
    DeletableTopicResult {
        name,
        topic_id,
        error_code,
        error_message: Some(message.into()),
    }
}
