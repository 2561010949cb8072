//! The coordinator dies at any moment of a rewind, and another one takes over.

use kohort_wire::ErrorCode;

use super::{
    classic::{group, own_nothing},
    *,
};
use crate::{
    Record, Token,
    consumer::tests::{classic::Classic, client::Client, world::World},
};

/// The log up to each record behind `begin`, and whether that asks for the rewind already.
fn cuts(world: &World, begin: usize) -> Vec<(usize, bool)> {
    let asked = world.log[begin..]
        .iter()
        .position(|record| matches!(record, Record::Rewind(_, Some(_))))
        .expect("a rewind")
        + begin;
    (begin..=world.log.len())
        .map(|cut| (cut, cut > asked))
        .collect()
}

fn take_over(world: &mut World, cut: usize) {
    world.log.truncate(cut);
    world.restart();
}

#[test]
fn a_rewind_of_a_consumer_group_happens_whole_or_not_at_all_wherever_its_log_ends() {
    let run = |until: Option<usize>| {
        let mut world = World::new();
        let topic = world.topic("orders", 6);
        let (mut a, mut b) = (Client::new("a", &["orders"]), Client::new("b", &["orders"]));
        world.settle(&mut [&mut a, &mut b]);
        for member in [&a, &b] {
            for partition in member.of(topic) {
                commit(
                    &mut world,
                    &member.id,
                    member.epoch,
                    ("orders", partition, 100),
                );
            }
        }
        let begin = world.log.len();
        let goals: Vec<_> = (0..4).map(|partition| ("orders", partition, 5)).collect();
        let token = rewind(&mut world, &goals);
        let (old_a, old_b) = (a.clone(), b.clone());
        if until.is_none() {
            world.settle(&mut [&mut a, &mut b]);
            assert!(is_done(&mut world, token));
        }
        (world, begin, [a, b], [old_a, old_b])
    };
    let (finished, begin, _, _) = run(None);
    for (cut, is_asked) in cuts(&finished, begin) {
        // The members are where they were when it began, or further; both are true of some.
        let (mut world, _, members, old) = run(Some(cut));
        world.log = finished.log.clone();
        take_over(&mut world, cut);
        let [mut a, mut b] = members;
        for _ in 0..3 {
            a.say_all();
            b.say_all();
            a.beat(&mut world);
            b.beat(&mut world);
            world.check();
        }
        world.settle(&mut [&mut a, &mut b]);
        assert!(world.shard.rewinding.is_empty());
        let expected = if is_asked {
            [5, 5, 5, 5, 100, 100]
        } else {
            [100; 6]
        };
        assert_eq!(
            committed(&mut world, "orders", &[0, 1, 2, 3, 4, 5]),
            expected,
            "cut at {cut}"
        );
        assert_eq!(a.owned.len() + b.owned.len(), 6);
        if is_asked {
            for member in old {
                for (_, partition) in member.owned.iter().filter(|(_, p)| *p < 4) {
                    let late = ("orders", *partition, 101);
                    let code = commit(&mut world, &member.id, member.epoch, late);
                    assert!(code.is_error(), "cut at {cut}: {code}");
                }
            }
        }
    }
}

/// Lets members of a classic group live: they rejoin when they are told to, come back as somebody
/// new when they are not known any more, and the first to lead assigns.
fn live(world: &mut World, members: &mut [Classic], is_eager: bool) {
    // Someone whom only the log knows may have to be waited for.
    for _ in 0..30 {
        let mut joins: Vec<Option<Token>> = Vec::new();
        for member in members.iter_mut() {
            let code = if member.id.is_empty() {
                ErrorCode::UNKNOWN_MEMBER_ID
            } else {
                member.heartbeat(world)
            };
            match code {
                ErrorCode::NONE => {
                    joins.push(None);
                    continue;
                }
                ErrorCode::REBALANCE_IN_PROGRESS if is_eager => member.owned.clear(),
                ErrorCode::REBALANCE_IN_PROGRESS => {}
                ErrorCode::ILLEGAL_GENERATION => {
                    member.generation = -1;
                    member.owned.clear();
                }
                _ => own_nothing(member),
            }
            joins.push(Some(member.send_join(world)));
        }
        world.wait(3_000);
        let mut leader = None;
        for (index, member) in members.iter_mut().enumerate() {
            let Some(token) = joins[index].take() else {
                continue;
            };
            let Some(reply) = world.reply(token) else {
                // It waits for others, which takes until the next round.
                continue;
            };
            world.put_back(token, reply);
            let response = member.joined(world, token);
            match response.error_code {
                ErrorCode::NONE if response.leader == response.member_id => {
                    leader = Some((index, response.members));
                }
                ErrorCode::NONE => {}
                _ => own_nothing(member),
            }
        }
        if let Some((leader, joined)) = leader {
            let assignments = crate::consumer::tests::classic::in_turn(&joined, "orders", 6);
            let token = members[leader].send_sync(world, assignments);
            members[leader].synced(world, token);
            for (index, member) in members.iter_mut().enumerate() {
                if index != leader && member.generation >= 0 {
                    member.sync(world);
                }
            }
        }
    }
}

#[test]
fn a_rewind_of_a_classic_group_happens_whole_or_not_at_all_wherever_its_log_ends() {
    for protocol in ["range", "cooperative-sticky"] {
        let is_eager = protocol == "range";
        let run = |is_cut: bool| {
            let (mut world, mut members) = group(protocol, 3, false);
            for member in &members {
                for (topic, partition) in &member.owned {
                    let place = (topic.as_str(), *partition, 100);
                    commit(&mut world, &member.id, member.generation, place);
                }
            }
            let begin = world.log.len();
            let token = rewind(&mut world, &[("orders", 0, 5), ("orders", 3, 6)]);
            let old = members.clone();
            if !is_cut {
                live(&mut world, &mut members, is_eager);
                assert!(is_done(&mut world, token), "{protocol}");
            }
            (world, begin, members, old)
        };
        let (finished, begin, _, _) = run(false);
        for (cut, is_asked) in cuts(&finished, begin) {
            let (mut world, _, mut members, old) = run(true);
            world.log = finished.log.clone();
            take_over(&mut world, cut);
            let late_commits = |world: &mut World| {
                for member in &old {
                    for (topic, partition) in &member.owned {
                        let place = (topic.as_str(), *partition, 101);
                        commit(world, &member.id, member.generation, place);
                    }
                }
            };
            let is_finished = world.shard.rewinding.is_empty();
            if is_asked && is_finished {
                // It happened before the crash: a late commit may come first of all.
                late_commits(&mut world);
            }
            live(&mut world, &mut members, is_eager);
            assert!(world.shard.rewinding.is_empty(), "{protocol}: cut at {cut}");
            if is_asked {
                late_commits(&mut world);
                assert_eq!(
                    committed(&mut world, "orders", &[0, 3]),
                    [5, 6],
                    "{protocol}: cut at {cut}"
                );
            } else {
                assert_eq!(committed(&mut world, "orders", &[0, 3]), [100, 100]);
            }
        }
    }
}
