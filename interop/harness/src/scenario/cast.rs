//! The members of a group, each a process of its own, and what they have said.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::ledger::Ledger;
use crate::agent::{Agent, Event, Protocol};
use crate::failure::Failure;
use crate::process::Process;
use crate::run::Run;

/// From SIGTERM to the end of a member's process.
const CLOSE_LIMIT: Duration = Duration::from_secs(20);

/// How to join the group.
#[derive(Debug, Clone)]
pub(super) struct Joining<'a> {
    pub(super) address: String,
    pub(super) topic: &'a str,
    pub(super) group: &'a str,
    pub(super) protocol: Protocol,
    pub(super) instance_id: Option<&'a str>,
    pub(super) assignor: Option<&'a str>,
    /// Where it starts without a committed offset; `None`: at the beginning.
    pub(super) reset: Option<&'a str>,
    /// How long it holds what it is first told to let go of, and its `max.poll.interval.ms`.
    pub(super) holds_ms: Option<(u32, u32)>,
}

/// A member of the group.
pub(super) struct Member {
    process: Process,
    /// Whether it is to be running: neither killed nor closed.
    pub(super) live: bool,
    closed: bool,
    /// The partitions that it says it owns.
    pub(super) owned: BTreeSet<i32>,
    /// How often it was told that its partitions changed.
    pub(super) changes: usize,
    /// What it is holding although it is to let go of it.
    pub(super) held: BTreeSet<i32>,
    /// Whether commits for what it was holding were acknowledged.
    pub(super) late_commits: Vec<bool>,
}

/// All members that a scenario has started.
pub(super) struct Cast {
    members: Vec<Member>,
    pub(super) ledger: Ledger,
    /// All that was delivered, in order: to which member, of which partition, which offset.
    pub(super) delivered: Vec<(usize, i32, i64)>,
    sender: Sender<(usize, Option<Result<Event, Failure>>)>,
    events: Receiver<(usize, Option<Result<Event, Failure>>)>,
    /// While the broker is being restarted, and until the group is whole again,
    /// a commit may fail.
    pub(super) commits_may_fail: bool,
}

impl Cast {
    pub(super) fn new() -> Self {
        let (sender, events) = mpsc::channel();
        let ledger = Ledger::default();
        Self {
            members: Vec::new(),
            ledger,
            delivered: Vec::new(),
            sender,
            events,
            commits_may_fail: false,
        }
    }

    /// Starts a member and gives its number.
    pub(super) fn join(
        &mut self,
        run: &Run,
        agent: &Agent,
        joining: &Joining<'_>,
    ) -> Result<usize, Failure> {
        let number = self.members.len();
        let mut command = agent.command();
        command.args([
            "consume",
            "--bootstrap",
            &joining.address,
            "--topic",
            joining.topic,
        ]);
        command.args([
            "--group",
            joining.group,
            "--protocol",
            joining.protocol.name(),
        ]);
        for (option, value) in [
            ("--instance-id", joining.instance_id),
            ("--assignor", joining.assignor),
            ("--reset", joining.reset),
        ] {
            if let Some(value) = value {
                command.args([option, value]);
            }
        }
        if let Some((hold_ms, limit_ms)) = joining.holds_ms {
            command.args(["--hold-ms", &hold_ms.to_string()]);
            command.args(["--max-poll-ms", &limit_ms.to_string()]);
        }
        let sender = self.sender.clone();
        let name = format!("member-{number}-{}", agent.name);
        let process = Process::start_with_lines(command, &name, run.logs(), move |line| {
            let _ = sender.send((number, line.map(Event::parse)));
        })?;
        let (owned, changes) = (BTreeSet::new(), 0);
        self.members.push(Member {
            process,
            live: true,
            closed: false,
            owned,
            changes,
            held: BTreeSet::new(),
            late_commits: Vec::new(),
        });
        Ok(number)
    }

    pub(super) fn member(&self, number: usize) -> &Member {
        &self.members[number]
    }

    /// Kills a member where it stands, and takes in what it still said.
    pub(super) fn kill(&mut self, number: usize) -> Result<(), Failure> {
        self.members[number].live = false;
        self.ledger.killed(number);
        self.members[number].process.kill();
        self.until_ended(number)?;
        self.members[number].owned.clear();
        Ok(())
    }

    /// Sends a member's process a signal.
    pub(super) fn signal(&self, number: usize, signal: Signal) {
        self.members[number].process.signal(signal);
    }

    /// Asks a member to leave, and waits until it has.
    pub(super) fn close(&mut self, number: usize) -> Result<(), Failure> {
        self.members[number].live = false;
        self.members[number].process.signal(Signal::TERM);
        self.until_ended(number)?;
        let member = &mut self.members[number];
        let status = member.process.wait(CLOSE_LIMIT)?;
        if !status.success() {
            return Err(member.process.failed(status).during("closing"));
        }
        if !member.closed {
            let tail = member.process.tail();
            return Err(Failure::new(format!(
                "{} did not close{tail}",
                member.process.name()
            )));
        }
        member.owned.clear();
        Ok(())
    }

    fn until_ended(&mut self, number: usize) -> Result<(), Failure> {
        let deadline = Instant::now() + CLOSE_LIMIT;
        let mut ended = false;
        while !ended {
            ended = self
                .take_one(deadline)?
                .is_some_and(|(from, end)| from == number && end);
            if Instant::now() >= deadline {
                let tail = self.members[number].process.tail();
                let name = self.members[number].process.name();
                return Err(Failure::new(format!("{name} did not end{tail}")));
            }
        }
        Ok(())
    }

    /// Takes in what members say until `condition` holds.
    pub(super) fn until(
        &mut self,
        what: &str,
        limit: Duration,
        mut condition: impl FnMut(&Self) -> Result<bool, Failure>,
    ) -> Result<(), Failure> {
        let deadline = Instant::now() + limit;
        while !condition(self)? {
            if Instant::now() >= deadline {
                let said = self.describe();
                return Err(Failure::new(format!(
                    "{what}: not within {} s; {said}",
                    limit.as_secs()
                )));
            }
            self.take_one(deadline.min(Instant::now() + Duration::from_millis(50)))?;
        }
        Ok(())
    }

    /// Takes in what members say, for so long.
    pub(super) fn listen(&mut self, time: Duration) -> Result<(), Failure> {
        let deadline = Instant::now() + time;
        while Instant::now() < deadline {
            self.take_one(deadline)?;
        }
        Ok(())
    }

    /// Whether exactly these members own all `partitions`, none of them by two.
    pub(super) fn shares(&self, members: &[usize], partitions: usize) -> bool {
        let owned: Vec<i32> = members
            .iter()
            .flat_map(|&number| self.members[number].owned.iter().copied())
            .collect();
        let distinct: BTreeSet<i32> = owned.iter().copied().collect();
        owned.len() == partitions
            && distinct.len() == partitions
            && members
                .iter()
                .all(|&number| !self.members[number].owned.is_empty())
    }

    /// Takes one thing that a member said, if there is one before `deadline`: who said it, and
    /// whether it was the end of its output.
    fn take_one(&mut self, deadline: Instant) -> Result<Option<(usize, bool)>, Failure> {
        let limit = deadline.saturating_duration_since(Instant::now());
        let (number, said) = match self.events.recv_timeout(limit) {
            Ok(received) => received,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return Ok(None),
        };
        match said {
            Some(event) => {
                self.take(number, event?)?;
                Ok(Some((number, false)))
            }
            None if self.members[number].live => {
                let process = &mut self.members[number].process;
                let status = process.wait(CLOSE_LIMIT)?;
                Err(process.failed(status))
            }
            None => Ok(Some((number, true))),
        }
    }

    fn take(&mut self, number: usize, event: Event) -> Result<(), Failure> {
        let member = &mut self.members[number];
        match &event {
            Event::Committed { offsets } | Event::CommitFailed { offsets, .. }
                if offsets.iter().any(|(index, _)| member.held.contains(index)) =>
            {
                let is_acknowledged = matches!(event, Event::Committed { .. });
                member.late_commits.push(is_acknowledged);
            }
            Event::Revoked { .. } | Event::Lost { .. } => member.held.clear(),
            _ => {}
        }
        match event {
            Event::Holds { partitions } => member.held.extend(partitions),
            Event::Assigned { partitions } => {
                member.changes += 1;
                member.owned.extend(partitions);
            }
            Event::Revoked { partitions } | Event::Lost { partitions } => {
                member.changes += 1;
                member
                    .owned
                    .retain(|partition| !partitions.contains(partition));
                for partition in partitions {
                    self.ledger.gone(number, partition);
                }
            }
            Event::Records { records } => {
                let name = member.process.name();
                for (partition, offset, value) in &records {
                    // What was printed by a member that has died counts as it stands.
                    if member.live && !member.owned.contains(partition) {
                        return Err(Failure::new(format!(
                            "{name} was given {value} of partition {partition}, offset {offset}, \
                             which it does not own"
                        )));
                    }
                }
                self.ledger.delivered(number, &records);
                let places = records
                    .iter()
                    .map(|(index, offset, _)| (number, *index, *offset));
                self.delivered.extend(places);
            }
            Event::Committed { offsets } => {
                for (partition, next) in offsets {
                    self.ledger.committed(number, partition, next);
                }
            }
            Event::CommitFailed { offsets, .. } if self.commits_may_fail => {
                for (partition, next) in offsets {
                    self.ledger.commit_failed(number, partition, next);
                }
            }
            Event::CommitOvertaken { offsets } => {
                for (partition, next) in offsets {
                    self.ledger.commit_failed(number, partition, next);
                }
            }
            // Without an excuse the records stay open: right if a repetition succeeds.
            Event::CommitFailed { .. } => {}
            Event::Closed => member.closed = true,
            other => {
                let name = member.process.name();
                return Err(Failure::new(format!("{name} said {other:?}")));
            }
        }
        Ok(())
    }

    /// Who owns what, for the message of a failure.
    fn describe(&self) -> String {
        let mut text = format!("{} different values delivered", self.ledger.distinct());
        for member in self.members.iter().filter(|member| member.live) {
            let _ = write!(text, ", {} owns {:?}", member.process.name(), member.owned);
        }
        text
    }
}
