//! What the client-side assignors promise.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use kohort_group::assignor::classic::{
    ConsumerPartitionAssignor, CooperativeSticky, GroupMember, PartitionCounts, Range,
    RebalanceProtocol, RoundRobin, Sticky, rebalance_protocol,
};
use kohort_wire::{
    ByteString,
    messages::{ConsumerProtocolAssignment, ConsumerProtocolSubscription, TopicPartitions},
};
use proptest::prelude::*;

type Partition = (String, i32);
type Partitions = BTreeSet<Partition>;

/// Partitions written as `a0 a1 b0`.
fn partitions(text: &str) -> Partitions {
    text.split_whitespace()
        .map(|word| (word[..1].to_owned(), word[1..].parse().expect("a number")))
        .collect()
}

fn named(partitions: &Partitions) -> Vec<TopicPartitions> {
    let mut topics: BTreeMap<&str, Vec<i32>> = BTreeMap::new();
    for (topic, partition) in partitions {
        topics.entry(topic).or_default().push(*partition);
    }
    topics
        .into_iter()
        .map(|(topic, partitions)| TopicPartitions {
            topic: topic.into(),
            partitions,
        })
        .collect()
}

fn assigned(assignment: &ConsumerProtocolAssignment) -> Partitions {
    let all: Vec<Partition> = assignment
        .assigned_partitions
        .iter()
        .flat_map(|named| {
            named
                .partitions
                .iter()
                .map(|&p| (named.topic.to_string(), p))
        })
        .collect();
    let set: Partitions = all.iter().cloned().collect();
    assert_eq!(set.len(), all.len(), "a partition twice in one assignment");
    set
}

/// Topics written as `a3 b2`: three partitions of `a`, two of `b`.
fn counts(text: &str) -> PartitionCounts {
    partitions(text)
        .into_iter()
        .map(|(topic, count)| (topic.into(), count))
        .collect()
}

fn member(id: &str, topics: &str) -> GroupMember {
    GroupMember {
        member_id: id.into(),
        instance_id: None,
        subscription: ConsumerProtocolSubscription {
            topics: topics.split_whitespace().map(ByteString::from).collect(),
            ..ConsumerProtocolSubscription::default()
        },
    }
}

fn is_static(mut member: GroupMember, instance_id: &str) -> GroupMember {
    member.instance_id = Some(instance_id.into());
    member
}

/// A cooperative member of a generation.
fn owning(mut member: GroupMember, owned: &Partitions, generation_id: i32) -> GroupMember {
    member.subscription.owned_partitions = named(owned);
    member.subscription.generation_id = generation_id;
    member
}

/// A sticky member that has had its last assignment in a generation.
fn having_had(mut member: GroupMember, had: &Partitions, generation_id: i32) -> GroupMember {
    let mut assignor = Sticky::default();
    let assignment = ConsumerProtocolAssignment {
        assigned_partitions: named(had),
        user_data: None,
    };
    assignor.on_assignment(&assignment, generation_id);
    member.subscription.user_data = assignor.subscription_user_data(&[]).expect("encodes");
    member
}

fn assign(
    assignor: &dyn ConsumerPartitionAssignor,
    counts: &PartitionCounts,
    members: &[GroupMember],
) -> Vec<Partitions> {
    let assignments = assignor.assign(counts, members).expect("an assignment");
    assert_eq!(assignments.len(), members.len());
    assignments.iter().map(assigned).collect()
}

fn all(
    assignor: &dyn ConsumerPartitionAssignor,
    topics: &str,
    members: &[GroupMember],
) -> Vec<Partitions> {
    assign(assignor, &counts(topics), members)
}

#[test]
fn range_gives_partitions_of_one_number_to_one_member() {
    let members = [member("n", "a b"), member("m", "b a")];
    assert_eq!(
        all(&Range, "a3 b3", &members),
        [partitions("a2 b2"), partitions("a0 a1 b0 b1")],
    );
}

#[test]
fn range_puts_static_members_first_by_instance_id() {
    let members = [
        member("a", "t"),
        is_static(member("b", "t"), "y"),
        is_static(member("c", "t"), "x"),
    ];
    assert_eq!(
        all(&Range, "t4", &members),
        [partitions("t3"), partitions("t2"), partitions("t0 t1")],
    );
}

#[test]
fn round_robin_goes_on_with_the_next_member_at_the_next_topic() {
    let members = [member("m", "a b"), member("n", "a b")];
    assert_eq!(
        all(&RoundRobin, "a3 b3", &members),
        [partitions("a0 a2 b1"), partitions("a1 b0 b2")],
    );
}

#[test]
fn round_robin_passes_over_members_that_do_not_subscribe() {
    let members = [member("l", "a"), member("m", "a b"), member("n", "a b c")];
    assert_eq!(
        all(&RoundRobin, "a1 b2 c3", &members),
        [
            partitions("a0"),
            partitions("b0"),
            partitions("b1 c0 c1 c2")
        ],
    );
}

#[test]
fn sticky_deals_a_new_groups_partitions_out_in_turn() {
    let members = [
        member("l", "a b c d"),
        member("m", "a b c d"),
        member("n", "a b c d"),
    ];
    assert_eq!(
        all(&Sticky::default(), "a2 b2 c2 d2", &members),
        [
            partitions("a0 b1 d0"),
            partitions("a1 c0 d1"),
            partitions("b0 c1")
        ],
    );
}

#[test]
fn sticky_shares_out_what_a_lost_member_had_and_moves_nothing_else() {
    let members = [
        having_had(member("l", "a b c d"), &partitions("a0 b1 d0"), 3),
        having_had(member("n", "a b c d"), &partitions("b0 c1"), 3),
    ];
    assert_eq!(
        all(&Sticky::default(), "a2 b2 c2 d2", &members),
        [partitions("a0 b1 d0 a1"), partitions("b0 c1 c0 d1")],
    );
}

#[test]
fn sticky_user_data_is_that_of_the_java_client() {
    let had = partitions("a0 a2 b1");
    let bytes: &[u8] = &[
        0, 0, 0, 2, // two topics
        0, 1, b'a', 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 2, // a: 0, 2
        0, 1, b'b', 0, 0, 0, 1, 0, 0, 0, 1, // b: 1
        0, 0, 0, 7, // generation 7
    ];
    let user_data = having_had(member("m", ""), &had, 7).subscription.user_data;
    assert_eq!(user_data.as_deref(), Some(bytes));
    assert_eq!(
        Sticky::default().subscription_user_data(&[]).expect("none"),
        None
    );
}

#[test]
fn sticky_reads_user_data_without_a_generation_and_ignores_what_it_cannot_read() {
    let with = |bytes: &'static [u8]| {
        let mut member = member("m", "a");
        member.subscription.user_data = Some(Bytes::from_static(bytes));
        [member, self::member("n", "a")]
    };
    let version_0: &[u8] = &[0, 0, 0, 1, 0, 1, b'a', 0, 0, 0, 1, 0, 0, 0, 1];
    assert_eq!(
        all(&Sticky::default(), "a2", &with(version_0)),
        [partitions("a1"), partitions("a0")],
    );
    let broken: [&[u8]; 4] = [
        &[],
        &[0, 0],
        &[0x7f, 0xff, 0xff, 0xff, 0, 1, b'a'],
        &[0, 0, 0, 1, 0, 1, b'a', 0, 0, 0, 9, 0, 0, 0, 1],
    ];
    for broken in broken {
        assert_eq!(
            all(&Sticky::default(), "a2", &with(broken)),
            [partitions("a0"), partitions("a1")],
        );
    }
}

#[test]
fn of_two_claims_the_one_of_the_later_generation_holds() {
    let sticky = [
        having_had(member("l", "a b"), &partitions("a0 a1"), 4),
        having_had(member("m", "a b"), &partitions("a1 b0"), 5),
        having_had(member("n", "a b"), &partitions("b1"), 4),
    ];
    let expected = [
        partitions("a0 a2"),
        partitions("a1 b0"),
        partitions("b1 b2"),
    ];
    assert_eq!(all(&Sticky::default(), "a3 b3", &sticky), expected);

    let cooperative = [
        owning(member("l", "a b"), &partitions("a0 a1"), 4),
        owning(member("m", "a b"), &partitions("a1 b0"), 5),
        owning(member("n", "a b"), &partitions("b1"), 4),
    ];
    assert_eq!(
        all(&CooperativeSticky::default(), "a3 b3", &cooperative),
        expected
    );
}

#[test]
fn a_partition_claimed_twice_in_one_generation_is_first_given_to_nobody() {
    let members = [
        owning(member("m", "a"), &partitions("a0 a1"), 5),
        owning(member("n", "a"), &partitions("a1"), 5),
    ];
    assert_eq!(
        all(&CooperativeSticky::default(), "a2", &members),
        [partitions("a0"), partitions("")],
    );
}

#[test]
fn cooperative_sticky_withholds_what_changes_hands_until_its_owner_has_let_go() {
    let first = [
        owning(member("m", "a"), &partitions("a0 a1 a2 a3"), 5),
        member("n", "a"),
    ];
    assert_eq!(
        all(&CooperativeSticky::default(), "a4", &first),
        [partitions("a0 a1"), partitions("")],
    );
    let second = [
        owning(member("m", "a"), &partitions("a0 a1"), 6),
        owning(member("n", "a"), &partitions(""), 6),
    ];
    assert_eq!(
        all(&CooperativeSticky::default(), "a4", &second),
        [partitions("a0 a1"), partitions("a2 a3")],
    );
}

#[test]
fn cooperative_sticky_waits_for_an_owner_that_no_longer_subscribes() {
    let members = [
        owning(member("m", "b"), &partitions("a0 b0"), 5),
        owning(member("n", "a"), &partitions("a1"), 5),
    ];
    assert_eq!(
        all(&CooperativeSticky::default(), "a2 b1", &members),
        [partitions("b0"), partitions("a1")],
    );
}

#[test]
fn cooperative_sticky_takes_an_older_members_generation_from_its_user_data() {
    let older = |id, owned: &str, generation_id| {
        let mut assignor = CooperativeSticky::default();
        assignor.on_assignment(&ConsumerProtocolAssignment::default(), generation_id);
        let mut member = owning(member(id, "a"), &partitions(owned), -1);
        member.subscription.user_data = assignor.subscription_user_data(&[]).expect("encodes");
        member
    };
    assert_eq!(
        older("m", "", 258).subscription.user_data.as_deref(),
        Some(&[0, 0, 1, 2][..])
    );
    let members = [older("m", "a0", 4), older("n", "a0", 5)];
    assert_eq!(
        all(&CooperativeSticky::default(), "a2", &members),
        [partitions("a1"), partitions("a0")],
    );
}

#[test]
fn topics_that_are_not_known_or_claimed_partitions_that_do_not_exist_are_no_trouble() {
    let assignors: [&dyn ConsumerPartitionAssignor; 4] = [
        &Range,
        &RoundRobin,
        &Sticky::default(),
        &CooperativeSticky::default(),
    ];
    for assignor in assignors {
        let claim: Partitions = [
            ("a".to_owned(), -1),
            ("a".to_owned(), 7),
            ("z".to_owned(), 0),
        ]
        .into_iter()
        .collect();
        let members = [
            owning(having_had(member("m", "a z a"), &claim, 1), &claim, 1),
            member("n", ""),
        ];
        assert_eq!(
            all(assignor, "a1 y1", &members),
            [partitions("a0"), partitions("")]
        );
        assert_eq!(
            all(assignor, "", &members),
            [partitions(""), partitions("")]
        );
        assert!(all(assignor, "a1", &[]).is_empty());
    }
}

#[test]
fn a_member_is_cooperative_only_if_all_its_assignors_are() {
    let (range, sticky, cooperative) = (Range, Sticky::default(), CooperativeSticky::default());
    let of = |assignors: &[&dyn ConsumerPartitionAssignor]| {
        rebalance_protocol(assignors.iter().copied())
    };
    assert_eq!(of(&[&cooperative]), Some(RebalanceProtocol::Cooperative));
    assert_eq!(of(&[&range, &cooperative]), Some(RebalanceProtocol::Eager));
    assert_eq!(of(&[&range, &sticky]), Some(RebalanceProtocol::Eager));
    assert_eq!(of(&[]), None);
}

/// Members with any of the topics a to e, and how many partitions each topic has.
fn group(same: bool) -> impl Strategy<Value = (PartitionCounts, Vec<GroupMember>)> {
    let counts = prop::collection::btree_map("[a-e]", 0..7i32, 0..5);
    let topics = || prop::collection::btree_set("[a-e]", 0..5);
    let members = prop::collection::vec((topics(), any::<bool>()), 1..7);
    (counts, members, topics()).prop_map(move |(counts, members, shared)| {
        let counts = counts
            .into_iter()
            .map(|(topic, count)| (topic.into(), count))
            .collect();
        let members = members
            .into_iter()
            .enumerate()
            .map(|(n, (topics, with_instance))| {
                let topics = if same { &shared } else { &topics };
                let topics: Vec<&str> = topics.iter().map(String::as_str).collect();
                let member = member(&format!("member-{n}"), &topics.join(" "));
                if with_instance {
                    is_static(member, &format!("{}", 9 - n))
                } else {
                    member
                }
            });
        (counts, members.collect())
    })
}

fn subscribes(member: &GroupMember, topic: &str) -> bool {
    member
        .subscription
        .topics
        .iter()
        .any(|other| other == topic)
}

fn subscribed_partitions(counts: &PartitionCounts, members: &[GroupMember]) -> Vec<Partition> {
    counts
        .iter()
        .filter(|(topic, _)| members.iter().any(|member| subscribes(member, topic)))
        .flat_map(|(topic, &count)| (0..count).map(move |p| (topic.to_string(), p)))
        .collect()
}

fn check_complete(counts: &PartitionCounts, members: &[GroupMember], given: &[Partitions]) {
    let mut all: Vec<Partition> = given.iter().flatten().cloned().collect();
    all.sort();
    assert_eq!(all, subscribed_partitions(counts, members));
    for (member, given) in members.iter().zip(given) {
        assert!(given.iter().all(|(topic, _)| subscribes(member, topic)));
    }
}

fn spread(given: &[Partitions]) -> usize {
    let sizes = given.iter().map(BTreeSet::len);
    sizes.clone().max().unwrap_or(0) - sizes.min().unwrap_or(0)
}

fn kept(before: &[Partitions], after: &[Partitions]) -> usize {
    before
        .iter()
        .zip(after)
        .map(|(before, after)| before.intersection(after).count())
        .sum()
}

fn order(members: &[GroupMember]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..members.len()).collect();
    order.sort_by_key(|&m| {
        (
            members[m].instance_id.is_none(),
            members[m].instance_id.clone(),
            members[m].member_id.clone(),
        )
    });
    order
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn round_robin_is_a_walk_around_the_members((counts, members) in group(false)) {
        let order = order(&members);
        let mut expected = vec![Partitions::new(); members.len()];
        let mut turns = order.iter().copied().cycle();
        for partition in subscribed_partitions(&counts, &members) {
            let member = turns.find(|&m| subscribes(&members[m], &partition.0)).expect("endless");
            expected[member].insert(partition);
        }
        prop_assert_eq!(assign(&RoundRobin, &counts, &members), expected);
    }

    #[test]
    fn range_is_quotas_in_order((counts, members) in group(false)) {
        let mut expected = vec![Partitions::new(); members.len()];
        for (topic, &count) in &counts {
            let subscribers: Vec<usize> = order(&members).into_iter().filter(|&m| subscribes(&members[m], topic)).collect();
            let mut next = 0;
            for (place, &member) in subscribers.iter().enumerate() {
                let left = subscribers.len() - place;
                let quota = (count - next + left as i32 - 1) / left as i32;
                expected[member].extend((next..next + quota).map(|p| (topic.to_string(), p)));
                next += quota;
            }
        }
        prop_assert_eq!(assign(&Range, &counts, &members), expected);
    }

    #[test]
    fn sticky_with_equal_subscriptions_is_even_and_keeps_all_that_evenness_allows(
        (counts, members) in group(true),
        leave in 0..3usize,
        join in 0..3usize,
        more in 0..3i32,
    ) {
        let first = assign(&Sticky::default(), &counts, &members);
        check_complete(&counts, &members, &first);
        prop_assert!(spread(&first) <= 1);

        let counts: PartitionCounts = counts.into_iter().map(|(topic, n)| (topic, n + more)).collect();
        let mut next: Vec<GroupMember> = members
            .iter()
            .zip(&first)
            .skip(leave.min(members.len() - 1))
            .map(|(member, had)| having_had(member.clone(), had, 1))
            .collect();
        let mut before: Vec<Partitions> = first[leave.min(members.len() - 1)..].to_vec();
        for n in 0..join {
            let mut new = members[0].clone();
            new.member_id = format!("new-{n}").into();
            next.push(new);
            before.push(Partitions::new());
        }
        let after = assign(&Sticky::default(), &counts, &next);
        check_complete(&counts, &next, &after);
        prop_assert!(spread(&after) <= 1);

        let total = subscribed_partitions(&counts, &next).len();
        let (quota, extra) = (total / next.len(), total % next.len());
        let over = before.iter().filter(|had| had.len() > quota).count().min(extra);
        let most: usize = before.iter().map(|had| had.len().min(quota)).sum::<usize>() + over;
        prop_assert_eq!(kept(&before, &after), most);
    }

    #[test]
    fn sticky_moves_nothing_that_is_balanced((counts, members) in group(false)) {
        let first = assign(&Sticky::default(), &counts, &members);
        check_complete(&counts, &members, &first);
        let again: Vec<GroupMember> = members
            .iter()
            .zip(&first)
            .map(|(member, had)| having_had(member.clone(), had, 1))
            .collect();
        prop_assert_eq!(assign(&Sticky::default(), &counts, &again), first);
    }

    #[test]
    fn cooperative_rebalances_never_share_a_partition_and_end_in_the_sticky_assignment(
        (counts, members) in group(false),
        (_, later) in group(false),
    ) {
        let assignor = CooperativeSticky::default();
        let mut owned = assign(&assignor, &counts, &members);
        check_complete(&counts, &members, &owned);
        // Everybody comes back with other subscriptions; some are new, some are gone.
        owned.resize(later.len(), Partitions::new());
        let mut rebalances = 0;
        loop {
            let joining: Vec<GroupMember> = later
                .iter()
                .zip(&owned)
                .map(|(member, owned)| owning(member.clone(), owned, 2 + rebalances))
                .collect();
            let given = assign(&assignor, &counts, &joining);
            for (m, given) in given.iter().enumerate() {
                for (other, owned) in owned.iter().enumerate() {
                    prop_assert!(other == m || given.is_disjoint(owned), "given while owned");
                }
            }
            let revoked = owned.iter().zip(&given).any(|(owned, given)| !owned.is_subset(given));
            owned = given;
            rebalances += 1;
            if !revoked {
                break;
            }
        }
        check_complete(&counts, &later, &owned);
        prop_assert!(rebalances <= 2, "{rebalances} rebalances");
    }
}
