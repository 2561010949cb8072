//! What a suite is given to work with.

use std::fs;
use std::path::{Path, PathBuf};

use crate::broker::{Broker, BrokerKind, Extras};
use crate::failure::Failure;
use crate::workspace::Workspace;

/// One suite's surroundings: which broker it runs against, and where its data
/// and logs go.
#[derive(Clone)]
pub(crate) struct Run {
    workspace: Workspace,
    broker: BrokerKind,
    is_full: bool,
    logs: PathBuf,
    data: PathBuf,
}

impl Run {
    pub(crate) fn new(workspace: Workspace, broker: BrokerKind) -> Self {
        Self {
            workspace,
            broker,
            is_full: false,
            logs: PathBuf::new(),
            data: PathBuf::new(),
        }
    }

    /// The same, with long suites as a whole if `is_full`.
    pub(crate) fn full(self, is_full: bool) -> Self {
        Self { is_full, ..self }
    }

    /// The same against another broker.
    pub(crate) fn against(&self, broker: BrokerKind) -> Self {
        Self {
            broker,
            ..self.clone()
        }
    }

    /// The same for one suite, whose folders of an earlier run are emptied.
    pub(crate) fn in_suite(&self, suite: &str) -> Result<Self, Failure> {
        let folder = suite.replace('/', "-");
        let logs = self.workspace.made("logs")?.join(&folder);
        let data = self.workspace.made("data")?.join(&folder);
        for made in [&logs, &data] {
            if made.exists() {
                fs::remove_dir_all(made)?;
            }
            fs::create_dir_all(made)?;
        }
        Ok(Self {
            logs,
            data,
            ..self.clone()
        })
    }

    /// Puts aside the logs of a suite that failed and is tried again: `<suite>-first`.
    pub(crate) fn keep_logs(&self, suite: &str) -> Result<(), Failure> {
        let folder = suite.replace('/', "-");
        let all = self.workspace.made("logs")?;
        let kept = all.join(format!("{folder}-first"));
        if kept.exists() {
            fs::remove_dir_all(&kept)?;
        }
        Ok(fs::rename(all.join(folder), kept)?)
    }

    pub(crate) fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    /// Which broker the suite runs against.
    pub(crate) fn broker_kind(&self) -> BrokerKind {
        self.broker
    }

    /// Whether long suites are run as a whole.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full
    }

    /// The folder for logs of this suite's processes.
    pub(crate) fn logs(&self) -> &Path {
        &self.logs
    }

    /// A folder for files of this suite, empty at its start.
    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    /// Starts a broker with an empty folder on a free port of 127.0.0.1.
    pub(crate) fn start_broker(&self) -> Result<Broker, Failure> {
        self.start_broker_with("broker", &[])
    }

    /// Starts a broker with more settings; its data is in the folder `name`.
    pub(crate) fn start_broker_with(
        &self,
        name: &str,
        settings: &'static [(&'static str, &'static str)],
    ) -> Result<Broker, Failure> {
        Broker::start(self, name, settings)
    }

    /// Starts Apache Kafka with what a suite wants of it beyond the usual.
    pub(crate) fn start_kafka(&self, extras: &Extras) -> Result<Broker, Failure> {
        Broker::start_with(self, "broker", &[], extras)
    }
}
