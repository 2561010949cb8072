//! Open files as a budget for all logs together: the least recently used are closed when
//! there are too many, and opened again when they are needed.

use std::{
    collections::VecDeque,
    fs::File,
    io,
    path::PathBuf,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use parking_lot::{Mutex, MutexGuard};
use rustix::io::Errno;

/// How many files are closed when the process has no file descriptor left.
const CLOSED_AT_ONCE: usize = 16;

/// The open files of any number of logs.
///
/// A file that is not used costs no file descriptor: when there are too many open files, the ones
/// that have not been used for longest are closed (by the clock algorithm, which approximates
/// that), and opened again at their next use.
#[derive(Debug)]
pub struct OpenFiles {
    limit: usize,
    count: AtomicUsize,
    /// The hand of the clock is at the front.
    clock: Mutex<VecDeque<Weak<Handle>>>,
}

/// A file, whether it is open or not.
#[derive(Debug)]
pub(super) struct Handle {
    files: Arc<OpenFiles>,
    /// Used since the hand of the clock passed.
    used: AtomicBool,
    /// The folder belongs to another log now, or is gone.
    detached: Arc<AtomicBool>,
    state: Mutex<State>,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) path: PathBuf,
    file: Option<Arc<File>>,
    /// Written since it was last synced.
    dirty: bool,
    /// Its name is gone, or is another file's: it cannot be opened again.
    pinned: bool,
    /// Syncing it before it was closed failed, which was not reported yet.
    failed: Option<io::ErrorKind>,
}

impl OpenFiles {
    /// At most about `limit` files open at a time.
    pub fn new(limit: usize) -> Arc<OpenFiles> {
        Arc::new(OpenFiles {
            limit,
            count: AtomicUsize::new(0),
            clock: Mutex::new(VecDeque::new()),
        })
    }

    /// Without a limit but that of the process.
    pub fn unlimited() -> Arc<OpenFiles> {
        OpenFiles::new(usize::MAX)
    }

    /// How many files are open.
    pub fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// Closes the files that have not been used since the last call.
    pub fn close_idle(&self) {
        let round = self.clock.lock().len();
        for _ in 0..round {
            self.close_one(1, true);
        }
    }

    /// Does something that takes a file descriptor. If the process has none left, closes files and
    /// tries once more.
    pub fn with_room<T>(&self, mut open: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        match open() {
            Err(error) if is_out_of_files(&error) => {
                let closed = (0..CLOSED_AT_ONCE).filter(|_| self.close_any()).count();
                match closed {
                    0 => Err(error),
                    _ => open(),
                }
            }
            result => result,
        }
    }

    fn make_room(&self) {
        while self.count() >= self.limit && self.close_any() {}
    }

    /// Closes a file: rather one that need not be synced first.
    fn close_any(&self) -> bool {
        let round = self.clock.lock().len();
        // The first round clears the marks of use.
        self.close_one(2 * round, false) || self.close_one(2 * round, true)
    }

    /// Lets the hand pass up to `steps` files, and closes the first that has not been used.
    fn close_one(&self, steps: usize, may_sync: bool) -> bool {
        for _ in 0..steps {
            let Some(handle) = self.clock.lock().pop_front() else {
                return false;
            };
            let Some(known) = handle.upgrade() else {
                continue;
            };
            if known.used.swap(false, Ordering::AcqRel) {
                self.clock.lock().push_back(handle);
                continue;
            }
            match known.close(may_sync) {
                Closed::Yes => return true,
                Closed::Already => {}
                Closed::No => self.clock.lock().push_back(handle),
            }
        }
        false
    }
}

fn is_out_of_files(error: &io::Error) -> bool {
    let code = error.raw_os_error();
    code == Some(Errno::MFILE.raw_os_error()) || code == Some(Errno::NFILE.raw_os_error())
}

enum Closed {
    Yes,
    Already,
    No,
}

impl Handle {
    /// A file that has just been opened.
    pub(super) fn new(
        files: &Arc<OpenFiles>,
        detached: &Arc<AtomicBool>,
        path: PathBuf,
        open: impl FnMut() -> io::Result<File>,
    ) -> io::Result<Arc<Handle>> {
        files.make_room();
        let file = files.with_room(open)?;
        files.count.fetch_add(1, Ordering::AcqRel);
        let handle = Arc::new(Handle {
            files: Arc::clone(files),
            used: AtomicBool::new(true),
            detached: Arc::clone(detached),
            state: Mutex::new(State {
                path,
                file: Some(Arc::new(file)),
                dirty: false,
                pinned: false,
                failed: None,
            }),
        });
        files.clock.lock().push_back(Arc::downgrade(&handle));
        Ok(handle)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// The file, opened if need be.
    pub(super) fn file(self: &Arc<Self>) -> io::Result<Arc<File>> {
        self.open(&mut self.state.lock())
    }

    fn open(self: &Arc<Self>, state: &mut State) -> io::Result<Arc<File>> {
        self.used.store(true, Ordering::Release);
        if let Some(file) = &state.file {
            return Ok(Arc::clone(file));
        }
        if self.detached.load(Ordering::Acquire) {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.files.make_room();
        let path = &state.path;
        let open = || File::options().read(true).write(true).open(path);
        let file = Arc::new(self.files.with_room(open)?);
        self.files.count.fetch_add(1, Ordering::AcqRel);
        state.file = Some(Arc::clone(&file));
        self.files.clock.lock().push_back(Arc::downgrade(self));
        Ok(file)
    }

    /// Keeps the file open: its name is about to go.
    pub(super) fn pin(self: &Arc<Self>) -> io::Result<()> {
        let mut state = self.state.lock();
        self.open(&mut state)?;
        state.pinned = true;
        Ok(())
    }

    /// The file, to be written.
    pub(super) fn written(self: &Arc<Self>) -> io::Result<Arc<File>> {
        let mut state = self.state.lock();
        let file = self.open(&mut state)?;
        state.dirty = true;
        Ok(file)
    }

    pub(super) fn sync(self: &Arc<Self>) -> io::Result<()> {
        let file = {
            let mut state = self.state.lock();
            if let Some(kind) = state.failed.take() {
                return Err(kind.into());
            }
            // What is written from now on needs another one.
            state.dirty = false;
            self.open(&mut state)?
        };
        file.sync_data()
            .inspect_err(|_| self.state.lock().dirty = true)
    }

    /// Closes the file. One that has been written is synced first: after it is closed, an error of
    /// the device might go unreported.
    fn close(&self, may_sync: bool) -> Closed {
        let Some(mut state) = self.state.try_lock() else {
            return Closed::No;
        };
        let Some(file) = &state.file else {
            return Closed::Already;
        };
        if state.pinned || (state.dirty && !may_sync) {
            return Closed::No;
        }
        if state.dirty {
            let synced = file.sync_data();
            state.dirty = false;
            state.failed = state.failed.or(synced.err().map(|error| error.kind()));
        }
        state.file = None;
        self.files.count.fetch_sub(1, Ordering::AcqRel);
        Closed::Yes
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if self.state.get_mut().file.is_some() {
            self.files.count.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DiskStorage, Storage};

    fn contents(file: &Arc<dyn crate::StorageFile>) -> String {
        let mut bytes = Vec::new();
        file.read_at(&mut bytes, 0, 100).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    fn files_of(storage: &DiskStorage, count: usize) -> Vec<Arc<dyn crate::StorageFile>> {
        let files = (0..count).map(|number| {
            let file = storage.create(&number.to_string()).unwrap();
            file.write_at(format!("file {number}").as_bytes(), 0)
                .unwrap();
            file
        });
        files.collect()
    }

    #[test]
    fn more_files_are_used_than_are_open() {
        let folder = tempfile::tempdir().unwrap();
        let open = OpenFiles::new(3);
        let storage = DiskStorage::with_files(folder.path(), Arc::clone(&open)).unwrap();
        let files = files_of(&storage, 20);
        for round in 0..3 {
            for (number, file) in files.iter().enumerate() {
                assert_eq!(contents(file), format!("file {number}"), "round {round}");
                file.sync().unwrap();
                assert!(open.count() <= 3);
            }
        }
        drop(files);
        assert_eq!(open.count(), 0);
    }

    #[test]
    fn a_file_that_is_not_used_is_closed() {
        let folder = tempfile::tempdir().unwrap();
        let open = OpenFiles::unlimited();
        let storage = DiskStorage::with_files(folder.path(), Arc::clone(&open)).unwrap();
        let files = files_of(&storage, 5);
        open.close_idle();
        assert_eq!(open.count(), 5, "they have just been used");
        contents(&files[2]);
        open.close_idle();
        assert_eq!(open.count(), 1);
        open.close_idle();
        assert_eq!(open.count(), 0);
        assert_eq!(contents(&files[4]), "file 4");
        assert_eq!(open.count(), 1);
    }

    #[test]
    fn a_closed_file_follows_its_name_and_a_removed_one_stays_readable() {
        let folder = tempfile::tempdir().unwrap();
        let open = OpenFiles::new(1);
        let storage = DiskStorage::with_files(folder.path(), Arc::clone(&open)).unwrap();
        let files = files_of(&storage, 4);
        // 0 replaces 1, 2 goes, and all of them were closed.
        storage.rename("0", "1").unwrap();
        storage.remove("2").unwrap();
        contents(&files[3]);
        for (number, file) in files.iter().enumerate() {
            assert_eq!(contents(file), format!("file {number}"));
        }
        let replaced = storage.open("1").unwrap();
        assert_eq!(contents(&replaced), "file 0");
    }

    #[test]
    fn a_folder_that_belongs_to_another_log_is_not_touched() {
        let folder = tempfile::tempdir().unwrap();
        let open = OpenFiles::new(1);
        let storage = DiskStorage::with_files(folder.path(), Arc::clone(&open)).unwrap();
        let files = files_of(&storage, 2);
        storage.detach();
        assert!(files[0].len().is_err());
        assert_eq!(contents(&files[1]), "file 1", "it is still open");
        assert!(storage.create("3").is_err());
        assert!(storage.open("0").is_err());
        assert!(storage.remove("0").is_err());
        assert!(storage.rename("0", "5").is_err());
        assert!(!folder.path().join("3").exists() && folder.path().join("0").exists());
    }
}
