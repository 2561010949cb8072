//! What happened: who owns which partition, who processed which record, and whether all is well.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use serde_json::Value;

use super::PARTITIONS;
use crate::{failure::Failure, output::line};

/// What happened.
pub(super) struct Ledger {
    began: Instant,
    expected: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    partitions: Vec<Partition>,
    members: BTreeMap<&'static str, MemberCount>,
    /// By partition and offset, who processed the record.
    processed: HashMap<(i32, i64), Vec<&'static str>>,
    regions: BTreeMap<String, Region>,
    strongest: Vec<(f64, String)>,
    killed: Vec<&'static str>,
    rewound: Option<Rewound>,
    events: Vec<(Duration, String)>,
    failure: Option<String>,
}

/// A rewind that has happened, to the first record.
#[derive(Debug, Clone, Copy)]
struct Rewound {
    partition: i32,
    from: i64,
}

/// A partition, as it is shown.
#[derive(Debug, Clone, Default)]
pub(super) struct Partition {
    pub(super) owner: Option<&'static str>,
    pub(super) position: i64,
    pub(super) end: i64,
    written: i64,
}

/// A member, as it is shown.
#[derive(Debug, Clone, Default)]
pub(super) struct MemberCount {
    pub(super) records: usize,
    pub(super) is_killed: bool,
}

#[derive(Debug, Default)]
struct Region {
    count: usize,
    strongest: f64,
}

/// All that is shown at one moment.
#[derive(Debug)]
pub(super) struct View {
    pub(super) elapsed: Duration,
    pub(super) partitions: Vec<Partition>,
    pub(super) members: Vec<(&'static str, MemberCount)>,
    pub(super) events: Vec<(Duration, String)>,
    pub(super) strongest: Option<(f64, String)>,
}

impl Ledger {
    pub(super) fn new(expected: usize) -> Ledger {
        let state = State {
            partitions: vec![Partition::default(); PARTITIONS as usize],
            ..State::default()
        };
        Ledger {
            began: Instant::now(),
            expected,
            state: Mutex::new(state),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn began(&self) -> Instant {
        self.began
    }

    pub(super) fn event(&self, text: impl Into<String>) {
        self.lock().events.push((self.began.elapsed(), text.into()));
    }

    pub(super) fn fail(&self, text: String) {
        self.lock().failure.get_or_insert(text);
    }

    pub(super) fn failure(&self) -> Option<String> {
        self.lock().failure.clone()
    }

    pub(super) fn produced(&self, partition: i32) {
        if let Some(partition) = self.lock().partitions.get_mut(partition as usize) {
            partition.written += 1;
            partition.end = partition.end.max(partition.written);
        }
    }

    pub(super) fn assigned(&self, name: &'static str, partitions: &[i32]) {
        self.event(format!("{name} gets {}", list(partitions)));
        let mut state = self.lock();
        state.members.entry(name).or_default();
        for &number in partitions {
            if let Some(partition) = state.partitions.get_mut(number as usize) {
                partition.owner = Some(name);
            }
        }
    }

    pub(super) fn released(&self, name: &'static str, partitions: &[i32], how: &str) {
        self.event(format!("{name} {how} {}", list(partitions)));
        let mut state = self.lock();
        for &number in partitions {
            if let Some(partition) = state.partitions.get_mut(number as usize)
                && partition.owner == Some(name)
            {
                partition.owner = None;
            }
        }
    }

    /// The member that has processed the most records.
    pub(super) fn busiest(&self) -> Option<&'static str> {
        let state = self.lock();
        let busiest = state.members.iter().max_by_key(|(_, count)| count.records);
        busiest.map(|(&name, _)| name)
    }

    pub(super) fn kill(&self, name: &'static str) {
        self.event(format!("{name} is killed without leaving the group"));
        let mut state = self.lock();
        state.killed.push(name);
        state.members.entry(name).or_default().is_killed = true;
    }

    /// Whether every partition has an owner that lives.
    pub(super) fn has_recovered(&self) -> bool {
        let state = self.lock();
        let lives = |name| !state.killed.contains(&name);
        state
            .partitions
            .iter()
            .all(|partition| partition.owner.is_some_and(lives))
    }

    /// The partition with the most records that have been processed.
    pub(super) fn longest(&self) -> i32 {
        let state = self.lock();
        let partitions = (0..).zip(&state.partitions);
        let longest = partitions.max_by_key(|(_, partition)| partition.position);
        longest.map_or(0, |(number, _)| number)
    }

    pub(super) fn rewound(&self, partition: i32, from: i64) {
        self.event(format!(
            "partition {partition} is rewound from {from} to 0, and assigned again"
        ));
        self.lock().rewound = Some(Rewound { partition, from });
    }

    /// What a member does with a record: it counts per region and remembers the strongest.
    pub(super) fn processed(
        &self,
        name: &'static str,
        partition: i32,
        offset: i64,
        value: Option<&[u8]>,
    ) {
        let mut state = self.lock();
        let state = &mut *state;
        // A killed member may still be in the middle of a step; its output is gone.
        if state.killed.contains(&name) {
            return;
        }
        state.members.entry(name).or_default().records += 1;
        let deliveries = state.processed.entry((partition, offset)).or_default();
        deliveries.push(name);
        let is_first = deliveries.len() == 1;
        if let Some(partition) = state.partitions.get_mut(partition as usize) {
            partition.position = offset + 1;
            // A record may be consumed before its producer has heard that it was written.
            partition.end = partition.end.max(partition.position);
        }
        if is_first {
            state.count(value.unwrap_or_default());
        }
    }

    /// Whether everything was written and processed, to the end of each partition.
    pub(super) fn is_complete(&self) -> bool {
        let state = self.lock();
        let produced: i64 = state
            .partitions
            .iter()
            .map(|partition| partition.written)
            .sum();
        let mut partitions = state.partitions.iter();
        produced == self.expected as i64
            && state.processed.len() == self.expected
            && partitions.all(|partition| partition.position == partition.end)
    }

    pub(super) fn view(&self) -> View {
        let state = self.lock();
        View {
            elapsed: self.began.elapsed(),
            partitions: state.partitions.clone(),
            members: state
                .members
                .iter()
                .map(|(&name, count)| (name, count.clone()))
                .collect(),
            events: state.events.clone(),
            strongest: state.strongest.first().cloned(),
        }
    }

    /// Prints what came of it all. An error if a record is missing, or came twice for no reason.
    pub(super) fn report(&self, committed: &[Option<i64>]) -> Result<(), Failure> {
        let state = self.lock();
        line("What the group found out:")?;
        for (magnitude, place) in state.strongest.iter().take(3) {
            line(format_args!("  magnitude {magnitude:.1}  {place}"))?;
        }
        let mut regions: Vec<_> = state.regions.iter().collect();
        regions.sort_by_key(|(_, region)| std::cmp::Reverse(region.count));
        let regions: Vec<_> = regions
            .iter()
            .take(4)
            .map(|(name, region)| {
                format!("{name} {} (up to {:.1})", region.count, region.strongest)
            })
            .collect();
        line(format_args!("  most earthquakes: {}\n", regions.join(", ")))?;
        line("Check:")?;
        let checks = [
            self.check_complete(&state),
            check_again(&state),
            check_rewound(&state),
            check_committed(&state, committed),
        ];
        for check in &checks {
            let (mark, text) = match check {
                Ok(text) => ("ok", text),
                Err(text) => ("FAILED", text),
            };
            line(format_args!("  {mark}: {text}"))?;
        }
        if checks.iter().all(Result::is_ok) {
            Ok(())
        } else {
            Err(Failure::new("the demo did not go as it should"))
        }
    }

    fn check_complete(&self, state: &State) -> Result<String, String> {
        let produced: i64 = state
            .partitions
            .iter()
            .map(|partition| partition.written)
            .sum();
        let text = format!(
            "{produced} records were written, {} of them were delivered",
            state.processed.len()
        );
        let complete = produced == self.expected as i64 && state.processed.len() == self.expected;
        if complete {
            Ok(format!("{text}: none is lost"))
        } else {
            Err(format!(
                "{text}, {} are missing",
                self.expected - state.processed.len()
            ))
        }
    }
}

impl State {
    fn count(&mut self, value: &[u8]) {
        let Ok(quake) = serde_json::from_slice::<Value>(value) else {
            self.failure = Some("a record is not the one that was written".to_owned());
            return;
        };
        let place = quake["place"].as_str().unwrap_or_default();
        let magnitude = quake["magnitude"].as_f64().unwrap_or_default();
        let region = place.rsplit(", ").next().unwrap_or_default();
        let region = match region {
            "CA" => "California",
            region => region,
        };
        let region = self.regions.entry(region.to_owned()).or_default();
        region.count += 1;
        region.strongest = region.strongest.max(magnitude);
        self.strongest.push((magnitude, place.to_owned()));
        self.strongest.sort_by(|a, b| b.0.total_cmp(&a.0));
        self.strongest.truncate(3);
    }
}

/// How often a record came again, other than since its partition was rewound.
fn again(state: &State, (partition, offset): (i32, i64), deliveries: &[&'static str]) -> usize {
    let is_rewound = state
        .rewound
        .is_some_and(|rewound| rewound.partition == partition && offset < rewound.from);
    (deliveries.len() - 1).saturating_sub(usize::from(is_rewound))
}

/// Records may come again only since the group was rewound, or after a member was killed: those that
/// it had processed and not yet committed.
fn check_again(state: &State) -> Result<String, String> {
    let (mut after_kill, mut for_no_reason) = (0, 0);
    for (&place, deliveries) in &state.processed {
        let killed = |name| state.killed.contains(name);
        match again(state, place, deliveries) {
            0 => {}
            1 if killed(&deliveries[0]) => after_kill += 1,
            count => for_no_reason += count,
        }
    }
    let killed = state.killed.join(", ");
    match (after_kill, for_no_reason) {
        (0, 0) => Ok(format!("{killed} had committed all that it had processed")),
        (count, 0) => Ok(format!(
            "{count} were delivered again: {killed} had processed them, and was killed before it \
             had committed that"
        )),
        (_, count) => Err(format!("{count} were delivered again for no reason")),
    }
}

/// A rewind brings back every record of the partition.
fn check_rewound(state: &State) -> Result<String, String> {
    let Some(Rewound { partition, from }) = state.rewound else {
        return Err("nothing was rewound".to_owned());
    };
    // With what came again after the kill, which the other check counts.
    let came_again = |&offset: &i64| {
        let deliveries = state.processed.get(&(partition, offset));
        deliveries.is_some_and(|deliveries| deliveries.len() >= 2)
    };
    let count = (0..from).filter(came_again).count();
    let text = format!("partition {partition} was rewound while the group ran");
    if count as i64 == from {
        Ok(format!(
            "{text}: its {from} records were delivered once more"
        ))
    } else {
        Err(format!(
            "{text}: {count} of its {from} records were delivered once more"
        ))
    }
}

fn check_committed(state: &State, committed: &[Option<i64>]) -> Result<String, String> {
    let ends: Vec<_> = state
        .partitions
        .iter()
        .map(|partition| partition.end)
        .collect();
    let committed: Vec<_> = committed
        .iter()
        .map(|offset| offset.unwrap_or_default())
        .collect();
    if ends == committed {
        Ok("the group has committed all partitions to their ends".to_owned())
    } else {
        Err(format!(
            "the group has committed {committed:?}, the ends are {ends:?}"
        ))
    }
}

fn list(partitions: &[i32]) -> String {
    let numbers: Vec<_> = partitions.iter().map(i32::to_string).collect();
    match numbers.len() {
        1 => format!("partition {}", numbers[0]),
        _ => format!("partitions {}", numbers.join(", ")),
    }
}
