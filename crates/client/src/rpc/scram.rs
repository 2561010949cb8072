//! SCRAM (RFC 5802): both sides prove that they know the password, and neither tells it.

use std::num::NonZeroU32;

use base64::{Engine, engine::general_purpose::STANDARD};
use ring::{digest, hmac, pbkdf2};

/// More rounds than any server asks for; beyond, it only wants to keep us busy.
const ROUNDS_MAX: u32 = 1 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hash {
    Sha256,
    Sha512,
}

impl Hash {
    fn hmac(self) -> hmac::Algorithm {
        match self {
            Hash::Sha256 => hmac::HMAC_SHA256,
            Hash::Sha512 => hmac::HMAC_SHA512,
        }
    }

    fn digest(self) -> &'static digest::Algorithm {
        match self {
            Hash::Sha256 => &digest::SHA256,
            Hash::Sha512 => &digest::SHA512,
        }
    }

    fn pbkdf2(self) -> pbkdf2::Algorithm {
        match self {
            Hash::Sha256 => pbkdf2::PBKDF2_HMAC_SHA256,
            Hash::Sha512 => pbkdf2::PBKDF2_HMAC_SHA512,
        }
    }
}

/// A conversation with a server.
pub(super) struct Scram<'a> {
    hash: Hash,
    password: &'a str,
    nonce: String,
    first_bare: String,
    server_signature: Option<Vec<u8>>,
}

impl<'a> Scram<'a> {
    pub(super) fn new(hash: Hash, username: &str, password: &'a str, nonce: String) -> Scram<'a> {
        let username = username.replace('=', "=3D").replace(',', "=2C");
        Scram {
            hash,
            password,
            first_bare: format!("n={username},r={nonce}"),
            nonce,
            server_signature: None,
        }
    }

    pub(super) fn first(&self) -> String {
        format!("n,,{}", self.first_bare)
    }

    /// The answer to the server's first message.
    pub(super) fn second(&mut self, server_first: &[u8]) -> Result<String, String> {
        let server_first = text(server_first)?;
        let nonce = field(server_first, "r=")?;
        if !nonce.starts_with(&self.nonce) || nonce.len() == self.nonce.len() {
            return Err("the server's nonce does not continue ours".to_owned());
        }
        let salt = decode(field(server_first, "s=")?)?;
        let rounds: u32 = field(server_first, "i=")?.parse().unwrap_or(0);
        let rounds = NonZeroU32::new(rounds)
            .filter(|rounds| rounds.get() <= ROUNDS_MAX)
            .ok_or("the server's number of iterations cannot be used")?;
        let mut salted = vec![0; self.hash.digest().output_len()];
        let password = self.password.as_bytes();
        pbkdf2::derive(self.hash.pbkdf2(), rounds, &salt, password, &mut salted);
        let salted = hmac::Key::new(self.hash.hmac(), &salted);
        let client_key = hmac::sign(&salted, b"Client Key");
        let stored_key = digest::digest(self.hash.digest(), client_key.as_ref());
        // "biws" stands for "n,,": no channel is bound.
        let without_proof = format!("c=biws,r={nonce}");
        let said = format!("{},{server_first},{without_proof}", self.first_bare);
        let stored_key = hmac::Key::new(self.hash.hmac(), stored_key.as_ref());
        let signature = hmac::sign(&stored_key, said.as_bytes());
        let pairs = client_key.as_ref().iter().zip(signature.as_ref());
        let proof: Vec<u8> = pairs.map(|(key, signature)| key ^ signature).collect();
        let server_key = hmac::sign(&salted, b"Server Key");
        let server_key = hmac::Key::new(self.hash.hmac(), server_key.as_ref());
        let server_signature = hmac::sign(&server_key, said.as_bytes());
        self.server_signature = Some(server_signature.as_ref().to_vec());
        Ok(format!("{without_proof},p={}", STANDARD.encode(proof)))
    }

    /// Whether the server, in its last message, has proved that it knows the password.
    pub(super) fn finish(&self, server_final: &[u8]) -> Result<(), String> {
        let server_final = text(server_final)?;
        if let Some(error) = server_final.strip_prefix("e=") {
            return Err(error.to_owned());
        }
        let signature = decode(field(server_final, "v=")?)?;
        if self.server_signature.as_ref() == Some(&signature) {
            Ok(())
        } else {
            Err("the server does not know the password itself".to_owned())
        }
    }
}

fn text(bytes: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(bytes).map_err(|_| "the server's message is not text".to_owned())
}

fn field<'a>(message: &'a str, name: &str) -> Result<&'a str, String> {
    let mut fields = message.split(',');
    fields
        .find_map(|field| field.strip_prefix(name))
        .ok_or_else(|| format!("the server's message has no {name}"))
}

fn decode(text: &str) -> Result<Vec<u8>, String> {
    let broken = |_| "the server's message is not base64".to_owned();
    STANDARD.decode(text).map_err(broken)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The conversation of RFC 7677.
    #[test]
    fn both_sides_prove_that_they_know_the_password() {
        let nonce = "rOprNGfwEbeRWgbNEkqO".to_owned();
        let mut scram = Scram::new(Hash::Sha256, "user", "pencil", nonce);
        assert_eq!(scram.first(), "n,,n=user,r=rOprNGfwEbeRWgbNEkqO");
        let server_first = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
            s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
        assert_eq!(
            scram.second(server_first).unwrap(),
            "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
             p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
        );
        scram
            .finish(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")
            .unwrap();
        assert!(
            scram
                .finish(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G5=")
                .is_err()
        );
        assert!(scram.finish(b"e=invalid-proof").is_err());
    }

    #[test]
    fn a_server_that_answers_to_somebody_else_is_refused() {
        let mut scram = Scram::new(Hash::Sha512, "user", "pencil", "abc".to_owned());
        assert!(
            scram
                .second(b"r=xyzdef,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096")
                .is_err()
        );
        assert!(
            scram
                .second(b"r=abcdef,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=99999999")
                .is_err()
        );
    }
}
