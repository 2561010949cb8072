//! Connections: who may connect, frames in, frames out.

mod budget;
mod connection;
mod guests;
mod holders;
mod in_flight;
mod listener;
mod progress;
mod reader;
mod writer;

pub(crate) use budget::{Budget, Reserved};
pub(crate) use connection::Peer;
pub(crate) use guests::Guests;
pub(crate) use holders::{Holder, Holders};
pub(crate) use in_flight::Answer;
pub(crate) use listener::{Listener, accept};
