//! `TopicPartitions` against the plain set it stands for.

use std::collections::BTreeSet;

use kohort_group::{Run, TopicPartitions};
use kohort_wire::Uuid;
use proptest::prelude::*;

type Plain = BTreeSet<(Uuid, i32)>;

fn plain() -> impl Strategy<Value = Plain> {
    prop::collection::btree_set((0..4u128, 0..12i32), 0..40)
        .prop_map(|set| set.into_iter().map(|(id, p)| (Uuid(id), p)).collect())
}

fn set(plain: &Plain) -> TopicPartitions {
    plain.iter().copied().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn holds_what_it_was_made_of(plain in plain()) {
        let set = set(&plain);
        prop_assert_eq!(set.iter().collect::<Vec<_>>(), plain.iter().copied().collect::<Vec<_>>());
        prop_assert_eq!(set.len(), plain.len());
        prop_assert_eq!(set.is_empty(), plain.is_empty());
        for id in (0..5).map(Uuid) {
            prop_assert_eq!(set.contains_topic(id), plain.iter().any(|&(other, _)| other == id));
            let partitions: Vec<i32> = plain.iter().filter(|p| p.0 == id).map(|p| p.1).collect();
            prop_assert_eq!(set.partitions(id).collect::<Vec<_>>(), partitions);
            for partition in -1..13 {
                prop_assert_eq!(set.contains(id, partition), plain.contains(&(id, partition)));
            }
        }
        let topics: Vec<Uuid> = plain.iter().map(|p| p.0).collect::<BTreeSet<_>>().into_iter().collect();
        prop_assert_eq!(set.topics().map(|(id, _)| id).collect::<Vec<_>>(), topics);
    }

    #[test]
    fn has_one_form_however_its_runs_were_given(runs in prop::collection::vec((0..3u128, 0..12i32, 0..5i32), 0..20)) {
        let plain: Plain = runs
            .iter()
            .flat_map(|&(id, start, len)| (start..start + len).map(move |p| (Uuid(id), p)))
            .collect();
        let from_runs = TopicPartitions::from_runs(
            runs.iter().map(|&(id, start, len)| Run::new(Uuid(id), start..start + len)),
        );
        prop_assert_eq!(&from_runs, &set(&plain));
        prop_assert!(from_runs.runs().iter().all(|run| !run.is_empty()));
    }

    #[test]
    fn operations_are_those_of_sets(a in plain(), b in plain()) {
        let (x, y) = (set(&a), set(&b));
        prop_assert_eq!(x.intersection(&y), set(&(&a & &b)));
        prop_assert_eq!(x.difference(&y), set(&(&a - &b)));
        prop_assert_eq!(x.union(&y), set(&(&a | &b)));
        prop_assert_eq!(x.is_disjoint(&y), a.is_disjoint(&b));
        prop_assert_eq!(x.is_subset(&y), a.is_subset(&b));
        prop_assert_eq!(x == y, a == b);
        let even = |id: Uuid| id.0.is_multiple_of(2);
        prop_assert_eq!(x.retain_topics(even), a.iter().copied().filter(|p| even(p.0)).collect());
    }

    #[test]
    fn a_result_equal_to_an_operand_shares_it(a in plain(), b in plain()) {
        let (x, y) = (set(&a), set(&b));
        let both = x.union(&y);
        prop_assert!(both.intersection(&x).is_same(&x));
        prop_assert!(x.intersection(&both).is_same(&x));
        prop_assert!(both.union(&x).is_same(&both));
        prop_assert!(x.union(&both).is_same(&both) || x == both);
        prop_assert!(x.difference(&both).is_same(&TopicPartitions::new()));
        prop_assert!(x.difference(&TopicPartitions::new()).is_same(&x));
        prop_assert!(x.retain_topics(|_| true).is_same(&x));
    }
}

#[test]
fn the_greatest_partition_number_is_no_trouble() {
    let set: TopicPartitions = [(Uuid(1), i32::MAX), (Uuid(1), 3)].into_iter().collect();
    assert_eq!(set.iter().collect::<Vec<_>>(), [(Uuid(1), 3)]);
    assert!(!set.contains(Uuid(1), i32::MAX));
}
