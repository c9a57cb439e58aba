//! Reads kubeconfigs, merges them like kubectl, and converts them to a [`Config`].
//!
//! Invariant: errors name the file and the line. It opens no connection and runs no plugin.
//!
//! Only the entries of the selected context are validated: a mistake in another user's entry does not matter.

mod fields;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use kube::Config;
use kube::config::ExecAuthCluster;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;

use super::proxy;
use super::yaml::{self, Content};

use fields::Fields;

/// An invalid kubeconfig.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KubeconfigError {
    /// `KUBECONFIG` is not set, and there is no home directory.
    #[error("KUBECONFIG is not set and no home directory was found")]
    Home,
    /// A file cannot be read.
    #[error("failed to read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The content of a file is invalid.
    #[error("{}:{line}: {what}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// The line, starting at 1.
        line: usize,
        /// What is wrong, and the expected content.
        what: String,
    },
    /// There is no current context.
    #[error("no current context; set one with `kubectl config use-context`")]
    NoContext,
    /// The context does not exist.
    #[error("context {0:?} does not exist")]
    Context(String),
    /// The cluster of a context does not exist.
    #[error("context {context:?} refers to cluster {cluster:?}, which does not exist")]
    Cluster {
        /// The context.
        context: String,
        /// The cluster.
        cluster: String,
    },
    /// The proxy in the environment is not a URL.
    #[error("HTTPS_PROXY is {0:?}, which is not a URL; use http://HOST:PORT")]
    Proxy(String, #[source] http::uri::InvalidUri),
}

/// The environment variables that select clusters and proxies.
#[derive(Debug, Default)]
pub(super) struct Environment {
    pub(super) kubeconfig: Option<OsString>,
    pub(super) home: Option<PathBuf>,
    pub(super) https_proxy: Option<String>,
    pub(super) no_proxy: Option<String>,
}

impl Environment {
    pub(super) fn of_this_process() -> Self {
        let text = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        Self {
            kubeconfig: std::env::var_os("KUBECONFIG"),
            home: std::env::home_dir(),
            https_proxy: text("HTTPS_PROXY").or_else(|| text("https_proxy")),
            no_proxy: text("NO_PROXY").or_else(|| text("no_proxy")),
        }
    }
}

/// The merged content of one or several files. The first file that sets a value wins.
#[derive(Default)]
pub(super) struct Kubeconfig {
    current_context: Option<String>,
    contexts: Vec<Entry>,
    clusters: Vec<Entry>,
    users: Vec<Entry>,
}

/// A named context, cluster or user.
struct Entry {
    name: String,
    fields: Fields,
}

impl Kubeconfig {
    /// Reads the files of `KUBECONFIG`, or `~/.kube/config`. Of several files, missing ones are skipped.
    pub(super) fn find(environment: &Environment) -> Result<Self, KubeconfigError> {
        let named: Vec<PathBuf> = environment.kubeconfig.iter().flat_map(std::env::split_paths).collect();
        let named: Vec<PathBuf> = named.into_iter().filter(|path| !path.as_os_str().is_empty()).collect();
        if named.is_empty() {
            let home = environment.home.as_ref().ok_or(KubeconfigError::Home)?;
            return Self::read(&home.join(".kube").join("config"));
        }
        let (mut merged, mut found, mut missing) = (Self::default(), false, None);
        for path in named {
            match Self::read(&path) {
                Ok(next) => {
                    found = true;
                    merged.merge(next);
                }
                Err(KubeconfigError::Read { path, source }) if source.kind() == io::ErrorKind::NotFound => {
                    missing = missing.or(Some(KubeconfigError::Read { path, source }));
                }
                Err(error) => return Err(error),
            }
        }
        match missing {
            Some(missing) if !found => Err(missing),
            _ => Ok(merged),
        }
    }

    /// Reads one file.
    pub(super) fn read(path: &Path) -> Result<Self, KubeconfigError> {
        let bytes =
            std::fs::read(path).map_err(|source| KubeconfigError::Read { path: path.to_owned(), source })?;
        let wrong = |line, what| KubeconfigError::Content { path: path.to_owned(), line, what };
        let text = text_of(bytes).ok_or_else(|| wrong(1, "this file is not text".to_owned()))?;
        let documents = yaml::documents(&text).map_err(|mistake| wrong(mistake.line, mistake.what))?;
        let mut merged = Self::default();
        for node in documents {
            if !node.is_null() {
                merged.merge(Self::of(&Fields { file: path.to_owned(), node })?);
            }
        }
        Ok(merged)
    }

    fn of(root: &Fields) -> Result<Self, KubeconfigError> {
        if !matches!(root.node.content, Content::Map(_)) {
            return Err(root.wrong(
                root.node.line,
                "this is not a kubeconfig; a kubeconfig starts with `apiVersion: v1`",
            ));
        }
        for (key, value) in [("kind", "Config"), ("apiVersion", "v1")] {
            let written = root.text(key)?;
            if written.is_some_and(|written| written != value) {
                return Err(root.wrong_field(key, &format!("expected `{key}: {value}`")));
            }
        }
        Ok(Self {
            current_context: root.text("current-context")?.filter(|name| !name.is_empty()),
            contexts: root.entries("contexts", "context")?,
            clusters: root.entries("clusters", "cluster")?,
            users: root.entries("users", "user")?,
        })
    }

    fn merge(&mut self, next: Self) {
        self.current_context = self.current_context.take().or(next.current_context);
        for (mine, next) in [
            (&mut self.contexts, next.contexts),
            (&mut self.clusters, next.clusters),
            (&mut self.users, next.users),
        ] {
            let new: Vec<Entry> =
                next.into_iter().filter(|entry| find(mine, &entry.name).is_none()).collect();
            mine.extend(new);
        }
    }

    /// The configuration of a context, or of the current one.
    pub(super) fn config(
        &self,
        context: Option<&str>,
        environment: &Environment,
    ) -> Result<Config, KubeconfigError> {
        let name = context.or(self.current_context.as_deref()).ok_or(KubeconfigError::NoContext)?;
        let context = find(&self.contexts, name).ok_or_else(|| KubeconfigError::Context(name.to_owned()))?;
        let cluster = context.text("cluster")?.unwrap_or_default();
        let missing = || KubeconfigError::Cluster { context: name.to_owned(), cluster: cluster.clone() };
        let cluster = find(&self.clusters, &cluster).ok_or_else(missing)?;
        // As in client-go, a missing user has no credentials.
        let user = context.text("user")?.and_then(|user| find(&self.users, &user));

        let server = cluster.text("server")?.filter(|server| !server.is_empty());
        let server = server.ok_or_else(|| {
            cluster.wrong(cluster.node.line, "this cluster has no server; add `server: https://HOST:PORT`")
        })?;
        let url: http::Uri = server
            .parse()
            .map_err(|error| cluster.wrong_field("server", &format!("{server:?} is not a URL: {error}")))?;
        let mut config = Config::new(url);
        if let Some(namespace) = context.text("namespace")?.filter(|namespace| !namespace.is_empty()) {
            config.default_namespace = namespace;
        }
        config.accept_invalid_certs = cluster.flag("insecure-skip-tls-verify")?.unwrap_or(false);
        config.disable_compression = cluster.flag("disable-compression")?.unwrap_or(false);
        config.tls_server_name = cluster.text("tls-server-name")?;
        let authority = cluster.data_or_file("certificate-authority-data", "certificate-authority")?;
        if let Some((field, pem)) = &authority {
            let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem)
                .map(|certificate| certificate.map(|certificate| certificate.to_vec()))
                .collect();
            let certificates = certificates
                .map_err(|error| cluster.wrong_field(field, &format!("not PEM certificates: {error}")))?;
            config.root_cert = Some(certificates);
        }
        config.proxy_url = match cluster.text("proxy-url")?.filter(|url| !url.is_empty()) {
            Some(url) => Some(url.parse().map_err(|error| {
                cluster
                    .wrong_field("proxy-url", &format!("{url:?} is not a URL: {error}; use http://HOST:PORT"))
            })?),
            None => proxy::from_environment(&config.cluster_url, environment)?,
        };
        if let Some(user) = user {
            config.auth_info = user.auth_info()?;
            if let Some(exec) = &mut config.auth_info.exec
                && exec.provide_cluster_info
            {
                exec.cluster = Some(ExecAuthCluster {
                    server: Some(server),
                    insecure_skip_tls_verify: cluster.flag("insecure-skip-tls-verify")?,
                    certificate_authority_data: authority.map(|(_, pem)| pem),
                    proxy_url: cluster.text("proxy-url")?,
                    tls_server_name: cluster.text("tls-server-name")?,
                    config: cluster.exec_extension()?,
                });
            }
        }
        Ok(config)
    }
}

fn find<'a>(entries: &'a [Entry], name: &str) -> Option<&'a Fields> {
    entries.iter().find(|entry| entry.name == name).map(|entry| &entry.fields)
}

/// Decodes the text of a file. Windows editors write UTF-16 and byte order marks.
fn text_of(bytes: Vec<u8>) -> Option<String> {
    let utf_16 = |unit: fn([u8; 2]) -> u16| {
        let units: Vec<u16> = bytes[2..].as_chunks().0.iter().map(|pair| unit(*pair)).collect();
        String::from_utf16(&units).ok()
    };
    match &*bytes {
        [0xff, 0xfe, ..] => utf_16(u16::from_le_bytes),
        [0xfe, 0xff, ..] => utf_16(u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8(rest.to_vec()).ok(),
        _ => String::from_utf8(bytes).ok(),
    }
}

#[cfg(test)]
mod tests;
