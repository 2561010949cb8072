//! The agents that there are. A new client library is one entry here and one
//! program in interop/.

use std::ffi::OsString;

use super::Protocol;
use crate::failure::Failure;
use crate::install::{Toolchain, go, maven, node, python, rust};
use crate::workspace::Workspace;

/// Where an agent comes from.
pub(crate) struct Source {
    pub(crate) name: &'static str,
    pub(crate) toolchain: Toolchain,
    /// The group protocols that the library offers.
    pub(crate) protocols: &'static [Protocol],
    /// The protocols with which it takes part in the suite of static members.
    pub(crate) static_members: &'static [Protocol],
    /// Installs the agent, and gives the command that runs it.
    pub(crate) install: fn(&Workspace) -> Result<Vec<OsString>, Failure>,
}

const BOTH: &[Protocol] = &Protocol::ALL;
const CLASSIC: &[Protocol] = &[Protocol::Classic];

/// All agents.
pub(crate) const ALL: &[Source] = &[
    Source {
        name: "java",
        toolchain: Toolchain::Java,
        protocols: BOTH,
        static_members: BOTH,
        install: |workspace| maven::program(workspace, "Agent"),
    },
    Source {
        name: "confluent-kafka",
        toolchain: Toolchain::Python,
        protocols: BOTH,
        static_members: BOTH,
        install: |workspace| python::agent(workspace, "confluent_agent.py"),
    },
    Source {
        name: "kafka-python",
        toolchain: Toolchain::Python,
        protocols: CLASSIC,
        static_members: CLASSIC,
        install: |workspace| python::agent(workspace, "kafka_python_agent.py"),
    },
    Source {
        name: "aiokafka",
        toolchain: Toolchain::Python,
        protocols: CLASSIC,
        static_members: CLASSIC,
        install: |workspace| python::agent(workspace, "aiokafka_agent.py"),
    },
    FRANZ_GO,
    KOHORT,
    Source {
        name: "platformatic",
        toolchain: Toolchain::Node,
        protocols: BOTH,
        static_members: &[],
        install: |workspace| node::agent(workspace, "platformatic_agent.mjs"),
    },
    Source {
        name: "kafkajs",
        toolchain: Toolchain::Node,
        protocols: CLASSIC,
        static_members: &[],
        install: |workspace| node::agent(workspace, "kafkajs_agent.mjs"),
    },
];

/// kohort's own client.
pub(crate) const KOHORT: Source = Source {
    name: "kohort",
    toolchain: Toolchain::Rust,
    protocols: BOTH,
    static_members: BOTH,
    install: rust::agent,
};

/// The agent whose `describe` tells the checks how a group stands.
pub(crate) const ADMINISTRATOR: Source = FRANZ_GO;

const FRANZ_GO: Source = Source {
    name: "franz-go",
    toolchain: Toolchain::Go,
    protocols: BOTH,
    // With the consumer protocol its goodbye lacks the instance id, and is refused.
    static_members: CLASSIC,
    install: go::agent,
};
