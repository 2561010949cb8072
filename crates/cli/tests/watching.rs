//! `kohort groups history` and `explain` while things happen, and a rewind that waits: the program is
//! run as a user runs it, against an embedded broker, with members in this process.
#![cfg(unix)]

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Output, Stdio},
    sync::{
        Arc,
        mpsc::{Receiver, channel},
    },
    time::Duration,
};

use kohort::{
    Consumer, ConsumerConfig,
    consumer::{GroupProtocol, Rebalance, RebalanceHandler},
};
use kohort_broker::Broker;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::sync::Semaphore;

/// For anything that is to happen at all.
const LIMIT: Duration = Duration::from_secs(60);

async fn broker() -> Broker {
    let builder = Broker::builder()
        .set("group.initial.rebalance.delay.ms", "0")
        .set("offsets.topic.num.partitions", "1");
    let broker = builder.start().await.expect("a broker in memory starts");
    let config = kohort::ClientConfig::new(&broker.address().to_string());
    let admin = kohort::Admin::connect(config).await.expect("connected");
    let topic = kohort::admin::NewTopic::new("orders", 4);
    admin.create_topic(&topic).await.expect("created");
    broker
}

/// A member that polls.
struct Member {
    polling: tokio::task::JoinHandle<()>,
    leaving: Arc<Semaphore>,
}

impl Member {
    async fn join(broker: &Broker, handler: impl RebalanceHandler) -> Member {
        let config = ConsumerConfig {
            group_protocol: GroupProtocol::Consumer,
            ..ConsumerConfig::new(&broker.address().to_string()).group("billing")
        };
        let mut consumer = Consumer::connect(config).await.expect("connected");
        consumer.set_rebalance_handler(handler).expect("set");
        consumer.subscribe(["orders"]).expect("subscribed");
        let leaving = Arc::new(Semaphore::new(0));
        let leaves = Arc::clone(&leaving);
        let polling = tokio::spawn(async move {
            loop {
                tokio::select! {
                    polled = consumer.poll() => drop(polled.expect("polled")),
                    _ = leaves.acquire() => break,
                }
            }
            consumer.close().await.expect("closed");
        });
        Member { polling, leaving }
    }

    async fn leave(self) {
        self.leaving.add_permits(1);
        self.polling.await.expect("it leaves");
    }
}

/// Does not let go of anything before it may.
struct Stubborn(Arc<Semaphore>);

impl RebalanceHandler for Stubborn {
    async fn revoked(&self, _: &Rebalance) {
        let may = self.0.acquire().await;
        may.expect("never closed").forget();
    }
}

fn command(broker: &Broker, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kohort"));
    command
        .arg("groups")
        .args(arguments)
        .env("KOHORT_BOOTSTRAP_SERVERS", broker.address().to_string());
    command
}

async fn run(broker: &Broker, arguments: &[&str]) -> Output {
    let mut command = command(broker, arguments);
    let run = move || command.output().expect("the program runs");
    let output = tokio::task::spawn_blocking(run);
    output.await.expect("the program was run")
}

async fn prints(broker: &Broker, arguments: &[&str]) -> String {
    let output = run(broker, arguments).await;
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?} failed: {errors}");
    String::from_utf8(output.stdout).expect("text")
}

/// Asks again and again until what the program prints is as it is to be. That a group is not there
/// yet, it says by failing.
async fn until(broker: &Broker, arguments: &[&str], is_so: impl Fn(&str) -> bool) -> String {
    let mut last = String::new();
    let asking = async {
        loop {
            let output = run(broker, arguments).await;
            let text = String::from_utf8(output.stdout).expect("text");
            if output.status.success() && is_so(&text) {
                return text;
            }
            last = text + &String::from_utf8_lossy(&output.stderr);
        }
    };
    let so = tokio::time::timeout(LIMIT, asking).await;
    so.unwrap_or_else(|_| panic!("{arguments:?} never says it, but {last}"))
}

/// The program while it watches; it ends with this.
struct Watching {
    child: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
}

impl Watching {
    fn start(broker: &Broker, arguments: &[&str]) -> Watching {
        let mut command = command(broker, arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().expect("the program starts");
        let output = child.stdout.take().expect("piped");
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Watching {
            child,
            lines,
            seen: Vec::new(),
        }
    }

    /// The next line that is as wanted.
    fn until(&mut self, is_it: impl Fn(&str) -> bool) -> String {
        loop {
            let line = self.lines.recv_timeout(LIMIT);
            let line = line.unwrap_or_else(|_| panic!("only: {:#?}", self.seen));
            self.seen.push(line.clone());
            if is_it(&line) {
                return line;
            }
        }
    }

    fn until_json(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        let parse = |line: &str| serde_json::from_str::<Value>(line).expect("JSON in each line");
        parse(&self.until(|line| is_it(&parse(line))))
    }

    /// Interrupts it, as a person does; that is no failure.
    fn interrupt(mut self) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::INT).expect("it runs");
        let status = self.child.wait().expect("it ends");
        assert!(status.success(), "{status}");
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watched_history_goes_on_with_what_happens_in_lines_and_in_json() {
    let broker = broker().await;
    let first = Member::join(&broker, ()).await;
    let explain = ["explain", "billing"];
    until(&broker, &explain, |text| text.contains("is Stable")).await;

    let mut lines = Watching::start(&broker, &["history", "billing", "--watch"]);
    let mut json = Watching::start(&broker, &["history", "billing", "-w", "-o", "json"]);
    // What was before comes first, then what happens.
    let joined = |line: &str| line.contains("Z  rebalance, epoch ") && line.ends_with(" joined");
    let stable = |line: &str| line.trim_start().starts_with('+') && line.contains("stable at");
    lines.until(joined);
    lines.until(stable);
    let first_stable = json.until_json(|event| event["event"] == "stable");
    assert_eq!(first_stable["group"], "billing");
    assert_eq!(first_stable["version"], 1);
    let second = Member::join(&broker, ()).await;
    lines.until(joined);
    lines.until(stable);
    let began = json.until_json(|event| event["event"] == "rebalance_began");
    assert_eq!(began["causes"]["first"][0]["kind"], "member_joined");
    assert!(began["epoch"].as_i64() > first_stable["epoch"].as_i64());
    second.leave().await;
    lines.until(|line| line.contains("Z  rebalance, epoch ") && line.contains(" left"));
    json.until_json(|event| event["causes"]["first"][0]["kind"] == "member_left");
    lines.interrupt();
    json.interrupt();
    first.leave().await;
    broker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watched_explanation_says_only_what_has_changed() {
    let broker = broker().await;
    let first = Member::join(&broker, ()).await;
    let looks = ["--watch", "--interval", "0.1"];
    let mut text = Watching::start(&broker, &[&["explain", "billing"][..], &looks].concat());
    let in_json = [&["explain", "billing", "-o", "json"][..], &looks].concat();
    let mut json = Watching::start(&broker, &in_json);
    text.until(|line| line.contains("billing is Stable"));
    json.until_json(|it| it["state"] == "Stable" && it["members"] == 1);
    let second = Member::join(&broker, ()).await;
    text.until(|line| line.starts_with("— 20"));
    text.until(|line| line.contains("is Stable") && line.contains("its 2 members share 4"));
    let stable = json.until_json(|it| it["state"] == "Stable" && it["members"] == 2);
    assert_eq!(stable["protocol"], "consumer");
    assert_eq!(stable["waits_for"], Value::Array(Vec::new()));
    second.leave().await;
    json.until_json(|it| it["state"] == "Stable" && it["members"] == 1);
    first.leave().await;
    json.until_json(|it| it["state"] == "Empty");
    let states = json.seen.windows(2);
    let repeated = states.filter(|pair| pair[0] == pair[1]).count();
    assert_eq!(repeated, 0, "{:#?}", json.seen);
    text.interrupt();
    json.interrupt();
    broker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rewind_that_waits_is_explained_and_can_be_given_up() {
    let broker = broker().await;
    let may = Arc::new(Semaphore::new(0));
    let member = Member::join(&broker, Stubborn(Arc::clone(&may))).await;
    let explain = ["explain", "billing"];
    until(&broker, &explain, |text| text.contains("is Stable")).await;
    let rewind = [
        "rewind",
        "billing",
        "--topic",
        "orders:0,1",
        "--to-earliest",
    ];
    let execute = [&rewind[..], &["--execute", "--wait", "1"]].concat();
    let waited = run(&broker, &execute).await;
    assert!(!waited.status.success());
    let failure = String::from_utf8(waited.stderr).expect("text");
    assert!(
        failure.contains("rewind billing --undo --execute"),
        "{failure}"
    );

    let waits = |text: &str| text.contains("to revoke orders-0 and orders-1");
    let text = until(&broker, &explain, waits).await;
    let rewind = "A rewind of orders-0 and orders-1 is pending, requested by ";
    assert!(text.contains(rewind), "{text}");
    assert!(text.contains(" still owns orders-0 and orders-1"), "{text}");
    assert!(text.contains("removed in "), "until when: {text}");
    let json = prints(&broker, &["explain", "billing", "-o", "json"]).await;
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["rewind"]["partitions"]["count"], 2);
    assert_eq!(json["waits_for"][0]["needs"], "revoke");

    let undo = ["rewind", "billing", "--undo"];
    let shown = prints(&broker, &undo).await;
    assert!(shown.contains("NEW-OFFSET"), "{shown}");
    let given_up = prints(&broker, &[&undo[..], &["--execute"]].concat()).await;
    assert!(given_up.contains("cancelled the rewind"), "{given_up}");
    let is_over = |text: &str| text.contains("is given up, no offset was changed");
    let history = until(&broker, &["history", "billing"], is_over).await;
    assert!(
        history.contains(" rewinds orders-0 and orders-1"),
        "{history}"
    );
    assert!(history.contains(" cancelled it"), "{history}");
    // It lets go after all, and is given everything again.
    may.add_permits(100);
    let text = until(&broker, &explain, |text| {
        text.contains("its one member has 4 partitions")
    })
    .await;
    assert!(!text.contains("is pending"), "{text}");
    member.leave().await;
    broker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupted_rewind_says_that_it_is_pending_and_how_to_cancel_it() {
    let broker = broker().await;
    let may = Arc::new(Semaphore::new(0));
    let member = Member::join(&broker, Stubborn(Arc::clone(&may))).await;
    let explain = ["explain", "billing"];
    until(&broker, &explain, |text| text.contains("is Stable")).await;
    let rewind = ["rewind", "billing", "--topic", "orders", "--to-earliest"];
    let mut command = command(&broker, &[&rewind[..], &["--execute"]].concat());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let stderr = child.stderr.take().expect("standard error is piped");
    let mut remarks = BufReader::new(stderr).lines();
    let waiting = remarks.next().expect("a line").expect("text");
    let cancel = "kohort groups rewind billing --undo --execute";
    assert!(
        waiting.starts_with("kohort: waiting for 1 member") && waiting.ends_with(cancel),
        "{waiting}"
    );
    let pending = |text: &str| text.contains("A rewind of orders-0, orders-1");
    until(&broker, &explain, pending).await;
    let pid = Pid::from_child(&child);
    kill_process(pid, Signal::INT).expect("interrupted");
    let interrupted = remarks.next().expect("a line").expect("text");
    assert!(
        interrupted.contains("is still pending") && interrupted.ends_with(cancel),
        "{interrupted}"
    );
    let output = child.wait_with_output().expect("the program ends");
    assert_eq!(output.status.code(), Some(1));
    // The plan came first.
    let plan = String::from_utf8(output.stdout).expect("text");
    assert!(
        plan.starts_with("GROUP") && plan.lines().count() == 5,
        "{plan}"
    );

    may.add_permits(100);
    let completed = run(&broker, &[&rewind[..], &["--execute"]].concat()).await;
    let printed = String::from_utf8(completed.stdout).expect("text");
    assert!(
        printed.ends_with("rewound group billing: 4 partitions changed\n"),
        "{printed}"
    );
    member.leave().await;
    broker.shutdown().await;
}
