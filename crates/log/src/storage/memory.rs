//! A folder in memory, for tests and for brokers that keep nothing.

use std::{collections::BTreeMap, io, sync::Arc};

use parking_lot::{Mutex, RwLock};

use super::{Storage, StorageFile};

/// A folder in memory, gone when it is dropped.
#[derive(Debug, Default)]
pub struct MemoryStorage {
    files: Mutex<BTreeMap<String, Arc<MemoryFile>>>,
}

impl MemoryStorage {
    /// An empty folder.
    pub fn new() -> MemoryStorage {
        MemoryStorage::default()
    }
}

impl Storage for MemoryStorage {
    fn name(&self) -> String {
        "memory".to_owned()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.files.lock().keys().cloned().collect())
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn StorageFile>> {
        match self.files.lock().get(name) {
            Some(file) => Ok(Arc::<MemoryFile>::clone(file)),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn StorageFile>> {
        let file = Arc::<MemoryFile>::default();
        self.files.lock().insert(name.to_owned(), file.clone());
        Ok(file)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut files = self.files.lock();
        let file = files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        files.insert(to.to_owned(), file);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        match self.files.lock().remove(name) {
            Some(_) => Ok(()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Debug, Default)]
struct MemoryFile(RwLock<Vec<u8>>);

impl StorageFile for MemoryFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.read().len() as u64)
    }

    fn read_at(&self, out: &mut Vec<u8>, position: u64, length: usize) -> io::Result<()> {
        let bytes = self.0.read();
        let start = usize::try_from(position)
            .unwrap_or(usize::MAX)
            .min(bytes.len());
        let end = start.saturating_add(length).min(bytes.len());
        out.extend_from_slice(&bytes[start..end]);
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], position: u64) -> io::Result<()> {
        let mut file = self.0.write();
        let start = position as usize;
        let kept = file.len().min(start);
        if start + bytes.len() >= file.len() {
            // The usual case, an append, without clearing memory first.
            file.truncate(kept);
            file.resize(start, 0);
            file.extend_from_slice(bytes);
        } else {
            file[start..start + bytes.len()].copy_from_slice(bytes);
        }
        Ok(())
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.0.write().resize(length as usize, 0);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}
