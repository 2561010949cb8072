//! A folder of the file system.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, UNIX_EPOCH},
};

use super::{Storage, StorageFile};

/// A folder of the file system.
#[derive(Debug)]
pub struct DiskStorage {
    folder: PathBuf,
    /// The folder is new, and its parent does not know that durably.
    is_new: AtomicBool,
}

impl DiskStorage {
    /// The folder, which is made if there is none (its parent is not).
    pub fn open(folder: impl Into<PathBuf>) -> io::Result<DiskStorage> {
        let folder = folder.into();
        let is_new = match DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => true,
            // On a read-only file system that is what it says even if the folder is there.
            Err(_) if folder.is_dir() => false,
            Err(error) => return Err(error),
        };
        Ok(DiskStorage {
            folder,
            is_new: AtomicBool::new(is_new),
        })
    }
}

impl Storage for DiskStorage {
    fn name(&self) -> String {
        self.folder.display().to_string()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            // What is not UTF-8 is not the log's.
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn StorageFile>> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(self.folder.join(name))?;
        Ok(Arc::new(DiskFile(file)))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn StorageFile>> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(self.folder.join(name))?;
        Ok(Arc::new(DiskFile(file)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.folder.join(from), self.folder.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.folder.join(name))
    }

    fn sync(&self) -> io::Result<()> {
        File::open(&self.folder)?.sync_all()?;
        if self.is_new.load(Ordering::Acquire) {
            let parent = self
                .folder
                .parent()
                .filter(|parent| !parent.as_os_str().is_empty());
            File::open(parent.unwrap_or(Path::new(".")))?.sync_all()?;
            self.is_new.store(false, Ordering::Release);
        }
        Ok(())
    }
}

struct DiskFile(File);

impl StorageFile for DiskFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_at(&self, out: &mut Vec<u8>, position: u64, length: usize) -> io::Result<()> {
        let end = out.len() + length;
        out.reserve(length);
        while out.len() < end {
            let left = end - out.len();
            let at = position + (length - left) as u64;
            // Reading into memory that is not initialised yet saves clearing it first. There may
            // be more room than was asked for.
            let read = rustix::io::pread(&self.0, rustix::buffer::spare_capacity(&mut *out), at);
            match read {
                Ok(0) => break,
                Ok(_) => out.truncate(end),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], position: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, position)
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn modified_ms(&self) -> io::Result<Option<i64>> {
        let modified = self.0.metadata()?.modified()?;
        // A date before 1970 is none that this program has set.
        let since = modified.duration_since(UNIX_EPOCH).ok();
        Ok(since.and_then(|since| i64::try_from(since.as_millis()).ok()))
    }

    fn set_modified_ms(&self, time_ms: i64) -> io::Result<()> {
        let since = Duration::from_millis(time_ms.max(0) as u64);
        self.0.set_modified(UNIX_EPOCH + since)
    }
}
