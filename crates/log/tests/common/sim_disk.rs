//! A disk that forgets in a crash what was not synced, and may fail.

use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Mutex},
};

use kohort_log::{Storage, StorageFile};

/// Decides what a crash keeps: a number below the bound.
pub type Choose<'a> = dyn FnMut(usize) -> usize + 'a;

#[derive(Default)]
struct State {
    /// What the process sees: names and files.
    names: BTreeMap<String, usize>,
    /// What is on the device for certain.
    durable_names: BTreeMap<String, usize>,
    /// Changes of names since, in order.
    pending: Vec<NameChange>,
    files: Vec<FileState>,
    /// After so many more operations that change something, all fail.
    fail_after: Option<usize>,
    fail_with: Option<io::ErrorKind>,
    /// Only the first of them fails.
    fails_once: bool,
    fail_syncs: bool,
    /// How many more bytes fit.
    room: Option<usize>,
    syncs: usize,
}

#[derive(Clone)]
enum NameChange {
    Set(String, usize),
    Rename(String, String),
    Remove(String),
}

#[derive(Default, Clone)]
struct FileState {
    seen: Vec<u8>,
    durable: Vec<u8>,
    /// Writes and truncations since the last sync, in order.
    pending: Vec<FileChange>,
}

#[derive(Clone)]
enum FileChange {
    Write(u64, Vec<u8>),
    Truncate(u64),
}

impl FileChange {
    /// Applies it, of a write only the first `length` bytes.
    fn apply(&self, bytes: &mut Vec<u8>, length: usize) {
        match self {
            FileChange::Write(position, data) => {
                let data = &data[..length.min(data.len())];
                let end = *position as usize + data.len();
                if bytes.len() < end {
                    bytes.resize(end, 0);
                }
                bytes[*position as usize..end].copy_from_slice(data);
            }
            FileChange::Truncate(length) => bytes.resize(*length as usize, 0),
        }
    }
}

#[derive(Clone, Default)]
pub struct SimDisk(Arc<Mutex<State>>);

impl SimDisk {
    pub fn new() -> SimDisk {
        SimDisk::default()
    }

    pub fn storage(&self) -> Arc<dyn Storage> {
        Arc::new(self.clone())
    }

    /// The process dies: everything that the system was given stays.
    pub fn kill(&self) -> SimDisk {
        let state = self.0.lock().unwrap();
        let files = state.files.iter().map(|file| FileState {
            seen: file.seen.clone(),
            durable: file.durable.clone(),
            pending: file.pending.clone(),
        });
        SimDisk(Arc::new(Mutex::new(State {
            names: state.names.clone(),
            durable_names: state.durable_names.clone(),
            pending: state.pending.clone(),
            files: files.collect(),
            ..State::default()
        })))
    }

    /// The power fails: of what was not synced, names keep some first changes, and files some
    /// first writes and a part of the next.
    pub fn power_failure(&self, choose: &mut Choose<'_>) -> SimDisk {
        let state = self.0.lock().unwrap();
        let mut names = state.durable_names.clone();
        let kept = choose(state.pending.len() + 1);
        for change in &state.pending[..kept] {
            apply(&mut names, change);
        }
        let mut files = Vec::new();
        for file in &state.files {
            let mut bytes = file.durable.clone();
            let kept = choose(file.pending.len() + 1);
            for change in &file.pending[..kept] {
                change.apply(&mut bytes, usize::MAX);
            }
            if let Some(torn @ FileChange::Write(_, data)) = file.pending.get(kept) {
                torn.apply(&mut bytes, choose(data.len() + 1));
            }
            files.push(FileState {
                seen: bytes.clone(),
                durable: bytes,
                pending: Vec::new(),
            });
        }
        SimDisk(Arc::new(Mutex::new(State {
            durable_names: names.clone(),
            names,
            files,
            ..State::default()
        })))
    }

    pub fn fail_after(&self, operations: usize, kind: io::ErrorKind) {
        let mut state = self.0.lock().unwrap();
        state.fail_after = Some(operations);
        state.fail_with = Some(kind);
    }

    /// One operation that changes something fails, after so many others.
    pub fn fail_once(&self, operations: usize, kind: io::ErrorKind) {
        self.fail_after(operations, kind);
        self.0.lock().unwrap().fails_once = true;
    }

    /// Ends the failures. Returns whether there was none.
    pub fn heal_unless_failed(&self) -> bool {
        let is_waiting = self.0.lock().unwrap().fail_after.is_some();
        self.heal();
        is_waiting
    }

    pub fn heal(&self) {
        let mut state = self.0.lock().unwrap();
        state.fail_after = None;
        state.fail_with = None;
        state.fails_once = false;
        state.fail_syncs = false;
        state.room = None;
    }

    pub fn fail_syncs(&self) {
        self.0.lock().unwrap().fail_syncs = true;
    }

    pub fn set_room(&self, bytes: usize) {
        self.0.lock().unwrap().room = Some(bytes);
    }

    pub fn syncs(&self) -> usize {
        self.0.lock().unwrap().syncs
    }

    pub fn names(&self) -> Vec<String> {
        self.0.lock().unwrap().names.keys().cloned().collect()
    }

    pub fn contents(&self, name: &str) -> Vec<u8> {
        let state = self.0.lock().unwrap();
        state.files[state.names[name]].seen.clone()
    }

    /// Everything there is.
    pub fn image(&self) -> BTreeMap<String, Vec<u8>> {
        let state = self.0.lock().unwrap();
        let file =
            |(name, file): (&String, &usize)| (name.clone(), state.files[*file].seen.clone());
        state.names.iter().map(file).collect()
    }

    /// Changes a file behind everyone's back, on the device too.
    pub fn tamper(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.0.lock().unwrap();
        let file = state.names[name];
        let file = &mut state.files[file];
        change(&mut file.seen);
        file.durable = file.seen.clone();
        file.pending.clear();
    }

    pub fn delete(&self, name: &str) {
        let mut state = self.0.lock().unwrap();
        state.names.remove(name);
        state.durable_names.remove(name);
    }
}

fn apply(names: &mut BTreeMap<String, usize>, change: &NameChange) {
    match change {
        NameChange::Set(name, file) => {
            names.insert(name.clone(), *file);
        }
        NameChange::Rename(from, to) => {
            if let Some(file) = names.remove(from) {
                names.insert(to.clone(), file);
            }
        }
        NameChange::Remove(name) => {
            names.remove(name);
        }
    }
}

impl State {
    fn operation(&mut self) -> io::Result<()> {
        if let Some(left) = &mut self.fail_after {
            match left.checked_sub(1) {
                Some(fewer) => *left = fewer,
                None => {
                    if self.fails_once {
                        self.fail_after = None;
                    }
                    return Err(self.fail_with.unwrap_or(io::ErrorKind::Other).into());
                }
            }
        }
        Ok(())
    }

    fn change(&mut self, change: NameChange) {
        apply(&mut self.names, &change);
        self.pending.push(change);
    }
}

impl Storage for SimDisk {
    fn name(&self) -> String {
        "sim".to_owned()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.names())
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn StorageFile>> {
        match self.0.lock().unwrap().names.get(name) {
            Some(&file) => Ok(Arc::new(SimFile(self.0.clone(), file))),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn StorageFile>> {
        let mut state = self.0.lock().unwrap();
        state.operation()?;
        let file = match state.names.get(name) {
            Some(&file) => {
                state.files[file].seen.clear();
                state.files[file].pending.push(FileChange::Truncate(0));
                file
            }
            None => {
                state.files.push(FileState::default());
                let file = state.files.len() - 1;
                state.change(NameChange::Set(name.to_owned(), file));
                file
            }
        };
        Ok(Arc::new(SimFile(self.0.clone(), file)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.0.lock().unwrap();
        state.operation()?;
        if !state.names.contains_key(from) {
            return Err(io::ErrorKind::NotFound.into());
        }
        state.change(NameChange::Rename(from.to_owned(), to.to_owned()));
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.0.lock().unwrap();
        state.operation()?;
        if !state.names.contains_key(name) {
            return Err(io::ErrorKind::NotFound.into());
        }
        state.change(NameChange::Remove(name.to_owned()));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.0.lock().unwrap();
        state.operation()?;
        if state.fail_syncs {
            return Err(io::ErrorKind::Other.into());
        }
        state.syncs += 1;
        state.durable_names = state.names.clone();
        state.pending.clear();
        Ok(())
    }
}

struct SimFile(Arc<Mutex<State>>, usize);

impl StorageFile for SimFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.lock().unwrap().files[self.1].seen.len() as u64)
    }

    fn read_at(&self, out: &mut Vec<u8>, position: u64, length: usize) -> io::Result<()> {
        let state = self.0.lock().unwrap();
        let bytes = &state.files[self.1].seen;
        let start = (position as usize).min(bytes.len());
        let end = start.saturating_add(length).min(bytes.len());
        out.extend_from_slice(&bytes[start..end]);
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], position: u64) -> io::Result<()> {
        let mut state = self.0.lock().unwrap();
        let failed = state.operation();
        // A write that fails may have written a part.
        let mut length = if failed.is_err() {
            bytes.len() / 2
        } else {
            bytes.len()
        };
        let full = state.room.is_some_and(|room| room < length);
        if let Some(room) = &mut state.room {
            length = length.min(*room);
            *room -= length;
        }
        let change = FileChange::Write(position, bytes[..length].to_vec());
        let file = &mut state.files[self.1];
        change.apply(&mut file.seen, usize::MAX);
        file.pending.push(change);
        failed?;
        if full {
            Err(io::ErrorKind::StorageFull.into())
        } else {
            Ok(())
        }
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        let mut state = self.0.lock().unwrap();
        state.operation()?;
        let change = FileChange::Truncate(length);
        let file = &mut state.files[self.1];
        change.apply(&mut file.seen, 0);
        file.pending.push(change);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.0.lock().unwrap();
        state.operation()?;
        if state.fail_syncs {
            return Err(io::ErrorKind::Other.into());
        }
        state.syncs += 1;
        let file = &mut state.files[self.1];
        file.durable = file.seen.clone();
        file.pending.clear();
        Ok(())
    }
}
