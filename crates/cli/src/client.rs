//! How the commands reach a cluster.

use std::{
    path::PathBuf,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use clap::Args;
use kohort::{
    Admin, ClientConfig, Consumer, ConsumerConfig, Error, Producer, ProducerConfig, Properties,
    rpc::Cluster,
};

use crate::{failure::Failure, output::remark};

/// The former name of the variable that names the bootstrap servers.
pub(crate) const OLD_SERVERS_VARIABLE: &str = "KOHORT_BOOTSTRAP_SERVER";

const SERVERS_VARIABLE: &str = "KOHORT_BOOTSTRAP_SERVERS";

const DEFAULT_SERVER: &str = "127.0.0.1:9092";

const DEFAULT_PORT: u16 = 9092;

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long to try without saying so.
const SILENT: Duration = Duration::from_secs(1);

/// How to reach the cluster.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Connection")]
pub(crate) struct Connect {
    /// Brokers to connect to first, separated by commas [default: 127.0.0.1:9092]
    #[arg(
        short = 'b',
        long = "bootstrap-server",
        aliases = ["bootstrap-servers", "brokers"],
        env = SERVERS_VARIABLE,
        hide_env_values = true,
        value_name = "HOST[:PORT]"
    )]
    bootstrap_servers: Option<String>,
    /// Kafka client properties file (security.protocol, sasl.*, ssl.*)
    #[arg(
        long,
        env = "KOHORT_COMMAND_CONFIG",
        hide_env_values = true,
        value_name = "FILE"
    )]
    command_config: Option<PathBuf>,
    /// Seconds to keep trying [default: 10, but a refused connection fails at once]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,
    /// Kafka client property; overrides the file; repeatable
    #[arg(short = 'X', long = "property", value_name = "NAME=VALUE", value_parser = property)]
    properties: Vec<(String, String)>,
}

/// The largest number of seconds an option accepts: a year.
const SECONDS_MAX: f64 = 31_536_000.0;

/// Parses a number of seconds.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let number = text.parse::<f64>().ok();
    let number = number.filter(|number| (0.0..=SECONDS_MAX).contains(number));
    let number =
        number.ok_or_else(|| format!("expected a number of seconds, at most {SECONDS_MAX}"))?;
    Ok(Duration::from_secs_f64(number))
}

/// Parses `name=value`.
pub(crate) fn property(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

/// Adds the default port to each address that has none.
fn with_ports(servers: &str) -> String {
    let servers = servers
        .split(',')
        .map(str::trim)
        .filter(|it| !it.is_empty());
    let servers: Vec<String> = servers.map(with_port).collect();
    servers.join(",")
}

fn with_port(server: &str) -> String {
    let colons = server.matches(':').count();
    if server.ends_with(']') || colons == 0 {
        format!("{server}:{DEFAULT_PORT}")
    } else if colons > 1 && !server.starts_with('[') && !server.contains('/') {
        // An IPv6 address without brackets cannot have a port.
        format!("[{server}]:{DEFAULT_PORT}")
    } else {
        server.to_owned()
    }
}

impl Connect {
    /// How long to keep trying.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout.unwrap_or(DEFAULT_TIMEOUT)
    }

    pub(crate) async fn admin(&self) -> Result<Admin, Failure> {
        let config = ClientConfig {
            // Asking for a topic must not create it.
            allow_auto_create_topics: Some(false),
            ..self.client_config()?
        };
        let cluster = Cluster::new(config)?;
        self.reach(&cluster).await?;
        Ok(Admin::new(cluster))
    }

    pub(crate) async fn consumer(&self, config: ConsumerConfig) -> Result<Consumer, Failure> {
        let consumer = Consumer::new(config)?;
        self.reach(consumer.cluster()).await?;
        Ok(consumer)
    }

    pub(crate) async fn producer(&self, config: ProducerConfig) -> Result<Producer, Failure> {
        let producer = Producer::new(config)?;
        self.reach(producer.cluster()).await?;
        Ok(producer)
    }

    /// Waits until a broker answers. If that takes more than a moment, it says so and goes on trying.
    ///
    /// It stops at once if another server answers, since that will not become a broker. It also stops
    /// if the connection is refused, unless `--timeout` says how long to wait for a broker to start.
    async fn reach(&self, cluster: &Cluster) -> Result<(), Failure> {
        let servers = cluster.config().bootstrap_servers.join(", ");
        let last = Mutex::new(None);
        let mut reached = std::pin::pin!(cluster.reach(|error| {
            *last.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
            let is_final = matches!(error, Error::NotKafka { .. })
                || is_refused(error) && self.timeout.is_none();
            !is_final
        }));
        let reached = tokio::select! {
            reached = &mut reached => reached,
            () = tokio::time::sleep(SILENT) => {
                let last = last.lock().unwrap_or_else(PoisonError::into_inner).take();
                let problem = last.unwrap_or_else(|| format!("no answer from {servers} yet"));
                remark(format_args!("{problem}; trying for {}s", self.timeout().as_secs_f64()));
                reached.await
            }
        };
        reached.map_err(|error| {
            if is_refused(&error) {
                Failure::new(format!(
                    "could not reach {servers}: connection refused; is a broker running there?"
                ))
            } else {
                error.into()
            }
        })
    }

    fn client_config(&self) -> Result<ClientConfig, Failure> {
        let config = ClientConfig::from_properties(&self.properties()?);
        let mut config = config.map_err(|error| self.explain(error))?;
        self.limit(&mut config);
        Ok(config)
    }

    pub(crate) fn consumer_config(
        &self,
        defaults: impl FnOnce(&Properties, &mut ConsumerConfig),
    ) -> Result<ConsumerConfig, Failure> {
        let properties = self.properties()?;
        let config = ConsumerConfig::from_properties(&properties);
        let mut config = config.map_err(|error| self.explain(error))?;
        self.limit(&mut config.client);
        defaults(&properties, &mut config);
        Ok(config)
    }

    /// The producer's settings; `defaults` count where the user has not set them.
    pub(crate) fn producer_config(
        &self,
        defaults: impl FnOnce(&Properties, &mut ProducerConfig),
    ) -> Result<ProducerConfig, Failure> {
        let properties = self.properties()?;
        let config = ProducerConfig::from_properties(&properties);
        let mut config = config.map_err(|error| self.explain(error))?;
        self.limit(&mut config.client);
        defaults(&properties, &mut config);
        Ok(config)
    }

    fn limit(&self, config: &mut ClientConfig) {
        config.api_timeout = self.timeout();
        config.request_timeout = self.timeout();
        // Earlier than the whole, so that the error says what is wrong with the connection.
        let connect_timeout = self.timeout().mul_f64(0.9);
        config.connect_timeout = connect_timeout.min(config.connect_timeout);
    }

    /// The properties: those given with `-X`, over those of the file, over the defaults.
    fn properties(&self) -> Result<Properties, Failure> {
        let mut properties = Properties::default().with("client.id", "kohort-cli");
        let mut servers = None;
        if let Some(path) = &self.command_config {
            let failed = |error| Failure::new(format!("{}: {error}", path.display()));
            let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
            let read: Result<Properties, _> = text.parse();
            for (name, value) in read.map_err(|error| failed(error.to_string()))?.iter() {
                properties = properties.with(name, value);
                if is_servers(name) {
                    servers = Some(name.to_owned());
                }
            }
        }
        for (name, value) in &self.properties {
            properties = properties.with(name.as_str(), value.as_str());
            if is_servers(name) {
                servers = Some(name.clone());
            }
        }
        let old_variable = || std::env::var(OLD_SERVERS_VARIABLE).ok();
        let given = self.bootstrap_servers.clone().or_else(|| match servers {
            None => old_variable(),
            Some(_) => None,
        });
        // Under the name that the file uses: a client refuses two names of one setting.
        let name = servers.as_deref().unwrap_or("bootstrap.servers");
        let value = given.or_else(|| properties.get(name).map(str::to_owned));
        let value = with_ports(value.as_deref().unwrap_or(DEFAULT_SERVER));
        Ok(properties.with(name, value))
    }

    /// Says where a setting comes from that is wrong.
    fn explain(&self, error: Error) -> Failure {
        let is_given = |name: &String| self.properties.iter().any(|(given, _)| given == name);
        match (&error, &self.command_config) {
            (Error::Config { setting, .. }, _) if is_given(setting) => {
                Failure::new(format!("-X {error}"))
            }
            (Error::Config { setting, .. }, Some(path)) if !is_servers(setting) => {
                Failure::new(format!("{}: {error}", path.display()))
            }
            _ => error.into(),
        }
    }
}

fn is_servers(name: &str) -> bool {
    matches!(name, "bootstrap.servers" | "metadata.broker.list")
}

fn is_refused(error: &Error) -> bool {
    match error {
        Error::Connect { source, .. } => source.kind() == std::io::ErrorKind::ConnectionRefused,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_a_number_within_a_year() {
        assert_eq!(seconds("0.25"), Ok(Duration::from_millis(250)));
        for wrong in ["", "-1", "nan", "inf", "1e19", "soon"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn addresses_without_a_port_get_kafkas() {
        for (given, expected) in [
            ("kafka", "kafka:9092"),
            ("kafka:19092", "kafka:19092"),
            ("a, b:1 ,c", "a:9092,b:1,c:9092"),
            ("10.0.0.1", "10.0.0.1:9092"),
            ("::1", "[::1]:9092"),
            ("[::1]", "[::1]:9092"),
            ("[::1]:19092", "[::1]:19092"),
            // For the client to refuse.
            ("http://kafka:80", "http://kafka:80"),
            ("kafka:", "kafka:"),
        ] {
            assert_eq!(with_ports(given), expected, "{given}");
        }
    }
}
