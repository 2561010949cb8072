//! The partition log on disk, in Kafka's own segment format.
