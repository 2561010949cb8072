//! The program `kohort serve` as a process: what it says, and how it ends.

#![cfg(unix)]

use std::{
    ffi::OsStr,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    os::unix::ffi::OsStrExt,
    path::Path,
    process::{Child, ChildStderr, Command, Stdio},
    time::Duration,
};

use kohort_wire::{ErrorCode, Request, frame, messages::*};
use rustix::{
    fs::{Mode, OFlags},
    process::{Pid, Signal, kill_process},
};

struct Serve {
    child: Child,
    log: BufReader<ChildStderr>,
}

impl Serve {
    fn start(folder: &Path, arguments: &[&str]) -> Serve {
        let folder = folder.to_str().unwrap();
        let common = ["--listen", "127.0.0.1:0", "--data-dir", folder];
        Serve::run(&[&common, arguments].concat(), &[])
    }

    fn run(arguments: &[&str], variables: &[(&str, &str)]) -> Serve {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kohort"));
        command.arg("serve").args(arguments).stderr(Stdio::piped());
        // Variables for other tests, such as KOHORT_KAFKA_SCHEMAS, would be settings here.
        for (name, _) in std::env::vars_os() {
            if name.as_encoded_bytes().starts_with(b"KOHORT_") {
                command.env_remove(name);
            }
        }
        command.envs(variables.iter().copied());
        // Nobody's fault.
        command.env("NOT_TEXT", OsStr::from_bytes(b"\xff"));
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

/// Many logs to look through take their time.
#[test]
fn it_stops_on_a_signal_also_while_it_is_starting() {
    let folder = tempfile::tempdir().unwrap();
    // It waits for somebody to write what it wants to read.
    let pipe = folder.path().join("kohort.json");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let mut serve = Serve::start(folder.path(), &[]);
    let flags = OFlags::WRONLY | OFlags::NONBLOCK;
    let _reader = loop {
        // That there is nobody who reads is an error.
        match rustix::fs::open(&pipe, flags, Mode::empty()) {
            Ok(writer) => break writer,
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    serve.signal(Signal::TERM);
    assert!(serve.line_with("stopped").contains("before it was ready"));
    assert!(serve.child.wait().unwrap().success());
}

#[test]
fn what_is_in_memory_leaves_nothing_wherever_the_settings_want_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kohort.toml");
    for name in ["log.dirs", "data-dir"] {
        let data = folder.path().join("data");
        std::fs::write(&file, format!("{name} = {:?}\n", data.display())).unwrap();
        let file = file.to_str().unwrap();
        let arguments = ["--listen", "127.0.0.1:0", "--in-memory", "--config", file];
        // The command line counts for more than the variable.
        let mut serve = Serve::run(&arguments, &[("KOHORT_DATA_DIR", data.to_str().unwrap())]);
        assert!(serve.line_with("ready on").contains("in memory"));
        assert!(!data.exists(), "{name}");
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
    // What is not on the command line may come as a surprise: Kubernetes sets the first of them.
    for (variable, part) in [
        ("KOHORT_SERVICE_HOST", "the variable KOHORT_SERVICE_HOST"),
        ("KOHORT_LOG", "KOHORT_LOG cannot be"),
    ] {
        let mut serve = Serve::run(&["--in-memory"], &[(variable, "10.0.0.1")]);
        let line = serve.line_with("kohort: ");
        assert!(line.contains(part), "{line}");
        assert_eq!(serve.child.wait().unwrap().code(), Some(1));
    }
    let mut first = Serve::start(folder.path(), &[]);
    first.line_with("ready on");
    let mut second = Serve::start(folder.path(), &[]);
    let line = second.line_with("kohort: ");
    assert!(line.contains("another process"), "{line}");
    assert!(!second.child.wait().unwrap().success());
}

/// A connection for requests of one's own.
struct Raw(TcpStream);

impl Raw {
    fn connect(address: &str) -> Raw {
        let stream = TcpStream::connect(address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        Raw(stream)
    }

    fn bytes<R: Request>(version: i16, request: &R) -> Vec<u8> {
        let frame = frame::encode_request(request, version, 1, Some("test")).unwrap();
        frame.into_bytes().to_vec()
    }

    fn receive<R: Request>(&mut self, version: i16) -> R::Response {
        let mut length = [0; 4];
        self.0
            .read_exact(&mut length)
            .expect("the connection stays");
        let mut frame = vec![0; u32::from_be_bytes(length) as usize];
        self.0.read_exact(&mut frame).unwrap();
        frame::decode_response::<R>(frame.into(), version).unwrap()
    }

    fn ask<R: Request>(&mut self, version: i16, request: &R) -> R::Response {
        self.0.write_all(&Raw::bytes(version, request)).unwrap();
        self.receive::<R>(version)
    }
}

/// What clients sent while it stood still came in time: nobody is put out before it is read.
#[test]
fn after_a_pause_what_has_arrived_counts_before_any_deadline() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = Vec::new();
    for setting in [
        "group.initial.rebalance.delay.ms=0",
        "group.min.session.timeout.ms=100",
        "kohort.connection.stall.timeout.ms=2000",
        "connections.max.idle.ms=60000",
    ] {
        settings.extend(["-c", setting]);
    }
    let mut serve = Serve::start(folder.path(), &settings);
    let ready = serve.line_with("ready on");
    let address = ready.split("ready on ").nth(1).unwrap();
    let address = address.split(' ').next().unwrap();

    let mut member = Raw::connect(address);
    let find = FindCoordinatorRequest {
        key: "g".into(),
        ..FindCoordinatorRequest::default()
    };
    assert_eq!(member.ask(3, &find).error_code, ErrorCode::NONE);
    let join = JoinGroupRequest {
        group_id: "g".into(),
        session_timeout_ms: 2_500,
        rebalance_timeout_ms: 2_500,
        protocol_type: "consumer".into(),
        protocols: vec![JoinGroupProtocol {
            name: "range".into(),
            ..JoinGroupProtocol::default()
        }],
        ..JoinGroupRequest::default()
    };
    // A version that does not have members come back with their ids.
    let joined = member.ask(3, &join);
    assert_eq!(joined.error_code, ErrorCode::NONE);
    let sync = SyncGroupRequest {
        group_id: "g".into(),
        generation_id: joined.generation_id,
        member_id: joined.member_id.clone(),
        ..SyncGroupRequest::default()
    };
    assert_eq!(member.ask(1, &sync).error_code, ErrorCode::NONE);
    let heartbeat = HeartbeatRequest {
        group_id: "g".into(),
        generation_id: joined.generation_id,
        member_id: joined.member_id,
        ..HeartbeatRequest::default()
    };
    let heartbeat = Raw::bytes(1, &heartbeat);
    let mut slow = Raw::connect(address);
    let (begun, rest) = heartbeat.split_at(7);
    slow.0.write_all(begun).unwrap();

    serve.signal(Signal::STOP);
    member.0.write_all(&heartbeat).unwrap();
    slow.0.write_all(rest).unwrap();
    std::thread::sleep(Duration::from_secs(6));
    serve.signal(Signal::CONT);
    for client in [&mut member, &mut slow] {
        let response = client.receive::<HeartbeatRequest>(1);
        assert_eq!(response.error_code, ErrorCode::NONE);
    }
    assert!(serve.line_with("stood still").contains("stood still"));
    // Who is gone is put out all the same.
    let put_out = serve.line_with("heartbeat");
    assert!(put_out.contains("group g"), "{put_out}");
}
