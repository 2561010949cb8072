//! `kohort log`: damage of a stopped broker's files is shown, and given up on request.

#![cfg(unix)]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use kohort_broker::Broker;

fn kohort(arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_kohort");
    let output = Command::new(program).args(arguments).output();
    output.expect("the program runs")
}

fn log(folder: &Path, arguments: &[&str]) -> (bool, String) {
    let folder = folder.to_str().expect("a path of ASCII");
    let (command, rest) = arguments.split_first().expect("a command");
    let output = kohort(&[&["log", *command, "--data-dir", folder], rest].concat());
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8(text).expect("text");
    (output.status.success(), text)
}

/// A data folder with topics `orders` and `others`: one record a batch, in several segments.
fn data_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_owned();
    with_broker(&path, |address| {
        for topic in ["orders", "others"] {
            let settings = ["-c", "internal.segment.bytes=400"];
            let create = [
                &["topics", "create", "-b", address, topic, "-p", "1"][..],
                &settings,
            ];
            let created = kohort(&create.concat());
            assert!(created.status.success(), "{created:?}");
            for _ in 0..20 {
                produce(address, topic);
            }
        }
    });
    folder
}

fn produce(address: &str, topic: &str) {
    let file = tempfile::NamedTempFile::new().expect("a file");
    fs::write(file.path(), "value\n").expect("written");
    let name = file.path().to_str().expect("a path of ASCII");
    let produced = kohort(&["produce", "-b", address, "-t", topic, name]);
    assert!(produced.status.success(), "{produced:?}");
}

/// Runs something while a broker is up.
fn with_broker<T>(folder: &Path, work: impl FnOnce(&str) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    let broker = runtime
        .block_on(Broker::builder().data_dir(folder).start())
        .expect("a broker");
    let done = work(&broker.address().to_string());
    runtime.block_on(broker.shutdown());
    done
}

fn segments(folder: &Path, partition: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.join(partition)).expect("a folder");
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|it| it == "log"))
        .collect();
    found.sort();
    found
}

#[test]
fn damage_is_shown_and_given_up_on_request_and_the_rest_is_there() {
    let folder = data_folder();
    let path = folder.path();
    let (is_well, text) = log(path, &["check"]);
    assert!(
        is_well && text.contains("orders-0") && text.contains("ok"),
        "{text}"
    );

    let files = segments(path, "orders-0");
    assert!(files.len() > 3, "{files:?}");
    fs::remove_file(&files[1]).expect("removed");
    let mut bytes = fs::read(&files[2]).expect("read");
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&files[2], bytes).expect("written");

    let (is_well, text) = log(path, &["check"]);
    assert!(!is_well, "{text}");
    for part in [
        "damaged",
        "are lost",
        "is lost",
        "kohort log repair",
        "1 of 2",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let (is_well, text) = log(path, &["check", "others-0"]);
    assert!(is_well && !text.contains("orders"), "{text}");
    let (_, json) = log(path, &["check", "-o", "json", "others-0"]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(
        (&json[0]["state"], &json[0]["end_offset"]),
        (&"ok".into(), &20.into())
    );

    // Without --execute nothing changes.
    let (done, text) = log(path, &["repair"]);
    assert!(
        done && text.contains("Dry run") && text.contains("would give up"),
        "{text}"
    );
    assert!(!log(path, &["check"]).0);
    // While a broker runs, its files are its own.
    with_broker(path, |_| {
        let (done, text) = log(path, &["repair", "--execute"]);
        assert!(!done && text.contains("stop the broker"), "{text}");
    });

    let (done, text) = log(path, &["repair", "--execute"]);
    assert!(
        done && text.contains("gave up") && text.contains(".damaged"),
        "{text}"
    );
    assert!(log(path, &["check"]).0);
    assert_eq!(
        log(path, &["repair", "--execute"]).1,
        "nothing is damaged\n"
    );
    with_broker(path, |address| {
        let read = kohort(&["consume", "-b", address, "-t", "orders", "-e", "-f", "%o\n"]);
        let text = String::from_utf8(read.stdout).expect("text");
        assert!(text.lines().count() > 10 && text.contains("19"), "{text}");
        produce(address, "orders");
        let read = kohort(&[
            "consume", "-b", address, "-t", "orders", "-e", "-o", "-1", "-f", "%o\n",
        ]);
        assert_eq!(String::from_utf8(read.stdout).expect("text").trim(), "20");
    });
}

#[test]
fn a_missing_partition_folder_is_an_error_until_the_partition_is_begun_again() {
    let folder = data_folder();
    let path = folder.path();
    fs::remove_dir_all(path.join("orders-0")).expect("removed");
    with_broker(path, |address| {
        let read = kohort(&["consume", "-b", address, "-t", "others", "-e", "-f", "%o\n"]);
        assert_eq!(
            String::from_utf8(read.stdout)
                .expect("text")
                .lines()
                .count(),
            20
        );
        assert!(!path.join("orders-0").exists());
    });
    let (is_well, text) = log(path, &["check"]);
    assert!(!is_well && text.contains("missing"), "{text}");
    let (done, text) = log(path, &["repair", "--execute", "--start-offset", "500"]);
    assert!(
        done && text.contains("begins again, empty, at offset 500"),
        "{text}"
    );
    with_broker(path, |address| {
        produce(address, "orders");
        let read = kohort(&["consume", "-b", address, "-t", "orders", "-e", "-f", "%o\n"]);
        assert_eq!(String::from_utf8(read.stdout).expect("text").trim(), "500");
    });
}

#[test]
fn what_is_not_a_data_folder_or_not_a_partition_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let (done, text) = log(folder.path(), &["check"]);
    assert!(!done && text.contains("kohort.json"), "{text}");
    let missing = folder.path().join("nowhere");
    let (done, text) = log(&missing, &["check"]);
    assert!(
        !done && text.contains("nowhere") && !missing.exists(),
        "{text}"
    );
    let folder = data_folder();
    let (done, text) = log(folder.path(), &["check", "ordres-0"]);
    assert!(!done && text.contains("ordres-0"), "{text}");
}
