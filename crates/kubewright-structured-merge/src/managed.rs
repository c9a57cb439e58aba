//! `metadata.managedFields`: which manager owns which fields.
//!
//! A manager is identified by its name, operation and subresource, and for updates also by the API version.
//! Encoded entries are sorted as in kube-apiserver: applies first, then by time and name.

use serde_json::{Map, Value};

use super::packed;
use super::path::ElementError;
use super::set::Set;
use kubewright_apimachinery::field::quote;
use kubewright_apimachinery::json;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::time;

/// Maximum number of update entries per object. Beyond it, the oldest are merged.
const MAX_UPDATE_MANAGERS: usize = 10;

/// Decodes the field set of an entry.
type ReadSet = fn(&Value) -> Result<Set, ElementError>;

/// The managedFields of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ManagedFields {
    pub(crate) entries: Vec<Entry>,
}

/// The fields that one manager owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The field manager.
    pub manager: Manager,
    /// The API version of the field paths.
    pub api_version: String,
    /// Time of the last change, RFC 3339. `None` if the manager changed nothing yet.
    pub time: Option<String>,
    /// The owned fields.
    pub fields: Set,
}

/// The identity of a field manager.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manager {
    /// The name of the manager.
    pub name: String,
    /// The operation.
    pub operation: Operation,
    /// The subresource, or empty.
    pub subresource: String,
}

/// The operation through which fields became owned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// Server-side apply.
    Apply,
    /// Create, update or patch.
    Update,
}

impl Operation {
    fn text(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// Invalid managedFields.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManagedFieldsError {
    /// The operation is invalid.
    #[error("operation must be `Apply` or `Update`")]
    Operation,
    /// The API version is missing.
    #[error("apiVersion must not be empty")]
    ApiVersion,
    /// The fieldsType is missing.
    #[error("missing fieldsType in managed fields entry {0}")]
    NoFieldsType(usize),
    /// The fieldsType is not `FieldsV1`.
    #[error("invalid fieldsType {} in managed fields entry {index}", quote(.fields_type))]
    FieldsType {
        /// The invalid fieldsType.
        fields_type: String,
        /// The index of the entry.
        index: usize,
    },
    /// The field set is invalid.
    #[error("error decoding set: {0}")]
    Fields(#[source] ElementError),
}

impl ManagedFields {
    /// Decodes `metadata.managedFields`. If a manager has several entries, the last one wins.
    pub fn decode(entries: &Value) -> Result<Self, ManagedFieldsError> {
        Self::decode_with(entries, Set::decode)
    }

    fn decode_with(entries: &Value, set: ReadSet) -> Result<Self, ManagedFieldsError> {
        let mut managed = Self::default();
        for (index, entry) in entries.as_array().into_iter().flatten().enumerate() {
            let decoded = Entry::decode(index, entry, set)?;
            match managed.entries.iter_mut().find(|other| other.is_of(&decoded.manager, &decoded.api_version))
            {
                Some(other) => *other = decoded,
                None => managed.entries.push(decoded),
            }
        }
        Ok(managed)
    }

    /// Like [`ManagedFields::decode`], for a [packed](super::packed) object.
    pub fn decode_packed(entries: &Value) -> Result<Self, ManagedFieldsError> {
        Self::decode_with(entries, packed::set)
    }

    /// Encodes as `metadata.managedFields`.
    pub fn encode(&self) -> Value {
        self.encode_with(Set::encode)
    }

    fn encode_with(&self, set: fn(&Set) -> Value) -> Value {
        let mut sorted: Vec<&Entry> = self.entries.iter().collect();
        sorted.sort_by_cached_key(|entry| {
            let Manager { name, operation, subresource } = &entry.manager;
            (*operation, entry.seconds(), name.clone(), entry.api_version.clone(), subresource.clone())
        });
        Value::Array(sorted.into_iter().map(|entry| entry.encode(set)).collect())
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entries, in no particular order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Sets `metadata.managedFields` of the object, or removes it if there are no entries.
    pub fn store(&self, object: &mut Value) {
        if self.is_empty() {
            object.remove_at("metadata.managedFields");
        } else {
            object.set_at("metadata.managedFields", self.encode());
        }
    }

    /// Like [`ManagedFields::store`], for a [packed](super::packed) object.
    pub fn store_packed(&self, object: &mut Value) {
        if self.is_empty() {
            object.remove_at("metadata.managedFields");
        } else {
            object.set_at("metadata.managedFields", self.encode_with(packed::text));
        }
    }

    pub(crate) fn position(&self, manager: &Manager, api_version: &str) -> Option<usize> {
        self.entries.iter().position(|entry| entry.is_of(manager, api_version))
    }

    pub(crate) fn drop_empty(&mut self) {
        self.entries.retain(|entry| !entry.fields.is_empty());
    }

    /// Merges the oldest update entries per API version until at most [`MAX_UPDATE_MANAGERS`] remain.
    pub(crate) fn cap_updaters(&mut self) {
        let mut updaters: Vec<&Entry> =
            self.entries.iter().filter(|entry| entry.manager.operation == Operation::Update).collect();
        let mut excess = updaters.len().saturating_sub(MAX_UPDATE_MANAGERS);
        if excess == 0 {
            return;
        }
        updaters.sort_by_cached_key(|entry| (entry.seconds(), entry.identifier()));
        let order: Vec<(Manager, String)> =
            updaters.iter().map(|entry| (entry.manager.clone(), entry.api_version.clone())).collect();
        let bucket = Manager {
            name: "ancient-changes".to_owned(),
            operation: Operation::Update,
            subresource: String::new(),
        };
        // The oldest entry of each version; a second one is merged with it.
        let mut first: Vec<(Manager, String)> = Vec::new();
        for (manager, version) in order {
            if excess == 0 {
                return;
            }
            let Some((oldest, _)) = first.iter().find(|(_, other)| *other == version).cloned() else {
                first.push((manager, version));
                continue;
            };
            if self.position(&bucket, &version).is_none()
                && let Some(at) = self.position(&oldest, &version)
            {
                self.entries[at].manager = bucket.clone();
            }
            let Some(at) = self.position(&manager, &version) else { continue };
            // Upstream also drops the bucket entry itself if an entry of the same age precedes it.
            let merged = self.entries.swap_remove(at);
            if let Some(at) = self.position(&bucket, &version) {
                self.entries[at].fields.unite(merged.fields);
                self.entries[at].time = merged.time;
            }
            excess -= 1;
        }
    }
}

impl Entry {
    fn decode(index: usize, entry: &Value, set: ReadSet) -> Result<Self, ManagedFieldsError> {
        let operation = match entry.str_at("operation") {
            "Apply" => Operation::Apply,
            "Update" => Operation::Update,
            _ => return Err(ManagedFieldsError::Operation),
        };
        let api_version = entry.str_at("apiVersion").to_owned();
        if api_version.is_empty() {
            return Err(ManagedFieldsError::ApiVersion);
        }
        match entry.str_at("fieldsType") {
            "FieldsV1" => {}
            "" => return Err(ManagedFieldsError::NoFieldsType(index)),
            other => {
                return Err(ManagedFieldsError::FieldsType { fields_type: other.to_owned(), index });
            }
        }
        Ok(Self {
            manager: Manager {
                name: entry.str_at("manager").to_owned(),
                operation,
                subresource: entry.str_at("subresource").to_owned(),
            },
            api_version,
            time: entry.at("time").as_str().map(str::to_owned),
            fields: set(entry.at("fieldsV1")).map_err(ManagedFieldsError::Fields)?,
        })
    }

    fn encode(&self, set: fn(&Set) -> Value) -> Value {
        let mut map = Map::new();
        let mut text = |name: &str, value: &str| {
            if !value.is_empty() {
                map.insert(name.to_owned(), value.into());
            }
        };
        text("manager", &self.manager.name);
        text("operation", self.manager.operation.text());
        text("apiVersion", &self.api_version);
        text("time", self.time.as_deref().unwrap_or_default());
        text("fieldsType", "FieldsV1");
        text("subresource", &self.manager.subresource);
        map.insert("fieldsV1".to_owned(), set(&self.fields));
        Value::Object(map)
    }

    /// Whether the entry belongs to `manager`. Apply entries match in any API version.
    pub(crate) fn is_of(&self, manager: &Manager, api_version: &str) -> bool {
        self.manager == *manager && (manager.operation == Operation::Apply || self.api_version == api_version)
    }

    fn seconds(&self) -> i64 {
        self.time.as_deref().and_then(time::parse_rfc3339).unwrap_or_default()
    }

    /// The key by which upstream sorts managers.
    pub(crate) fn identifier(&self) -> String {
        let version = match self.manager.operation {
            Operation::Apply => "",
            Operation::Update => &self.api_version,
        };
        let parts = [
            ("manager", self.manager.name.as_str()),
            ("operation", self.manager.operation.text()),
            ("apiVersion", version),
            ("subresource", &self.manager.subresource),
        ];
        let parts = parts.into_iter().filter(|(_, value)| !value.is_empty());
        let parts = parts.map(|(name, value)| format!("\"{name}\":{}", json::to_string(&value.into())));
        format!("{{{}}}", parts.collect::<Vec<_>>().join(","))
    }

    /// The manager as conflict messages show it.
    pub(crate) fn printed(&self) -> String {
        let Manager { name, operation, subresource } = &self.manager;
        let through = match subresource.as_str() {
            "" => String::new(),
            subresource => format!(" with subresource {}", quote(subresource)),
        };
        let using = match operation {
            Operation::Apply => String::new(),
            Operation::Update => format!(" using {}", self.api_version),
        };
        format!("{}{through}{using}", quote(name))
    }
}
