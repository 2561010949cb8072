//! Where kohort means to differ from Apache Kafka, and why. docs/serve.md says the same to users.

use super::step::{ConsumerHeartbeat, Epoch, Id, Join, Step};

/// A difference that is meant.
pub(super) struct Difference {
    pub(super) name: &'static str,
    pub(super) reason: &'static str,
    /// Whether what Kafka and kohort answer to a step is this difference.
    is: fn(&Asked<'_>, kafka: &str, kohort: &str) -> bool,
    /// Whether what comes after it can be compared.
    pub(super) passes: bool,
    /// A script that shows it; none where it takes chance.
    pub(super) seed: Option<u64>,
}

/// A step, after others.
pub(super) struct Asked<'a> {
    pub(super) step: &'a Step,
    pub(super) before: &'a [Step],
}

pub(super) const ALL: &[Difference] = &[
    Difference {
        name: "assignment-by-timer",
        reason: "a target assignment that is due is computed by a timer as well, not only with \
                 the next heartbeat: a group whose member left is not without an owner for that \
                 long",
        is: |_, kafka, kohort| {
            kafka.contains("\"Assigning\"")
                && (kohort.contains("\"Reconciling\"") || kohort.contains("\"Stable\""))
        },
        passes: true,
        seed: Some(239),
    },
    Difference {
        name: "earlier-target",
        reason: "since the target is computed by a timer, too, a classic member of a consumer group is \
                 told to rejoin for it at once, and a later target keeps what it assigned",
        is: |Asked { step, before }, kafka, kohort| {
            let is_leave = |step: &Step| {
                matches!(step, Step::ConsumerHeartbeat(heartbeat)
                    if matches!(heartbeat.who.epoch, Epoch::Exactly(..0)))
            };
            let answered = |text: &str| text.contains("error_code: NONE");
            match step {
                Step::Sync(_) | Step::Heartbeat { .. } | Step::Commit { .. } => {
                    before
                        .iter()
                        .any(|step| matches!(step, Step::ConsumerHeartbeat(_)))
                        && answered(kafka)
                        && kohort.contains("REBALANCE_IN_PROGRESS")
                }
                Step::ListGroups { .. } => {
                    since_settled(before).any(is_leave)
                        && kafka.contains("\"Reconciling\"")
                        && kohort.contains("\"Stable\"")
                }
                Step::ConsumerHeartbeat(_) => {
                    since_settled(before).any(is_leave)
                        && answered(kafka)
                        && answered(kohort)
                        && kafka.split_once("assignment: ").map(|(epoch, _)| epoch)
                            == kohort.split_once("assignment: ").map(|(epoch, _)| epoch)
                }
                _ => false,
            }
        },
        passes: false,
        seed: Some(3_151_510),
    },
    Difference {
        name: "told-again",
        reason: "a member that repeats a heartbeat with the epoch before has missed the answer, \
                 and is told its assignment again",
        is: |Asked { step, before }, kafka, kohort| {
            let Step::ConsumerHeartbeat(heartbeat) = step else {
                return false;
            };
            let is_behind = may_be_behind(heartbeat, before);
            let Some((before, _)) = kohort.split_once("assignment: Some(") else {
                return false;
            };
            is_behind
                && kafka.contains("error_code: NONE")
                && kafka.strip_suffix("assignment: None }") == Some(before)
        },
        passes: true,
        seed: Some(231),
    },
    Difference {
        name: "join-repeated-by-static-member",
        reason: "a static member whose answer was lost may join again under its own id, where \
                 Kafka has it wait until its session has ended",
        is: |Asked { step, .. }, kafka, kohort| {
            matches!(step, Step::ConsumerHeartbeat(_))
                && kafka.contains("UNRELEASED_INSTANCE_ID")
                && kohort.contains("error_code: NONE")
        },
        passes: false,
        seed: None,
    },
    Difference {
        name: "rejoins-under-an-instance",
        reason: "a member that rejoins under an instance id that it did not have gets its partitions; \
                 Kafka takes it for stable without any of them until the next rebalance",
        is: |Asked { step, before }, kafka, kohort| {
            matches!(step, Step::ConsumerHeartbeat(heartbeat) if rejoins_as_another(heartbeat, before))
                && kafka.contains(
                    "assignment: Some(ConsumerGroupHeartbeatAssignment { topic_partitions: []",
                )
                && kohort.contains("assignment: Some(")
        },
        passes: false,
        seed: None,
    },
    Difference {
        name: "rebalance-for-static-member",
        reason: "a static member that comes back to a classic group for other topics, or by whose \
                 coming a consumer group becomes classic, makes it rebalance; Kafka answers at \
                 once, and its partitions stay as they were, or nobody leads (the tests of static \
                 members say when there is none)",
        is: |Asked { step, before }, kafka, kohort| {
            matches!(step, Step::Join(join) if comes_back_as_another(join, before))
                && kafka.contains("JoinGroupResponse { error_code: NONE")
                // A member that is alone is answered at once, and has to assign.
                && (!kohort.contains("JoinGroupResponse")
                    || kafka.contains("skip_assignment: true")
                        && kohort.contains("skip_assignment: false"))
        },
        passes: false,
        seed: Some(33),
    },
    Difference {
        name: "another-leader",
        reason: "who leads a classic group that has lost its leader is the first by member id; in \
                 Kafka it depends on hashing",
        is: |_, kafka, kohort| {
            let leader = |text: &str| -> Option<String> {
                let join = text
                    .lines()
                    .find(|line| line.contains("JoinGroupResponse"))?;
                let leader = join.split("leader: ").nth(1)?.split(',').next()?;
                join.contains("error_code: NONE").then(|| leader.to_owned())
            };
            matches!((leader(kafka), leader(kohort)), (Some(one), Some(other)) if one != other)
        },
        passes: false,
        seed: None,
    },
    Difference {
        name: "regex-joins-after-a-change",
        reason: "a member that joins by a regular expression before the target of the last change \
                 is computed leaves the others with nothing in Kafka, which then takes all \
                 subscriptions for equal; kohort assigns what they subscribe to",
        is: |Asked { step, .. }, kafka, kohort| {
            **step == Step::Settle
                && kafka.contains("not settled")
                && !kohort.contains("not settled")
        },
        passes: false,
        seed: Some(390),
    },
    Difference {
        name: "target-without-subscription",
        reason: "a member that joins without topics before the target of the last change is computed \
                 gets some in Kafka, which then takes all subscriptions for equal; nobody reads these \
                 partitions until the next change",
        is: |Asked { step, .. }, kafka, kohort| {
            let has_target_for_nothing = |text: &str| {
                text.split("DescribedConsumerGroupMember {").any(|member| {
                    member
                        .contains("subscribed_topic_names: [], subscribed_topic_regex: Some(\"\")")
                        && member.contains(
                            "target_assignment: DescribedAssignment { topic_partitions: [Described",
                        )
                })
            };
            matches!(step, Step::Settle | Step::DescribeConsumerGroup { .. })
                && has_target_for_nothing(kafka)
                && !has_target_for_nothing(kohort)
        },
        passes: false,
        seed: Some(3_153_832),
    },
    Difference {
        name: "commit-for-another-owner",
        reason: "a member cannot commit for a partition that another member owns",
        is: |Asked { step, .. }, kafka, kohort| {
            matches!(step, Step::Commit { .. })
                && kafka.contains("error_code: NONE")
                && (kohort.contains("STALE_MEMBER_EPOCH") || kohort.contains("ILLEGAL_GENERATION"))
        },
        passes: false,
        seed: Some(72),
    },
    Difference {
        name: "negative-offset",
        reason: "a negative offset cannot be committed: Kafka stores it, and clients take it for none",
        is: |Asked { step, .. }, kafka, kohort| {
            matches!(step, Step::Commit { offsets, .. } if offsets.iter().any(|it| it.offset < 0))
                && kafka.contains("error_code: NONE")
                && kohort.contains("OFFSET_OUT_OF_RANGE")
        },
        passes: false,
        seed: None,
    },
    Difference {
        name: "epoch-before-remembered",
        reason: "the epoch before the current one is remembered for as long as the current one lasts, \
                 so that a member is not fenced whose answers got lost twice in a row",
        is: |Asked { step, before }, kafka, kohort| {
            matches!(step, Step::ConsumerHeartbeat(heartbeat) if may_be_behind(heartbeat, before))
                && kafka.contains("FENCED_MEMBER_EPOCH")
                && kohort.contains("error_code: NONE")
        },
        passes: false,
        seed: None,
    },
    Difference {
        name: "gone-with-the-last-offset",
        reason: "a group that has neither members nor offsets any more is gone, where Kafka \
                 forgets it at the next check for expired offsets",
        is: |Asked { step, before }, kafka, kohort| match step {
            Step::Commit { .. } => {
                commits_to_no_group(kafka, kohort)
                    && before.iter().any(|step| match step {
                        Step::DeleteTopic { .. } | Step::DeleteOffsets { .. } => true,
                        // Of a first join nothing is left once its member id is given back.
                        Step::Join(join) => join.who.id == Id::Empty,
                        _ => false,
                    })
            }
            Step::DescribeGroup { .. } => {
                kafka.contains("group_state: \"Empty\", protocol_type: \"\"")
                    && kohort.contains("\"Dead\"")
            }
            Step::ListGroups { .. } => {
                kafka.contains("protocol_type: \"\"") && kohort.contains("groups: []")
            }
            Step::DeleteGroup { .. } => {
                kafka.contains("NONE") && kohort.contains("GROUP_ID_NOT_FOUND")
            }
            Step::DeleteOffsets { .. } => kohort.contains("GROUP_ID_NOT_FOUND"),
            _ => false,
        },
        passes: true,
        seed: None,
    },
    Difference {
        name: "more-even-assignment",
        reason: "the assignor `uniform` balances members with different subscriptions; Kafka's \
                 sometimes leaves one with two partitions more than another that could take one",
        is: |Asked { step, .. }, kafka, kohort| {
            let sizes = |text: &str| -> Option<(Vec<u64>, String)> {
                let (_, rest) = text.split_once("\"uniform gives [")?;
                let (sizes, all) = rest.split_once("] of ")?;
                let (all, _) = all.split_once("\", members:")?;
                let sizes = sizes.split(", ").map(|size| size.parse().unwrap_or(0));
                Some((sizes.collect(), all.to_owned()))
            };
            let unevenness = |sizes: &[u64]| sizes.iter().map(|size| size * size).sum::<u64>();
            matches!(step, Step::Settle | Step::DescribeConsumerGroup { .. })
                && matches!((sizes(kafka), sizes(kohort)), (Some((one, of)), Some((other, all)))
                    if of == all && unevenness(&one) > unevenness(&other))
        },
        passes: true,
        seed: Some(3_101_541),
    },
    Difference {
        name: "neither-settles",
        reason: "a group whose member stops its heartbeats does not settle, and Kafka computes no \
                 target meanwhile",
        is: |Asked { step, .. }, kafka, kohort| {
            **step == Step::Settle
                && kafka.contains("not settled")
                && kohort.contains("not settled")
        },
        passes: false,
        seed: Some(3_100_958),
    },
    Difference {
        name: "group-of-a-refused-commit",
        reason: "a commit that is refused for its metadata leaves nothing behind; in Kafka it \
                 leaves a group in memory, which later requests see and descriptions don't",
        is: |Asked { step, before }, kafka, kohort| {
            before.iter().any(is_refused_for_its_metadata)
                && match step {
                    Step::Commit { .. } => commits_to_no_group(kafka, kohort),
                    Step::DescribeGroup { .. } => {
                        kafka.contains("\"Dead\"") && !kohort.contains("\"Dead\"")
                    }
                    Step::ListGroups { .. } => {
                        kafka.contains("groups: []") && !kohort.contains("groups: []")
                    }
                    _ => false,
                }
        },
        passes: false,
        seed: Some(3_102_303),
    },
    Difference {
        name: "server-error",
        reason: "a consumer that joins a classic group before the group's leader has assigned is \
                 accepted; Kafka answers UNKNOWN_SERVER_ERROR",
        is: |Asked { step, before }, kafka, kohort| {
            matches!(step, Step::ConsumerHeartbeat(_))
                && before.iter().any(|step| matches!(step, Step::Join(_)))
                && kafka.contains("UNKNOWN_SERVER_ERROR")
                && kohort.contains("error_code: NONE")
        },
        passes: false,
        seed: Some(3_101_451),
    },
    Difference {
        name: "refused-heartbeat",
        reason: "a heartbeat that is refused changes nothing; in Kafka one that joins a classic group \
                 has ended the joins that waited, even if its regular expression cannot be read",
        is: |Asked { step, .. }, kafka, kohort| {
            matches!(step, Step::ConsumerHeartbeat(_))
                && kafka.contains("INVALID_REGULAR_EXPRESSION")
                && kohort.contains("INVALID_REGULAR_EXPRESSION")
                && kafka.contains("REBALANCE_IN_PROGRESS")
        },
        passes: false,
        seed: Some(3_167_009),
    },
    Difference {
        name: "repeated-sync",
        reason: "a member that repeats a SyncGroup while it waits has its first one answered, with \
                 REBALANCE_IN_PROGRESS; Kafka never answers it",
        is: |Asked { step, before }, kafka, kohort| {
            let Step::Sync(sync) = step else {
                return false;
            };
            let is_repeated = before
                .iter()
                .any(|step| matches!(step, Step::Sync(other) if other.who.slot == sync.who.slot));
            is_repeated
                && !kafka.contains("SyncGroupResponse")
                && kohort.contains("REBALANCE_IN_PROGRESS")
        },
        passes: false,
        seed: Some(3_152_590),
    },
    // Last, so that it hides none of the others.
    Difference {
        name: "regex-being-resolved",
        reason: "when a regular expression has been resolved is a matter of chance on both brokers, \
                 and with it the epochs and assignments until the group settles",
        is: |Asked { step, before }, kafka, kohort| {
            let has_regex = since_settled(before).any(|step| {
                matches!(step, Step::ConsumerHeartbeat(heartbeat) if heartbeat.regex.is_some())
            });
            let shows_epochs = matches!(
                step,
                Step::ConsumerHeartbeat(_) | Step::DescribeConsumerGroup { .. }
            );
            let is_answered = |text: &str| text.contains("error_code: NONE");
            has_regex && shows_epochs && is_answered(kafka) && is_answered(kohort)
        },
        passes: false,
        seed: None,
    },
];

/// The steps since the group last settled.
fn since_settled(before: &[Step]) -> impl Iterator<Item = &Step> {
    let latest = before.iter().rev();
    latest.take_while(|step| **step != Step::Settle)
}

/// Whether a heartbeat may have an earlier epoch than its member.
fn may_be_behind(heartbeat: &ConsumerHeartbeat, before: &[Step]) -> bool {
    // Slots that heartbeat under one member id take it to epochs that the others don't know.
    let shares_an_id = |step: &Step| matches!(step, Step::ConsumerHeartbeat(other) if matches!(other.who.id, Id::Of(_)));
    heartbeat.who.epoch != Epoch::Own(0) || before.iter().any(shares_an_id)
}

/// Whether a commit named a group that only Kafka still has, without members.
fn commits_to_no_group(kafka: &str, kohort: &str) -> bool {
    kafka.contains("UNKNOWN_MEMBER_ID")
        && ["ILLEGAL_GENERATION", "GROUP_ID_NOT_FOUND"]
            .iter()
            .any(|error| kohort.contains(error))
}

/// Whether it is a commit by no member whose metadata is too long for any group.
fn is_refused_for_its_metadata(step: &Step) -> bool {
    /// `offset.metadata.max.bytes`
    const METADATA_BYTES_MAX: usize = 4096;
    matches!(step, Step::Commit { offsets, .. }
    if offsets.iter().any(|offset| {
        offset.metadata.as_ref().is_some_and(|it| it.len() > METADATA_BYTES_MAX)
    }))
}

/// Whether a static member joins whose instance was subscribed to other topics before, or a member of
/// the consumer protocol.
fn comes_back_as_another(join: &Join, before: &[Step]) -> bool {
    let topics = |join: &Join| {
        let mut topics: Vec<_> = join
            .protocols
            .iter()
            .flat_map(|(_, topics)| topics)
            .collect();
        topics.sort_unstable();
        topics.dedup();
        topics.into_iter().copied().collect::<Vec<_>>()
    };
    join.who.instance.is_some()
        && before.iter().any(|step| match step {
            Step::Join(other) => {
                other.who.instance == join.who.instance && topics(other) != topics(join)
            }
            Step::ConsumerHeartbeat(other) => other.who.instance == join.who.instance,
            _ => false,
        })
}

/// Whether a member joins under an instance id that it did not have before.
fn rejoins_as_another(heartbeat: &ConsumerHeartbeat, before: &[Step]) -> bool {
    let own = &heartbeat.who;
    own.instance.is_some()
        && before.iter().any(|step| {
            matches!(step, Step::ConsumerHeartbeat(other)
                if other.who.slot == own.slot && other.who.instance != own.instance)
        })
}

/// The difference that these answers are, if it is one that is meant.
pub(super) fn meant(
    asked: &Asked<'_>,
    kafka: &[String],
    kohort: &[String],
) -> Option<&'static Difference> {
    let (kafka, kohort) = (kafka.join("\n"), kohort.join("\n"));
    ALL.iter().find(|one| (one.is)(asked, &kafka, &kohort))
}
