//! Members in step with a coordinator, in virtual time.

mod member_world;

use kohort_member::{
    Action, Answer, ClassicState, ConsumerMember, ConsumerMemberConfig, Member, MemberError,
    MemberRequest, MemberState, Partitions, Subscription,
};
use kohort_wire::{ByteString, ErrorCode, Uuid, messages::*};
use member_world::{Kind, World};

const KINDS: [Kind; 3] = [Kind::Consumer, Kind::Range, Kind::Cooperative];

fn heartbeats(world: &World, node: usize) -> Vec<&ConsumerGroupHeartbeatRequest> {
    let sent = world.nodes[node].sent.iter();
    let heartbeats = sent.filter_map(|request| match request {
        MemberRequest::ConsumerHeartbeat(request) => Some(request),
        _ => None,
    });
    heartbeats.collect()
}

fn told(world: &World, node: usize) -> Vec<&'static str> {
    world.nodes[node]
        .story
        .iter()
        .map(|(what, _)| *what)
        .collect()
}

fn partitions(topic: &str, count: i32) -> Partitions {
    (0..count).map(|p| (ByteString::from(topic), p)).collect()
}

#[test]
fn members_share_everything_out_as_they_come_and_go() {
    for kind in KINDS {
        let mut world = World::new(1);
        let first = world.join(kind);
        world.until(World::is_shared_out);
        assert_eq!(world.nodes[first].has.len(), 7);
        for _ in 0..3 {
            world.join(kind);
            world.run(25_000);
            assert!(world.is_shared_out(), "{kind:?}");
        }
        world.leave(first);
        world.until(|world| world.nodes[first].left);
        assert!(world.nodes[first].has.is_empty());
        world.run(25_000);
        assert!(world.is_shared_out());
        // Nobody lost anything: all was given back in good order.
        assert!(
            (0..4).all(|node| !told(&world, node).contains(&"lost")),
            "{kind:?}"
        );
    }
}

#[test]
fn members_of_both_protocols_share_one_group() {
    let mut world = World::new(1);
    world.join(Kind::Cooperative);
    world.run(10_000);
    world.join(Kind::Consumer);
    world.join(Kind::Range);
    world.run(60_000);
    assert!(world.is_shared_out());
    world.leave(1);
    world.run(60_000);
    assert!(world.is_shared_out() && world.nodes[1].left);
}

/// KAFKA-16190
#[test]
fn the_heartbeat_after_a_rejoin_is_a_full_one() {
    let mut world = World::new(1);
    let node = world.join(Kind::Consumer);
    world.until(World::is_shared_out);
    world.run(20_000);
    // It dies for longer than its session, and is not known any more when it wakes.
    world.nodes[node].dead = true;
    world.run(100_000);
    world.nodes[node].dead = false;
    let before = heartbeats(&world, node).len();
    world.run(10_000);
    assert!(told(&world, node).contains(&"lost"));
    let after = &heartbeats(&world, node)[before..];
    let join = after
        .iter()
        .find(|request| request.member_epoch == 0)
        .unwrap();
    assert_eq!(join.rebalance_timeout_ms, 30_000);
    assert_eq!(join.subscribed_topic_names.as_ref().unwrap().len(), 2);
    assert_eq!(join.topic_partitions.as_ref().unwrap().len(), 0);
    // So is the one after any answer that did not come.
    let steady = heartbeats(&world, node).len();
    world.run(20_000);
    let last = *heartbeats(&world, node)[steady..].last().unwrap();
    assert!(last.subscribed_topic_names.is_none() && last.topic_partitions.is_none());
    world.lost_percent = 100;
    world.run(6_000);
    world.lost_percent = 0;
    world.run(200);
    let full = *heartbeats(&world, node).last().unwrap();
    assert!(full.subscribed_topic_names.is_some() && full.topic_partitions.is_some());
}

/// KAFKA-16198
#[test]
fn names_that_come_late_lose_no_partition() {
    let mut world = World::new(1);
    world.hide_names = true;
    let node = world.join(Kind::Consumer);
    world.run(30_000);
    assert!(world.nodes[node].has.is_empty());
    world.hide_names = false;
    world.run(1_000);
    assert!(world.is_shared_out());
}

/// KAFKA-16375
#[test]
fn a_rejoin_in_the_middle_of_a_reconciliation_ends_in_the_newest_assignment() {
    let mut world = World::new(1);
    let node = world.join(Kind::Consumer);
    world.until(World::is_shared_out);
    world.untold = true;
    // Its application takes so long to let go that the coordinator fences it.
    world.nodes[node].step_ms = 40_000;
    let other = world.join(Kind::Consumer);
    world.run(120_000);
    assert!(told(&world, node).contains(&"lost"));
    world.nodes[node].step_ms = 3;
    world.run(120_000);
    assert!(world.is_shared_out());
    assert!(!world.nodes[other].has.is_empty() && !world.nodes[node].has.is_empty());
}

/// KAFKA-17116
#[test]
fn leaving_works_whatever_the_member_is_doing() {
    for kind in KINDS {
        for after_ms in (0..60).chain([1_000, 5_000]) {
            let mut world = World::new(after_ms as u64);
            let staying = world.join(kind);
            world.run(50);
            let node = world.join(kind);
            world.run(after_ms);
            world.leave(node);
            world.run(20_000);
            assert!(world.nodes[node].left, "{kind:?} after {after_ms} ms");
            assert!(world.nodes[node].has.is_empty());
            assert_eq!(world.members(), 1, "{kind:?} after {after_ms} ms");
            assert_eq!(world.nodes[staying].has.len(), 7);
        }
    }
}

/// It may have been put out already, and learn so while it leaves.
#[test]
fn a_classic_member_that_leaves_does_not_join_again_for_what_its_last_heartbeat_is_answered() {
    for code in [ErrorCode::UNKNOWN_MEMBER_ID, ErrorCode::ILLEGAL_GENERATION] {
        let mut world = World::new(1);
        let node = world.join(Kind::Range);
        world.until(World::is_shared_out);
        world.run(1_000);
        let now = world.now + 10_000;
        let member = &mut world.nodes[node].member;
        member.wake(now);
        let Some(Action::Send { id: heartbeat, .. }) = member.next_action() else {
            panic!("no heartbeat");
        };
        member.leave(now);
        let Some(Action::Revoke { id: step, .. }) = member.next_action() else {
            panic!("nothing to let go of");
        };
        member.done(step, now);
        let Some(Action::Send { id: leave, request }) = member.next_action() else {
            panic!("no goodbye");
        };
        assert!(matches!(request, MemberRequest::Leave(_)));
        let answer = HeartbeatResponse {
            error_code: code,
            ..HeartbeatResponse::default()
        };
        member.answered(heartbeat, Answer::Heartbeat(answer), now);
        assert_eq!(member.next_action(), None);
        member.answered(leave, Answer::Leave(LeaveGroupResponse::default()), now);
        assert_eq!(member.next_action(), Some(Action::Left));
    }
}

/// KAFKA-19356
#[test]
fn what_is_not_subscribed_to_any_more_is_let_go_of() {
    for kind in KINDS {
        let mut world = World::new(1);
        let node = world.join(kind);
        world.until(World::is_shared_out);
        world.subscribe(node, &["b"]);
        world.run(20_000);
        assert_eq!(world.nodes[node].has, partitions("b", 3), "{kind:?}");
        world.subscribe(node, &["a", "b"]);
        world.run(20_000);
        assert!(world.is_shared_out());
    }
}

/// KAFKA-20145
#[test]
fn an_assignment_is_acknowledged_once() {
    let mut world = World::new(1);
    let node = world.join(Kind::Consumer);
    world.run(60_000);
    let told = heartbeats(&world, node);
    let told = told.iter().filter(|request| {
        let partitions = request.topic_partitions.as_ref();
        partitions.is_some_and(|partitions| !partitions.is_empty())
    });
    assert_eq!(told.count(), 1);
}

/// KAFKA-20253, 20426
#[test]
fn a_member_that_has_nothing_to_do_does_nothing() {
    for kind in KINDS {
        let mut world = World::new(1);
        let node = world.join(kind);
        world.run(10_000);
        let (wakes, sent) = (world.wakes(node), world.nodes[node].sent.len());
        world.run(3_600_000);
        let (wakes, sent) = (
            world.wakes(node) - wakes,
            world.nodes[node].sent.len() - sent,
        );
        assert!((700..=3700).contains(&sent), "{sent} requests an hour");
        assert!(wakes <= sent + 5, "{wakes} wakes for {sent} requests");
    }
}

/// rust-rdkafka #638, #665, #848
#[test]
fn after_the_coordinator_was_away_for_longer_than_the_session_it_goes_on_by_itself() {
    for kind in KINDS {
        let mut world = World::new(1);
        let node = world.join(kind);
        world.join(kind);
        world.run(10_000);
        world.untold = true;
        world.lost_percent = 100;
        world.run(200_000);
        world.lost_percent = 0;
        world.run(60_000);
        assert!(world.is_shared_out(), "{kind:?}");
        assert!(!world.nodes[node].has.is_empty());
    }
}

/// librdkafka #2615
#[test]
fn a_disconnect_in_the_middle_of_a_join_recovers() {
    for kind in [Kind::Range, Kind::Cooperative] {
        for after_ms in 1..12 {
            let mut world = World::new(1);
            world.join(kind);
            world.run(5_000);
            world.join(kind);
            world.run(after_ms);
            world.lost_percent = 100;
            world.run(30);
            world.lost_percent = 0;
            world.run(40_000);
            assert!(world.is_shared_out(), "{kind:?} after {after_ms} ms");
        }
    }
}

/// librdkafka PR 5604
#[test]
fn an_application_away_in_the_middle_of_a_rebalance_loses_its_partitions() {
    for kind in KINDS {
        let mut world = World::new(1);
        let node = world.join(kind);
        world.until(World::is_shared_out);
        world.nodes[node].step_ms = 5_000;
        let other = world.join(kind);
        world.run(2_000);
        let now = world.now;
        world.nodes[node].member.poll_interval_exceeded(now);
        world.act(node);
        assert!(world.nodes[node].has.is_empty());
        assert!(told(&world, node).iter().all(|what| *what != "revoked"));
        world.run(30_000);
        assert_eq!(world.nodes[other].has.len(), 7, "{kind:?}");
        // When it asks for records again, it joins again.
        let now = world.now;
        world.nodes[node].member.polled(now);
        world.act(node);
        world.run(30_000);
        assert!(
            world.is_shared_out() && !world.nodes[node].has.is_empty(),
            "{kind:?}"
        );
    }
}

/// franz-go #686
#[test]
fn a_group_rolls_from_eager_to_cooperative() {
    let mut world = World::new(1);
    let mut old: Vec<_> = (0..3).map(|_| world.join(Kind::Range)).collect();
    world.run(20_000);
    for kind in [Kind::RangeAndCooperative, Kind::Cooperative] {
        for node in std::mem::take(&mut old) {
            world.leave(node);
            world.until(|world| world.nodes[node].left);
            old.push(world.join(kind));
            world.run(20_000);
            assert!(world.is_shared_out());
        }
    }
}

/// aiokafka #727, kafka-python PR 2617
#[test]
fn a_member_that_is_removed_in_the_middle_of_a_rebalance_joins_once_more() {
    for kind in [Kind::Range, Kind::Cooperative] {
        let mut world = World::new(1);
        let node = world.join(kind);
        world.until(World::is_shared_out);
        world.untold = true;
        // Nothing is heard of it for longer than its session.
        world.nodes[node].dead = true;
        world.join(kind);
        world.run(30_000);
        world.nodes[node].dead = false;
        let before = world.nodes[node].sent.len();
        world.run(30_000);
        assert!(world.is_shared_out(), "{kind:?}");
        assert!(told(&world, node).contains(&"lost"));
        let joins = world.nodes[node].sent[before..].iter();
        let joins = joins
            .filter(|request| matches!(request, MemberRequest::Join(_)))
            .count();
        // With an empty id, with the id that it was given, and what cooperation needs.
        assert!(joins <= 4, "{joins} joins");
    }
}

/// kafkajs #83
#[test]
fn a_topic_that_cannot_be_found_does_not_hold_up_the_others() {
    let mut world = World::new(1);
    let node = world.join(Kind::Consumer);
    world.until(World::is_shared_out);
    world.hide_names = true;
    // The topic is deleted and created again: it has another id.
    world.set_partitions("b", Uuid(9), 3);
    world.run(30_000);
    assert_eq!(world.nodes[node].has, partitions("a", 4));
    world.hide_names = false;
    world.run(1_000);
    assert!(world.is_shared_out());
}

#[test]
fn the_states_of_a_member_follow_each_other_as_they_should() {
    let mut world = World::new(1);
    let node = world.join(Kind::Consumer);
    let mut states = vec![];
    for _ in 0..3_000 {
        let Member::Consumer(member) = &world.nodes[node].member else {
            unreachable!()
        };
        if states.last() != Some(&member.state()) {
            states.push(member.state());
        }
        world.run(1);
    }
    // What is acknowledged is said at once, so that state is never seen to last.
    use MemberState::{Joining, Reconciling, Stable};
    assert_eq!(states, [Joining, Reconciling, Stable]);
}

fn consumer_member() -> ConsumerMember {
    ConsumerMember::new(ConsumerMemberConfig {
        group_id: "g".into(),
        member_id: "m".into(),
        instance_id: None,
        rack_id: None,
        rebalance_timeout_ms: 30_000,
        server_assignor: None,
        session_timeout_ms: 45_000,
    })
}

#[test]
fn a_full_heartbeat_takes_back_a_regular_expression_the_coordinator_may_have() {
    let mut member = consumer_member();
    let sent = |member: &mut ConsumerMember| match member.next_action() {
        Some(Action::Send {
            id,
            request: MemberRequest::ConsumerHeartbeat(request),
        }) => (id, request.subscribed_topic_regex),
        other => panic!("{other:?}"),
    };
    let answer = ConsumerGroupHeartbeatResponse {
        member_epoch: 1,
        heartbeat_interval_ms: 1_000,
        ..Default::default()
    };
    // A static member that was here before may have subscribed by one.
    member.subscribe(Subscription::topics(["a".into()]), 0);
    let (join, regex) = sent(&mut member);
    assert_eq!(regex, Some("".into()));
    member.answered(join, &answer, 1);
    // The coordinator hears of the expression, and the member does not hear that it has.
    member.subscribe(Subscription::regex("a.*".into()), 2);
    member.wake(1_001);
    let (lost, regex) = sent(&mut member);
    assert_eq!(regex, Some("a.*".into()));
    member.failed(lost, 100, 1_002);
    member.subscribe(Subscription::topics(["a".into()]), 1_003);
    member.wake(1_102);
    let (again, regex) = sent(&mut member);
    assert_eq!(regex, Some("".into()));
    // Once it knows, it says nothing more.
    member.answered(again, &answer, 1_103);
    member.wake(2_103);
    assert_eq!(sent(&mut member).1, None);
}

/// Otherwise two members own what the coordinator has taken back meanwhile.
#[test]
fn a_member_takes_over_nothing_after_an_answer_was_lost() {
    let mut member = consumer_member();
    let answer = |epoch, partitions: &[i32]| ConsumerGroupHeartbeatResponse {
        member_epoch: epoch,
        heartbeat_interval_ms: 1_000,
        assignment: Some(ConsumerGroupHeartbeatAssignment {
            topic_partitions: vec![TopicIdPartitions {
                topic_id: Uuid(1),
                partitions: partitions.to_vec(),
            }],
        }),
        ..ConsumerGroupHeartbeatResponse::default()
    };
    let sent = |member: &mut ConsumerMember| match member.next_action() {
        Some(Action::Send { id, .. }) => id,
        other => panic!("{other:?}"),
    };
    member.subscribe(Subscription::topics(["a".into()]), 0);
    let join = sent(&mut member);
    member.answered(join, &answer(1, &[0]), 1);
    assert!(matches!(
        member.next_action(),
        Some(Action::ResolveTopics(_))
    ));
    member.topics(&[(Uuid(1), "a".into())].into(), 2);
    let Some(Action::Assign { id, .. }) = member.next_action() else {
        panic!("it is assigned")
    };
    member.done(id, 3);
    let acknowledged = sent(&mut member);
    member.answered(acknowledged, &answer(2, &[1]), 4);
    let Some(Action::Revoke { id, .. }) = member.next_action() else {
        panic!("it has to revoke")
    };
    member.wake(1_100);
    let lost = sent(&mut member);
    member.failed(lost, 100, 1_200);
    // The coordinator may have heard that it does not have partition 1, and given that to another.
    member.done(id, 1_300);
    let again = sent(&mut member);
    assert_eq!(member.next_action(), None);
    member.answered(again, &answer(3, &[2]), 1_301);
    match member.next_action() {
        Some(Action::Assign { added, .. }) => assert_eq!(added, [("a".into(), 2)].into()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn partitions_that_come_while_the_leader_assigns_are_assigned_next() {
    let mut world = World::new(1);
    let node = world.join(Kind::Range);
    let state = |world: &World| match &world.nodes[node].member {
        Member::Classic(member) => member.state(),
        Member::Consumer(_) => unreachable!("it is a classic one"),
    };
    while state(&world) != ClassicState::Syncing {
        world.run(1);
    }
    world.set_partitions("a", Uuid(1), 6);
    let now = world.now;
    if let Member::Classic(member) = &mut world.nodes[node].member {
        member.metadata_changed(now);
    }
    world.run(10_000);
    assert!(world.is_shared_out());
}

#[test]
fn whatever_is_lost_on_the_way_everything_is_shared_out_in_the_end() {
    for seed in 0..60 {
        let mut world = World::new(seed);
        let kinds: &[Kind] = match seed % 5 {
            0 => &[Kind::Consumer],
            1 => &[Kind::Range],
            2 => &[Kind::Cooperative],
            3 => &[Kind::Cooperative, Kind::Consumer],
            _ => &[Kind::Cooperative, Kind::RangeAndCooperative],
        };
        world.untold = true;
        world.lost_percent = 10;
        let mut living = Vec::new();
        for _ in 0..25 {
            match world.any(10) {
                0..5 if living.len() < 5 => {
                    let kind = kinds[world.any(kinds.len())];
                    living.push(world.join(kind));
                }
                5..7 if living.len() > 1 => {
                    let node = living.swap_remove(world.any(living.len()));
                    world.leave(node);
                }
                7 if living.len() > 1 => {
                    let node = living.swap_remove(world.any(living.len()));
                    world.nodes[node].dead = true;
                    world.nodes[node].has.clear();
                }
                _ => {}
            }
            let ms = world.any(3_000) as i64;
            world.run(ms);
        }
        if living.is_empty() {
            living.push(world.join(kinds[0]));
        }
        world.lost_percent = 0;
        world.run(200_000);
        let failed: Vec<_> = world
            .nodes
            .iter()
            .filter_map(|node| node.failed.clone())
            .collect();
        assert!(failed.is_empty(), "seed {seed}: {failed:?}");
        assert!(world.is_shared_out(), "seed {seed}");
        assert_eq!(world.members(), living.len(), "seed {seed}");
    }
}

#[test]
fn a_static_member_that_was_killed_waits_until_its_former_session_ends() {
    let mut world = World::new(1);
    let killed = world.join_as(Kind::Consumer, Some("i"));
    world.until(World::is_shared_out);
    world.nodes[killed].dead = true;
    world.nodes[killed].has.clear();
    let restarted = world.join_as(Kind::Consumer, Some("i"));
    world.run(20_000);
    assert_eq!(world.nodes[restarted].failed, None);
    assert!(world.nodes[restarted].has.is_empty());
    // About once a second.
    assert!((10..=25).contains(&heartbeats(&world, restarted).len()));
    world.until(World::is_shared_out);
    assert_eq!(world.nodes[restarted].failed, None);
}

#[test]
fn an_instance_id_that_another_member_keeps_is_an_error_in_the_end() {
    let mut world = World::new(1);
    let first = world.join_as(Kind::Consumer, Some("i"));
    world.until(World::is_shared_out);
    let second = world.join_as(Kind::Consumer, Some("i"));
    world.until(|world| world.nodes[second].failed.is_some());
    assert!(matches!(
        &world.nodes[second].failed,
        Some(MemberError::Refused { code, .. }) if *code == ErrorCode::UNRELEASED_INSTANCE_ID
    ));
    assert_eq!(world.nodes[first].has.len(), 7);
}

#[test]
fn a_member_that_gives_up_waiting_for_its_instance_id_leaves() {
    let mut world = World::new(1);
    world.join_as(Kind::Consumer, Some("i"));
    world.until(World::is_shared_out);
    let second = world.join_as(Kind::Consumer, Some("i"));
    world.run(5_000);
    world.leave(second);
    world.until(|world| world.nodes[second].left);
    assert!(world.is_shared_out());
}

#[test]
fn a_member_that_may_no_longer_read_its_group_asks_again_until_it_may() {
    let answer = |code| ConsumerGroupHeartbeatResponse {
        error_code: code,
        member_epoch: 1,
        heartbeat_interval_ms: 1_000,
        ..Default::default()
    };
    let refusal = ErrorCode::GROUP_AUTHORIZATION_FAILED;
    for was_admitted in [false, true] {
        let mut member = ConsumerMember::new(ConsumerMemberConfig {
            group_id: "g".into(),
            member_id: "m".into(),
            instance_id: None,
            rack_id: None,
            rebalance_timeout_ms: 30_000,
            server_assignor: None,
            session_timeout_ms: 45_000,
        });
        let mut now = 0;
        member.subscribe(Subscription::topics(["a".into()]), now);
        let mut exchange = |member: &mut ConsumerMember, code| {
            let Some(Action::Send { id, .. }) = member.next_action() else {
                panic!("no heartbeat");
            };
            member.answered(id, &answer(code), now);
            let reported = member.next_action();
            now += 1_000;
            member.wake(now);
            reported
        };
        if was_admitted {
            exchange(&mut member, ErrorCode::NONE);
        }
        let reported = exchange(&mut member, refusal);
        if was_admitted {
            assert!(matches!(reported, Some(Action::Report(_))));
            exchange(&mut member, ErrorCode::NONE);
            assert_eq!(member.state(), MemberState::Stable);
        } else {
            assert!(matches!(reported, Some(Action::Fail(_))));
        }
    }
}

#[test]
fn a_coordinator_that_cannot_answer_is_asked_ever_more_rarely() {
    for kind in [Kind::Consumer, Kind::Range] {
        let mut world = World::new(1);
        let node = world.join(kind);
        world.until(World::is_shared_out);
        let refused = ErrorCode::COORDINATOR_LOAD_IN_PROGRESS;
        let answer = match kind {
            Kind::Consumer => Answer::ConsumerHeartbeat(ConsumerGroupHeartbeatResponse {
                error_code: refused,
                ..Default::default()
            }),
            _ => Answer::Heartbeat(HeartbeatResponse {
                error_code: refused,
                ..Default::default()
            }),
        };
        let member = &mut world.nodes[node].member;
        let mut now = world.now;
        let mut waits = Vec::new();
        while waits.len() < 7 {
            now = member.next_wake().unwrap().max(now);
            member.wake(now);
            let Some(Action::Send { id, .. }) = member.next_action() else {
                panic!("no heartbeat");
            };
            member.answered(id, answer.clone(), now);
            waits.push(member.next_wake().unwrap() - now);
        }
        assert_eq!(waits, [100, 200, 400, 800, 1000, 1000, 1000], "{kind:?}");
    }
}
