//! kohort's own client: the same checks against `kohort serve` and against Apache Kafka of one
//! node and of three. The checks are in interop/rust.

use std::process::Command;
use std::time::Duration;

use super::{Suite, checks, security};
use crate::agent::{Agent, Protocol, catalog};
use crate::broker::BrokerKind;
use crate::failure::Failure;
use crate::install::{Toolchain, rust};
use crate::report::Passed;
use crate::run::Run;
use crate::scenario::{self, Soak};

/// The length of the soak among the suites.
const SOAK: Duration = Duration::from_secs(60);
/// Records a second in it.
const SOAK_RATE: u64 = 50;

pub(super) fn all() -> Vec<Suite> {
    let mut suites = Vec::new();
    for broker in BrokerKind::ALL {
        suites.push(Suite {
            // The failures run on three nodes, and the same checks on one, when all suites run.
            on_demand: broker == BrokerKind::Kafka3,
            ..suite("api", broker, |run| against(run, "api"))
        });
        suites.push(suite("failures", broker, |run| against(run, "failures")));
    }
    suites.push(suite("security", BrokerKind::Kafka, security::run));
    for protocol in Protocol::ALL {
        let what = format!("mixed/{}", protocol.name());
        let mixed = suite(&what, BrokerKind::Kafka, move |run| mixed(run, protocol));
        let toolchains = [Toolchain::Python, catalog::ADMINISTRATOR.toolchain];
        suites.push(Suite {
            toolchains: toolchains.into(),
            // One of the two has to do when all suites run.
            on_demand: protocol == Protocol::Classic,
            ..mixed
        });
    }
    for broker in [BrokerKind::Kohort, BrokerKind::Kafka] {
        suites.push(Suite {
            slow: true,
            on_demand: broker == BrokerKind::Kafka,
            ..suite("soak", broker, soak)
        });
    }
    suites
}

/// kohort's client, the Java client and librdkafka in one group.
fn mixed(run: &Run, protocol: Protocol) -> Result<Passed, Failure> {
    let mut agents = Vec::new();
    for name in ["java", "confluent-kafka", "kohort"] {
        let mut sources = catalog::ALL.iter();
        if let Some(source) = sources.find(|source| source.name == name) {
            agents.push(Agent::install(source, run)?);
        }
    }
    scenario::mixed(run, &agents, protocol)
}

fn soak(run: &Run) -> Result<Passed, Failure> {
    let soak = Soak {
        length: SOAK,
        rate: SOAK_RATE,
        seed: fastrand::u64(..10_000),
    };
    scenario::soak(run, soak)
}

/// `client/<what>/<broker>`
fn suite(
    what: &str,
    broker: BrokerKind,
    run: impl Fn(&Run) -> Result<Passed, Failure> + 'static,
) -> Suite {
    let name = format!("client/{what}/{}", broker.name());
    Suite {
        broker: Some(broker),
        is_ours_alone: broker == BrokerKind::Kohort,
        ..Suite::new(name, &[catalog::KOHORT.toolchain], run)
    }
}

fn against(run: &Run, word: &str) -> Result<Passed, Failure> {
    let program = rust::checks(run.workspace())?;
    let mut broker = run.start_broker()?;
    let mut command = Command::new(program);
    let nodes = run.broker_kind().nodes().to_string();
    command.args([word, "--bootstrap", &broker.address(), "--nodes", &nodes]);
    checks::run(run, &mut broker, word, command)
}
