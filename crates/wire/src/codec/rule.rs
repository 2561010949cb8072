//! Which versions of a message carry a field, and how.

/// A range of versions, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Versions {
    /// The first version.
    pub first: i16,
    /// The last version; `i16::MAX` when there is no end yet.
    pub last: i16,
}

impl Versions {
    /// No version at all.
    pub const NONE: Versions = Versions { first: 0, last: -1 };

    /// The versions from `first` to `last`.
    pub const fn new(first: i16, last: i16) -> Versions {
        Versions { first, last }
    }

    /// Whether `version` is in the range.
    #[inline]
    pub const fn contains(&self, version: i16) -> bool {
        self.first <= version && version <= self.last
    }
}

/// Which versions of a message carry a field, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// The versions that carry it.
    pub versions: Versions,
    /// The versions in which it may be null.
    pub null: Versions,
    /// Its tag, when it is a tagged field (KIP-482).
    pub tag: Option<u32>,
    /// Whether it may be left out silently in versions that do not carry it. Otherwise a value that
    /// is not the default is an error there.
    pub ignorable: bool,
}

impl Rule {
    /// A field that is carried by the versions from `first` to `last`.
    pub const fn new(first: i16, last: i16) -> Rule {
        let versions = Versions::new(first, last);
        Rule {
            versions,
            null: Versions::NONE,
            tag: None,
            ignorable: false,
        }
    }

    #[doc(hidden)]
    pub const fn null(self, first: i16, last: i16) -> Rule {
        Rule {
            null: Versions::new(first, last),
            ..self
        }
    }

    #[doc(hidden)]
    pub const fn tag(self, tag: u32) -> Rule {
        Rule {
            tag: Some(tag),
            ..self
        }
    }

    #[doc(hidden)]
    pub const fn ignorable(self) -> Rule {
        Rule {
            ignorable: true,
            ..self
        }
    }

    /// Whether `version` carries the field in its place among the others.
    #[inline]
    pub const fn in_order(&self, version: i16) -> bool {
        self.tag.is_none() && self.versions.contains(version)
    }

    /// Whether `version` carries the field as a tagged one.
    #[inline]
    pub const fn tagged(&self, version: i16) -> bool {
        self.tag.is_some() && self.versions.contains(version)
    }
}

/// A [`Rule`] in the notation of [`message!`](macro@crate::message).
#[doc(hidden)]
#[macro_export]
macro_rules! rule {
    ($first:literal .. $(, $($rest:tt)*)?) => {
        $crate::rule!(@ $crate::codec::Rule::new($first, i16::MAX); $($($rest)*)?)
    };
    ($first:literal ..= $last:literal $(, $($rest:tt)*)?) => {
        $crate::rule!(@ $crate::codec::Rule::new($first, $last); $($($rest)*)?)
    };
    (@ $rule:expr;) => { $rule };
    (@ $rule:expr; ignorable $(, $($rest:tt)*)?) => {
        $crate::rule!(@ $rule.ignorable(); $($($rest)*)?)
    };
    (@ $rule:expr; tag $tag:literal $(, $($rest:tt)*)?) => {
        $crate::rule!(@ $rule.tag($tag); $($($rest)*)?)
    };
    (@ $rule:expr; null $first:literal .. $(, $($rest:tt)*)?) => {
        $crate::rule!(@ $rule.null($first, i16::MAX); $($($rest)*)?)
    };
    (@ $rule:expr; null $first:literal ..= $last:literal $(, $($rest:tt)*)?) => {
        $crate::rule!(@ $rule.null($first, $last); $($($rest)*)?)
    };
}
