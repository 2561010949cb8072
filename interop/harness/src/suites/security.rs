//! `client/security/kafka`: Apache Kafka with TLS and SASL, and certificates made for the run.
//!
//! They are made with rcgen rather than with openssl or keytool, so that a machine needs nothing
//! for it, and because it writes PEM, which both sides read.

use std::fs;
use std::path::Path;
use std::process::Command;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

use super::checks;
use crate::broker::{Extras, free_port};
use crate::failure::Failure;
use crate::install::rust;
use crate::report::Passed;
use crate::run::Run;

/// Names in the broker's certificate.
const NAMES: [&str; 3] = ["127.0.0.1", "localhost", "broker.kohort.test"];
/// Who may come, with SASL; the checks know it too.
const USER: &str = "alice";
const PASSWORD: &str = "alice's secret";
/// How long sessions live where they are short, in ms; the checks know it too.
const SESSION_MS: u32 = 2000;

const MODULES: &str = "org.apache.kafka.common.security";

pub(super) fn run(run: &Run) -> Result<Passed, Failure> {
    let program = rust::checks(run.workspace())?;
    let folder = run.data().join("certificates");
    fs::create_dir_all(&folder)?;
    certificates(&folder).map_err(|error| Failure::new(error.to_string()))?;
    let listeners = vec![
        ("TLS", free_port()?, "SSL"),
        ("SASLTLS", free_port()?, "SASL_SSL"),
        ("SASL", free_port()?, "SASL_PLAINTEXT"),
    ];
    let places: Vec<_> = listeners
        .iter()
        .map(|(_, port, _)| format!("127.0.0.1:{port}"))
        .collect();
    let extras = Extras {
        listeners,
        settings: settings(&folder),
        scram: ["SCRAM-SHA-256", "SCRAM-SHA-512"]
            .map(|mechanism| format!("{mechanism}=[name={USER},password={PASSWORD}]"))
            .into(),
    };
    let mut broker = run.start_kafka(&extras)?;
    let mut command = Command::new(program);
    command
        .args(["security", "--bootstrap", &broker.address()])
        .args(["--tls", &places[0], "--sasl-tls", &places[1]])
        .args(["--sasl", &places[2], "--certificates"])
        .arg(&folder);
    let passed = checks::run(run, &mut broker, "security", command)?;
    tools(run, &folder, &places)?;
    Ok(passed)
}

/// The command-line program gets in with a properties file, as Kafka's tools do, and says why it
/// does not.
fn tools(run: &Run, folder: &Path, places: &[String]) -> Result<(), Failure> {
    let sasl = |password: &str| {
        format!(
            "security.protocol = SASL_SSL\nssl.truststore.location = {}\n\
             sasl.mechanism = SCRAM-SHA-512\nsasl.jaas.config = {MODULES}.scram.ScramLoginModule \
             required username=\"{USER}\" password=\"{password}\";\n",
            folder.join("ca.pem").display()
        )
    };
    let tls = format!(
        "security.protocol = SSL\nssl.truststore.location = {}\nssl.keystore.location = {}\n",
        folder.join("ca.pem").display(),
        folder.join("client.pem").display(),
    );
    for (name, place, properties, refused_with) in [
        ("tls", &places[0], tls, None),
        ("sasl", &places[1], sasl(PASSWORD), None),
        ("wrong", &places[1], sasl("a guess"), Some("authentication")),
    ] {
        let file = folder.join(format!("{name}.properties"));
        fs::write(&file, properties)?;
        let mut command = Command::new(run.workspace().program());
        command.args(["groups", "list", "-b", place, "--command-config"]);
        let output = command.arg(&file).output()?;
        let errors = String::from_utf8_lossy(&output.stderr);
        let is_right = match refused_with {
            None => output.status.success(),
            Some(words) => {
                let line = errors.trim_end().to_lowercase();
                !output.status.success() && line.lines().count() == 1 && line.contains(words)
            }
        };
        if !is_right {
            return Err(Failure::new(format!(
                "`kohort groups list` with {name}.properties: {}: {errors}",
                output.status
            )));
        }
    }
    Ok(())
}

/// `ca.pem`, `broker.pem` and `client.pem` with their keys; `other-ca.pem` and `other-client.pem`
/// of an authority that nobody trusts.
fn certificates(folder: &Path) -> Result<(), Box<dyn std::error::Error>> {
    for (prefix, holders) in [
        ("", &[("broker", &NAMES[..]), ("client", &[])][..]),
        ("other-", &[("client", &[])]),
    ] {
        let mut params = named(&format!("{prefix}authority"), &[])?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate()?;
        let authority = params.self_signed(&key)?;
        fs::write(folder.join(format!("{prefix}ca.pem")), authority.pem())?;
        let authority = Issuer::new(params, key);
        for (holder, names) in holders {
            let key = KeyPair::generate()?;
            let certificate = named(holder, names)?.signed_by(&key, &authority)?;
            let both = key.serialize_pem() + &certificate.pem();
            fs::write(folder.join(format!("{prefix}{holder}.pem")), both)?;
        }
    }
    Ok(())
}

fn named(name: &str, names: &[&str]) -> Result<CertificateParams, rcgen::Error> {
    let names: Vec<_> = names.iter().map(|&name| name.to_owned()).collect();
    let mut params = CertificateParams::new(names)?;
    params
        .distinguished_name
        .push(DnType::CommonName, format!("kohort {name}"));
    Ok(params)
}

/// What the listeners ask for.
fn settings(folder: &Path) -> Vec<(String, String)> {
    let file = |name: &str| folder.join(name).display().to_string();
    let mut settings = vec![
        ("ssl.keystore.type", "PEM".to_owned()),
        ("ssl.keystore.location", file("broker.pem")),
        ("ssl.truststore.type", "PEM".to_owned()),
        ("ssl.truststore.location", file("ca.pem")),
        ("listener.name.tls.ssl.client.auth", "required".to_owned()),
        (
            "listener.name.sasl.connections.max.reauth.ms",
            SESSION_MS.to_string(),
        ),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect::<Vec<_>>();
    let modules = [
        (
            "plain",
            format!("{MODULES}.plain.PlainLoginModule required user_{USER}=\"{PASSWORD}\";"),
        ),
        (
            "scram-sha-256",
            format!("{MODULES}.scram.ScramLoginModule required;"),
        ),
        (
            "scram-sha-512",
            format!("{MODULES}.scram.ScramLoginModule required;"),
        ),
        (
            "oauthbearer",
            format!(
                "{MODULES}.oauthbearer.OAuthBearerLoginModule required \
                 unsecuredLoginStringClaim_sub=\"broker\";"
            ),
        ),
    ];
    for listener in ["sasltls", "sasl"] {
        let prefix = format!("listener.name.{listener}");
        settings.push((
            format!("{prefix}.sasl.enabled.mechanisms"),
            "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER".to_owned(),
        ));
        for (mechanism, module) in &modules {
            settings.push((
                format!("{prefix}.{mechanism}.sasl.jaas.config"),
                module.clone(),
            ));
        }
    }
    settings
}
