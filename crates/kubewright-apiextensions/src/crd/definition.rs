//! What a server needs of a definition for its registry and for discovery.
//!
//! What it needs to read and write instances is in [`custom::Definition`](crate::custom::Definition). Read from a stored definition once, when it changes; nothing in it refers back.

use std::cmp::Ordering;

use serde_json::Value;

use super::columns::Columns;
use super::conditions::is_true;
use super::jsonpath::JsonPath;
use super::sha256;
use crate::custom::ScalePaths;
use kubewright_apimachinery::meta::bytes;
use kubewright_apimachinery::object::Fields as _;

/// A definition, as it is served.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    /// The name of the definition: `plural.group`.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// The group of its instances.
    pub group: String,
    /// The names of its instances: those accepted, with those asked for where none are.
    pub names: Names,
    /// Whether instances live in namespaces.
    pub namespaced: bool,
    /// All versions, served or not, in the order of the definition.
    pub versions: Vec<Version>,
    /// Whether fields that no schema specifies are kept, as an old definition may ask for.
    pub preserve_unknown_fields: bool,
    /// `spec.conversion`.
    pub conversion: Value,
    /// Whether its names are its own.
    pub names_accepted: bool,
    /// Whether it is in discovery.
    pub established: bool,
    /// Whether it is being deleted: nothing may be created any more.
    pub terminating: bool,
}

/// The names of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    /// As in paths.
    pub plural: String,
    /// As a user may call one.
    pub singular: String,
    /// The kind of an instance.
    pub kind: String,
    /// The kind of a list.
    pub list_kind: String,
    /// As a user may abbreviate it.
    pub short_names: Vec<String>,
    /// The groups of resources it belongs to, for example `all`.
    pub categories: Vec<String>,
}

/// A version of a resource.
#[derive(Debug, Clone, PartialEq)]
pub struct Version {
    /// Its name.
    pub name: String,
    /// Whether it is served.
    pub served: bool,
    /// Whether instances are stored in it.
    pub storage: bool,
    /// What users of a deprecated version are told on every request.
    pub warning: Option<String>,
    /// `schema.openAPIV3Schema`; null if there is none.
    pub schema: Value,
    /// Whether the status is a subresource.
    pub status: bool,
    /// Where a scale is found, if it is a subresource.
    pub scale: Option<ScalePaths>,
    /// The columns of its Table.
    pub columns: Columns,
    /// The fields by which instances can be selected, beside those of metadata.
    pub selectable: Vec<SelectableField>,
}

/// A field by which instances can be selected.
#[derive(Debug, Clone, PartialEq)]
pub struct SelectableField {
    /// As in a selector: `spec.color`.
    pub name: String,
    path: Option<JsonPath>,
}

impl Definition {
    /// Reads a definition.
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

    /// Whether requests for instances are answered. They are in discovery only once it is
    /// [established](Self::established).
    pub fn is_served(&self) -> bool {
        self.names_accepted || self.established
    }

    /// A version, if it is served.
    pub fn served_version(&self, name: &str) -> Option<&Version> {
        self.served_versions().find(|version| version.name == name)
    }

    /// The versions that are served, in the order of the definition.
    pub fn served_versions(&self) -> impl Iterator<Item = &Version> {
        self.versions.iter().filter(|version| version.served)
    }

    /// The version in which instances are stored.
    pub fn storage_version(&self) -> Option<&Version> {
        self.versions.iter().find(|version| version.storage)
    }

    /// The hash that discovery shows; none if the stored version is not served.
    pub fn storage_version_hash(&self) -> Option<String> {
        let stored = self.served_versions().find(|version| version.storage)?;
        Some(storage_version_hash(&self.group, &stored.name, &self.names.kind))
    }

    /// The verbs that discovery shows, in its order.
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
            schema: version.at("schema.openAPIV3Schema").clone(),
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

    /// What an instance has there, as selectors compare it: empty if nothing.
    pub fn value(&self, object: &Value) -> String {
        let found = self.path.as_ref().and_then(|path| path.find(object).ok()).unwrap_or_default();
        found.first().map(|value| super::jsonpath::text(value)).unwrap_or_default()
    }
}

/// The hash of a version in which a kind is stored.
pub fn storage_version_hash(group: &str, version: &str, kind: &str) -> String {
    bytes::encode(&sha256::digest(format!("{group}/{version}/{kind}").as_bytes())[..8])
}

/// How versions are ranked: `v2`, `v1`, `v1beta2`, `v1alpha1`, then others by name. The better one is greater.
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
