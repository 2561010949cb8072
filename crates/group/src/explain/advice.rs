//! What to do about it.

use crate::history::{Cause, Failure, Needs};

/// What a person can do about a member that others wait for.
pub(super) fn for_needs(needs: Needs) -> &'static str {
    match needs {
        Needs::Rejoin => {
            "it rejoins when its application calls poll() again: if processing between two polls \
             takes long, lower max.poll.records; if the application is stuck, restart it. The others \
             wait for it for at most its max.poll.interval.ms"
        }
        Needs::Join => {
            "a client was given a member id but has not joined with it; nothing to do: the id \
             expires with its session timeout"
        }
        Needs::Assign => {
            "the leader is computing the assignment; if that takes long, check its log and whether \
             its metadata requests are answered"
        }
        Needs::Sync => "it has joined but not asked for its assignment; check its log",
        Needs::Revoke => {
            "it releases them when its application calls poll() again and its rebalance listener \
             returns: if processing between two polls takes long, lower max.poll.records; if the \
             application is stuck, restart it. The others wait for it for at most its \
             max.poll.interval.ms"
        }
        Needs::Heartbeat => {
            "it takes over its partitions with its next heartbeat; if none comes, its session \
             expires and it is removed"
        }
    }
}

/// What rebalances have in common that began for the same kind of reason, and what to do about it.
pub(super) fn for_cause(cause: &Cause) -> (&'static str, Option<&'static str>) {
    match cause {
        Cause::MemberJoined { .. } => (
            "members joined",
            Some(
                "check whether something keeps restarting the members; members with a \
                 group.instance.id come back without a rebalance",
            ),
        ),
        Cause::MemberRejoined { leads: true, .. } => (
            "the leader asked for it",
            Some("its topics or partitions changed, or its assignor needs another round"),
        ),
        Cause::MemberRejoined { .. } | Cause::SubscriptionChanged { .. } => (
            "members changed their subscription",
            Some("let all members subscribe to the same topics, and do it once"),
        ),
        Cause::MemberReturned { .. } => ("static members came back", None),
        Cause::MemberLeft { .. } | Cause::MemberPaused { .. } => (
            "members left",
            Some(
                "check whether something keeps restarting the members; Java clients also leave \
                 when poll() is not called for max.poll.interval.ms",
            ),
        ),
        Cause::MemberRemoved { .. } => ("an administrator removed members", None),
        Cause::SessionExpired { .. } | Cause::FirstJoinExpired { .. } => (
            "members stopped sending heartbeats until their sessions expired",
            Some(
                "they were killed, lost the network, or paused for longer than the session \
                 timeout: look for crashes, out-of-memory kills and long garbage collections",
            ),
        ),
        Cause::ConnectionLost { .. } => (
            "members lost their connections and did not come back",
            Some("they were killed or lost the network: look for crashes and out-of-memory kills"),
        ),
        Cause::MembersFenced {
            failure: Failure::Revoke | Failure::Rejoin,
            ..
        } => (
            "members did not rejoin or revoke in time",
            Some(
                "they spend longer than max.poll.interval.ms between two polls: lower \
                 max.poll.records or raise the interval",
            ),
        ),
        Cause::MembersFenced { .. } => ("members did not ask for their assignment in time", None),
        Cause::AssignorChanged { .. } => (
            "the assignor changed",
            Some("configure the same assignor in all members"),
        ),
        Cause::TopicsChanged { .. } | Cause::RegexResolved { .. } => ("topics changed", None),
        _ => ("for other reasons", None),
    }
}
