//! How to do what most programs do. Nothing here but words.
//!
//! # Settings
//!
//! As methods of a builder:
//!
//! ```no_run
//! # use std::time::Duration;
//! # use kohort::{Producer, producer::Compression};
//! # async fn example() -> kohort::Result<()> {
//! let producer = Producer::builder()
//!     .bootstrap_servers("localhost:9092")
//!     .compression(Compression::Lz4)
//!     .linger(Duration::from_millis(20))
//!     .build()
//!     .await?;
//! # Ok(())
//! # }
//! ```
//!
//! under Kafka's names, from a file or a map, before or after others:
//!
//! ```no_run
//! # use kohort::{Consumer, Properties};
//! # async fn example() -> kohort::Result<()> {
//! let properties = Properties::from_file("consumer.properties")?;
//! let builder = Consumer::builder().bootstrap_servers("localhost:9092");
//! let consumer = builder.properties(&properties)?.group_id("billing").build().await?;
//! # Ok(())
//! # }
//! ```
//!
//! or as plain values ([`ConsumerConfig`](crate::ConsumerConfig),
//! [`ProducerConfig`](crate::ProducerConfig), [`ClientConfig`](crate::ClientConfig)), which document
//! each setting and its default. A setting that is unknown, out of range, or contradicts another one is
//! an error that names it.
//!
//! # At least once
//!
//! **A record is finished when you ask the same handle for the next one, or say so with
//! [`finish`](crate::Consumer::finish) or [`commit`](crate::Consumer::commit).** Asking means
//! calling [`poll`](crate::Consumer::poll) or [`recv`](crate::Consumer::recv), or taking the next item
//! of a [`stream`](crate::Consumer::stream). A consumer commits finished records, automatically by
//! default, and no others: if the program fails, the records that it held are delivered again, and
//! none is skipped.
//!
//! ```no_run
//! # use kohort::Consumer;
//! # async fn process(_: &kohort::consumer::ConsumerRecord<'_>) -> kohort::Result<()> { Ok(()) }
//! # async fn example() -> kohort::Result<()> {
//! let mut consumer = Consumer::builder()
//!     .bootstrap_servers("localhost:9092")
//!     .group_id("billing")
//!     .build()
//!     .await?;
//! consumer.subscribe(["orders"])?;
//! # let stopping = || false;
//! while !stopping() {
//!     for record in &consumer.poll().await? {
//!         // An error ends the loop, and nothing of this poll is committed.
//!         process(&record).await?;
//!     }
//! }
//! // The records of the last poll are processed too: close commits them.
//! consumer.finish();
//! consumer.close().await
//! # }
//! ```
//!
//! Iterating over records finishes nothing, nor does dropping them.
//! [`close`](crate::Consumer::close) commits exactly what is finished.
//!
//! Several tasks can share a consumer: give each a clone. A clone is another handle, which holds and
//! finishes only the records that it was given itself. In every partition, only what lies before the
//! first unfinished record is committed, so the tasks may finish in any order:
//!
//! ```no_run
//! # use kohort::Consumer;
//! # async fn process(_: &kohort::consumer::ConsumerRecord<'_>) {}
//! # async fn example(consumer: Consumer) {
//! for _ in 0..4 {
//!     let mut worker = consumer.clone();
//!     tokio::spawn(async move {
//!         while let Ok(records) = worker.poll().await {
//!             for record in &records {
//!                 process(&record).await;
//!             }
//!         }
//!     });
//! }
//! # }
//! ```
//!
//! A program that asks for more before it has processed what it holds turns
//! [`auto_commit`](crate::ConsumerConfig::auto_commit) off and says itself what to commit:
//!
//! ```no_run
//! # use kohort::{Consumer, ConsumerConfig, CommittedOffset};
//! # async fn example(mut consumer: Consumer) -> kohort::Result<()> {
//! let records = consumer.poll().await?;
//! for partition in records.partitions() {
//!     let Some(last) = records.of(&partition).last() else { continue };
//!     // The offset of the next record to be read.
//!     let offset = CommittedOffset::new(last.offset + 1);
//!     consumer.commit_offsets(&[(partition, offset)]).await?;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A commit that cannot be carried out because the consumer was evicted or lost the partitions is
//! [`Error::NotCommitted`](crate::Error::NotCommitted): the records are delivered again, here or to
//! another member.
//!
//! # Topics that are deleted and created again
//!
//! Positions and commits belong to a topic's id, not to its name. When a topic is replaced by
//! another one of the same name, the consumer forgets what it knew of the old one and reads the new
//! one from its first record, unless something is committed for it. Commits of the old topic's
//! offsets fail with [`Error::NotCommitted`](crate::Error::NotCommitted). With brokers older than
//! Apache Kafka 4.1, whose commits name topics by name only, that holds from when the consumer has
//! noticed.
//!
//! # When partitions come and go
//!
//! A [`RebalanceHandler`](crate::consumer::RebalanceHandler) is told. It is async, runs beside the
//! application, and knows [until when it may take](crate::consumer::Rebalance::deadline). A
//! partition goes to another member only when
//!
//! 1. the application has finished the records of it that were delivered,
//! 2. what is committed automatically has been committed, and
//! 3. `revoked` has returned.
//!
//! So a store that belongs to a partition can be written in `revoked`, and opened in `assigned`,
//! which returns before the first record comes.
//!
//! # Cancelling
//!
//! Every future of this crate may be dropped at any time, by `select!` or a time limit, say.
//!
//! - [`poll`](crate::Consumer::poll), [`recv`](crate::Consumer::recv), and the next item of a
//!   [`stream`](crate::Consumer::stream): no record is lost, and none comes twice.
//! - [`commit`](crate::Consumer::commit) and whatever an [`Admin`](crate::Admin) does: what is on its
//!   way may be carried out.
//! - [`unsubscribe`](crate::Consumer::unsubscribe): the group is left nevertheless.
//! - [`close`](crate::Consumer::close): as if the consumer had been dropped; it leaves the group in the
//!   background, if that can be done within two seconds.
//! - [`send`](crate::Producer::send): the record is taken back. Once `send` has returned, it is written
//!   whether its [`Delivery`](crate::producer::Delivery) is awaited or dropped.
//! - [`flush`](crate::Producer::flush): waiting records are sent without further delay.
//!
//! # When something fails
//!
//! A mistake in the settings is found at the start: until a client has reached the cluster for the
//! first time, a refused password or certificate ends the attempt with
//! [`Error::Authentication`](crate::Error::Authentication). A client that has worked once keeps
//! trying, whatever goes wrong, with growing pauses, and works again when the cluster does.
//! Meanwhile
//!
//! - the log has warnings and `kohort_connection_failures_total` counts the attempts;
//! - a [`Delivery`](crate::producer::Delivery), a commit or a call of an [`Admin`](crate::Admin)
//!   ends with [`Error::Timeout`](crate::Error::Timeout) when its time is up, with the last failure
//!   in `last`;
//! - [`poll`](crate::Consumer::poll) goes on waiting. If the cluster refuses the client, as opposed
//!   to being unreachable, it returns an error now and then, and may be called again.
//!
//! The few errors of `poll` that are final are listed [there](crate::Consumer::poll).
//!
//! A static member that was killed and restarted waits until the session of its former self ends:
//! the log says so, and `poll` waits.
//!
//! # Runtimes
//!
//! Producers and consumers run tasks on the tokio runtime on which they were built, and live as long
//! as that runtime. When it ends, whatever waits for them (a delivery, `flush`, `close`, `poll`,
//! `commit`) ends, with [`Error::RuntimeEnded`](crate::Error::RuntimeEnded) where it returns an
//! error. An [`Admin`](crate::Admin) or a [`Cluster`](crate::rpc::Cluster) loses its connections and
//! opens others on the runtime of the next call.
//!
//! This matters where there is more than one runtime. Each `#[tokio::test]` has its own, so a
//! producer in a `static` works in the first test that uses it and in no other: build one in each
//! test. In a program with a `static` client, build it on the runtime that lives as long as the
//! program (in `main`), not on one made for a single call. `kohort::blocking` has a runtime of its
//! own that never ends.
//!
//! # Partitions assigned by hand
//!
//! ```no_run
//! # use kohort::{Consumer, ConsumerConfig, OffsetSpec, TopicPartition, consumer::Seek};
//! # async fn example() -> kohort::Result<()> {
//! // No group: nothing is committed, nobody else is asked.
//! let mut consumer = Consumer::connect(ConsumerConfig::new("localhost:9092")).await?;
//! let partition = TopicPartition::new("orders", 0);
//! let end = consumer.list_offsets(&[(partition.clone(), OffsetSpec::Latest)]).await;
//! let end = end[0].1.clone()?.unwrap_or(0);
//! consumer.assign([(partition.clone(), Seek::Timestamp(1_700_000_000_000))])?;
//! while consumer.position(&partition)?.is_none_or(|position| position < end) {
//!     for record in &consumer.poll().await? {
//!         println!("{} {:?}", record.timestamp, record.value);
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Testing
//!
//! With the feature `test-broker`, `kohort::testing::TestBroker` is a broker in memory: start it,
//! set `bootstrap.servers` to its address, and run the program as it is. Requests can be delayed,
//! lost or answered by the test on their way to it.
//!
//! ```
//! # #[cfg(feature = "test-broker")]
//! # mod example {
//! use kohort::{ApiKey, Producer, ProducerRecord, testing::{Fate, TestBroker}};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let broker = TestBroker::start().await?;
//! broker.create_topic("orders", 3).await?;
//! let producer = Producer::builder().bootstrap_servers(broker.servers()).build().await?;
//! // The first answer to Produce is lost. The record is not written twice for that.
//! let lost = std::sync::atomic::AtomicBool::new(false);
//! broker.on_request(move |request| match request.api {
//!     Some(ApiKey::Produce) if !lost.swap(true, std::sync::atomic::Ordering::Relaxed) => {
//!         Fate::LoseAnswer
//!     }
//!     _ => Fate::Pass,
//! });
//! producer.send(ProducerRecord::new("orders").value("three pears")).await?.await?;
//! # Ok(())
//! # }
//! # }
//! ```
//!
//! # Watching
//!
//! Logs go through `tracing`. Spans tell what they belong to: `consumer` (`client_id`, `group_id`)
//! and `producer` around all that runs in the background; `rebalance` (`change`, `partitions`)
//! while the handler runs and what it waits for; `commit` (`partitions`); and at debug level
//! `connect` and `connection` (`broker`, `address`) and `request` (`api`, `version`, `broker`,
//! `correlation_id`), from when a request is on its way until its answer has been read. A subscriber
//! that shows the durations of spans shows how long each took. What becomes of each batch is told
//! at trace level. What is turned off costs nothing.
//!
//! Numbers go through the facade of the crate `metrics`. Install the recorder first: what has a
//! topic is looked up when the topic is first met.
//!
//! | name | labels | what |
//! |---|---|---|
//! | `kohort_connections_total` | | connections that came about |
//! | `kohort_connection_failures_total` | | and those that did not |
//! | `kohort_throttle_seconds` (histogram) | | pauses that brokers asked for, as the client exceeds its quota |
//! | `kohort_consumer_records_total` | `group`, `topic` | records that polls returned |
//! | `kohort_consumer_fetched_bytes_total` | `group`, `topic` | bytes of records fetched, as they came over the wire |
//! | `kohort_consumer_lag_records` (gauge) | `group`, `topic`, `partition` | records that were still to be read when the last answer or poll came; 0 when the partition is given away |
//! | `kohort_consumer_fetch_failures_total` | | fetches that were not answered |
//! | `kohort_consumer_commits_total` | | commits |
//! | `kohort_consumer_commit_failures_total` | | commits that failed, after all attempts |
//! | `kohort_consumer_partitions_total` | `change`: `assigned`, `revoked`, `lost` | partitions that came and went |
//! | `kohort_producer_records_total` | `topic` | records written |
//! | `kohort_producer_bytes_total` | `topic` | the bytes of their batches |
//! | `kohort_producer_record_failures_total` | `topic` | records that could not be written |
//! | `kohort_producer_batch_seconds` (histogram) | | from the first record of a batch until it was written |
//!
//! # Protected clusters
//!
//! ```no_run
//! # use kohort::{Consumer, rpc::{Sasl, Tls}};
//! # async fn example() -> kohort::Result<()> {
//! let ca = std::fs::read("ca.pem").unwrap_or_default();
//! let mut consumer = Consumer::builder()
//!     .bootstrap_servers("kafka.example.com:9093")
//!     .group_id("billing")
//!     .tls(Tls::builder().ca_pem(ca).build()?)
//!     .sasl(Sasl::ScramSha512 {
//!         username: "billing".to_owned(),
//!         password: std::env::var("KAFKA_PASSWORD").unwrap_or_default(),
//!     })
//!     .build()
//!     .await?;
//! # Ok(())
//! # }
//! ```
//!
//! Certificates and keys are read in PEM. By default, the operating system's certificate authorities are
//! trusted. Host names of brokers are always verified. To convert a Java trust store to PEM, use
//! `keytool -list -rfc -keystore truststore.jks > truststore.pem`.
//!
//! For OAUTHBEARER the program provides a token for each new connection:
//!
//! ```
//! # use kohort::{Admin, rpc::{Sasl, TokenSource}};
//! # async fn ask_for_token() -> Result<String, std::io::Error> { Ok(String::new()) }
//! let tokens = TokenSource::new(|| async {
//!     // Why there is none becomes part of the error.
//!     ask_for_token().await.map_err(|error| error.to_string())
//! });
//! let builder = Admin::builder().sasl(Sasl::OAuthBearer(tokens));
//! ```
//!
//! Kafka's properties can name a file with a token (`sasl.oauthbearer.token.endpoint.url=file:/…`) and, for
//! tests, an unsigned token (`unsecuredLoginStringClaim_sub` and others in `sasl.jaas.config`, as with
//! Kafka's own client).

pub mod rdkafka;
