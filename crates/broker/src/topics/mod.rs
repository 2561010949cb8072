//! Topics: which there are, what is set for them, and where their records are.

mod catalog;
mod create;
mod document;
mod name;
mod partition;
mod partition_config;
mod snapshot;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use catalog::SettingsEdit;
pub(crate) use catalog::{Catalog, ChangeError};
pub(crate) use create::{NEW_PARTITIONS_MAX, NewPartitions, NewTopic, too_many_at_once};
pub(crate) use document::{DeletedTopic, Document, Store};
pub(crate) use name::{EVENTS_TOPIC, OFFSETS_TOPIC, check as check_name, is_internal};
pub(crate) use partition::{Partition, PartitionError, side_by_side};
pub(crate) use snapshot::{Snapshot, Topic};
