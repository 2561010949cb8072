//! A simulator of groups: the coordinator's shard and the members as they are in production, on a
//! log, a network and clocks that go wrong as one seed says, with promises checked after every step.
//!
//! See `docs/verification.md` for what is checked and with which limits.

mod adversary;
mod app;
mod calls;
mod calm;
mod cluster;
mod coordinator;
mod eras;
mod fetches;
mod invariants;
mod ledger;
mod log;
pub mod model;
mod node;
mod profile;
mod random;
mod rewinds;
mod run;
mod seeds;
mod shell;
mod stranger;
mod subscriptions;
mod trace;
mod world;

pub use seeds::{Seeds, Totals};
