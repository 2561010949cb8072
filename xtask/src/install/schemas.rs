//! Kafka's message schemas, which its jars carry.

use std::path::PathBuf;

use super::{maven, stamp};
use crate::failure::Failure;
use crate::workspace::Workspace;

/// The folder with the schemas of the wire messages and of the records of the
/// coordinator, as `*.json`.
pub(crate) fn install(workspace: &Workspace) -> Result<PathBuf, Failure> {
    let pom = workspace.sources().join("oracle/pom.xml");
    let folder = workspace.made("schemas")?;
    stamp::unless_made(&folder, std::slice::from_ref(&pom), || {
        let output = format!("-DoutputDirectory={}", folder.display());
        // Notes of what was unpacked, which would otherwise lie among the sources.
        let markers = format!("-DmarkersDirectory={}", folder.join("markers").display());
        let goals = [
            "dependency:unpack-dependencies",
            "-DincludeGroupIds=org.apache.kafka",
            "-DincludeArtifactIds=kafka-clients,kafka-group-coordinator",
            "-Dmdep.unpack.includes=common/message/*.json",
            &output,
            &markers,
        ];
        maven::run(workspace, &pom, "schemas", &goals)
    })?;
    let messages = folder.join("common/message");
    if stamp::files(&messages, &[".json"])?.is_empty() {
        return Err(Failure::new(format!("no schema in {}", messages.display())));
    }
    Ok(messages)
}
