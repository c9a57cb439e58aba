//! Real binaries: `etcd` and `kube-apiserver` from a directory, with the flags, certificates and ports of Go's envtest.
//!
//! They are started one after the other, listen on 127.0.0.1 only, and keep their data in a temporary directory. When
//! [`Assets`] is dropped, they are killed and the directory is deleted.

mod process;

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

use kubewright_apiserver::certs::{Authority, CertificateError};
use kubewright_apiserver::serve::kubeconfig;
use tempfile::TempDir;

use self::process::{Process, ProcessError};

/// The default start timeout of each process; `KUBEBUILDER_CONTROLPLANE_START_TIMEOUT` overrides it.
const START_WITHIN: Duration = Duration::from_mins(1);

/// The binaries could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AssetsError {
    /// A binary is missing.
    #[error(
        "{name} not found at {}; install it with setup-envtest, or unset KUBEBUILDER_ASSETS to use the embedded API server",
        path.display()
    )]
    Missing {
        /// The name of the binary.
        name: &'static str,
        /// The path that was checked.
        path: PathBuf,
    },
    /// A process did not become ready.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// A directory or a port could not be prepared.
    #[error("failed to prepare a directory or port for {0}")]
    Prepare(&'static str, #[source] io::Error),
    /// Certificates could not be generated.
    #[error("failed to generate certificates for kube-apiserver")]
    Certificates(#[from] CertificateError),
    /// The start timeout is invalid.
    #[error("invalid KUBEBUILDER_CONTROLPLANE_START_TIMEOUT={0:?}: must be a duration such as 60s or 2m")]
    Timeout(String),
    /// The kubeconfig is invalid.
    #[error("invalid kubeconfig for kube-apiserver")]
    Kubeconfig(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// A control plane of two processes, which are killed on drop.
pub(crate) struct Assets {
    config: kube::Config,
    // Dropped in this order: kube-apiserver, etcd, then the directory.
    _apiserver: Process,
    _etcd: Process,
    folder: TempDir,
    #[cfg(feature = "cluster")]
    authority: Authority,
}

impl Assets {
    pub(crate) async fn start(binaries: &Path) -> Result<Self, AssetsError> {
        let etcd = find(binaries, "etcd", "TEST_ASSET_ETCD")?;
        let apiserver = find(binaries, "kube-apiserver", "TEST_ASSET_KUBE_APISERVER")?;
        let within = start_within()?;
        let folder = tempfile::Builder::new()
            .prefix("kubewright-envtest-")
            .tempdir()
            .map_err(|source| AssetsError::Prepare("the control plane", source))?;
        let (etcd, etcd_url) = start_etcd(&etcd, folder.path(), within).await?;
        let authority = Authority::new()?;
        let (apiserver, config) =
            start_apiserver(&apiserver, folder.path(), &authority, &etcd_url, within).await?;
        Ok(Self {
            config,
            _apiserver: apiserver,
            _etcd: etcd,
            folder,
            #[cfg(feature = "cluster")]
            authority,
        })
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    pub(crate) fn url(&self) -> String {
        self.config.cluster_url.to_string().trim_end_matches('/').to_owned()
    }

    /// The certificate authority of all certificates.
    #[cfg(feature = "cluster")]
    pub(crate) fn authority(&self) -> &Authority {
        &self.authority
    }

    pub(crate) fn client(&self) -> Result<kube::Client, kubewright_runtime::connect::ConnectError> {
        kubewright_runtime::connect::client(
            self.config.clone(),
            kubewright_runtime::connect::Options::default(),
        )
    }
}

fn find(binaries: &Path, name: &'static str, variable: &str) -> Result<PathBuf, AssetsError> {
    let path = std::env::var_os(variable)
        .filter(|path| !path.is_empty())
        .map_or_else(|| binaries.join(name), PathBuf::from);
    if path.is_file() { Ok(path) } else { Err(AssetsError::Missing { name, path }) }
}

async fn start_etcd(
    binary: &Path,
    folder: &Path,
    within: Duration,
) -> Result<(Process, String), AssetsError> {
    let failed = |source| AssetsError::Prepare("etcd", source);
    let (client, peer) = (free_port().map_err(failed)?, free_port().map_err(failed)?);
    let url = format!("http://127.0.0.1:{client}");
    let mut arguments = vec![
        format!("--listen-peer-urls=http://127.0.0.1:{peer}"),
        format!("--advertise-client-urls={url}"),
        format!("--listen-client-urls={url}"),
        format!("--data-dir={}", folder.join("etcd").display()),
    ];
    if process::knows_flag(binary, "unsafe-no-fsync").await? {
        arguments.push("--unsafe-no-fsync=true".to_owned());
    }
    let mut process = Process::start("etcd", binary, &arguments, folder)?;
    process.ready(within, || process::plain_health(client, "/health")).await?;
    Ok((process, url))
}

async fn start_apiserver(
    binary: &Path,
    folder: &Path,
    authority: &Authority,
    etcd: &str,
    within: Duration,
) -> Result<(Process, kube::Config), AssetsError> {
    let failed = |source| AssetsError::Prepare("kube-apiserver", source);
    let port = free_port().map_err(failed)?;
    let certs = folder.join("apiserver");
    std::fs::create_dir_all(&certs).map_err(failed)?;
    let serving = authority.server(&[Ipv4Addr::LOCALHOST.into()])?;
    let signer = authority.client("sa-signer", &[])?;
    let admin = authority.client("admin", &["system:masters"])?;
    for (name, text) in [
        ("apiserver.crt", &serving.cert_pem),
        ("apiserver.key", &serving.key_pem),
        ("client-cert-auth-ca.crt", &authority.pem().to_owned()),
        ("sa-signer.crt", &signer.cert_pem),
        ("sa-signer.key", &signer.key_pem),
    ] {
        std::fs::write(certs.join(name), text).map_err(failed)?;
    }
    let url = format!("https://127.0.0.1:{port}");
    let yaml = kubeconfig(&url, authority.pem(), &admin);
    std::fs::write(folder.join("kubeconfig"), &yaml).map_err(failed)?;
    let arguments = [
        "--allow-privileged=true".to_owned(),
        "--authorization-mode=RBAC".to_owned(),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--cert-dir={}", certs.display()),
        format!("--client-ca-file={}", certs.join("client-cert-auth-ca.crt").display()),
        "--disable-admission-plugins=ServiceAccount".to_owned(),
        format!("--etcd-servers={etcd}"),
        format!("--secure-port={port}"),
        format!("--service-account-issuer={url}/"),
        format!("--service-account-key-file={}", certs.join("sa-signer.crt").display()),
        format!("--service-account-signing-key-file={}", certs.join("sa-signer.key").display()),
        "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
    ];
    let mut process = Process::start("kube-apiserver", binary, &arguments, folder)?;
    let config = config(&yaml).await?;
    let client =
        kubewright_runtime::connect::client(config.clone(), kubewright_runtime::connect::Options::default())
            .map_err(|error| AssetsError::Kubeconfig(Box::new(error)))?;
    process.ready(within, || ready(client.clone())).await?;
    Ok((process, config))
}

async fn config(yaml: &str) -> Result<kube::Config, AssetsError> {
    let failed = |error: Box<dyn std::error::Error + Send + Sync>| AssetsError::Kubeconfig(error);
    let kubeconfig = kube::config::Kubeconfig::from_yaml(yaml).map_err(|error| failed(Box::new(error)))?;
    let options = kube::config::KubeConfigOptions::default();
    kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(|error| failed(Box::new(error)))
}

/// Whether the server is ready and has the namespace `default`.
async fn ready(client: kube::Client) -> Result<(), String> {
    let request = |path: &str| http::Request::get(path).body(Vec::new()).expect("the path is valid");
    client.request_text(request("/readyz")).await.map_err(|error| error.to_string())?;
    client.request_text(request("/api/v1/namespaces/default")).await.map_err(|error| error.to_string())?;
    Ok(())
}

/// A port that was free at the time of the call.
fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

fn start_within() -> Result<Duration, AssetsError> {
    match std::env::var("KUBEBUILDER_CONTROLPLANE_START_TIMEOUT") {
        Ok(text) if !text.is_empty() => duration(&text).ok_or(AssetsError::Timeout(text)),
        _ => Ok(START_WITHIN),
    }
}

/// Parses a Go duration, such as `90s` or `2m`.
fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = text.split_at(text.find(|it: char| !it.is_ascii_digit() && it != '.')?);
    let number: f64 = number.parse().ok()?;
    let seconds = match unit {
        "ms" => number / 1000.0,
        "s" => number,
        "m" => number * 60.0,
        "h" => number * 3600.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_have_gos_syntax() {
        assert_eq!(duration("90s"), Some(Duration::from_secs(90)));
        assert_eq!(duration("1.5m"), Some(Duration::from_secs(90)));
        assert_eq!(duration("500ms"), Some(Duration::from_millis(500)));
        assert_eq!((duration("90"), duration("fast"), duration("s")), (None, None, None));
    }

    #[tokio::test]
    async fn the_error_for_a_missing_binary_names_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let Err(error) = Assets::start(folder.path()).await else { panic!("started without binaries") };
        assert!(error.to_string().starts_with("etcd not found at "), "{error}");
    }
}
