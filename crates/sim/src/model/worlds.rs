//! The worlds that are gone through, and how many states each is known to have.

use super::{Explored, world::Small};

/// A small world that is gone through.
#[derive(Debug)]
pub struct Named {
    /// What it is called.
    pub name: &'static str,
    /// How it is.
    pub small: Small,
    /// Whether it takes many minutes.
    pub is_large: bool,
    /// What came of it last time. It only changes when the protocol, the members or the world do;
    /// whoever changes them looks whether the difference is meant, and writes down the new one.
    /// `None` if nobody has gone through all of it.
    pub known: Option<Explored>,
}

const PLAIN: Small = Small {
    partitions: 2,
    consumers: 2,
    statics: 0,
    classics: 0,
    crashes: true,
    losses: true,
    departures: true,
    changes: false,
};

const MIXED: Small = Small {
    consumers: 1,
    classics: 2,
    ..PLAIN
};

/// The worlds that are gone through.
pub const WORLDS: &[Named] = &[
    Named {
        name: "two members, two partitions",
        small: PLAIN,
        is_large: false,
        known: Some(Explored::of(1_852, 22_132, 17, 5)),
    },
    Named {
        name: "a static member",
        small: Small {
            statics: 1,
            partitions: 2,
            ..PLAIN
        },
        is_large: false,
        known: Some(Explored::of(4_444, 55_010, 19, 5)),
    },
    Named {
        name: "from the classic protocol and back, one partition",
        small: Small {
            consumers: 1,
            classics: 1,
            partitions: 1,
            ..PLAIN
        },
        is_large: false,
        known: Some(Explored::of(1_140, 13_148, 12, 3)),
    },
    Named {
        name: "from the classic protocol and back, two partitions",
        small: Small {
            consumers: 1,
            classics: 1,
            ..PLAIN
        },
        is_large: false,
        known: Some(Explored::of(4_883, 58_383, 19, 5)),
    },
    Named {
        name: "a static member that changes its protocol",
        small: Small {
            statics: 1,
            changes: true,
            ..PLAIN
        },
        is_large: false,
        known: Some(Explored::of(10_656, 133_851, 22, 5)),
    },
    Named {
        name: "two members of the classic protocol",
        small: Small {
            consumers: 0,
            classics: 2,
            ..PLAIN
        },
        is_large: false,
        known: Some(Explored::of(33_685, 394_147, 35, 10)),
    },
    Named {
        name: "three members of both protocols, one partition",
        small: Small {
            partitions: 1,
            ..MIXED
        },
        is_large: true,
        known: Some(Explored::of(342_555, 5_861_492, 36, 9)),
    },
    Named {
        name: "three members of both protocols, two partitions, nothing is lost on its way",
        small: Small {
            losses: false,
            ..MIXED
        },
        is_large: true,
        known: Some(Explored::of(724_061, 6_004_870, 51, 9)),
    },
    Named {
        name: "three members, three partitions",
        small: Small {
            consumers: 3,
            partitions: 3,
            ..PLAIN
        },
        is_large: true,
        known: Some(Explored::of(1_410_526, 25_185_674, 32, 5)),
    },
];
