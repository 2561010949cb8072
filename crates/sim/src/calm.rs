//! After the adversary has stopped: everything comes to rest, in time, and every record is
//! processed.

use std::collections::{BTreeMap, BTreeSet};

use kohort_coordinator::inspect::{MembersState, Place};
use kohort_group::Id;
use kohort_member::{Millis, Subscription};
use kohort_wire::ByteString;

use crate::{
    node::Node,
    profile::Kind,
    world::{TOPICS, World},
};

/// How many heartbeats a group may take to come to rest, once all that was lost has been noticed.
const HEARTBEATS_MAX: Millis = 12;

/// How many times in a row, 200 ms apart, a group is found at rest before it is held to be.
const RESTS: u32 = 20;

/// When the topics grow once more, if the groups have not come to rest by then.
const GROWS_AFTER_MS: Millis = 80_000;

/// For how long a group is watched after it has come to rest: nothing moves any more.
const WATCH_MS: Millis = 12_000;

/// How long a process may take that comes late: it waits for an answer to its join, and joins.
const LATE_MS: Millis = 60_000;

impl World {
    /// Ends all trouble, and sees whether the groups come to rest.
    pub(crate) fn calm_down(&mut self) {
        self.is_calm = true;
        self.ghosts.clear();
        self.note(|| "the adversary stops".to_owned());
        self.end_pauses();
        for node in 0..self.nodes.len() {
            self.nodes[node].paused_until = self.nodes[node].paused_until.min(self.now);
            self.nodes[node].away_until = self.now;
            self.nodes[node].stuck_until = self.now;
        }
        self.end_twins();
        for topic in &TOPICS[..self.profile.topics] {
            if self.cluster.get(topic).is_none() {
                self.create(topic);
            }
        }
        let makes_equal = self.random.percent(60);
        for group in self.groups() {
            let members = self.those(|node| node.is_up() && node.role.group == group);
            let is_there = |node: &Node| {
                node.role.group == group && (node.is_alive || node.starts_at.is_some())
            };
            if self.those(is_there).is_empty()
                && let Some(node) = self.those(|node| node.role.group == group).first()
            {
                self.start(*node);
            }
            for node in members.into_iter().filter(|_| makes_equal) {
                let all = TOPICS.iter().map(|topic| ByteString::from(*topic));
                let subscription = match self.nodes[node].role.subscription.regex {
                    Some(_) => Subscription::regex("t.*".into()),
                    None => Subscription::topics(all),
                };
                self.subscribe(node, subscription);
            }
        }
        let begin = self.now;
        let limit = begin + self.limit_ms();
        let mut rests = 0;
        let mut has_grown = false;
        while self.failure.is_none() {
            // A static leader that was away while partitions came, or a topic came anew with fewer,
            // notices it with the next ones.
            if !has_grown && self.now > begin + GROWS_AFTER_MS {
                has_grown = true;
                for topic in &TOPICS[..self.profile.topics] {
                    self.cluster.grow(topic, 1);
                }
                self.topics_changed();
            }
            let problem = self.unrest();
            match problem {
                // News of topics may still be on its way to members.
                None if rests == RESTS => break,
                None => {
                    rests += 1;
                    self.run_until(self.now + 200);
                    continue;
                }
                Some(problem) if self.now >= limit => {
                    let waited = self.now - begin;
                    return self.fail(
                        "every group comes to rest",
                        format!("after {waited} ms: {problem}"),
                    );
                }
                Some(_) => self.run_until(self.now + 200),
            }
            rests = 0;
        }
        self.watch();
    }

    /// Of processes with one instance id, one stays.
    fn end_twins(&mut self) {
        let mut seen = BTreeSet::new();
        for node in 0..self.nodes.len() {
            let it = &mut self.nodes[node];
            let instance = (it.role.group.clone(), it.role.instance_id.clone());
            let is_there = it.is_alive || it.starts_at.is_some();
            if is_there && instance.1.is_some() && !seen.insert(instance) {
                it.starts_at = None;
                self.end(node);
            }
        }
    }

    /// How long the groups have to come to rest: until the dead are noticed and the slow given up,
    /// then some heartbeats, each with the assignment interval.
    fn limit_ms(&self) -> Millis {
        let config = &self.profile.config;
        let session = i64::from(config.consumer_session_timeout_ms).max(20_000);
        let step = i64::from(config.consumer_heartbeat_interval_ms).max(2_000)
            + i64::from(config.consumer_assignment_interval_ms)
            + 2 * self.profile.latency_ms
            + 2 * self.profile.append_ms
            + self.profile.poll_ms;
        // A coordinator may have crashed last of all; expressions are resolved every 10 s at most;
        // a member that nobody has heard of since it joined is given up after five minutes.
        let slack = 20_000 + 21_000 + i64::from(config.group_initial_rebalance_delay_ms);
        session + 20_000 + HEARTBEATS_MAX * step + slack + self.new_member_ms()
    }

    /// A classic member that was lost while it first joined is waited for as long as that
    /// (KAFKA-7610).
    fn new_member_ms(&self) -> Millis {
        match self
            .profile
            .kinds
            .iter()
            .any(|kind| *kind != Kind::Consumer)
        {
            true => 300_000,
            false => 0,
        }
    }

    /// What is not as it should be in the end.
    fn unrest(&self) -> Option<String> {
        if self.coordinator.shard.is_none() {
            return Some("the coordinator is not there".to_owned());
        }
        for group in self.groups() {
            if let Some(problem) = self.unrest_of(&group) {
                return Some(format!("group {group}: {problem}"));
            }
        }
        None
    }

    fn unrest_of(&self, group: &Id) -> Option<String> {
        let nodes = self.nodes.iter();
        let alive: Vec<&Node> = nodes
            .filter(|node| node.role.group == *group && node.is_alive && !node.is_leaving)
            .collect();
        if nodes_start(self, group) && !self.may_be_refused() {
            return Some("a process is being started again".to_owned());
        }
        if alive.is_empty() {
            let starts = nodes_start(self, group);
            return starts.then(|| "its processes are being started again".to_owned());
        }
        // Those that cannot be let in, since the group is full or their instance id is taken.
        let settled: Vec<&Node> = alive
            .iter()
            .filter(|node| node.member.identity().is_some())
            .copied()
            .collect();
        let all_expected = !self.may_be_refused();
        if settled.is_empty() || settled.len() < alive.len() && all_expected {
            return Some("not all are members".to_owned());
        }
        let Some(state) = self.coordinator.live.get(group) else {
            return Some("it does not exist".to_owned());
        };
        let ids: BTreeSet<&str> = match &state.members {
            MembersState::Consumer(state) => state.members.keys().map(|id| &**id).collect(),
            MembersState::Classic(state) => state.members.keys().map(|id| &**id).collect(),
        };
        let known: Vec<ByteString> = settled.iter().filter_map(|node| node.member_id()).collect();
        let known_ids: BTreeSet<&str> = known.iter().map(|id| &**id).collect();
        if ids != known_ids {
            return Some(format!(
                "its members are {ids:?}, and alive are {known_ids:?}"
            ));
        }
        if state.rewind.is_some() {
            return Some("a rewind is under way".to_owned());
        }
        match &state.members {
            MembersState::Classic(state) if state.state != "Stable" => {
                return Some(format!("it is in state {}", state.state));
            }
            MembersState::Consumer(state) => {
                if state.assignment_epoch != state.epoch {
                    return Some("a target is due".to_owned());
                }
                let version = self.coordinator.view.version();
                let mut regexes = state
                    .subscriptions
                    .keys()
                    .filter(|(kind, _)| *kind == "regex");
                if regexes.any(|(_, regex)| {
                    let resolved = state.resolved.get(regex);
                    resolved.is_none_or(|(_, known, _)| *known != version)
                }) {
                    return Some("a regular expression is to be resolved".to_owned());
                }
                let behind = state.members.iter();
                let mut behind =
                    behind.filter(|(_, member)| member.state != 0 || member.epoch != state.epoch);
                if let Some((id, _)) = behind.next() {
                    return Some(format!("{id} is not at its target"));
                }
            }
            MembersState::Classic(_) => {}
        }
        self.unshared(group, &settled)
            .or_else(|| self.unprocessed(group, &settled))
    }

    /// Whether there are processes that are rightly refused.
    fn may_be_refused(&self) -> bool {
        let config = &self.profile.config;
        config.group_max_size < 100 || config.consumer_max_size < 100
    }

    fn due(&self, nodes: &[&Node]) -> BTreeSet<Place> {
        let mut due = BTreeSet::new();
        for (name, topic) in self.cluster.iter() {
            if nodes.iter().any(|node| node.subscribes_to(name)) {
                due.extend((0..topic.ends.len()).map(|p| (topic.id, p as i32)));
            }
        }
        due
    }

    /// Every partition is with one application, evenly.
    fn unshared(&self, group: &Id, nodes: &[&Node]) -> Option<String> {
        let mut owned = BTreeMap::new();
        for (index, node) in nodes.iter().enumerate() {
            for ((topic, partition), held) in &node.partitions {
                if held.is_revoking {
                    return Some(format!("{topic}-{partition} is being let go of"));
                }
                if !node.subscribes_to(topic) {
                    let name = node.name(index);
                    return Some(format!(
                        "{name} has {topic}-{partition} without subscribing to it"
                    ));
                }
                owned.insert((held.reads, *partition), index);
            }
        }
        let due = self.due(nodes);
        if !owned.keys().eq(due.iter()) {
            return Some(format!("due are {due:?}, and owned {:?}", owned.keys()));
        }
        let first = &nodes.first()?.role.subscription;
        let is_equal = nodes.iter().all(|node| node.role.subscription == *first);
        if !is_equal {
            return None;
        }
        let counts = nodes.iter().map(|node| node.partitions.len());
        let (least, most) = (counts.clone().min()?, counts.max()?);
        // Range shares each topic out by itself.
        let spread_max = self.profile.topics.max(1);
        match most - least > spread_max {
            true => Some(format!(
                "one member of group {group} has {least} partitions and another {most}"
            )),
            false => None,
        }
    }

    fn unprocessed(&self, group: &Id, nodes: &[&Node]) -> Option<String> {
        for place in self.due(nodes) {
            let name = self.cluster.name(place.0)?;
            if self.confused.contains(name) {
                continue;
            }
            let end = self.cluster.end(place.0, place.1)?;
            let done = self.done(group, place);
            if done < end {
                return Some(format!(
                    "{place:?} has {end} records, and {done} are processed"
                ));
            }
        }
        None
    }

    /// Once at rest, a group stays there.
    fn watch(&mut self) {
        let before = self.shape();
        self.run_until(self.now + WATCH_MS);
        if self.failure.is_some() {
            return;
        }
        if self.unrest().is_some() && self.may_be_refused() {
            // One that seemed to be refused had waited for an answer that was lost, and is let in.
            self.run_until(self.now + LATE_MS);
        }
        if self.failure.is_some() {
            return;
        }
        if let Some(problem) = self.unrest() {
            return self.fail("a group at rest stays there", problem);
        }
        if self.may_be_refused() {
            return;
        }
        let after = self.shape();
        if before != after {
            self.fail(
                "a group at rest stays there",
                format!("it was {before:?} and is {after:?}"),
            );
        }
    }

    /// Who has what, in which epochs.
    fn shape(&self) -> Vec<(i32, Vec<(ByteString, i32)>)> {
        let nodes = self.nodes.iter();
        nodes
            .filter(|node| node.is_alive && !node.is_leaving)
            .map(|node| {
                let epoch = node.member.identity().map_or(-1, |identity| identity.epoch);
                (epoch, node.partitions.keys().cloned().collect())
            })
            .collect()
    }
}

fn nodes_start(world: &World, group: &Id) -> bool {
    let mut nodes = world.nodes.iter();
    nodes.any(|node| node.role.group == *group && node.starts_at.is_some())
}
