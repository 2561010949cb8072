//! The data folder: whose it is, and every change of what is in it besides the partitions' own
//! files.

mod contents;
#[cfg(test)]
mod faults;

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use kohort_log::{FolderLock, LogError, OpenFiles};

pub(crate) use contents::is_segment;
use contents::{Contents, inspect};
#[cfg(test)]
pub(crate) use faults::Faults;

use crate::StartError;

/// The broker's catalog: its topics, settings and ids.
pub(crate) const CATALOG: &str = "kohort.json";
/// The end of the name of a file that is about to replace another.
const NEW: &str = ".new";
/// The end of the name under which a file is kept until its replacement is durable.
const OLD: &str = ".old";

/// A data folder that this process has locked.
///
/// Only the owner may look into it: records and group metadata are private.
#[derive(Debug)]
pub(crate) struct DataFolder {
    path: PathBuf,
    /// Kept open, so that syncing the folder needs no file descriptor of its own.
    handle: File,
    /// The budget of open files. The catalog has a reserve beside it.
    files: Arc<OpenFiles>,
    _lock: FolderLock,
    #[cfg(test)]
    pub(crate) faults: Faults,
}

impl DataFolder {
    /// Opens and locks the folder, creating it if need be. A folder that is not kohort's stays as
    /// it is, without even a lock file.
    pub(crate) fn open(path: &Path, files: Arc<OpenFiles>) -> Result<DataFolder, StartError> {
        let failed = |source| StartError::Folder {
            folder: path.to_owned(),
            source,
        };
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder.create(path).map_err(failed)?;
        let path = path.canonicalize().map_err(failed)?;
        match inspect(&path).map_err(failed)? {
            Contents::Kohorts | Contents::Free => {}
            Contents::ForeignPartitions { found } => {
                return Err(StartError::NotKohorts {
                    folder: path,
                    found,
                });
            }
            Contents::CatalogMissing { found } => {
                return Err(StartError::CatalogMissing {
                    folder: path,
                    found,
                });
            }
        }
        let lock = FolderLock::acquire(&path).map_err(|error| match error {
            LogError::Locked { folder } => StartError::Locked(folder),
            error => failed(io::Error::other(error)),
        })?;
        Ok(DataFolder {
            handle: File::open(&path).map_err(failed)?,
            path,
            files,
            _lock: lock,
            #[cfg(test)]
            faults: Faults::default(),
        })
    }

    /// The budget of open files.
    pub(crate) fn files(&self) -> &Arc<OpenFiles> {
        &self.files
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Where tests make an operation fail.
    #[cfg_attr(not(test), allow(clippy::unused_self, clippy::unnecessary_wraps))]
    fn step(&self) -> io::Result<()> {
        #[cfg(test)]
        self.faults.step()?;
        Ok(())
    }

    /// Makes durable which files and folders there are.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.step()?;
        self.handle.sync_all()
    }

    /// Replaces a file durably, or leaves it as it is and returns an error.
    ///
    /// If the replacement cannot be made durable, it is undone. Should undoing fail as well, the
    /// new file stays and counts: what is in memory must be what a restart finds.
    pub(crate) fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let path = self.path.join(name);
        let new = self.path.join(format!("{name}{NEW}"));
        let old = self.path.join(format!("{name}{OLD}"));
        self.write(&new, bytes, true)?;
        // Undoing is then one rename, which needs neither space nor a file descriptor.
        let had_old = self.keep(&path, &old)?;
        self.step().and_then(|()| fs::rename(&new, &path))?;
        if let Err(error) = self.sync() {
            let undone = self.step().and_then(|()| {
                if had_old {
                    fs::rename(&old, &path)
                } else {
                    fs::remove_file(&path)
                }
            });
            match undone {
                Ok(()) => {
                    let _ = self.sync();
                    return Err(error);
                }
                Err(undo) => tracing::error!(
                    "{} was replaced, but a power failure may undo that: {error}; restoring the \
                     old file failed too: {undo}",
                    path.display()
                ),
            }
        }
        if had_old {
            // The next replacement removes it otherwise.
            let _ = self.step().and_then(|()| fs::remove_file(&old));
        }
        Ok(())
    }

    /// Gives the file a second name. Returns whether there is such a file.
    fn keep(&self, path: &Path, old: &Path) -> io::Result<bool> {
        self.step()?;
        match fs::remove_file(old) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        match fs::hard_link(path, old) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            // Some file systems have no hard links.
            Err(_) => fs::copy(path, old).map(|_| true),
        }
    }

    fn write(&self, path: &Path, bytes: &[u8], durably: bool) -> io::Result<()> {
        self.step()?;
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = self.files.with_room(|| options.open(path))?;
        self.step()?;
        file.write_all(bytes)?;
        if durably {
            self.step()?;
            file.sync_all()?;
        }
        Ok(())
    }

    /// Writes a small file into a partition's folder.
    pub(crate) fn write_into(&self, folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.write(&folder.join(name), bytes, false)
    }

    /// Creates the folder of a partition.
    pub(crate) fn create_folder(&self, folder: &Path) -> io::Result<()> {
        self.step()?;
        DirBuilder::new().mode(0o700).create(folder)
    }

    pub(crate) fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step()?;
        fs::rename(from, to)
    }

    /// Removes a folder with everything in it.
    pub(crate) fn remove_tree(&self, folder: &Path) -> io::Result<()> {
        self.step()?;
        fs::remove_dir_all(folder)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn open(path: &Path) -> Result<DataFolder, StartError> {
        DataFolder::open(path, OpenFiles::unlimited())
    }

    fn refused(path: &Path) -> String {
        let names = |path: &Path| {
            let mut names: Vec<_> = fs::read_dir(path)
                .unwrap()
                .map(|entry| entry.unwrap().file_name())
                .collect();
            names.sort();
            names
        };
        let before = names(path);
        let error = open(path).unwrap_err().to_string();
        assert_eq!(names(path), before, "nothing is touched");
        error
    }

    fn partition(path: &Path, name: &str, files: &[&str]) {
        fs::create_dir(path.join(name)).unwrap();
        for file in files {
            fs::write(path.join(name).join(file), "x").unwrap();
        }
    }

    #[test]
    fn a_new_folder_is_readable_by_its_owner_only() {
        let parent = tempfile::tempdir().unwrap();
        let folder = open(&parent.path().join("a/b")).unwrap();
        folder.replace(CATALOG, b"{}").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(folder.path()), 0o700);
        assert_eq!(mode(&folder.path().join(CATALOG)), 0o600);
        assert_eq!(mode(&folder.path().join(".lock")), 0o600);
    }

    #[test]
    fn the_folder_of_apache_kafka_is_refused_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        partition(
            folder.path(),
            "orders-0",
            &["00000000000000000000.log", "partition.metadata"],
        );
        let error = refused(folder.path());
        assert!(
            error.contains("orders-0") && error.contains("not kohort's"),
            "{error}"
        );
        fs::write(folder.path().join("meta.properties"), "version=1").unwrap();
        let error = refused(folder.path());
        assert!(error.contains("meta.properties"), "{error}");
    }

    #[test]
    fn a_formatted_folder_of_apache_kafka_without_partitions_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("meta.properties"), "version=1").unwrap();
        let error = refused(folder.path());
        assert!(error.contains("meta.properties"), "{error}");
    }

    #[test]
    fn a_folder_of_kohort_without_its_catalog_is_refused_as_such() {
        for evidence in ["recovery-point", "log-checkpoint", "clean-shutdown"] {
            let folder = tempfile::tempdir().unwrap();
            let files = ["00000000000000000000.log", "partition.metadata", evidence];
            partition(folder.path(), "orders-0", &files);
            let error = refused(folder.path());
            assert!(error.contains("kohort.json is missing"), "{error}");
            fs::write(folder.path().join(CATALOG), "{}").unwrap();
            open(folder.path()).unwrap();
        }
    }

    #[test]
    fn a_folder_with_other_things_may_be_used() {
        let folder = tempfile::tempdir().unwrap();
        partition(folder.path(), "photos-2024", &["a.jpg"]);
        partition(folder.path(), "backup-1", &[]);
        fs::write(folder.path().join("notes.txt"), "x").unwrap();
        open(folder.path()).unwrap();
    }

    #[test]
    fn a_start_that_was_interrupted_may_be_repeated() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("kohort.json.new"), "{").unwrap();
        let folder = open(folder.path()).unwrap();
        folder.replace(CATALOG, b"{}").unwrap();
    }

    #[test]
    fn a_file_is_replaced_or_stays_whatever_fails() {
        for first in [true, false] {
            for failing in 0.. {
                let place = tempfile::tempdir().unwrap();
                let folder = open(place.path()).unwrap();
                if !first {
                    folder.replace(CATALOG, b"before").unwrap();
                }
                let is_last = {
                    let _fault = folder.faults.fail_once(failing);
                    let replaced = folder.replace(CATALOG, b"after");
                    let found = fs::read(place.path().join(CATALOG)).ok();
                    let expected: Option<&[u8]> = match (&replaced, first) {
                        (Ok(()), _) => Some(b"after"),
                        (Err(_), true) => None,
                        (Err(_), false) => Some(b"before"),
                    };
                    assert_eq!(found.as_deref(), expected, "{failing}");
                    folder.faults.count() <= failing
                };
                folder.replace(CATALOG, b"healed").unwrap();
                if is_last {
                    break;
                }
            }
        }
    }
}
