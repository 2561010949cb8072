//! TLS and SASL. What goes wrong has to be said at once and so that one knows what to do.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use kohort::admin::NewTopic;
use kohort::consumer::Seek;
use kohort::rpc::messages::ListGroupsRequest;
use kohort::rpc::{Cluster, Destination, Sasl, Security, Tls, TokenSource};
use kohort::{
    Admin, ClientConfig, Consumer, ConsumerConfig, Error, Producer, ProducerConfig, ProducerRecord,
    Properties, TopicPartition,
};

use crate::report::Report;
use crate::world::{Checked, LIMIT, now_ms, number, unique, with, within};
use crate::{ensure, ensure_eq};

/// What the broker knows; xtask has told it.
const USER: &str = "alice";
const PASSWORD: &str = "alice's secret";
const MECHANISMS: [&str; 4] = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"];
/// Within this something that cannot help is to be given up.
const AT_ONCE: Duration = Duration::from_secs(5);
/// How long the broker lets sessions live at `Places::sasl`, in ms.
const SESSION_MS: u64 = 2000;

/// Where the broker listens, and how.
pub(crate) struct Places {
    pub(crate) tls: String,
    pub(crate) sasl_tls: String,
    pub(crate) sasl: String,
    pub(crate) certificates: PathBuf,
}

impl Places {
    fn file(&self, name: &str) -> String {
        self.certificates.join(name).display().to_string()
    }
}

pub(crate) fn check<'a>(places: &'a Places, report: &mut Report<'a>) {
    report.check("tls: certificates of both sides", both_sides(places));
    report.check("tls: the same, in code", in_code(places));
    report.check("tls: without a certificate", without(places));
    report.check("tls: an authority that nobody trusts", untrusted(places));
    report.check("tls: another server's name", another_name(places));
    report.check("tls: a broker without it", no_tls(places));
    for mechanism in MECHANISMS {
        let name = format!("sasl over tls: {mechanism}");
        report.check(name, mechanism_works(places, mechanism));
        let name = format!("sasl: {mechanism}, who may not");
        report.check(name, may_not(places, mechanism));
        let name = format!("sasl: {mechanism}, sessions that end");
        report.check(name, renewed(places, mechanism));
    }
    report.check("sasl: who does not say who it is", nobody(places));
    report.check("sasl: tokens that cannot be had", no_token(places));
}

fn at(servers: &str, settings: &[(&str, &str)]) -> Properties {
    let properties = Properties::default().with("bootstrap.servers", servers);
    with(properties, settings)
}

/// A topic is created, a record written and read.
async fn round_trip(client: &ClientConfig) -> Checked {
    let servers = at(&client.bootstrap_servers.join(","), &[]);
    let topic = unique("secure");
    let admin = Admin::connect(client.clone()).await?;
    admin
        .create_topic(&NewTopic::new(topic.as_str(), 1))
        .await?;
    let mut config = ProducerConfig::from_properties(&servers)?;
    config.client = client.clone();
    let producer = Producer::connect(config).await?;
    for number in 0..50 {
        let text = number.to_string();
        let sent = producer.send(ProducerRecord::new(&topic).value(&text));
        drop(sent.await?);
    }
    producer.close().await;
    let group = unique("secure");
    let settings = [("group.id", &*group), ("auto.offset.reset", "earliest")];
    let mut config = ConsumerConfig::from_properties(&with(servers, &settings))?;
    config.client = client.clone();
    let mut consumer = Consumer::connect(config).await?;
    consumer.subscribe([topic.as_str()])?;
    let mut values = Vec::new();
    let reading = async {
        while values.len() < 50 {
            for record in &consumer.poll().await? {
                values.push(number(record.value)?);
            }
        }
        Checked::Ok(())
    };
    within("records", LIMIT, reading).await??;
    ensure_eq!(values, Vec::from_iter(0..50), "values");
    Ok(consumer.close().await?)
}

/// Each part of the client gives up at once, with this among its words.
async fn refused(client: &ClientConfig, words: &str) -> Checked {
    let judge = |who: &str, began: Instant, error: Option<Error>| -> Checked {
        let took = began.elapsed();
        let error = error.ok_or_else(|| format!("{who}: it was let in"))?;
        ensure!(took < AT_ONCE, "{who}: only after {took:?}: {error}");
        ensure!(!error.is_retriable(), "{who}: worth another try? {error}");
        let authentication = matches!(error, Error::Authentication { .. });
        ensure!(authentication, "{who}: {error:?}");
        let text = error.to_string();
        ensure!(text.contains(words), "{who}: {text:?} without {words:?}");
        Ok(())
    };
    let servers = at(&client.bootstrap_servers.join(","), &[]);
    let began = Instant::now();
    let error = Admin::connect(client.clone()).await.err();
    judge("admin", began, error)?;

    let mut config = ProducerConfig::from_properties(&servers)?;
    config.client = client.clone();
    let producer = Producer::new(config)?;
    let began = Instant::now();
    let error = match producer.send(ProducerRecord::new("topic").value("x")).await {
        Ok(delivery) => delivery.await.err(),
        Err(error) => Some(error),
    };
    judge("producer", began, error)?;

    let settings = [("group.id", "group")];
    let mut config = ConsumerConfig::from_properties(&with(servers, &settings))?;
    config.client = client.clone();
    let mut consumer = Consumer::new(config.clone())?;
    consumer.subscribe(["topic"])?;
    let began = Instant::now();
    let polled = within("an error", LIMIT, consumer.poll()).await?;
    judge("member", began, polled.err())?;

    let mut consumer = Consumer::new(config)?;
    consumer.assign([(TopicPartition::new("topic", 0), Seek::Earliest)])?;
    let began = Instant::now();
    let polled = within("an error", LIMIT, consumer.poll()).await?;
    judge("consumer", began, polled.err())
}

fn mutual<'a>(ca: &'a str, keystore: Option<&'a str>) -> Vec<(&'static str, &'a str)> {
    let mut settings = vec![
        ("security.protocol", "SSL"),
        ("ssl.truststore.type", "PEM"),
        ("ssl.truststore.location", ca),
    ];
    settings.extend(keystore.map(|file| ("ssl.keystore.location", file)));
    settings
}

async fn both_sides(places: &Places) -> Checked {
    let (ca, keystore) = (places.file("ca.pem"), places.file("client.pem"));
    let settings = mutual(&ca, Some(&keystore));
    let client = ClientConfig::from_properties(&at(&places.tls, &settings))?;
    round_trip(&client).await
}

fn read(path: &str) -> Checked<Vec<u8>> {
    Ok(std::fs::read(Path::new(path))?)
}

async fn in_code(places: &Places) -> Checked {
    let keystore = read(&places.file("client.pem"))?;
    let tls = Tls::builder()
        .ca_pem(read(&places.file("ca.pem"))?)
        .client_pem(keystore.clone(), keystore)
        // Among the names in the broker's certificate, whatever its address.
        .server_name("broker.kohort.test")
        .build()?;
    let mut client = ClientConfig::new(&places.tls);
    client.security = Security {
        tls: Some(tls),
        sasl: None,
    };
    round_trip(&client).await
}

async fn without(places: &Places) -> Checked {
    let (ca, other) = (places.file("ca.pem"), places.file("other-client.pem"));
    // None at all, and one of an authority that the broker does not trust.
    for keystore in [None, Some(&*other)] {
        let settings = mutual(&ca, keystore);
        let client = ClientConfig::from_properties(&at(&places.tls, &settings))?;
        refused(&client, "TLS").await?;
    }
    Ok(())
}

async fn untrusted(places: &Places) -> Checked {
    let (ca, keystore) = (places.file("other-ca.pem"), places.file("client.pem"));
    let settings = mutual(&ca, Some(&keystore));
    let client = ClientConfig::from_properties(&at(&places.tls, &settings))?;
    refused(&client, "UnknownIssuer").await
}

async fn another_name(places: &Places) -> Checked {
    let keystore = read(&places.file("client.pem"))?;
    let tls = Tls::builder()
        .ca_pem(read(&places.file("ca.pem"))?)
        .client_pem(keystore.clone(), keystore)
        .server_name("another.kohort.test")
        .build()?;
    let mut client = ClientConfig::new(&places.tls);
    client.security = Security {
        tls: Some(tls),
        sasl: None,
    };
    refused(&client, "another.kohort.test").await
}

/// Such a broker takes our greeting for a very long request and closes the connection, which could
/// have other reasons too: it is tried again.
async fn no_tls(places: &Places) -> Checked {
    let ca = places.file("ca.pem");
    let mut settings = mutual(&ca, None);
    settings.push(("default.api.timeout.ms", "2000"));
    let client = ClientConfig::from_properties(&at(&places.sasl, &settings))?;
    let error = within("an error", AT_ONCE, Admin::connect(client)).await?;
    let error = error.err().ok_or("TLS with a broker that has none")?;
    ensure!(error.to_string().contains("tls handshake"), "{error}");
    Ok(())
}

/// A token of nobody's signature, as Kafka's default validator for OAUTHBEARER takes it.
fn token(subject: &str, from_now_s: i64) -> String {
    let now = now_ms() / 1000;
    let claims = format!(
        r#"{{"sub":"{subject}","iat":{},"exp":{}}}"#,
        now - 5,
        now + from_now_s
    );
    let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
    format!("{}.{}.", part(r#"{"alg":"none"}"#), part(&claims))
}

/// Where to connect, by a mechanism; and how often a token was asked for.
fn client(
    servers: &str,
    ca: Option<&str>,
    mechanism: &str,
    right: bool,
) -> Checked<(ClientConfig, Arc<AtomicUsize>)> {
    let mut settings = vec![("sasl.mechanism", mechanism)];
    match ca {
        Some(ca) => settings.extend([
            ("security.protocol", "SASL_SSL"),
            ("ssl.truststore.location", ca),
        ]),
        None => settings.push(("security.protocol", "SASL_PLAINTEXT")),
    }
    let asked = Arc::new(AtomicUsize::new(0));
    if mechanism != "OAUTHBEARER" {
        let password = if right { PASSWORD } else { "a guess" };
        settings.extend([("sasl.username", USER), ("sasl.password", password)]);
        let config = ClientConfig::from_properties(&at(servers, &settings))?;
        return Ok((config, asked));
    }
    let count = asked.clone();
    let source = TokenSource::new(move || {
        count.fetch_add(1, Ordering::Relaxed);
        // As if it came from somewhere.
        async move {
            tokio::time::sleep(Duration::from_millis(5)).await;
            Ok(token(USER, if right { 60 } else { -2 }))
        }
    });
    let mut config = ClientConfig::new(servers);
    config.security = Security {
        tls: match ca {
            Some(ca) => Some(Tls::builder().ca_pem(read(ca)?).build()?),
            None => None,
        },
        sasl: Some(Sasl::OAuthBearer(source)),
    };
    Ok((config, asked))
}

async fn mechanism_works(places: &Places, mechanism: &str) -> Checked {
    let ca = places.file("ca.pem");
    let (config, _) = client(&places.sasl_tls, Some(&ca), mechanism, true)?;
    round_trip(&config).await
}

async fn may_not(places: &Places, mechanism: &str) -> Checked {
    let ca = places.file("ca.pem");
    let (config, _) = client(&places.sasl_tls, Some(&ca), mechanism, false)?;
    refused(&config, mechanism).await?;
    if let "OAUTHBEARER" = mechanism {
        return Ok(());
    }
    let settings = [
        ("security.protocol", "SASL_SSL"),
        ("ssl.truststore.location", &*ca),
        ("sasl.mechanism", mechanism),
        ("sasl.username", "nobody"),
        ("sasl.password", PASSWORD),
    ];
    let config = ClientConfig::from_properties(&at(&places.sasl_tls, &settings))?;
    refused(&config, mechanism).await
}

/// Sessions are short: the client renews each before it ends. Each request is sent once; none may
/// meet a connection that the broker has closed.
async fn renewed(places: &Places, mechanism: &str) -> Checked {
    let (config, asked) = client(&places.sasl, None, mechanism, true)?;
    let cluster = Cluster::connect(config.clone()).await?;
    let began = Instant::now();
    let mut requests = 0;
    while began.elapsed() < Duration::from_millis(SESSION_MS * 4) {
        let answer = cluster
            .call(&Destination::Any, &ListGroupsRequest::default())
            .await;
        let at = began.elapsed();
        answer.map_err(|error| format!("after {requests} requests, at {at:?}: {error}"))?;
        requests += 1;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    ensure!(requests > 50, "only {requests} requests");
    if mechanism == "OAUTHBEARER" {
        let asked = asked.load(Ordering::Relaxed);
        ensure!((5..30).contains(&asked), "{asked} tokens");
    }
    // And everything else, for longer than a session.
    round_trip(&config).await
}

/// Who does not say who it is, where that is asked for.
async fn nobody(places: &Places) -> Checked {
    let settings = [("default.api.timeout.ms", "3000")];
    let config = ClientConfig::from_properties(&at(&places.sasl, &settings))?;
    let error = within("an error", AT_ONCE * 2, Admin::connect(config)).await?;
    ensure!(error.is_err(), "nobody was let in");
    Ok(())
}

async fn no_token(places: &Places) -> Checked {
    let mut config = ClientConfig::new(&places.sasl);
    let source = TokenSource::new(|| async { Err("the key is lost".to_owned()) });
    config.security.sasl = Some(Sasl::OAuthBearer(source));
    refused(&config, "the key is lost").await
}
