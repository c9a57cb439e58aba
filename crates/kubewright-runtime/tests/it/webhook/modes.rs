//! A manager that serves its webhooks with certificate files, or without TLS.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kubewright_apiserver::{ApiServer, Options};
use kubewright_runtime::webhook::{CertificateMode, Rejection, Validation, Validator, WebhookOptions};
use kubewright_runtime::{Manager, ManagerError, ManagerOptions, eventually};
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

const LIMIT: Duration = Duration::from_secs(20);
const REQUEST: &[u8] =
    b"GET /validate--v1-configmap HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

struct Allow;

impl Validator for Allow {
    type Object = ConfigMap;

    async fn validate_create(&self, _: &ConfigMap, _: &mut Validation<'_>) -> Result<(), Rejection> {
        Ok(())
    }
}

struct Running {
    webhook: SocketAddr,
    probes: SocketAddr,
    stop: CancellationToken,
    task: JoinHandle<Result<(), ManagerError>>,
}

impl Running {
    async fn start(certificates: CertificateMode) -> Self {
        let kube = kube::Client::new(ApiServer::new(Options::default()), "default");
        let local = || "127.0.0.1:0".parse().expect("an address");
        let options = ManagerOptions {
            health_probe_bind_address: local(),
            webhooks: WebhookOptions { bind_address: local(), certificates, ..WebhookOptions::default() },
            ..ManagerOptions::new("guard")
        };
        let manager = Manager::new(kube, options).expect("a manager");
        manager.validator(Allow).expect("registered");
        let stop = CancellationToken::new();
        let task = tokio::spawn(manager.clone().run_until(stop.clone().cancelled_owned()));
        let addresses = manager.addresses().await;
        let [webhook, probes] = [addresses.webhook, addresses.health_probe].map(|it| it.expect("served"));
        Self { webhook, probes, stop, task }
    }

    async fn ready(&self) {
        let probe = async || match crate::serve::get(self.probes, "/readyz/webhook").await {
            Ok((200, _)) => Ok(()),
            other => Err(format!("{other:?}")),
        };
        eventually(LIMIT, probe).await.expect("ready");
    }

    async fn stop(self) {
        self.stop.cancel();
        self.task.await.expect("no panic").expect("no failure");
    }
}

/// Writes a new certificate for `localhost`.
fn write(folder: &Path) -> CertificateDer<'static> {
    let key = rcgen::KeyPair::generate().expect("a key");
    let params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).expect("a DNS name");
    let certificate = params.self_signed(&key).expect("a certificate");
    std::fs::write(folder.join("tls.crt"), certificate.pem()).expect("written");
    std::fs::write(folder.join("tls.key"), key.serialize_pem()).expect("written");
    certificate.der().clone()
}

/// Calls the webhook server over TLS, trusting only this certificate. Returns the status line.
async fn call(address: SocketAddr, trusted: &CertificateDer<'static>) -> Result<String, std::io::Error> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(trusted.clone()).expect("a certificate");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let client = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("TLS versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from("localhost").expect("a DNS name");
    let stream = tokio_rustls::TlsConnector::from(Arc::new(client)).connect(name, stream).await?;
    status(stream).await
}

async fn status(
    mut stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
) -> Result<String, std::io::Error> {
    stream.write_all(REQUEST).await?;
    let mut response = String::new();
    let _ = stream.read_to_string(&mut response).await;
    Ok(response.lines().next().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn replaced_certificate_files_are_served() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = write(folder.path());
    let [certificate, key] = ["tls.crt", "tls.key"].map(|name| folder.path().join(name));
    let running = Running::start(CertificateMode::Files { certificate, key }).await;
    running.ready().await;
    assert_eq!(call(running.webhook, &first).await.expect("trusted"), "HTTP/1.1 405 Method Not Allowed");

    let second = write(folder.path());
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(10)).await;
    tokio::time::resume();
    let status = eventually(LIMIT, async || call(running.webhook, &second).await).await;
    assert_eq!(status.expect("trusted"), "HTTP/1.1 405 Method Not Allowed");
    call(running.webhook, &first).await.expect_err("the old certificate is gone");
    running.ready().await;
    running.stop().await;
}

#[tokio::test]
async fn mode_none_serves_http() {
    let running = Running::start(CertificateMode::None).await;
    running.ready().await;
    let stream = TcpStream::connect(running.webhook).await.expect("connected");
    assert_eq!(status(stream).await.expect("a response"), "HTTP/1.1 405 Method Not Allowed");
    running.stop().await;
}
