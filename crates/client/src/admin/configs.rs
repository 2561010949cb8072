//! Configurations of topics, brokers and groups.

use bytestring::ByteString;
use kohort_wire::{ApiKey, messages::*};

use super::Admin;
use crate::{Each, Result, Subject, error::check, rpc::Destination};

/// Of what kind a thing is that has a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ConfigResourceType {
    /// A topic.
    Topic,
    /// A broker, by its id; the empty name stands for the defaults of all brokers.
    Broker,
    /// The levels at which a broker logs.
    BrokerLogger,
    /// What clients are to report of their metrics (KIP-714).
    ClientMetrics,
    /// A group (KIP-848).
    Group,
}

impl ConfigResourceType {
    const fn number(self) -> i8 {
        match self {
            ConfigResourceType::Topic => 2,
            ConfigResourceType::Broker => 4,
            ConfigResourceType::BrokerLogger => 8,
            ConfigResourceType::ClientMetrics => 16,
            ConfigResourceType::Group => 32,
        }
    }

    fn of_number(number: i8) -> Option<ConfigResourceType> {
        use ConfigResourceType::*;
        [Topic, Broker, BrokerLogger, ClientMetrics, Group]
            .into_iter()
            .find(|kind| kind.number() == number)
    }
}

/// Something that has a configuration.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConfigResource {
    /// Of what kind it is.
    pub kind: ConfigResourceType,
    /// Its name.
    pub name: ByteString,
}

impl ConfigResource {
    /// A topic.
    pub fn topic(name: impl Into<ByteString>) -> ConfigResource {
        ConfigResource {
            kind: ConfigResourceType::Topic,
            name: name.into(),
        }
    }

    /// A broker.
    pub fn broker(id: i32) -> ConfigResource {
        ConfigResource {
            kind: ConfigResourceType::Broker,
            name: id.to_string().into(),
        }
    }

    /// A group.
    pub fn group(group_id: impl Into<ByteString>) -> ConfigResource {
        ConfigResource {
            kind: ConfigResourceType::Group,
            name: group_id.into(),
        }
    }

    /// To whom questions about it go: a broker knows its own configuration only.
    fn destination(&self) -> Destination {
        use ConfigResourceType::{Broker, BrokerLogger};
        match (self.kind, self.name.parse()) {
            (Broker | BrokerLogger, Ok(id)) => Destination::Broker(id),
            _ => Destination::Any,
        }
    }

    fn subject(&self) -> Subject {
        match self.kind {
            ConfigResourceType::Topic => Subject::Topic(self.name.clone()),
            ConfigResourceType::Group => Subject::Group(self.name.clone()),
            _ => match self.name.parse() {
                Ok(id) => Subject::Broker(id),
                Err(_) => Subject::Named(self.name.clone()),
            },
        }
    }
}

/// Where the value of a setting comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigSource {
    /// Set for this topic.
    Topic,
    /// Set for this broker, while it runs.
    Broker,
    /// Set for all brokers, while they run.
    BrokerDefault,
    /// From the broker's properties file.
    StaticBroker,
    /// Kafka's default.
    Default,
    /// Set for this broker's loggers.
    BrokerLogger,
    /// Set for this client metrics subscription.
    ClientMetrics,
    /// Set for this group.
    Group,
    /// A source that is not known here, by its number.
    Other(i8),
}

impl ConfigSource {
    const fn of_number(number: i8) -> ConfigSource {
        match number {
            1 => ConfigSource::Topic,
            2 => ConfigSource::Broker,
            3 => ConfigSource::BrokerDefault,
            4 => ConfigSource::StaticBroker,
            5 => ConfigSource::Default,
            6 => ConfigSource::BrokerLogger,
            7 => ConfigSource::ClientMetrics,
            8 => ConfigSource::Group,
            other => ConfigSource::Other(other),
        }
    }
}

/// A setting and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigEntry {
    /// Kafka's name of the setting.
    pub name: ByteString,
    /// The value; `None` if it is secret.
    pub value: Option<ByteString>,
    /// Where it comes from.
    pub source: ConfigSource,
    /// Whether it is secret.
    pub sensitive: bool,
    /// Whether it can only be set in the broker's properties file.
    pub read_only: bool,
    /// The type of its value.
    pub config_type: ConfigType,
    /// What the setting means, if that was asked for.
    pub documentation: Option<ByteString>,
}

/// The type of a setting's value (KIP-569).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigType {
    /// `true` or `false`.
    Boolean,
    /// A whole number or a decimal fraction.
    Number,
    /// Texts, separated by commas.
    List,
    /// A text, or a type that the broker does not tell.
    Text,
}

impl ConfigType {
    fn of_number(number: i8) -> ConfigType {
        match number {
            1 => ConfigType::Boolean,
            3..=6 => ConfigType::Number,
            7 => ConfigType::List,
            _ => ConfigType::Text,
        }
    }
}

/// A change of a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigOperation {
    /// Sets it.
    Set(ByteString),
    /// Back to the default.
    Delete,
    /// Adds to a list.
    Append(ByteString),
    /// Takes from a list.
    Subtract(ByteString),
}

impl Admin {
    /// All settings of each resource.
    pub async fn describe_configs(
        &self,
        resources: &[ConfigResource],
        documentation: bool,
    ) -> Each<ConfigResource, Vec<ConfigEntry>> {
        let each = resources.iter().map(async |resource| {
            let described = self.describe_config(resource, documentation).await;
            (resource.clone(), described)
        });
        futures_util::future::join_all(each).await
    }

    async fn describe_config(
        &self,
        resource: &ConfigResource,
        documentation: bool,
    ) -> Result<Vec<ConfigEntry>> {
        let request = DescribeConfigsRequest {
            resources: vec![DescribeConfigsResource {
                resource_type: resource.kind.number(),
                resource_name: resource.name.clone(),
                configuration_keys: None,
            }],
            include_synonyms: false,
            include_documentation: documentation,
        };
        let request = |version| {
            let mut request = request.clone();
            request.include_documentation &= version >= 3;
            request
        };
        let checked = |response: &DescribeConfigsResponse| {
            response.results.iter().try_for_each(|result| {
                let message = result.error_message.as_ref();
                let subject = || resource.subject();
                check(ApiKey::DescribeConfigs, result.error_code, message, subject)
            })
        };
        let to = resource.destination();
        let response = self.cluster.ask(&to, request, checked).await?;
        let entries = response
            .results
            .into_iter()
            .flat_map(|result| result.configs);
        let entries = entries.map(|config| ConfigEntry {
            name: config.name,
            value: config.value.filter(|_| !config.is_sensitive),
            source: ConfigSource::of_number(config.config_source),
            sensitive: config.is_sensitive,
            read_only: config.read_only,
            config_type: ConfigType::of_number(config.config_type),
            documentation: config.documentation.filter(|_| documentation),
        });
        Ok(entries.collect())
    }

    /// Changes settings of a resource; those that are not named stay. With `validate_only` it is
    /// only checked whether that would work. Done twice, it is as done once.
    pub async fn alter_configs(
        &self,
        resource: &ConfigResource,
        changes: &[(ByteString, ConfigOperation)],
        validate_only: bool,
    ) -> Result<()> {
        let configs = changes.iter().map(|(name, operation)| {
            let (config_operation, value) = match operation {
                ConfigOperation::Set(value) => (0, Some(value.clone())),
                ConfigOperation::Delete => (1, None),
                ConfigOperation::Append(value) => (2, Some(value.clone())),
                ConfigOperation::Subtract(value) => (3, Some(value.clone())),
            };
            IncrementalAlterableConfig {
                name: name.clone(),
                config_operation,
                value,
            }
        });
        let request = IncrementalAlterConfigsRequest {
            resources: vec![IncrementalAlterConfigsResource {
                resource_type: resource.kind.number(),
                resource_name: resource.name.clone(),
                configs: configs.collect(),
            }],
            validate_only,
        };
        let checked = |response: &IncrementalAlterConfigsResponse| {
            response.responses.iter().try_for_each(|result| {
                let message = result.error_message.as_ref();
                let subject = || resource.subject();
                check(
                    ApiKey::IncrementalAlterConfigs,
                    result.error_code,
                    message,
                    subject,
                )
            })
        };
        let to = match resource.destination() {
            Destination::Any => Destination::Controller,
            broker => broker,
        };
        self.cluster.ask(&to, |_| request.clone(), checked).await?;
        Ok(())
    }

    /// Everything of these kinds that has a configuration; all kinds if none is named (KIP-1142).
    pub async fn list_config_resources(
        &self,
        kinds: &[ConfigResourceType],
    ) -> Result<Vec<ConfigResource>> {
        let request = ListConfigResourcesRequest {
            resource_types: kinds.iter().map(|kind| kind.number()).collect(),
        };
        let checked = |response: &ListConfigResourcesResponse| {
            let cluster = || Subject::Cluster;
            check(
                ApiKey::ListConfigResources,
                response.error_code,
                None,
                cluster,
            )
        };
        let ask = self
            .cluster
            .ask(&Destination::Any, |_| request.clone(), checked);
        let resources = ask
            .await?
            .config_resources
            .into_iter()
            .filter_map(|resource| {
                Some(ConfigResource {
                    kind: ConfigResourceType::of_number(resource.resource_type)?,
                    name: resource.resource_name,
                })
            });
        Ok(resources.collect())
    }
}
