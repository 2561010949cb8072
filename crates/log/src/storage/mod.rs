//! What a log needs of a folder: the one place where it meets an operating system.

mod disk;
mod memory;
mod open_files;

use std::{io, sync::Arc};

pub use disk::DiskStorage;
pub use memory::MemoryStorage;
pub use open_files::OpenFiles;

/// The folder of one partition.
///
/// What is written may be lost in a power failure until [`StorageFile::sync`], and what is
/// created, renamed or removed until [`Storage::sync`].
pub trait Storage: Send + Sync {
    /// What to call the folder in messages.
    fn name(&self) -> String;

    /// The names of the files in it.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Opens a file to read and write.
    fn open(&self, name: &str) -> io::Result<Arc<dyn StorageFile>>;

    /// Makes an empty file, in place of one that may be there, and opens it to read and write.
    fn create(&self, name: &str) -> io::Result<Arc<dyn StorageFile>>;

    /// Renames a file, in place of one that may have the new name.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file. Open handles can still read it.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes durable which files there are.
    fn sync(&self) -> io::Result<()>;

    /// The folder belongs to another log from now on: this one opens and changes nothing in it.
    /// Files that are open can be read.
    fn detach(&self) {}
}

/// An open file.
pub trait StorageFile: Send + Sync {
    /// Its length in bytes.
    fn len(&self) -> io::Result<u64>;

    /// Whether it has no bytes.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Appends up to `length` bytes from `position` on to `out`; fewer only at the file's end.
    fn read_at(&self, out: &mut Vec<u8>, position: u64, length: usize) -> io::Result<()>;

    /// Writes all the bytes at `position`. After an error any part of them may be there.
    fn write_at(&self, bytes: &[u8], position: u64) -> io::Result<()>;

    /// Cuts the file off.
    fn truncate(&self, length: u64) -> io::Result<()>;

    /// Makes durable what was written.
    fn sync(&self) -> io::Result<()>;

    /// When the file was last written to, in ms since 1970; `None` if that is not known.
    fn modified_ms(&self) -> io::Result<Option<i64>> {
        Ok(None)
    }

    /// Sets when the file was last written to, as far as the storage keeps that.
    fn set_modified_ms(&self, _time_ms: i64) -> io::Result<()> {
        Ok(())
    }
}

/// All bytes of the file of that name, or `None` if there is none.
pub(crate) fn read_file(storage: &dyn Storage, name: &str) -> io::Result<Option<Vec<u8>>> {
    let file = match storage.open(name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let length = file.len()? as usize;
    let mut bytes = Vec::with_capacity(length);
    file.read_at(&mut bytes, 0, length)?;
    Ok(Some(bytes))
}

/// Replaces the file of that name, or leaves it as it is and returns an error. After a crash it is
/// the old one or the new one.
pub(crate) fn replace_file(storage: &dyn Storage, name: &str, bytes: &[u8]) -> io::Result<()> {
    let before = read_file(storage, name)?;
    put_file(storage, name, bytes)?;
    storage.sync().inspect_err(|_| {
        // A restart must not find what the caller is told has failed.
        let _ = match before {
            Some(before) => put_file(storage, name, &before),
            None => remove_file(storage, name),
        };
    })
}

fn put_file(storage: &dyn Storage, name: &str, bytes: &[u8]) -> io::Result<()> {
    let temporary = format!("{name}.tmp");
    let file = storage.create(&temporary)?;
    file.write_at(bytes, 0)?;
    file.sync()?;
    storage.rename(&temporary, name)
}

/// Removes a file that may be gone already.
pub(crate) fn remove_file(storage: &dyn Storage, name: &str) -> io::Result<()> {
    match storage.remove(name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}
