//! Where the broker listens, and where clients are told to find it: the settings `listeners`,
//! `advertised.listeners` and `listener.security.protocol.map`.
//!
//! As in Kafka, a client is told the address that belongs to the listener through which it came: a
//! container can be found under one name from other containers, and under another from the host.

use std::{fmt, net::Ipv6Addr};

use kohort_wire::ByteString;

use crate::settings::{View, list};

const LISTENERS: &str = "listeners";
const ADVERTISED: &str = "advertised.listeners";
const PROTOCOLS: &str = "listener.security.protocol.map";

/// The one protocol that is offered, and the name of a listener that has none.
const PLAINTEXT: &str = "PLAINTEXT";

/// What Kafka has besides.
const OTHER_PROTOCOLS: [&str; 3] = ["SSL", "SASL_PLAINTEXT", "SASL_SSL"];

/// An address as it is written: `[NAME://]host:port`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Endpoint {
    /// The listener's name, in capitals, if it has one.
    name: Option<String>,
    /// Without brackets. Empty: every address of the machine.
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// A listener to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListenerSpec {
    pub(crate) bind: Endpoint,
    /// Where clients that come through it are told to find the broker; `None`: where they have
    /// found it.
    pub(crate) advertised: Option<(ByteString, u16)>,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// The listeners that the settings ask for, or what is wrong with them.
pub(crate) fn listener_specs(view: View<'_>) -> Result<Vec<ListenerSpec>, String> {
    let binds = endpoints(view, LISTENERS)?;
    let advertised = endpoints(view, ADVERTISED)?;
    if binds.is_empty() {
        return Err(format!(
            "{LISTENERS} is empty: it takes at least one address"
        ));
    }
    check_names(&binds)?;
    check_protocols(view, &binds)?;
    for endpoint in &advertised {
        if endpoint.port == 0 || matches!(&*endpoint.host, "" | "0.0.0.0" | "::") {
            return Err(format!(
                "{ADVERTISED} cannot be \"{endpoint}\": clients need a host and a port that they \
                 can connect to"
            ));
        }
    }
    let mut specs: Vec<ListenerSpec> = binds
        .into_iter()
        .map(|bind| ListenerSpec {
            bind,
            advertised: None,
        })
        .collect();
    let (count, advertised_count) = (specs.len(), advertised.len());
    let has_names = advertised.iter().any(|endpoint| endpoint.name.is_some());
    if !has_names && advertised_count > 0 && advertised_count != count {
        return Err(format!(
            "{ADVERTISED} has {advertised_count} addresses for {count} listeners: each listener \
             takes one, in the same order (or give both names, as in INSIDE://kafka:9092)"
        ));
    }
    for (index, endpoint) in advertised.into_iter().enumerate() {
        let spec = match (&endpoint.name, has_names) {
            (_, false) => specs.get_mut(index),
            (name, true) => {
                let name = name.as_deref().unwrap_or(PLAINTEXT);
                let mut named = specs.iter_mut();
                named.find(|spec| spec.bind.name.as_deref().unwrap_or(PLAINTEXT) == name)
            }
        };
        let Some(spec) = spec else {
            let name = endpoint.name.as_deref().unwrap_or(PLAINTEXT);
            return Err(format!(
                "{ADVERTISED} names the listener {name}, which {LISTENERS} does not have"
            ));
        };
        let address = (ByteString::from(endpoint.host), endpoint.port);
        if spec.advertised.replace(address).is_some() {
            return Err(format!("{ADVERTISED} has two addresses for one listener"));
        }
    }
    Ok(specs)
}

fn endpoints(view: View<'_>, setting: &str) -> Result<Vec<Endpoint>, String> {
    let addresses = list(view.text(setting).unwrap_or_default());
    addresses
        .map(|address| {
            parse(address).map_err(|expected| {
                format!("{setting} cannot be \"{address}\": it must be {expected}")
            })
        })
        .collect()
}

/// As in Kafka; listeners without a name may be several.
fn check_names(binds: &[Endpoint]) -> Result<(), String> {
    for (index, bind) in binds.iter().enumerate() {
        if let Some(name) = &bind.name
            && binds[..index].iter().any(|before| before.name == bind.name)
        {
            return Err(format!("{LISTENERS} has two listeners of the name {name}"));
        }
    }
    Ok(())
}

/// Refuses listeners that want another protocol than the one that is offered: a client that expects
/// encryption must not find none.
fn check_protocols(view: View<'_>, binds: &[Endpoint]) -> Result<(), String> {
    let mut protocols = Vec::new();
    for entry in list(view.text(PROTOCOLS).unwrap_or_default()) {
        let Some((name, protocol)) = entry.split_once(':') else {
            return Err(format!(
                "{PROTOCOLS} cannot be \"{entry}\": it must be a list of NAME:PROTOCOL"
            ));
        };
        let [name, protocol] = [name, protocol].map(|text| text.trim().to_ascii_uppercase());
        if protocol != PLAINTEXT && !OTHER_PROTOCOLS.contains(&&*protocol) {
            return Err(format!(
                "{PROTOCOLS} cannot be \"{entry}\": there is no protocol {protocol}, only \
                 {PLAINTEXT}"
            ));
        }
        protocols.push((name, protocol));
    }
    for bind in binds {
        let name = bind.name.as_deref().unwrap_or(PLAINTEXT);
        let mapped = protocols.iter().rev().find(|(of, _)| of == name);
        let protocol = match mapped {
            Some((_, protocol)) => protocol,
            None if OTHER_PROTOCOLS.contains(&name) => name,
            None => PLAINTEXT,
        };
        if protocol != PLAINTEXT {
            return Err(format!(
                "{LISTENERS} cannot have the listener {name}: it asks for {protocol}, and only \
                 {PLAINTEXT} is supported"
            ));
        }
    }
    Ok(())
}

/// Reads `[NAME://]host:port`, or says what it should be.
fn parse(address: &str) -> Result<Endpoint, &'static str> {
    const EXPECTED: &str = "HOST:PORT, or NAME://HOST:PORT; HOST is a name, an IPv4 address, or \
                            an IPv6 address in brackets, and PORT is a number up to 65535";
    let (name, address) = match address.split_once("://") {
        Some((name, address)) => (Some(name.to_ascii_uppercase()), address),
        None => (None, address),
    };
    let is_name = |name: &str| {
        let mut characters = name.chars();
        !name.is_empty() && characters.all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
    };
    if name.as_deref().is_some_and(|name| !is_name(name)) {
        return Err(EXPECTED);
    }
    let (host, port) = address.rsplit_once(':').ok_or(EXPECTED)?;
    let is_number = !port.is_empty() && port.bytes().all(|digit| digit.is_ascii_digit());
    let port = port.parse().ok().filter(|_| is_number).ok_or(EXPECTED)?;
    let host = match host.strip_prefix('[').map(|host| host.strip_suffix(']')) {
        Some(Some(host)) if host.parse::<Ipv6Addr>().is_ok() => host,
        Some(_) => return Err(EXPECTED),
        None if host.parse::<Ipv6Addr>().is_ok() => {
            return Err("an IPv6 address in brackets, as in [::1]:9092");
        }
        None if host.is_empty() || is_host(host) => host,
        None => return Err(EXPECTED),
    };
    Ok(Endpoint {
        name,
        host: host.to_owned(),
        port,
    })
}

/// Whether a text can be a host's name or an IPv4 address. The underscore is not in the rules, and
/// Docker Compose makes such names.
fn is_host(host: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let host = host.strip_suffix('.').unwrap_or(host);
    let last = host.rsplit('.').next().unwrap_or_default();
    // What ends in a number is an address, and has to be one.
    let is_address = last.bytes().all(|byte| byte.is_ascii_digit());
    host.len() <= 253
        && host.split('.').all(is_label)
        && (!is_address || host.parse::<std::net::Ipv4Addr>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{BROKER, Values};

    fn specs(settings: &[(&str, &str)]) -> Result<Vec<ListenerSpec>, String> {
        let settings = settings.iter();
        let values: Values = settings
            .map(|&(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        listener_specs(View {
            table: BROKER,
            values: &values,
        })
    }

    /// Each listener and its advertised address, as texts.
    fn pairs(settings: &[(&str, &str)]) -> Vec<(String, Option<String>)> {
        let specs = specs(settings).unwrap().into_iter();
        let pair = |spec: ListenerSpec| {
            let advertised = spec.advertised.map(|(host, port)| format!("{host} {port}"));
            (spec.bind.to_string(), advertised)
        };
        specs.map(pair).collect()
    }

    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn an_advertised_address_belongs_to_the_listener_of_its_name_or_its_place() {
        assert_eq!(pairs(&[(LISTENERS, "a:1")]), [("a:1".to_owned(), None)]);
        assert_eq!(
            pairs(&[(LISTENERS, ":9092"), (ADVERTISED, "PLAINTEXT://[::1]:9092")]),
            [(":9092".to_owned(), some("::1 9092"))]
        );
        assert_eq!(
            pairs(&[
                (LISTENERS, "0.0.0.0:9092,0.0.0.0:29092"),
                (ADVERTISED, "kafka:9092,localhost:29092"),
            ]),
            [
                ("0.0.0.0:9092".to_owned(), some("kafka 9092")),
                ("0.0.0.0:29092".to_owned(), some("localhost 29092")),
            ]
        );
        assert_eq!(
            pairs(&[
                (LISTENERS, "INSIDE://:9092,outside://:29092,THIRD://:3"),
                (ADVERTISED, "OUTSIDE://localhost:29092,INSIDE://kafka:9092"),
                (PROTOCOLS, "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT,SSL:SSL"),
            ]),
            [
                (":9092".to_owned(), some("kafka 9092")),
                (":29092".to_owned(), some("localhost 29092")),
                (":3".to_owned(), None),
            ]
        );
    }

    #[test]
    fn what_is_no_address_is_refused_by_its_name() {
        for address in [
            "kafka",
            "kafka:",
            "kafka:port",
            "kafka:+1",
            "kafka:65536",
            "a:b:9092",
            "user@host:9092",
            "ho st:9092",
            "-host:9092",
            "1.2.3:9092",
            "1.2.3.256:9092",
            "[::1:9092",
            "[1.2.3.4]:9092",
            "::1:9092",
            "/host:9092",
            "://host:9092",
            "A B://host:9092",
        ] {
            for setting in [LISTENERS, ADVERTISED] {
                let error = specs(&[(setting, address)]).expect_err(address);
                assert!(
                    error.contains(setting) && error.contains(address),
                    "{error}"
                );
            }
        }
        for address in ["host:0", ":9092", "0.0.0.0:9092", "[::]:9092"] {
            assert!(specs(&[(LISTENERS, address)]).is_ok(), "{address}");
            let error = specs(&[(ADVERTISED, address)]).expect_err(address);
            assert!(
                error.contains(ADVERTISED) && error.contains(address),
                "{error}"
            );
        }
        for address in [
            "my_service-1.local.:1",
            "10.0.0.1:65535",
            "[fe80::1]:1",
            "kafka2:1",
        ] {
            assert!(specs(&[(LISTENERS, address)]).is_ok(), "{address}");
        }
    }

    #[test]
    fn what_does_not_fit_together_is_refused() {
        for (settings, part) in [
            (
                &[
                    (LISTENERS, "a:1"),
                    (ADVERTISED, "kafka:9092,localhost:29092"),
                ][..],
                "2 addresses for 1 listeners",
            ),
            (&[(LISTENERS, "A://a:1,A://a:2")], "name A"),
            (
                &[(LISTENERS, "A://a:1"), (ADVERTISED, "B://b:1")],
                "listener B",
            ),
            (
                &[(LISTENERS, "A://a:1"), (ADVERTISED, "A://b:1,A://b:2")],
                "two addresses",
            ),
            (&[(LISTENERS, "SSL://a:1")], "only PLAINTEXT is supported"),
            (
                &[(LISTENERS, "A://a:1"), (PROTOCOLS, "A:SASL_SSL")],
                "SASL_SSL",
            ),
            (&[(PROTOCOLS, "A:NONE")], "no protocol NONE"),
            (&[(PROTOCOLS, "A")], "NAME:PROTOCOL"),
            (&[(LISTENERS, " ")], "empty"),
        ] {
            let error = specs(settings).expect_err(part);
            assert!(error.contains(part), "{error}");
        }
    }
}
