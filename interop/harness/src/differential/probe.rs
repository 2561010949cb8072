//! How a script knows that the coordinator has heard of a change of topics.
//!
//! The brokers answer the change itself earlier. A group of its own, coordinated where the
//! script's group is, asks for the topics until it is assigned exactly what exists: what the
//! coordinator of the one knows, that of the other knows too.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use kohort_wire::messages::*;
use kohort_wire::{ByteString, Uuid};

use super::connection::Connection;
use crate::failure::Failure;

const LIMIT: Duration = Duration::from_secs(30);
/// The partitions of `__consumer_offsets` under these tests.
pub(super) const COORDINATORS: i32 = 8;

/// A member, alone in its group, of all topics of a script.
pub(super) struct Probe {
    group: ByteString,
    epoch: i32,
    assigned: Vec<TopicIdPartitions>,
    subscribed: BTreeSet<ByteString>,
}

impl Probe {
    /// A probe where `group` is coordinated.
    pub(super) fn new(group: &str) -> Probe {
        let names = (0..).map(|number: u32| format!("probe-{number}-{group}"));
        let mut same = names.filter(|name| coordinator(name) == coordinator(group));
        Probe {
            group: same.next().unwrap_or_default().into(),
            epoch: 0,
            assigned: Vec::new(),
            subscribed: BTreeSet::new(),
        }
    }

    /// Waits until the coordinator knows `topics` with so many partitions, and no other of this
    /// script's.
    pub(super) fn wait_for(
        &mut self,
        connection: &mut Connection,
        topics: &[(ByteString, Uuid, i32)],
    ) -> Result<(), Failure> {
        let mut wanted = BTreeSet::new();
        for (name, id, count) in topics {
            self.subscribed.insert(name.clone());
            wanted.extend((0..*count).map(|partition| (*id, partition)));
        }
        let deadline = Instant::now() + LIMIT;
        let mut subscribes = true;
        loop {
            let joins = self.epoch == 0;
            let names = self.subscribed.iter().cloned().collect();
            let request = ConsumerGroupHeartbeatRequest {
                group_id: self.group.clone(),
                member_id: "probe".into(),
                member_epoch: self.epoch,
                rebalance_timeout_ms: if joins { 60_000 } else { -1 },
                subscribed_topic_names: (joins || subscribes).then_some(names),
                server_assignor: joins.then(|| "range".into()),
                topic_partitions: Some(self.assigned.clone()),
                ..Default::default()
            };
            let Some(answer) = connection.ask(&request, 1)? else {
                return Err(Failure::new("the probe's connection was closed"));
            };
            if answer.error_code.is_retriable() && Instant::now() < deadline {
                // The broker has not opened the coordinator's log yet.
                find_coordinator(connection, &self.group)?;
                std::thread::sleep(Duration::from_millis(100));
                continue;
            }
            if answer.error_code.is_error() {
                let error = answer.error_code;
                return Err(Failure::new(format!("the probe's heartbeat: {error}")));
            }
            subscribes = false;
            self.epoch = answer.member_epoch;
            if let Some(assignment) = answer.assignment {
                self.assigned = assignment.topic_partitions;
            }
            let partitions = |topic: &TopicIdPartitions| {
                let id = topic.topic_id;
                let pairs: Vec<_> = topic.partitions.iter().map(|&index| (id, index)).collect();
                pairs
            };
            let assigned: BTreeSet<_> = self.assigned.iter().flat_map(partitions).collect();
            if assigned == wanted {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(Failure::new(format!(
                    "the coordinator does not hear of the topics: {assigned:?}, not {wanted:?}"
                )));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(super) fn leave(self, connection: &mut Connection) {
        let request = ConsumerGroupHeartbeatRequest {
            group_id: self.group,
            member_id: "probe".into(),
            member_epoch: -1,
            ..Default::default()
        };
        let _ = connection.ask(&request, 1);
    }
}

/// Asks for the group's coordinator, which has Kafka create `__consumer_offsets`.
fn find_coordinator(connection: &mut Connection, group: &ByteString) -> Result<(), Failure> {
    let request = FindCoordinatorRequest {
        coordinator_keys: vec![group.clone()],
        ..Default::default()
    };
    connection.ask(&request, 4)?;
    Ok(())
}

/// The partition of `__consumer_offsets` of a group: Java's hash of its name.
fn coordinator(group: &str) -> i32 {
    let hash = group.bytes().fold(0i32, |hash, byte| {
        hash.wrapping_mul(31).wrapping_add(i32::from(byte))
    });
    hash.checked_abs().unwrap_or(0) % COORDINATORS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_is_coordinated_where_its_group_is() {
        for number in 0..100 {
            let group = format!("group-{number}");
            assert_eq!(coordinator(&Probe::new(&group).group), coordinator(&group));
        }
    }
}
