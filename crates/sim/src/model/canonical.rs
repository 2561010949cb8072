//! What makes two states the same.
//!
//! Left out is what nothing that follows depends on, so that there are finitely many states:
//!
//! - the numbers of epochs and generations. The protocol only asks whether a member is at the
//!   group's target, and whether what a member says is its present epoch or the one before;
//! - since when a partition is owned, which only commits ask for, and there are none here;
//! - ids that the coordinator gave out, but for whose they are, and which of them sorts first (who
//!   gets what depends on that);
//! - times: none passes while steps are taken, so no deadline is met;
//! - the version of the topics, which stay as they are.
//!
//! Partitions are told apart, and so are members: the assignors break ties by number and by id, so
//! states that differ in names only do not go on in the same way.

use std::collections::{BTreeMap, BTreeSet};

use kohort_coordinator::inspect::{
    ClassicGroupState, ConsumerGroupState, ConsumerMemberState, GroupState, MembersState, Place,
    SoftState,
};
use kohort_group::Id;
use xxhash_rust::xxh3::xxh3_128;

use super::client::{Client, GROUP, Phase};

/// What a shard holds.
pub(super) struct View {
    pub(super) durable: BTreeMap<Id, GroupState>,
    pub(super) soft: BTreeMap<Id, SoftState>,
}

impl View {
    pub(super) fn members(&self) -> Option<&MembersState> {
        self.durable.get(GROUP).map(|group| &group.members)
    }

    /// Whether the coordinator has a member of that id.
    pub(super) fn has(&self, id: &str) -> bool {
        match self.members() {
            Some(MembersState::Consumer(group)) => group.members.contains_key(id),
            Some(MembersState::Classic(group)) => group.members.contains_key(id),
            None => false,
        }
    }

    /// Whether the coordinator has the client as a member; one that joins by generations, of the
    /// present one.
    pub(super) fn is_member(&self, client: &Client) -> bool {
        match self.members() {
            Some(MembersState::Consumer(group)) => group
                .members
                .get(&*client.id())
                .is_some_and(|member| !client.is_classic || member.epoch == client.epoch),
            Some(MembersState::Classic(group)) => {
                group.members.contains_key(&*client.id()) && group.generation == client.epoch
            }
            None => false,
        }
    }
}

/// A number for a state. Two different ones have the same with a chance of 2⁻¹²⁸.
pub(super) fn fingerprint(view: &View, clients: &[Client]) -> u128 {
    let mut key = Key {
        ids: clients.iter().map(Client::id).collect(),
        bytes: Vec::with_capacity(512),
    };
    match view.members() {
        None => key.byte(0),
        Some(MembersState::Consumer(group)) => key.consumer_group(group, clients),
        Some(MembersState::Classic(group)) => key.classic_group(group, clients),
    }
    if let Some(soft) = view.soft.get(GROUP) {
        key.soft(soft);
    }
    key.clients(clients);
    xxh3_128(&key.bytes)
}

struct Key {
    /// The ids of the clients; empty for those that have none.
    ids: Vec<String>,
    bytes: Vec<u8>,
}

/// How an epoch stands to others.
fn relation(epoch: i32, present: Option<i32>, before: Option<i32>) -> u8 {
    match epoch {
        // What is below zero has meanings of its own.
        ..=0 => epoch.unsigned_abs() as u8,
        _ if present == Some(epoch) => 20,
        _ if before == Some(epoch) => 21,
        _ => 22,
    }
}

fn mask<'a>(places: impl IntoIterator<Item = &'a Place>) -> u8 {
    let places = places.into_iter();
    places.fold(0, |mask, place| mask | 1 << place.1)
}

impl Key {
    fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    fn flag(&mut self, flag: bool) {
        self.byte(u8::from(flag));
    }

    fn text(&mut self, text: &[u8]) {
        self.bytes.extend((text.len() as u32).to_le_bytes());
        self.bytes.extend(text);
    }

    /// Whose an id is.
    fn whose(&self, id: &str) -> u8 {
        let mut ids = self.ids.iter();
        ids.position(|own| own == id).map_or(200, |at| at as u8)
    }

    /// What is noted of each client's member, and of members that are nobody's any more.
    fn each<T>(
        &mut self,
        members: &BTreeMap<Id, T>,
        clients: &[Client],
        note: impl Fn(&mut Key, &Id, &T, Option<&Client>),
    ) {
        for client in clients {
            match members.get_key_value(&*client.id()) {
                Some((id, member)) => {
                    self.byte(1);
                    note(self, id, member, Some(client));
                }
                None => {
                    self.byte(0);
                    self.byte(relation(client.epoch, None, None));
                }
            }
        }
        let mut others: Vec<Vec<u8>> = Vec::new();
        for (id, member) in members {
            if self.whose(id) == 200 {
                let begin = self.bytes.len();
                // Ids that members choose may come back.
                let name = if id.starts_with('m') {
                    id.as_bytes()
                } else {
                    b"given"
                };
                self.text(name);
                note(self, id, member, None);
                others.push(self.bytes.split_off(begin));
            }
        }
        others.sort();
        self.byte(others.len() as u8);
        self.bytes.extend(others.concat());
    }

    fn consumer_group(&mut self, group: &ConsumerGroupState, clients: &[Client]) {
        self.byte(1);
        self.flag(group.epoch == group.assignment_epoch);
        self.flag(group.assignment_timestamp == 0);
        self.bytes.extend(group.metadata_hash.to_le_bytes());
        self.each(&group.members, clients, |key, id, member, client| {
            let ConsumerMemberState {
                instance_id,
                is_classic,
                profile,
                epoch,
                previous_epoch,
                state,
                assigned,
                revoking,
            } = member;
            let of_client =
                |client: &Client| relation(client.epoch, Some(*epoch), Some(*previous_epoch));
            key.byte(client.map_or(0, of_client));
            key.byte(relation(*epoch, Some(group.assignment_epoch), None));
            key.flag(*is_classic);
            key.text(instance_id.as_deref().unwrap_or_default().as_bytes());
            key.text(profile);
            key.byte(*state as u8);
            key.byte(mask(assigned.keys()));
            key.byte(mask(revoking.keys()));
            key.byte(group.targets.get(id).map_or(255, mask));
        });
    }

    fn classic_group(&mut self, group: &ClassicGroupState, clients: &[Client]) {
        self.byte(2);
        self.text(group.state.as_bytes());
        self.flag(group.generation == 0);
        self.byte(group.leader.as_deref().map_or(201, |id| self.whose(id)));
        self.each(&group.members, clients, |key, _, member, client| {
            let (instance_id, assignment) = member;
            let of_client = |client: &Client| relation(client.epoch, Some(group.generation), None);
            key.byte(client.map_or(0, of_client));
            key.text(instance_id.as_deref().unwrap_or_default().as_bytes());
            key.text(assignment);
        });
    }

    fn soft(&mut self, soft: &SoftState) {
        self.flag(soft.at_work.0);
        self.flag(soft.at_work.1);
        let Some(classic) = &soft.classic else {
            return;
        };
        self.flag(classic.initial_delay.is_some());
        let owners: BTreeSet<u8> = classic.pending.keys().map(|id| self.whose(id)).collect();
        self.text(&owners.into_iter().collect::<Vec<_>>());
        let owners: BTreeSet<u8> = classic
            .pending_sync
            .iter()
            .map(|id| self.whose(id))
            .collect();
        self.text(&owners.into_iter().collect::<Vec<_>>());
        let mut members: Vec<Vec<u8>> = Vec::new();
        for (id, member) in &soft.members {
            let begin = self.bytes.len();
            self.byte(self.whose(id));
            self.flag(member.parked.0);
            self.flag(member.parked.1);
            self.flag(member.is_new);
            for (name, metadata) in &member.protocols {
                self.text(name.as_bytes());
                self.text(metadata);
            }
            members.push(self.bytes.split_off(begin));
        }
        members.sort();
        self.bytes.extend(members.concat());
    }

    fn clients(&mut self, clients: &[Client]) {
        for client in clients {
            let Client {
                index: _,
                is_classic,
                is_static: _,
                incarnation,
                given_id,
                // How it stands to the coordinator's has been noted.
                epoch: _,
                assigned,
                owned,
                says_all,
                said,
                phase,
                leads,
                waits,
            } = client;
            self.flag(*is_classic);
            self.byte(mask(assigned));
            self.byte(mask(owned));
            if *is_classic {
                self.flag(given_id.is_empty());
                self.flag(waits.is_some());
                self.byte(match phase {
                    Phase::Join => 0,
                    Phase::Sync => 1,
                    Phase::Heartbeat => 2,
                });
                for (id, assignment) in leads {
                    self.byte(self.whose(id));
                    self.text(assignment);
                }
            } else {
                self.byte(*incarnation);
                self.flag(*says_all);
                self.flag(said.as_ref() == Some(owned));
            }
        }
        // Which of the ids that were given out sorts first.
        let given = clients.iter().filter(|client| client.is_classic);
        let mut given: Vec<(&str, u8)> = given
            .map(|client| (&*client.given_id, client.index as u8))
            .filter(|(id, _)| !id.is_empty())
            .collect();
        given.sort_unstable();
        self.bytes.extend(given.into_iter().map(|(_, index)| index));
    }
}
