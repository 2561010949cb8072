//! The coordinator's settings, from the broker's and the groups'.

use std::collections::BTreeMap;

use kohort_coordinator::{Config, GroupOverrides, MigrationPolicy};
use kohort_group::assignor::Assignor;

use super::{
    BROKER, GROUP, Values, View,
    words::{AssignorName, Migration},
};

/// The coordinator's settings, from the broker's and the groups'.
pub(crate) fn coordinator_config(broker: &Values, groups: &BTreeMap<String, Values>) -> Config {
    let view = View {
        table: BROKER,
        values: broker,
    };
    let assignors = view.words("group.consumer.assignors").into_iter();
    let assignors = assignors
        .map(|name| match name {
            AssignorName::Uniform => Assignor::Uniform,
            AssignorName::Range => Assignor::Range,
        })
        .collect();
    let migration_policy = match view.word("group.consumer.migration.policy") {
        Migration::Upgrade => MigrationPolicy::Upgrade,
        Migration::Downgrade => MigrationPolicy::Downgrade,
        Migration::Disabled => MigrationPolicy::Disabled,
        Migration::Bidirectional => MigrationPolicy::Bidirectional,
    };
    Config {
        group_min_session_timeout_ms: view.int("group.min.session.timeout.ms"),
        group_max_session_timeout_ms: view.int("group.max.session.timeout.ms"),
        group_initial_rebalance_delay_ms: view.int("group.initial.rebalance.delay.ms"),
        group_max_size: view.size("group.max.size"),
        consumer_session_timeout_ms: view.int("group.consumer.session.timeout.ms"),
        consumer_heartbeat_interval_ms: view.int("group.consumer.heartbeat.interval.ms"),
        consumer_shortest_heartbeat_interval_ms: view
            .int("kohort.group.consumer.shortest.heartbeat.interval.ms"),
        consumer_connection_grace_ms: view.int("kohort.group.consumer.connection.grace.ms"),
        consumer_assignment_interval_ms: view.int("group.consumer.assignment.interval.ms"),
        consumer_max_size: view.size("group.consumer.max.size"),
        consumer_assignors: assignors,
        consumer_migration_policy: migration_policy,
        consumer_regex_refresh_interval_ms: view.int("group.consumer.regex.refresh.interval.ms"),
        new_partitions_from_start: view.flag("kohort.group.new.partitions.from.start"),
        offset_metadata_max_bytes: view.size("offset.metadata.max.bytes"),
        offsets_retention_ms: view
            .long("offsets.retention.minutes")
            .saturating_mul(60_000),
        offsets_retention_check_interval_ms: view.long("offsets.retention.check.interval.ms"),
        member_metadata_max_bytes: view.size("kohort.group.member.metadata.max.bytes"),
        member_topics_max: view.size("kohort.group.member.topics.max"),
        member_assignment_max_bytes: view.size("kohort.group.member.assignment.max.bytes"),
        group_topics_max: view.size("kohort.group.topics.max"),
        group_metadata_max_bytes: view.size("kohort.group.metadata.max.bytes"),
        rewind_unmarked_commits: view.flag("kohort.group.rewind.unmarked.commits"),
        groups: groups
            .iter()
            .map(|(group_id, values)| (group_id.clone(), overrides(values)))
            .collect(),
    }
}

fn overrides(values: &Values) -> GroupOverrides {
    let view = View {
        table: GROUP,
        values,
    };
    let own = |name: &str| values.contains_key(name).then(|| view.int(name));
    GroupOverrides {
        consumer_session_timeout_ms: own("consumer.session.timeout.ms"),
        consumer_heartbeat_interval_ms: own("consumer.heartbeat.interval.ms"),
        consumer_shortest_heartbeat_interval_ms: own(
            "kohort.consumer.shortest.heartbeat.interval.ms",
        ),
        consumer_connection_grace_ms: own("kohort.consumer.connection.grace.ms"),
        new_partitions_from_start: values
            .contains_key("kohort.new.partitions.from.start")
            .then(|| view.flag("kohort.new.partitions.from.start")),
        consumer_assignment_interval_ms: own("consumer.assignment.interval.ms"),
    }
}
