//! What a consumer group tells of itself.

use kohort_group::history::{Cause, Failure, Few, Needs, Waited, What};
use kohort_wire::messages::*;

use super::{client::Client, world::World};
use crate::{Reply, Request};

impl World {
    /// What has happened since somebody last asked, in words.
    fn story(&mut self) -> Vec<String> {
        let events = std::mem::take(&mut self.events);
        events.iter().map(|event| event.what.to_string()).collect()
    }

    /// Why a rebalance has begun since somebody last asked.
    fn cause(&mut self) -> String {
        let mut story = self.story().into_iter();
        let began = story.find(|line| line.starts_with("rebalance"));
        began.expect("a rebalance")
    }

    fn waited(&self) -> Vec<&Few<Waited>> {
        let waiting = self.events.iter().filter_map(|event| match &event.what {
            What::Waiting { members, .. } => Some(members),
            _ => None,
        });
        waiting.collect()
    }
}

#[test]
fn a_first_member_joins_is_assigned_everything_and_the_group_is_stable() {
    let mut world = World::new();
    world.topic("orders", 4);
    let mut a = Client::new("a", &["orders"]);
    a.beat(&mut world);
    assert_eq!(
        world.story(),
        [
            "rebalance, epoch 2: member a (client at 127.0.0.1) joined",
            "target of epoch 2 by the assignor uniform: 4 partitions move, new targets for 1 of \
             1 members",
            "stable at epoch 2 after 0 ms",
        ]
    );
}

#[test]
fn steady_heartbeats_and_commits_make_no_events() {
    let mut world = World::new();
    world.topic("orders", 4);
    let mut a = Client::new("a", &["orders"]);
    let mut b = Client::new("b", &["orders"]);
    a.beat(&mut world);
    world.settle(&mut [&mut a, &mut b]);
    world.events.clear();
    for _ in 0..20 {
        world.wait(1_000);
        a.beat(&mut world);
        b.beat(&mut world);
    }
    assert_eq!(world.events, []);
}

#[test]
fn who_has_to_revoke_is_told_of_with_whom_that_blocks_and_until_when() {
    let mut world = World::new();
    world.topic("orders", 2);
    let mut a = Client::new("a", &["orders"]);
    let mut b = Client::new("b", &["orders"]);
    a.rebalance_timeout_ms = 30_000;
    a.beat(&mut world);
    world.wait(2_000);
    a.keeps_all = true;
    b.beat(&mut world);
    world.wait(2_000);
    a.beat(&mut world);
    let asked_at = world.now;
    world.events.clear();
    for _ in 0..25 {
        world.wait(1_000);
        a.beat(&mut world);
        b.beat(&mut world);
    }
    let waited = world.waited();
    // Ever more rarely.
    assert!((2..=6).contains(&waited.len()), "{}", waited.len());
    let last = &waited.last().expect("said").first[0];
    assert_eq!((&*last.member.id, last.needs), ("a", Needs::Revoke));
    assert_eq!(last.partitions.count, 1);
    assert_eq!(last.deadline_at, Some(asked_at + 30_000));
    assert_eq!(&*last.blocks.first[0].id, "b");

    world.wait(6_000);
    let fenced = world.events.iter().find_map(|event| match &event.what {
        What::RebalanceBegan { causes, .. } => causes.first.first(),
        _ => None,
    });
    assert!(
        matches!(fenced, Some(Cause::MembersFenced { failure: Failure::Revoke, partitions, .. })
            if partitions.count == 1),
        "{fenced:?}"
    );
}

#[test]
fn who_was_slow_to_revoke_is_named_at_the_end() {
    let mut world = World::new();
    world.topic("orders", 2);
    let mut a = Client::new("a", &["orders"]);
    let mut b = Client::new("b", &["orders"]);
    a.beat(&mut world);
    world.wait(2_000);
    b.beat(&mut world);
    world.wait(1_000);
    a.beat(&mut world);
    world.wait(4_000);
    a.beat(&mut world);
    world.wait(100);
    b.beat(&mut world);
    let stable = world.story().pop().expect("an end");
    assert!(stable.starts_with("stable at epoch 3 after 5."), "{stable}");
    assert!(
        stable.contains("the last to revoke was a (client at 127.0.0.1), after "),
        "{stable}"
    );
}

#[test]
fn changes_of_topics_and_subscriptions_are_told_of_with_what_has_changed() {
    let mut world = World::new();
    world.topic("orders", 2);
    let mut a = Client::new("a", &["orders"]);
    a.beat(&mut world);
    world.settle(&mut [&mut a]);
    world.story();

    world.topic("orders", 4);
    world.wait(20_000);
    a.beat(&mut world);
    assert_eq!(
        world.cause(),
        "rebalance, epoch 3: topic orders grew from 2 to 4 partitions"
    );

    a.subscribe(&["orders", "payments"]);
    a.beat(&mut world);
    assert_eq!(
        world.cause(),
        "rebalance, epoch 4: member a (client at 127.0.0.1) subscribes to orders and payments"
    );

    world.topic("payments", 1);
    world.delete_topic("orders");
    world.wait(20_000);
    a.beat(&mut world);
    assert_eq!(
        world.cause(),
        "rebalance, epoch 5: topic payments was created with 1 partition and topic orders was \
         deleted"
    );

    a.assignor = Some("range".to_owned());
    a.say_all();
    a.beat(&mut world);
    assert_eq!(
        world.cause(),
        "rebalance, epoch 6: most members ask for the assignor range now, instead of uniform"
    );
}

#[test]
fn a_regular_expression_tells_what_it_matches() {
    let mut world = World::new();
    world.topic("audit-eu", 1);
    let mut a = Client::with_regex("a", "audit.*");
    a.beat(&mut world);
    assert_eq!(
        world.events[0].what.to_string(),
        "member a (client at 127.0.0.1) joined"
    );
    assert_eq!(
        world.cause(),
        "rebalance, epoch 2: the regular expression 'audit.*' matches audit-eu"
    );
}

#[test]
fn members_that_leave_pause_return_and_fall_silent_are_told_apart() {
    let mut world = World::new();
    world.topic("orders", 2);
    let mut a = Client::new("a", &["orders"]);
    let mut s = Client::new("s", &["orders"]).instance("i");
    world.settle(&mut [&mut a, &mut s]);
    world.story();

    let leave = |client: &Client, epoch: i32| ConsumerGroupHeartbeatRequest {
        group_id: "group".into(),
        member_id: (&*client.id).into(),
        member_epoch: epoch,
        instance_id: client.instance_id.as_deref().map(Into::into),
        ..ConsumerGroupHeartbeatRequest::default()
    };
    world.heartbeat(1, leave(&s, -2));
    assert_eq!(
        world.story(),
        [
            "static member s (instance i, client at 127.0.0.1) left and may come back: its \
             partitions wait for it"
        ]
    );
    let mut t = Client::new("t", &["orders"]).instance("i");
    t.beat(&mut world);
    assert_eq!(
        world.story()[0],
        "static member t (instance i, client at 127.0.0.1) came back in the place of s"
    );
    world.heartbeat(1, leave(&a, -1));
    assert!(world.story()[0].ends_with(": member a (client at 127.0.0.1) left"));
    world.wait(46_000);
    let story = world.story();
    assert!(
        story[story.len() - 2].ends_with("sent no heartbeat for 45 s, its session timeout"),
        "{story:?}"
    );
    assert!(story[story.len() - 1].starts_with("the group is empty"));
}

#[test]
fn an_administrator_who_removes_members_or_sets_offsets_is_named() {
    let mut world = World::new();
    world.topic("orders", 2);
    let mut s = Client::new("s", &["orders"]).instance("i");
    s.beat(&mut world);
    world.story();
    let request = LeaveGroupRequest {
        group_id: "group".into(),
        members: vec![MemberIdentity {
            group_instance_id: Some("i".into()),
            reason: Some("it is stuck".into()),
            ..MemberIdentity::default()
        }],
        ..LeaveGroupRequest::default()
    };
    world.request(Request::LeaveGroup {
        version: 5,
        request,
    });
    assert_eq!(
        world.story()[0],
        "rebalance, epoch 3: an administrator (client at 127.0.0.1) removed member s (instance i, \
         client at 127.0.0.1), saying \"it is stuck\""
    );

    let commit = |offset| {
        let request = OffsetCommitRequest {
            group_id: "group".into(),
            topics: vec![OffsetCommitRequestTopic {
                name: "orders".into(),
                partitions: vec![OffsetCommitRequestPartition {
                    partition_index: 1,
                    committed_offset: offset,
                    ..OffsetCommitRequestPartition::default()
                }],
                ..OffsetCommitRequestTopic::default()
            }],
            ..OffsetCommitRequest::default()
        };
        Request::OffsetCommit {
            version: 9,
            request,
        }
    };
    world.request(commit(7));
    world.request(commit(3));
    assert_eq!(
        world.story(),
        [
            "client at 127.0.0.1 set offsets: orders-1 to 7",
            "client at 127.0.0.1 set offsets: orders-1 from 7 to 3",
        ]
    );
    let deleted = world.request(Request::DeleteGroups {
        groups: vec!["group".into()],
    });
    assert!(matches!(deleted, Some(Reply::DeleteGroups(_))));
    assert_eq!(world.story(), ["deleted on request"]);
}

#[test]
fn a_group_that_is_loaded_says_so_and_goes_on_with_its_rebalance() {
    let mut world = World::new();
    world.topic("orders", 2);
    let mut a = Client::new("a", &["orders"]);
    let mut b = Client::new("b", &["orders"]);
    a.beat(&mut world);
    world.wait(2_000);
    b.beat(&mut world);
    world.restart();
    let story = world.story();
    assert_eq!(
        story.last().expect("said"),
        "the coordinator loaded the consumer group with 2 members, epoch 3"
    );
    world.settle(&mut [&mut a, &mut b]);
    assert!(
        world
            .story()
            .iter()
            .any(|line| line.starts_with("stable at epoch 3"))
    );
}

#[test]
fn a_huge_group_makes_few_and_small_events() {
    let mut world = World::new();
    world.topic("orders", 300);
    let mut members: Vec<Client> = (0..100)
        .map(|index| Client::new(&format!("m{index:03}"), &["orders"]))
        .collect();
    for _ in 0..12 {
        members.iter_mut().for_each(|member| {
            member.beat(&mut world);
        });
        world.wait(1_000);
    }
    assert_eq!(world.state("group"), "Stable");
    world.events.clear();
    let mut new = Client::new("new", &["orders"]);
    for _ in 0..12 {
        new.beat(&mut world);
        members.iter_mut().for_each(|member| {
            member.beat(&mut world);
        });
        world.wait(1_000);
    }
    assert!(world.events.len() < 40, "{:#?}", world.story());
    for event in &world.events {
        assert!(event.to_json().to_string().len() < 8_000);
    }
}
