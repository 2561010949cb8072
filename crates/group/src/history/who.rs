//! The members and clients that events name, and lists that stay short.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::{
    Id,
    text::{NAME_CHARS_MAX, printable},
};

/// A member, or another client that asked for something.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Who {
    /// The member id; empty for one who is not a member.
    pub id: Id,
    /// The instance id of a static member.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_id: Option<Id>,
    /// What the client calls itself.
    pub client_id: Id,
    /// Where it is.
    pub host: Id,
}

impl Who {
    /// The member with this id, or another client if that is empty.
    pub fn new(id: &Id, instance_id: Option<&Id>, client_id: &Id, host: &Id) -> Who {
        Who {
            id: short(id),
            instance_id: instance_id.map(short),
            client_id: short(client_id),
            host: short(host),
        }
    }
}

/// The same as [`clean`], shared if it is clean.
pub fn short(text: &Id) -> Id {
    if is_clean(text) {
        text.clone()
    } else {
        clean(text)
    }
}

fn is_clean(text: &str) -> bool {
    text.len() <= NAME_CHARS_MAX && matches!(printable(text), Cow::Borrowed(_))
}

/// A peer's words as part of a line: printable, and cut if they are long.
pub fn clean(text: &str) -> Id {
    if is_clean(text) {
        return text.into();
    }
    let cut: String = text.chars().take(NAME_CHARS_MAX).collect();
    printable(&cut).into()
}

/// The first of many, and how many there are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Few<T> {
    /// How many there are.
    pub count: usize,
    /// The first of them: all, if there are no more than ten.
    pub first: Vec<T>,
}

impl<T> Few<T> {
    /// How many of a list are named.
    pub const NAMED_MAX: usize = 10;

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// How many are not named.
    pub fn more(&self) -> usize {
        self.count.saturating_sub(self.first.len())
    }
}

impl<T> Default for Few<T> {
    fn default() -> Few<T> {
        Few {
            count: 0,
            first: Vec::new(),
        }
    }
}

impl<T> FromIterator<T> for Few<T> {
    fn from_iter<I: IntoIterator<Item = T>>(all: I) -> Few<T> {
        let mut few = Few::default();
        few.extend(all);
        few
    }
}

impl<T> Extend<T> for Few<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, all: I) {
        for one in all {
            self.count += 1;
            if self.first.len() < Self::NAMED_MAX {
                self.first.push(one);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_names_ten_and_counts_the_rest() {
        let few: Few<usize> = (0..1_000).collect();
        assert_eq!((few.first.len(), few.count, few.more()), (10, 1_000, 990));
    }

    #[test]
    fn what_a_peer_says_stays_one_line_and_short() {
        assert_eq!(&*clean("a\nb\u{1b}[2J"), "a\u{fffd}b\u{fffd}[2J");
        assert_eq!(clean(&"é".repeat(10_000)).chars().count(), NAME_CHARS_MAX);
    }
}
