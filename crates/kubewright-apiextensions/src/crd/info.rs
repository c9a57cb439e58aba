//! The parts of a CRD that a server needs for its registry and for discovery.
//!
//! Computed from a stored CRD when it changes. The parts for reading and writing custom resources are in
//! [`custom::CrdValidation`](crate::custom::CrdValidation).

use std::cmp::Ordering;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::columns::Columns;
use super::conditions::is_true;
use super::jsonpath::JsonPath;
use crate::custom::ScalePaths;
use kubewright_apimachinery::meta::bytes;
use kubewright_apimachinery::object::Fields as _;

/// A CRD in the form that the registry and discovery use.
#[derive(Debug, Clone, PartialEq)]
pub struct CrdInfo {
    /// The name of the CRD: `plural.group`.
    pub name: String,
    /// The UID of the CRD.
    pub uid: String,
    /// The API group of the custom resources.
    pub group: String,
    /// The accepted names; requested names where no accepted one is set.
    pub names: Names,
    /// Whether the resource is namespaced.
    pub namespaced: bool,
    /// All versions, served or not, in the order of the spec.
    pub versions: Vec<Version>,
    /// `spec.preserveUnknownFields`: whether unknown fields are kept.
    pub preserve_unknown_fields: bool,
    /// `spec.conversion`.
    pub conversion: Value,
    /// Whether the names are accepted.
    pub names_accepted: bool,
    /// Whether the CRD is established, so that discovery lists it.
    pub established: bool,
    /// Whether the CRD is terminating. Custom resources can no longer be created.
    pub terminating: bool,
}

/// The names of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    /// Plural name, used in URL paths.
    pub plural: String,
    /// Singular name.
    pub singular: String,
    /// The kind.
    pub kind: String,
    /// The list kind.
    pub list_kind: String,
    /// Short names.
    pub short_names: Vec<String>,
    /// Categories, such as `all`.
    pub categories: Vec<String>,
}

/// A version of a resource.
#[derive(Debug, Clone, PartialEq)]
pub struct Version {
    /// The name of the version.
    pub name: String,
    /// Whether it is served.
    pub served: bool,
    /// Whether this is the storage version.
    pub storage: bool,
    /// The warning that every request for a deprecated version returns.
    pub warning: Option<String>,
    /// Whether the status subresource is enabled.
    pub status: bool,
    /// The paths of the scale subresource, if enabled.
    pub scale: Option<ScalePaths>,
    /// The printer columns.
    pub columns: Columns,
    /// The selectable fields, in addition to `metadata.name` and `metadata.namespace`.
    pub selectable: Vec<SelectableField>,
}

/// A selectable field.
#[derive(Debug, Clone, PartialEq)]
pub struct SelectableField {
    /// The field path in selectors: `spec.color`.
    pub name: String,
    path: Option<JsonPath>,
}

impl CrdInfo {
    /// Reads a CRD.
    pub fn from_object(object: &Value) -> Self {
        let spec = object.at("spec");
        Self {
            name: text(object.at("metadata.name")),
            uid: text(object.at("metadata.uid")),
            group: text(spec.at("group")),
            names: Names::of(object),
            namespaced: spec.str_at("scope") == "Namespaced",
            versions: spec.list_at("versions").iter().map(|version| Version::of(spec, version)).collect(),
            preserve_unknown_fields: spec.bool_at("preserveUnknownFields"),
            conversion: spec.at("conversion").clone(),
            names_accepted: is_true(object, "NamesAccepted"),
            established: is_true(object, "Established"),
            terminating: is_true(object, "Terminating"),
        }
    }

    /// Whether the server handles requests for the resource. Discovery lists it only if it is
    /// [established](Self::established).
    pub fn is_served(&self) -> bool {
        self.names_accepted || self.established
    }

    /// The version `name`, if it is served.
    pub fn served_version(&self, name: &str) -> Option<&Version> {
        self.served_versions().find(|version| version.name == name)
    }

    /// The served versions, in the order of the spec.
    pub fn served_versions(&self) -> impl Iterator<Item = &Version> {
        self.versions.iter().filter(|version| version.served)
    }

    /// The storage version.
    pub fn storage_version(&self) -> Option<&Version> {
        self.versions.iter().find(|version| version.storage)
    }

    /// The storage version hash in discovery; `None` if the storage version is not served.
    pub fn storage_version_hash(&self) -> Option<String> {
        let stored = self.served_versions().find(|version| version.storage)?;
        Some(storage_version_hash(&self.group, &stored.name, &self.names.kind))
    }

    /// The verbs in discovery, in upstream's order.
    pub fn verbs(&self) -> &'static [&'static str] {
        if self.terminating {
            &["delete", "deletecollection", "get", "list", "watch"]
        } else {
            &["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]
        }
    }
}

impl Names {
    fn of(object: &Value) -> Self {
        let asked = object.at("spec.names");
        let accepted = object.at("status.acceptedNames");
        let is_settled = !accepted.str_at("plural").is_empty();
        let names = if is_settled { accepted } else { asked };
        let name = |field: &str| {
            let name = names.str_at(field);
            if name.is_empty() { asked.str_at(field).to_owned() } else { name.to_owned() }
        };
        let list = |field: &str| names.list_at(field).iter().map(text).collect();
        Self {
            plural: name("plural"),
            singular: name("singular"),
            kind: name("kind"),
            list_kind: name("listKind"),
            short_names: list("shortNames"),
            categories: list("categories"),
        }
    }
}

impl Version {
    fn of(spec: &Value, version: &Value) -> Self {
        Self {
            name: text(version.at("name")),
            served: version.bool_at("served"),
            storage: version.bool_at("storage"),
            warning: warning(spec, version),
            status: version.has("subresources.status"),
            scale: version
                .has("subresources.scale")
                .then(|| ScalePaths::compile(version.at("subresources.scale"))),
            columns: Columns::of(version.list_at("additionalPrinterColumns")),
            selectable: version.list_at("selectableFields").iter().map(SelectableField::of).collect(),
        }
    }
}

impl SelectableField {
    fn of(field: &Value) -> Self {
        let path = field.str_at("jsonPath");
        Self { name: path.strip_prefix('.').unwrap_or(path).to_owned(), path: JsonPath::parse(path).ok() }
    }

    /// The value of the field for selectors; empty if absent.
    pub fn value(&self, object: &Value) -> String {
        let found = self.path.as_ref().and_then(|path| path.find(object).ok()).unwrap_or_default();
        found.first().map(|value| super::jsonpath::text(value)).unwrap_or_default()
    }
}

/// The storage version hash of a kind.
pub fn storage_version_hash(group: &str, version: &str, kind: &str) -> String {
    bytes::encode(&Sha256::digest(format!("{group}/{version}/{kind}"))[..8])
}

/// Compares versions by Kubernetes' version priority: `v2`, `v1`, `v1beta2`, `v1alpha1`, then others by name.
/// Higher priority is greater.
pub fn compare_versions(one: &str, other: &str) -> Ordering {
    match (rank(one), rank(other)) {
        (None, None) => other.cmp(one),
        (one, other) => one.cmp(&other),
    }
}

/// Stability (0 for alpha), major and minor number.
fn rank(version: &str) -> Option<(u8, u64, u64)> {
    let number = |text: &str| -> Option<u64> {
        let plain = !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit());
        plain.then(|| text.parse().ok()).flatten()
    };
    let rest = version.strip_prefix('v')?;
    for (stability, word) in [(0, "alpha"), (1, "beta")] {
        if let Some((major, minor)) = rest.split_once(word) {
            return Some((stability, number(major)?, number(minor)?));
        }
    }
    Some((2, number(rest)?, 0))
}

fn warning(spec: &Value, version: &Value) -> Option<String> {
    if !version.bool_at("deprecated") {
        return None;
    }
    if let Some(warning) = version.at("deprecationWarning").as_str() {
        return Some(warning.to_owned());
    }
    let name = version.str_at("name");
    let qualified =
        |version: &str| format!("{}/{version} {}", spec.str_at("group"), spec.str_at("names.kind"));
    let mut better: Vec<&str> = spec
        .list_at("versions")
        .iter()
        .filter(|other| other.bool_at("served") && !other.bool_at("deprecated"))
        .map(|other| other.str_at("name"))
        .filter(|other| compare_versions(name, other).is_lt())
        .collect();
    better.sort_by(|one, other| compare_versions(other, one));
    let mut warning = format!("{} is deprecated", qualified(name));
    if let Some(best) = better.first() {
        warning.push_str("; use ");
        warning.push_str(&qualified(best));
    }
    Some(warning)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
