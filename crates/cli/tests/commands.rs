//! The program's commands, run as a user runs them, against an embedded broker.

mod stage;

use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

use kohort_broker::Broker;
use serde_json::Value;
use stage::{Stage, lines};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn topics_are_created_listed_described_and_deleted() {
    let stage = Stage::new().await;
    let created = stage
        .prints(
            &[
                "topics",
                "create",
                "t",
                "-p",
                "3",
                "-c",
                "retention.ms=1000",
            ],
            "",
        )
        .await;
    assert_eq!(created, "created t with 3 partitions\n");
    let failure = stage.fails(&["topics", "create", "t"]).await;
    assert!(
        failure.contains("topic t") && failure.contains("a topic t already exists"),
        "{failure}"
    );
    stage
        .prints(&["topics", "create", "t", "--if-not-exists"], "")
        .await;
    let listed = stage.json(&["topics", "list"]).await;
    assert_eq!(
        (&listed[0]["topic"], &listed[0]["partitions"]),
        (&"t".into(), &3.into())
    );
    let described = stage.json(&["topics", "describe", "t"]).await;
    assert_eq!(described.as_array().map(Vec::len), Some(3));
    assert_eq!(described[2]["latest"], 0);
    let configs = stage.json(&["topics", "describe", "--configs"]).await;
    assert_eq!(configs[0]["setting"], "retention.ms");
    assert_eq!(
        stage.prints(&["topics", "delete", "t"], "").await,
        "deleted t\n"
    );
    assert!(
        stage
            .fails(&["topics", "describe", "t"])
            .await
            .contains("topic t")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_produced_is_consumed() {
    let stage = Stage::new().await;
    stage
        .prints(&["topics", "create", "t", "-p", "2"], "")
        .await;
    let input = "a:1\nb:2\nc:\n:4\nno key\n";
    for compression in ["none", "gzip", "snappy", "lz4", "zstd"] {
        let arguments = [
            "produce",
            "-t",
            "t",
            "-K",
            ":",
            "-z",
            compression,
            "-H",
            "by=me",
        ];
        stage.prints(&arguments, input).await;
    }
    let printed = stage
        .prints(&["consume", "-t", "t", "-e", "-K", ":"], "")
        .await;
    let mut expected: Vec<_> = ["a:1", "b:2", "c:", ":4", ":no key"].repeat(5);
    expected.sort_unstable();
    assert_eq!(lines(&printed), expected);

    let printed = stage
        .prints(
            &[
                "consume",
                "-t",
                "t",
                "-e",
                "-c",
                "1",
                "-f",
                r"%t %k %K %S %h\n",
            ],
            "",
        )
        .await;
    assert!(
        printed.starts_with("t ") && printed.ends_with(" by=me\n"),
        "{printed}"
    );
    let printed = stage
        .prints(&["consume", "-t", "t", "-o", "-1", "-e"], "")
        .await;
    assert_eq!(printed.lines().count(), 2, "the last of each partition");
    let printed = stage
        .prints(&["consume", "-t", "t", "-o", "end", "-e"], "")
        .await;
    assert_eq!(printed, "");
    let printed = stage
        .prints(&["consume", "-t", "t", "-o", "s@1", "-o", "e@2", "-e"], "")
        .await;
    assert_eq!(printed, "", "all records are younger");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn null_is_not_the_empty_text() {
    let stage = Stage::new().await;
    stage
        .prints(&["produce", "-t", "t", "-K", ":", "-Z"], "k:\n:v\n")
        .await;
    stage
        .prints(&["produce", "-t", "t", "-K", ":"], "k:\n")
        .await;
    let printed = stage.prints(&["consume", "-t", "t", "-e", "-J"], "").await;
    let records: Vec<Value> = printed
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let pairs: Vec<_> = records
        .iter()
        .map(|r| (r["key"].as_str(), r["payload"].as_str()))
        .collect();
    assert_eq!(
        pairs,
        [(Some("k"), None), (None, Some("v")), (Some("k"), Some(""))]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_go_on_where_they_stopped_and_are_described_and_deleted() {
    let stage = Stage::new().await;
    stage
        .prints(&["topics", "create", "t", "-p", "2"], "")
        .await;
    stage.prints(&["produce", "-t", "t"], "1\n2\n3\n").await;
    for protocol in ["consumer", "classic"] {
        let consume = [
            "consume",
            "-G",
            protocol,
            "t",
            "--protocol",
            protocol,
            "-c",
            "3",
        ];
        let printed = stage.prints(&consume, "").await;
        assert_eq!(lines(&printed), ["1", "2", "3"], "{protocol}");
    }
    stage.prints(&["produce", "-t", "t"], "4\n").await;
    let printed = stage
        .prints(&["consume", "-G", "consumer", "t", "-e"], "")
        .await;
    assert_eq!(printed, "4\n");

    let listed = stage.json(&["groups", "list"]).await;
    let ids = |listed: &Value| -> Vec<String> {
        let groups = listed.as_array().into_iter().flatten();
        let ids = groups.filter_map(|group| group["group"].as_str());
        ids.map(str::to_owned).collect()
    };
    assert_eq!(ids(&listed), ["classic", "consumer"]);
    let of_a_kind = [
        "groups",
        "list",
        "--type",
        "Consumer",
        "--state",
        "empty,stable",
    ];
    assert_eq!(ids(&stage.json(&of_a_kind).await), ["consumer"]);
    for wrong in [["--state", "emtpy"], ["--type", "new"]] {
        let output = stage.run(&["groups", "list", wrong[0], wrong[1]], "").await;
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
    }
    let lag = |described: &Value| -> i64 {
        described
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|row| row["lag"].as_i64())
            .sum()
    };
    assert_eq!(
        lag(&stage.json(&["groups", "describe", "classic"]).await),
        1
    );
    assert_eq!(
        lag(&stage.json(&["groups", "describe", "consumer"]).await),
        0
    );
    let state = stage
        .json(&["groups", "describe", "consumer", "--state"])
        .await;
    assert_eq!(
        (&state[0]["state"], &state[0]["members"]),
        (&"Empty".into(), &0.into())
    );
    assert_eq!(
        stage.prints(&["groups", "delete", "consumer"], "").await,
        "deleted consumer\n"
    );
    let failure = stage.fails(&["groups", "describe", "consumer"]).await;
    assert!(failure.contains("group consumer"), "{failure}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mistakes_get_one_line_that_says_what_to_do() {
    let stage = Stage::new().await;
    stage.prints(&["topics", "create", "t"], "").await;
    let failure = stage.fails(&["consume", "-t", "t", "-p", "7"]).await;
    assert_eq!(
        failure,
        "kohort: topic t has no partition 7: it has partitions 0 to 0"
    );
    let failure = stage.fails(&["consume", "-t", "nothing", "-e"]).await;
    assert!(failure.contains("topic nothing"), "{failure}");
    for kind in ["topics", "groups"] {
        let output = stage.run(&[kind, "describe", "nothing"], "").await;
        assert!(output.stdout.is_empty(), "a table of nothing: {output:?}");
    }
    let failure = stage.fails(&["produce", "-t", "t", "no/such/file"]).await;
    assert!(failure.contains("no/such/file cannot be read"), "{failure}");
    let rewind = [
        "groups",
        "rewind",
        "misspelt",
        "--topic",
        "t",
        "--to-earliest",
    ];
    let planned = stage.run(&rewind, "").await;
    let remark = String::from_utf8_lossy(&planned.stderr);
    assert!(
        planned.status.success() && remark.contains("misspelt does not exist"),
        "{remark}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_that_no_clock_can_hold_are_refused() {
    let stage = Stage::new().await;
    for arguments in [
        &["topics", "list", "--timeout", "1e19"][..],
        &["groups", "explain", "g", "--watch", "--interval", "nan"],
        &[
            "groups",
            "rewind",
            "g",
            "--undo",
            "--wait",
            "18446744073709551615",
        ],
    ] {
        let output = stage.run(arguments, "").await;
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains("expected a number of seconds"), "{errors}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_partition_that_is_not_available_is_named_and_not_taken_for_an_empty_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let start = async || Stage {
        broker: Broker::builder()
            .data_dir(folder.path())
            .start()
            .await
            .expect("it starts"),
    };
    let stage = start().await;
    stage
        .prints(&["topics", "create", "t", "-p", "2"], "")
        .await;
    stage.broker.shutdown().await;
    // A file where the folder of a partition was.
    let partition = folder.path().join("t-1");
    std::fs::remove_dir_all(&partition).expect("removed");
    std::fs::write(&partition, "").expect("written");
    let stage = start().await;
    for arguments in [
        &["consume", "-t", "t", "-e"][..],
        &["consume", "-t", "t", "-e", "-o", "-1"],
        &["consume", "-t", "t", "-o", "e@1"],
        &["topics", "describe", "t"],
    ] {
        // On a busy machine the first may be over before the broker has said anything.
        let mut failures = Vec::new();
        for timeout in ["0.3", "2", "10"] {
            failures.push(
                stage
                    .fails(&[arguments, &["--timeout", timeout]].concat())
                    .await,
            );
            if failures.iter().any(|failure| failure.contains("t-1")) {
                break;
            }
        }
        let last = failures.last().expect("one at least");
        assert!(last.contains("t-1"), "{arguments:?}: {failures:?}");
    }
    let output = stage
        .run(&["topics", "describe", "t", "--timeout", "1"], "")
        .await;
    let described = String::from_utf8_lossy(&output.stdout);
    assert_eq!(described.lines().count(), 3, "{described}");
}

/// As with `kohort … | head`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn that_nobody_reads_what_is_printed_is_no_failure() {
    let stage = Stage::new().await;
    stage.prints(&["produce", "-t", "t"], "one\n").await;
    stage
        .prints(&["consume", "-G", "g", "t", "-c", "1"], "")
        .await;
    for arguments in [
        &["topics", "create", "more"][..],
        &["topics", "create", "more", "--if-not-exists"],
        &["topics", "list"],
        &["topics", "delete", "more"],
        &["consume", "-t", "t", "-e"],
        &["groups", "describe", "g"],
        &["groups", "history", "g"],
        &["groups", "history", "g", "-o", "json"],
        &["groups", "history", "g", "--since", "1s"],
        &["groups", "explain", "g"],
        &["groups", "rewind", "g", "--topic", "t", "--to-earliest"],
        &["groups", "delete", "g"],
        &["completions", "bash"],
        &["demo", "--lines"],
    ] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut command = stage.command(arguments);
        command.stdout(writer).stderr(Stdio::piped());
        let output = tokio::task::spawn_blocking(move || command.output());
        let output = output.await.expect("it was run").expect("it was run");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && errors.is_empty(),
            "{arguments:?}: {errors}"
        );
    }
}

#[cfg(unix)]
#[test]
fn the_demo_ends_in_the_middle_when_it_is_interrupted_or_nobody_looks() {
    for is_interrupted in [true, false] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kohort"));
        command.args(["demo", "--lines"]).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::piped()).spawn().expect("it starts");
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        while !lines
            .next()
            .expect("a line")
            .expect("text")
            .contains("anna")
        {}
        if is_interrupted {
            let pid = rustix::process::Pid::from_raw(child.id() as i32).expect("a process");
            rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it is there");
            lines.for_each(drop);
        } else {
            drop(lines);
        }
        let output = child.wait_with_output().expect("it ends");
        let errors = String::from_utf8_lossy(&output.stderr);
        if is_interrupted {
            assert_eq!(errors, "kohort: interrupted\n")
        } else {
            assert_eq!(errors, "")
        }
        assert_eq!(output.status.code(), Some(is_interrupted.into()));
    }
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_leaves_its_group_when_it_is_told_to_end() {
    let stage = Stage::new().await;
    stage.prints(&["topics", "create", "t"], "").await;
    for protocol in ["consumer", "classic"] {
        let arguments = ["consume", "-G", protocol, "t", "--protocol", protocol];
        let mut child = stage.command(&arguments).spawn().expect("it starts");
        let describe = ["groups", "describe", protocol, "--members"];
        let members = async || {
            let output = stage
                .run(&[&describe[..], &["-o", "json"]].concat(), "")
                .await;
            let members: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
            members.as_array().map_or(0, Vec::len)
        };
        while members().await == 0 {}
        let pid = rustix::process::Pid::from_raw(child.id() as i32).expect("a process");
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it is there");
        let ended = tokio::task::spawn_blocking(move || child.wait());
        let status = ended.await.expect("it was waited for").expect("it ends");
        assert!(status.success(), "{status}");
        assert_eq!(members().await, 0, "{protocol}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_several_files_none_is_written_if_one_cannot_be_read() {
    let stage = Stage::new().await;
    stage.prints(&["topics", "create", "t"], "").await;
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let folder = env!("CARGO_MANIFEST_DIR");
    for wrong in ["no/such/file", folder] {
        let failure = stage.fails(&["produce", "-t", "t", manifest, wrong]).await;
        assert!(failure.contains(wrong), "{failure}");
    }
    assert_eq!(stage.prints(&["consume", "-t", "t", "-e"], "").await, "");
    stage.prints(&["produce", "-t", "t", manifest], "").await;
    let printed = stage.prints(&["consume", "-t", "t", "-e"], "").await;
    assert_eq!(
        printed,
        std::fs::read_to_string(manifest).expect("it is there")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_properties_file_says_how_the_cluster_is_reached() {
    let stage = Stage::new().await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("client.properties");
    let path = file.to_str().expect("text");
    let list = async |text: &str, more: &[&str]| {
        std::fs::write(&file, text).expect("written");
        let arguments = [
            &["topics", "list", "--timeout", "5", "--command-config", path],
            more,
        ];
        let mut command = stage.command(&arguments.concat());
        command.env_remove("KOHORT_BOOTSTRAP_SERVERS");
        let output = tokio::task::spawn_blocking(move || command.output());
        let output = output.await.expect("it was run").expect("it was run");
        let errors = String::from_utf8(output.stderr).expect("text");
        (output.status.success(), errors)
    };
    let address = stage.broker.address().to_string();
    let servers = format!("bootstrap.servers = {address}\n");
    assert_eq!(list(&servers, &[]).await, (true, String::new()));
    let elsewhere = "bootstrap.servers = 127.0.0.1:1\n";
    assert_eq!(
        list(elsewhere, &["-b", &address]).await,
        (true, String::new())
    );
    let secured = format!(
        "{servers}security.protocol = SASL_PLAINTEXT\nsasl.mechanism = PLAIN\nsasl.jaas.config = nonsense\n"
    );
    for (text, part) in [(secured.as_str(), "sasl"), ("grup.id = g\n", "grup.id")] {
        let (is_well, errors) = list(text, &[]).await;
        assert!(
            !is_well && errors.contains(path) && errors.contains(part),
            "{errors}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_shells_get_completions() {
    let stage = Stage::new().await;
    for shell in ["bash", "zsh", "fish"] {
        let printed = stage.prints(&["completions", shell], "").await;
        assert!(
            printed.contains("COMPLETE") && printed.contains("kohort"),
            "{shell}"
        );
    }
    stage.prints(&["topics", "create", "orders"], "").await;
    stage.prints(&["produce", "-t", "orders"], "a\n").await;
    stage
        .prints(&["consume", "-G", "billing", "orders", "-c", "1"], "")
        .await;
    let address = stage.broker.address().to_string();
    for (line, expected) in [
        (&["topics", "de"][..], "describe"),
        (&["topics", "describe", ""], "orders"),
        (&["consume", "-b", &address, "-t", "or"], "orders"),
        (&["groups", "explain", "bill"], "billing"),
        (&["groups", "rewind", ""], "billing"),
    ] {
        // As the script for bash asks.
        let words = [&["--", "kohort"], line].concat();
        let mut command = stage.command(&words);
        command
            .env("COMPLETE", "bash")
            .env("_CLAP_COMPLETE_INDEX", line.len().to_string());
        let output = tokio::task::spawn_blocking(move || command.output());
        let output = output.await.expect("it was run").expect("it was run");
        let candidates = String::from_utf8_lossy(&output.stdout);
        assert!(
            candidates.lines().any(|candidate| candidate == expected),
            "{line:?}: {candidates}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_version_is_printed_however_it_is_asked_for() {
    let stage = Stage::new().await;
    for arguments in [["--version"], ["-v"], ["-V"], ["version"]] {
        let printed = stage.prints(&arguments, "").await;
        let expected = format!("kohort {}\n", env!("CARGO_PKG_VERSION"));
        assert_eq!(printed, expected, "{arguments:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_tell_their_history_and_what_they_are_doing() {
    let stage = Stage::new().await;
    stage
        .prints(&["topics", "create", "t", "-p", "2"], "")
        .await;
    stage.prints(&["produce", "-t", "t"], "one\ntwo\n").await;
    for protocol in ["classic", "consumer"] {
        let consume = [
            "consume",
            "-G",
            protocol,
            "t",
            "-c",
            "1",
            "--protocol",
            protocol,
        ];
        stage.prints(&consume, "").await;
        // The history may be a moment behind.
        let history = loop {
            let history = stage.prints(&["groups", "history", protocol], "").await;
            if history.contains("the group is empty") {
                break history;
            }
        };
        let lines: Vec<&str> = history.lines().collect();
        assert!(lines[0].contains("Z  rebalance"), "{history}");
        assert!(
            lines[0].ends_with("(kohort-cli at 127.0.0.1) joined"),
            "{history}"
        );
        assert!(lines[1].trim_start().starts_with('+'), "{history}");
        assert!(history.contains(" kohort-cli left"), "{history}");

        let events = stage.json(&["groups", "history", protocol]).await;
        let events = events.as_array().expect("an array");
        assert_eq!(events.len(), lines.len());
        assert_eq!(events[0]["event"], "rebalance_began");
        assert_eq!(events[0]["causes"]["first"][0]["kind"], "member_joined");
        assert_eq!(events[0]["version"], 1);

        let text = stage.prints(&["groups", "explain", protocol], "").await;
        assert!(
            text.starts_with(&format!("{protocol} is Empty, since 20")),
            "{text}"
        );
        assert!(text.contains("it has no members"), "{text}");
        let json = stage.json(&["groups", "explain", protocol]).await;
        assert_eq!(
            (&json["state"], &json["members"]),
            (&"Empty".into(), &0.into())
        );
    }
    let failure = stage.fails(&["groups", "history", "nobody"]).await;
    assert!(failure.contains("group nobody does not exist"), "{failure}");
    let failure = stage.fails(&["groups", "explain", "nobody"]).await;
    assert_eq!(failure, "kohort: group nobody does not exist");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_without_history_says_so_and_what_to_do() {
    let stage = Stage::with("kohort.group.events.enable", "false").await;
    stage.prints(&["topics", "create", "t"], "").await;
    stage.prints(&["produce", "-t", "t"], "one\n").await;
    stage
        .prints(&["consume", "-G", "g", "t", "-c", "1"], "")
        .await;
    let failure = stage.fails(&["groups", "history", "g"]).await;
    assert!(
        failure.contains("keeps no history of groups")
            && failure.ends_with("kohort groups history g --watch"),
        "{failure}"
    );
    let text = stage.prints(&["groups", "explain", "g"], "").await;
    assert!(text.starts_with("g is Empty: it has no members"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_says_which_of_its_topics_are_not_there_yet() {
    let stage = Stage::new().await;
    stage.prints(&["topics", "create", "there"], "").await;
    stage.prints(&["produce", "-t", "there"], "a\n").await;
    let output = stage
        .run(&["consume", "-G", "g", "there", "misspelt", "-c", "1"], "")
        .await;
    assert_eq!(String::from_utf8_lossy(&output.stdout), "a\n");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(lines(&said).len(), 1, "{said}");
    assert!(said.contains("topic misspelt does not exist yet"), "{said}");
}
