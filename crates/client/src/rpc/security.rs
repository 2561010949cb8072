//! `security.protocol` and what goes with it.

use super::{Sasl, Tls};
use crate::{Error, Properties, Result};

/// `security.protocol`: how connections are protected, and who we are. By default not at all, and
/// nobody (`PLAINTEXT`).
#[derive(Debug, Clone, Default)]
pub struct Security {
    /// Over TLS (`SSL`, `SASL_SSL`).
    pub tls: Option<Tls>,
    /// With an identity (`SASL_PLAINTEXT`, `SASL_SSL`).
    pub sasl: Option<Sasl>,
}

/// The settings that are read here: Kafka's, with certificates and keys in PEM, and librdkafka's
/// shorter ones.
const NAMES: [&str; 16] = [
    "security.protocol",
    "sasl.mechanism",
    "sasl.jaas.config",
    "sasl.username",
    "sasl.password",
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

pub(crate) fn is_setting(name: &str) -> bool {
    NAMES.contains(&name)
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
        for kind in ["ssl.truststore.type", "ssl.keystore.type"] {
            if get(kind).is_some_and(|kind| kind != "PEM") {
                return refuse(kind, "only PEM can be read");
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

fn file(name: &str, path: &str) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|error| Error::config(name, format!("{path}: {error}")))
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
    let jaas = get("sasl.jaas.config").unwrap_or_default();
    let find = |name: &str, from_jaas: &str| {
        let value = get(name)
            .map(str::to_owned)
            .or_else(|| jaas_option(jaas, from_jaas));
        value.ok_or_else(|| Error::config(name, "is needed"))
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
            let problem = "OAUTHBEARER needs a source of tokens, which only code can give";
            Err(Error::config("sasl.mechanism", problem))
        }
        _ => {
            let problem = "must be PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512";
            Err(Error::config("sasl.mechanism", problem))
        }
    }
}

/// An option of a login module, as Java writes it: `name="value"`.
fn jaas_option(jaas: &str, name: &str) -> Option<String> {
    let options = jaas.split_ascii_whitespace();
    let mut values = options.filter_map(|option| option.strip_prefix(name)?.strip_prefix('='));
    let value = values.next()?.trim_end_matches(';');
    Some(value.trim_matches(['"', '\'']).to_owned())
}
