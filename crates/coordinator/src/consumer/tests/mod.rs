//! Consumer groups in virtual time.

pub(crate) mod classic;
pub(crate) mod client;
pub(crate) mod world;

mod connections;
mod describing;
mod heartbeats;
mod history;
mod huge_groups;
mod interleaving;
mod joining;
mod leaving;
mod migrating;
mod mixing;
mod ownership;
mod pacing;
mod regexes;
mod rejections;
mod replaying;
mod restarting;
mod starts;
mod static_members;
mod topics;
