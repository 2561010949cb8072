//! The administrators: they have groups rewound while these run, ask again when they hear nothing,
//! ask for two things at once, and change their minds.

use std::collections::BTreeMap;

use kohort_coordinator::{Reply, Request};
use kohort_group::Id;
use kohort_wire::{ByteString, ErrorCode, messages::*};

use crate::{
    coordinator::Origin,
    eras::wished_in,
    node::Key,
    world::{Event, TOPICS, World},
};

/// What makes a commit a rewind; written down once more, since it is what clients send.
pub(crate) const MARK: &str = "kohort:rewind";

/// How often somebody asks for the same before giving up.
const TRIES_MAX: u32 = 6;

/// What administrators have asked for and not been told the end of.
#[derive(Debug, Default)]
pub(crate) struct Administrators {
    asked: BTreeMap<u64, Asked>,
}

/// What an administrator wants to know or to have done.
#[derive(Debug, Clone)]
struct Asked {
    group: Id,
    wish: Wish,
    tries: u32,
}

#[derive(Debug, Clone)]
enum Wish {
    Rewind(BTreeMap<Key, i64>),
    /// What was committed before the last rewind: to be had again.
    Undo,
}

impl World {
    /// Has a group rewound to somewhere.
    pub(crate) fn rewind_somewhere(&mut self) {
        let group = self.random.one_of(&self.groups()).clone();
        let goals = self.some_goals(&group);
        self.wish(group, Wish::Rewind(goals));
    }

    /// Two who do not know of each other have a group rewound.
    pub(crate) fn rewind_twice(&mut self) {
        let group = self.random.one_of(&self.groups()).clone();
        for _ in 0..2 {
            let goals = self.some_goals(&group);
            self.wish(group.clone(), Wish::Rewind(goals));
        }
    }

    /// Has the last rewind of a group undone.
    pub(crate) fn undo_rewind(&mut self) {
        let group = self.random.one_of(&self.groups()).clone();
        self.wish(group, Wish::Undo);
    }

    /// Has the rewind of a group given up that is under way.
    pub(crate) fn cancel_rewind(&mut self) {
        let group = self.random.one_of(&self.groups()).clone();
        let state = self.coordinator.live.get(&group);
        let Some((goals, _)) = state.and_then(|state| state.rewind.as_ref()) else {
            return;
        };
        let places = goals.keys().cloned();
        let named = places.map(|(topic, partition)| ((ByteString::from(&*topic), partition), 0));
        let request = marked(&group, &named.collect(), &format!("{MARK} cancel"));
        self.arrive(Origin::Broker, request);
    }

    fn some_goals(&mut self, group: &Id) -> BTreeMap<Key, i64> {
        let share = *self.random.one_of(&[10, 40, 100]);
        let mut goals = BTreeMap::new();
        for topic in TOPICS {
            let Some(known) = self.cluster.get(topic) else {
                continue;
            };
            let (id, ends) = (known.id, known.ends.clone());
            for (partition, end) in ends.into_iter().enumerate() {
                if !self.random.percent(share) {
                    continue;
                }
                let partition = partition as i32;
                let start = self.cluster.start(id, partition);
                let done = self.ledger.account(group, (id, partition)).done.min(end);
                let to = match self.random.below(10) {
                    0..3 => start,
                    3 => end,
                    4 => -1,
                    5 => self.random.between(start, end),
                    _ => self.random.between(start, done),
                };
                goals.insert((ByteString::from(topic), partition), to);
            }
        }
        goals
    }

    fn wish(&mut self, group: Id, wish: Wish) {
        if matches!(&wish, Wish::Rewind(goals) if goals.is_empty()) {
            return;
        }
        let number = self.number();
        let tries = 0;
        let asked = Asked { group, wish, tries };
        self.administrators.asked.insert(number, asked);
        self.ask(number, 0);
    }

    /// Asks, again if this is not the first time.
    pub(crate) fn ask(&mut self, number: u64, tries: u32) {
        let Some(asked) = self.administrators.asked.get_mut(&number) else {
            return;
        };
        // It has asked meanwhile.
        if asked.tries != tries {
            return;
        }
        if asked.tries == TRIES_MAX || self.is_calm {
            self.administrators.asked.remove(&number);
            return;
        }
        asked.tries += 1;
        let tries = asked.tries;
        let request = asked.request(number);
        let patience_ms = *self.random.one_of(&[1_000, 5_000, 30_000]);
        self.later(patience_ms, Event::AskAgain { number, tries });
        if self.random.percent(self.profile.loss_percent) {
            return;
        }
        let ms = self.random.between(1, self.profile.latency_ms);
        self.later(ms, Event::Asked { number, request });
    }

    /// Whether what is asked for lies within the logs: the broker refuses what does not before the
    /// coordinator hears of it.
    pub(crate) fn is_within_logs(&self, request: &Request) -> bool {
        let Request::OffsetCommit { request, .. } = request else {
            return true;
        };
        request.topics.iter().all(|topic| {
            let known = self.cluster.get(&topic.name);
            topic.partitions.iter().all(|partition| {
                known.is_some_and(|known| {
                    let index = partition.partition_index;
                    let start = self.cluster.start(known.id, index);
                    let end = known.ends.get(index as usize);
                    let offset = partition.committed_offset;
                    end.is_some_and(|end| offset <= *end && (offset >= start || offset < 0))
                })
            })
        })
    }

    /// An answer gets to whoever asked.
    pub(crate) fn told(&mut self, number: u64, reply: Option<Reply>) {
        let Some(asked) = self.administrators.asked.get(&number).cloned() else {
            return;
        };
        let ms = *self.random.one_of(&[10, 100, 1_000]);
        let tries = asked.tries;
        match reply {
            Some(Reply::OffsetCommit(answer)) => {
                let partitions = answer.topics.iter().flat_map(|topic| &topic.partitions);
                let mut codes = partitions.map(|partition| partition.error_code);
                if codes.any(|code| code == ErrorCode::REBALANCE_IN_PROGRESS) {
                    return self.later(ms, Event::AskAgain { number, tries });
                }
                self.administrators.asked.remove(&number);
            }
            Some(Reply::OffsetFetch(answer)) => {
                self.administrators.asked.remove(&number);
                let topics = answer.topics.into_iter();
                let goals = topics.flat_map(|topic| {
                    let name = topic.name;
                    let partitions = topic.partitions.into_iter();
                    partitions.map(move |partition| {
                        let key = (name.clone(), partition.partition_index);
                        (key, partition.committed_offset)
                    })
                });
                self.wish(asked.group, Wish::Rewind(goals.collect()));
            }
            _ => self.later(ms, Event::AskAgain { number, tries }),
        }
    }

    /// Whether what an administrator asked for has happened because somebody else had the same wish.
    pub(crate) fn is_done(&self, number: u64) -> bool {
        let asked = self.administrators.asked.get(&number);
        asked.is_none_or(|asked| match &asked.wish {
            Wish::Rewind(goals) => self.eras.has_been(&asked.group, goals),
            Wish::Undo => false,
        })
    }

    /// Sends an answer to an administrator.
    pub(crate) fn tell(&mut self, number: u64, reply: Option<Reply>) {
        if !self.is_calm && self.random.percent(self.profile.loss_percent) {
            return;
        }
        let ms = self.random.between(1, self.profile.latency_ms);
        self.later(ms, Event::Told { number, reply });
    }

    pub(crate) fn asked(&mut self, number: u64, request: Request) {
        self.arrive(Origin::Administrator { number }, request);
    }
}

impl Asked {
    fn request(&self, number: u64) -> Request {
        match &self.wish {
            // What is asked for again is the same to the last byte.
            Wish::Rewind(goals) => {
                let metadata = format!("{MARK} metadata={}", wished_in(number));
                marked(&self.group, goals, &metadata)
            }
            Wish::Undo => Request::OffsetFetch {
                request: OffsetFetchRequestGroup {
                    group_id: (&*self.group).into(),
                    member_id: Some(MARK.into()),
                    member_epoch: -1,
                    topics: None,
                },
                require_stable: true,
            },
        }
    }
}

/// A commit with a mark, as any admin client sends it.
fn marked(group: &Id, goals: &BTreeMap<Key, i64>, metadata: &str) -> Request {
    let mut topics: Vec<OffsetCommitRequestTopic> = Vec::new();
    for ((name, partition_index), to) in goals {
        let partition = OffsetCommitRequestPartition {
            partition_index: *partition_index,
            committed_offset: *to,
            committed_metadata: Some(metadata.into()),
            ..OffsetCommitRequestPartition::default()
        };
        match topics.last_mut() {
            Some(last) if last.name == *name => last.partitions.push(partition),
            _ => topics.push(OffsetCommitRequestTopic {
                name: name.clone(),
                partitions: vec![partition],
                ..OffsetCommitRequestTopic::default()
            }),
        }
    }
    let request = OffsetCommitRequest {
        group_id: (&**group).into(),
        generation_id_or_member_epoch: -1,
        topics,
        ..OffsetCommitRequest::default()
    };
    Request::OffsetCommit {
        version: 9,
        request,
    }
}
