//! Whatever happens in whatever order: no partition has two owners, epochs only grow, what is loaded
//! is what was, and once things calm down everybody has what is due.

use std::collections::{BTreeMap, BTreeSet};

use kohort_wire::ErrorCode;
use proptest::prelude::*;

use super::{classic::Classic, client::Client, world::World};
use crate::{Id, MigrationPolicy, Millis};

const CLIENTS: usize = 5;
const CLASSICS: usize = 2;
const TOPICS: [&str; 3] = ["one", "two", "three"];

#[derive(Debug, Clone)]
enum Action {
    /// A heartbeat and its answer.
    Beat(usize),
    /// A heartbeat whose answer is lost: the next one says everything.
    Lose(usize),
    Leave(usize),
    /// A static member leaves for a while, and its next incarnation has another member id.
    Restart(usize),
    Subscribe(usize, u8),
    Match(usize, bool),
    /// Gives up nothing for now; or again.
    KeepAll(usize, bool),
    Classic(usize),
    Wait(Millis),
    FailOver,
    Work(bool),
    Grow(usize),
    Replace(usize),
}

fn action() -> impl Strategy<Value = Action> {
    let client = 0..CLIENTS;
    prop_oneof![
        12 => client.clone().prop_map(Action::Beat),
        2 => client.clone().prop_map(Action::Lose),
        1 => client.clone().prop_map(Action::Leave),
        1 => client.clone().prop_map(Action::Restart),
        1 => (client.clone(), 0..8u8).prop_map(|(client, topics)| Action::Subscribe(client, topics)),
        1 => (client.clone(), any::<bool>()).prop_map(|(client, all)| Action::Match(client, all)),
        1 => (client, any::<bool>()).prop_map(|(client, keeps)| Action::KeepAll(client, keeps)),
        3 => (0..CLASSICS).prop_map(Action::Classic),
        4 => prop_oneof![Just(100), Just(1_000), Just(5_000), Just(11_000), Just(46_000)]
            .prop_map(Action::Wait),
        1 => Just(Action::FailOver),
        1 => any::<bool>().prop_map(Action::Work),
        1 => (0..TOPICS.len()).prop_map(Action::Grow),
        1 => (0..TOPICS.len()).prop_map(Action::Replace),
    ]
}

struct Play {
    world: World,
    clients: Vec<Client>,
    classics: Vec<Classic>,
    sizes: [i32; TOPICS.len()],
    incarnations: usize,
    group_epoch: i32,
    member_epochs: BTreeMap<Id, i32>,
}

impl Play {
    fn new() -> Play {
        let mut world =
            World::with(|config| config.consumer_migration_policy = MigrationPolicy::Upgrade);
        let sizes = [5, 3, 1];
        for (name, size) in TOPICS.iter().zip(sizes) {
            world.topic(name, size);
        }
        let clients = (0..CLIENTS).map(|index| {
            let client = Client::new(&format!("c{index}"), &TOPICS[..2]);
            match index {
                0 | 1 => client.instance(&format!("i{index}")),
                _ => client,
            }
        });
        Play {
            world,
            clients: clients.collect(),
            classics: (0..CLASSICS).map(|_| Classic::new(&TOPICS[..2])).collect(),
            sizes,
            incarnations: 0,
            group_epoch: 0,
            member_epochs: BTreeMap::new(),
        }
    }

    fn act(&mut self, action: &Action) {
        let world = &mut self.world;
        match *action {
            Action::Beat(index) => {
                let client = &mut self.clients[index];
                let response = world.heartbeat(1, client.request());
                match response.error_code {
                    // Another incarnation has its place, or its own last one still has: it starts
                    // again later.
                    ErrorCode::FENCED_INSTANCE_ID | ErrorCode::UNRELEASED_INSTANCE_ID => {
                        client.owned.clear();
                        client.epoch = 0;
                    }
                    _ => client.take(&response),
                }
            }
            Action::Lose(index) => {
                let client = &mut self.clients[index];
                world.heartbeat(1, client.request());
                client.say_all();
            }
            Action::Leave(index) => {
                let client = &mut self.clients[index];
                if world.is_member("group", &client.id) {
                    client.leave(world, -1);
                }
            }
            Action::Restart(index) => {
                let client = &mut self.clients[index];
                if client.instance_id.is_some() && world.is_member("group", &client.id) {
                    client.leave(world, -2);
                    self.incarnations += 1;
                    client.id = format!("{}-{}", client.id, self.incarnations);
                }
            }
            Action::Subscribe(index, topics) => {
                let bits = TOPICS
                    .iter()
                    .enumerate()
                    .filter(|(bit, _)| topics >> bit & 1 == 1);
                let topics: Vec<&str> = bits.map(|(_, name)| *name).collect();
                self.clients[index].subscribe(&topics);
            }
            Action::Match(index, all) => {
                let regex = if all { ".*" } else { "t.*" };
                self.clients[index].regex = Some(regex.to_owned());
                self.clients[index].say_all();
            }
            Action::KeepAll(index, keeps) => {
                let client = &mut self.clients[index];
                client.keeps_all = keeps;
                if !keeps {
                    client.owned = client.assigned.clone();
                }
            }
            Action::Classic(index) => {
                // A group that only has classic members is not what this is about.
                if world
                    .shard
                    .consumer_group("group")
                    .is_some_and(|group| !group.is_empty())
                {
                    self.classic(index);
                }
            }
            Action::Wait(ms) => world.wait(ms),
            Action::FailOver => world.restart(),
            Action::Work(works) => {
                world.works = works;
                if works {
                    world.do_work();
                }
            }
            Action::Grow(topic) => {
                self.sizes[topic] = (self.sizes[topic] + 1).min(12);
                world.topic(TOPICS[topic], self.sizes[topic]);
            }
            Action::Replace(topic) => {
                // Classic members know topics by name, and so may own partitions of one that is
                // gone: not while there are any.
                if self.classics.iter().all(|classic| classic.owned.is_empty()) {
                    world.delete_topic(TOPICS[topic]);
                    world.topic(TOPICS[topic], self.sizes[topic]);
                }
            }
        }
    }

    fn classic(&mut self, index: usize) {
        let world = &mut self.world;
        let classic = &mut self.classics[index];
        if classic.id.is_empty() || !world.is_member("group", &classic.id) {
            *classic = Classic::new(&TOPICS[..2]);
            if classic.join(world).error_code == ErrorCode::NONE {
                classic.sync(world);
            }
        } else {
            classic.beat(world);
        }
    }

    fn check(&mut self) {
        self.world.check();
        let mut owners: BTreeMap<(kohort_wire::Uuid, i32), &str> = BTreeMap::new();
        for client in &self.clients {
            // Who has been put out has yet to hear of it.
            if !self.world.is_member("group", &client.id) {
                continue;
            }
            for &place in &client.owned {
                if let Some(other) = owners.insert(place, &client.id) {
                    panic!("{place:?} is owned by {other} and {}", client.id);
                }
            }
        }
        let topics = self.world.shard.topics.clone();
        for classic in &self.classics {
            if !self.world.is_member("group", &classic.id) {
                continue;
            }
            for (name, partition) in &classic.owned {
                let place = (topics.get(name).expect("a topic").id, *partition);
                if let Some(other) = owners.insert(place, &classic.id) {
                    panic!("{place:?} is owned by {other} and {}", classic.id);
                }
            }
        }
        let Some(group) = self.world.shard.consumer_group("group") else {
            return;
        };
        assert!(
            group.epoch >= self.group_epoch,
            "the group's epoch went back"
        );
        assert!(group.assignment_epoch <= group.epoch, "the target is ahead");
        self.group_epoch = group.epoch;
        for member in group.sorted_members() {
            let epoch = member.current.epoch;
            assert!(
                epoch <= group.assignment_epoch,
                "a member is ahead of the target"
            );
            let before = self.member_epochs.insert(member.id.clone(), epoch);
            // It joins, or leaves for a while.
            if epoch > 0 && before.is_some_and(|before| before > epoch) {
                panic!("the epoch of member {} went back", member.id);
            }
        }
    }

    /// Everybody comes back, says everything, and hesitates no longer.
    fn heal(&mut self) {
        self.world.works = true;
        self.world.do_work();
        for client in &mut self.clients {
            client.keeps_all = false;
            client.owned = client.assigned.clone();
            client.say_all();
        }
        for _ in 0..60 {
            for index in 0..CLIENTS {
                self.act(&Action::Beat(index));
            }
            for index in 0..CLASSICS {
                self.act(&Action::Classic(index));
            }
            self.world.wait(2_000);
        }
        self.check();
        assert_eq!(
            self.world.state("group"),
            "Stable",
            "{:#?}",
            self.world.group("group")
        );
        let mut due = BTreeSet::new();
        let topics = self.world.shard.topics.clone();
        for (name, size) in TOPICS.iter().zip(self.sizes) {
            let topic = topics.get(name).expect("a topic");
            if self.world.group("group").subscribes_to(name) {
                due.extend((0..size).map(|partition| (topic.id, partition)));
            }
        }
        let mut owned: BTreeSet<_> = self
            .clients
            .iter()
            .flat_map(|client| client.owned.iter().copied())
            .collect();
        for classic in &self.classics {
            let ids = classic
                .owned
                .iter()
                .map(|(name, p)| (topics.get(name).expect("one").id, *p));
            owned.extend(ids);
        }
        assert_eq!(owned, due, "everything that anybody subscribes to is owned");
    }
}

/// Few enough to wait for; `PROPTEST_CASES` asks for more.
fn cases() -> u32 {
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig::default().cases,
        None => 24,
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn whatever_happens_no_partition_has_two_owners_and_all_comes_to_rest(
        actions in proptest::collection::vec(action(), 1..120),
    ) {
        let mut play = Play::new();
        for action in &actions {
            play.act(action);
            play.check();
        }
        play.heal();
    }
}
