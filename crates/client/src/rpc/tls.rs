//! TLS, by rustls.

use std::{fmt, io, sync::Arc};

use tokio::net::TcpStream;
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{
        self, ClientConfig, RootCertStore,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
    },
};

use crate::{Error, Result};

/// How brokers are recognised by their certificates, and how they recognise us.
#[derive(Clone)]
pub struct Tls {
    connector: TlsConnector,
    server_name: Option<String>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls")
            .field("server_name", &self.server_name)
            .finish_non_exhaustive()
    }
}

/// What goes into [`Tls`]; by default, whom the operating system trusts.
#[derive(Clone, Default)]
pub struct TlsBuilder {
    ca_pem: Option<Vec<u8>>,
    client: Option<(Vec<u8>, Vec<u8>)>,
    server_name: Option<String>,
}

impl TlsBuilder {
    /// Trusts only the certificate authorities in these PEM sections (`ssl.ca.location`,
    /// `ssl.truststore.certificates`).
    pub fn ca_pem(mut self, pem: impl Into<Vec<u8>>) -> TlsBuilder {
        self.ca_pem = Some(pem.into());
        self
    }

    /// Shows this certificate, with those that lead to its authority, and proves it by this key
    /// (`ssl.keystore.certificate.chain`, `ssl.keystore.key`).
    pub fn client_pem(
        mut self,
        certificates: impl Into<Vec<u8>>,
        key: impl Into<Vec<u8>>,
    ) -> TlsBuilder {
        self.client = Some((certificates.into(), key.into()));
        self
    }

    /// Expects this name in the certificates of brokers instead of that of the address.
    pub fn server_name(mut self, name: impl Into<String>) -> TlsBuilder {
        self.server_name = Some(name.into());
        self
    }

    /// An error if what was given cannot be read.
    pub fn build(self) -> Result<Tls> {
        let mut roots = RootCertStore::empty();
        match &self.ca_pem {
            Some(pem) => {
                let setting = "ssl.truststore.certificates";
                for certificate in certificates(setting, pem)? {
                    let refused = |error: &dyn fmt::Display| {
                        Error::config(setting, format!("a certificate cannot be used: {error}"))
                    };
                    roots.add(certificate).map_err(|error| refused(&error))?;
                }
            }
            None => {
                let native = rustls_native_certs::load_native_certs();
                roots.add_parsable_certificates(native.certs);
            }
        }
        if roots.is_empty() {
            let problem = "there are no certificate authorities to trust";
            return Err(Error::config("ssl.truststore.certificates", problem));
        }
        let provider = Arc::new(ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| Error::config("security.protocol", error.to_string()))?
            .with_root_certificates(roots);
        let config = match &self.client {
            None => config.with_no_client_auth(),
            Some((chain, key)) => {
                let setting = "ssl.keystore.key";
                let chain = certificates("ssl.keystore.certificate.chain", chain)?;
                let key = PrivateKeyDer::from_pem_slice(key)
                    .map_err(|error| Error::config(setting, error.to_string()))?;
                config
                    .with_client_auth_cert(chain, key)
                    .map_err(|error| Error::config(setting, error.to_string()))?
            }
        };
        Ok(Tls {
            connector: TlsConnector::from(Arc::new(config)),
            server_name: self.server_name,
        })
    }
}

fn certificates(setting: &str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>> {
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|error| Error::config(setting, error.to_string()))?;
    if certificates.is_empty() {
        Err(Error::config(setting, "holds no certificate"))
    } else {
        Ok(certificates)
    }
}

impl Tls {
    /// What goes into it.
    pub fn builder() -> TlsBuilder {
        TlsBuilder::default()
    }

    pub(super) async fn connect(
        &self,
        address: &str,
        stream: TcpStream,
    ) -> io::Result<TlsStream<TcpStream>> {
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let name = self.server_name.as_deref().unwrap_or(host).to_owned();
        let name = ServerName::try_from(name)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        self.connector.connect(name, stream).await
    }
}

/// Why there can be no TLS on a connection, if that is what an error is about: a certificate that
/// one side does not accept, or a peer that speaks something else. Trying again does not help.
///
/// With TLS 1.3 the client learns of the broker's refusal only when it reads its first answer.
pub(super) fn refusal(error: &io::Error) -> Option<String> {
    let inner = error.get_ref()?.downcast_ref::<rustls::Error>()?;
    Some(match inner {
        rustls::Error::InvalidMessage(_) => format!("{inner}: does it speak TLS at all?"),
        rustls::Error::AlertReceived(alert) => format!("it answered {alert:?}"),
        inner => inner.to_string(),
    })
}
