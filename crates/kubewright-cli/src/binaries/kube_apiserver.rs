//! `kube-apiserver`, with the flags and files that Go's envtest uses.
//!
//! Like the real program, it runs no controllers. Objects are kept in memory; etcd is not used.

use std::ffi::OsString;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use kubewright_apiserver::audit::Audit;
use kubewright_apiserver::authn::tokens::{PublicKey, SigningKey, TokenOptions};
use kubewright_apiserver::authz::Authorization;
use kubewright_apiserver::certs::Authority;
use kubewright_apiserver::serve::{Certificates, Serving};
use kubewright_apiserver::{AdmissionPlugins, ApiServer, Controllers, KubernetesVersion, Options};

use super::audit_log::AuditLog;
use super::flags::{Asked, Effect, Flag, Given, Program};
use super::switches;
use crate::commands::apiserver::{authorization, duration};
use crate::control_plane;
use crate::descriptions::KubernetesDescriptions;
use crate::error::Hint as _;
use crate::log_output;
use crate::signals::Signals;
use crate::ui::Ui;

/// Default of kube-apiserver.
const DEFAULT_PORT: u16 = 6443;

const PROGRAM: Program = Program {
    name: "kube-apiserver",
    about: "kubewright's stand-in for kube-apiserver: an in-memory Kubernetes API server without controllers.",
    flags: &[
        used("authorization-mode", "MODES", "RBAC or AlwaysAllow (default AlwaysAllow)"),
        used("bind-address", "IP", "loopback address to listen on (default 127.0.0.1)"),
        used("cert-dir", "DIR", "directory of apiserver.crt and apiserver.key; created if missing"),
        used("client-ca-file", "FILE", "CAs for client certificates: CN is the user, O the groups"),
        used("secure-port", "PORT", "port to listen on; 0 picks a free port (default 6443)"),
        used("audit-log-path", "FILE", "file for audit events of level Metadata; - is the standard output"),
        used("api-audiences", "NAMES", "accepted token audiences (default: the issuers)"),
        used("service-account-issuer", "URL", "token issuer; the first one signs, all are accepted"),
        used("service-account-key-file", "FILE", "PEM keys or certificates that verify tokens"),
        used("service-account-signing-key-file", "FILE", "PEM key that signs tokens (default: generated)"),
        used("tls-cert-file", "FILE", "serving certificate; overrides --cert-dir"),
        used("tls-private-key-file", "FILE", "private key of --tls-cert-file"),
        used("etcd-servers", "URLS", "ignored: objects are kept in memory"),
        Flag { name: "allow-privileged", value: "", effect: Effect::Already("true"), help: "always true" },
        used("disable-admission-plugins", "NAMES", "admission plugins to disable (comma-separated)"),
        used("enable-admission-plugins", "NAMES", "additional admission plugins to enable"),
        used(
            "etcd-compaction-interval",
            "DURATION",
            "how long list continue tokens stay valid; 0 means forever (default 5m)",
        ),
        used("feature-gates", "GATES", "validated only; gates keep the Kubernetes v1.36 defaults"),
        used("runtime-config", "VERSIONS", "validated only; the default API versions are served"),
        Flag {
            name: "service-cluster-ip-range",
            value: "CIDR",
            effect: Effect::Already("10.0.0.0/24"),
            help: "ignored; always 10.0.0.0/24",
        },
        Flag { name: "advertise-address", value: "IP", effect: Effect::Nothing, help: "ignored" },
    ],
};

const fn used(name: &'static str, value: &'static str, help: &'static str) -> Flag {
    Flag { name, value, effect: Effect::Used, help }
}

pub(super) fn run(args: &[OsString], ui: &Ui) -> Result<()> {
    match PROGRAM.parse(args)? {
        Asked::Help => ui.print(PROGRAM.help().as_bytes()),
        Asked::Version => ui.print(format!("Kubernetes {}\n", KubernetesVersion::default()).as_bytes()),
        Asked::Run(given) => {
            log_output::install(ui)?;
            control_plane::runtime()?.block_on(serve(&given, ui))
        }
    }
}

async fn serve(given: &Given, ui: &Ui) -> Result<()> {
    let mut signals = Signals::listen()?;
    PROGRAM.warn_ignored(given, ui);
    if let Some(etcd) = given.get("etcd-servers") {
        ui.note(&format!("objects are kept in memory; ignoring --etcd-servers={etcd}"));
    }
    let address = address(given)?;
    let authorization = match given.get("authorization-mode") {
        // Default of kube-apiserver.
        None => Authorization::AlwaysAllow,
        Some(modes) => authorization(modes)
            .map_err(anyhow::Error::msg)
            .context("--authorization-mode is not supported")?
            .into(),
    };
    let names = |flag: &str| -> Vec<String> { given.list(flag).into_iter().map(str::to_owned).collect() };
    let admission = AdmissionPlugins {
        enable: names("enable-admission-plugins"),
        disable: names("disable-admission-plugins"),
        off_by_default: Vec::new(),
    };
    admission.check()?;
    for unavailable in
        [switches::feature_gates(given)?, switches::runtime_config(given)?].into_iter().flatten()
    {
        ui.warn(&unavailable);
    }
    let mut compaction_interval = Options::default().compaction_interval;
    if let Some(interval) = given.get("etcd-compaction-interval") {
        compaction_interval = duration(interval)
            .map_err(anyhow::Error::msg)
            .with_context(|| format!("invalid --etcd-compaction-interval={interval:?}"))
            .hint("use a duration such as 5m or 30s")?;
    }
    let audit: Option<Arc<dyn Audit>> = match given.get("audit-log-path") {
        None => None,
        Some(path) => {
            let log =
                AuditLog::open(path).with_context(|| format!("cannot open {path} (--audit-log-path)"))?;
            Some(Arc::new(log))
        }
    };
    let options = Options {
        admission,
        audit,
        controllers: Controllers::None,
        descriptions: Arc::new(KubernetesDescriptions),
        authorization,
        tokens: tokens(given)?,
        compaction_interval,
        ..Options::default()
    };
    let certificates = certificates(given, address.ip())?;
    let serving = Serving::open_at(ApiServer::new(options), address, &certificates)
        .await
        .context("failed to start the API server")?;
    ui.note(&format!("serving on https://{}", serving.address()));
    signals.any().await;
    serving.close().await;
    Ok(())
}

/// Service account token options.
fn tokens(given: &Given) -> Result<TokenOptions> {
    let mut options = TokenOptions {
        issuers: given.all("service-account-issuer").map(str::to_owned).collect(),
        audiences: given.all("api-audiences").flat_map(|list| list.split(',')).map(str::to_owned).collect(),
        ..TokenOptions::default()
    };
    let flag = "service-account-signing-key-file";
    if let Some(file) = given.get(flag) {
        let key = SigningKey::from_pem(&read(flag, Path::new(file))?)
            .with_context(|| format!("cannot use {file} (--{flag})"))?;
        options.signing_key = Some(Arc::new(key));
    }
    let flag = "service-account-key-file";
    for file in given.all(flag) {
        let keys = PublicKey::all_from_pem(&read(flag, Path::new(file))?)
            .with_context(|| format!("cannot use {file} (--{flag})"))?;
        options.verification_keys.extend(keys);
    }
    Ok(options)
}

fn address(given: &Given) -> Result<SocketAddr> {
    let ip = match given.get("bind-address") {
        None => IpAddr::V4(Ipv4Addr::LOCALHOST),
        Some(ip) => ip
            .parse()
            .with_context(|| format!("invalid --bind-address={ip:?}"))
            .hint("use an IP address such as 127.0.0.1")?,
    };
    let port = match given.get("secure-port") {
        None => DEFAULT_PORT,
        Some(port) => port
            .parse()
            .with_context(|| format!("invalid --secure-port={port:?}"))
            .hint("use a number from 0 to 65535")?,
    };
    Ok(SocketAddr::new(ip, port))
}

/// The certificates selected by the flags. Like kube-apiserver, it creates a self-signed certificate if there
/// is none and stores it in `--cert-dir`.
fn certificates(given: &Given, ip: IpAddr) -> Result<Certificates> {
    let clients = match given.get("client-ca-file") {
        None => None,
        Some(file) => Some(read("client-ca-file", Path::new(file))?),
    };
    if let (Some(cert), Some(key)) = (given.get("tls-cert-file"), given.get("tls-private-key-file")) {
        let server = read("tls-cert-file", Path::new(cert))?;
        return Ok(Certificates { server, key: read("tls-private-key-file", Path::new(key))?, clients });
    }
    let folder = given.get("cert-dir").map(Path::new);
    if let Some(folder) = folder {
        let (cert, key) = (folder.join("apiserver.crt"), folder.join("apiserver.key"));
        if cert.exists() && key.exists() {
            return Ok(Certificates {
                server: read("cert-dir", &cert)?,
                key: read("cert-dir", &key)?,
                clients,
            });
        }
    }
    let identity = Authority::new()
        .and_then(|authority| authority.server(&[ip]))
        .context("failed to create the serving certificate")?;
    if let Some(folder) = folder {
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::create_dir_all(folder)
                .and_then(|()| crate::secret_file::write(&path, text))
                .with_context(|| format!("cannot write {}", path.display()))
        };
        write("apiserver.crt", &identity.cert_pem)?;
        write("apiserver.key", &identity.key_pem)?;
    }
    Ok(Certificates { server: identity.cert_pem.into(), key: identity.key_pem.into(), clients })
}

fn read(flag: &str, file: &Path) -> Result<Vec<u8>> {
    fs::read(file).with_context(|| format!("cannot read {} (--{flag})", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches the help for a flag as Go's envtest does.
    fn knows(flag: &str) -> bool {
        let wanted = format!("--{flag}");
        PROGRAM.help().lines().any(|line| {
            let rest = line.trim_start().strip_prefix(&wanted);
            rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_'))
        })
    }

    #[test]
    fn the_help_lists_the_flags_of_envtest_and_no_insecure_port() {
        for flag in [
            "advertise-address",
            "allow-privileged",
            "audit-log-path",
            "authorization-mode",
            "bind-address",
            "cert-dir",
            "client-ca-file",
            "disable-admission-plugins",
            "enable-admission-plugins",
            "etcd-servers",
            "feature-gates",
            "runtime-config",
            "secure-port",
            "service-account-issuer",
            "service-account-key-file",
            "service-account-signing-key-file",
            "service-cluster-ip-range",
        ] {
            assert!(knows(flag), "{flag}");
        }
        assert!(!knows("insecure-port"));
    }
}
