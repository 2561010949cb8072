//! Kafka's group protocols as state machines without I/O.
