//! An embeddable Kafka broker.
