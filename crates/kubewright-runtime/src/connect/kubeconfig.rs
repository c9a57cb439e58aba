//! Kubeconfigs: read, merged as kubectl merges them, and made into a configuration.
//!
//! Owns the fields of a kubeconfig and the words for what is wrong in one. The invariant: what is wrong is said with
//! its file and line. It opens no connection and runs no plugin.
//!
//! What a context does not use is not looked at: a mistake in another user's entry is no reason not to start.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use kube::Config;
use kube::config::{AuthInfo, AuthProviderConfig, ExecAuthCluster, ExecConfig, ExecInteractiveMode};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;

use super::proxy;
use super::yaml::{self, Content, Node};

/// Under this name a cluster's extensions hold what is for exec plugins.
const EXEC_EXTENSION: &str = "client.authentication.k8s.io/exec";

/// A kubeconfig cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KubeconfigError {
    /// Nobody said where one is, and there is no home folder to look in.
    #[error("neither KUBECONFIG nor a home folder is there")]
    Home,
    /// A file cannot be read.
    #[error("{} cannot be read", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Something in a file is not as it must be.
    #[error("{}:{line}: {what}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong, and what would be right.
        what: String,
    },
    /// No context was chosen.
    #[error("no context is chosen; choose one with `kubectl config use-context`")]
    NoContext,
    /// The context is not there.
    #[error("there is no context {0:?}")]
    Context(String),
    /// A context's cluster is not there.
    #[error("context {context:?} names the cluster {cluster:?}, which is not there")]
    Cluster {
        /// The context.
        context: String,
        /// The cluster.
        cluster: String,
    },
    /// The environment names a proxy that is none.
    #[error("HTTPS_PROXY is {0:?}, which is no URL; write http://HOST:PORT")]
    Proxy(String, #[source] http::uri::InvalidUri),
}

/// What the environment says of clusters.
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

/// What stands in one or several files. The first to say something wins.
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

/// A map in a file.
#[derive(Clone)]
struct Fields {
    file: PathBuf,
    node: Node,
}

impl Kubeconfig {
    /// Reads what the environment names: the files of `KUBECONFIG`, else `~/.kube/config`. Of several, those that are
    /// not there are left out.
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
        let text = text_of(bytes).ok_or_else(|| wrong(1, "this is no text".to_owned()))?;
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
            return Err(
                root.wrong(root.node.line, "this is no kubeconfig, which starts with `apiVersion: v1`")
            );
        }
        for (key, value) in [("kind", "Config"), ("apiVersion", "v1")] {
            let written = root.text(key)?;
            if written.is_some_and(|written| written != value) {
                return Err(root.wrong_field(key, &format!("a kubeconfig has `{key}: {value}`")));
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

    /// The configuration of a context, the current one if none is named.
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
        // As for client-go, a user that is not there is one without credentials.
        let user = context.text("user")?.and_then(|user| find(&self.users, &user));

        let server = cluster.text("server")?.filter(|server| !server.is_empty());
        let server = server.ok_or_else(|| {
            cluster.wrong(cluster.node.line, "this cluster has no server; write `server: https://HOST:PORT`")
        })?;
        let url: http::Uri = server
            .parse()
            .map_err(|error| cluster.wrong_field("server", &format!("{server:?} is no URL: {error}")))?;
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
            let certificates = certificates.map_err(|error| {
                cluster.wrong_field(field, &format!("these are no certificates in PEM form: {error}"))
            })?;
            config.root_cert = Some(certificates);
        }
        config.proxy_url = match cluster.text("proxy-url")?.filter(|url| !url.is_empty()) {
            Some(url) => Some(url.parse().map_err(|error| {
                cluster
                    .wrong_field("proxy-url", &format!("{url:?} is no URL: {error}; write http://HOST:PORT"))
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

/// A file's text. Editors of Windows write UTF-16, and marks at the beginning.
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

impl Fields {
    fn wrong(&self, line: usize, what: &str) -> KubeconfigError {
        KubeconfigError::Content { path: self.file.clone(), line, what: what.to_owned() }
    }

    /// As [`Fields::wrong`], on the line of a field.
    fn wrong_field(&self, key: &str, what: &str) -> KubeconfigError {
        self.wrong(self.node.get(key).map_or(self.node.line, |node| node.line), &format!("{key}: {what}"))
    }

    fn text(&self, key: &str) -> Result<Option<String>, KubeconfigError> {
        match self.node.get(key).map(|node| &node.content) {
            None => Ok(None),
            Some(Content::Scalar(text, _)) => Ok(Some(text.clone())),
            Some(_) => Err(self.wrong_field(key, "write text, not a list or a map")),
        }
    }

    fn flag(&self, key: &str) -> Result<Option<bool>, KubeconfigError> {
        match self.text(key)?.as_deref() {
            None => Ok(None),
            Some("true") => Ok(Some(true)),
            Some("false") => Ok(Some(false)),
            Some(_) => Err(self.wrong_field(key, "write true or false")),
        }
    }

    fn list(&self, key: &str) -> Result<Option<Vec<Self>>, KubeconfigError> {
        let items = match self.node.get(key).map(|node| &node.content) {
            None => return Ok(None),
            Some(Content::List(items)) => items,
            Some(_) => return Err(self.wrong_field(key, "write a list")),
        };
        Ok(Some(items.iter().map(|node| Self { file: self.file.clone(), node: node.clone() }).collect()))
    }

    fn texts(&self, key: &str) -> Result<Option<Vec<String>>, KubeconfigError> {
        let Some(items) = self.list(key)? else { return Ok(None) };
        let text = |item: Self| match item.node.content {
            Content::Scalar(text, _) => Ok(text),
            _ => Err(item.wrong(item.node.line, &format!("{key} is a list of texts"))),
        };
        items.into_iter().map(text).collect::<Result<_, _>>().map(Some)
    }

    fn map(&self, key: &str) -> Result<Option<Self>, KubeconfigError> {
        match self.node.get(key) {
            None => Ok(None),
            Some(node) if matches!(node.content, Content::Map(_)) => {
                Ok(Some(Self { file: self.file.clone(), node: node.clone() }))
            }
            Some(_) => Err(self.wrong_field(key, "write a map")),
        }
    }

    fn keys(&self) -> Vec<String> {
        let Content::Map(entries) = &self.node.content else { return Vec::new() };
        entries.iter().map(|(key, _)| key.clone()).collect()
    }

    /// The list of named things under `list`, each with its fields under `what`.
    fn entries(&self, list: &str, what: &str) -> Result<Vec<Entry>, KubeconfigError> {
        let mut entries = Vec::new();
        for item in self.list(list)?.unwrap_or_default() {
            let name = item.text("name")?;
            let name =
                name.ok_or_else(|| item.wrong(item.node.line, &format!("this entry of {list} has no name")))?;
            let fields = item.map(what)?;
            entries.extend(fields.map(|fields| Entry { name, fields }));
        }
        Ok(entries)
    }

    /// A path as it is meant: from the folder of the file that it stands in.
    fn path(&self, key: &str) -> Result<Option<String>, KubeconfigError> {
        let Some(path) = self.text(key)?.filter(|path| !path.is_empty()) else { return Ok(None) };
        Ok(Some(self.beside(path)))
    }

    fn beside(&self, path: String) -> String {
        let folder = self.file.parent().filter(|_| Path::new(&path).is_relative());
        folder.and_then(|folder| folder.join(&path).into_os_string().into_string().ok()).unwrap_or(path)
    }

    /// What stands here in base64, or in the file that is named here, with the field that it is from.
    fn data_or_file<'a>(
        &self,
        data: &'a str,
        file: &'a str,
    ) -> Result<Option<(&'a str, Vec<u8>)>, KubeconfigError> {
        if let Some(text) = self.text(data)?.filter(|text| !text.is_empty()) {
            let bytes = base64::engine::general_purpose::STANDARD
                .decode(&text)
                .map_err(|error| self.wrong_field(data, &format!("this is no base64: {error}")))?;
            return Ok(Some((data, bytes)));
        }
        let Some(path) = self.path(file)? else { return Ok(None) };
        let bytes = std::fs::read(&path)
            .map_err(|error| self.wrong_field(file, &format!("{path} cannot be read: {error}")))?;
        Ok(Some((file, bytes)))
    }

    /// Who this user is.
    fn auth_info(&self) -> Result<AuthInfo, KubeconfigError> {
        let provider = self.map("auth-provider")?;
        Ok(AuthInfo {
            username: self.text("username")?,
            password: self.text("password")?.map(Into::into),
            token: self.text("token")?.filter(|token| !token.is_empty()).map(Into::into),
            token_file: self.path("tokenFile")?,
            client_certificate: self.path("client-certificate")?,
            client_certificate_data: self.text("client-certificate-data")?,
            client_key: self.path("client-key")?,
            client_key_data: self.text("client-key-data")?.map(Into::into),
            impersonate: self.text("as")?,
            impersonate_uid: self.text("as-uid")?,
            impersonate_groups: self.texts("as-groups")?,
            impersonate_user_extra: self
                .map("as-user-extra")?
                .map(|extra| extra.lists_of_texts())
                .transpose()?,
            auth_provider: match provider {
                Some(provider) => Some(AuthProviderConfig {
                    name: provider.text("name")?.unwrap_or_default(),
                    ..AuthProviderConfig::default()
                }),
                None => None,
            },
            exec: self.map("exec")?.map(|exec| exec.exec_config()).transpose()?,
            ..AuthInfo::default()
        })
    }

    fn lists_of_texts(&self) -> Result<HashMap<String, Vec<String>>, KubeconfigError> {
        let list = |key: String| Ok((key.clone(), self.texts(&key)?.unwrap_or_default()));
        self.keys().into_iter().map(list).collect()
    }

    fn exec_config(&self) -> Result<ExecConfig, KubeconfigError> {
        let command = self.text("command")?.filter(|command| !command.is_empty());
        // A bare name is looked up in PATH; what has a slash is a file.
        let command = command.map(|command| {
            if command.contains(std::path::MAIN_SEPARATOR) { self.beside(command) } else { command }
        });
        let interactive_mode = match self.text("interactiveMode")?.as_deref() {
            None | Some("") => None,
            Some("Never") => Some(ExecInteractiveMode::Never),
            Some("IfAvailable") => Some(ExecInteractiveMode::IfAvailable),
            Some("Always") => Some(ExecInteractiveMode::Always),
            Some(_) => {
                return Err(self.wrong_field("interactiveMode", "write Never, IfAvailable or Always"));
            }
        };
        let env = self.list("env")?.map(|variables| variables.iter().map(Self::variable).collect());
        Ok(ExecConfig {
            api_version: self.text("apiVersion")?,
            command,
            args: self.texts("args")?,
            env: env.transpose()?,
            install_hint: self.text("installHint")?.filter(|hint| !hint.trim().is_empty()),
            interactive_mode,
            provide_cluster_info: self.flag("provideClusterInfo")?.unwrap_or(false),
            ..ExecConfig::default()
        })
    }

    /// A variable of a plugin's environment.
    fn variable(&self) -> Result<HashMap<String, String>, KubeconfigError> {
        let name = self.text("name")?;
        let name = name.ok_or_else(|| self.wrong(self.node.line, "this entry of env has no name"))?;
        let value = self.text("value")?.unwrap_or_default();
        Ok([("name".to_owned(), name), ("value".to_owned(), value)].into())
    }

    fn exec_extension(&self) -> Result<Option<serde_json::Value>, KubeconfigError> {
        for extension in self.list("extensions")?.unwrap_or_default() {
            if extension.text("name")?.as_deref() == Some(EXEC_EXTENSION) {
                return Ok(extension.node.get("extension").map(Node::to_json));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests;
