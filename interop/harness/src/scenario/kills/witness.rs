//! Who asks a broker that is killed again and again for something, remembers what it acknowledged,
//! and looks after each kill whether that is still so.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use kohort_wire::{ErrorCode, Request};
use rustix::process::{Pid, Signal, kill_process};

use crate::differential::{Connection, Received, decode};
use crate::failure::Failure;

/// Between two rounds of a witness: it shares the machine with the broker.
const PAUSE: Duration = Duration::from_millis(5);
/// Between two attempts to reach a broker that is away.
const RETRY: Duration = Duration::from_millis(5);
/// For an answer; for a broker to be there again, or a coordinator to have loaded.
const LIMIT: Duration = Duration::from_secs(30);

/// The process to be killed with the next answer; 0 for none.
static STRUCK: AtomicI32 = AtomicI32::new(0);

/// Has a process killed as soon as any witness gets an answer: what that says must have been kept
/// by then. A kill at any other moment seldom falls between an answer and what should have been
/// done before it.
pub(super) fn strike(pid: Pid) {
    STRUCK.store(pid.as_raw_nonzero().get(), Ordering::SeqCst);
}

/// Nobody is to be killed any more.
pub(super) fn withhold() {
    STRUCK.store(0, Ordering::SeqCst);
}

fn strike_now() {
    if STRUCK.load(Ordering::Relaxed) != 0
        && let Some(pid) = Pid::from_raw(STRUCK.swap(0, Ordering::SeqCst))
    {
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// Why a witness stops.
#[derive(Debug)]
pub(super) enum Stop {
    /// The broker is gone: nobody knows what became of the request.
    Cut,
    /// What was acknowledged is not so.
    Fault(Failure),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Fault(failure)
    }
}

pub(super) type Outcome<T> = Result<T, Stop>;

/// A fault, in words.
pub(super) fn fault<T>(what: impl Into<String>) -> Outcome<T> {
    Err(Stop::Fault(Failure::new(what)))
}

/// One who asks and remembers.
pub(super) trait Witness: Send {
    /// What it is called in a failure.
    fn name(&self) -> String;

    /// Comes first on each new connection: what was acknowledged must be so.
    fn check(&mut self, connection: &mut Connection) -> Outcome<()>;

    /// One round of requests.
    fn work(&mut self, connection: &mut Connection) -> Outcome<()>;

    /// When there are no more kills, after `check`: everything, from the beginning.
    fn audit(&mut self, connection: &mut Connection) -> Outcome<()>;

    /// What was acknowledged: how many of what.
    fn acknowledged(&self) -> Vec<(usize, &'static str)>;
}

/// What all witnesses of a run share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// No more rounds.
    pub(super) stop: AtomicBool,
    /// How often a witness has found everything as it was acknowledged, after a connection was cut.
    pub(super) checks: AtomicUsize,
}

impl Shared {
    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Works until all is over, on one connection after the other.
pub(super) fn testify(
    witness: &mut dyn Witness,
    address: &str,
    shared: &Shared,
) -> Result<(), Failure> {
    while !shared.is_over() {
        let Ok(mut connection) = Connection::open(address) else {
            std::thread::sleep(RETRY);
            continue;
        };
        match one_life(witness, &mut connection, shared) {
            Ok(()) | Err(Stop::Cut) => {}
            Err(Stop::Fault(failure)) => {
                shared.stop.store(true, Ordering::Relaxed);
                return Err(failure.during(witness.name()));
            }
        }
    }
    Ok(())
}

fn one_life(
    witness: &mut dyn Witness,
    connection: &mut Connection,
    shared: &Shared,
) -> Outcome<()> {
    witness.check(connection)?;
    shared.checks.fetch_add(1, Ordering::Relaxed);
    while !shared.is_over() {
        witness.work(connection)?;
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

/// The last word, of a broker that is not killed any more.
pub(super) fn conclude(witness: &mut dyn Witness, address: &str) -> Result<(), Failure> {
    let mut connection = Connection::open(address)?;
    let concluded = witness
        .check(&mut connection)
        .and_then(|()| witness.audit(&mut connection));
    concluded.map_err(|stop| match stop {
        Stop::Cut => Failure::new(format!("{}: the connection was closed", witness.name())),
        Stop::Fault(failure) => failure.during(format!("{}, in the end", witness.name())),
    })
}

/// Asks and waits for the answer.
pub(super) fn ask<R: Request>(
    connection: &mut Connection,
    request: &R,
    version: i16,
) -> Outcome<R::Response> {
    connection.send(request, version)?;
    answer::<R>(connection, version)
}

/// The next answer of a connection.
pub(super) fn answer<R: Request>(
    connection: &mut Connection,
    version: i16,
) -> Outcome<R::Response> {
    match connection.receive(LIMIT)? {
        Received::Frame(frame) => {
            strike_now();
            Ok(decode::<R>(frame, version)?)
        }
        Received::Closed => Err(Stop::Cut),
        Received::NotYet => fault(format!("no answer to {} {version}", R::NAME)),
    }
}

/// Asks again while the coordinator is loading its log.
pub(super) fn ask_loaded<R: Request>(
    connection: &mut Connection,
    request: &R,
    version: i16,
    error: impl Fn(&R::Response) -> ErrorCode,
) -> Outcome<R::Response> {
    let deadline = Instant::now() + LIMIT;
    loop {
        let response = ask(connection, request, version)?;
        let loads = matches!(
            error(&response),
            ErrorCode::COORDINATOR_LOAD_IN_PROGRESS
                | ErrorCode::COORDINATOR_NOT_AVAILABLE
                | ErrorCode::NOT_COORDINATOR
        );
        if !loads || Instant::now() >= deadline {
            return Ok(response);
        }
        std::thread::sleep(RETRY);
    }
}

/// Things that are made and removed, and the one of which nobody knows: its answer was cut off.
#[derive(Debug)]
pub(super) struct Made<T> {
    prefix: String,
    /// How many there are to be.
    kept: usize,
    /// Oldest first
    there: Vec<(String, T)>,
    doubt: Option<String>,
    count: usize,
}

/// What is to be done next.
#[derive(Debug)]
pub(super) enum Next {
    Make(String),
    Remove(String),
}

impl<T: Clone + PartialEq + std::fmt::Debug> Made<T> {
    pub(super) fn new(prefix: impl Into<String>, kept: usize) -> Self {
        Self {
            prefix: prefix.into(),
            kept,
            there: Vec::new(),
            doubt: None,
            count: 0,
        }
    }

    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Makes some, then removes the oldest and makes another, in turn, soon under a name that
    /// was there before.
    pub(super) fn next(&mut self) -> Next {
        let next = match self.there.first() {
            Some((oldest, _)) if self.there.len() >= self.kept => Next::Remove(oldest.clone()),
            _ => {
                self.count += 1;
                Next::Make(format!("{}{}", self.prefix, self.count % (2 * self.kept)))
            }
        };
        let (Next::Make(name) | Next::Remove(name)) = &next;
        self.doubt = Some(name.clone());
        next
    }

    pub(super) fn made(&mut self, name: String, what: T) {
        self.doubt = None;
        self.there.push((name, what));
    }

    pub(super) fn removed(&mut self, name: &str) {
        self.doubt = None;
        self.there.retain(|(known, _)| known != name);
    }

    /// How many changes were acknowledged.
    pub(super) fn changes(&self) -> usize {
        2 * self.count - self.there.len()
    }

    /// Compares with what the broker has; of what is in doubt its word is taken.
    pub(super) fn compare(&mut self, mut found: Vec<(String, T)>) -> Outcome<()> {
        let doubt = self.doubt.take();
        let in_doubt = |name: &String| Some(name) == doubt.as_ref();
        for (name, what) in &self.there {
            let is_found = found.iter().any(|it| it.0 == *name && it.1 == *what);
            if !is_found && !in_doubt(name) {
                return fault(format!("{name} ({what:?}) is gone; there are {found:?}"));
            }
        }
        for (name, what) in &found {
            let is_known = self.there.iter().any(|it| it.0 == *name);
            if !is_known && !in_doubt(name) {
                return fault(format!("{name} ({what:?}) is there again"));
            }
        }
        // What was in doubt and is new is the youngest.
        found.sort_by_key(|(name, _)| {
            let known = self.there.iter().position(|it| it.0 == *name);
            known.unwrap_or(usize::MAX)
        });
        self.there = found;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Made, Next};

    fn two() -> Made<i32> {
        let mut made = Made::new("m", 2);
        for value in 1..=2 {
            let Next::Make(name) = made.next() else {
                panic!("nothing was to be removed");
            };
            made.made(name, value);
        }
        made
    }

    #[test]
    fn what_was_acknowledged_must_be_there_and_nothing_else() {
        let found = |pairs: &[(&str, i32)]| {
            let pairs = pairs.iter();
            two().compare(pairs.map(|it| (it.0.to_owned(), it.1)).collect())
        };
        assert!(found(&[("m2", 2), ("m1", 1)]).is_ok());
        assert!(found(&[("m1", 1)]).is_err());
        assert!(found(&[("m1", 1), ("m2", 3)]).is_err());
        assert!(found(&[("m1", 1), ("m2", 2), ("m0", 0)]).is_err());
    }

    #[test]
    fn of_what_is_in_doubt_the_broker_knows_more() {
        let mut made = two();
        assert!(matches!(made.next(), Next::Remove(name) if name == "m1"));
        made.compare(vec![("m2".to_owned(), 2)]).unwrap();
        assert!(matches!(made.next(), Next::Make(name) if name == "m3"));
        made.compare(vec![("m3".to_owned(), 3), ("m2".to_owned(), 2)])
            .unwrap();
        assert!(matches!(made.next(), Next::Remove(name) if name == "m2"));
        assert_eq!(made.changes(), 4);
    }
}
