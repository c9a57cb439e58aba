//! The fields of a kubeconfig. Errors name the field and its line.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use kube::config::{AuthInfo, AuthProviderConfig, ExecConfig, ExecInteractiveMode};

use super::{Entry, KubeconfigError};
use crate::connect::yaml::{Content, Node};

/// The cluster extension with the configuration of exec plugins.
const EXEC_EXTENSION: &str = "client.authentication.k8s.io/exec";

/// A map in a file.
#[derive(Clone)]
pub(super) struct Fields {
    pub(super) file: PathBuf,
    pub(super) node: Node,
}

impl Fields {
    pub(super) fn wrong(&self, line: usize, what: &str) -> KubeconfigError {
        KubeconfigError::Content { path: self.file.clone(), line, what: what.to_owned() }
    }

    /// Like [`Fields::wrong`], with the line of a field.
    pub(super) fn wrong_field(&self, key: &str, what: &str) -> KubeconfigError {
        self.wrong(self.node.get(key).map_or(self.node.line, |node| node.line), &format!("{key}: {what}"))
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<String>, KubeconfigError> {
        match self.node.get(key).map(|node| &node.content) {
            None => Ok(None),
            Some(Content::Scalar(text, _)) => Ok(Some(text.clone())),
            Some(_) => Err(self.wrong_field(key, "expected text, not a list or a map")),
        }
    }

    pub(super) fn flag(&self, key: &str) -> Result<Option<bool>, KubeconfigError> {
        match self.text(key)?.as_deref() {
            None => Ok(None),
            Some("true") => Ok(Some(true)),
            Some("false") => Ok(Some(false)),
            Some(_) => Err(self.wrong_field(key, "expected true or false")),
        }
    }

    pub(super) fn list(&self, key: &str) -> Result<Option<Vec<Self>>, KubeconfigError> {
        let items = match self.node.get(key).map(|node| &node.content) {
            None => return Ok(None),
            Some(Content::List(items)) => items,
            Some(_) => return Err(self.wrong_field(key, "expected a list")),
        };
        Ok(Some(items.iter().map(|node| Self { file: self.file.clone(), node: node.clone() }).collect()))
    }

    pub(super) fn texts(&self, key: &str) -> Result<Option<Vec<String>>, KubeconfigError> {
        let Some(items) = self.list(key)? else { return Ok(None) };
        let text = |item: Self| match item.node.content {
            Content::Scalar(text, _) => Ok(text),
            _ => Err(item.wrong(item.node.line, &format!("{key} must be a list of strings"))),
        };
        items.into_iter().map(text).collect::<Result<_, _>>().map(Some)
    }

    pub(super) fn map(&self, key: &str) -> Result<Option<Self>, KubeconfigError> {
        match self.node.get(key) {
            None => Ok(None),
            Some(node) if matches!(node.content, Content::Map(_)) => {
                Ok(Some(Self { file: self.file.clone(), node: node.clone() }))
            }
            Some(_) => Err(self.wrong_field(key, "expected a map")),
        }
    }

    fn keys(&self) -> Vec<String> {
        let Content::Map(entries) = &self.node.content else { return Vec::new() };
        entries.iter().map(|(key, _)| key.clone()).collect()
    }

    /// The named entries of a list, each with its fields under `what`.
    pub(super) fn entries(&self, list: &str, what: &str) -> Result<Vec<Entry>, KubeconfigError> {
        let mut entries = Vec::new();
        for item in self.list(list)?.unwrap_or_default() {
            let name = item.text("name")?;
            let name =
                name.ok_or_else(|| item.wrong(item.node.line, &format!("entry of {list} has no name")))?;
            let fields = item.map(what)?;
            entries.extend(fields.map(|fields| Entry { name, fields }));
        }
        Ok(entries)
    }

    /// A path, resolved relative to the directory of its file.
    fn path(&self, key: &str) -> Result<Option<String>, KubeconfigError> {
        let Some(path) = self.text(key)?.filter(|path| !path.is_empty()) else { return Ok(None) };
        Ok(Some(self.beside(path)))
    }

    fn beside(&self, path: String) -> String {
        let folder = self.file.parent().filter(|_| Path::new(&path).is_relative());
        folder.and_then(|folder| folder.join(&path).into_os_string().into_string().ok()).unwrap_or(path)
    }

    /// Inline base64 data or the content of the named file, and the name of the field that it came from.
    pub(super) fn data_or_file<'a>(
        &self,
        data: &'a str,
        file: &'a str,
    ) -> Result<Option<(&'a str, Vec<u8>)>, KubeconfigError> {
        if let Some(text) = self.text(data)?.filter(|text| !text.is_empty()) {
            let bytes = base64::engine::general_purpose::STANDARD
                .decode(&text)
                .map_err(|error| self.wrong_field(data, &format!("invalid base64: {error}")))?;
            return Ok(Some((data, bytes)));
        }
        let Some(path) = self.path(file)? else { return Ok(None) };
        let bytes = std::fs::read(&path)
            .map_err(|error| self.wrong_field(file, &format!("failed to read {path}: {error}")))?;
        Ok(Some((file, bytes)))
    }

    /// The credentials of this user.
    pub(super) fn auth_info(&self) -> Result<AuthInfo, KubeconfigError> {
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
        // A bare name is looked up in PATH; a name with a slash is a path.
        let command = command.map(|command| {
            if command.contains(std::path::MAIN_SEPARATOR) { self.beside(command) } else { command }
        });
        let interactive_mode = match self.text("interactiveMode")?.as_deref() {
            None | Some("") => None,
            Some("Never") => Some(ExecInteractiveMode::Never),
            Some("IfAvailable") => Some(ExecInteractiveMode::IfAvailable),
            Some("Always") => Some(ExecInteractiveMode::Always),
            Some(_) => {
                return Err(self.wrong_field("interactiveMode", "expected Never, IfAvailable or Always"));
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

    /// An environment variable of a plugin.
    fn variable(&self) -> Result<HashMap<String, String>, KubeconfigError> {
        let name = self.text("name")?;
        let name = name.ok_or_else(|| self.wrong(self.node.line, "entry of env has no name"))?;
        let value = self.text("value")?.unwrap_or_default();
        Ok([("name".to_owned(), name), ("value".to_owned(), value)].into())
    }

    pub(super) fn exec_extension(&self) -> Result<Option<serde_json::Value>, KubeconfigError> {
        for extension in self.list("extensions")?.unwrap_or_default() {
            if extension.text("name")?.as_deref() == Some(EXEC_EXTENSION) {
                return Ok(extension.node.get("extension").map(Node::to_json));
            }
        }
        Ok(None)
    }
}
