//! How many files the logs may have open.

use rustix::process::{Resource, getrlimit};

/// What is left to the catalog, to folders that are synced, to the runtime, and to the program that
/// embeds the broker.
const RESERVE: usize = 64;

/// Below this nothing works well, so the logs take it from the reserve.
const LEAST: usize = 16;

/// How many files the logs may have open together: of what the process may open, what connections
/// may not take and what is not kept in reserve.
pub(crate) fn file_budget(connections_max: usize) -> usize {
    let limit = getrlimit(Resource::Nofile).current;
    let limit = limit.and_then(|limit| usize::try_from(limit).ok());
    limit.map_or(usize::MAX, |limit| share(limit, connections_max))
}

/// Connections get three of four files at most.
fn share(limit: usize, connections_max: usize) -> usize {
    let connections = connections_max.min(limit / 4 * 3);
    (limit - connections).saturating_sub(RESERVE).max(LEAST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_logs_and_the_reserve_share_the_files_of_the_process() {
        assert_eq!(share(20_000, 50_000), 4936);
        assert_eq!(share(1_048_576, 50_000), 998_512);
        assert_eq!(share(1024, 100), 860);
        assert_eq!(share(100, 50_000), LEAST);
    }
}
