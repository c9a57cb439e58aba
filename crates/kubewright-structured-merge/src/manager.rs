//! Maintains managedFields on every write.
//!
//! [`update`] handles creates, updates and patches, [`apply`] handles server-side apply. Both take the object
//! in the API version of the request and set its new managedFields. Defaulting, admission and validation run
//! afterwards and do not change ownership.

use std::sync::LazyLock;

use serde_json::Value;

use super::compare::compare;
use super::managed::{Entry, ManagedFields, Manager};
use super::packed::Owners;
use super::path::equal;
use super::reset::Reset;
use super::schema::Schema;
use super::set::Set;
use super::typed::{Duplicates, field_set, validate};
use super::updater::{Conflict, MergeError, Updater, Versions};
use kubewright_apimachinery::gvk::split_api_version;
use kubewright_apimachinery::json;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::status::{ApiError, Cause};

/// The annotation of client-side `kubectl apply`.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Maximum total size of all annotations.
const MAX_ANNOTATIONS: usize = 256 * 1024;

/// Fields without an owner: set by the server, or part of the object's identity.
static UNOWNED: LazyLock<Set> = LazyLock::new(|| {
    Set::of_fields(&[
        &["apiVersion"],
        &["kind"],
        &["metadata"],
        &["metadata", "name"],
        &["metadata", "namespace"],
        &["metadata", "creationTimestamp"],
        &["metadata", "selfLink"],
        &["metadata", "uid"],
        &["metadata", "clusterName"],
        &["metadata", "generation"],
        &["metadata", "managedFields"],
        &["metadata", "resourceVersion"],
    ])
});

/// One write.
pub struct Write<'a> {
    /// The field manager, from [`manager_name`].
    pub manager: &'a str,
    /// The API version of the request.
    pub api_version: &'a str,
    /// The kind of the request.
    pub kind: &'a str,
    /// The subresource, or empty.
    pub subresource: &'a str,
    /// The current time, RFC 3339 with seconds.
    pub time: &'a str,
    /// The API versions of the kind.
    pub versions: &'a dyn Versions,
    /// The fields that this endpoint ignores.
    pub reset: &'a Reset,
    /// The encoding of managedFields in the live object and in the result. Client objects always have JSON.
    pub owners: Owners,
}

/// Why an apply failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// Other managers own some of the fields with different values.
    #[error("{}", conflict_message(.0))]
    Conflict(Vec<Conflict>),
    /// The configuration is invalid for this endpoint.
    #[error("{0}")]
    BadRequest(String),
    /// The configuration does not match the schema, or the merge failed.
    #[error("{0}")]
    Failed(String),
}

impl ApplyError {
    /// Converts to the API error of the response.
    pub fn to_api_error(&self) -> ApiError {
        let message = self.to_string();
        match self {
            Self::BadRequest(_) => ApiError::bad_request(message),
            Self::Failed(_) => ApiError::new(500, "", message),
            Self::Conflict(conflicts) => {
                let causes = conflicts.iter().map(|conflict| Cause {
                    reason: "FieldManagerConflict".to_owned(),
                    message: format!("conflict with {}", conflict.manager),
                    field: conflict.field(),
                });
                ApiError::new(409, "Conflict", message).with_causes(causes.collect())
            }
        }
    }
}

fn conflict_message(conflicts: &[Conflict]) -> String {
    if let [conflict] = conflicts {
        return format!(
            "Apply failed with 1 conflict: conflict with {}: {}",
            conflict.manager,
            conflict.field()
        );
    }
    let mut lines = Vec::new();
    for of_manager in conflicts.chunk_by(Conflict::is_of_same_manager) {
        lines.push(format!("conflicts with {}:", of_manager[0].manager));
        lines.extend(of_manager.iter().map(|conflict| format!("- {}", conflict.field())));
    }
    format!("Apply failed with {} conflicts: {}", conflicts.len(), lines.join("\n"))
}

/// The manager name: `field_manager` if set, otherwise the prefix of the User-Agent.
pub fn manager_name(field_manager: &str, user_agent: &str) -> String {
    if !field_manager.is_empty() {
        return field_manager.to_owned();
    }
    let mut name = String::new();
    for c in user_agent.split('/').next().unwrap_or_default().chars() {
        // Go's `unicode.IsPrint` accepts no white space other than U+0020.
        if c.is_control() || (c.is_whitespace() && c != ' ') {
            continue;
        }
        if name.len() + c.len_utf8() > 128 {
            break;
        }
        name.push(c);
    }
    name
}

/// Records the fields that `new` changes as owned by the manager of `write`. `live` is the stored object in
/// the same API version. If ownership cannot be computed, `new` gets no managedFields.
pub fn update(live: Option<&Value>, new: &mut Value, write: &Write<'_>) {
    let managed = entries_before(live, new, write);
    new.remove_at("metadata.managedFields");
    // Existing objects without managedFields stay untracked.
    if managed.is_empty() && live.is_some_and(|live| !live.str_at("metadata.uid").is_empty()) {
        return;
    }
    if let Ok(managed) = take_changes(live, new, managed, write.manager, write) {
        write.owners.store(&managed, new);
    }
}

/// The managedFields before the write. Clients can set or clear managedFields, except through a subresource.
fn entries_before(live: Option<&Value>, new: &Value, write: &Write<'_>) -> ManagedFields {
    // Treat undecodable managedFields as empty.
    let stored = || live.and_then(|live| write.owners.read(live).ok()).unwrap_or_default();
    if !write.subresource.is_empty() {
        return stored();
    }
    let sent = new.at("metadata.managedFields");
    let empty_entry = |entry: &Value| {
        entry.as_object().is_some_and(|entry| entry.values().all(|value| value.is_null() || *value == ""))
    };
    match sent.as_array().map(Vec::as_slice) {
        Some([]) => return ManagedFields::default(),
        Some([entry]) if empty_entry(entry) => return ManagedFields::default(),
        _ => {}
    }
    match ManagedFields::decode(sent) {
        Ok(managed) if !managed.is_empty() => managed,
        _ => stored(),
    }
}

fn take_changes(
    live: Option<&Value>,
    new: &Value,
    mut managed: ManagedFields,
    name: &str,
    write: &Write<'_>,
) -> Result<ManagedFields, ApplyError> {
    let updater = updater(write)?;
    let empty;
    let live = if let Some(live) = live {
        live
    } else {
        empty = updater.schema.empty_object(write.api_version, write.kind);
        &empty
    };
    fits(updater.schema, new, Duplicates::Allowed, "failed to convert new object", "to smd typed")?;
    fits(updater.schema, live, Duplicates::Allowed, "failed to convert live object", "to smd typed")?;
    let mut set = updater.update(live, new, &mut managed).map_err(failed)?;
    write.reset.filter(write.api_version, &mut set);
    set.subtract(&UNOWNED);
    if !set.is_empty() {
        let manager = Manager::updating(if name.is_empty() { "unknown" } else { name }, write.subresource);
        let time = Some(write.time.to_owned());
        match managed.position(&manager, write.api_version) {
            Some(at) => {
                managed.entries[at].fields.unite(set);
                managed.entries[at].time = time;
            }
            None => managed.entries.push(Entry {
                manager,
                api_version: write.api_version.to_owned(),
                time,
                fields: set,
            }),
        }
    }
    managed.cap_updaters();
    Ok(managed)
}

/// Applies a configuration. Returns the merged object, before defaulting. `live` is the stored object in the
/// API version of the request; without it the object is created.
pub fn apply(
    live: Option<&Value>,
    applied: &Value,
    force: bool,
    write: &Write<'_>,
) -> Result<Value, ApplyError> {
    check_kind(applied, write)?;
    let empty;
    let live = if let Some(live) = live {
        live
    } else {
        empty = updater(write)?.schema.empty_object(write.api_version, write.kind);
        &empty
    };
    let managed = write
        .owners
        .read(live)
        .map_err(|error| ApplyError::Failed(format!("failed to decode managed fields: {error}")))?;
    let (mut object, managed) = if write.manager == "kubectl" {
        apply_for_kubectl(live, applied, managed, force, write)?
    } else {
        apply_once(live, applied, managed, force, write)?
    };
    if write.manager == "kubectl" {
        keep_last_applied(&mut object, applied);
    }
    write.owners.store(&managed, &mut object);
    Ok(object)
}

/// `kubectl apply --server-side` takes over the fields that client-side apply set before.
fn apply_for_kubectl(
    live: &Value,
    applied: &Value,
    managed: ManagedFields,
    force: bool,
    write: &Write<'_>,
) -> Result<(Value, ManagedFields), ApplyError> {
    let conflicts = match apply_once(live, applied, managed.clone(), force, write) {
        Err(ApplyError::Conflict(conflicts)) => conflicts,
        result => return result,
    };
    let Some(own) = last_applied(live, write) else {
        return Err(ApplyError::Conflict(conflicts));
    };
    let foreign: Vec<Conflict> = conflicts.into_iter().filter(|conflict| !own.has(&conflict.path)).collect();
    if foreign.is_empty() {
        apply_once(live, applied, managed, true, write)
    } else {
        Err(ApplyError::Conflict(foreign))
    }
}

fn check_kind(applied: &Value, write: &Write<'_>) -> Result<(), ApplyError> {
    let (version, kind) = (applied.str_at("apiVersion"), applied.str_at("kind"));
    if version == write.api_version && kind == write.kind {
        return Ok(());
    }
    Err(ApplyError::BadRequest(format!("invalid object type: {}", gvk_text(version, kind))))
}

/// Group, version and kind as Go prints them.
fn gvk_text(api_version: &str, kind: &str) -> String {
    if api_version.matches('/').count() > 1 {
        return "/, Kind=".to_owned();
    }
    let (group, version) = split_api_version(api_version);
    format!("{group}/{version}, Kind={kind}")
}

fn apply_once(
    live: &Value,
    applied: &Value,
    mut managed: ManagedFields,
    force: bool,
    write: &Write<'_>,
) -> Result<(Value, ManagedFields), ApplyError> {
    let updater = updater(write)?;
    let bare = without_managed_fields(live);
    if managed.is_empty() {
        managed = take_changes(None, &bare, managed, "before-first-apply", write).map_err(|error| {
            ApplyError::Failed(format!("failed to create manager for existing fields: {error}"))
        })?;
    }
    if applied.at("metadata.managedFields").is_array() {
        return Err(ApplyError::BadRequest("metadata.managedFields must be nil".to_owned()));
    }
    fits(updater.schema, applied, Duplicates::Refused, "failed to create typed patch object", "")?;
    fits(updater.schema, &bare, Duplicates::Allowed, "failed to create typed live object", "")?;
    let manager = Manager::applying(
        if write.manager.is_empty() { "unknown" } else { write.manager },
        write.subresource,
    );
    let object = updater.apply(&bare, applied, &mut managed, &manager, force).map_err(failed)?;
    if let Some(at) = managed.position(&manager, write.api_version) {
        managed.entries[at].fields.subtract(&UNOWNED);
        if managed.entries[at].fields.is_empty() {
            managed.entries.swap_remove(at);
        } else if object.is_some() {
            managed.entries[at].time = Some(write.time.to_owned());
        }
    }
    Ok((object.unwrap_or(bare), managed))
}

/// Copies an object without its managedFields, which are often its largest part.
fn without_managed_fields(object: &Value) -> Value {
    let copy = |object: &Value, left_out: &str, put_in: Option<Value>| match object {
        Value::Object(map) => {
            let kept = map.iter().filter(|(name, _)| *name != left_out);
            let kept = kept.map(|(name, value)| (name.clone(), value.clone()));
            kept.chain(put_in.map(|value| (left_out.to_owned(), value))).collect()
        }
        other => other.clone(),
    };
    let metadata = object.get("metadata").map(|metadata| copy(metadata, "managedFields", None));
    copy(object, "metadata", metadata)
}

fn updater<'a>(write: &Write<'a>) -> Result<Updater<'a>, ApplyError> {
    let schema = write.versions.schema(write.api_version).map_err(|_| {
        ApplyError::Failed(format!("no corresponding type for {}", gvk_text(write.api_version, write.kind)))
    })?;
    Ok(Updater { versions: write.versions, reset: write.reset, api_version: write.api_version, schema })
}

fn failed(error: MergeError) -> ApplyError {
    match error {
        MergeError::Conflicts(conflicts) => ApplyError::Conflict(conflicts),
        MergeError::Failed(error) => ApplyError::Failed(error),
    }
}

fn fits(
    schema: Schema<'_>,
    object: &Value,
    duplicates: Duplicates,
    step: &str,
    target: &str,
) -> Result<(), ApplyError> {
    // Stored objects of built-in kinds are already normalised; only applied configurations need it.
    if schema.is_built_in() && duplicates == Duplicates::Allowed {
        return Ok(());
    }
    validate(schema.ty(), object, duplicates).map_err(|error| {
        let gap = if target.is_empty() { "" } else { " " };
        ApplyError::Failed(format!(
            "{step} ({}/{}; {}){gap}{target}: {error}",
            object.str_at("metadata.namespace"),
            object.str_at("metadata.name"),
            gvk_text(object.str_at("apiVersion"), object.str_at("kind")),
        ))
    })
}

/// The fields of the last-applied annotation whose values did not change since.
fn last_applied(live: &Value, write: &Write<'_>) -> Option<Set> {
    let text = live.map_at("metadata.annotations").get(LAST_APPLIED)?.as_str()?;
    let schema = write.versions.schema(write.api_version).ok()?;
    let applied: Value = serde_json::from_str(text).ok()?;
    if applied.str_at("apiVersion") != write.api_version || applied.str_at("kind") != write.kind {
        return None;
    }
    validate(schema.ty(), live, Duplicates::Refused).ok()?;
    validate(schema.ty(), &applied, Duplicates::Refused).ok()?;
    let mut own = field_set(schema.ty(), &applied);
    let changes = compare(schema, &applied, live);
    own.subtract(&changes.modified);
    own.subtract(&changes.added);
    own.subtract(&changes.removed);
    Some(own)
}

/// Updates the last-applied annotation of objects that also use client-side apply.
fn keep_last_applied(object: &mut Value, applied: &Value) {
    let annotations = object.map_at("metadata.annotations");
    if annotations.get(LAST_APPLIED).and_then(Value::as_str).is_none_or(str::is_empty) {
        return;
    }
    let mut applied = applied.clone();
    if let Some(Value::Object(annotations)) = applied.at_mut("metadata.annotations") {
        annotations.remove(LAST_APPLIED);
    }
    let text = format!("{}\n", json::to_string(&applied));
    let others = annotations.iter().filter(|(name, _)| *name != LAST_APPLIED);
    let size: usize = others.map(|(name, value)| name.len() + value.as_str().map_or(0, str::len)).sum();
    let fits = size + LAST_APPLIED.len() + text.len() <= MAX_ANNOTATIONS;
    let annotations = object.object_mut("metadata.annotations");
    if fits {
        annotations.insert(LAST_APPLIED.to_owned(), text.into());
    } else {
        annotations.remove(LAST_APPLIED);
    }
}

/// Keeps the old managedFields timestamps if nothing else changed, so that the write becomes a no-op. `new`
/// is the object to store.
pub fn keep_times(live: &Value, new: &mut Value) {
    let (old, entries) = (live.list_at("metadata.managedFields"), new.list_at("metadata.managedFields"));
    let same_but_time = |a: &Value, b: &Value| match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            let counts = |(name, _): &(&String, &Value)| *name != "time";
            a.iter().filter(counts).eq(b.iter().filter(counts))
        }
        _ => a == b,
    };
    let moved = old != entries
        && old.len() == entries.len()
        && old.iter().zip(entries).all(|(a, b)| same_but_time(a, b))
        && same_but_managed_fields(live, new);
    if moved {
        let old = live.at("metadata.managedFields").clone();
        new.set_at("metadata.managedFields", old);
    }
}

fn same_but_managed_fields(a: &Value, b: &Value) -> bool {
    let same = |a: &Value, b: &Value, ignored: &[&str]| {
        let keys = |map: &serde_json::Map<String, Value>| {
            map.keys().filter(|key| !ignored.contains(&key.as_str())).count()
        };
        let (Some(a), Some(b)) = (a.as_object(), b.as_object()) else { return equal(a, b) };
        keys(a) == keys(b)
            && a.iter()
                .filter(|(key, _)| !ignored.contains(&key.as_str()))
                .all(|(key, value)| b.get(key).is_some_and(|other| equal(value, other)))
    };
    same(a, b, &["metadata"])
        && same(a.at("metadata"), b.at("metadata"), &["managedFields", "resourceVersion"])
}
