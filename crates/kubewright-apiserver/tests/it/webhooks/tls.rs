//! TLS failures of webhooks, in Go's wording.

use base64::Engine as _;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, DnValue, IsCa, Issuer, KeyPair, KeyUsagePurpose, SanType,
    date_time_ymd,
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::failures::message;
use super::hook::{Hook, review};
use super::{configure, create_config_map};
use crate::world::{server, soon};

/// A CA for webhooks.
pub(super) struct Ca {
    issuer: Issuer<'static, KeyPair>,
    pub(super) pem: String,
}

impl Ca {
    pub(super) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    /// Issues a certificate. `change` sets names and dates.
    pub(super) fn issue(
        &self,
        change: impl FnOnce(&mut CertificateParams),
    ) -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
        let mut params = CertificateParams::default();
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let cert = params.signed_by(&key, &self.issuer).unwrap();
        (cert.der().clone(), PrivatePkcs8KeyDer::from(key.serialize_der()).into())
    }
}

pub(super) fn dns(name: &str) -> SanType {
    SanType::DnsName(name.try_into().unwrap())
}

fn ip() -> SanType {
    SanType::IpAddress("127.0.0.1".parse().unwrap())
}

fn named(params: &mut CertificateParams, common_name: &str) {
    params.distinguished_name.push(DnType::CommonName, DnValue::Utf8String(common_name.to_owned()));
}

/// The end of the error of a webhook call, after the URL.
async fn failure(client: Value) -> String {
    let server = server();
    configure(&server, "Validating", "v", client, json!({})).await;
    let (status, _, body) = soon("the failure", create_config_map(&server, "a")).await;
    assert_eq!(status, 500, "{body}");
    message(&body).split_once("timeout=10s\": ").expect("the URL").1.to_owned()
}

#[tokio::test]
async fn invalid_certificates_give_gos_errors() {
    type Case = (&'static str, fn(&mut CertificateParams), &'static str);
    let cases: [Case; 7] = [
        (
            "127.0.0.1",
            |params| {
                params.subject_alt_names = vec![ip()];
                params.not_after = date_time_ymd(2021, 1, 1);
            },
            " is after 2021-01-01T00:00:00Z",
        ),
        (
            "127.0.0.1",
            |params| {
                params.subject_alt_names = vec![ip()];
                params.not_before = date_time_ymd(2900, 1, 1);
            },
            " is before 2900-01-01T00:00:00Z",
        ),
        (
            "127.0.0.1",
            |params| params.subject_alt_names = vec![dns("localhost")],
            "x509: cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs",
        ),
        (
            "localhost",
            |params| params.subject_alt_names = vec![dns("a.example.com"), dns("b.example.com")],
            "x509: certificate is valid for a.example.com, b.example.com, not localhost",
        ),
        (
            "localhost",
            |params| named(params, "localhost"),
            "x509: certificate relies on legacy Common Name field, use SANs instead",
        ),
        (
            "127.0.0.1",
            |params| named(params, "127.0.0.1"),
            "x509: certificate relies on legacy Common Name field, use SANs instead",
        ),
        (
            "localhost",
            |params| named(params, "example.com"),
            "x509: certificate is not valid for any names, but wanted to match localhost",
        ),
    ];
    let ca = Ca::new();
    for (host, change, expected) in cases {
        let (cert, key) = ca.issue(change);
        let allow = |_: &str, request: &Value| Some(review(request, json!({"allowed": true})));
        let hook = Hook::serve(cert, key, &ca.pem, allow).await;
        let mut client = hook.client("/x");
        client["url"] = format!("https://{host}:{}/x", hook.address.port()).into();
        let why = failure(client).await;
        assert!(why.starts_with("tls: failed to verify certificate: x509: "), "{expected}: {why}");
        assert!(why.ends_with(expected), "{expected}: {why}");
        if expected.starts_with(" is") {
            let start = "x509: certificate has expired or is not yet valid: current time 20";
            assert!(why.contains(start), "{why}");
        }
    }
}

#[tokio::test]
async fn a_server_that_does_not_complete_the_handshake_gives_gos_errors() {
    let ca = Ca::new();
    for (answer, expected) in [
        (&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], "http: server gave HTTP response to HTTPS client"),
        // Alerts: a record of type 21 with level and description.
        (&[21, 3, 3, 0, 2, 2, 40], "remote error: tls: handshake failure"),
        (&[21, 3, 3, 0, 2, 2, 48], "remote error: tls: unknown certificate authority"),
        (&[21, 3, 3, 0, 2, 2, 99], "remote error: tls: alert(99)"),
        (&[], "EOF"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}/x", listener.local_addr().unwrap());
        let listening = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            // Unread data would reset the connection.
            let mut hello = [0; 4096];
            assert!(stream.read(&mut hello).await.unwrap() > 0);
            stream.write_all(answer).await.unwrap();
            stream.shutdown().await.unwrap();
            // Keeps the connection open until the client closes it.
            drop(stream.read(&mut hello).await);
        });
        let bundle = base64::engine::general_purpose::STANDARD.encode(&ca.pem);
        assert_eq!(failure(json!({"url": url, "caBundle": bundle})).await, expected);
        listening.await.unwrap();
    }
}
