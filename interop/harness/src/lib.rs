//! Runs kohort with real programs: clients, tools and test suites of other projects, and Apache Kafka
//! for comparison.
//!
//! Nothing here is installed or published. `cargo xtask` is its command line, and `docs/verification.md`
//! and `interop/README.md` describe what it checks.
//!
//! | module | contents |
//! |---|---|
//! | `suites` | the interop suites by name, and which of them a run selects |
//! | `scenario` | what every client library is put through; soaks and kills |
//! | `differential` | the same requests to kohort and Apache Kafka; state moved between them |
//! | `disks` | disks that fill up, end or fail under the broker |
//! | `throughput`, `rebalances` | measurements beside rdkafka and Apache Kafka |
//! | `agent`, `broker`, `install` | the clients, the brokers and where they come from |
//! | `process`, `command`, `report`, `run` | starting programs, and saying how a step ended |

mod agent;
mod broker;
pub mod command;
mod differential;
mod disks;
mod failure;
mod fresh;
mod install;
mod interrupt;
mod process;
pub mod programs;
mod rebalances;
mod report;
mod run;
mod scenario;
mod suites;
pub mod tasks;
mod throughput;
mod wait;
mod workspace;

pub use failure::Failure;
pub use fresh::first_seed;
pub use install::schemas::install as install_schemas;
pub use report::{Passed, Report};
pub use suites::Selection;
pub use workspace::Workspace;

/// Starts the clock of the logs, and makes Ctrl-C end every process that was started from here.
/// A program calls it once, first.
pub fn begin() {
    interrupt::install();
    process::began();
}
