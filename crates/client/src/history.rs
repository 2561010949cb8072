//! What happened to groups, and what they are doing, in words.
//!
//! A kohort broker keeps a history of its groups: [`Admin::group_events`](crate::Admin::group_events)
//! reads it. [`Recent`] folds it, and [`explain`] tells what a group is doing, with the history or
//! without; [`Observer`] sees what it can of groups whose coordinator keeps none.

pub use kohort_group::{
    explain::{
        Clock, ExplainedRewind, Explanation, HeldBy, Holdup, LastRebalance, MemberView, Note,
        Observer, PartitionLag, PendingRewind, Rebalance, Recent, Timeline, View, explain,
    },
    history::{
        Cause, Causes, Change, Deletion, Event, EventError, Failure, Few, Late, Needs, Offset,
        Phase, Protocol, SCHEMA_VERSION, TopicChange, Waited, What, Who, clock_span,
    },
};
