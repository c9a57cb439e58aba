//! A webhook server as a process, and its certificate.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use kubewright_runtime::webhook::certificates::Material;
use kubewright_runtime::{Clock as _, SystemClock};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use tempfile::TempDir;

use super::load::Target;
use crate::{binary, process};

/// A certificate for 127.0.0.1 and its CA.
pub(super) struct Certificate(Material);

impl Certificate {
    pub(super) fn new() -> Result<Self> {
        let names = ["127.0.0.1".to_owned()];
        Ok(Self(Material::create(&names, SystemClock.now()).context("create a certificate")?))
    }

    /// Certificate and key.
    pub(super) fn pem(&self) -> (&[u8], &[u8]) {
        (self.0.leaf.certificate.as_bytes(), self.0.leaf.key.as_bytes())
    }

    /// A client configuration that trusts the certificate.
    pub(super) fn target(&self, address: SocketAddr) -> Result<Target> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(self.0.bundle().as_bytes()) {
            roots.add(certificate?)?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Target { address, config: Arc::new(config) })
    }
}

/// The binary of an operator.
pub(super) struct Binary(PathBuf);

impl Binary {
    pub(super) fn build(package: &str) -> Result<Self> {
        let linked = "profile.release.lto=\"thin\"".to_owned();
        let stripped = format!("profile.release.package.{package}.strip=\"symbols\"");
        binary::build(package, package, &[linked, stripped]).map(Self)
    }

    /// Starts the webhook server and waits until it listens.
    pub(super) fn start(&self, certificate: &Certificate) -> Result<Program> {
        let folder = tempfile::tempdir().context("create a directory for the certificate")?;
        let path = |name: &str| folder.path().join(name);
        let (pem, key) = certificate.pem();
        fs::write(path("tls.crt"), pem)?;
        fs::write(path("tls.key"), key)?;
        let log = path("log");
        let mut command = Command::new(&self.0);
        command.arg("webhooks").arg(path("tls.crt")).arg(path("tls.key")).env_remove("RUST_LOG");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(File::create(&log)?);
        let mut child = command.spawn().with_context(|| format!("start {}", self.0.display()))?;
        let stdout = child.stdout.take();
        let mut line = String::new();
        let read = stdout.map(|stdout| BufReader::new(stdout).read_line(&mut line));
        let address = read.and_then(|_| line.trim_end().strip_prefix("ready ")?.parse().ok());
        // From here on the process is killed on drop.
        let program = Program { child, address, _folder: folder };
        program.address.with_context(|| {
            let said = fs::read_to_string(&log).unwrap_or_default();
            format!("{} did not start; its output was\n{said}", self.0.display())
        })?;
        Ok(program)
    }
}

/// A running webhook server. Killed on drop.
pub(super) struct Program {
    child: Child,
    address: Option<SocketAddr>,
    _folder: TempDir,
}

impl Program {
    pub(super) fn address(&self) -> SocketAddr {
        self.address.unwrap_or_else(|| ([127, 0, 0, 1], 0).into())
    }

    /// Resident memory in bytes.
    pub(super) fn memory(&self) -> Result<f64> {
        let bytes = process::resident_memory(self.child.id())?;
        Ok(f64::from(u32::try_from(bytes / 1024).context("size exceeds 4 TiB")?) * 1024.0)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // The process may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
