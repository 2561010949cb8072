//! What makes two states the same: all but the numbers of epochs, of which only the order counts.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{Hash, Hasher},
};

use kohort_group::coordinator::{
    Id,
    inspect::{ConsumerGroupState, GroupState, MembersState, Place, SoftState},
};
use rustc_hash::FxHasher;

use super::client::Client;

/// A number for a state. Two different states have the same with a chance of 2⁻¹²⁸.
pub(super) fn fingerprint(
    durable: &BTreeMap<Id, GroupState>,
    soft: &BTreeMap<Id, SoftState>,
    clients: &[Client],
) -> u128 {
    let mut epochs = BTreeSet::new();
    let mut note = |epoch: i32| {
        if epoch > 0 {
            epochs.insert(epoch);
        }
    };
    for group in durable.values() {
        match &group.members {
            MembersState::Classic(group) => note(group.generation),
            MembersState::Consumer(group) => each_epoch(group, &mut note),
        }
    }
    for client in clients {
        note(client.epoch);
    }
    let epochs: Vec<i32> = epochs.into_iter().collect();
    let rank = |epoch: i32| match epochs.binary_search(&epoch) {
        Ok(rank) => rank as i32 + 1,
        // 0 and what is below have meanings of their own.
        Err(_) => epoch,
    };

    // Ids that the coordinator gave out are different each time: what counts is whose they are.
    let whose = |id: &str| -> (usize, String) {
        let owner = clients.iter().position(|client| client.id() == id);
        match owner {
            Some(index) => (index, String::new()),
            None => (usize::MAX, without_randomness(id)),
        }
    };
    let mut parts: Vec<String> = Vec::new();
    for (id, group) in durable {
        match &group.members {
            MembersState::Consumer(group) => {
                parts.push(format!(
                    "{id} {} {} {} {}",
                    rank(group.epoch),
                    rank(group.assignment_epoch),
                    group.assignment_timestamp == 0,
                    group.metadata_hash
                ));
                let places = |owned: &BTreeMap<Place, i32>| {
                    let owned = owned.iter();
                    owned
                        .map(|(place, since)| (place.1, rank(*since)))
                        .collect::<Vec<_>>()
                };
                let mut members: Vec<String> = group
                    .members
                    .iter()
                    .map(|(id, member)| {
                        format!(
                            "{:?} {:?} {} {} {} {} {:?} {:?} {:?}",
                            whose(id),
                            member.instance_id,
                            member.is_classic,
                            rank(member.epoch),
                            rank(member.previous_epoch),
                            member.state,
                            places(&member.assigned),
                            places(&member.revoking),
                            group.targets.get(id),
                        )
                    })
                    .collect();
                members.sort();
                parts.extend(members);
            }
            MembersState::Classic(group) => {
                parts.push(format!(
                    "{id} {} {} {:?}",
                    group.state,
                    rank(group.generation),
                    group.leader.as_deref().map(whose)
                ));
                let mut members: Vec<String> = group
                    .members
                    .iter()
                    .map(|(id, (instance_id, assignment))| {
                        format!("{:?} {instance_id:?} {assignment:?}", whose(id))
                    })
                    .collect();
                members.sort();
                parts.extend(members);
            }
        }
    }
    for (id, soft) in soft {
        let classic = soft.classic.as_ref().map(|classic| {
            let mut waiting: Vec<_> = classic.pending_sync.iter().map(|id| whose(id)).collect();
            waiting.sort();
            (classic.pending.len(), waiting, classic.initial_delay)
        });
        parts.push(format!("{id} {:?} {classic:?}", soft.alarm.is_some()));
        let mut members: Vec<String> = soft
            .members
            .iter()
            .map(|(id, member)| {
                let limits = member.rebalance.map(|limit| limit.is_some());
                format!("{:?} {limits:?} {:?}", whose(id), member.parked)
            })
            .collect();
        members.sort();
        parts.extend(members);
    }
    for client in clients {
        let client = Client {
            epoch: rank(client.epoch),
            given_id: (!client.given_id.is_empty()).to_string(),
            ..client.clone()
        };
        parts.push(format!("{client:?}"));
    }
    let hash = |salt: u64| {
        let mut hasher = FxHasher::default();
        salt.hash(&mut hasher);
        parts.hash(&mut hasher);
        hasher.finish()
    };
    u128::from(hash(0x9e37_79b9_7f4a_7c15)) << 64 | u128::from(hash(0xc2b2_ae3d_27d4_eb4f))
}

fn each_epoch(group: &ConsumerGroupState, note: &mut impl FnMut(i32)) {
    note(group.epoch);
    note(group.assignment_epoch);
    for member in group.members.values() {
        note(member.epoch);
        note(member.previous_epoch);
        for since in member.assigned.values().chain(member.revoking.values()) {
            note(*since);
        }
    }
}

/// An id of a member that is not there any more, without what makes it unique.
fn without_randomness(id: &str) -> String {
    match id.starts_with('m') {
        true => id.to_owned(),
        false => "given".to_owned(),
    }
}
