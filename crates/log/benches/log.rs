//! The log: append and fetch.
fn main() {}
