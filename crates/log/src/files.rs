//! The names of a log's files.

pub(crate) const LOG: &str = ".log";
pub(crate) const INDEX: &str = ".index";
pub(crate) const TIME_INDEX: &str = ".timeindex";
pub(crate) const SNAPSHOT: &str = ".snapshot";
/// Of a segment that compaction is still writing.
pub(crate) const CLEANED: &str = ".cleaned";
/// Of a segment that compaction has written and that replaces others.
pub(crate) const SWAP: &str = ".swap";
/// Of a file that is replaced whole.
pub(crate) const TEMPORARY: &str = ".tmp";
pub(crate) const EPOCHS: &str = "leader-epoch-checkpoint";
pub(crate) const CHECKPOINT: &str = "log-checkpoint";
pub(crate) const RECOVERY_POINT: &str = "recovery-point";
/// Says that the log was closed, and how it was then.
pub(crate) const CLEAN_SHUTDOWN: &str = "clean-shutdown";

/// The name of the file of that kind of the segment that begins at `offset`.
pub(crate) fn of(offset: i64, kind: &str) -> String {
    format!("{offset:020}{kind}")
}

/// The offset in the name, if it is the name of a file of that kind.
pub(crate) fn offset(name: &str, kind: &str) -> Option<i64> {
    let digits = name.strip_suffix(kind)?;
    if digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        digits.parse().ok()
    } else {
        None
    }
}
