//! A disk that fills up, and one that may not be written: what was acknowledged stays, what cannot be
//! kept is refused with Kafka's errors, reads go on, and so does everything when there is room again.
//!
//! The disk is a small file system in memory, in a mount namespace of its own. Where that may not be
//! had, a limit on the size of files does some of it (`ulimit -f`), as it does in any case.

mod client;
mod mount;

use std::time::Duration;

use rustix::process::{Resource, Rlimit, prlimit};

use crate::broker::{Broker, BrokerKind};
use crate::failure::Failure;
use crate::install::Toolchain;
use crate::report::Passed;
use crate::run::Run;
use crate::suites::Suite;
use client::Client;
use mount::Mount;

/// The file system, and what is put aside on it.
const DISK_BYTES: u64 = 12 << 20;
const BALLAST_BYTES: u64 = 2 << 20;
/// The largest file.
const FILE_BYTES: u64 = 1 << 20;
/// For a broker to end that cannot start.
const END_LIMIT: Duration = Duration::from_secs(20);
/// The name of the data folder.
const NAME: &str = "broker";
/// Lines of a broker's log about one full disk, at most.
const LINES_MAX: usize = 40;

/// `disk/full`, `disk/file-limit` and `disk/read-only`
pub(crate) fn suites() -> Vec<Suite> {
    let suite =
        |name: &str, needed: &[Toolchain], run: fn(&Run) -> Result<Passed, Failure>| Suite {
            broker: Some(BrokerKind::Kohort),
            is_ours_alone: true,
            ..Suite::new(name, needed, run)
        };
    vec![
        suite("disk/full", &[Toolchain::Mounts], full),
        suite("disk/file-limit", &[], file_limit),
        suite("disk/read-only", &[Toolchain::Mounts], read_only),
    ]
}

fn full(run: &Run) -> Result<Passed, Failure> {
    let mount = Mount::new(run, NAME, DISK_BYTES)?;
    mount.put_aside("first", BALLAST_BYTES)?;
    mount.put_aside("second", BALLAST_BYTES)?;
    let mut broker = Broker::within(run, NAME, mount.words())?;
    let mut played = || {
        broker.start_again()?;
        let mut client = Client::new(&broker)?;
        let note = fill(&mut client, &broker)?;
        client.refused_topic()?;
        mount.remove("first")?;
        go_on(&mut client, &mut broker)?;

        // Once more, to its end and its start without room.
        client.fill()?;
        broker.stop()?;
        broker.start_again()?;
        client.connect(&broker)?;
        client.check()?;
        client.refused()?;
        broker.kill();
        broker.start_again()?;
        client.connect(&broker)?;
        client.check()?;
        mount.remove("second")?;
        client.until_taken()?;
        client.until_committed()?;
        client.check()?;
        Ok(Passed::note(note))
    };
    let played = played();
    played.map_err(|failure: Failure| Failure::new(format!("{failure}{}", broker.tail())))
}

fn file_limit(run: &Run) -> Result<Passed, Failure> {
    let mut broker = Broker::within(run, NAME, Vec::new())?;
    let mut played = || {
        broker.start_again()?;
        let mut client = Client::new(&broker)?;
        limit_files(&broker, Some(FILE_BYTES))?;
        let note = fill(&mut client, &broker)?;
        limit_files(&broker, None)?;
        go_on(&mut client, &mut broker)?;
        Ok(Passed::note(note))
    };
    let played = played();
    played.map_err(|failure: Failure| Failure::new(format!("{failure}{}", broker.tail())))
}

/// Fills the disk, and looks at everything while it is full.
fn fill(client: &mut Client, broker: &Broker) -> Result<String, Failure> {
    client.fill()?;
    client.fill_with_commits()?;
    let lines_before = lines(broker);
    for _ in 0..20 {
        client.refused()?;
    }
    client.check()?;
    client.heartbeat()?;
    let said = broker.process().map(crate::process::Process::log);
    let said = said.unwrap_or_default();
    if !said.contains("the disk is full") {
        return Err(Failure::new(
            "the broker does not say that the disk is full",
        ));
    }
    if lines(broker) - lines_before > LINES_MAX {
        return Err(Failure::new("the broker says it again and again"));
    }
    Ok(client.note())
}

fn lines(broker: &Broker) -> usize {
    let log = broker.process().map(crate::process::Process::log);
    log.unwrap_or_default().lines().count()
}

/// There is room again: what was refused is taken, without a restart, and everything is there, also
/// after a kill.
fn go_on(client: &mut Client, broker: &mut Broker) -> Result<(), Failure> {
    client.until_taken()?;
    client.until_committed()?;
    client.heartbeat()?;
    client.check()?;
    broker.kill();
    broker.start_again()?;
    client.connect(broker)?;
    client.check()
}

fn limit_files(broker: &Broker, bytes: Option<u64>) -> Result<(), Failure> {
    let Some(process) = broker.process() else {
        return Ok(());
    };
    let limit = Rlimit {
        current: bytes,
        maximum: None,
    };
    prlimit(Some(process.pid()), Resource::Fsize, limit)
        .map(|_| ())
        .map_err(|error| Failure::new(format!("limiting files: {error}")))
}

fn read_only(run: &Run) -> Result<Passed, Failure> {
    let mount = Mount::new(run, NAME, DISK_BYTES)?;
    let mut broker = Broker::within(run, NAME, mount.words())?;
    let mut played = || {
        broker.start_again()?;
        let mut client = Client::new(&broker)?;
        client.write_some()?;

        // Files that are open stay so; nothing can be created any more.
        mount.freeze()?;
        client.refused_topic()?;
        client.check()?;
        mount.thaw()?;
        client.created_topic()?;
        client.write_some()?;

        broker.stop()?;
        mount.freeze()?;
        broker.begin_to_start()?;
        if broker.wait(END_LIMIT)? {
            return Err(Failure::new("a broker starts that cannot write"));
        }
        let said = broker.process().map(crate::process::Process::log);
        let said = said.unwrap_or_default();
        let last = said.lines().last().unwrap_or_default();
        if !last.contains(NAME) || !last.to_lowercase().contains("read-only") {
            return Err(Failure::new(format!("its last words are: {last}")));
        }
        mount.thaw()?;
        broker.start_again()?;
        client.connect(&broker)?;
        client.check()?;
        client.write_some()?;
        Ok(Passed::note(client.note()))
    };
    let played = played();
    played.map_err(|failure: Failure| Failure::new(format!("{failure}{}", broker.tail())))
}
