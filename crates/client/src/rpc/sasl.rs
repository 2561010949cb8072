//! Authentication on a new connection (SASL).

use std::{
    fmt, io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use kohort_wire::{codec::Versions, messages::*};

use super::{
    ApiVersions,
    opening::Opening,
    random_u32,
    scram::{Hash, Scram},
};
use crate::{Error, Result};

const OAUTHBEARER: &str = "OAUTHBEARER";

/// `sasl.mechanism`, and who we are.
#[derive(Clone)]
#[non_exhaustive]
pub enum Sasl {
    /// `PLAIN`: tells the password, so only over TLS.
    Plain {
        /// The user name.
        username: String,
        /// The password.
        password: String,
    },
    /// `SCRAM-SHA-256`.
    ScramSha256 {
        /// The user name.
        username: String,
        /// The password.
        password: String,
    },
    /// `SCRAM-SHA-512`.
    ScramSha512 {
        /// The user name.
        username: String,
        /// The password.
        password: String,
    },
    /// `OAUTHBEARER`: a token, asked for whenever a connection is made.
    OAuthBearer(TokenSource),
}

/// Tells neither passwords nor tokens.
impl fmt::Debug for Sasl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.mechanism())
    }
}

/// Gives tokens. While a source that has given one before gives none, connections are tried again
/// like those to a broker that cannot be reached; one that never gave any is an error at once.
#[derive(Clone)]
pub struct TokenSource(Arc<Source>);

struct Source {
    ask: Box<dyn Fn() -> BoxFuture<'static, std::result::Result<String, String>> + Send + Sync>,
    /// It has given a token.
    works: AtomicBool,
}

impl TokenSource {
    /// Asks `token` for one; its error says why there is none.
    pub fn new<F, T>(token: F) -> TokenSource
    where
        F: Fn() -> T + Send + Sync + 'static,
        T: Future<Output = std::result::Result<String, String>> + Send + 'static,
    {
        TokenSource(Arc::new(Source {
            ask: Box::new(move || Box::pin(token())),
            works: AtomicBool::new(false),
        }))
    }

    async fn token(&self, broker: i32, address: &str) -> Result<String> {
        let problem = match (self.0.ask)().await {
            Ok(token) => {
                self.0.works.store(true, Ordering::Relaxed);
                return Ok(token);
            }
            Err(problem) => problem,
        };
        let address = address.to_owned();
        if self.0.works.load(Ordering::Relaxed) {
            Err(Error::Connect {
                broker,
                address,
                source: Arc::new(io::Error::other(format!("there is no token: {problem}"))),
            })
        } else {
            Err(Error::Authentication {
                address,
                mechanism: OAUTHBEARER,
                problem,
            })
        }
    }
}

impl Sasl {
    /// Kafka's name of the mechanism.
    pub fn mechanism(&self) -> &'static str {
        match self {
            Sasl::Plain { .. } => "PLAIN",
            Sasl::ScramSha256 { .. } => "SCRAM-SHA-256",
            Sasl::ScramSha512 { .. } => "SCRAM-SHA-512",
            Sasl::OAuthBearer(_) => OAUTHBEARER,
        }
    }

    fn refused(&self, address: &str, problem: impl Into<String>) -> Error {
        Error::Authentication {
            address: address.to_owned(),
            mechanism: self.mechanism(),
            problem: problem.into(),
        }
    }

    /// Authenticates a new connection. Returns the lifetime of the session in ms; 0 means no limit.
    pub(super) async fn authenticate(
        &self,
        opening: &mut Opening<'_>,
        versions: &ApiVersions,
    ) -> Result<i64> {
        let address = opening.address;
        let refused = |problem: String| self.refused(address, problem);
        let request = SaslHandshakeRequest {
            mechanism: self.mechanism().into(),
        };
        let handshake = opening.exchange(&request, 1).await?;
        if handshake.error_code.is_error() {
            let offered = handshake.mechanisms.join(", ");
            return Err(refused(format!(
                "{}; it offers: {offered}",
                handshake.error_code
            )));
        }
        let wanted = Versions::new(0, 2);
        let version = versions.newest_of(kohort_wire::ApiKey::SaslAuthenticate, wanted);
        let version = version.unwrap_or(0);
        match self {
            Sasl::Plain { username, password } => {
                let token = format!("\0{username}\0{password}");
                let answer = self.say(opening, version, token).await?;
                Ok(answer.session_lifetime_ms)
            }
            Sasl::ScramSha256 { username, password } => {
                let scram = Scram::new(Hash::Sha256, username, password, nonce());
                self.scram(opening, version, scram).await
            }
            Sasl::ScramSha512 { username, password } => {
                let scram = Scram::new(Hash::Sha512, username, password, nonce());
                self.scram(opening, version, scram).await
            }
            Sasl::OAuthBearer(source) => {
                let token = source.token(opening.broker, address).await?;
                let message = format!("n,,\u{1}auth=Bearer {token}\u{1}\u{1}");
                let answer = self.say(opening, version, message).await?;
                if !answer.auth_bytes.is_empty() {
                    // What is wrong, which is to be acknowledged.
                    let problem = String::from_utf8_lossy(&answer.auth_bytes).into_owned();
                    let _ = self.say(opening, version, "\u{1}".to_owned()).await;
                    return Err(self.refused(address, problem));
                }
                Ok(answer.session_lifetime_ms)
            }
        }
    }

    async fn scram(
        &self,
        opening: &mut Opening<'_>,
        version: i16,
        mut scram: Scram<'_>,
    ) -> Result<i64> {
        let address = opening.address;
        let refused = |problem: String| self.refused(address, problem);
        let answer = self.say(opening, version, scram.first()).await?;
        let second = scram.second(&answer.auth_bytes).map_err(refused)?;
        let answer = self.say(opening, version, second).await?;
        scram.finish(&answer.auth_bytes).map_err(refused)?;
        Ok(answer.session_lifetime_ms)
    }

    async fn say(
        &self,
        opening: &mut Opening<'_>,
        version: i16,
        message: String,
    ) -> Result<SaslAuthenticateResponse> {
        let request = SaslAuthenticateRequest {
            auth_bytes: Bytes::from(message),
        };
        let answer = opening.exchange(&request, version).await?;
        if answer.error_code.is_error() {
            let message = answer.error_message.as_deref().unwrap_or_default();
            let problem = if message.is_empty() {
                answer.error_code.to_string()
            } else {
                message.to_owned()
            };
            return Err(self.refused(opening.address, problem));
        }
        Ok(answer)
    }
}

/// A value that was never used before.
fn nonce() -> String {
    let parts = (0..4).map(|_| format!("{:08x}", random_u32()));
    parts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_source_of_tokens_that_has_given_one_may_be_out_of_order_for_a_while() {
        let working = Arc::new(AtomicBool::new(false));
        let works = working.clone();
        let source = TokenSource::new(move || {
            let works = works.load(Ordering::Relaxed);
            std::future::ready(works.then(|| "x".to_owned()).ok_or("closed".to_owned()))
        });
        let never = source.token(1, "a:1").await.unwrap_err();
        assert!(!never.is_retriable(), "{never}");
        working.store(true, Ordering::Relaxed);
        assert_eq!(source.token(1, "a:1").await.unwrap(), "x");
        working.store(false, Ordering::Relaxed);
        let error = source.token(1, "a:1").await.unwrap_err();
        assert!(error.is_retriable());
        let expected = "could not connect to a:1 (broker 1): there is no token: closed";
        assert_eq!(error.to_string(), expected);
    }
}
