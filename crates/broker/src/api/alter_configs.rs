//! AlterConfigs (33) and IncrementalAlterConfigs (44).

use std::collections::BTreeSet;

use kohort_wire::{ByteString, ErrorCode, messages::*};

use super::{
    Call,
    describe_configs::{BROKER, BROKER_LOGGER, GROUP, TOPIC, check_broker},
};
use crate::{
    settings::{self, Change, Table, Values, View, list},
    topics::{ChangeError, OFFSETS_TOPIC, Snapshot},
};

/// What is to become of one setting.
#[derive(Debug, Clone)]
enum Operation {
    Set(String),
    Delete,
    /// Of a list: adds elements.
    Append(String),
    /// Of a list: takes elements away.
    Subtract(String),
}

/// Whose settings are to change, and how.
struct Alteration {
    resource_type: i8,
    resource_name: ByteString,
    /// Whether what is not mentioned goes back to its default.
    replaces_all: bool,
    operations: Result<Vec<(String, Operation)>, ChangeError>,
}

pub(super) async fn replace(call: Call, request: AlterConfigsRequest) -> AlterConfigsResponse {
    let alterations = request.resources.into_iter().map(|resource| {
        let names = resource.configs.iter().map(|config| &*config.name);
        let operations = each_once(names).and_then(|()| {
            let operations = resource.configs.iter().map(|config| {
                let name = config.name.to_string();
                match &config.value {
                    Some(value) => Ok((name, Operation::Set(value.to_string()))),
                    None => Err(needs_value(&name)),
                }
            });
            operations.collect()
        });
        Alteration {
            resource_type: resource.resource_type,
            resource_name: resource.resource_name,
            replaces_all: true,
            operations,
        }
    });
    let results = alter(&call, alterations.collect(), request.validate_only).await;
    let responses = results
        .into_iter()
        .map(|result| AlterConfigsResourceResponse {
            error_code: result.error_code,
            error_message: result.error_message,
            resource_type: result.resource_type,
            resource_name: result.resource_name,
        });
    AlterConfigsResponse {
        responses: responses.collect(),
        ..AlterConfigsResponse::default()
    }
}

pub(super) async fn change(
    call: Call,
    request: IncrementalAlterConfigsRequest,
) -> IncrementalAlterConfigsResponse {
    let alterations = request.resources.into_iter().map(|resource| Alteration {
        resource_type: resource.resource_type,
        resource_name: resource.resource_name,
        replaces_all: false,
        operations: operations(resource.configs),
    });
    IncrementalAlterConfigsResponse {
        responses: alter(&call, alterations.collect(), request.validate_only).await,
        ..IncrementalAlterConfigsResponse::default()
    }
}

fn operations(
    configs: Vec<IncrementalAlterableConfig>,
) -> Result<Vec<(String, Operation)>, ChangeError> {
    each_once(configs.iter().map(|config| &*config.name))?;
    configs.into_iter().map(operation).collect()
}

fn each_once<'a>(mut names: impl Iterator<Item = &'a str>) -> Result<(), ChangeError> {
    let mut seen = BTreeSet::new();
    if names.all(|name| seen.insert(name)) {
        Ok(())
    } else {
        Err(ChangeError::new(
            ErrorCode::INVALID_REQUEST,
            "A setting may be changed once in a request.",
        ))
    }
}

fn needs_value(name: &str) -> ChangeError {
    ChangeError::new(ErrorCode::INVALID_REQUEST, format!("{name} needs a value."))
}

fn operation(config: IncrementalAlterableConfig) -> Result<(String, Operation), ChangeError> {
    let value = config.value.map(|value| value.to_string());
    let name = config.name.to_string();
    let operation = match (config.config_operation, value) {
        (1, _) => Operation::Delete,
        (0, Some(value)) => Operation::Set(value),
        (2, Some(value)) => Operation::Append(value),
        (3, Some(value)) => Operation::Subtract(value),
        (0 | 2 | 3, None) => return Err(needs_value(&name)),
        (other, _) => {
            return Err(ChangeError::new(
                ErrorCode::INVALID_REQUEST,
                format!("{name}: there is no operation {other}."),
            ));
        }
    };
    Ok((name, operation))
}

async fn alter(
    call: &Call,
    alterations: Vec<Alteration>,
    validate_only: bool,
) -> Vec<IncrementalAlterConfigsResourceResponse> {
    let mut seen = BTreeSet::new();
    let mut twice = BTreeSet::new();
    for alteration in &alterations {
        let resource = (alteration.resource_type, alteration.resource_name.clone());
        if !seen.insert(resource.clone()) {
            twice.insert(resource);
        }
    }
    let mut results = Vec::with_capacity(alterations.len());
    for alteration in alterations {
        let resource = (alteration.resource_type, alteration.resource_name.clone());
        let altered = if twice.contains(&resource) {
            Err(ChangeError::new(
                ErrorCode::INVALID_REQUEST,
                "This resource stands twice in the request.",
            ))
        } else {
            alter_one(call, alteration, validate_only).await
        };
        let (error_code, error_message) = match altered {
            Ok(()) => (ErrorCode::NONE, None),
            Err(error) => (error.code, Some(error.message.into())),
        };
        results.push(IncrementalAlterConfigsResourceResponse {
            error_code,
            error_message,
            resource_type: resource.0,
            resource_name: resource.1,
        });
    }
    results
}

async fn alter_one(
    call: &Call,
    alteration: Alteration,
    validate_only: bool,
) -> Result<(), ChangeError> {
    let operations = alteration.operations?;
    let name = &*alteration.resource_name;
    let resource_type = alteration.resource_type;
    let (snapshot, nothing) = (call.node.snapshot(), Values::new());
    let (table, before) = match resource_type {
        TOPIC => {
            let topic = snapshot.topic(name).ok_or_else(|| no_topic(name))?;
            (settings::TOPIC, &topic.configs)
        }
        BROKER if name.is_empty() => (settings::BROKER, &snapshot.cluster),
        BROKER => {
            check_broker(call, name)?;
            (settings::BROKER, &snapshot.broker)
        }
        BROKER_LOGGER => return alter_logger(call, name, operations),
        GROUP if name.is_empty() => {
            return Err(ChangeError::new(
                ErrorCode::INVALID_REQUEST,
                "Groups have no settings in common: name one.",
            ));
        }
        GROUP => {
            let own = snapshot.groups.get(name);
            (settings::GROUP, own.unwrap_or(&nothing))
        }
        other => {
            return Err(ChangeError::new(
                ErrorCode::INVALID_REQUEST,
                format!("Resources of type {other} have no settings here."),
            ));
        }
    };
    let change = |before: &Values, snapshot: &Snapshot| {
        let after = apply(table, before, operations, alteration.replaces_all)
            .map_err(|error| as_kafka_says_it(error, resource_type))?;
        check_whole(resource_type, name, &after, snapshot)?;
        Ok(after)
    };
    if validate_only {
        return change(before, &snapshot).map(|_| ());
    }
    // From what they are when it is this change's turn: others may have their own under way.
    call.node
        .catalog
        .change_settings(|edit| {
            let values = match resource_type {
                TOPIC => edit.topic(name).ok_or_else(|| no_topic(name))?,
                BROKER if name.is_empty() => edit.cluster(),
                BROKER => edit.broker(),
                _ => edit.group(name),
            };
            *values = change(values, &call.node.snapshot())?;
            edit.tidy();
            Ok(())
        })
        .await?;
    if call.node.log_limits.settings.admit() {
        tracing::info!("settings of {} changed", what(resource_type, name));
    }
    Ok(())
}

fn no_topic(name: &str) -> ChangeError {
    ChangeError::new(
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
        format!("There is no topic {name}."),
    )
}

fn what(resource_type: i8, name: &str) -> String {
    match resource_type {
        TOPIC => format!("topic {name}"),
        GROUP => format!("group {name}"),
        _ if name.is_empty() => "the cluster".to_owned(),
        _ => format!("broker {name}"),
    }
}

/// What the settings are after the operations.
fn apply(
    table: Table,
    before: &Values,
    operations: Vec<(String, Operation)>,
    replaces_all: bool,
) -> Result<Values, ChangeError> {
    let mut after = if replaces_all {
        Values::new()
    } else {
        before.clone()
    };
    for (name, operation) in operations {
        let definition = match (table.get(&name), &operation) {
            (Some(definition), _) => definition,
            // As in Kafka: it is not set afterwards, as was asked for.
            (None, Operation::Delete) => {
                after.remove(&name);
                continue;
            }
            (None, _) => {
                return Err(ChangeError::new(
                    ErrorCode::INVALID_CONFIG,
                    format!("There is no setting {name}."),
                ));
            }
        };
        let current = || {
            let own = before.get(&name).map(String::as_str);
            own.or(definition.default).unwrap_or_default()
        };
        let value = match operation {
            Operation::Delete => None,
            Operation::Set(value) => Some(value),
            Operation::Append(_) | Operation::Subtract(_)
                if definition.kind != settings::Kind::List =>
            {
                return Err(ChangeError::new(
                    ErrorCode::INVALID_CONFIG,
                    format!("{name} is no list: it can be set, and nothing added or taken away."),
                ));
            }
            Operation::Append(more) => {
                let mut words: Vec<&str> = list(current()).collect();
                words.extend(list(&more).filter(|word| !list(current()).any(|own| own == *word)));
                Some(words.join(","))
            }
            Operation::Subtract(less) => {
                let words = list(current()).filter(|own| !list(&less).any(|word| word == *own));
                Some(words.collect::<Vec<_>>().join(","))
            }
        };
        let checked = value.map(|value| definition.check(&value)).transpose();
        let checked = checked
            .map_err(|error| ChangeError::new(ErrorCode::INVALID_CONFIG, error.to_string()))?;
        // What is left as it is may be mentioned, although it cannot be changed.
        if definition.change == Change::AtStart && checked.as_ref() != before.get(&name) {
            return Err(ChangeError::new(
                ErrorCode::INVALID_REQUEST,
                format!("{name} is set when the broker starts, not while it runs."),
            ));
        }
        match checked {
            Some(value) => after.insert(name, value),
            None => after.remove(&name),
        };
    }
    Ok(after)
}

/// Kafka calls a bad value of a broker's setting a bad request; of any other, a bad setting.
fn as_kafka_says_it(error: ChangeError, resource_type: i8) -> ChangeError {
    match (resource_type, error.code) {
        (BROKER, ErrorCode::INVALID_CONFIG) => ChangeError {
            code: ErrorCode::INVALID_REQUEST,
            ..error
        },
        _ => error,
    }
}

/// What is wrong with the settings as a whole, if anything is.
fn check_whole(
    resource_type: i8,
    name: &str,
    after: &Values,
    snapshot: &Snapshot,
) -> Result<(), ChangeError> {
    let broker = snapshot.settings();
    let checked = match resource_type {
        GROUP => {
            let view = View {
                table: settings::GROUP,
                values: after,
            };
            settings::check_group(view, broker)
        }
        TOPIC if name == OFFSETS_TOPIC => settings::check_offsets_topic(after, broker),
        _ => Ok(()),
    };
    checked.map_err(|message| ChangeError::new(ErrorCode::INVALID_CONFIG, message))
}

/// Kafka changes the levels of its Java loggers. There are none here, so each is unknown.
fn alter_logger(
    call: &Call,
    name: &str,
    operations: Vec<(String, Operation)>,
) -> Result<(), ChangeError> {
    check_broker(call, name)?;
    match operations.first() {
        Some((logger, _)) => Err(ChangeError::new(
            ErrorCode::INVALID_CONFIG,
            format!("There is no logger {logger}."),
        )),
        None => Ok(()),
    }
}
