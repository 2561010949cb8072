//! librdkafka's own tests, with each group protocol.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::{Ending, Expectations, Suite, Tested, conclude};
use crate::agent::Protocol;
use crate::failure::Failure;
use crate::install::{Toolchain, librdkafka as install, maven};
use crate::process::Process;
use crate::report::Passed;
use crate::run::Run;

/// For one number: the longest takes five minutes on a quiet machine.
const TEST_LIMIT: Duration = Duration::from_secs(12 * 60);

/// Tests at a time: they mostly wait. librdkafka's own runs have five.
const WORKERS: usize = 5;

/// What the tests expect of a cluster (`tests/scenarios`), and a longer wait for further members. The
/// tests of cooperative rebalances start two consumers one after the other and count how often each is
/// assigned partitions, so both have to be in the group's first rebalance. kohort begins it once no
/// member has joined for a tenth of the delay.
const SETTINGS: &[(&str, &str)] = &[
    ("num.partitions", "4"),
    ("group.initial.rebalance.delay.ms", "10000"),
];
const NO_AUTO_CREATE: &[(&str, &str)] = &[
    ("num.partitions", "4"),
    ("group.initial.rebalance.delay.ms", "10000"),
    ("auto.create.topics.enable", "false"),
];

/// The newest version before share groups, whose tests then skip themselves.
const KAFKA_VERSION: &str = "4.0.0";

pub(super) fn all() -> Vec<Suite> {
    let suite = |protocol: Protocol| {
        let name = format!("suite/librdkafka/{}", protocol.name());
        let needed = [Toolchain::C, Toolchain::Node];
        let mut suite = Suite::new(name, &needed, move |run| check(run, protocol));
        suite.slow = true;
        suite
    };
    Protocol::ALL.map(suite).into()
}

/// A test as its source declares it: `_TEST(0018_cgrp_term, 0, …)`.
#[derive(Debug, PartialEq, Eq)]
struct Declared {
    name: String,
    /// The set-up of the cluster that it wants.
    scenario: String,
}

impl Declared {
    /// What the runner selects by; several tests may share one.
    fn number(&self) -> &str {
        self.name.split('_').next().unwrap_or_default()
    }
}

/// One run of the runner: the tests of a number, or a part of one test.
#[derive(Debug)]
struct Unit<'a> {
    number: &'a str,
    /// What of a test to run, in the runner's `SUBTESTS`
    part: Option<&'a str>,
    /// The names of the tests, as the runner reports them.
    tests: Vec<&'a str>,
}

impl Unit<'_> {
    /// What a test is called in the expectations.
    fn name(&self, test: &str) -> String {
        match self.part {
            Some(part) => format!("{test}/{part}"),
            None => test.to_owned(),
        }
    }
}

fn check(run: &Run, protocol: Protocol) -> Result<Passed, Failure> {
    let expectations = Expectations::read(&run.workspace().sources(), "librdkafka")?;
    let folder = install::folder(run.workspace(), &expectations.version)?;
    let declared = declared(&fs::read_to_string(folder.join("tests/test.c"))?);
    let mut tested = Vec::new();
    for (scenario, settings) in [("default", SETTINGS), ("noautocreate", NO_AUTO_CREATE)] {
        let tests = declared.iter().filter(|test| test.scenario == scenario);
        let mut units = units(&expectations, tests);
        for unit in &mut units {
            let (number, part) = (unit.number, unit.part);
            unit.tests.retain(|test| {
                let name = part.map_or((*test).to_owned(), |part| format!("{test}/{part}"));
                let is_selected = |named: &String| *named == name || *named == number;
                (run.is_full() || expectations.selection.iter().any(is_selected))
                    && expectations.runs(&name, protocol.name())
            });
        }
        units.retain(|unit| !unit.tests.is_empty());
        // The tests of the other scenario call Kafka's own tools.
        if units.is_empty() || (scenario != "default" && !run.is_full()) {
            continue;
        }
        let mut broker = run.start_broker_with(scenario, settings)?;
        let runner = Runner::new(run, protocol, &folder, scenario, &broker.address())?;
        let results = runner.all(&expectations, &units);
        if let Err(failure) = broker.stop() {
            return Err(failure.during("after the tests"));
        }
        tested.extend(results?);
    }
    let client = format!("librdkafka {}", install::version(&folder)?);
    conclude(run, client, &expectations, protocol.name(), tested)
}

/// What the runner is started with for these tests.
fn units<'a>(
    expectations: &'a Expectations,
    tests: impl Iterator<Item = &'a Declared>,
) -> Vec<Unit<'a>> {
    let mut units: Vec<Unit<'a>> = Vec::new();
    for test in tests {
        let (name, number) = (test.name.as_str(), test.number());
        let parts = expectations.parts(name);
        for part in parts {
            units.push(Unit {
                number,
                part: Some(part),
                tests: vec![name],
            });
        }
        if !parts.is_empty() {
            continue;
        }
        let same = |unit: &&mut Unit<'_>| unit.number == number && unit.part.is_none();
        match units.iter_mut().find(same) {
            Some(unit) => unit.tests.push(name),
            None => units.push(Unit {
                number,
                part: None,
                tests: vec![name],
            }),
        }
    }
    units
}

/// Runs tests by their numbers.
struct Runner<'a> {
    run: &'a Run,
    protocol: Protocol,
    tests: PathBuf,
    scenario: &'a str,
    address: String,
    work: PathBuf,
    tools: Option<PathBuf>,
}

impl<'a> Runner<'a> {
    fn new(
        run: &'a Run,
        protocol: Protocol,
        folder: &Path,
        scenario: &'a str,
        address: &str,
    ) -> Result<Self, Failure> {
        let work = run.data().join(format!("work-{scenario}"));
        fs::create_dir_all(&work)?;
        // Twice the time, as librdkafka's own set-up has it.
        let configuration = format!(
            "metadata.broker.list={address}\n\
             test.topic.random=true\n\
             test.timeout.multiplier=2\n"
        );
        fs::write(work.join("test.conf"), configuration)?;
        let tools = if run.is_full() {
            Some(tools(run, &work)?)
        } else {
            None
        };
        Ok(Self {
            run,
            protocol,
            tests: folder.join("tests"),
            scenario,
            address: address.to_owned(),
            work,
            tools,
        })
    }

    /// All of these, a few at a time. What fails is run again with nothing beside it: many of the
    /// tests set times for what takes as long as the machine is busy.
    fn all(&self, expectations: &Expectations, units: &[Unit<'_>]) -> Result<Vec<Tested>, Failure> {
        let left = Mutex::new(units.iter());
        let next = || left.lock().ok().and_then(|mut left| left.next());
        let done = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..WORKERS.min(units.len()) {
                scope.spawn(|| {
                    while let Some(unit) = next() {
                        let result = self.once(unit, 1);
                        if let Ok(mut done) = done.lock() {
                            done.push((unit, result));
                        }
                    }
                });
            }
        });
        let done = done
            .into_inner()
            .map_err(|_| Failure::new("a worker panicked"))?;
        let mut all = Vec::new();
        for (unit, result) in done {
            let mut tested = result?;
            let tries = |test: &Tested| expectations.tries(&test.test, self.protocol.name());
            for attempt in 2.. {
                let is_due =
                    |test: &Tested| test.ending == Ending::Failed && attempt <= tries(test);
                if !tested.iter().any(is_due) {
                    break;
                }
                tested = self.once(unit, attempt)?;
            }
            all.extend(tested);
        }
        Ok(all)
    }

    fn once(&self, unit: &Unit<'_>, attempt: usize) -> Result<Vec<Tested>, Failure> {
        let began = Instant::now();
        let mut label = unit.number.to_owned();
        if let Some(part) = unit.part {
            label.push('-');
            label.extend(part.chars().map(|c| if c == ' ' { '_' } else { c }));
        }
        if attempt > 1 {
            label.push_str(&format!("-{attempt}"));
        }
        // The runner has no room for a long path.
        let report = format!("{label}.json");
        let mut command = Command::new(self.tests.join("test-runner"));
        let sources = self.tests.parent().unwrap_or(&self.tests);
        command
            .current_dir(&self.work)
            .args(["-L", "-p1", "-s", self.scenario])
            .env("TESTS", unit.number)
            .env("TEST_REPORT", &report)
            .env("TEST_KAFKA_VERSION", KAFKA_VERSION)
            .env("TEST_CONSUMER_GROUP_PROTOCOL", self.protocol.name())
            .env("RDKAFKA_TEST_CONF", self.work.join("test.conf"))
            .env("BROKERS", &self.address)
            .env(
                "LD_LIBRARY_PATH",
                format!("{0}/src:{0}/src-cpp", sources.display()),
            )
            // It would change what is run, and how much at a time.
            .env_remove("CI");
        if let Some(tools) = &self.tools {
            command.env("KAFKA_PATH", tools);
        }
        if let Some(part) = unit.part {
            command.env("SUBTESTS", part);
        }
        let mut process = Process::start(command, &label, self.run.logs())?;
        let limit = process.wait(TEST_LIMIT);
        let took = began.elapsed();
        let report = read_report(&self.work.join(report)).unwrap_or_default();
        let log = self.run.logs().join(format!("{label}.log"));
        Ok(unit
            .tests
            .iter()
            .map(|&name| {
                let (ending, words) = match (report.tests.get(name), &limit) {
                    (Some(test), _) => test.ending(),
                    (None, Err(_)) => (Ending::Failed, format!("{} s were over", took.as_secs())),
                    (None, Ok(status)) => (Ending::Failed, format!("the runner ended, {status}")),
                };
                let words = match ending {
                    Ending::Failed => format!("{words}  log: {}", log.display()),
                    _ => words,
                };
                let seconds = report.tests.get(name).map(|test| test.duration);
                Tested {
                    test: unit.name(name),
                    ending,
                    tries: attempt,
                    took: Some(seconds.map_or(took, Duration::from_secs_f64)),
                    words,
                }
            })
            .collect())
    }
}

/// The runner's report on its tests.
#[derive(Default, Deserialize)]
struct Report {
    tests: BTreeMap<String, Reported>,
}

#[derive(Deserialize)]
struct Reported {
    state: String,
    extra: String,
    duration: f64,
}

impl Reported {
    fn ending(&self) -> (Ending, String) {
        let ending = match self.state.as_str() {
            "PASSED" => Ending::Passed,
            "SKIPPED" => Ending::Skipped,
            _ => Ending::Failed,
        };
        (ending, self.extra.clone())
    }
}

fn read_report(path: &Path) -> Option<Report> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// The tests that want a broker, from the table in `tests/test.c`. Left out are those that need
/// none, those to be run by hand, and those that librdkafka itself lists as known to fail.
fn declared(source: &str) -> Vec<Declared> {
    let mut found = Vec::new();
    for part in source.split("_TEST(").skip(1) {
        let mut fields = part.splitn(3, ',');
        let name = fields.next().unwrap_or_default().trim();
        let flags = fields.next().unwrap_or_default();
        let flags = flags.split(')').next().unwrap_or_default().trim();
        let is_left_out = ["LOCAL", "MANUAL", "KNOWN_ISSUE"]
            .iter()
            .any(|flag| flags.split(['|', ' ']).any(|set| set.ends_with(flag)));
        let is_name = name.starts_with(|first: char| first.is_ascii_digit())
            && name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_');
        if !is_name || is_left_out {
            continue;
        }
        // One that may run with the defaults as well is run with those.
        let wanted = part.split(".scenario = \"").nth(1).unwrap_or("default\"");
        let wanted = wanted.split(['"', ',']).next().unwrap_or("default");
        found.push(Declared {
            name: name.to_owned(),
            scenario: wanted.to_owned(),
        });
    }
    found
}

/// A folder like Kafka's own, with the command-line tools that some tests call.
fn tools(run: &Run, work: &Path) -> Result<PathBuf, Failure> {
    if let Some(missing) = Toolchain::Java.missing() {
        let text = format!("--full needs Kafka's own tools, and there is no {missing} here");
        return Err(Failure::new(text));
    }
    let jars = maven::kafka(run.workspace())?;
    let folder = work.join("kafka");
    let programs = folder.join("bin");
    fs::create_dir_all(&programs)?;
    for (name, class) in [
        ("kafka-topics.sh", "org.apache.kafka.tools.TopicCommand"),
        ("kafka-acls.sh", "org.apache.kafka.tools.AclCommand"),
    ] {
        let script = format!(
            "#!/bin/sh\nexec java -Xmx128m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 \\\n    \
             -cp '{}/*' {class} \"$@\"\n",
            jars.display()
        );
        let path = programs.join(name);
        fs::write(&path, script)?;
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(&path, executable)?;
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_read_from_the_table_in_their_source() {
        let source = r#"
            *  _TEST(00...., ...,
            #define _TEST(NAME, FLAGS, ...) {.name = # NAME}
            _TEST(0001_multiobj, 0),
            _TEST(0004_conf, TEST_F_LOCAL),
            _TEST(0045_remove,
                  0,
                  TEST_BRKVER(0, 9, 0, 0),
                  .scenario = "noautocreate"),
            _TEST(0103_transactions, 0, .scenario = "default,ak23"),
            _TEST(0047_partial, TEST_F_KNOWN_ISSUE),
            _TEST(0049_close, TEST_F_SOCKEM, TEST_BRKVER(0, 9, 0, 0)),
            _TEST(8000_idle, TEST_F_MANUAL),
        "#;
        let found = declared(source);
        let found: Vec<(&str, &str)> = found
            .iter()
            .map(|test| (test.name.as_str(), test.scenario.as_str()))
            .collect();
        let expected = [
            ("0001_multiobj", "default"),
            ("0045_remove", "noautocreate"),
            ("0103_transactions", "default"),
            ("0049_close", "default"),
        ];
        assert_eq!(found, expected);
    }
}
