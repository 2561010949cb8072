//! Consumer groups in virtual time.

mod world;

mod describing;
mod heartbeats;
mod joining;
mod leaving;
mod ownership;
mod regexes;
mod rejections;
mod replaying;
mod static_members;
mod topics;
