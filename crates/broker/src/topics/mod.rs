//! Topics: which there are, what is set for them, and where their records are.

mod catalog;
mod create;
mod document;
mod name;
mod partition;
mod partition_config;
mod snapshot;

pub(crate) use catalog::{Catalog, ChangeError};
pub(crate) use create::{NewPartitions, NewTopic};
pub(crate) use document::{Document, Store, sync_folder};
pub(crate) use name::{EVENTS_TOPIC, OFFSETS_TOPIC, check as check_name, is_internal};
pub(crate) use partition::{Partition, PartitionError, side_by_side};
pub(crate) use snapshot::{Snapshot, Topic};
