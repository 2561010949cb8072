//! A broker for the tests of programs that use this crate: real, in memory, on this machine, with
//! nothing installed.
//!
//! ```
//! use kohort::{Producer, ProducerConfig, ProducerRecord, testing::TestBroker};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let broker = TestBroker::start().await?;
//! broker.create_topic("orders", 3).await?;
//! let producer = Producer::connect(ProducerConfig::new(broker.servers())).await?;
//! let record = ProducerRecord::new("orders").value("three pears");
//! assert_eq!(producer.send(record).await?.await?.offset, Some(0));
//! # Ok(())
//! # }
//! ```
//!
//! Between the clients and the broker is a place where requests can be held up or lost:
//! [`TestBroker::on_request`].

mod proxy;

use kohort_broker::{Broker, StartError};

use self::proxy::Proxy;
pub use self::proxy::{Fate, RequestSeen};
use crate::{Admin, ClientConfig, Result, admin::NewTopic};

/// A broker for tests. When it is dropped, it ends, with all that is in it.
pub struct TestBroker {
    servers: String,
    broker: Broker,
    proxy: Proxy,
}

impl TestBroker {
    /// A broker in memory. Unlike one with the defaults, classic groups do not wait for more members
    /// when they begin, and records are kept however old they say they are
    /// (`log.retention.ms=-1`): tests like to write fixed times.
    pub async fn start() -> std::result::Result<TestBroker, StartError> {
        TestBroker::start_with(std::iter::empty::<(String, String)>()).await
    }

    /// A broker in memory with these settings, under Kafka's names.
    pub async fn start_with<N: Into<String>, V: Into<String>>(
        settings: impl IntoIterator<Item = (N, V)>,
    ) -> std::result::Result<TestBroker, StartError> {
        let bound = Proxy::bind().await;
        let (proxy, servers) = bound.map_err(|source| StartError::Listen {
            address: "127.0.0.1:0".to_owned(),
            source,
        })?;
        let mut builder = Broker::builder()
            .listen("127.0.0.1:0")
            // Clients come back to the place where requests can be lost.
            .advertise(servers.clone())
            .set("group.initial.rebalance.delay.ms", "0")
            .set("log.retention.ms", "-1");
        for (name, value) in settings {
            builder = builder.set(name, value);
        }
        let broker = builder.start().await?;
        proxy.forward_to(broker.address());
        Ok(TestBroker {
            servers,
            broker,
            proxy,
        })
    }

    /// What to set `bootstrap.servers` to.
    pub fn servers(&self) -> &str {
        &self.servers
    }

    /// How to reach it.
    pub fn config(&self) -> ClientConfig {
        ClientConfig::new(&self.servers)
    }

    /// Creates a topic.
    pub async fn create_topic(&self, name: &str, partitions: i32) -> Result<()> {
        let admin = Admin::connect(self.config()).await?;
        admin.create_topic(&NewTopic::new(name, partitions)).await?;
        Ok(())
    }

    /// Decides from now on what becomes of each request, instead of what did before.
    ///
    /// ```
    /// # use kohort::{ApiKey, testing::{Fate, TestBroker}};
    /// # async fn example(broker: &TestBroker) {
    /// // The answers to commits are lost.
    /// broker.on_request(|request| match request.api {
    ///     Some(ApiKey::OffsetCommit) => Fate::Disconnect,
    ///     _ => Fate::Pass,
    /// });
    /// # }
    /// ```
    pub fn on_request(&self, decide: impl Fn(&RequestSeen<'_>) -> Fate + Send + Sync + 'static) {
        self.proxy.decide(Some(Box::new(decide)));
    }

    /// All requests pass again.
    pub fn pass_all(&self) {
        self.proxy.decide(None);
    }

    /// Ends all connections, as if the network had failed for a moment.
    pub fn disconnect_all(&self) {
        self.proxy.disconnect_all();
    }

    /// Ends it in good order.
    pub async fn shutdown(self) {
        self.proxy.disconnect_all();
        self.broker.shutdown().await;
    }
}
