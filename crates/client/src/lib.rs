//! A Kafka client in pure Rust.
