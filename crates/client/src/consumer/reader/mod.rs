//! What an application reads, holds, has finished and may commit: plain values without I/O, clock
//! or tasks.

pub(super) mod handles;
pub(super) mod progress;
