//! What a run is like. Each seed has features that others lack: a run in which everything goes wrong
//! at once seldom gets far enough for what only goes wrong in calm waters.

use kohort_coordinator::{Config, MigrationPolicy};
use kohort_group::assignor::Assignor;
use kohort_member::Millis;

use crate::{adversary::Adversity, random::Random};

/// How a member takes part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// In the consumer protocol.
    Consumer,
    /// In the classic protocol: all partitions are let go of before a rebalance.
    Eager,
    /// In the classic protocol: only those are that go to others.
    Cooperative,
}

/// When an application commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Commits {
    /// Now and then, and when partitions are revoked.
    Auto,
    /// After each poll, waiting for the answer.
    Sync,
    /// Only when partitions are revoked, or when it leaves.
    OnRevoke,
}

/// What a run is like.
#[derive(Debug, Clone)]
pub(crate) struct Profile {
    pub(crate) config: Config,
    pub(crate) groups: usize,
    pub(crate) nodes_max: usize,
    pub(crate) topics: usize,
    pub(crate) partitions_max: i32,
    pub(crate) kinds: Vec<Kind>,
    pub(crate) commits: Vec<Commits>,
    /// Whether applications begin at the end of a partition for which nothing is committed.
    pub(crate) resets_to_latest: bool,
    pub(crate) static_percent: u32,
    pub(crate) regex_percent: u32,
    /// For how long the adversary is at work.
    pub(crate) trouble_ms: Millis,
    /// How long it rests at most between two strokes.
    pub(crate) rest_ms: Millis,
    /// What it does, each as often as it is in the list.
    pub(crate) adversities: Vec<Adversity>,
    /// Of a hundred messages, so many are lost, and the connection with them.
    pub(crate) loss_percent: u32,
    /// Of a hundred requests that a connection held when it was cut, so many arrive all the same.
    pub(crate) ghost_percent: u32,
    pub(crate) latency_ms: Millis,
    pub(crate) append_ms: Millis,
    pub(crate) append_fails_percent: u32,
    /// By how many thousandths a member's clock may be fast or slow.
    pub(crate) drift_permille: i64,
    /// How long an application takes for a step at most.
    pub(crate) step_ms: Millis,
    pub(crate) poll_ms: Millis,
}

impl Profile {
    pub(crate) fn new(random: &mut Random) -> Profile {
        let kinds: &[&[Kind]] = &[
            &[Kind::Consumer],
            &[Kind::Consumer],
            &[Kind::Eager],
            &[Kind::Cooperative],
            &[Kind::Consumer, Kind::Cooperative],
            &[Kind::Consumer, Kind::Eager],
            &[Kind::Consumer, Kind::Eager, Kind::Cooperative],
        ];
        let kinds = random.one_of(kinds).to_vec();
        let commits: &[&[Commits]] = &[
            &[Commits::Auto],
            &[Commits::Sync],
            &[Commits::OnRevoke],
            &[Commits::Auto, Commits::Sync, Commits::OnRevoke],
        ];
        let mut adversities = Vec::new();
        for adversity in Adversity::ALL {
            if random.percent(45) {
                let times = random.between(1, 6) as usize;
                adversities.extend(std::iter::repeat_n(*adversity, times));
            }
        }
        Profile {
            config: config(random),
            groups: if random.percent(20) { 2 } else { 1 },
            nodes_max: random.between(1, 7) as usize,
            topics: random.between(1, 3) as usize,
            partitions_max: random.between(1, 6) as i32,
            kinds,
            commits: random.one_of(commits).to_vec(),
            resets_to_latest: random.percent(35),
            static_percent: *random.one_of(&[0, 0, 30, 100]),
            regex_percent: *random.one_of(&[0, 0, 50]),
            trouble_ms: random.between(20_000, 150_000),
            rest_ms: *random.one_of(&[300, 1_000, 3_000, 10_000]),
            adversities,
            loss_percent: *random.one_of(&[0, 0, 1, 5]),
            ghost_percent: *random.one_of(&[0, 50, 100]),
            latency_ms: *random.one_of(&[1, 5, 50, 400]),
            append_ms: *random.one_of(&[0, 3, 30, 500]),
            append_fails_percent: *random.one_of(&[0, 0, 0, 1, 3]),
            drift_permille: *random.one_of(&[0, 10, 100]),
            step_ms: *random.one_of(&[5, 50, 500, 3_000]),
            poll_ms: *random.one_of(&[100, 500, 2_000]),
        }
    }
}

fn config(random: &mut Random) -> Config {
    Config {
        group_initial_rebalance_delay_ms: *random.one_of(&[0, 500, 3_000]),
        consumer_session_timeout_ms: *random.one_of(&[6_000, 15_000, 45_000]),
        consumer_heartbeat_interval_ms: *random.one_of(&[500, 1_000, 3_000]),
        consumer_shortest_heartbeat_interval_ms: *random.one_of(&[250, 5_000]),
        consumer_connection_grace_ms: *random.one_of(&[0, 500, 10_000]),
        consumer_assignment_interval_ms: *random.one_of(&[0, 1_000, 1_000, 5_000]),
        consumer_assignors: random
            .one_of(&[
                vec![Assignor::Uniform, Assignor::Range],
                vec![Assignor::Range, Assignor::Uniform],
            ])
            .clone(),
        consumer_migration_policy: if random.percent(90) {
            MigrationPolicy::Bidirectional
        } else {
            MigrationPolicy::Upgrade
        },
        consumer_regex_refresh_interval_ms: *random.one_of(&[12_000, 600_000]),
        new_partitions_from_start: random.percent(90),
        offsets_retention_ms: *random.one_of(&[604_800_000, 604_800_000, 90_000, 20_000]),
        offsets_retention_check_interval_ms: 5_000,
        group_max_size: *random.one_of(&[usize::MAX >> 1, usize::MAX >> 1, usize::MAX >> 1, 3]),
        consumer_max_size: *random.one_of(&[usize::MAX >> 1, usize::MAX >> 1, usize::MAX >> 1, 3]),
        ..Config::default()
    }
}
