//! One process at a time in a data folder.

use std::{
    collections::BTreeSet,
    fs::{File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use parking_lot::Mutex;
use rustix::{
    fs::{FlockOperation, fcntl_lock},
    io::Errno,
};

use crate::LogError;

/// The folders that this process has locked.
///
/// The system's locks belong to the process as a whole: it would get a second one of the same file,
/// and closing either file would release both.
static HELD: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Keeps other processes out of a data folder, by a lock on the file `.lock` in it.
///
/// It is the lock that Apache Kafka takes (`FileChannel.tryLock`, which is `fcntl(F_SETLK)`), so
/// that each of the two notices the other. The operating system releases it when the process ends,
/// however it ends.
#[derive(Debug)]
pub struct FolderLock {
    folder: PathBuf,
    /// `None` only while it is dropped.
    file: Option<File>,
}

impl FolderLock {
    /// Locks the folder, which must exist.
    pub fn acquire(folder: &Path) -> Result<FolderLock, LogError> {
        let path = folder.join(".lock");
        let failed = |action, error| LogError::io(action, path.display().to_string(), error);
        let locked = || LogError::Locked {
            folder: folder.to_owned(),
        };
        let real = folder
            .canonicalize()
            .map_err(|e| failed("cannot open", e))?;
        let mut held = HELD.lock();
        if held.contains(&real) {
            return Err(locked());
        }
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(|e| failed("cannot open", e))?;
        match fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            // POSIX allows either.
            Err(Errno::AGAIN | Errno::ACCESS) => return Err(locked()),
            Err(error) => return Err(failed("cannot lock", io::Error::from(error))),
        }
        held.insert(real.clone());
        Ok(FolderLock {
            folder: real,
            file: Some(file),
        })
    }
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        let mut held = HELD.lock();
        // Closing the file releases the lock, so it must not come after another open.
        self.file = None;
        held.remove(&self.folder);
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{BufRead, BufReader},
        process::{Command, Stdio},
    };

    use super::*;

    #[test]
    fn a_folder_is_held_by_one_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let lock = FolderLock::acquire(folder.path()).unwrap();
        for _ in 0..2 {
            let error = FolderLock::acquire(folder.path()).unwrap_err();
            assert!(matches!(error, LogError::Locked { .. }));
            assert!(error.to_string().contains(folder.path().to_str().unwrap()));
        }
        drop(lock);
        FolderLock::acquire(folder.path()).unwrap();
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let error = FolderLock::acquire(Path::new("/nowhere/at/all")).unwrap_err();
        assert!(error.to_string().contains("/nowhere/at/all"), "{error}");
    }

    /// In which folder the child below takes Kafka's lock.
    const CHILD: &str = "KOHORT_TEST_LOCKED_FOLDER";

    /// The other process of the next test; by itself it does nothing.
    #[test]
    fn child_that_locks_as_kafka_does() {
        let Ok(folder) = std::env::var(CHILD) else {
            return;
        };
        let path = Path::new(&folder).join(".lock");
        let file = OpenOptions::new().write(true).open(path).unwrap();
        match fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => println!("\nlocked"),
            Err(_) => println!("\nrefused"),
        }
        // Until the parent closes its end.
        let _ = io::stdin().read_line(&mut String::new());
    }

    #[test]
    fn kafkas_lock_and_kohorts_exclude_each_other() {
        let folder = tempfile::tempdir().unwrap();
        drop(FolderLock::acquire(folder.path()).unwrap());
        let child = || {
            let mut child = Command::new(std::env::current_exe().unwrap())
                .args(["--nocapture", "child_that_locks_as_kafka_does"])
                .env(CHILD, folder.path())
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let lines = BufReader::new(child.stdout.take().unwrap()).lines();
            let mut lines = lines.map(Result::unwrap);
            let said = lines.find(|line| line == "locked" || line == "refused");
            (child, said.unwrap())
        };
        let (mut kafka, said) = child();
        assert_eq!(said, "locked");
        let error = FolderLock::acquire(folder.path()).unwrap_err();
        assert!(matches!(error, LogError::Locked { .. }), "{error}");
        drop(kafka.stdin.take());
        kafka.wait().unwrap();

        let lock = FolderLock::acquire(folder.path()).unwrap();
        // A refused attempt in this process must not release it.
        FolderLock::acquire(folder.path()).unwrap_err();
        let (mut kafka, said) = child();
        assert_eq!(said, "refused");
        drop(kafka.stdin.take());
        kafka.wait().unwrap();
        drop(lock);
    }
}
