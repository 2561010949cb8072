//! What every scenario has: a fresh broker, a topic, a group, producers.

use std::fs::OpenOptions;
use std::io::Write;
use std::time::Duration;

use super::cast::{Cast, Joining};
use super::ledger::Verdict;
use crate::agent::{Agent, Event, Protocol, Working, catalog};
use crate::broker::Broker;
use crate::failure::Failure;
use crate::process::began;
use crate::report::Passed;
use crate::run::Run;
use crate::wait::wait_for;

pub(super) const TOPIC: &str = "events";
pub(super) const GROUP: &str = "readers";
/// One each for a member of every library.
pub(super) const PARTITIONS: usize = 8;

/// Time for members to start and to share out the partitions, or to notice that
/// one is gone: a session timeout of 6 s, a slow machine.
pub(super) const GROUP_LIMIT: Duration = Duration::from_secs(60);
/// Time for all that was produced to be delivered.
pub(super) const DELIVERY_LIMIT: Duration = Duration::from_secs(60);

/// Records a second, for producers that something happens to.
pub(super) const RATE: u64 = 300;

pub(super) struct Stage<'a> {
    pub(super) run: &'a Run,
    pub(super) broker: Broker,
    pub(super) cast: Cast,
    address: String,
    pub(super) protocol: Protocol,
    administrator: Agent,
    /// Values below this have been produced.
    pub(super) produced: u64,
    /// Whether all producers so far were idempotent.
    idempotent: bool,
    /// What is going on, as it was last noted.
    now: &'static str,
}

/// Plays a scenario of one library's members on a stage of its own. What goes wrong is told with
/// what was going on.
pub(super) fn with_members_of(
    source: &catalog::Source,
    run: &Run,
    protocol: Protocol,
    play: impl FnOnce(&mut Stage<'_>, &Agent) -> Result<Passed, Failure>,
) -> Result<Passed, Failure> {
    let agent = Agent::install(source, run)?;
    let mut stage = Stage::set(run, &agent, protocol)?;
    let played = play(&mut stage, &agent);
    played.map_err(|failure| stage.explain(failure))
}

impl<'a> Stage<'a> {
    /// Starts a broker, and creates the topic with `creator`.
    pub(super) fn set(run: &'a Run, creator: &Agent, protocol: Protocol) -> Result<Self, Failure> {
        Self::set_with(run, creator, protocol, &[])
    }

    /// The same with more settings of the broker.
    pub(super) fn set_with(
        run: &'a Run,
        creator: &Agent,
        protocol: Protocol,
        settings: &'static [(&'static str, &'static str)],
    ) -> Result<Self, Failure> {
        let administrator = Agent::install(&catalog::ADMINISTRATOR, run)?;
        let broker = run.start_broker_with("broker", settings)?;
        creator.create(run, &broker, TOPIC, PARTITIONS)?;
        let (address, cast) = (broker.address(), Cast::new());
        let (produced, idempotent) = (0, true);
        Ok(Self {
            run,
            broker,
            cast,
            address,
            protocol,
            administrator,
            produced,
            idempotent,
            now: "the beginning",
        })
    }

    /// Starts a member, with options.
    pub(super) fn join_as(
        &mut self,
        agent: &Agent,
        instance_id: Option<&str>,
        assignor: Option<&str>,
    ) -> Result<usize, Failure> {
        let joining = Joining {
            instance_id,
            assignor,
            ..self.joining()
        };
        self.cast.join(self.run, agent, &joining)
    }

    pub(super) fn joining(&self) -> Joining<'static> {
        Joining {
            address: self.address.clone(),
            topic: TOPIC,
            group: GROUP,
            protocol: self.protocol,
            instance_id: None,
            assignor: None,
            reset: None,
            holds_ms: None,
        }
    }

    /// Starts a member that holds what it is first told to let go of for so long, and whose
    /// `max.poll.interval.ms` is the other.
    pub(super) fn join_to_hold(
        &mut self,
        agent: &Agent,
        assignor: Option<&str>,
        holds_ms: (u32, u32),
    ) -> Result<usize, Failure> {
        let joining = Joining {
            assignor,
            holds_ms: Some(holds_ms),
            ..self.joining()
        };
        self.cast.join(self.run, agent, &joining)
    }

    /// Starts a member that starts at the end of partitions without a committed offset.
    pub(super) fn join_at_end(&mut self, agent: &Agent) -> Result<usize, Failure> {
        let joining = Joining {
            reset: Some("latest"),
            ..self.joining()
        };
        self.cast.join(self.run, agent, &joining)
    }

    pub(super) fn join(&mut self, agent: &Agent) -> Result<usize, Failure> {
        self.join_as(agent, None, None)
    }

    /// Produces `count` records as fast as the agent can.
    pub(super) fn produce(
        &mut self,
        agent: &Agent,
        compression: &str,
        count: u64,
    ) -> Result<(), Failure> {
        let values = self.next_values(agent, count);
        agent
            .produce(self.run, &self.broker, TOPIC, compression, values, 0)?
            .finish()
    }

    /// Produces `count` records at `RATE`; when a third of them was delivered, `event` happens.
    /// Returns when all were acknowledged.
    pub(super) fn produce_during(
        &mut self,
        agent: &Agent,
        count: u64,
        event: impl FnOnce(&mut Self) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let begun = self.cast.ledger.distinct() + count as usize / 3;
        let mut producing = self.begin_producing(agent, count)?;
        self.cast
            .until("a third of the records", DELIVERY_LIMIT, |cast| {
                producing.check()?;
                Ok(cast.ledger.distinct() >= begun)
            })?;
        event(self)?;
        producing.finish()
    }

    /// Begins to produce `count` records at `RATE`.
    pub(super) fn begin_producing(
        &mut self,
        agent: &Agent,
        count: u64,
    ) -> Result<Working, Failure> {
        let values = self.next_values(agent, count);
        agent.produce(self.run, &self.broker, TOPIC, "none", values, RATE)
    }

    /// Writes what happens next into `timeline.log`, beside the logs of the processes.
    pub(super) fn note(&mut self, what: &'static str) -> Result<(), Failure> {
        self.now = what;
        let path = self.run.logs().join("timeline.log");
        let mut file = OpenOptions::new().create(true).append(true).open(path)?;
        writeln!(file, "{:8.3} {what}", began().elapsed().as_secs_f64())?;
        Ok(())
    }

    /// Adds to a failure what was going on, and the end of the broker's log.
    pub(super) fn explain(&self, failure: Failure) -> Failure {
        let tail = self.broker.tail();
        Failure::new(format!("{}: {failure}\n   broker:{tail}", self.now))
    }

    fn next_values(&mut self, agent: &Agent, count: u64) -> std::ops::Range<u64> {
        let start = self.produced;
        self.produced += count;
        self.idempotent &= agent.idempotent;
        start..self.produced
    }

    /// Waits until exactly these members own all partitions.
    pub(super) fn until_shared_by(&mut self, members: &[usize]) -> Result<(), Failure> {
        let what = format!("members {members:?} sharing {PARTITIONS} partitions");
        self.cast.until(&what, GROUP_LIMIT, |cast| {
            Ok(cast.shares(members, PARTITIONS))
        })
    }

    /// Waits until all that was produced was delivered at least once.
    pub(super) fn until_delivered(&mut self) -> Result<(), Failure> {
        let total = self.produced;
        self.cast
            .until("all records delivered", DELIVERY_LIMIT, |cast| {
                Ok(cast.ledger.distinct() as u64 >= total)
            })
    }

    /// Waits until an administrator sees a stable group of `members` members
    /// that share all partitions and have committed everything.
    pub(super) fn until_settled(&mut self, members: usize) -> Result<(), Failure> {
        self.until_settled_in(TOPIC, members)
    }

    /// The same of another topic.
    pub(super) fn until_settled_in(&mut self, topic: &str, members: usize) -> Result<(), Failure> {
        let mut seen = String::new();
        let settled = wait_for(
            "a stable group with everything committed",
            GROUP_LIMIT,
            || {
                // Members go on meanwhile.
                self.cast.until("", Duration::ZERO, |_| Ok(true))?;
                let group = self.administrator.describe(
                    self.run,
                    &self.broker,
                    topic,
                    GROUP,
                    self.protocol,
                )?;
                seen = format!("{group:?}");
                Ok(is_settled(&group, members).then_some(()))
            },
        );
        settled.map_err(|failure| Failure::new(format!("{failure}; last seen: {seen}")))
    }

    /// The rule of the ledger over everything that happened.
    pub(super) fn judge(&self) -> Result<Verdict, Failure> {
        self.cast
            .ledger
            .judge(self.produced, self.idempotent)
            .map_err(Failure::new)
    }
}

fn is_settled(group: &Event, members_wanted: usize) -> bool {
    let Event::Group {
        state,
        members,
        committed,
        ends,
    } = group
    else {
        return false;
    };
    let mut owned: Vec<i32> = members
        .iter()
        .flat_map(|member| member.partitions.iter().copied())
        .collect();
    owned.sort_unstable();
    let mut committed = committed.clone();
    committed.sort_unstable();
    let mut ends = ends.clone();
    ends.sort_unstable();
    // A partition without records has an end of 0 and no commit.
    ends.retain(|&(_, end)| end > 0);
    committed.retain(|&(_, offset)| offset > 0);
    state == "Stable"
        && members.len() == members_wanted
        && owned.into_iter().eq(0..PARTITIONS as i32)
        && committed == ends
}
