//! What a classic group tells of itself.

mod world;

use kohort_coordinator::Request;
use kohort_wire::{ErrorCode, messages::*};
use world::{World, classic::*};

/// What has happened since somebody last asked.
fn story(world: &mut World) -> Vec<String> {
    std::mem::take(&mut world.events)
}

#[test]
fn the_beginning_of_a_group_tells_who_came_and_how_long_each_phase_took() {
    let mut world = World::new();
    stable_group(&mut world, vec![Member::new(), Member::new()]);
    let story = story(&mut world);
    assert!(
        story[0].starts_with("rebalance of generation 0: member g-127.0.0.1-1-"),
        "{story:#?}"
    );
    assert!(story[1].starts_with("member g-127.0.0.1-2-") && story[1].ends_with(" joined"));
    assert!(
        story[2].starts_with("generation 1 has 2 members, joined in 300 ms"),
        "{story:#?}"
    );
    assert!(story[3].starts_with("generation 1 is assigned and stable, after 300 ms in all"));
    assert_eq!(story.len(), 4);
}

#[test]
fn a_group_whose_members_keep_coming_says_that_it_waits_for_more() {
    let mut world = World::new();
    for _ in 0..10 {
        Member::new().join(&mut world);
        world.advance(200);
    }
    let waits = "was empty, waiting for more members to join";
    let told = story(&mut world);
    assert_eq!(told.iter().filter(|line| *line == waits).count(), 1);
}

#[test]
fn steady_heartbeats_make_no_events() {
    let mut world = World::new();
    let members = stable_group(&mut world, vec![Member::new(), Member::new()]);
    story(&mut world);
    beat(&mut world, &members, 300_000);
    assert_eq!(story(&mut world), [""; 0]);
}

#[test]
fn who_has_not_rejoined_is_named_ever_more_rarely_and_put_out_by_name() {
    let mut world = World::new();
    let members = stable_group(
        &mut world,
        vec![Member::new(), Member::new(), Member::new()],
    );
    let mut first = members[0].clone();
    assert_eq!(members[1].clone().leave(&mut world), ErrorCode::NONE);
    story(&mut world);
    let token = first.join(&mut world);
    beat(&mut world, &members[2..], 61_000);
    first.joined(&mut world, token);
    let story = story(&mut world);
    let slow = format!("still waiting for {}", &members[2].id[..19]);
    let said = story.iter().filter(|line| line.starts_with(&slow));
    let said: Vec<_> = said.collect();
    assert!((3..=7).contains(&said.len()), "{story:#?}");
    assert!(said[0].ends_with(" (client at 127.0.0.1) to rejoin"));
    let out = story
        .iter()
        .find(|line| line.contains("did not rejoin within 1 min"));
    assert!(
        out.is_some_and(|line| line.contains(&members[2].id[..19])),
        "{story:#?}"
    );
}

#[test]
fn who_was_last_to_rejoin_is_named() {
    let mut world = World::new();
    let members = stable_group(&mut world, vec![Member::new(), Member::new()]);
    let (mut first, mut second) = (members[0].clone(), members[1].clone());
    let mut third = Member::new();
    let tokens = (third.join(&mut world), first.join(&mut world));
    story(&mut world);
    beat(&mut world, &members[1..], 4_000);
    let last = second.join(&mut world);
    third.joined(&mut world, tokens.0);
    first.joined(&mut world, tokens.1);
    second.joined(&mut world, last);
    let story = story(&mut world);
    let ended = story
        .iter()
        .find(|line| line.starts_with("generation 2 has 3 members"));
    let ended = ended.expect("it ends");
    assert!(
        ended.contains("joined in 4 s (the last to join was ") && ended.contains(", after 4 s)"),
        "{ended}"
    );
}

#[test]
fn a_leader_that_does_not_assign_and_a_member_that_does_not_sync_are_named() {
    let mut world = World::new();
    let (mut first, mut second) = (Member::new(), Member::new());
    let tokens = (first.join(&mut world), second.join(&mut world));
    world.advance(300);
    first.joined(&mut world, tokens.0);
    second.joined(&mut world, tokens.1);
    let both = [first.clone(), second.clone()];
    story(&mut world);
    beat(&mut world, &both, 2_000);
    let said = story(&mut world);
    assert!(said[0].ends_with(" to assign"), "{said:#?}");
    let (leader, other) = if first.is_leader {
        (first, second)
    } else {
        (second, first)
    };
    leader.sync(&mut world);
    beat(&mut world, &both, 2_000);
    let said = story(&mut world);
    assert!(
        said[0].contains("is assigned and stable, after 2.3 s in all, 2 s of it for the leader")
    );
    assert!(said[1].ends_with(" to ask for its assignment"), "{said:#?}");
    other.sync(&mut world);
    assert_eq!(
        story(&mut world),
        ["all members have asked for their assignment now"]
    );
}

#[test]
fn members_that_leave_are_removed_or_change_are_told_apart() {
    let mut world = World::new();
    let members = stable_group(&mut world, vec![Member::with_instance("i"), Member::new()]);
    story(&mut world);
    // A static member comes back.
    let mut back = Member::with_instance("i");
    let token = back.join(&mut world);
    back.joined(&mut world, token);
    let said = story(&mut world);
    assert!(
        said[0].starts_with("static member g-127.0.0.1-"),
        "{said:#?}"
    );
    assert!(said[0].contains(" came back in the place of g-127.0.0.1-"));

    let request = LeaveGroupRequest {
        group_id: "g".into(),
        members: vec![MemberIdentity {
            member_id: members[1].id.as_str().into(),
            reason: Some("member was removed by an admin: it is stuck".into()),
            ..MemberIdentity::default()
        }],
        ..LeaveGroupRequest::default()
    };
    world.ask(Request::LeaveGroup {
        version: 5,
        request,
    });
    let said = story(&mut world);
    assert!(
        said[0].contains(": an administrator (client at 127.0.0.1) removed member g-127.0.0.1-"),
        "{said:#?}"
    );
}

#[test]
fn a_group_that_is_loaded_says_so() {
    let mut world = World::new();
    stable_group(&mut world, vec![Member::new(), Member::new()]);
    story(&mut world);
    world.restart();
    assert_eq!(
        story(&mut world),
        ["the coordinator loaded the classic group with 2 members, epoch 1"]
    );
}
