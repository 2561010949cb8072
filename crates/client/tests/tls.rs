//! TLS by which there can be no connection: an error at once, since trying again does not help.

use std::{sync::Arc, time::Duration};

use kohort::{
    Admin, ClientConfig, Consumer, ConsumerConfig, Error,
    consumer::GroupProtocol,
    rpc::{Security, Tls},
};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use tokio::{io::AsyncReadExt, net::TcpListener, time::timeout};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        RootCertStore, ServerConfig,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer},
        server::WebPkiClientVerifier,
    },
};

/// An authority, and the PEM by which it is known.
fn authority(name: &str) -> (Issuer<'static, KeyPair>, CertificateDer<'static>, String) {
    let mut params = CertificateParams::new([]).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let (der, pem) = (certificate.der().clone(), certificate.pem());
    (Issuer::new(params, key), der, pem)
}

/// A server for 127.0.0.1 that shakes hands and says nothing. Returns its address and the PEM of
/// its authority.
async fn server(wants_certificates: bool) -> (String, String) {
    let (issuer, der, pem) = authority("ours");
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap();
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .unwrap();
    let builder = if wants_certificates {
        let mut roots = RootCertStore::empty();
        roots.add(der).unwrap();
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        builder.with_client_cert_verifier(verifier.build().unwrap())
    } else {
        builder.with_no_client_auth()
    };
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = builder
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                if let Ok(mut stream) = acceptor.accept(stream).await {
                    let _ = stream.read_to_end(&mut Vec::new()).await;
                }
            });
        }
    });
    (address, pem)
}

/// How it ends to be let in at `address`.
async fn refused(address: &str, tls: Tls) -> String {
    let mut config = ClientConfig::new(address);
    config.security = Security {
        tls: Some(tls),
        sasl: None,
    };
    let connecting = timeout(Duration::from_secs(10), Admin::connect(config)).await;
    let error = connecting.expect("it should end at once").unwrap_err();
    assert!(!error.is_retriable(), "{error}");
    let by_tls = matches!(&error, Error::Authentication { mechanism, .. } if *mechanism == "TLS");
    assert!(by_tls, "{error:?}");
    error.to_string()
}

#[tokio::test]
async fn a_certificate_of_an_unknown_authority_is_refused_at_once() {
    let (address, _) = server(false).await;
    let (_, _, other) = authority("another");
    let tls = Tls::builder().ca_pem(other).build().unwrap();
    let said = refused(&address, tls).await;
    assert!(said.contains("UnknownIssuer"), "{said}");
}

#[tokio::test]
async fn a_member_of_a_group_is_told_so_too() {
    let (address, _) = server(false).await;
    let (_, _, other) = authority("another");
    for protocol in [GroupProtocol::Consumer, GroupProtocol::Classic] {
        let mut config = ConsumerConfig::new(&address).group("group");
        config.group_protocol = protocol;
        config.client.security.tls = Some(Tls::builder().ca_pem(other.as_str()).build().unwrap());
        let mut consumer = Consumer::new(config).unwrap();
        consumer.subscribe(["topic"]).unwrap();
        let polled = timeout(Duration::from_secs(10), consumer.poll()).await;
        let error = polled.expect("it should end at once").unwrap_err();
        assert!(matches!(error, Error::Authentication { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn a_certificate_for_another_name_is_refused_at_once() {
    let (address, pem) = server(false).await;
    let tls = Tls::builder().ca_pem(pem).server_name("elsewhere.test");
    let said = refused(&address, tls.build().unwrap()).await;
    assert!(said.contains("elsewhere.test"), "{said}");
}

#[tokio::test]
async fn a_server_that_wants_a_certificate_refuses_who_has_none_at_once() {
    let (address, pem) = server(true).await;
    let tls = Tls::builder().ca_pem(pem).build().unwrap();
    let said = refused(&address, tls).await;
    assert!(said.contains("CertificateRequired"), "{said}");
}

#[tokio::test]
async fn a_server_without_tls_is_recognised_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let _ = tokio::io::AsyncWriteExt::write_all(&mut stream, b"\0\0\0\x04oh?!").await;
                let _ = stream.read_to_end(&mut Vec::new()).await;
            });
        }
    });
    let (_, _, pem) = authority("ours");
    let tls = Tls::builder().ca_pem(pem).build().unwrap();
    let said = refused(&address, tls).await;
    assert!(said.contains("does it speak TLS"), "{said}");
}
