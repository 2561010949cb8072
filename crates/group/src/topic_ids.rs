//! The topics of a subscription.

use std::{fmt, sync::Arc};

use kohort_wire::Uuid;

/// Sorted, distinct topic ids; cloning copies a pointer.
///
/// Members with equal subscriptions should hold clones of one value: they are then seen to be
/// equal without a walk over the ids.
#[derive(Clone, Default)]
pub struct TopicIds(Arc<[Uuid]>);

impl TopicIds {
    /// The ids, ascending.
    pub fn as_slice(&self) -> &[Uuid] {
        &self.0
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the topic is among them.
    pub fn contains(&self, topic_id: Uuid) -> bool {
        self.0.binary_search(&topic_id).is_ok()
    }

    /// Whether the two are one allocation (or both are empty). Equal ones need not be the same.
    pub fn is_same(&self, other: &TopicIds) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || (self.is_empty() && other.is_empty())
    }
}

impl PartialEq for TopicIds {
    fn eq(&self, other: &TopicIds) -> bool {
        self.is_same(other) || self.0 == other.0
    }
}

impl Eq for TopicIds {}

impl fmt::Debug for TopicIds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.iter()).finish()
    }
}

impl FromIterator<Uuid> for TopicIds {
    fn from_iter<I: IntoIterator<Item = Uuid>>(ids: I) -> TopicIds {
        let mut ids: Vec<Uuid> = ids.into_iter().collect();
        ids.sort_unstable();
        ids.dedup();
        TopicIds(ids.into())
    }
}
