//! The PROJECT file: project metadata.
//!
//! The format is version 3 of kubebuilder's, so each tool can read the other's file. Unknown fields are
//! preserved. Serialization is deterministic.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context as _, Result, anyhow, bail};
use kubewright_manifests::yaml;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::error::Hint as _;

/// Path relative to the project root.
pub(crate) const PATH: &str = "PROJECT";
/// Layout of kubewright projects.
pub(crate) const LAYOUT: &str = "kubewright.dev/v1";
/// Supported version of the file format.
const VERSION: &str = "3";
/// Setting that lists kinds imported from CRDs.
const IMPORTED: &str = "imported";
/// Setting with the storage versions of kinds that have several versions.
const STORAGE_VERSIONS: &str = "storageVersions";
/// Setting with the source of the webhook serving certificate.
const WEBHOOK_CERTS: &str = "webhookCerts";
/// Field with the version of the tool that scaffolded the project, as in kubebuilder.
const CLI_VERSION: &str = "cliVersion";
const HEADER: &str = "\
# Project metadata, managed by `kubewright`. Do not edit it.
# The format is kubebuilder's: https://book.kubebuilder.io/reference/project-config.html
";

/// The content of PROJECT.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProjectFile {
    #[serde(deserialize_with = "text")]
    pub(crate) version: String,
    #[serde(default)]
    pub(crate) domain: String,
    #[serde(default)]
    pub(crate) project_name: String,
    #[serde(default, deserialize_with = "one_or_several")]
    pub(crate) layout: Vec<String>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) multigroup: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) namespaced: bool,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(crate) plugins: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) resources: Vec<Resource>,
    /// Unknown fields of other tools or later releases.
    #[serde(flatten)]
    pub(crate) other: Map<String, Value>,
    /// CRDs of imported kinds, by kind ID. They are stored in separate files.
    #[serde(skip)]
    pub(crate) imported: BTreeMap<String, Value>,
}

/// A kind that the project defines, reconciles, or both.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Resource {
    /// Set for kinds that the project defines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) api: Option<Api>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) controller: bool,
    /// Set if there are several controllers, or one with a custom name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) controllers: Vec<Controller>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) core: bool,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) domain: String,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) external: bool,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) group: String,
    pub(crate) kind: String,
    /// Crate of an external kind, as `name@version`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) module: String,
    /// Rust module of the type.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) path: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) plural: String,
    pub(crate) version: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) webhooks: Option<Webhooks>,
    #[serde(flatten)]
    pub(crate) other: Map<String, Value>,
}

/// The webhooks of a version of a kind, as kubebuilder records them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Webhooks {
    /// Whether this version is the conversion hub.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) conversion: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) defaulting: bool,
    /// Path of the defaulting webhook, if not the default.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) defaulting_path: String,
    /// Versions converted to and from the hub.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) spoke: Vec<String>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) validation: bool,
    /// Path of the validating webhook, if not the default.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) validation_path: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) webhook_version: String,
    #[serde(flatten)]
    pub(crate) other: Map<String, Value>,
}

/// How a kind is defined.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Api {
    #[serde(default)]
    pub(crate) crd_version: String,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) namespaced: bool,
    #[serde(flatten)]
    pub(crate) other: Map<String, Value>,
}

/// A named controller.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Controller {
    pub(crate) name: String,
}

impl ProjectFile {
    /// Creates a project without kinds.
    pub(crate) fn new(domain: &str, name: &str) -> Self {
        Self {
            version: VERSION.to_owned(),
            domain: domain.to_owned(),
            project_name: name.to_owned(),
            layout: vec![LAYOUT.to_owned()],
            other: Map::from_iter([(CLI_VERSION.to_owned(), env!("CARGO_PKG_VERSION").into())]),
            ..Self::default()
        }
    }

    /// Records the kubewright version of the scaffold.
    pub(crate) fn set_cli_version(&mut self, version: &str) {
        self.other.insert(CLI_VERSION.to_owned(), version.into());
    }

    /// Reads the PROJECT file in a directory.
    pub(crate) fn load(root: &Path) -> Result<Self> {
        let path = root.join(PATH);
        // A FIFO would block.
        if fs::metadata(&path).is_ok_and(|found| !found.is_file()) {
            return Err(anyhow!("{} is not a regular file", path.display())).hint("move or delete it");
        }
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(anyhow!(
                    "{} is not a kubewright project: it has no PROJECT file",
                    root.display()
                ))
                .hint("run `kubewright init` first, or run this in a project directory");
            }
            Err(error) => return Err(error).context("cannot read PROJECT"),
        };
        let mut file = Self::read(&text)?;
        if !file.layout.iter().any(|layout| layout == LAYOUT) {
            let layout = file.layout.join(", ");
            return Err(anyhow!("the project layout is {layout}, not {LAYOUT}"))
                .hint("import it into a new directory: `kubewright init --from PROJECT ../new-directory`");
        }
        file.load_imported(root)?;
        Ok(file)
    }

    /// Reads the CRDs of imported kinds. Their generated files are needed for merging.
    fn load_imported(&mut self, root: &Path) -> Result<()> {
        let ids = self.setting(IMPORTED).and_then(Value::as_array).cloned().unwrap_or_default();
        for resource in self.resources.iter().filter(|resource| ids.contains(&resource.id().into())) {
            let path = resource.imported_path();
            let read =
                || -> Result<Value> { Ok(serde_saphyr::from_str(&fs::read_to_string(root.join(&path))?)?) };
            let definition = read()
                .with_context(|| format!("cannot read {path}, the CRD of {}", resource.shown()))
                .hint("restore it from version control")?;
            self.imported.insert(resource.id(), definition);
        }
        Ok(())
    }

    /// Records the CRD that a kind was imported from, or removes the record.
    pub(crate) fn import(&mut self, id: &str, definition: Option<&Value>) {
        match definition {
            Some(definition) => _ = self.imported.insert(id.to_owned(), definition.clone()),
            None => _ = self.imported.remove(id),
        }
        let ids: Vec<&String> = self.imported.keys().collect();
        let ids = if ids.is_empty() { Value::Null } else { ids.into_iter().cloned().collect() };
        self.set(IMPORTED, ids);
    }

    /// Parses a PROJECT file.
    pub(crate) fn read(text: &str) -> Result<Self> {
        #[derive(Deserialize)]
        struct Numbered {
            #[serde(deserialize_with = "self::text")]
            version: String,
        }
        let broken = |error: &serde_saphyr::Error| {
            // The first line of the message has the location; the rest quotes the file.
            let said = error.to_string();
            let said = said.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
            let at = error.location().map(|at| format!(" at line {}", at.line())).unwrap_or_default();
            anyhow!(said)
                .context(format!("PROJECT is invalid{at}"))
                .hint("restore it from version control; do not edit this file")
        };
        let numbered: Numbered = serde_saphyr::from_str(text).map_err(|error| broken(&error))?;
        match numbered.version.as_str() {
            VERSION => {}
            newer if newer.parse::<u32>().is_ok_and(|newer| newer > 3) => {
                return Err(anyhow!("PROJECT has version {newer}, but this kubewright supports {VERSION}"))
                    .hint("use a newer kubewright");
            }
            other => bail!("PROJECT has version {other}, but this kubewright supports {VERSION}"),
        }
        serde_saphyr::from_str(text).map_err(|error| broken(&error))
    }

    /// Serializes the file.
    pub(crate) fn to_text(&self) -> String {
        let value = serde_json::to_value(self).expect("a project file can be serialized");
        format!("{HEADER}{}", yaml::document(&value).trim_start_matches("---\n"))
    }

    /// A kubewright setting that kubebuilder has no field for.
    pub(crate) fn setting(&self, name: &str) -> Option<&Value> {
        self.plugins.get(LAYOUT)?.get(name)
    }

    /// Sets a setting; null removes it.
    pub(crate) fn set(&mut self, name: &str, value: Value) {
        let ours = self.plugins.entry(LAYOUT).or_insert_with(|| Value::Object(Map::new()));
        let Value::Object(ours) = ours else { return };
        if value.is_null() || value == false {
            ours.remove(name);
        } else {
            ours.insert(name.to_owned(), value);
        }
        if ours.is_empty() {
            self.plugins.remove(LAYOUT);
        }
    }

    /// The recorded storage version of a kind. Kinds with one version have no record.
    pub(crate) fn storage_version(&self, of: &Resource) -> Option<&str> {
        self.setting(STORAGE_VERSIONS)?.get(of.kind_id())?.as_str()
    }

    /// Records the storage version of a kind; `None` removes the record.
    pub(crate) fn set_storage_version(&mut self, of: &Resource, version: Option<&str>) {
        let mut versions =
            self.setting(STORAGE_VERSIONS).and_then(Value::as_object).cloned().unwrap_or_default();
        match version {
            Some(version) => _ = versions.insert(of.kind_id(), version.into()),
            None => _ = versions.remove(&of.kind_id()),
        }
        self.set(STORAGE_VERSIONS, if versions.is_empty() { Value::Null } else { versions.into() });
    }

    /// Source of the webhook serving certificate.
    pub(crate) fn webhook_certs(&self) -> WebhookCerts {
        let named = self.setting(WEBHOOK_CERTS).and_then(Value::as_str);
        let all = [WebhookCerts::CertManager, WebhookCerts::Files, WebhookCerts::None];
        all.into_iter().find(|certs| named == Some(certs.name())).unwrap_or_default()
    }

    /// Sets the source of the webhook serving certificate.
    pub(crate) fn set_webhook_certs(&mut self, certs: WebhookCerts) {
        let is_default = certs == WebhookCerts::default();
        self.set(WEBHOOK_CERTS, if is_default { Value::Null } else { certs.name().into() });
    }

    /// Whether a boolean setting is true.
    pub(crate) fn is_on(&self, name: &str) -> bool {
        self.setting(name).and_then(Value::as_bool).unwrap_or_default()
    }
}

impl Webhooks {
    /// Whether there is any webhook.
    pub(crate) fn any(&self) -> bool {
        self.defaulting || self.validation || self.conversion
    }
}

/// Source of the webhook serving certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum WebhookCerts {
    /// Issued by the manager, which injects its CA
    #[default]
    SelfSigned,
    /// Issued by cert-manager, which injects its CA
    CertManager,
    /// Mounted from the Secret webhook-server-cert, which you create
    Files,
    /// No TLS; webhooks are served behind a proxy
    None,
}

impl WebhookCerts {
    /// The value of the setting and the flag.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::SelfSigned => "self-signed",
            Self::CertManager => "cert-manager",
            Self::Files => "files",
            Self::None => "none",
        }
    }
}

impl Resource {
    /// The webhooks, if any.
    pub(crate) fn webhooks(&self) -> Option<&Webhooks> {
        self.webhooks.as_ref().filter(|webhooks| webhooks.any())
    }

    /// The full API group, including the domain.
    pub(crate) fn full_group(&self) -> String {
        match (self.group.as_str(), self.domain.as_str()) {
            ("core", "") if self.core => String::new(),
            (group, "") => group.to_owned(),
            ("", domain) => domain.to_owned(),
            (group, domain) => format!("{group}.{domain}"),
        }
    }

    /// Group, version and kind as an ID.
    pub(crate) fn id(&self) -> String {
        format!("{}/{}/{}", self.full_group(), self.version, self.kind)
    }

    /// Group and kind as an ID shared by all versions: `Order.sales.example.com`.
    pub(crate) fn kind_id(&self) -> String {
        format!("{}.{}", self.kind, self.full_group())
    }

    /// Path of the imported CRD.
    pub(crate) fn imported_path(&self) -> String {
        format!(
            "config/crd/imported/{}_{}_{}.yaml",
            self.full_group(),
            self.kind.to_lowercase(),
            self.version
        )
    }

    /// Group, version and kind for display.
    pub(crate) fn shown(&self) -> String {
        let group = self.full_group();
        let slash = if group.is_empty() { "" } else { "/" };
        format!("{group}{slash}{}, {}", self.version, self.kind)
    }

    /// The names of the controllers.
    pub(crate) fn controller_names(&self) -> Vec<String> {
        let named = self.controllers.iter().map(|controller| controller.name.clone());
        let plain = (self.controller && self.controllers.is_empty()).then(|| self.kind.to_lowercase());
        plain.into_iter().chain(named).collect()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's form")]
fn is_false(value: &bool) -> bool {
    !value
}

fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Text(String),
        Number(u32),
    }
    Ok(match Written::deserialize(deserializer)? {
        Written::Text(text) => text,
        Written::Number(number) => number.to_string(),
    })
}

fn one_or_several<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        One(String),
        Several(Vec<String>),
    }
    Ok(match Written::deserialize(deserializer)? {
        // Chained plugins are comma-separated.
        Written::One(text) => text.split(',').map(str::to_owned).collect(),
        Written::Several(several) => several,
    })
}

#[cfg(test)]
mod tests;
