//! What to do about it.

use crate::coordinator::history::{Cause, Failure, Needs};

/// What a person can do about a member that others wait for.
pub(super) fn for_needs(needs: Needs) -> &'static str {
    match needs {
        Needs::Rejoin => {
            "it rejoins when its application calls poll() again: if the work between two polls is \
             long, lower max.poll.records; if it is stuck, restart it. How long everybody waits for \
             it is its max.poll.interval.ms"
        }
        Needs::Join => {
            "a client was given a member id and has not come back with it; nothing is to be done, \
             it is forgotten when its session timeout has passed"
        }
        Needs::Assign => {
            "the leader is computing the assignment; if that takes long, look at its log, and \
             whether its metadata requests are answered"
        }
        Needs::Sync => "it has joined, and has yet to ask for its assignment; look at its log",
        Needs::Revoke => {
            "it gives them up when its application calls poll() again and its rebalance listener \
             has returned: if the work between two polls is long, lower max.poll.records; if it is \
             stuck, restart it. How long everybody waits for it is its max.poll.interval.ms"
        }
        Needs::Heartbeat => {
            "it takes what it was given with its next heartbeat; if none comes, its session ends \
             and it is put out"
        }
    }
}

/// What rebalances have in common that began for the same kind of reason, and what to do about it.
pub(super) fn for_cause(cause: &Cause) -> (&'static str, Option<&'static str>) {
    match cause {
        Cause::MemberJoined { .. } => (
            "members joined",
            Some(
                "look whether something restarts the members again and again; members with a \
                 group.instance.id come back without a rebalance",
            ),
        ),
        Cause::MemberRejoined { leads: true, .. } => (
            "the leader asked for it",
            Some(
                "it has seen a change of topics or partitions, or its assignor wants another round",
            ),
        ),
        Cause::MemberRejoined { .. } | Cause::SubscriptionChanged { .. } => (
            "members changed their subscription",
            Some("let all members subscribe to the same topics, once"),
        ),
        Cause::MemberReturned { .. } => ("static members came back", None),
        Cause::MemberLeft { .. } | Cause::MemberPaused { .. } => (
            "members left",
            Some(
                "look whether something restarts the members again and again; Java clients also \
                 leave when poll() was not called for max.poll.interval.ms",
            ),
        ),
        Cause::MemberRemoved { .. } => ("an administrator removed members", None),
        Cause::SessionExpired { .. } | Cause::FirstJoinExpired { .. } => (
            "members fell silent until their session ended",
            Some(
                "they were killed, cut off from the network, or paused for longer than the session \
                 timeout: look for crashes, out-of-memory kills and long garbage collections",
            ),
        ),
        Cause::ConnectionLost { .. } => (
            "members lost their connection and did not come back",
            Some(
                "they were killed, or are cut off from the network: look for crashes and \
                 out-of-memory kills",
            ),
        ),
        Cause::MembersFenced {
            failure: Failure::Revoke | Failure::Rejoin,
            ..
        } => (
            "members did not rejoin or revoke in time",
            Some(
                "their work between two polls takes longer than max.poll.interval.ms: lower \
                 max.poll.records or raise the interval",
            ),
        ),
        Cause::MembersFenced { .. } => ("members did not ask for their assignment in time", None),
        Cause::AssignorChanged { .. } => (
            "the assignor changed",
            Some("let all members ask for the same assignor"),
        ),
        Cause::TopicsChanged { .. } | Cause::RegexResolved { .. } => ("topics changed", None),
        _ => ("of other reasons", None),
    }
}
