//! Ctrl-C and SIGTERM end the processes that this one started, and no others.
//!
//! Every process runs in a group of its own (see `process`), which the
//! terminal's Ctrl-C therefore does not reach.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, Signal, kill_process_group};

static RUNNING: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// Installs the handler, once, at the start of the program.
pub(crate) fn install() {
    let installed = ctrlc::set_handler(|| {
        for pid in running().iter().copied().filter_map(Pid::from_raw) {
            let _ = kill_process_group(pid, Signal::KILL);
        }
        std::process::exit(130);
    });
    if let Err(error) = installed {
        eprintln!("xtask: no handler for Ctrl-C: {error}");
    }
}

/// Remembers a process, the leader of its group, as running.
pub(crate) fn started(pid: Pid) {
    running().insert(pid.as_raw_nonzero().get());
}

/// Forgets a process, before its id is free to be given to another.
pub(crate) fn ended(pid: Pid) {
    running().remove(&pid.as_raw_nonzero().get());
}

fn running() -> MutexGuard<'static, BTreeSet<i32>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}
