//! Committed offsets.

mod commit;
mod delete;
mod expiry;
mod fetch;
mod store;

pub(crate) use store::GroupOffsets;
