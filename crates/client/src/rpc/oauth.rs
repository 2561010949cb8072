//! Sources of tokens for OAUTHBEARER that settings can name.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};

use super::{TokenSource, jaas::Jaas};
use crate::{Error, Result, time::now_ms};

/// Where Java's clients are told of a place that gives tokens.
pub(super) const ENDPOINT: &str = "sasl.oauthbearer.token.endpoint.url";

const PREFIX: &str = "unsecuredLogin";

/// What the settings say: a file with the token, or an unsigned token for tests.
pub(super) fn source(endpoint: Option<&str>, jaas: &Jaas) -> Result<TokenSource> {
    if let Some(endpoint) = endpoint {
        let Some(path) = endpoint.strip_prefix("file:") else {
            let problem = "only file: is read here; tokens from elsewhere come through \
                           Sasl::OAuthBearer(TokenSource::new(…)) in code";
            return Err(Error::config(ENDPOINT, problem));
        };
        // file:/path and file:///path are the same.
        let path = format!("/{}", path.trim_start_matches('/'));
        return Ok(TokenSource::new(move || {
            let read = std::fs::read_to_string(&path);
            let token = read.map_err(|error| format!("{path}: {error}"));
            std::future::ready(token.map(|token| token.trim().to_owned()))
        }));
    }
    if jaas.iter().any(|(name, _)| name.starts_with(PREFIX)) {
        let claims = Claims::from_jaas(jaas)?;
        return Ok(TokenSource::new(move || {
            std::future::ready(Ok(claims.token(now_ms() / 1000)))
        }));
    }
    let problem = format!(
        "OAUTHBEARER needs a source of tokens: Sasl::OAuthBearer(TokenSource::new(…)) in code, \
         {ENDPOINT}=file:/…, or, for tests, {PREFIX}StringClaim_sub in sasl.jaas.config"
    );
    Err(Error::config("sasl.mechanism", problem))
}

/// What an unsecured token claims (the options of Kafka's own handler for such).
struct Claims {
    /// Names, and values in JSON.
    claims: Vec<(String, String)>,
    lifetime_seconds: i64,
}

impl Claims {
    fn from_jaas(jaas: &Jaas) -> Result<Claims> {
        let mut all = Claims {
            claims: Vec::new(),
            lifetime_seconds: 3600,
        };
        for (option, value) in jaas.iter() {
            let refuse = |problem: &str| {
                let problem = format!("{option} {problem}");
                Err(Error::config("sasl.jaas.config", problem))
            };
            let Some(name) = option.strip_prefix(PREFIX) else {
                return refuse("is not an option of an unsecured OAUTHBEARER login");
            };
            let number = value
                .parse::<f64>()
                .ok()
                .filter(|number| number.is_finite());
            if let Some(claim) = name.strip_prefix("StringClaim_") {
                all.claims.push((claim.to_owned(), json(value)));
            } else if let Some(claim) = name.strip_prefix("NumberClaim_") {
                let Some(number) = number else {
                    return refuse("is not a number");
                };
                all.claims.push((claim.to_owned(), number.to_string()));
            } else if let Some(claim) = name.strip_prefix("ListClaim_") {
                // The first character separates the items.
                let mut items = value.chars();
                let separator = items.next().unwrap_or(',');
                let items: Vec<_> = items.as_str().split(separator).map(json).collect();
                all.claims
                    .push((claim.to_owned(), format!("[{}]", items.join(","))));
            } else if name == "LifetimeSeconds" {
                let Some(seconds) = number.filter(|seconds| *seconds >= 1.0) else {
                    return refuse("is not a number of seconds");
                };
                all.lifetime_seconds = seconds as i64;
            } else {
                return refuse("is not known here");
            }
        }
        Ok(all)
    }

    fn token(&self, now: i64) -> String {
        let mut payload = format!(r#"{{"iat":{now},"exp":{}"#, now + self.lifetime_seconds);
        for (name, value) in &self.claims {
            payload += &format!(",{}:{value}", json(name));
        }
        payload.push('}');
        let [header, payload] =
            [r#"{"alg":"none"}"#, &payload].map(|part| BASE64_URL_SAFE_NO_PAD.encode(part));
        format!("{header}.{payload}.")
    }
}

/// A text as JSON.
fn json(text: &str) -> String {
    let mut out = String::from('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            '\0'..='\x1f' => out += &format!("\\u{:04x}", character as u32),
            _ => out.push(character),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unsecured_token_says_what_the_options_claim() {
        let jaas = r#"Module required unsecuredLoginStringClaim_sub="al\"ice"
            unsecuredLoginListClaim_scope=",a,b" unsecuredLoginNumberClaim_n=7
            unsecuredLoginLifetimeSeconds=60;"#;
        let claims = Claims::from_jaas(&Jaas::parse(jaas).unwrap()).unwrap();
        let token = claims.token(1000);
        let parts: Vec<_> = token.split('.').collect();
        let text =
            |part: &str| String::from_utf8(BASE64_URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap();
        assert_eq!(text(parts[0]), r#"{"alg":"none"}"#);
        assert_eq!(
            text(parts[1]),
            r#"{"iat":1000,"exp":1060,"sub":"al\"ice","scope":["a","b"],"n":7}"#
        );
        assert_eq!((parts[2], parts.len()), ("", 3));
    }
}
