//! What only the Java world has: the Admin client, Kafka's command-line tools,
//! Kafka Streams and Kafka Connect. The checks are in interop/java; each prints
//! `ok NAME` or `FAILED NAME reason`, and here they become one suite each kind.

use std::process::Command;

use super::{Suite, checks};
use crate::failure::Failure;
use crate::install::{Toolchain, maven};
use crate::report::Passed;
use crate::run::Run;

/// The suites of `kohort.interop.Main`, by the words it knows them by.
pub(super) fn all() -> Vec<Suite> {
    [
        ("java/admin", "admin"),
        ("java/clients", "clients"),
        ("java/groups", "groups"),
        ("kafka-tools", "tools"),
        ("kafka-streams", "streams"),
        ("kafka-connect", "connect"),
    ]
    .map(|(name, word)| {
        let mut suite = Suite::new(name, &[Toolchain::Java], move |run| program(run, word));
        suite.slow = matches!(word, "groups" | "streams" | "connect");
        suite
    })
    .into()
}

/// Runs one suite to its end, restarting the broker when it asks for that.
fn program(run: &Run, word: &str) -> Result<Passed, Failure> {
    let program = maven::program(run.workspace(), "Main")?;
    let mut broker = run.start_broker()?;
    let work = run.data().join("work");
    std::fs::create_dir_all(&work)?;
    let mut command = Command::new(&program[0]);
    command
        .args(&program[1..])
        .args([word, "--bootstrap", &broker.address(), "--data-dir"])
        .arg(broker.folder())
        .arg("--work-dir")
        .arg(&work);

    checks::run(run, &mut broker, word, command)
}
