//! The settings of the coordinator, under Kafka's names.

use std::collections::HashMap;

use kohort_group::assignor::Assignor;

use super::pace::Bounds;

/// The settings of the coordinator. The defaults are Kafka's, where Kafka has the setting.
#[derive(Debug, Clone)]
pub struct Config {
    /// `group.min.session.timeout.ms`: classic groups.
    pub group_min_session_timeout_ms: i32,
    /// `group.max.session.timeout.ms`: classic groups.
    pub group_max_session_timeout_ms: i32,
    /// `group.initial.rebalance.delay.ms`: how long an empty classic group waits for more members. The
    /// wait ends once no new member has arrived for a tenth of it.
    pub group_initial_rebalance_delay_ms: i32,
    /// `group.max.size`: members of a classic group.
    pub group_max_size: usize,
    /// `group.consumer.session.timeout.ms`.
    pub consumer_session_timeout_ms: i32,
    /// `group.consumer.heartbeat.interval.ms`: the longest that members are told.
    pub consumer_heartbeat_interval_ms: i32,
    /// The shortest that members are told (kohort's own): as much as the longest, or more, for an
    /// interval that never changes.
    pub consumer_shortest_heartbeat_interval_ms: i32,
    /// How long a dynamic member may be away whose connection has closed, before it is given up
    /// (kohort's own); 0 for as long as its session lasts.
    pub consumer_connection_grace_ms: i32,
    /// `group.consumer.assignment.interval.ms`: the least time between two target assignments.
    pub consumer_assignment_interval_ms: i32,
    /// `group.consumer.max.size`: members of a consumer group.
    pub consumer_max_size: usize,
    /// `group.consumer.assignors`: the first is the default.
    pub consumer_assignors: Vec<Assignor>,
    /// `group.consumer.migration.policy`.
    pub consumer_migration_policy: MigrationPolicy,
    /// `group.consumer.regex.refresh.interval.ms`.
    pub consumer_regex_refresh_interval_ms: i32,
    /// Whether groups start new partitions at their first record (kohort's own).
    pub new_partitions_from_start: bool,
    /// `offset.metadata.max.bytes`: metadata of a commit.
    pub offset_metadata_max_bytes: usize,
    /// `offsets.retention.minutes`, in milliseconds.
    pub offsets_retention_ms: i64,
    /// `offsets.retention.check.interval.ms`.
    pub offsets_retention_check_interval_ms: i64,
    /// The most bytes of metadata that one member may bring (kohort's own limit; Kafka has only the
    /// size of a request).
    pub member_metadata_max_bytes: usize,
    /// `kohort.group.member.topics.max`: topics that one member may subscribe to by name.
    pub member_topics_max: usize,
    /// `kohort.group.member.assignment.max.bytes`: the assignment that the leader of a classic group
    /// sends for one member.
    pub member_assignment_max_bytes: usize,
    /// `kohort.group.topics.max`: different topics that the members of a consumer group may subscribe
    /// to by name.
    pub group_topics_max: usize,
    /// `kohort.group.metadata.max.bytes`: what the members of one group may bring in all. A classic
    /// group, with its assignments, has to fit into one record.
    pub group_metadata_max_bytes: usize,
    /// Whether an administrator's commit rewinds a group that has members although it is not marked
    /// as a rewind (kohort's own setting). Kafka refuses it.
    pub rewind_unmarked_commits: bool,
    /// The settings that groups have of their own.
    pub groups: HashMap<String, GroupOverrides>,
}

/// The settings that one group has of its own (KIP-848's group configs). `None`: as the others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GroupOverrides {
    /// `consumer.session.timeout.ms`.
    pub consumer_session_timeout_ms: Option<i32>,
    /// `consumer.heartbeat.interval.ms`.
    pub consumer_heartbeat_interval_ms: Option<i32>,
    /// The shortest heartbeat interval (kohort's own).
    pub consumer_shortest_heartbeat_interval_ms: Option<i32>,
    /// How long a dynamic member may be away whose connection has closed (kohort's own).
    pub consumer_connection_grace_ms: Option<i32>,
    /// Whether new partitions start at their first record (kohort's own).
    pub new_partitions_from_start: Option<bool>,
    /// `consumer.assignment.interval.ms`.
    pub consumer_assignment_interval_ms: Option<i32>,
}

/// Whether a group with members may change between the protocols.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MigrationPolicy {
    /// Both ways.
    #[default]
    Bidirectional,
    /// From the classic to the consumer protocol only.
    Upgrade,
    /// From the consumer to the classic protocol only.
    Downgrade,
    /// Neither way.
    Disabled,
}

impl MigrationPolicy {
    /// Whether a classic group with members may become a consumer group.
    pub const fn upgrades(self) -> bool {
        matches!(
            self,
            MigrationPolicy::Bidirectional | MigrationPolicy::Upgrade
        )
    }

    /// Whether a consumer group with members may become a classic group.
    pub const fn downgrades(self) -> bool {
        matches!(
            self,
            MigrationPolicy::Bidirectional | MigrationPolicy::Downgrade
        )
    }
}

impl Default for Config {
    fn default() -> Config {
        Config {
            group_min_session_timeout_ms: 6_000,
            group_max_session_timeout_ms: 1_800_000,
            group_initial_rebalance_delay_ms: 3_000,
            group_max_size: i32::MAX as usize,
            consumer_session_timeout_ms: 45_000,
            consumer_heartbeat_interval_ms: 5_000,
            consumer_shortest_heartbeat_interval_ms: 250,
            consumer_connection_grace_ms: 10_000,
            consumer_assignment_interval_ms: 1_000,
            consumer_max_size: i32::MAX as usize,
            consumer_assignors: vec![Assignor::Uniform, Assignor::Range],
            consumer_migration_policy: MigrationPolicy::default(),
            consumer_regex_refresh_interval_ms: 600_000,
            new_partitions_from_start: true,
            offset_metadata_max_bytes: 4_096,
            offsets_retention_ms: 7 * 24 * 3_600_000,
            offsets_retention_check_interval_ms: 600_000,
            member_metadata_max_bytes: 1 << 20,
            member_topics_max: 20_000,
            member_assignment_max_bytes: 4 << 20,
            group_topics_max: 50_000,
            group_metadata_max_bytes: 64 << 20,
            rewind_unmarked_commits: false,
            groups: HashMap::new(),
        }
    }
}

impl Config {
    fn overrides(&self, group_id: &str) -> GroupOverrides {
        self.groups.get(group_id).copied().unwrap_or_default()
    }

    /// The session timeout of the members of a consumer group.
    pub fn consumer_session_timeout_ms(&self, group_id: &str) -> i32 {
        let own = self.overrides(group_id).consumer_session_timeout_ms;
        own.unwrap_or(self.consumer_session_timeout_ms)
    }

    /// The heartbeat intervals that the members of a consumer group may be told.
    pub fn consumer_heartbeat_bounds(&self, group_id: &str) -> Bounds {
        let own = self.overrides(group_id);
        let shortest_ms = own.consumer_shortest_heartbeat_interval_ms;
        let longest_ms = own.consumer_heartbeat_interval_ms;
        Bounds::new(
            shortest_ms.unwrap_or(self.consumer_shortest_heartbeat_interval_ms),
            longest_ms.unwrap_or(self.consumer_heartbeat_interval_ms),
        )
    }

    /// How long a dynamic member of a consumer group may be away whose connection has closed.
    pub fn consumer_connection_grace_ms(&self, group_id: &str) -> i32 {
        let own = self.overrides(group_id).consumer_connection_grace_ms;
        own.unwrap_or(self.consumer_connection_grace_ms)
    }

    /// Whether groups of both protocols start new partitions at their first record.
    pub fn new_partitions_from_start(&self, group_id: &str) -> bool {
        let own = self.overrides(group_id).new_partitions_from_start;
        own.unwrap_or(self.new_partitions_from_start)
    }

    /// The least time between two target assignments of a consumer group.
    pub fn consumer_assignment_interval_ms(&self, group_id: &str) -> i32 {
        let own = self.overrides(group_id).consumer_assignment_interval_ms;
        own.unwrap_or(self.consumer_assignment_interval_ms)
    }
}
