//! An installation is repeated only when what it was made from has changed.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Runs `install` unless `folder` was made from exactly these sources before.
pub(super) fn unless_made(
    folder: &Path,
    sources: &[PathBuf],
    install: impl FnOnce() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut hasher = DefaultHasher::new();
    for source in sources {
        let bytes = fs::read(source)
            .map_err(|error| Failure::new(format!("{}: {error}", source.display())))?;
        (source.file_name(), bytes).hash(&mut hasher);
    }
    unless_made_from(folder, &format!("{:016x}", hasher.finish()), install)
}

/// Runs `install` unless `folder` was made from what these words name.
pub(super) fn unless_made_from(
    folder: &Path,
    wanted: &str,
    install: impl FnOnce() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let stamp = folder.join(".made-from");
    let wanted = format!("{wanted}\n");
    if fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        return Ok(());
    }
    install()?;
    fs::write(stamp, wanted)?;
    Ok(())
}

/// The files of a folder with one of these endings, sorted.
pub(super) fn files(folder: &Path, endings: &[&str]) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if path.is_file() && endings.iter().any(|ending| name.ends_with(ending)) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
