//! What the program says when it cannot reach a cluster.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    process::{Command, Output},
    thread,
};

/// A server that answers every connection's first request with `response` and closes it.
fn server(response: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound").to_string();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let answer = |mut stream: TcpStream| {
                let mut request = [0; 1024];
                let _ = stream.read(&mut request);
                let _ = stream.write_all(response);
            };
            let _ = stream.map(answer);
        }
    });
    address
}

fn list_topics(server: &str, timeout: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kohort"))
        .args(["topics", "list", "-b", server, "--timeout", timeout])
        .output()
        .expect("the program runs")
}

fn lines(output: &Output) -> Vec<String> {
    let errors = String::from_utf8_lossy(&output.stderr);
    errors.lines().map(str::to_owned).collect()
}

#[test]
fn a_server_that_is_no_kafka_broker_is_named_at_once() {
    for (response, expected) in [
        (
            &b"HTTP/1.1 400 Bad Request\r\n\r\n"[..],
            "it speaks HTTP, not Kafka's protocol",
        ),
        (
            b"SSH-2.0-OpenSSH_9.2\r\n",
            "it speaks SSH, not Kafka's protocol",
        ),
        (
            b"\x15\x03\x03\x00\x02\x02\x32",
            "it expects TLS: set security.protocol to SSL or SASL_SSL",
        ),
    ] {
        let address = server(response);
        // It doesn't try for as long as it might: it would take minutes.
        let output = list_topics(&address, "300");
        let expected = format!("kohort: no Kafka broker at {address}: {expected}");
        assert_eq!(lines(&output), [expected]);
        assert_eq!(output.status.code(), Some(1));
    }
}

#[test]
fn a_server_that_closes_the_first_request_is_named_with_what_it_may_be() {
    let address = server(b"");
    let output = list_topics(&address, "0.5");
    let [line] = &lines(&output)[..] else {
        panic!("{output:?}");
    };
    let expected = format!("kohort: could not reach {address} within 500ms: ");
    assert!(line.starts_with(&expected), "{line}");
    assert!(line.ends_with("is it older than Kafka 0.10?"), "{line}");
}

#[test]
fn a_refused_connection_is_reported_before_time_is_up() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound").to_string();
    drop(listener);
    let output = list_topics(&address, "4");
    let expected = [
        format!("kohort: could not connect to {address}: connection refused; trying for 4s"),
        format!("kohort: could not reach {address} within 4s: connection refused"),
    ];
    assert_eq!(lines(&output), expected);
}
