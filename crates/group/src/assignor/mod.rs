//! Assignors.

/// An assignor that the coordinator has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Assignor {
    /// Spreads partitions evenly and moves as few as it can.
    Uniform,
    /// Gives each member neighbouring partitions of each topic.
    Range,
}
