//! How often each partition of a group has been rewound: what is done for it belongs to the era
//! between two rewinds.

use std::collections::{BTreeMap, BTreeSet};

use kohort_coordinator::{Record, inspect::Place};
use kohort_group::Id;

use crate::node::Key;

/// What applications commit with an offset: the era in which they began the partition.
const COMMITTED_IN: &str = "era ";

/// What administrators have committed with an offset: the number of their wish.
const WISH: &str = "wish ";

/// How often each partition of a group has been rewound.
#[derive(Debug, Default)]
pub(crate) struct Eras {
    /// By what the coordinator has decided.
    live: BTreeMap<(Id, Place), u64>,
    /// By what is durable.
    durable: BTreeMap<(Id, Place), u64>,
    /// The rewind of each group that is under way, by the number that administrators gave it.
    under_way: BTreeMap<Id, u64>,
    /// Those that have happened.
    happened: BTreeSet<u64>,
    /// Where they went.
    goals: BTreeSet<(Id, BTreeMap<Key, i64>)>,
}

/// A partition that has been rewound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rewound {
    pub(crate) group: Id,
    pub(crate) place: Place,
    /// Where to; negative: to where nothing is committed.
    pub(crate) to: i64,
}

/// The partitions that a record says were rewound.
pub(crate) fn rewound(record: &Record) -> Vec<Rewound> {
    let Record::Rewound(key, Some(value)) = record else {
        return Vec::new();
    };
    let group = Id::from(&*key.group_id);
    let topics = value.topics.iter();
    topics
        .flat_map(|topic| {
            let partitions = topic.partitions.iter();
            partitions.map(|partition| Rewound {
                group: group.clone(),
                place: (topic.topic_id, partition.partition_index),
                to: partition.to,
            })
        })
        .collect()
}

impl Eras {
    pub(crate) fn live(&self, group: &Id, place: Place) -> u64 {
        of(&self.live, group, place)
    }

    /// A record was decided upon.
    pub(crate) fn decided(&mut self, record: &Record) {
        count(&mut self.live, record);
    }

    /// A record is in the log.
    pub(crate) fn written(&mut self, record: &Record) {
        count(&mut self.durable, record);
        match record {
            Record::Rewind(key, Some(value)) => {
                let mut goals = value.topics.iter().flat_map(|topic| &topic.partitions);
                if let Some(number) = goals.next().and_then(|goal| wish(&goal.metadata)) {
                    self.under_way.insert(Id::from(&*key.group_id), number);
                }
            }
            Record::Rewound(key, Some(value)) => {
                self.happened.extend(self.under_way.remove(&*key.group_id));
                let topics = value.topics.iter();
                let goals = topics.flat_map(|topic| {
                    let partitions = topic.partitions.iter();
                    partitions.map(|p| ((topic.name.clone(), p.partition_index), p.to))
                });
                let group = Id::from(&*key.group_id);
                self.goals.insert((group, goals.collect()));
            }
            _ => {}
        }
    }

    /// Whether the log says that what an administrator asked for has happened.
    pub(crate) fn has_happened(&self, number: u64) -> bool {
        self.happened.contains(&number)
    }

    /// Whether a group has ever been rewound to there.
    pub(crate) fn has_been(&self, group: &Id, goals: &BTreeMap<Key, i64>) -> bool {
        self.goals.contains(&(group.clone(), goals.clone()))
    }

    /// What was decided and not written is lost.
    pub(crate) fn lost(&mut self) {
        self.live = self.durable.clone();
    }
}

fn of(eras: &BTreeMap<(Id, Place), u64>, group: &Id, place: Place) -> u64 {
    let era = eras.get(&(group.clone(), place));
    era.copied().unwrap_or_default()
}

fn count(eras: &mut BTreeMap<(Id, Place), u64>, record: &Record) {
    for Rewound { group, place, .. } in rewound(record) {
        *eras.entry((group, place)).or_default() += 1;
    }
}

/// What is committed along with an offset that an administrator asked for.
pub(crate) fn wished_in(number: u64) -> String {
    format!("{WISH}{number}")
}

/// The number that an administrator gave to what is committed; `None`: nobody asked for it.
pub(crate) fn wish(metadata: &str) -> Option<u64> {
    metadata.strip_prefix(WISH)?.parse().ok()
}

/// What an application commits along with an offset.
pub(crate) fn committed_in(era: u64) -> String {
    format!("{COMMITTED_IN}{era}")
}

/// In which era an application has begun what it commits; `None`: no application committed it.
pub(crate) fn era_of(metadata: &str) -> Option<u64> {
    metadata.strip_prefix(COMMITTED_IN)?.parse().ok()
}
