//! Kafka's message schemas, which its jars carry.

use std::path::PathBuf;

use super::{maven, stamp};
use crate::failure::Failure;
use crate::workspace::Workspace;

/// The folder with the schemas of the wire messages and of the records of the
/// coordinator, as `*.json`.
pub fn install(workspace: &Workspace) -> Result<PathBuf, Failure> {
    let pom = workspace.sources().join("oracle/pom.xml");
    let folder = workspace.made("schemas")?;
    let messages = folder.join("common/message");
    stamp::unless_made(&folder, std::slice::from_ref(&pom), || {
        let output = format!("-DoutputDirectory={}", folder.display());
        // Where Maven notes what it has unpacked: not among the sources, and gone with the folder.
        let markers = format!("-DmarkersDirectory={}", folder.join("markers").display());
        let goals = [
            "dependency:unpack-dependencies",
            "-DincludeGroupIds=org.apache.kafka",
            "-DincludeArtifactIds=kafka-clients,kafka-group-coordinator",
            "-Dmdep.unpack.includes=common/message/*.json",
            &output,
            &markers,
        ];
        maven::run(workspace, &pom, "schemas", &goals)?;
        if messages.is_dir() {
            Ok(())
        } else {
            Err(Failure::new(format!("nothing in {}", messages.display())))
        }
    })?;
    Ok(messages)
}
