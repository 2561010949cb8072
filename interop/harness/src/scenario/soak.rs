//! Members of kohort's own client that join, leave and die, for as long as one wants: a group of
//! each protocol on one topic, into which a producer writes all the time.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::cast::{Cast, Joining};
use super::ledger::Verdict;
use super::stage::{DELIVERY_LIMIT, GROUP_LIMIT, PARTITIONS, TOPIC};
use crate::agent::{Agent, Protocol, catalog};
use crate::broker::Broker;
use crate::failure::Failure;
use crate::report::Passed;
use crate::run::Run;

/// Members of one group.
const MEMBERS: Range<usize> = 2..6;
/// Milliseconds from one happening to the next: some meet the rebalance of the one before.
const PAUSE_MS: Range<u64> = 1_000..8_000;
/// How often to say how it goes.
const NEWS: Duration = Duration::from_secs(60);

/// What is asked of a soak.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Soak {
    pub(crate) length: Duration,
    /// Records a second
    pub(crate) rate: u64,
    /// What chooses who joins, leaves and dies when.
    pub(crate) seed: u64,
}

pub(crate) fn soak(run: &Run, soak: Soak) -> Result<Passed, Failure> {
    let agent = Agent::install(&catalog::KOHORT, run)?;
    let broker = run.start_broker()?;
    agent.create(run, &broker, TOPIC, PARTITIONS)?;
    let total = soak.rate * soak.length.as_secs();
    let mut producing = agent.produce(run, &broker, TOPIC, "lz4", 0..total, soak.rate)?;
    let stop = Arc::new(AtomicBool::new(false));
    let played = std::thread::scope(|scope| {
        let groups = Protocol::ALL.map(|protocol| {
            let (agent, broker, stop) = (&agent, &broker, stop.clone());
            scope.spawn(move || {
                let mut group = Group::new(run, agent, broker, protocol, soak, &stop);
                let played = group.play(total);
                if played.is_err() {
                    stop.store(true, Ordering::Relaxed);
                }
                played.map_err(|failure| failure.during(protocol.name()))
            })
        });
        groups.map(|group| {
            let panicked = |_| Err(Failure::new("the soak of a group panicked"));
            group.join().unwrap_or_else(panicked)
        })
    });
    let mut notes = Vec::new();
    for (protocol, group) in Protocol::ALL.iter().zip(played) {
        let note = group.map_err(|failure| {
            Failure::new(format!("seed {}: {failure}{}", soak.seed, broker.tail()))
        })?;
        notes.push(format!("{}: {note}", protocol.name()));
    }
    producing.check()?;
    producing.finish()?;
    Ok(Passed {
        note: format!("seed {}; {}", soak.seed, notes.join("; ")),
        clients: vec![agent.client],
        ..Passed::default()
    })
}

/// One of the groups.
struct Group<'a> {
    run: &'a Run,
    agent: &'a Agent,
    address: String,
    protocol: Protocol,
    soak: Soak,
    stop: &'a AtomicBool,
    random: fastrand::Rng,
    cast: Cast,
    /// The numbers of those that are to be running.
    members: Vec<usize>,
    joined: usize,
    left: usize,
    killed: usize,
}

impl<'a> Group<'a> {
    fn new(
        run: &'a Run,
        agent: &'a Agent,
        broker: &Broker,
        protocol: Protocol,
        soak: Soak,
        stop: &'a AtomicBool,
    ) -> Self {
        Self {
            run,
            agent,
            address: broker.address(),
            protocol,
            soak,
            stop,
            random: fastrand::Rng::with_seed(soak.seed + protocol as u64),
            cast: Cast::new(),
            members: Vec::new(),
            joined: 0,
            left: 0,
            killed: 0,
        }
    }

    fn play(&mut self, total: u64) -> Result<String, Failure> {
        let began = Instant::now();
        let mut news = began + NEWS;
        while began.elapsed() < self.soak.length {
            self.happen()?;
            let pause = Duration::from_millis(self.random.u64(PAUSE_MS));
            self.cast.listen(pause)?;
            if self.stop.load(Ordering::Relaxed) {
                return Err(Failure::new("stopped, since the other group has failed"));
            }
            if Instant::now() >= news {
                news += NEWS;
                let minutes = began.elapsed().as_secs() / 60;
                let name = self.protocol.name();
                println!("   {minutes:3} min, {name}: {}", self.so_far());
            }
        }
        self.cast
            .until("all records delivered", DELIVERY_LIMIT, |cast| {
                Ok(cast.ledger.distinct() as u64 >= total)
            })?;
        let members = self.members.clone();
        self.cast
            .until("the last members sharing", GROUP_LIMIT, |cast| {
                Ok(cast.shares(&members, PARTITIONS))
            })?;
        for member in members {
            self.cast.close(member)?;
        }
        let verdict = self.cast.ledger.judge(total, self.agent.idempotent);
        let verdict: Verdict = verdict.map_err(Failure::new)?;
        Ok(format!(
            "{} joined, {} left, {} killed, {verdict}",
            self.joined, self.left, self.killed
        ))
    }

    /// Somebody comes, goes or dies.
    fn happen(&mut self) -> Result<(), Failure> {
        let few = self.members.len() < MEMBERS.start;
        let many = self.members.len() + 1 >= MEMBERS.end;
        if few || (self.random.bool() && !many) {
            return self.join();
        }
        let member = self.random.usize(0..self.members.len());
        let member = self.members.remove(member);
        if self.random.bool() {
            self.killed += 1;
            self.cast.kill(member)
        } else {
            self.left += 1;
            self.cast.close(member)
        }
    }

    fn join(&mut self) -> Result<(), Failure> {
        let joining = Joining {
            address: self.address.clone(),
            topic: TOPIC,
            group: self.protocol.name(),
            protocol: self.protocol,
            instance_id: None,
            assignor: None,
            reset: None,
            holds_ms: None,
        };
        let number = self.cast.join(self.run, self.agent, &joining)?;
        self.members.push(number);
        self.joined += 1;
        Ok(())
    }

    fn so_far(&self) -> String {
        format!(
            "{} joined, {} left, {} killed, {} records seen",
            self.joined,
            self.left,
            self.killed,
            self.cast.ledger.distinct()
        )
    }
}
