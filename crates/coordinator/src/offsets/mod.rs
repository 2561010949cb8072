//! Committed offsets.

mod commit;
mod delete;
mod expiry;
mod fetch;
pub(crate) mod store;

pub(crate) use commit::{check_leader_epoch, is_longer};
pub(crate) use store::GroupOffsets;
