//! One process at a time in a data folder.

use std::{
    fs::{File, OpenOptions, TryLockError},
    path::Path,
};

use crate::LogError;

/// Keeps other processes out of a data folder, by a lock on the file `.lock` in it, as Kafka does.
///
/// The operating system lets go of it when the process ends, however it ends.
#[derive(Debug)]
pub struct FolderLock {
    _file: File,
}

impl FolderLock {
    /// Locks the folder, which must be there.
    pub fn acquire(folder: &Path) -> Result<FolderLock, LogError> {
        let path = folder.join(".lock");
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(|e| LogError::io("cannot open", path.display().to_string(), e))?;
        match file.try_lock() {
            Ok(()) => Ok(FolderLock { _file: file }),
            Err(TryLockError::WouldBlock) => Err(LogError::Locked {
                folder: folder.to_owned(),
            }),
            Err(TryLockError::Error(e)) => {
                Err(LogError::io("cannot lock", path.display().to_string(), e))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_held_by_one_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let lock = FolderLock::acquire(folder.path()).unwrap();
        let error = FolderLock::acquire(folder.path()).unwrap_err();
        assert!(matches!(error, LogError::Locked { .. }));
        assert!(error.to_string().contains(folder.path().to_str().unwrap()));
        drop(lock);
        FolderLock::acquire(folder.path()).unwrap();
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let error = FolderLock::acquire(Path::new("/nowhere/at/all")).unwrap_err();
        assert!(error.to_string().contains("/nowhere/at/all"), "{error}");
    }
}
