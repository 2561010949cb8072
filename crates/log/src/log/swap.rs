//! Completing what compaction had begun to swap in when the process ended.

use std::{io::ErrorKind, sync::Arc};

use crate::{
    LogError, Storage,
    files::{self, CLEANED, INDEX, LOG, SWAP, TIME_INDEX},
    scan::{ScanError, Scanner},
    segment::path,
    storage::remove_file,
};

/// Completes a replacement that a crash interrupted, before the segments are looked at. `names`
/// are the files of the folder.
pub(crate) fn complete(storage: &Arc<dyn Storage>, names: &[String]) -> Result<bool, LogError> {
    let mut changed = false;
    let io = |action, name: &str, e| LogError::io(action, path(storage, name), e);
    let remove =
        |name: &str| remove_file(&**storage, name).map_err(|e| io("cannot remove", name, e));
    let swaps = names
        .iter()
        .filter_map(|name| files::offset(name.strip_suffix(SWAP)?, LOG));
    for base in swaps {
        let name = files::of(base, LOG) + SWAP;
        let file = storage
            .open(&name)
            .map_err(|e| io("cannot open", &name, e))?;
        let size = file.len().map_err(|e| io("cannot read", &name, e))?;
        let mut scanner = Scanner::new(&*file, 0, size, base);
        loop {
            match scanner.next() {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(ScanError::Io(e)) => return Err(io("cannot read", &name, e)),
                Err(ScanError::Damaged { position, reason }) => {
                    return Err(LogError::Corrupt {
                        file: path(storage, &name),
                        position,
                        reason,
                    });
                }
            }
        }
        // An empty one replaces at least the segment of its name.
        let end = scanner.next_offset().max(base + 1);
        let replaced = names
            .iter()
            .filter_map(|name| files::offset(name, LOG))
            .filter(|other| (base..end).contains(other));
        for other in replaced {
            for kind in [LOG, INDEX, TIME_INDEX] {
                remove(&files::of(other, kind))?;
            }
        }
        for kind in [INDEX, TIME_INDEX, LOG] {
            let to = files::of(base, kind);
            let from = to.clone() + SWAP;
            match storage.rename(&from, &to) {
                // The index can be made anew.
                Err(e) if e.kind() == ErrorKind::NotFound && kind != LOG => remove(&to)?,
                result => result.map_err(|e| io("cannot rename", &from, e))?,
            }
        }
        changed = true;
    }
    for name in names {
        if name.ends_with(CLEANED)
            || name.ends_with(files::TEMPORARY)
            || (name.ends_with(SWAP) && !name.ends_with(&format!("{LOG}{SWAP}")))
        {
            remove(name)?;
            changed = true;
        }
    }
    if changed {
        storage.sync().map_err(|e| io("cannot flush", "", e))?;
    }
    Ok(changed)
}
