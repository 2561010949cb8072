//! How the commands reach a cluster.

use std::{
    path::PathBuf,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use clap::Args;
use kohort::{Admin, ClientConfig, Properties, rpc::Cluster};

use crate::failure::Failure;

/// How a cluster is reached.
#[derive(Debug, Clone, Args)]
pub(crate) struct Connect {
    /// Brokers of the cluster, separated by commas [default: 127.0.0.1:9092].
    ///
    /// Without a port, 9092.
    #[arg(
        short = 'b',
        long = "bootstrap-server",
        aliases = ["bootstrap-servers", "brokers"],
        env = "KOHORT_BOOTSTRAP_SERVERS",
        hide_env = true,
        value_name = "HOST:PORT",
        help_heading = "Connection",
        display_order = 901
    )]
    bootstrap_servers: Option<String>,
    /// Kafka client properties file (security.protocol, sasl.*, ssl.*).
    #[arg(
        long,
        env = "KOHORT_COMMAND_CONFIG",
        hide_env = true,
        value_name = "FILE",
        help_heading = "Connection",
        display_order = 902
    )]
    command_config: Option<PathBuf>,
    /// How long to try, in seconds.
    #[arg(
        long,
        default_value = "10",
        value_name = "SECONDS",
        value_parser = seconds,
        help_heading = "Connection",
        display_order = 903
    )]
    timeout: Duration,
}

/// Another name of `KOHORT_BOOTSTRAP_SERVERS`.
pub(crate) const BOOTSTRAP_SERVER_VARIABLE: &str = "KOHORT_BOOTSTRAP_SERVER";

/// How long to try without saying so.
const SILENT: Duration = Duration::from_secs(1);

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
    /// How long to try.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

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
        let variable = || std::env::var(BOOTSTRAP_SERVER_VARIABLE).ok();
        if let Some(servers) = self.bootstrap_servers.clone().or_else(variable) {
            properties = properties.with("bootstrap.servers", with_ports(&servers));
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

    /// Connects to the cluster. If that takes longer than a moment, it says so and goes on trying.
    pub(crate) async fn admin(&self) -> Result<Admin, Failure> {
        let cluster = Cluster::new(self.config()?)?;
        let last = Mutex::new(None);
        let mut reached = std::pin::pin!(cluster.reach(|error| {
            *last.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
            // Another server doesn't become a broker while someone waits for it.
            !matches!(error, kohort::Error::NotKafka { .. })
        }));
        tokio::select! {
            reached = &mut reached => reached?,
            () = tokio::time::sleep(SILENT) => {
                let last = last.lock().unwrap_or_else(PoisonError::into_inner).take();
                let servers = cluster.config().bootstrap_servers.join(", ");
                let problem = last.unwrap_or_else(|| format!("no answer from {servers} yet"));
                eprintln!("kohort: {problem}; trying for {}s", self.timeout.as_secs_f64());
                reached.await?;
            }
        }
        Ok(Admin::new(cluster.clone()))
    }
}

/// The servers, each with a port.
fn with_ports(servers: &str) -> String {
    let with_port = |server: &str| match server.rsplit_once(':') {
        _ if server.ends_with(']') => format!("{server}:9092"),
        Some(_) => server.to_owned(),
        None => format!("{server}:9092"),
    };
    let servers = servers.split(',').map(str::trim);
    let servers: Vec<_> = servers.filter(|it| !it.is_empty()).map(with_port).collect();
    servers.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_without_a_port_has_kafkas() {
        assert_eq!(with_ports("broker-1"), "broker-1:9092");
        assert_eq!(
            with_ports("a:1, b,[::1],[::1]:5"),
            "a:1,b:9092,[::1]:9092,[::1]:5"
        );
    }

    #[test]
    fn seconds_are_a_number_that_time_can_be_reckoned_with() {
        assert_eq!(seconds("0.25"), Ok(Duration::from_millis(250)));
        for wrong in ["", "-1", "nan", "inf", "1e19", "soon"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
