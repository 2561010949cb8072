//! `kohort serve`: runs a broker.

mod settings;

use std::{fmt, io::IsTerminal, path::PathBuf, time::Instant};

use clap::Args;
use kohort::text::printable_line;
use kohort_broker::StartError;
use tracing::{field::Field, warn};
use tracing_subscriber::{
    EnvFilter,
    field::MakeExt,
    fmt::{
        FormatFields,
        format::{Writer, debug_fn},
    },
};

use crate::{failure::Failure, signals::Signals};
use settings::Gathered;
pub(crate) use settings::default_data_dir;

/// The variable of the environment that says what to log.
pub(crate) const LOG_VARIABLE: &str = "KOHORT_LOG";

/// Run a broker that any Kafka client can use.
///
/// Settings have Kafka's names. They come from the file, then the environment (num.partitions is
/// KOHORT_NUM_PARTITIONS), then the command line; the last one counts.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  kohort serve
  kohort serve --listen 0.0.0.0:9092 --advertise broker.example:9092 --data-dir ./data
  kohort serve --in-memory -c num.partitions=3")]
pub(crate) struct Serve {
    /// Address to listen on; port 0 takes a free one [default: 127.0.0.1:9092].
    ///
    /// May be given several times.
    #[arg(
        long,
        short,
        value_name = "HOST:PORT",
        env = "KOHORT_LISTEN",
        hide_env = true,
        value_delimiter = ','
    )]
    listen: Vec<String>,

    /// Data folder, created if missing [default: kohort in the user's data folder].
    #[arg(
        long,
        short,
        value_name = "DIR",
        env = "KOHORT_DATA_DIR",
        hide_env = true
    )]
    data_dir: Option<PathBuf>,

    /// Keep all data in memory; it is gone when the broker stops.
    #[arg(long)]
    in_memory: bool,

    /// Address that clients connect to, if it differs from --listen.
    ///
    /// With several --listen, give one for each, in the same order: a client is told the address of
    /// the listener through which it came.
    #[arg(
        long,
        value_name = "HOST:PORT",
        env = "KOHORT_ADVERTISE",
        hide_env = true,
        value_delimiter = ','
    )]
    advertise: Vec<String>,

    /// Settings file in TOML.
    #[arg(long, value_name = "FILE", env = "KOHORT_CONFIG", hide_env = true)]
    config: Option<PathBuf>,

    /// A setting, such as num.partitions=3; can be repeated.
    #[arg(short = 'c', long = "set", value_name = "NAME=VALUE")]
    set: Vec<String>,
}

impl Serve {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let filter = log_filter(std::env::var(LOG_VARIABLE).ok().as_deref())?;
        tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer(std::io::stderr)
            .with_ansi(std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none())
            .with_target(false)
            .compact()
            // Fields hold names from clients, which must not add lines or change the terminal.
            .fmt_fields(log_fields())
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
        let gathered = settings::gather(&self)?;
        let broker = tokio::select! {
            started = gathered.builder.clone().start() => {
                started.map_err(|error| explain(error, &gathered))?
            }
            // Many logs to look through take their time; what was found out is lost, nothing else.
            () = signals.next() => {
                tracing::info!("stopped before it was ready");
                return Ok(());
            }
        };
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

/// How the fields of a log line are written: each made printable, whatever a client calls itself.
fn log_fields() -> impl for<'a> FormatFields<'a> + 'static {
    debug_fn(
        |writer: &mut Writer<'_>, field: &Field, value: &dyn fmt::Debug| {
            let text = format!("{value:?}");
            let text = printable_line(&text);
            match field.name() {
                "message" => write!(writer, "{text}"),
                name => write!(writer, "{name}={text}"),
            }
        },
    )
    .delimited(" ")
}

/// What to log: a level, or levels by module. Whatever else is written there would mean, to the
/// library, to log nothing.
fn log_filter(text: Option<&str>) -> Result<EnvFilter, Failure> {
    let text = text.map(str::trim).filter(|text| !text.is_empty());
    let text = text.unwrap_or("info");
    let levels = ["off", "error", "warn", "info", "debug", "trace"];
    let is_known = text.split(',').all(|part| {
        let level = part.rsplit_once('=').map_or(part, |(_, level)| level);
        levels.contains(&level.trim().to_ascii_lowercase().as_str())
    });
    let filter = EnvFilter::try_new(text).ok().filter(|_| is_known);
    filter.ok_or_else(|| {
        Failure::new(format!(
            "{LOG_VARIABLE} cannot be \"{text}\": it must be one of {}, or a list such as \
             info,kohort_broker=debug",
            levels.join(", ")
        ))
    })
}

fn explain(error: StartError, gathered: &Gathered) -> Failure {
    if let StartError::Setting(text) = &error {
        return match gathered.origin(text) {
            Some(origin) => Failure::new(format!("{error}; it comes from {origin}")),
            None => Failure::new(error.to_string()),
        };
    }
    let advice = match &error {
        StartError::Listen { source, .. } if source.kind() == std::io::ErrorKind::AddrInUse => {
            "; is another broker running? --listen takes another address"
        }
        StartError::Listen { .. } => "; --listen takes HOST:PORT of this machine",
        StartError::Locked(_) => "; stop it, or use another folder with --data-dir",
        StartError::Folder { .. } | StartError::NotKohorts { .. } => {
            "; --data-dir takes another one"
        }
        StartError::CatalogMissing { .. } => {
            "; to start without it, use an empty folder with --data-dir"
        }
        StartError::OtherNode { .. } => "; set node.id, or use another folder with --data-dir",
        _ => "",
    };
    Failure::new(format!("{error}{advice}"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_to_log_is_a_level_and_nothing_that_would_silence_the_log() {
        for text in [
            None,
            Some(""),
            Some("WARN"),
            Some("info,kohort_broker=debug"),
        ] {
            assert!(log_filter(text).is_ok(), "{text:?}");
        }
        for text in ["warning", "kohort_broker", "a=b=c", "info,x=loud"] {
            let error = log_filter(Some(text)).expect_err(text).to_string();
            assert!(
                error.contains("KOHORT_LOG") && error.contains("warn"),
                "{error}"
            );
        }
    }
}
