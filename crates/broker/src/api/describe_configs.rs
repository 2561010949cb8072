//! DescribeConfigs (32): the settings of topics, the broker and groups.

use kohort_wire::{ByteString, ErrorCode, messages::*};

use super::Call;
use crate::{
    settings::{Shown, Values, broker_settings, cluster_settings, group_settings, topic_settings},
    topics::{ChangeError, check_name},
};

pub(super) const TOPIC: i8 = 2;
pub(super) const BROKER: i8 = 4;
pub(super) const BROKER_LOGGER: i8 = 8;
pub(super) const CLIENT_METRICS: i8 = 16;
pub(super) const GROUP: i8 = 32;

pub(super) async fn handle(call: Call, request: DescribeConfigsRequest) -> DescribeConfigsResponse {
    let results = request.resources.iter().map(|resource| {
        let shown = match settings(&call, resource) {
            Ok(shown) => shown,
            Err(error) => {
                return DescribeConfigsResult {
                    error_code: error.code,
                    error_message: Some(error.message.into()),
                    resource_type: resource.resource_type,
                    resource_name: resource.resource_name.clone(),
                    configs: Vec::new(),
                };
            }
        };
        // No keys and null both ask for all of them.
        let keys = resource.configuration_keys.as_deref().unwrap_or_default();
        let wanted = |shown: &&Shown| {
            keys.is_empty() || keys.iter().any(|key| **key == *shown.definition.name)
        };
        let configs = shown.iter().filter(wanted).map(|shown| {
            describe(
                shown,
                request.include_synonyms,
                request.include_documentation,
            )
        });
        DescribeConfigsResult {
            error_code: ErrorCode::NONE,
            error_message: None,
            resource_type: resource.resource_type,
            resource_name: resource.resource_name.clone(),
            configs: configs.collect(),
        }
    });
    DescribeConfigsResponse {
        results: results.collect(),
        ..DescribeConfigsResponse::default()
    }
}

fn settings(call: &Call, resource: &DescribeConfigsResource) -> Result<Vec<Shown>, ChangeError> {
    let snapshot = call.node.snapshot();
    let name = &*resource.resource_name;
    match resource.resource_type {
        TOPIC => {
            check_name(name)
                .map_err(|message| ChangeError::new(ErrorCode::INVALID_TOPIC_EXCEPTION, message))?;
            let topic = snapshot.topic(name).ok_or_else(|| {
                ChangeError::new(
                    ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
                    "There is no such topic.",
                )
            })?;
            Ok(topic_settings(&topic.configs, snapshot.levels()))
        }
        BROKER if name.is_empty() => Ok(cluster_settings(&snapshot.cluster)),
        BROKER => {
            check_broker(call, name)?;
            Ok(broker_settings(snapshot.levels()))
        }
        BROKER_LOGGER => {
            check_broker(call, name)?;
            Ok(Vec::new())
        }
        // Metrics subscriptions do not exist here; Kafka describes an unknown one as empty.
        CLIENT_METRICS => Ok(Vec::new()),
        GROUP if name.is_empty() => Err(ChangeError::new(
            ErrorCode::INVALID_REQUEST,
            "A group is named by its id, and that is empty.",
        )),
        GROUP => {
            let none = Values::new();
            let own = snapshot.groups.get(name).unwrap_or(&none);
            Ok(group_settings(own, snapshot.levels()))
        }
        other => Err(ChangeError::new(
            ErrorCode::INVALID_REQUEST,
            format!("Resources of type {other} have no settings here."),
        )),
    }
}

/// An error unless `name` is the id of this broker.
pub(super) fn check_broker(call: &Call, name: &str) -> Result<(), ChangeError> {
    let node_id = call.node.fixed.node_id;
    if name.parse() == Ok(node_id) {
        return Ok(());
    }
    Err(ChangeError::new(
        ErrorCode::INVALID_REQUEST,
        format!("This is broker {node_id}, and not {name}."),
    ))
}

fn describe(
    shown: &Shown,
    include_synonyms: bool,
    include_documentation: bool,
) -> DescribeConfigsResourceResult {
    let synonyms = shown.synonyms.iter().filter(|_| include_synonyms);
    let synonyms = synonyms.map(|synonym| DescribeConfigsSynonym {
        name: synonym.name.into(),
        value: synonym.value.as_deref().map(ByteString::from),
        source: synonym.source as i8,
    });
    DescribeConfigsResourceResult {
        name: shown.definition.name.into(),
        value: shown.value().map(ByteString::from),
        read_only: shown.is_read_only(),
        config_source: shown.source() as i8,
        is_sensitive: false,
        synonyms: synonyms.collect(),
        config_type: shown.kind() as i8,
        documentation: include_documentation
            .then(|| ByteString::from_static(shown.definition.documentation)),
    }
}
