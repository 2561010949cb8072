//! How the commands reach a cluster.

use std::{path::PathBuf, time::Duration};

use clap::Args;
use kohort::{Admin, ClientConfig, Properties};

use crate::failure::Failure;

/// How a cluster is reached.
#[derive(Debug, Clone, Args)]
pub(crate) struct Connect {
    /// Some brokers of the cluster, separated by commas [default: 127.0.0.1:9092].
    #[arg(
        short = 'b',
        long = "bootstrap-server",
        aliases = ["bootstrap-servers", "brokers"],
        env = "KOHORT_BOOTSTRAP_SERVER",
        value_name = "HOST:PORT"
    )]
    bootstrap_servers: Option<String>,
    /// A properties file with settings of a Kafka client, such as security.protocol and those of
    /// SASL and TLS.
    #[arg(long, env = "KOHORT_COMMAND_CONFIG", value_name = "FILE")]
    command_config: Option<PathBuf>,
    /// How long to try, in seconds.
    #[arg(long, default_value = "10", value_name = "SECONDS", value_parser = seconds)]
    timeout: Duration,
}

/// The most seconds that an option takes: a year.
const SECONDS_MAX: f64 = 31_536_000.0;

/// A number of seconds, as an option takes it.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let number = text.parse::<f64>().ok();
    let number = number.filter(|number| (0.0..=SECONDS_MAX).contains(number));
    let number = number.ok_or_else(|| format!("write a number of seconds, up to {SECONDS_MAX}"))?;
    Ok(Duration::from_secs_f64(number))
}

impl Connect {
    pub(crate) fn config(&self) -> Result<ClientConfig, Failure> {
        let mut properties = Properties::default()
            .with("bootstrap.servers", "127.0.0.1:9092")
            .with("client.id", "kohort-cli");
        if let Some(path) = &self.command_config {
            let failed = |error| Failure::new(format!("{}: {error}", path.display()));
            let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
            let read: Result<Properties, _> = text.parse();
            for (name, value) in read.map_err(|error| failed(error.to_string()))?.iter() {
                properties = properties.with(name, value);
            }
        }
        if let Some(servers) = &self.bootstrap_servers {
            properties = properties.with("bootstrap.servers", servers);
        }
        let config = ClientConfig::from_properties(&properties);
        let mut config = config.map_err(|error| match &self.command_config {
            Some(path) => Failure::new(format!("{}: {error}", path.display())),
            None => error.into(),
        })?;
        config.api_timeout = self.timeout;
        config.request_timeout = self.timeout;
        config.connect_timeout = self.timeout.min(config.connect_timeout);
        Ok(config)
    }

    pub(crate) async fn admin(&self) -> Result<Admin, Failure> {
        Ok(Admin::connect(self.config()?).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_a_number_that_time_can_be_reckoned_with() {
        assert_eq!(seconds("0.25"), Ok(Duration::from_millis(250)));
        for wrong in ["", "-1", "nan", "inf", "1e19", "soon"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
