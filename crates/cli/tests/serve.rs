//! The program `kohort serve` as a process: what it says, and how it ends.

#![cfg(unix)]

use std::{
    io::{BufRead, BufReader},
    net::TcpStream,
    path::Path,
    process::{Child, ChildStderr, Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};

struct Serve {
    child: Child,
    log: BufReader<ChildStderr>,
}

impl Serve {
    fn start(folder: &Path, arguments: &[&str]) -> Serve {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kohort"));
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(folder)
            .args(arguments)
            .stderr(Stdio::piped());
        // Variables for other tests, such as KOHORT_KAFKA_SCHEMAS, would be settings here.
        for (name, _) in std::env::vars_os() {
            if name.as_encoded_bytes().starts_with(b"KOHORT_") {
                command.env_remove(name);
            }
        }
        let mut child = command.spawn().unwrap();
        let log = BufReader::new(child.stderr.take().unwrap());
        Serve { child, log }
    }

    /// The next line that has `part` in it, or the last one of all.
    fn line_with(&mut self, part: &str) -> String {
        let mut last = String::new();
        loop {
            let mut line = String::new();
            if self.log.read_line(&mut line).unwrap() == 0 || line.contains(part) {
                return if line.is_empty() { last } else { line };
            }
            last = line;
        }
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id() as i32).unwrap();
        kill_process(pid, signal).unwrap();
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn it_says_where_it_is_ready_and_stops_in_good_order_on_a_signal() {
    let folder = tempfile::tempdir().unwrap();
    for signal in [Signal::TERM, Signal::INT] {
        let mut serve = Serve::start(folder.path(), &[]);
        let ready = serve.line_with("ready on");
        let folder = folder.path().canonicalize().unwrap();
        assert!(ready.contains(&folder.display().to_string()), "{ready}");
        let address = ready.split("ready on ").nth(1).unwrap();
        let address = address.split(' ').next().unwrap();
        TcpStream::connect(address).unwrap();
        serve.signal(signal);
        assert!(serve.line_with("stopped").contains("stopped"));
        assert!(serve.child.wait().unwrap().success());
    }
}

#[test]
fn what_keeps_it_from_starting_is_one_line_and_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, part) in [
        (&["-c", "no.such.setting=1"][..], "no.such.setting"),
        (&["-c", "num.partitions=none"], "num.partitions"),
        (
            &["--config", "/nowhere/at/all.toml"],
            "/nowhere/at/all.toml",
        ),
    ] {
        let mut serve = Serve::start(folder.path(), arguments);
        let line = serve.line_with("kohort: ");
        assert!(
            line.starts_with("kohort: ") && line.contains(part),
            "{line}"
        );
        assert!(!serve.child.wait().unwrap().success());
    }
    let mut first = Serve::start(folder.path(), &[]);
    first.line_with("ready on");
    let mut second = Serve::start(folder.path(), &[]);
    let line = second.line_with("kohort: ");
    assert!(line.contains("another process"), "{line}");
    assert!(!second.child.wait().unwrap().success());
}
