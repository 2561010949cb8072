//! Builders: the configurations as methods.

use std::{sync::Arc, time::Duration};

use kohort_wire::records::{Compression, Level};

use crate::{
    Admin, ByteString, ClientConfig, Consumer, ConsumerConfig, IsolationLevel, Producer,
    ProducerConfig, Properties, Result,
    consumer::{AssignmentStrategy, GroupProtocol, OffsetReset, RebalanceHandler, assignors},
    producer::{Acks, Partitioner},
    rpc::{Backoff, Sasl, Security, Tls, split_list},
};

/// Methods that set the fields of a configuration whose names they have.
macro_rules! setters {
    ($builder:ident, $config:ident: $($name:ident: $type:ty),+ $(,)?) => {
        impl $builder {
            $(
                #[doc = concat!(
                    "See [`", stringify!($config), "::", stringify!($name), "`](crate::",
                    stringify!($config), "::", stringify!($name), ")."
                )]
                pub fn $name(mut self, $name: $type) -> $builder {
                    AsMut::<$config>::as_mut(&mut self).$name = $name.into();
                    self
                }
            )+
        }
    };
}

/// The same for optional texts.
macro_rules! text_setters {
    ($builder:ident, $config:ident: $($name:ident),+ $(,)?) => {
        impl $builder {
            $(
                #[doc = concat!(
                    "See [`", stringify!($config), "::", stringify!($name), "`](crate::",
                    stringify!($config), "::", stringify!($name), ")."
                )]
                pub fn $name(mut self, $name: impl Into<ByteString>) -> $builder {
                    AsMut::<$config>::as_mut(&mut self).$name = Some($name.into());
                    self
                }
            )+
        }
    };
}

/// What all builders have: how the cluster is reached.
macro_rules! client_setters {
    ($builder:ident, $($path:ident).+) => {
        impl AsMut<ClientConfig> for $builder {
            fn as_mut(&mut self) -> &mut ClientConfig {
                &mut self.$($path).+
            }
        }

        setters! { $builder, ClientConfig:
            client_id: impl Into<String>,
            request_timeout: Duration,
            api_timeout: Duration,
            connect_timeout: Duration,
            retry_backoff: Backoff,
            reconnect_backoff: Backoff,
            metadata_max_age: Duration,
            allow_auto_create_topics: bool,
            response_bytes_max: usize,
            requests_in_flight_max: usize,
            security: Security,
        }

        impl $builder {
            /// See [`ClientConfig::bootstrap_servers`](crate::ClientConfig::bootstrap_servers):
            /// `host:port`, several separated by commas.
            pub fn bootstrap_servers(mut self, servers: impl AsRef<str>) -> $builder {
                self.$($path).+.bootstrap_servers = split_list(servers.as_ref());
                self
            }

            /// Connections go over TLS: [`Security::tls`](crate::rpc::Security::tls).
            pub fn tls(mut self, tls: Tls) -> $builder {
                self.$($path).+.security.tls = Some(tls);
                self
            }

            /// How the client authenticates: [`Security::sasl`](crate::rpc::Security::sasl).
            pub fn sasl(mut self, sasl: Sasl) -> $builder {
                self.$($path).+.security.sasl = Some(sasl);
                self
            }
        }
    };
}

/// Sets up an [`Admin`]; its methods are named like the fields of [`ClientConfig`].
///
/// ```no_run
/// # async fn example() -> kohort::Result<()> {
/// let admin = kohort::Admin::builder().bootstrap_servers("localhost:9092").build().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
#[must_use = "nothing happens before it is built"]
pub struct AdminBuilder {
    config: ClientConfig,
}

client_setters!(AdminBuilder, config);

impl From<ClientConfig> for AdminBuilder {
    fn from(config: ClientConfig) -> AdminBuilder {
        AdminBuilder { config }
    }
}

impl AdminBuilder {
    /// Settings under Kafka's names, over what was set before.
    pub fn properties(mut self, properties: &Properties) -> Result<AdminBuilder> {
        self.config.apply(properties)?;
        Ok(self)
    }

    /// What was set so far, and the defaults. An error if settings contradict each other.
    pub fn config(self) -> Result<ClientConfig> {
        self.config.validate()?;
        Ok(self.config)
    }

    /// See [`Admin::connect`].
    pub async fn build(self) -> Result<Admin> {
        Admin::connect(self.config).await
    }
}

impl Admin {
    /// A builder, with the defaults.
    pub fn builder() -> AdminBuilder {
        AdminBuilder::default()
    }
}

/// Sets up a [`Producer`]; its methods are named like the fields of [`ProducerConfig`] and
/// [`ClientConfig`].
///
/// ```no_run
/// use kohort::{Producer, producer::Compression};
///
/// # async fn example() -> kohort::Result<()> {
/// let producer = Producer::builder()
///     .bootstrap_servers("localhost:9092")
///     .compression(Compression::Zstd)
///     .build()
///     .await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
#[must_use = "nothing happens before it is built"]
pub struct ProducerBuilder {
    config: ProducerConfig,
}

client_setters!(ProducerBuilder, config.client);

impl AsMut<ProducerConfig> for ProducerBuilder {
    fn as_mut(&mut self) -> &mut ProducerConfig {
        &mut self.config
    }
}

setters! { ProducerBuilder, ProducerConfig:
    acks: Acks,
    idempotence: bool,
    compression: Compression,
    compression_level: Level,
    batch_bytes: usize,
    linger: Duration,
    request_bytes_max: usize,
    buffer_bytes_max: usize,
    block_max: Duration,
    delivery_timeout: Duration,
    in_flight_max: usize,
}

impl From<ProducerConfig> for ProducerBuilder {
    fn from(config: ProducerConfig) -> ProducerBuilder {
        ProducerBuilder { config }
    }
}

impl ProducerBuilder {
    /// See [`ProducerConfig::partitioner`].
    pub fn partitioner(mut self, partitioner: impl Partitioner) -> ProducerBuilder {
        self.config.partitioner = Arc::new(partitioner);
        self
    }

    /// Settings under Kafka's names, over what was set before.
    pub fn properties(mut self, properties: &Properties) -> Result<ProducerBuilder> {
        self.config.apply(properties)?;
        Ok(self)
    }

    /// What was set so far, and the defaults. An error if settings contradict each other.
    pub fn config(self) -> Result<ProducerConfig> {
        self.config.validate()?;
        Ok(self.config)
    }

    /// See [`Producer::connect`].
    pub async fn build(self) -> Result<Producer> {
        Producer::connect(self.config).await
    }
}

impl Producer {
    /// A builder, with the defaults.
    pub fn builder() -> ProducerBuilder {
        ProducerBuilder::default()
    }
}

type Prepare = Box<dyn FnOnce(&Consumer) -> Result<()> + Send>;

/// Sets up a [`Consumer`]; its methods are named like the fields of [`ConsumerConfig`] and
/// [`ClientConfig`].
///
/// ```no_run
/// use kohort::{Consumer, consumer::OffsetReset};
///
/// # async fn example() -> kohort::Result<()> {
/// let consumer = Consumer::builder()
///     .bootstrap_servers("localhost:9092")
///     .group_id("billing")
///     .offset_reset(OffsetReset::Earliest)
///     .build()
///     .await?;
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
#[must_use = "nothing happens before it is built"]
pub struct ConsumerBuilder {
    config: ConsumerConfig,
    prepare: Vec<Prepare>,
}

client_setters!(ConsumerBuilder, config.client);

impl AsMut<ConsumerConfig> for ConsumerBuilder {
    fn as_mut(&mut self) -> &mut ConsumerConfig {
        &mut self.config
    }
}

setters! { ConsumerBuilder, ConsumerConfig:
    group_protocol: GroupProtocol,
    assignment_strategies: impl Into<Vec<AssignmentStrategy>>,
    session_timeout: Duration,
    heartbeat_interval: Duration,
    poll_interval_max: Duration,
    poll_records_max: usize,
    auto_commit: bool,
    auto_commit_interval: Duration,
    offset_reset: OffsetReset,
    isolation_level: IsolationLevel,
    fetch_bytes_min: i32,
    fetch_wait_max: Duration,
    fetch_bytes_max: usize,
    partition_fetch_bytes_max: usize,
    prefetch_bytes_max: usize,
    decompressed_bytes_max: usize,
    check_crcs: bool,
}

text_setters! { ConsumerBuilder, ConsumerConfig:
    group_id,
    group_instance_id,
    group_remote_assignor,
    rack,
}

impl From<ConsumerConfig> for ConsumerBuilder {
    fn from(config: ConsumerConfig) -> ConsumerBuilder {
        ConsumerBuilder {
            config,
            prepare: Vec::new(),
        }
    }
}

impl std::fmt::Debug for ConsumerBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConsumerBuilder")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

impl ConsumerBuilder {
    /// See [`Consumer::set_rebalance_handler`].
    pub fn rebalance_handler(mut self, handler: impl RebalanceHandler) -> ConsumerBuilder {
        self.prepare
            .push(Box::new(|consumer| consumer.set_rebalance_handler(handler)));
        self
    }

    /// See [`Consumer::set_assignors`].
    pub fn assignors(
        mut self,
        assignors: impl Fn() -> Vec<Box<dyn assignors::ConsumerPartitionAssignor>>
        + Send
        + Sync
        + 'static,
    ) -> ConsumerBuilder {
        self.prepare
            .push(Box::new(|consumer| consumer.set_assignors(assignors)));
        self
    }

    /// Settings under Kafka's names, over what was set before.
    pub fn properties(mut self, properties: &Properties) -> Result<ConsumerBuilder> {
        self.config.apply(properties)?;
        Ok(self)
    }

    /// What was set so far, and the defaults, without handler and assignors. An error if settings
    /// contradict each other.
    pub fn config(self) -> Result<ConsumerConfig> {
        self.config.validate()?;
        Ok(self.config)
    }

    /// See [`Consumer::connect`].
    pub async fn build(self) -> Result<Consumer> {
        let consumer = Consumer::connect(self.config).await?;
        for prepare in self.prepare {
            prepare(&consumer)?;
        }
        Ok(consumer)
    }
}

impl Consumer {
    /// A builder, with the defaults.
    pub fn builder() -> ConsumerBuilder {
        ConsumerBuilder::default()
    }
}

#[cfg(feature = "blocking")]
mod blocking {
    use crate::{
        Result,
        blocking::{Admin, Consumer, Producer, wait_for},
        builder::{AdminBuilder, ConsumerBuilder, ProducerBuilder},
    };

    impl AdminBuilder {
        /// [`build`](AdminBuilder::build) for programs without a runtime.
        pub fn build_blocking(self) -> Result<Admin> {
            wait_for(self.build()).map(Admin::from)
        }
    }

    impl ProducerBuilder {
        /// [`build`](ProducerBuilder::build) for programs without a runtime.
        pub fn build_blocking(self) -> Result<Producer> {
            wait_for(self.build()).map(Producer::from)
        }
    }

    impl ConsumerBuilder {
        /// [`build`](ConsumerBuilder::build) for programs without a runtime.
        pub fn build_blocking(self) -> Result<Consumer> {
            wait_for(self.build()).map(Consumer::from)
        }
    }
}

#[cfg(test)]
mod tests;
