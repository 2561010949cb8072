//! The states of a member of the consumer protocol.

/// The state of a member of the consumer protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MemberState {
    /// It is in no group.
    Unsubscribed,
    /// It asks to be let in.
    Joining,
    /// The application lets go of partitions or takes over others.
    Reconciling,
    /// It tells the coordinator what it has now.
    Acknowledging,
    /// It has what it is meant to have.
    Stable,
    /// The application lets go of everything before the group is left.
    PrepareLeaving,
    /// It tells the coordinator that it leaves.
    Leaving,
    /// The application has not asked for records for too long; when it does, the member joins
    /// again.
    Stale,
    /// The coordinator does not know it any more; it joins again when the application knows that
    /// its partitions are lost.
    Fenced,
    /// It has given up.
    Fatal,
}

impl MemberState {
    /// Whether this state may follow after `from`.
    pub(super) fn may_follow(self, from: MemberState) -> bool {
        use MemberState::*;
        let member = matches!(from, Joining | Stable | Reconciling | Acknowledging);
        match self {
            Unsubscribed => matches!(from, PrepareLeaving | Leaving | Fenced),
            Joining => matches!(from, Unsubscribed | Fenced | Stale),
            Reconciling => matches!(from, Joining | Stable | Acknowledging | Reconciling),
            Acknowledging => from == Reconciling,
            Stable => matches!(from, Joining | Acknowledging | Reconciling),
            PrepareLeaving => member || from == Unsubscribed || from == Stale,
            // At once if the application has been away for too long.
            Leaving => member || from == PrepareLeaving,
            Stale => from == Leaving,
            Fenced => member || matches!(from, PrepareLeaving | Leaving),
            Fatal => from != Fatal,
        }
    }
}
