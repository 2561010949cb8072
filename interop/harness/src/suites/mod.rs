//! The interop suites, in the order in which they run.
//!
//! A new client library is an entry in `agent::catalog` and a program in
//! interop/: it then takes part in the scenarios here. Anything else is a module
//! of its own below this one that gives its suites to `all`. A suite that is
//! about one broker names it; the others run against what `--broker` says. A suite gets a
//! `Run`: `run.start_broker()` for a broker with `stop`, `kill` and
//! `start_again`; `Process` for programs that end with their owner;
//! `run.logs()` and `run.data()` for its files; `install::maven` for jars. It
//! returns a note and the versions it ran for the closing table, or why not.

mod checks;
mod client;
mod java;
mod projects;
mod security;
mod selection;

use crate::agent::{Agent, Protocol, catalog};
use crate::broker::BrokerKind;
use crate::failure::Failure;
use crate::install::Toolchain;
use crate::report::Passed;
use crate::run::Run;
use crate::scenario::{self, Stuck};

pub use selection::Selection;
pub(crate) use selection::run;

/// How often the broker is killed when all suites run.
const KILLS: u64 = 20;

/// A named run of real programs against a broker of its own.
pub(crate) struct Suite {
    /// `<what>/<variant>`, what `--only` looks into
    pub(crate) name: String,
    /// Left out by `--quick`
    pub(crate) slow: bool,
    /// Runs only when `--only` chooses it, or with `--full`
    pub(crate) on_demand: bool,
    /// Only kohort's own programs take part, or what it judges may be a loss: it counts as it ends.
    /// The others get a second try, since other people's programs have races and time limits that
    /// nobody here can mend.
    pub(crate) is_ours_alone: bool,
    /// The broker that it starts, if it is about one; else what `--broker` says
    pub(crate) broker: Option<BrokerKind>,
    /// Without these the suite is skipped.
    pub(crate) toolchains: Vec<Toolchain>,
    #[allow(clippy::type_complexity, reason = "a name would not say more")]
    pub(crate) run: Box<dyn Fn(&Run) -> Result<Passed, Failure>>,
}

impl Suite {
    pub(crate) fn new(
        name: impl Into<String>,
        toolchains: &[Toolchain],
        run: impl Fn(&Run) -> Result<Passed, Failure> + 'static,
    ) -> Self {
        let toolchains = toolchains.to_vec();
        Self {
            name: name.into(),
            slow: false,
            on_demand: false,
            is_ours_alone: false,
            broker: None,
            toolchains,
            run: Box::new(run),
        }
    }

    /// What the machine lacks for this suite and the broker under it.
    pub(crate) fn missing_toolchain(&self, broker: BrokerKind) -> Option<String> {
        let mut needed = self.toolchains.iter().copied().chain(broker.toolchain());
        let missing = needed.find_map(Toolchain::missing)?;
        Some(format!("no {missing} on this machine"))
    }
}

/// All suites.
pub(crate) fn all() -> Vec<Suite> {
    let mut suites = groups();
    let more = static_members()
        .into_iter()
        .chain(new_partitions())
        .chain(rewinds())
        .chain(stuck_rewinds())
        .chain(Protocol::ALL.map(mixed));
    suites.extend(more.map(|suite| Suite {
        slow: true,
        ..suite
    }));
    suites.extend(explained());
    suites.extend(fast());
    suites.extend(Protocol::ALL.map(kills));
    suites.extend(java::all());
    suites.extend(client::all());
    suites.extend(projects::all());
    suites.extend(crate::differential::suites());
    suites.extend(crate::disks::suites());
    suites
}

/// `<library>/<protocol>`: the scenario of a group, for each library and protocol.
fn groups() -> Vec<Suite> {
    let mut suites = Vec::new();
    for source in catalog::ALL {
        for &protocol in source.protocols {
            let suite = Suite::new(
                format!("{}/{}", source.name, protocol.name()),
                &[source.toolchain, catalog::ADMINISTRATOR.toolchain],
                move |run| scenario::group(run, source, protocol),
            );
            suites.push(Suite {
                is_ours_alone: source.name == catalog::KOHORT.name,
                ..suite
            });
        }
    }
    suites
}

/// `static/<library>/<protocol>`
fn static_members() -> Vec<Suite> {
    let mut suites = Vec::new();
    for source in catalog::ALL {
        for &protocol in source.static_members {
            let suite = Suite::new(
                format!("static/{}/{}", source.name, protocol.name()),
                &[source.toolchain, catalog::ADMINISTRATOR.toolchain],
                move |run| scenario::static_members(run, source, protocol),
            );
            suites.push(Suite {
                is_ours_alone: source.name == catalog::KOHORT.name,
                ..suite
            });
        }
    }
    suites
}

/// `new-partitions/<library>/<protocol>`: not with Apache Kafka, where those records are lost.
fn new_partitions() -> Vec<Suite> {
    let mut suites = Vec::new();
    let sources = catalog::ALL.iter();
    let members = ["java", "confluent-kafka", "kohort"];
    for source in sources.filter(|source| members.contains(&source.name)) {
        for &protocol in source.protocols {
            let suite = Suite::new(
                format!("new-partitions/{}/{}", source.name, protocol.name()),
                &[source.toolchain, catalog::ADMINISTRATOR.toolchain],
                move |run| scenario::new_partitions(run, source, protocol),
            );
            // Of kohort's own client one protocol is enough as a rule.
            let on_demand = source.name == "kohort" && protocol == Protocol::Classic;
            suites.push(Suite { on_demand, ..suite });
        }
    }
    suites
}

/// `explain/<library>/<protocol>`
fn explained() -> Vec<Suite> {
    let sources = catalog::ALL
        .iter()
        .filter(|source| matches!(source.name, "java" | "confluent-kafka" | "kohort"));
    let mut suites = Vec::new();
    for source in sources {
        for &protocol in source.protocols {
            let suite = Suite::new(
                format!("explain/{}/{}", source.name, protocol.name()),
                &[source.toolchain, catalog::ADMINISTRATOR.toolchain],
                move |run| scenario::explained(run, source, protocol),
            );
            // Of kohort's own client one protocol is enough as a rule.
            let on_demand = source.name == "kohort" && protocol == Protocol::Classic;
            suites.push(Suite { on_demand, ..suite });
        }
    }
    suites
}

/// `fast/<library>`: not with Apache Kafka, whose groups wait for heartbeats and sessions.
fn fast() -> Vec<Suite> {
    let members = ["java", "confluent-kafka", "kohort"];
    let sources = catalog::ALL.iter();
    let sources = sources.filter(|source| members.contains(&source.name));
    let suites = sources.map(|source| {
        let suite = Suite::new(
            format!("fast/{}", source.name),
            &[source.toolchain, catalog::ADMINISTRATOR.toolchain],
            move |run| scenario::fast(run, source),
        );
        Suite {
            slow: true,
            // One is enough as a rule.
            on_demand: source.name != "confluent-kafka",
            ..suite
        }
    });
    suites.collect()
}

/// `rewind/<library>/<protocol>`, and `rewind/<library>/cooperative` for classic members that keep
/// partitions through a rebalance. Not with Apache Kafka, which cannot rewind a live group.
fn rewinds() -> Vec<Suite> {
    let ways = [
        (Protocol::Consumer, "consumer", None),
        (Protocol::Classic, "classic", Some("range")),
        (Protocol::Classic, "cooperative", Some("cooperative-sticky")),
    ];
    let members = ["java", "confluent-kafka", "kohort"];
    let sources = catalog::ALL.iter();
    let mut suites = Vec::new();
    for source in sources.filter(|source| members.contains(&source.name)) {
        for (protocol, way, assignor) in ways {
            let suite = Suite::new(
                format!("rewind/{}/{way}", source.name),
                &[
                    source.toolchain,
                    catalog::ADMINISTRATOR.toolchain,
                    Toolchain::Java,
                    Toolchain::Python,
                ],
                move |run| scenario::rewind(run, source, protocol, assignor),
            );
            // Of the eager strategies one library is enough as a rule.
            let on_demand = way == "classic" && source.name != "java";
            suites.push(Suite { on_demand, ..suite });
        }
    }
    suites
}

/// `kills/<protocol>`: the short form of `cargo xtask kills`.
fn kills(protocol: Protocol) -> Suite {
    let source = &catalog::KOHORT;
    let toolchains = [source.toolchain, catalog::ADMINISTRATOR.toolchain];
    let name = format!("kills/{}", protocol.name());
    let suite = Suite::new(name, &toolchains, move |run| {
        scenario::kills(run, source, protocol, KILLS, fastrand::u64(..10_000))
    });
    Suite {
        broker: Some(BrokerKind::Kohort),
        is_ours_alone: true,
        slow: true,
        // Groups of both protocols are there in either.
        on_demand: protocol == Protocol::Classic,
        ..suite
    }
}

/// `rewind/killed/<library>/<way>`, `rewind/{holds,stalled,dead}/<library>/<way>`, `rewind/crowd`,
/// and `rewind/elsewhere/<protocol>/kafka`.
/// Those of a selection run always, the others on demand.
fn stuck_rewinds() -> Vec<Suite> {
    let ways = [
        (Protocol::Consumer, "consumer", None),
        (Protocol::Classic, "classic", Some("range")),
        (Protocol::Classic, "cooperative", Some("cooperative-sticky")),
    ];
    let needs = [Toolchain::Java, Toolchain::Python, Toolchain::Go];
    let always = [
        "rewind/killed/java/consumer",
        "rewind/killed/confluent-kafka/classic",
        "rewind/holds/java/consumer",
        "rewind/stalled/confluent-kafka/classic",
    ];
    let mut suites = Vec::new();
    for name in ["java", "confluent-kafka", "kohort"] {
        let Some(source) = catalog::ALL.iter().find(|source| source.name == name) else {
            continue;
        };
        for (protocol, way, assignor) in ways {
            suites.push(Suite::new(
                format!("rewind/killed/{name}/{way}"),
                &needs,
                move |run| scenario::rewind_killed(run, source, protocol, assignor),
            ));
            for (how, called) in [
                (Stuck::Holds, "holds"),
                (Stuck::Stalled, "stalled"),
                (Stuck::Dead, "dead"),
            ] {
                // Only some agents can hold what they are to let go of, and cooperative members are
                // not asked.
                if how == Stuck::Holds && (name == "kohort" || way == "cooperative") {
                    continue;
                }
                suites.push(Suite::new(
                    format!("rewind/{called}/{name}/{way}"),
                    &needs,
                    move |run| scenario::rewind_stuck(run, source, (protocol, assignor), how),
                ));
            }
        }
    }
    let mut suites: Vec<Suite> = suites
        .into_iter()
        .map(|suite| Suite {
            on_demand: !always.contains(&&*suite.name),
            ..suite
        })
        .collect();
    suites.push(Suite::new("rewind/crowd", &needs, scenario::rewind_crowd));
    for protocol in Protocol::ALL {
        let name = format!("rewind/elsewhere/{}/kafka", protocol.name());
        let suite = Suite::new(name, &needs, move |run| {
            scenario::rewind_elsewhere(run, protocol)
        });
        suites.push(Suite {
            broker: Some(BrokerKind::Kafka),
            on_demand: protocol == Protocol::Classic,
            ..suite
        });
    }
    suites
}

/// `mixed/<protocol>`: one member of each library whose toolchain is there.
fn mixed(protocol: Protocol) -> Suite {
    let name = format!("mixed/{}", protocol.name());
    Suite::new(name, &[catalog::ADMINISTRATOR.toolchain], move |run| {
        let mut agents = Vec::new();
        for source in catalog::ALL {
            if source.protocols.contains(&protocol) && source.toolchain.missing().is_none() {
                agents.push(Agent::install(source, run)?);
            }
        }
        scenario::mixed(run, &agents, protocol)
    })
}
