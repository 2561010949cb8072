//! The settings that all clients have.

use super::{
    Properties,
    names::Resolved,
    value::{flag, ms, number},
};
use crate::{
    ClientConfig, Result,
    rpc::{Security, is_setting, split_list},
};

impl ClientConfig {
    /// Reads settings under Kafka's names, over the defaults. See [`Properties`].
    pub fn from_properties(properties: &Properties) -> Result<ClientConfig> {
        let mut config = ClientConfig::default();
        config.apply(properties)?;
        config.validate()?;
        Ok(config)
    }

    /// Sets what `properties` contains, and leaves the rest as it is.
    pub(crate) fn apply(&mut self, properties: &Properties) -> Result<()> {
        let resolved = Resolved::new(properties)?;
        resolved.apply("client", |name, value| self.set(name, value))?;
        self.secure(&resolved)
    }

    pub(super) fn secure(&mut self, resolved: &Resolved) -> Result<()> {
        let properties = &resolved.properties;
        if properties.iter().any(|(name, _)| is_setting(name)) {
            self.security = Security::from_properties(properties)
                .map_err(|error| resolved.named_as_given(error))?;
        }
        Ok(())
    }

    /// Returns whether there is such a setting.
    pub(super) fn set(&mut self, name: &str, value: &str) -> Result<bool> {
        match name {
            "bootstrap.servers" => self.bootstrap_servers = split_list(value),
            "client.id" => self.client_id = value.to_owned(),
            "request.timeout.ms" => self.request_timeout = ms(name, value)?,
            "default.api.timeout.ms" => self.api_timeout = ms(name, value)?,
            "socket.connection.setup.timeout.ms" => self.connect_timeout = ms(name, value)?,
            "retry.backoff.ms" => self.retry_backoff.first = ms(name, value)?,
            "retry.backoff.max.ms" => self.retry_backoff.most = ms(name, value)?,
            "reconnect.backoff.ms" => self.reconnect_backoff.first = ms(name, value)?,
            "reconnect.backoff.max.ms" => self.reconnect_backoff.most = ms(name, value)?,
            "metadata.max.age.ms" => self.metadata_max_age = ms(name, value)?,
            "allow.auto.create.topics" => {
                self.allow_auto_create_topics = Some(flag(name, value)?);
            }
            "receive.message.max.bytes" => self.response_bytes_max = number(name, value)?,
            _ => return Ok(is_setting(name)),
        }
        Ok(true)
    }
}
