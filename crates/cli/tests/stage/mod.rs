//! A broker, and the program that talks to it.

// Not every test program needs everything.
#![allow(dead_code)]

use std::{
    io::Write,
    process::{Command, Output, Stdio},
};

use kohort_broker::Broker;
use serde_json::Value;

/// A broker, and the program that talks to it.
pub(crate) struct Stage {
    pub(crate) broker: Broker,
}

impl Stage {
    pub(crate) async fn new() -> Stage {
        Stage::with("kohort.group.events.enable", "true").await
    }

    pub(crate) async fn with(setting: &str, value: &str) -> Stage {
        let broker = Broker::builder()
            .set(setting, value)
            .set("group.initial.rebalance.delay.ms", "0")
            .set("offsets.topic.num.partitions", "2")
            .start()
            .await
            .expect("a broker in memory starts");
        Stage { broker }
    }

    pub(crate) async fn admin(&self) -> kohort::Admin {
        let config = kohort::ClientConfig::new(&self.broker.address().to_string());
        kohort::Admin::connect(config).await.expect("connected")
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kohort"));
        command.args(arguments).env(
            "KOHORT_BOOTSTRAP_SERVERS",
            self.broker.address().to_string(),
        );
        command
    }

    /// Runs the program, with `input` as its standard input.
    pub(crate) async fn run(&self, arguments: &[&str], input: &str) -> Output {
        let mut command = self.command(arguments);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let input = input.to_owned();
        let run = move || {
            let mut child = command.spawn().expect("the program starts");
            let mut stdin = child.stdin.take().expect("standard input is piped");
            // A program that does not read its input is no fault of the test.
            let _ = stdin.write_all(input.as_bytes());
            drop(stdin);
            child.wait_with_output().expect("the program ends")
        };
        tokio::task::spawn_blocking(run)
            .await
            .expect("the program was run")
    }

    /// What the program prints when all is well.
    pub(crate) async fn prints(&self, arguments: &[&str], input: &str) -> String {
        let output = self.run(arguments, input).await;
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?} failed: {errors}");
        String::from_utf8(output.stdout).expect("text")
    }

    /// The one line with which the program fails.
    pub(crate) async fn fails(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments, "").await;
        assert!(!output.status.success(), "{arguments:?} did not fail");
        let errors = String::from_utf8(output.stderr).expect("text");
        assert_eq!(errors.lines().count(), 1, "{errors}");
        errors.trim().to_owned()
    }

    pub(crate) async fn json(&self, arguments: &[&str]) -> Value {
        let text = self
            .prints(&[arguments, &["-o", "json"]].concat(), "")
            .await;
        serde_json::from_str(&text).expect("JSON")
    }
}

/// The lines, sorted.
pub(crate) fn lines(text: &str) -> Vec<&str> {
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    lines
}
