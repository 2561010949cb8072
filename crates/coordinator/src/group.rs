//! A group, whatever its protocol.

use super::{
    Id,
    classic::ClassicGroup,
    consumer::ConsumerGroup,
    offsets::GroupOffsets,
    rewind::{Rewind, Rewound},
    starts::Seen,
};

/// A group: its members, in one of the protocols, and its committed offsets.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    pub(crate) id: Id,
    pub(crate) members: Members,
    pub(crate) offsets: GroupOffsets,
    /// The rewind that is under way.
    pub(crate) rewind: Option<Box<Rewind>>,
    /// The last one that has happened.
    pub(crate) rewound: Option<Box<Rewound>>,
    /// What it has seen of its topics.
    pub(crate) seen: Seen,
}

/// The members of a group and what they have agreed on.
#[derive(Debug, Clone)]
// A group is kept once, in a map: what a box would save is not worth a look-up of every classic one.
#[allow(clippy::large_enum_variant)]
pub(crate) enum Members {
    /// The classic protocol. Also the home of a group that only has offsets.
    Classic(ClassicGroup),
    /// The consumer protocol (KIP-848), perhaps with classic members among them.
    Consumer(Box<ConsumerGroup>),
}

impl Members {
    pub(crate) fn classic_mut(&mut self) -> Option<&mut ClassicGroup> {
        match self {
            Members::Classic(group) => Some(group),
            Members::Consumer(_) => None,
        }
    }

    pub(crate) fn consumer_mut(&mut self) -> Option<&mut ConsumerGroup> {
        match self {
            Members::Consumer(group) => Some(group),
            Members::Classic(_) => None,
        }
    }
}

impl Group {
    pub(crate) fn new(id: Id) -> Group {
        Group {
            id,
            members: Members::Classic(ClassicGroup::default()),
            offsets: GroupOffsets::default(),
            rewind: None,
            rewound: None,
            seen: Seen::default(),
        }
    }

    pub(crate) fn classic(&self) -> Option<&ClassicGroup> {
        match &self.members {
            Members::Classic(group) => Some(group),
            Members::Consumer(_) => None,
        }
    }

    pub(crate) fn classic_mut(&mut self) -> Option<&mut ClassicGroup> {
        self.members.classic_mut()
    }

    pub(crate) fn consumer(&self) -> Option<&ConsumerGroup> {
        match &self.members {
            Members::Consumer(group) => Some(group),
            Members::Classic(_) => None,
        }
    }

    pub(crate) fn consumer_mut(&mut self) -> Option<&mut ConsumerGroup> {
        self.members.consumer_mut()
    }
}
