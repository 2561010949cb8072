//! Starting a broker.

use std::{
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicU64},
};

use kohort_log::OpenFiles;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::{info, warn};

use crate::{
    Broker,
    clock::{Clock, WallClock},
    data_folder::DataFolder,
    endpoints::{ListenerSpec, listener_specs},
    fetching::Sessions,
    file_budget::file_budget,
    groups::Groups,
    log_limits::{self, LogLimits},
    logs::Logs,
    maintenance,
    net::{Budget, Guests, Holders, Listener, accept},
    node::Node,
    pauses::{self, Pauses},
    settings::{BROKER, Fixed, Values, View, list},
    topics::{Catalog, OFFSETS_TOPIC, Partition, Store, side_by_side},
};

/// How a broker is to be.
///
/// Without anything said, it is in memory and listens on a free port of 127.0.0.1.
#[derive(Debug, Clone, Default)]
pub struct Builder {
    folder: Option<PathBuf>,
    settings: Vec<(String, String)>,
    listeners: Vec<String>,
    advertised: Vec<String>,
    wall_clock: Option<WallClock>,
}

/// Why a broker did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// A setting that does not exist, or cannot have that value.
    #[error("{0}")]
    Setting(String),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// As it was given.
        address: String,
        /// Why not.
        source: io::Error,
    },
    /// Another process has the data folder.
    #[error("another process is using the data folder {}", .0.display())]
    Locked(PathBuf),
    /// The data folder cannot be used.
    #[error("cannot use the data folder {}: {source}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The folder has partitions, or files of Apache Kafka, and no catalog of kohort.
    #[error("{} is not kohort's data folder: it has {found} and no kohort.json, as a data folder of Apache Kafka has; nothing in it was changed", folder.display())]
    NotKohorts {
        /// The folder.
        folder: PathBuf,
        /// What is in it.
        found: String,
    },
    /// The folder has partitions of kohort, and its catalog is missing.
    #[error("kohort.json is missing from the data folder {}, which has kohort's partitions ({found}); restore it from a backup. Nothing in the folder was changed", folder.display())]
    CatalogMissing {
        /// The folder.
        folder: PathBuf,
        /// What is in it.
        found: String,
    },
    /// The data belongs to a broker with another id.
    #[error("the data folder {} belongs to the broker with node.id {found}, not {wanted}", folder.display())]
    OtherNode {
        /// The folder.
        folder: PathBuf,
        /// The id in the folder.
        found: i32,
        /// The id that was set.
        wanted: i32,
    },
}

impl Builder {
    /// Listens on `address`, as `host:port`, instead of on a free port of 127.0.0.1. Port 0 takes a
    /// free one. Called again, it adds another listener. The same as the setting `listeners`, which
    /// also takes a name for each: `INSIDE://0.0.0.0:9092`.
    pub fn listen(mut self, address: impl Into<String>) -> Builder {
        self.listeners.push(address.into());
        let all = self.listeners.join(",");
        self.set("listeners", all)
    }

    /// Tells clients to find the broker at `address`, as `host:port`. Without it, they are told the
    /// address at which they have found it. With several listeners it is called once for each, in
    /// the same order: a client is told the address of the listener through which it has come. The
    /// same as the setting `advertised.listeners`.
    pub fn advertise(mut self, address: impl Into<String>) -> Builder {
        self.advertised.push(address.into());
        let all = self.advertised.join(",");
        self.set("advertised.listeners", all)
    }

    /// Keeps the data in a folder, which is created if need be. Without it, the data is in memory
    /// and gone with the broker.
    pub fn data_dir(mut self, folder: impl Into<PathBuf>) -> Builder {
        self.folder = Some(folder.into());
        self
    }

    /// Sets something under Kafka's name of it, or kohort's own. What is wrong with it
    /// [`start`](Builder::start) tells. The last value counts.
    pub fn set(mut self, name: impl Into<String>, value: impl Into<String>) -> Builder {
        self.settings.push((name.into(), value.into()));
        self
    }

    /// Takes the date from `wall_clock`, in milliseconds since 1970, instead of from the machine.
    /// For tests of what happens when the clock is set.
    pub fn wall_clock(mut self, wall_clock: impl Fn() -> i64 + Send + Sync + 'static) -> Builder {
        self.wall_clock = Some(WallClock::new(wall_clock));
        self
    }

    /// Starts the broker on the current runtime.
    ///
    /// # Errors
    ///
    /// When a setting is wrong, the address is taken, or the data folder cannot be used. That a
    /// single partition is damaged is not an error: it is reported and left out.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub async fn start(self) -> Result<Broker, StartError> {
        let clock = Clock::start(self.wall_clock.clone().unwrap_or_else(WallClock::system));
        let (values, folder) = self.check()?;
        let view = View {
            table: BROKER,
            values: &values,
        };
        let fixed = Fixed::new(&values);
        let specs = listener_specs(view).map_err(StartError::Setting)?;
        // First of all, so that a port that is taken costs nothing else.
        let listeners = listen(&specs, fixed.listen_backlog).await?;
        let catalog = {
            let (values, node_id, clock) = (values.clone(), fixed.node_id, clock.clone());
            blocking(move || open(folder, values, node_id, clock)).await?
        };
        let node = Arc::new(Node {
            request_bytes: Budget::new(fixed.queued_request_bytes_max),
            response_bytes: Budget::new(fixed.queued_response_bytes_max),
            request_holders: Holders::default(),
            response_holders: Holders::default(),
            fetch_sessions: Sessions::new(fixed.fetch_sessions_max),
            fixed,
            clock,
            catalog: Arc::new(catalog),
            groups: Groups::new(),
            log_limits: LogLimits::new(),
            pauses: Pauses::new(),
            advertised: specs.into_iter().map(|spec| spec.advertised).collect(),
            stopping: CancellationToken::new(),
            connections: TaskTracker::new(),
            next_connection: AtomicU64::new(1),
        });
        let addresses: Vec<SocketAddr> = listeners.iter().map(|it| it.address).collect();
        let guests = Guests::new();
        for (index, listener) in listeners.into_iter().enumerate() {
            node.connections
                .spawn(accept(listener, index, guests.clone(), Arc::clone(&node)));
        }
        node.connections.spawn(maintenance::run(Arc::clone(&node)));
        node.connections.spawn(pauses::watch(Arc::clone(&node)));
        node.connections
            .spawn(log_limits::report(Arc::clone(&node)));
        info!(
            "ready on {} with data in {} (cluster {}, {} topics)",
            addresses
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(", "),
            match node.catalog.logs.folder() {
                Some(folder) => folder.display().to_string(),
                None => "memory".to_owned(),
            },
            node.catalog.cluster_id,
            node.snapshot().topics.len(),
        );
        Ok(Broker::new(node, addresses))
    }

    /// The settings, each in the spelling in which it is kept, and the data folder.
    fn check(self) -> Result<(Values, Option<PathBuf>), StartError> {
        let mut values = Values::from([("listeners".to_owned(), "127.0.0.1:0".to_owned())]);
        for (name, value) in self.settings {
            let definition = BROKER.get(&name).ok_or_else(|| {
                StartError::Setting(format!("there is no setting {name} (of a broker)"))
            })?;
            let value = definition
                .check(&value)
                .map_err(|error| StartError::Setting(error.to_string()))?;
            if !definition.has_effect {
                warn!("{name} has no effect in kohort");
            }
            values.insert(name, value);
        }
        let mut folder = self.folder;
        if let Some(dirs) = values.get("log.dirs") {
            let dirs: Vec<&str> = list(dirs).collect();
            match (dirs.as_slice(), &folder) {
                ([dir], None) => folder = Some(PathBuf::from(dir)),
                ([dir], Some(folder)) if folder.as_path() == Path::new(dir) => {}
                _ => {
                    return Err(StartError::Setting(
                        "log.dirs has to be one folder, and the same as the data folder".to_owned(),
                    ));
                }
            }
        } else if let Some(folder) = &folder {
            values.insert("log.dirs".to_owned(), folder.display().to_string());
        }
        Ok((values, folder))
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
}

async fn listen(specs: &[ListenerSpec], backlog: u32) -> Result<Vec<Listener>, StartError> {
    let mut listeners = Vec::new();
    for ListenerSpec { bind, .. } in specs {
        let failed = |source| StartError::Listen {
            address: bind.to_string(),
            source,
        };
        let host = match &*bind.host {
            "" => "0.0.0.0",
            host => host,
        };
        let found: Vec<SocketAddr> = tokio::net::lookup_host((host, bind.port))
            .await
            .map_err(failed)?
            .collect();
        // A name like localhost has several addresses; clients that are told a number rather find
        // one of the older kind.
        let first = found.iter().find(|it| it.is_ipv4()).or(found.first());
        let first = first
            .copied()
            .ok_or_else(|| failed(io::ErrorKind::NotFound.into()))?;
        listeners.push(Listener::bind(first, backlog).map_err(failed)?);
    }
    Ok(listeners)
}

/// Opens the data: the description of topics, then their logs.
pub(crate) fn open(
    folder: Option<PathBuf>,
    values: Values,
    node_id: i32,
    clock: Clock,
) -> Result<Catalog, StartError> {
    let (store, logs) = match &folder {
        None => (Store::Memory, Logs::in_memory()),
        Some(folder) => {
            let view = View {
                table: BROKER,
                values: &values,
            };
            let files = OpenFiles::new(file_budget(view.size("max.connections")));
            let data = Arc::new(DataFolder::open(folder, files)?);
            (Store::Folder(Arc::clone(&data)), Logs::in_folder(data))
        }
    };
    let failed = |source| StartError::Folder {
        folder: folder.clone().unwrap_or_default(),
        source,
    };
    let mut document = store.open(node_id).map_err(failed)?;
    if document.node_id != node_id {
        return Err(StartError::OtherNode {
            folder: folder.clone().unwrap_or_default(),
            found: document.node_id,
            wanted: node_id,
        });
    }
    document.deleted.retain(|id, topic| {
        let id = id.parse().ok();
        id.is_some_and(|id| !logs.remove_topic(id, topic))
    });
    let catalog = Catalog::new(store, document, values, Arc::new(logs), clock);
    let snapshot = catalog.snapshot();
    catalog.logs.tidy(&snapshot).map_err(failed)?;
    let topics = snapshot
        .topics
        .values()
        .filter(|topic| &*topic.name != OFFSETS_TOPIC);
    let partitions: Vec<_> = topics.flat_map(|topic| &topic.partitions).collect();
    // Each may have a torn end to look for. What is wrong with one is reported; the others go on.
    side_by_side(&partitions, Partition::open_if_begun);
    let failed = partitions
        .iter()
        .filter(|partition| partition.has_failed())
        .count();
    if failed > 0 {
        warn!(
            "{failed} of {} partitions are not available",
            partitions.len()
        );
    }
    Ok(catalog)
}
