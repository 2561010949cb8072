//! What the program says of topics that do not exist.

use std::process::{Command, Output, Stdio};

use kohort_broker::Broker;

async fn run(broker: &Broker, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kohort"));
    command
        .args(arguments)
        .env("KOHORT_BOOTSTRAP_SERVERS", broker.address().to_string())
        .stdin(Stdio::null());
    let output = tokio::task::spawn_blocking(move || command.output()).await;
    output.expect("it was run").expect("the program runs")
}

async fn broker() -> Broker {
    let builder = Broker::builder().set("group.initial.rebalance.delay.ms", "0");
    builder.start().await.expect("a broker in memory starts")
}

fn errors(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_without_a_topic_says_so_and_stops_at_the_end() {
    let broker = broker().await;
    let output = run(&broker, &["consume", "-e", "-G", "g", "ordres"]).await;
    assert_eq!(errors(&output), "kohort: topic ordres does not exist\n");
    let output = run(&broker, &["consume", "-e", "-G", "g", "^ordr"]).await;
    assert_eq!(errors(&output), "kohort: no topic matches ^ordr\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pattern_reads_the_topics_that_begin_with_it() {
    let broker = broker().await;
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), "one\n").expect("written");
    let path = file.path().to_str().expect("text");
    for topic in ["orders-eu", "payments"] {
        errors(&run(&broker, &["topics", "create", topic]).await);
        errors(&run(&broker, &["produce", "-t", topic, path]).await);
    }
    let arguments = ["consume", "-e", "-f", "%t %s\\n", "-G", "g", "^ord"];
    let output = run(&broker, &arguments).await;
    assert_eq!(errors(&output), "");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "orders-eu one\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn producing_to_a_topic_that_does_not_exist_is_reported() {
    let broker = broker().await;
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), "one\n").expect("written");
    let arguments = [
        "produce",
        "-t",
        "ordres",
        file.path().to_str().expect("text"),
    ];
    let expected = "kohort: topic ordres does not exist; asking the broker to create it\n";
    assert_eq!(errors(&run(&broker, &arguments).await), expected);
    assert_eq!(errors(&run(&broker, &arguments).await), "");
}
