//! The program `kohort`.

fn main() {}
