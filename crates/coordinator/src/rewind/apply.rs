//! Records to state, and back.

use std::collections::BTreeMap;

use kohort_group::TopicPartitions;
use kohort_wire::messages::TopicIdPartitions;

use super::{Before, Goal, Rewind, Rewound, records::*};
use crate::{Id, Record, Shard, group::Group};

impl Shard {
    pub(crate) fn apply_rewind(&mut self, key: &RewindKey, value: Option<&RewindValue>) {
        match value {
            Some(value) => {
                let group = self.group_or_new(&key.group_id);
                group.rewind = Some(Box::new(Rewind::from_record(value)));
                let group_id = group.id.clone();
                self.rewinding.insert(group_id);
            }
            None => {
                self.rewinding.remove(&*key.group_id);
                if let Some(group) = self.groups.get_mut(&*key.group_id) {
                    group.rewind = None;
                    self.forget_if_nothing_is_left(&key.group_id);
                }
            }
        }
    }

    pub(crate) fn apply_rewound(&mut self, key: &RewoundKey, value: Option<&RewoundValue>) {
        match value {
            Some(value) => {
                let rewound = Rewound::from_record(value);
                self.group_or_new(&key.group_id).rewound = Some(Box::new(rewound));
            }
            None => {
                if let Some(group) = self.groups.get_mut(&*key.group_id) {
                    group.rewound = None;
                    self.forget_if_nothing_is_left(&key.group_id);
                }
            }
        }
    }
}

impl Group {
    /// The records that forget the group's rewinds.
    pub(crate) fn rewind_tombstones(&self) -> impl Iterator<Item = Record> + use<> {
        let under_way = self.rewind.as_ref().map(|_| no_rewind(&self.id));
        let last = self.rewound.as_ref().map(|_| no_rewound(&self.id));
        under_way.into_iter().chain(last)
    }
}

pub(super) fn no_rewind(group_id: &Id) -> Record {
    let key = RewindKey {
        group_id: (&**group_id).into(),
    };
    Record::Rewind(key, None)
}

fn no_rewound(group_id: &Id) -> Record {
    let key = RewoundKey {
        group_id: (&**group_id).into(),
    };
    Record::Rewound(key, None)
}

/// Groups what is sorted by topic and partition by topic.
fn by_topic<T>(
    partitions: &BTreeMap<(Id, i32), T>,
) -> impl Iterator<Item = (&Id, &T, Vec<(i32, &T)>)> {
    let mut partitions = partitions.iter().peekable();
    std::iter::from_fn(move || {
        let ((topic, partition), first) = partitions.next()?;
        let mut of_topic = vec![(*partition, first)];
        while let Some(((_, partition), value)) =
            partitions.next_if(|((other, _), _)| other == topic)
        {
            of_topic.push((*partition, value));
        }
        Some((topic, first, of_topic))
    })
}

impl Rewind {
    pub(super) fn to_record(&self, group_id: &Id) -> Record {
        let topics = by_topic(&self.goals).map(|(name, first, partitions)| RewindTopic {
            name: (&**name).into(),
            topic_id: first.topic_id,
            partitions: partitions
                .into_iter()
                .map(|(partition_index, goal)| RewindPartition {
                    partition_index,
                    offset: goal.offset,
                    leader_epoch: goal.leader_epoch,
                    metadata: (&*goal.metadata).into(),
                })
                .collect(),
        });
        let value = RewindValue {
            asked_at: self.asked_at,
            client_id: (&*self.client_id).into(),
            client_host: (&*self.client_host).into(),
            topics: topics.collect(),
        };
        let key = RewindKey {
            group_id: (&**group_id).into(),
        };
        Record::Rewind(key, Some(value))
    }

    fn from_record(value: &RewindValue) -> Rewind {
        let mut goals = BTreeMap::new();
        for topic in &value.topics {
            let name = Id::from(&*topic.name);
            for partition in &topic.partitions {
                let goal = Goal {
                    topic_id: topic.topic_id,
                    offset: partition.offset,
                    leader_epoch: partition.leader_epoch,
                    metadata: (&*partition.metadata).into(),
                };
                goals.insert((name.clone(), partition.partition_index), goal);
            }
        }
        let asker = (&*value.client_id, &*value.client_host);
        Rewind::new(value.asked_at, asker, goals)
    }
}

impl Rewound {
    pub(super) fn to_record(&self, group_id: &Id) -> Record {
        let topics = by_topic(&self.before).map(|(name, first, partitions)| RewoundTopic {
            name: (&**name).into(),
            topic_id: first.topic_id,
            partitions: partitions
                .into_iter()
                .map(|(partition_index, before)| RewoundPartition {
                    partition_index,
                    offset: before.offset,
                    leader_epoch: before.leader_epoch,
                    metadata: (&*before.metadata).into(),
                    to: before.to,
                })
                .collect(),
        });
        let fenced = self
            .fenced
            .topics()
            .map(|(topic_id, runs)| TopicIdPartitions {
                topic_id,
                partitions: runs.iter().flat_map(|run| run.partitions()).collect(),
            });
        let value = RewoundValue {
            at: self.at,
            generation: self.generation,
            topics: topics.collect(),
            fenced: fenced.collect(),
        };
        let key = RewoundKey {
            group_id: (&**group_id).into(),
        };
        Record::Rewound(key, Some(value))
    }

    fn from_record(value: &RewoundValue) -> Rewound {
        let mut before = BTreeMap::new();
        for topic in &value.topics {
            let name = Id::from(&*topic.name);
            for partition in &topic.partitions {
                let committed = Before {
                    topic_id: topic.topic_id,
                    offset: partition.offset,
                    leader_epoch: partition.leader_epoch,
                    metadata: (&*partition.metadata).into(),
                    to: partition.to,
                };
                before.insert((name.clone(), partition.partition_index), committed);
            }
        }
        let fenced: TopicPartitions = value
            .fenced
            .iter()
            .flat_map(|topic| topic.partitions.iter().map(|&p| (topic.topic_id, p)))
            .collect();
        Rewound {
            at: value.at,
            generation: value.generation,
            before,
            fenced,
        }
    }
}
