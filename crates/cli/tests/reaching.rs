//! How the program finds its cluster, and how soon it gives up.

use std::{
    net::TcpListener,
    process::{Command, Output},
};

use kohort_broker::Broker;

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kohort"));
    command
        .args(arguments)
        .env_remove("KOHORT_BOOTSTRAP_SERVERS")
        .env_remove("KOHORT_BOOTSTRAP_SERVER");
    command
}

/// The one line with which the program fails.
fn failure(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
    errors
}

/// A port at which nobody listens.
fn closed_port() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").to_string()
}

#[test]
fn a_refused_connection_fails_at_once_and_is_named() {
    let address = closed_port();
    for arguments in [
        &["topics", "list"][..],
        &["groups", "describe", "--all"],
        &["consume", "-t", "t"],
        &["consume", "-G", "g", "t"],
        &["produce", "-t", "t"],
    ] {
        let output = command(&[arguments, &["-b", &address]].concat()).output();
        let failure = failure(&output.expect("it was run"));
        let expected = format!("kohort: could not reach {address}: connection refused");
        assert!(failure.starts_with(&expected), "{arguments:?}: {failure}");
    }
}

#[test]
fn a_port_that_never_answers_is_not_waited_for_longer_than_said() {
    // It accepts connections, and reads nothing.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let arguments = ["topics", "list", "-b", &address, "--timeout", "0.5"];
    let failure = failure(&command(&arguments).output().expect("it was run"));
    assert!(
        failure.contains(&address) && failure.contains("does not answer"),
        "{failure}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_cluster_is_named_by_flags_variables_properties_and_files() {
    let broker = Broker::builder().start().await.expect("it starts");
    let address = broker.address().to_string();
    let elsewhere = closed_port();
    let run = async |mut command: Command| {
        let output = tokio::task::spawn_blocking(move || command.output());
        let output = output.await.expect("it was run").expect("it was run");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.success(), errors)
    };
    let list = ["topics", "list"];
    for name in ["KOHORT_BOOTSTRAP_SERVERS", "KOHORT_BOOTSTRAP_SERVER"] {
        let mut named = command(&list);
        named.env(name, &address);
        assert_eq!(run(named).await, (true, String::new()), "{name}");
    }
    let property = format!("bootstrap.servers={address}");
    let named = command(&["topics", "list", "-X", &property]);
    assert_eq!(run(named).await, (true, String::new()));
    let mut named = command(&["topics", "list", "-b", &address]);
    named.env("KOHORT_BOOTSTRAP_SERVERS", &elsewhere);
    assert_eq!(run(named).await, (true, String::new()));
    let wrong = command(&["topics", "list", "-b", &address, "-X", "no.such=1"]);
    let (is_well, errors) = run(wrong).await;
    assert!(!is_well && errors.contains("-X no.such"), "{errors}");
    // Without a port it is Kafka's.
    let (is_well, errors) = run(command(&["topics", "list", "-b", "no.such.host.invalid"])).await;
    assert!(
        !is_well && errors.contains("no.such.host.invalid:9092"),
        "{errors}"
    );
    broker.shutdown().await;
}
