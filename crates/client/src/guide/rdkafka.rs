//! Moving from rdkafka: the names side by side, and the differences.
//!
//! | rdkafka | kohort |
//! |---|---|
//! | `ClientConfig::new().set("bootstrap.servers", …).create()` | [`Consumer::builder()`](crate::Consumer::builder)`.bootstrap_servers(…).build()`; or plain values, [`ConsumerConfig`](crate::ConsumerConfig) and so on; or [`Properties`](crate::Properties) with the names you have |
//! | `StreamConsumer`, `BaseConsumer` | [`Consumer`](crate::Consumer); without async: `kohort::blocking::Consumer` |
//! | `consumer.subscribe(&["t"])` | [`subscribe(["t"])`](crate::Consumer::subscribe) |
//! | `consumer.subscribe(&["^t.*"])` | [`subscribe_regex("t.*")`](crate::Consumer::subscribe_regex); the whole name has to match |
//! | `consumer.recv().await`, `consumer.stream()` | [`recv()`](crate::Consumer::recv), [`stream()`](crate::Consumer::stream), or [`poll()`](crate::Consumer::poll) for many records at once |
//! | `BorrowedMessage`, `OwnedMessage` | [`ConsumerRecord`](crate::consumer::ConsumerRecord), [`OwnedRecord`](crate::consumer::OwnedRecord) |
//! | `msg.payload()` | `record.value` |
//! | `consumer.assign(&tpl)` | [`assign`](crate::Consumer::assign) |
//! | `Offset::Beginning`, `End`, `Stored`, `Offset(n)` | [`Seek::Earliest`](crate::consumer::Seek), `Latest`, `Committed`, `Offset(n)` |
//! | `TopicPartitionList` | slices of [`TopicPartition`](crate::TopicPartition), with what belongs to each |
//! | `consumer.store_offset(…)` and `enable.auto.offset.store` | not needed: a record is finished when you ask for the next one, or call [`finish`](crate::Consumer::finish) |
//! | `commit_message(&msg, CommitMode::Sync)` | [`commit_offsets`](crate::Consumer::commit_offsets) with the offset **after** the record |
//! | `commit_consumer_state(CommitMode::Sync)` | [`commit`](crate::Consumer::commit) |
//! | `commit_consumer_state(CommitMode::Async)` | [`commit_later`](crate::Consumer::commit_later) |
//! | `ConsumerContext::{pre_rebalance, post_rebalance}` | [`RebalanceHandler`](crate::consumer::RebalanceHandler) |
//! | `consumer.fetch_watermarks`, `offsets_for_times` | [`list_offsets`](crate::Consumer::list_offsets) |
//! | `consumer.committed_offsets` | [`committed`](crate::Consumer::committed) |
//! | `FutureProducer`, `BaseProducer` | [`Producer`](crate::Producer) |
//! | `FutureRecord::to("t").key(…).payload(…)` | [`ProducerRecord::new("t").key(…).value(…)`](crate::ProducerRecord) |
//! | `producer.send(record, timeout).await` | [`send(record).await?.await?`](crate::Producer::send): the first waits for memory, the second for the broker |
//! | `DeliveryFuture` | [`Delivery`](crate::producer::Delivery) |
//! | `producer.flush(timeout)` | [`flush()`](crate::Producer::flush) |
//! | `AdminClient` | [`Admin`](crate::Admin) |
//! | `MockCluster` | `kohort::testing::TestBroker`: a real broker, in memory |
//! | `KafkaError`, `RDKafkaErrorCode` | [`Error`](crate::Error), [`ErrorCode`](crate::ErrorCode) |
//!
//! # What is different
//!
//! - Nothing is linked or built in C, and there are no threads of its own, except those of
//!   `kohort::blocking`: everything runs on the program's tokio runtime. A runtime that the program
//!   blocks sends no heartbeats.
//! - [`Properties`](crate::Properties) takes librdkafka's names (`metadata.broker.list`,
//!   `compression.codec`, `queue.buffering.max.ms`, …). Settings that mean nothing here, such as
//!   `statistics.interval.ms` or `socket.keepalive.enable`, have no effect and are listed in one
//!   warning. An unknown name is an error.
//! - **Keys go to other partitions by default.** [`DefaultPartitioner`](crate::producer::DefaultPartitioner)
//!   is Java's (murmur2), librdkafka's default is the CRC-32 of the key. To keep keys where they are,
//!   use [`Crc32Partitioner`](crate::producer::Crc32Partitioner) or `partitioner=consistent_random`.
//! - `isolation.level` is `read_uncommitted` by default, as with Java; librdkafka's default is
//!   `read_committed`. `acks=all` and idempotence are on by default.
//! - As with librdkafka, a consumer doesn't create the topics that it subscribes to, and a producer
//!   may: `allow.auto.create.topics`.
//! - The protocol of groups is the new one (KIP-848) if the cluster has it:
//!   [`GroupProtocol`](crate::consumer::GroupProtocol).
//! - `max.poll.interval.ms` counts from one poll to the next; a program that waits in `poll` or in
//!   the stream is never away.
//! - Dropping a consumer or producer returns at once. [`close`](crate::Consumer::close) leaves the
//!   group first, [`Producer::close`](crate::Producer::close) writes what is left.
//! - There are no transactions yet.
