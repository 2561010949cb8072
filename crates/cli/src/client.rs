//! How the commands reach a cluster.

use std::time::Duration;

use clap::Args;
use kohort::{Admin, ClientConfig};

use crate::failure::Failure;

/// How a cluster is reached.
#[derive(Debug, Clone, Args)]
pub(crate) struct Connect {
    /// Some brokers of the cluster, separated by commas.
    #[arg(
        short = 'b',
        long = "bootstrap-server",
        aliases = ["bootstrap-servers", "brokers"],
        env = "KOHORT_BOOTSTRAP_SERVER",
        default_value = "127.0.0.1:9092",
        value_name = "HOST:PORT"
    )]
    bootstrap_servers: String,
    /// How long to try, in seconds.
    #[arg(long = "timeout", default_value_t = 10.0, value_name = "SECONDS")]
    timeout_s: f64,
}

impl Connect {
    pub(crate) fn config(&self) -> Result<ClientConfig, Failure> {
        let timeout = Duration::try_from_secs_f64(self.timeout_s).map_err(|_| {
            Failure::new(format!(
                "--timeout {}: give a number of seconds from 0",
                self.timeout_s
            ))
        })?;
        let mut config = ClientConfig::new(&self.bootstrap_servers);
        config.client_id = "kohort-cli".to_owned();
        config.api_timeout = timeout;
        config.request_timeout = timeout;
        config.connect_timeout = timeout.min(config.connect_timeout);
        Ok(config)
    }

    pub(crate) async fn admin(&self) -> Result<Admin, Failure> {
        Ok(Admin::connect(self.config()?).await?)
    }
}

/// Ends when somebody interrupts the program.
pub(crate) async fn interrupted() {
    // Without a handler the signal ends the program itself, which is as good.
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
