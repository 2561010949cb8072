//! Events in words: one line each, for logs and for people.

use std::fmt::{self, Display, Formatter};

use super::{
    Cause, Change, Deletion, Failure, Few, Late, Needs, Offset, Phase, Protocol, TopicChange,
    Waited, What, Who,
};

/// From when on it is worth a word how long something took.
const NOTABLE_MS: i64 = 500;

/// A time in the largest units that matter: `850 ms`, `2.9 s`, `4 min 12 s`, `1 h 3 min`.
pub fn clock_span(ms: i64) -> String {
    let ms = ms.max(0);
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 if ms % 1_000 < 50 => format!("{} s", ms / 1_000),
        1_000..60_000 => format!("{:.1} s", ms as f64 / 1_000.0),
        60_000..3_600_000 => two(ms / 60_000, "min", ms / 1_000 % 60, "s"),
        3_600_000..86_400_000 => two(ms / 3_600_000, "h", ms / 60_000 % 60, "min"),
        _ => two(ms / 86_400_000, "d", ms / 3_600_000 % 24, "h"),
    }
}

fn two(large: i64, large_unit: &str, small: i64, small_unit: &str) -> String {
    match small {
        0 => format!("{large} {large_unit}"),
        _ => format!("{large} {large_unit} {small} {small_unit}"),
    }
}

/// `1 partition`, `3 partitions`.
pub fn partitions_in_words(count: usize) -> String {
    counted(count, "partition")
}

fn counted(count: usize, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    }
}

/// A member id that people can tell from others: without most of the randomness at its end.
struct Short<'a>(&'a str);

impl Display for Short<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        /// The lengths of randomness: kohort's own, and a UUID.
        const RANDOM: [usize; 2] = [32, 36];
        let id = self.0;
        for length in RANDOM {
            if let Some(start) = id.len().checked_sub(length).filter(|&start| start > 0)
                && id.is_char_boundary(start)
                && id[..start].ends_with('-')
                && id[start..]
                    .bytes()
                    .all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
            {
                return write!(f, "{}…", &id[..start + 6]);
            }
        }
        f.write_str(id)
    }
}

impl Display for Who {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let host = self.host.trim_start_matches('/');
        if self.id.is_empty() {
            return write!(f, "{} at {host}", self.client_id);
        }
        write!(f, "{} (", Short(&self.id))?;
        if let Some(instance_id) = &self.instance_id {
            write!(f, "instance {instance_id}, ")?;
        }
        write!(f, "{} at {host})", self.client_id)
    }
}

impl<T: Display> Display for Few<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (index, one) in self.first.iter().enumerate() {
            let separator = match index {
                0 => "",
                _ if index + 1 == self.count => " and ",
                _ => ", ",
            };
            write!(f, "{separator}{one}")?;
        }
        match self.more() {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// A client's reason behind a statement.
struct Reason<'a>(&'a Option<crate::Id>);

impl Display for Reason<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(reason) => write!(f, ", saying \"{reason}\""),
            None => Ok(()),
        }
    }
}

impl Display for Cause {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Cause::MemberJoined { member, reason } => {
                write!(f, "member {member} joined{}", Reason(reason))
            }
            Cause::MemberRejoined {
                member,
                leads: true,
                reason,
            } => write!(
                f,
                "the leader {member} asked for a rebalance{}",
                Reason(reason)
            ),
            Cause::MemberRejoined { member, reason, .. } => write!(
                f,
                "member {member} joined again with another subscription or assignors{}",
                Reason(reason)
            ),
            Cause::MemberReturned {
                member,
                old_member_id,
                reason,
            } => write!(
                f,
                "static member {member} came back in the place of {old_member_id}{}",
                Reason(reason)
            ),
            Cause::MemberLeft { member, reason } => {
                write!(f, "member {member} left{}", Reason(reason))
            }
            Cause::MemberPaused { member } => write!(
                f,
                "static member {member} left and may come back: its partitions wait for it"
            ),
            Cause::MemberRemoved { member, by, reason } => write!(
                f,
                "an administrator ({by}) removed member {member}{}",
                Reason(reason)
            ),
            Cause::SessionExpired { member, timeout_ms } => write!(
                f,
                "member {member} sent no heartbeat for {}, its session timeout",
                clock_span(*timeout_ms)
            ),
            Cause::ConnectionLost { member, grace_ms } => write!(
                f,
                "the connection of member {member} closed, and it did not come back within {}",
                clock_span(*grace_ms)
            ),
            Cause::FirstJoinExpired { member } => {
                write!(f, "member {member} sent nothing after its first join")
            }
            Cause::MemberIdUnused { member_id } => {
                write!(
                    f,
                    "member {member_id} did not join with the id it was given"
                )
            }
            Cause::MembersFenced {
                members,
                failure,
                timeout_ms,
                partitions,
            } => {
                let noun = match members.count {
                    1 => "member",
                    _ => "members",
                };
                write!(f, "{noun} {members} did not ")?;
                match failure {
                    Failure::Revoke if partitions.is_empty() => f.write_str("revoke partitions")?,
                    Failure::Revoke => write!(f, "revoke {partitions}")?,
                    Failure::Rejoin => f.write_str("rejoin")?,
                    Failure::Sync => f.write_str("ask for an assignment")?,
                }
                let was = match members.count {
                    1 => "was",
                    _ => "were",
                };
                write!(
                    f,
                    " within {}, the rebalance timeout, and {was} removed",
                    clock_span(*timeout_ms)
                )
            }
            Cause::SubscriptionChanged {
                member,
                topics,
                regex,
            } => {
                write!(f, "member {member} subscribes to ")?;
                match (topics.is_empty(), regex) {
                    (true, None) => f.write_str("no topics"),
                    (true, Some(regex)) => write!(f, "the regular expression '{regex}'"),
                    (false, None) => write!(f, "{topics}"),
                    (false, Some(regex)) => {
                        write!(f, "{topics} and the regular expression '{regex}'")
                    }
                }
            }
            Cause::AssignorChanged { from, to } => {
                write!(
                    f,
                    "most members ask for the assignor {to} now, instead of {from}"
                )
            }
            Cause::TopicsChanged { topics } if topics.is_empty() => {
                f.write_str("its topics have changed")
            }
            Cause::TopicsChanged { topics } => write!(f, "{topics}"),
            Cause::RegexResolved { regex, topics } if topics.is_empty() => {
                write!(f, "the regular expression '{regex}' matches no topics")
            }
            Cause::RegexResolved { regex, topics } => {
                write!(f, "the regular expression '{regex}' matches {topics}")
            }
            Cause::Rewind { by, partitions } => write!(f, "{by} rewinds {partitions}"),
            Cause::RewindEnded { partitions } => {
                write!(
                    f,
                    "the rewind is over, and {partitions} can be assigned again"
                )
            }
            Cause::PutOutForRewind { member } => write!(
                f,
                "member {member} is removed for the rewind and has to rejoin, because it would keep its \
                 partitions through the rebalance"
            ),
            Cause::RestartedAfterRewind => {
                f.write_str("the coordinator was restarted right after a rewind")
            }
            Cause::Other { text } => f.write_str(text),
        }
    }
}

impl Display for TopicChange {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let TopicChange {
            topic,
            partitions_before,
            partitions,
            ..
        } = self;
        let now = partitions_in_words((*partitions).max(0) as usize);
        match self.change {
            Change::Created => write!(f, "topic {topic} was created with {now}"),
            Change::Deleted => write!(f, "topic {topic} was deleted"),
            Change::Recreated => {
                write!(f, "topic {topic} was deleted and created again with {now}")
            }
            Change::Grown => write!(f, "topic {topic} grew from {partitions_before} to {now}"),
        }
    }
}

impl Display for Needs {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Needs::Rejoin => "rejoin",
            Needs::Join => "join with the id it was given",
            Needs::Assign => "assign",
            Needs::Sync => "ask for its assignment",
            Needs::Revoke => "revoke",
            Needs::Heartbeat => "take its partitions with its next heartbeat",
        })
    }
}

impl Display for Waited {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.member, self.needs)?;
        if !self.partitions.is_empty() {
            write!(f, " {}", self.partitions)?;
        }
        if self.blocks.is_empty() {
            Ok(())
        } else {
            write!(f, " (which {} waits for)", self.blocks)
        }
    }
}

/// Members that others wait for, those with the same to do together.
struct Together<'a>(&'a Few<Waited>);

impl Display for Together<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let members = self.0;
        let is_plain = |waited: &Waited| waited.partitions.is_empty() && waited.blocks.is_empty();
        match members.first.first() {
            Some(first)
                if members
                    .first
                    .iter()
                    .all(|other| is_plain(other) && other.needs == first.needs) =>
            {
                let who = Few {
                    count: members.count,
                    first: members.first.iter().map(|waited| &waited.member).collect(),
                };
                write!(f, "{who} to {}", first.needs)
            }
            _ => write!(f, "{members}"),
        }
    }
}

impl Late {
    /// Whether it took long enough to be worth a word.
    pub fn is_notable(&self) -> bool {
        self.took_ms >= NOTABLE_MS
    }
}

impl Display for Late {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let done = match self.needs {
            Needs::Rejoin | Needs::Join => "join",
            Needs::Assign => "assign",
            Needs::Sync => "ask for its assignment",
            Needs::Revoke => "revoke",
            Needs::Heartbeat => "take its partitions",
        };
        write!(
            f,
            "the last to {done} was {}, after {}",
            self.member,
            clock_span(self.took_ms)
        )
    }
}

impl Display for Protocol {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Protocol::Classic => "classic",
            Protocol::Consumer => "consumer",
        })
    }
}

impl Display for Offset {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.partition)?;
        if let Some(from) = self.from {
            write!(f, " from {from}")?;
        }
        match self.to {
            ..0 => f.write_str(" to none"),
            to => write!(f, " to {to}"),
        }
    }
}

impl Display for What {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            What::Changed { cause } => write!(f, "{cause}"),
            What::RebalanceBegan {
                epoch,
                causes,
                deadline_at: None,
            } => write!(f, "rebalance, epoch {epoch}: {causes}"),
            What::RebalanceBegan { epoch, causes, .. } => {
                write!(f, "rebalance of generation {epoch}: {causes}")
            }
            What::Waiting { phase, members, .. } => match phase {
                Phase::MoreMembers => f.write_str("was empty, waiting for more members to join"),
                Phase::Sync if members.is_empty() => {
                    f.write_str("all members have asked for their assignment now")
                }
                Phase::Join | Phase::Assign | Phase::Sync | Phase::Reconcile => {
                    write!(f, "still waiting for {}", Together(members))
                }
            },
            What::JoinEnded {
                epoch,
                members,
                leader,
                assignor,
                took_ms,
                last,
            } => {
                write!(
                    f,
                    "generation {epoch} has {}, joined in {}",
                    counted(*members, "member"),
                    clock_span(*took_ms)
                )?;
                if let Some(last) = last.as_ref().filter(|last| last.is_notable()) {
                    write!(f, " ({last})")?;
                }
                write!(f, "; {leader} assigns with {assignor}")
            }
            What::Assigned {
                epoch,
                took_ms,
                total_ms,
            } => {
                write!(
                    f,
                    "generation {epoch} is assigned and stable, after {} in all",
                    clock_span(*total_ms)
                )?;
                if *took_ms < NOTABLE_MS {
                    Ok(())
                } else {
                    write!(f, ", {} of it for the leader", clock_span(*took_ms))
                }
            }
            What::TargetComputed {
                epoch,
                assignor,
                members,
                members_changed,
                partitions_moved,
                ..
            } => write!(
                f,
                "target of epoch {epoch} by the assignor {assignor}: {} move{}, \
                 new targets for {members_changed} of {members} members",
                partitions_in_words(*partitions_moved),
                if *partitions_moved == 1 { "s" } else { "" },
            ),
            What::RevocationAsked {
                member,
                partitions,
                timeout_ms,
                ..
            } => write!(
                f,
                "member {member} must revoke {partitions} within {}",
                clock_span(*timeout_ms)
            ),
            What::Stable {
                epoch,
                total_ms,
                last,
                ..
            } => {
                write!(f, "stable at epoch {epoch} after {}", clock_span(*total_ms))?;
                match last.as_ref().filter(|last| last.is_notable()) {
                    Some(last) => write!(f, "; {last}"),
                    None => Ok(()),
                }
            }
            What::Emptied { epoch } => write!(f, "the group is empty, at epoch {epoch}"),
            What::Converted {
                to,
                members: 0,
                causes,
                ..
            } if causes.is_empty() => {
                let from = match to {
                    Protocol::Classic => Protocol::Consumer,
                    Protocol::Consumer => Protocol::Classic,
                };
                write!(f, "the empty {from} group became a {to} group")
            }
            What::Converted {
                to,
                members,
                epoch,
                causes,
            } => {
                write!(
                    f,
                    "the group of {} became a {to} group at epoch {epoch}",
                    counted(*members, "member")
                )?;
                if causes.is_empty() {
                    Ok(())
                } else {
                    write!(f, ": {causes}")
                }
            }
            What::Deleted {
                why: Deletion::Requested,
            } => f.write_str("deleted on request"),
            What::Deleted {
                why: Deletion::Unused,
            } => f.write_str("deleted: it has neither members nor offsets"),
            What::NewPartitions { offsets } => {
                let first = offsets.first.iter();
                let starts = Few {
                    count: offsets.count,
                    first: first
                        .map(|offset| format!("{} at {}", offset.partition, offset.to))
                        .collect(),
                };
                write!(f, "new partitions start at their first record: {starts}")
            }
            What::OffsetsExpired { count } => {
                write!(f, "{} expired", counted(*count, "committed offset"))
            }
            What::OffsetsDeleted { partitions } => {
                write!(
                    f,
                    "the committed offsets of {partitions} were deleted on request"
                )
            }
            What::OffsetsReset { by, offsets } => write!(f, "{by} set offsets: {offsets}"),
            What::RewindAsked { by, offsets } => write!(f, "{by} asks for a rewind: {offsets}"),
            What::RewindRefused { by, why } => {
                write!(f, "the rewind that {by} asked for is refused: {why}")
            }
            What::Rewound {
                offsets, took_ms, ..
            } => write!(f, "rewound {offsets}, after {}", clock_span(*took_ms)),
            What::RewindGivenUp { by, why } => write!(
                f,
                "the rewind that {by} asked for is given up, no offset was changed: {why}"
            ),
            What::Loaded {
                protocol,
                epoch,
                members,
            } => write!(
                f,
                "the coordinator loaded the {protocol} group with {}, epoch {epoch}",
                counted(*members, "member")
            ),
            What::Note { text } => f.write_str(text),
        }
    }
}
