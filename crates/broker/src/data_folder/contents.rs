//! Whose a folder is, by what is in it.

use std::{fs, io, path::Path};

use super::{CATALOG, OLD};

/// Whose a folder is.
#[derive(Debug)]
pub(super) enum Contents {
    /// It has kohort's catalog.
    Kohorts,
    /// It has no partitions of anybody, so kohort may use it.
    Free,
    /// It has partitions, or what Kafka writes beside them, and nothing of kohort's.
    ForeignPartitions { found: String },
    /// It has kohort's partitions, and the catalog is gone.
    CatalogMissing { found: String },
}

/// What Apache Kafka writes into a data folder, besides partitions.
const KAFKAS: [&str; 7] = [
    "meta.properties",
    "bootstrap.checkpoint",
    "__cluster_metadata-0",
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
    "log-start-offset-checkpoint",
    "cleaner-offset-checkpoint",
];

/// What kohort writes into a partition's folder and Kafka does not.
const OF_KOHORTS_PARTITIONS: [&str; 3] = ["recovery-point", "log-checkpoint", "clean-shutdown"];

/// Looks at a folder without changing anything.
pub(super) fn inspect(folder: &Path) -> io::Result<Contents> {
    if folder.join(CATALOG).try_exists()? {
        return Ok(Contents::Kohorts);
    }
    let old_catalog = format!("{CATALOG}{OLD}");
    let mut kohorts = None;
    let mut foreign = None;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        if name == old_catalog {
            kohorts = Some(name);
        } else if KAFKAS.contains(&name.as_str()) {
            // It says most clearly whose the folder is.
            foreign = Some(name);
        } else if entry.file_type()?.is_dir() && is_named_like_a_partition(&name) {
            match partition(&entry.path())? {
                Some(Owner::Kohort) => kohorts = Some(name),
                Some(Owner::Unknown) => {
                    foreign.get_or_insert(name);
                }
                None => {}
            }
        }
    }
    Ok(match (kohorts, foreign) {
        (Some(found), _) => Contents::CatalogMissing { found },
        (None, Some(found)) => Contents::ForeignPartitions { found },
        (None, None) => Contents::Free,
    })
}

/// `<topic>-<partition>`, also with what Kafka and kohort append to the names of folders that are
/// to be removed or have been set aside.
fn is_named_like_a_partition(name: &str) -> bool {
    let name = match name.rsplit_once('.') {
        Some((name, end)) if end.ends_with("-delete") || end.ends_with("-stray") => name,
        _ => name,
    };
    let index = name.rsplit_once('-').map(|(_, index)| index);
    index.is_some_and(|index| !index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit()))
}

enum Owner {
    Kohort,
    Unknown,
}

/// The program that wrote the partitions of a folder, if it holds any.
fn partition(folder: &Path) -> io::Result<Option<Owner>> {
    let mut owner = None;
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let Some(name) = name.to_str() else { continue };
        if OF_KOHORTS_PARTITIONS.contains(&name) {
            return Ok(Some(Owner::Kohort));
        }
        if name == "partition.metadata" || is_segment(name) {
            owner = Some(Owner::Unknown);
        }
    }
    Ok(owner)
}

/// Whether a file of that name holds records.
pub(crate) fn is_segment(name: &str) -> bool {
    let digits = name.strip_suffix(".log").unwrap_or_default();
    digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit())
}
