//! A folder of the file system.

use std::{
    collections::HashMap,
    fs::{self, DirBuilder, File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, UNIX_EPOCH},
};

use parking_lot::Mutex;

use super::{
    Storage, StorageFile,
    open_files::{Handle, OpenFiles},
};

/// A folder of the file system.
#[derive(Debug)]
pub struct DiskStorage {
    folder: PathBuf,
    /// The folder is new, and its parent does not know that durably.
    is_new: AtomicBool,
    files: Arc<OpenFiles>,
    detached: Arc<AtomicBool>,
    /// The files in use, by name.
    ///
    /// This lock is taken before that of a file, which is taken before that of [`OpenFiles`].
    known: Mutex<HashMap<String, Vec<Weak<Handle>>>>,
}

impl DiskStorage {
    /// The folder, which is made if there is none (its parent is not).
    pub fn open(folder: impl Into<PathBuf>) -> io::Result<DiskStorage> {
        DiskStorage::with_files(folder, OpenFiles::unlimited())
    }

    /// The folder, as [`open`](DiskStorage::open) has it, within a budget of open files.
    pub fn with_files(
        folder: impl Into<PathBuf>,
        files: Arc<OpenFiles>,
    ) -> io::Result<DiskStorage> {
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
            files,
            detached: Arc::default(),
            known: Mutex::default(),
        })
    }

    fn open_with(&self, name: &str, options: &OpenOptions) -> io::Result<Arc<dyn StorageFile>> {
        let path = self.folder.join(name);
        // Held, so that the file is not renamed before it is known.
        let mut known = self.known.lock();
        self.check_attached()?;
        let open = || options.open(&path);
        let handle = Handle::new(&self.files, &self.detached, path.clone(), open)?;
        if known.len() == known.capacity() {
            known.retain(|_, handles| handles.iter().any(|handle| handle.strong_count() > 0));
        }
        let handles = known.entry(name.to_owned()).or_default();
        handles.retain(|handle| handle.strong_count() > 0);
        handles.push(Arc::downgrade(&handle));
        Ok(Arc::new(DiskFile(handle)))
    }

    fn check_attached(&self) -> io::Result<()> {
        if self.detached.load(Ordering::Acquire) {
            Err(io::ErrorKind::NotFound.into())
        } else {
            Ok(())
        }
    }
}

fn alive(known: &HashMap<String, Vec<Weak<Handle>>>, name: &str) -> Vec<Arc<Handle>> {
    let handles = known.get(name).into_iter().flatten();
    handles.filter_map(Weak::upgrade).collect()
}

impl Storage for DiskStorage {
    fn name(&self) -> String {
        self.folder.display().to_string()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in self.files.with_room(|| fs::read_dir(&self.folder))? {
            // What is not UTF-8 is not the log's.
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn StorageFile>> {
        self.open_with(name, OpenOptions::new().read(true).write(true))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn StorageFile>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true);
        self.open_with(name, options.mode(0o600))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut known = self.known.lock();
        self.check_attached()?;
        for replaced in alive(&known, to) {
            replaced.pin()?;
        }
        let renamed = alive(&known, from);
        // None of them may be opened in between, by a name that is no longer right.
        let mut states: Vec<_> = renamed.iter().map(|handle| handle.lock()).collect();
        let path = self.folder.join(to);
        fs::rename(self.folder.join(from), &path)?;
        for state in &mut states {
            state.path.clone_from(&path);
        }
        drop(states);
        let handles = known.remove(from).unwrap_or_default();
        known.insert(to.to_owned(), handles);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut known = self.known.lock();
        self.check_attached()?;
        for removed in alive(&known, name) {
            removed.pin()?;
        }
        fs::remove_file(self.folder.join(name))?;
        known.remove(name);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.check_attached()?;
        let sync = |folder: &Path| self.files.with_room(|| File::open(folder))?.sync_all();
        sync(&self.folder)?;
        if self.is_new.load(Ordering::Acquire) {
            let parent = self
                .folder
                .parent()
                .filter(|parent| !parent.as_os_str().is_empty());
            sync(parent.unwrap_or(Path::new(".")))?;
            self.is_new.store(false, Ordering::Release);
        }
        Ok(())
    }

    fn detach(&self) {
        self.detached.store(true, Ordering::Release);
    }
}

struct DiskFile(Arc<Handle>);

impl StorageFile for DiskFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.file()?.metadata()?.len())
    }

    fn read_at(&self, out: &mut Vec<u8>, position: u64, length: usize) -> io::Result<()> {
        let file = self.0.file()?;
        let end = out.len() + length;
        out.reserve(length);
        while out.len() < end {
            let left = end - out.len();
            let at = position + (length - left) as u64;
            // Reading into memory that is not initialised yet saves clearing it first. There may
            // be more room than was asked for.
            let read = rustix::io::pread(&*file, rustix::buffer::spare_capacity(&mut *out), at);
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
        self.0.written()?.write_all_at(bytes, position)
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.0.written()?.set_len(length)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }

    fn modified_ms(&self) -> io::Result<Option<i64>> {
        let modified = self.0.file()?.metadata()?.modified()?;
        // A date before 1970 is none that this program has set.
        let since = modified.duration_since(UNIX_EPOCH).ok();
        Ok(since.and_then(|since| i64::try_from(since.as_millis()).ok()))
    }

    fn set_modified_ms(&self, time_ms: i64) -> io::Result<()> {
        let since = Duration::from_millis(time_ms.max(0) as u64);
        self.0.file()?.set_modified(UNIX_EPOCH + since)
    }
}
