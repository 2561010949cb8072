//! The settings of groups (KIP-848), and their bounds, which are the broker's.

use super::definition::{Definition, Kind::*, Rule::*, Table, View};
use super::without_effect;

/// All settings of a group.
pub(crate) const GROUP: Table = Table {
    without_effect: without_effect::GROUP,
    with_effect: &[
    Definition::new(
        "consumer.session.timeout.ms",
        Int,
        "45000",
        "How long a member of the consumer group may be silent before it is taken for dead.",
    )
    .rule(AtLeast(1))
    .fallbacks(&[("group.consumer.session.timeout.ms", 1)]),
    Definition::new(
        "consumer.heartbeat.interval.ms",
        Int,
        "5000",
        "How often a member of the consumer group sends a heartbeat: the longest interval, which is shortened as far as the load allows.",
    )
    .rule(AtLeast(1))
    .fallbacks(&[("group.consumer.heartbeat.interval.ms", 1)]),
    Definition::new(
        "kohort.consumer.shortest.heartbeat.interval.ms",
        Int,
        "250",
        "The shortest interval between heartbeats of a member of the consumer group. With consumer.heartbeat.interval.ms or more, the interval does not change.",
    )
    .rule(AtLeast(10))
    .fallbacks(&[("kohort.group.consumer.shortest.heartbeat.interval.ms", 1)]),
    Definition::new(
        "kohort.consumer.connection.grace.ms",
        Int,
        "10000",
        "How long a member of the consumer group without group.instance.id may be away whose connection has closed, before it is given up; 0 for as long as its session lasts.",
    )
    .rule(AtLeast(0))
    .fallbacks(&[("kohort.group.consumer.connection.grace.ms", 1)]),
    Definition::new(
        "kohort.new.partitions.from.start",
        Bool,
        "true",
        "Whether the group starts new partitions of its topics at the first record, whatever auto.offset.reset says. Also of classic groups.",
    )
    .fallbacks(&[("kohort.group.new.partitions.from.start", 1)]),
    Definition::new(
        "consumer.assignment.interval.ms",
        Int,
        "1000",
        "The least time between two assignments of the consumer group.",
    )
    .rule(AtLeast(0))
    .fallbacks(&[("group.consumer.assignment.interval.ms", 1)]),
],
};

/// What is wrong with a group's settings in the light of the broker's, if anything is.
pub(crate) fn check(values: View<'_>, broker: View<'_>) -> Result<(), String> {
    for what in [
        "session.timeout.ms",
        "heartbeat.interval.ms",
        "assignment.interval.ms",
    ] {
        let name = format!("consumer.{what}");
        let Some(value) = values
            .values
            .get(&name)
            .and_then(|value| value.parse().ok())
        else {
            continue;
        };
        let least = broker.int(&format!("group.consumer.min.{what}"));
        let most = broker.int(&format!("group.consumer.max.{what}"));
        if !(least..=most).contains(&value) {
            return Err(format!(
                "{name} must be between {least} and {most} (group.consumer.min.{what} and \
                 group.consumer.max.{what}), not {value}"
            ));
        }
    }
    let either = |what: &str| {
        let own = values.values.get(&format!("consumer.{what}"));
        own.and_then(|value| value.parse().ok())
            .unwrap_or_else(|| broker.int(&format!("group.consumer.{what}")))
    };
    if either("session.timeout.ms") <= either("heartbeat.interval.ms") {
        return Err(
            "consumer.session.timeout.ms has to be longer than consumer.heartbeat.interval.ms, or \
             sessions end between two heartbeats"
                .to_owned(),
        );
    }
    Ok(())
}
