//! `security.protocol` and what goes with it.

use super::{Sasl, Tls, jaas::Jaas, oauth};
use crate::{Error, Properties, Result};

/// `security.protocol`: how connections are encrypted and authenticated. The default is `PLAINTEXT`:
/// neither.
#[derive(Debug, Clone, Default)]
pub struct Security {
    /// Over TLS (`SSL`, `SASL_SSL`).
    pub tls: Option<Tls>,
    /// With an identity (`SASL_PLAINTEXT`, `SASL_SSL`).
    pub sasl: Option<Sasl>,
}

/// The settings that are read here: Kafka's, with certificates and keys in PEM, and librdkafka's
/// shorter ones.
const NAMES: [&str; 17] = [
    "security.protocol",
    "sasl.mechanism",
    "sasl.jaas.config",
    "sasl.username",
    "sasl.password",
    oauth::ENDPOINT,
    "ssl.truststore.type",
    "ssl.truststore.location",
    "ssl.truststore.certificates",
    "ssl.ca.location",
    "ssl.keystore.type",
    "ssl.keystore.location",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.certificate.location",
    "ssl.key.location",
    "ssl.endpoint.identification.algorithm",
];

/// Settings of Kafka's own client that have no meaning here, by the beginnings of their names, and
/// what to do instead.
const REFUSED: [(&str, &str); 8] = [
    (
        "ssl.truststore.password",
        "PEM needs no password: leave it away",
    ),
    (
        "ssl.keystore.password",
        "PEM needs no password: leave it away",
    ),
    (
        "ssl.key.password",
        "encrypted keys cannot be read: openssl pkcs8 -in key.pem -out plain.pem",
    ),
    (
        "sasl.oauthbearer.",
        "tokens come through Sasl::OAuthBearer(TokenSource::new(…)) in code, or from \
         sasl.oauthbearer.token.endpoint.url=file:/…",
    ),
    (
        "sasl.login.",
        "tokens come through Sasl::OAuthBearer(TokenSource::new(…)) in code",
    ),
    (
        "sasl.client.callback.handler.class",
        "there are no classes of Java here: what it does is to be said in code, by rpc::Sasl",
    ),
    ("sasl.kerberos.", "GSSAPI is not supported"),
    (
        "ssl.protocol",
        "TLS 1.3 and 1.2 are used, whichever the broker prefers: leave it away",
    ),
];

pub(crate) fn is_setting(name: &str) -> bool {
    NAMES.contains(&name) || refused(name).is_some()
}

fn refused(name: &str) -> Option<&'static str> {
    let mut refused = REFUSED.iter().filter(|(begin, _)| name.starts_with(begin));
    refused
        .next()
        .filter(|_| !NAMES.contains(&name))
        .map(|(_, problem)| *problem)
}

impl Security {
    pub(crate) fn from_properties(properties: &Properties) -> Result<Security> {
        let get = |wanted: &str| {
            let mut all = properties.iter();
            all.find(|(name, _)| *name == wanted)
                .map(|(_, value)| value)
        };
        let refuse = |name: &str, problem: &str| Err(Error::config(name, problem));
        let protocol = get("security.protocol")
            .unwrap_or("PLAINTEXT")
            .to_ascii_uppercase();
        let (with_tls, with_sasl) = match &*protocol {
            "PLAINTEXT" => (false, false),
            "SSL" => (true, false),
            "SASL_PLAINTEXT" => (false, true),
            "SASL_SSL" => (true, true),
            _ => {
                let problem = "must be PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL";
                return refuse("security.protocol", problem);
            }
        };
        let needless = |(name, _): &(&str, &str)| {
            (name.starts_with("ssl.") && !with_tls) || (name.starts_with("sasl.") && !with_sasl)
        };
        if let Some((name, _)) = properties.iter().find(needless) {
            return refuse(
                name,
                &format!("has no meaning with security.protocol={protocol}"),
            );
        }
        for (setting, convert) in [
            ("ssl.truststore.type", CONVERT_TRUSTSTORE),
            ("ssl.keystore.type", CONVERT_KEYSTORE),
        ] {
            if get(setting).is_some_and(|kind| !kind.eq_ignore_ascii_case("PEM")) {
                return refuse(setting, &format!("only PEM can be read: {convert}"));
            }
        }
        for (name, _) in properties.iter() {
            if let Some(problem) = refused(name) {
                return refuse(name, problem);
            }
        }
        let algorithm = "ssl.endpoint.identification.algorithm";
        if get(algorithm).is_some_and(|value| value != "https") {
            return refuse(algorithm, "the names of brokers are always checked: https");
        }
        Ok(Security {
            tls: with_tls.then(|| tls(get)).transpose()?,
            sasl: with_sasl.then(|| sasl(get)).transpose()?,
        })
    }
}

/// How the other formats that Java reads become PEM.
const CONVERT_TRUSTSTORE: &str = "keytool -list -rfc -keystore truststore.jks > truststore.pem";
const CONVERT_KEYSTORE: &str = "keytool -importkeystore -srckeystore keystore.jks -destkeystore \
                                keystore.p12 -deststoretype PKCS12, and openssl pkcs12 -in \
                                keystore.p12 -nodes -out keystore.pem";

fn file(name: &str, path: &str) -> Result<Vec<u8>> {
    let read = std::fs::read(path);
    let bytes = read.map_err(|error| Error::config(name, format!("{path}: {error}")))?;
    let begin = b"-----BEGIN ";
    if bytes.windows(begin.len()).any(|window| window == begin) {
        return Ok(bytes);
    }
    let convert = match name {
        "ssl.truststore.location" | "ssl.ca.location" => CONVERT_TRUSTSTORE,
        _ => CONVERT_KEYSTORE,
    };
    // Java's default is another format, and the setting that says so may be absent.
    let problem = format!("{path} is not PEM. A store of Java is converted by: {convert}");
    Err(Error::config(name, problem))
}

fn tls<'a>(get: impl Fn(&str) -> Option<&'a str>) -> Result<Tls> {
    let mut builder = Tls::builder();
    for name in ["ssl.truststore.location", "ssl.ca.location"] {
        if let Some(path) = get(name) {
            builder = builder.ca_pem(file(name, path)?);
        }
    }
    if let Some(pem) = get("ssl.truststore.certificates") {
        builder = builder.ca_pem(pem.replace("\\n", "\n"));
    }
    let one_file = "ssl.keystore.location";
    if let Some(path) = get(one_file) {
        let pem = file(one_file, path)?;
        builder = builder.client_pem(pem.clone(), pem);
    }
    let chain = ("ssl.keystore.certificate.chain", "ssl.keystore.key");
    if let (Some(chain), Some(key)) = (get(chain.0), get(chain.1)) {
        builder = builder.client_pem(chain.replace("\\n", "\n"), key.replace("\\n", "\n"));
    }
    let files = ("ssl.certificate.location", "ssl.key.location");
    if let (Some(chain), Some(key)) = (get(files.0), get(files.1)) {
        builder = builder.client_pem(file(files.0, chain)?, file(files.1, key)?);
    }
    builder.build()
}

fn sasl<'a>(get: impl Fn(&str) -> Option<&'a str>) -> Result<Sasl> {
    let jaas = Jaas::parse(get("sasl.jaas.config").unwrap_or_default())?;
    let find = |name: &str, from_jaas: &str| {
        let value = get(name).or_else(|| jaas.get(from_jaas));
        let problem = format!("is needed, or {from_jaas} in sasl.jaas.config");
        value
            .map(str::to_owned)
            .ok_or_else(|| Error::config(name, problem))
    };
    let (username, password) = (
        || find("sasl.username", "username"),
        || find("sasl.password", "password"),
    );
    match get("sasl.mechanism").unwrap_or_default() {
        "PLAIN" => Ok(Sasl::Plain {
            username: username()?,
            password: password()?,
        }),
        "SCRAM-SHA-256" => Ok(Sasl::ScramSha256 {
            username: username()?,
            password: password()?,
        }),
        "SCRAM-SHA-512" => Ok(Sasl::ScramSha512 {
            username: username()?,
            password: password()?,
        }),
        "OAUTHBEARER" => {
            let source = oauth::source(get(oauth::ENDPOINT), &jaas)?;
            Ok(Sasl::OAuthBearer(source))
        }
        _ => {
            let problem = "must be PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER";
            Err(Error::config("sasl.mechanism", problem))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(pairs: &[(&str, &str)]) -> String {
        let properties: Properties = pairs.iter().copied().collect();
        Security::from_properties(&properties)
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn a_truststore_that_is_not_pem_is_an_error_that_says_how_to_convert_it() {
        let ssl = ("security.protocol", "SSL");
        let problem_of_type = problem(&[ssl, ("ssl.truststore.type", "JKS")]);
        assert!(problem_of_type.starts_with("ssl.truststore.type: only PEM"));
        assert!(problem_of_type.contains("keytool"), "{problem_of_type}");
        // This file is not PEM either.
        let location = ("ssl.truststore.location", "Cargo.toml");
        let problem_of_file = problem(&[ssl, location]);
        assert!(
            problem_of_file.contains("Cargo.toml is not PEM"),
            "{problem_of_file}"
        );
        let password = problem(&[ssl, ("ssl.truststore.password", "secret")]);
        assert!(
            password.starts_with("ssl.truststore.password: PEM needs no"),
            "{password}"
        );
    }

    #[test]
    fn oauthbearer_has_its_tokens_from_code_a_file_or_claims_for_tests() {
        let protocol = ("security.protocol", "SASL_PLAINTEXT");
        let mechanism = ("sasl.mechanism", "OAUTHBEARER");
        let endpoint = |url| ("sasl.oauthbearer.token.endpoint.url", url);
        for (more, expected) in [
            (
                endpoint("https://a"),
                "sasl.oauthbearer.token.endpoint.url: only file:",
            ),
            (
                ("sasl.oauthbearer.scope.claim.name", "s"),
                "sasl.oauthbearer.scope.claim.name: ",
            ),
            (
                ("sasl.jaas.config", "Module required;"),
                "sasl.mechanism: OAUTHBEARER needs",
            ),
            (
                (
                    "sasl.jaas.config",
                    "Module required unsecuredLoginNumberClaim_a=b;",
                ),
                "sasl.jaas.config: unsecuredLoginNumberClaim_a is not a number",
            ),
        ] {
            let problem = problem(&[protocol, mechanism, more]);
            assert!(problem.starts_with(expected), "{problem}");
        }
        let unsecured = "Module required unsecuredLoginStringClaim_sub=alice;";
        for more in [("sasl.jaas.config", unsecured), endpoint("file:///token")] {
            let properties: Properties = [protocol, mechanism, more].into_iter().collect();
            let security = Security::from_properties(&properties).unwrap();
            assert_eq!(format!("{:?}", security.sasl), "Some(OAUTHBEARER)");
        }
    }
}
