//! `kohort serve`: runs a broker.

mod settings;

use std::{io::IsTerminal, path::PathBuf, time::Instant};

use clap::Args;
use kohort_broker::StartError;
use tracing::warn;
use tracing_subscriber::EnvFilter;

use crate::failure::Failure;

/// The variable of the environment that says what to log.
pub(crate) const LOG_VARIABLE: &str = "KOHORT_LOG";

/// Runs a broker that any Kafka client can use.
///
/// Settings have Kafka's names. They come from the file, then the environment (num.partitions is
/// KOHORT_NUM_PARTITIONS), then the command line; the last one counts.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Where to listen, as HOST:PORT; port 0 takes a free one [default: 127.0.0.1:9092].
    #[arg(long, short, value_name = "HOST:PORT", env = "KOHORT_LISTEN")]
    listen: Option<String>,

    /// The folder of the data, created if need be [default: kohort in the user's data folder].
    #[arg(long, short, value_name = "DIR", env = "KOHORT_DATA_DIR")]
    data_dir: Option<PathBuf>,

    /// Keeps the data in memory: it is gone when the broker stops.
    #[arg(long, conflicts_with = "data_dir")]
    in_memory: bool,

    /// Where clients are told to find the broker, if not where it listens.
    #[arg(long, value_name = "HOST:PORT", env = "KOHORT_ADVERTISE")]
    advertise: Option<String>,

    /// A file of settings, in TOML.
    #[arg(long, value_name = "FILE", env = "KOHORT_CONFIG")]
    config: Option<PathBuf>,

    /// A setting; may be given several times.
    #[arg(short = 'c', long = "set", value_name = "NAME=VALUE")]
    set: Vec<String>,
}

impl Serve {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let filter =
            EnvFilter::try_from_env(LOG_VARIABLE).unwrap_or_else(|_| EnvFilter::new("info"));
        tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer(std::io::stderr)
            .with_ansi(std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none())
            .with_target(false)
            .compact()
            .init();
        raise_file_limit();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::new(format!("cannot start: {error}")))?;
        let done = runtime.block_on(self.serve());
        // A look-up in a damaged disk must not keep the program from ending.
        runtime.shutdown_timeout(std::time::Duration::from_secs(1));
        done
    }

    async fn serve(self) -> Result<(), Failure> {
        let started_at = Instant::now();
        let mut signals = Signals::new()?;
        let builder = settings::gather(&self)?;
        let broker = builder.start().await.map_err(explain)?;
        tracing::debug!("started in {:?}", started_at.elapsed());
        signals.next().await;
        let stopping = broker.shutdown();
        tokio::pin!(stopping);
        tokio::select! {
            () = &mut stopping => Ok(()),
            () = signals.next() => Err(Failure::new("stopped at once, by a second signal; the next start checks the logs")),
        }
    }
}

fn explain(error: StartError) -> Failure {
    let advice = match &error {
        StartError::Listen { source, .. } if source.kind() == std::io::ErrorKind::AddrInUse => {
            "; is another broker running? --listen takes another address"
        }
        StartError::Listen { .. } => "; --listen takes HOST:PORT of this machine",
        StartError::Locked(_) => "; stop it, or use another folder with --data-dir",
        StartError::Folder { .. } => "; --data-dir takes another one",
        StartError::OtherNode { .. } => "; set node.id, or use another folder with --data-dir",
        _ => "",
    };
    Failure::new(format!("{error}{advice}"))
}

/// SIGINT and SIGTERM. With a listener SIGXFSZ does not end the program either: a file that reaches
/// the limit of `ulimit -f` is then a write that fails, as on a full disk.
struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    _file_size: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> Result<Signals, Failure> {
        use tokio::signal::unix::{SignalKind, signal};
        let listen = |kind| {
            signal(kind)
                .map_err(|error| Failure::new(format!("cannot listen for signals: {error}")))
        };
        Ok(Signals {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            _file_size: listen(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(not(unix))]
impl Signals {
    fn new() -> Result<Signals, Failure> {
        Ok(Signals {})
    }

    async fn next(&mut self) {
        let _ = tokio::signal::ctrl_c().await;
    }
}

/// Each segment and each connection is an open file; the usual soft limit of 1024 is soon reached.
fn raise_file_limit() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, getrlimit, setrlimit};
        let mut limit = getrlimit(Resource::Nofile);
        limit.current = limit.maximum;
        if let Err(error) = setrlimit(Resource::Nofile, limit) {
            warn!("the number of open files stays as it is: {error}");
        }
    }
}
