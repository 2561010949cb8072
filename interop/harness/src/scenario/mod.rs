//! What every client library is put through.

mod cast;
mod explained;
mod fast;
mod group;
mod kills;
mod ledger;
mod mixed;
mod new_partitions;
mod rewind;
mod soak;
mod stage;
mod static_members;

pub(crate) use explained::explained;
pub(crate) use fast::fast;
pub(crate) use group::group;
pub(crate) use kills::kills;
pub(crate) use mixed::mixed;
pub(crate) use new_partitions::new_partitions;
pub(crate) use rewind::{
    Stuck, rewind, rewind_crowd, rewind_elsewhere, rewind_killed, rewind_stuck,
};
pub(crate) use soak::{Soak, soak};
pub(crate) use static_members::static_members;
