//! Seeds that no earlier run has used.
//!
//! A fixed set of seeds shows that what worked still works, and nothing else: everything it can find
//! has been found. So checks that follow from a seed also run a set that no earlier run has used. It
//! is derived from the commit, so that everyone who looks at a commit sees the same. What fails there
//! need not be the fault of the commit, and is reported as a finding
//! ([`Passed::findings`](crate::report::Passed::findings)).

use std::time::{SystemTime, UNIX_EPOCH};

use crate::workspace::Workspace;

/// The first of the fresh seeds of this commit.
///
/// All seeds below a billion are left to fixed sets and to people. Outside a Git repository it is
/// derived from the time.
pub fn first_seed(workspace: &Workspace) -> u64 {
    let head = workspace
        .command("git")
        .args(["rev-parse", "HEAD"])
        .output();
    let head = head.ok().filter(|output| output.status.success());
    let hash = head.and_then(|output| from_hash(&String::from_utf8_lossy(&output.stdout)));
    hash.unwrap_or_else(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        ABOVE_FIXED + since.map_or(0, |since| since.as_secs()) * SPACING
    })
}

/// Fresh seeds begin here.
const ABOVE_FIXED: u64 = 1_000_000_000;

/// How far apart the sets of two commits are, at least.
const SPACING: u64 = 1_000_000;

/// From the first digits of a commit's hash. Seeds stay short enough to be typed and to be exact as
/// a JSON number.
fn from_hash(hash: &str) -> Option<u64> {
    let digits = hash.trim().get(..8)?;
    let number = u64::from_str_radix(digits, 16).ok()?;
    Some(ABOVE_FIXED + number * SPACING)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_commit_has_seeds_of_its_own_far_from_those_of_others() {
        let one = from_hash("1129668e3b\n").unwrap();
        let other = from_hash("1129668f3b\n").unwrap();
        assert_eq!(other - one, SPACING);
        assert!(one >= ABOVE_FIXED);
        assert!(from_hash("").is_none());
    }
}
