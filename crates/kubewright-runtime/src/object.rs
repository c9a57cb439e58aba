//! Kubernetes objects as validated JSON, for the children that a reconciler applies.
//!
//! [`ApplyObject`] has exactly the fields that were written, so that server-side apply owns these and no others. The
//! macro `object!` of the crate `kubewright` builds one and validates it at compile time; [`object()`] builds one from
//! JSON and validates it at run time. An unknown field is an error.

pub mod shape;
mod strict;
pub mod template;

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubewright_apimachinery::types::{self as facts, FieldType, Mismatch};
use serde::de::Error as _;
use serde::ser::{Error as _, SerializeMap as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::apply::{ExtractError, extract};
use crate::client;
use crate::owner::KindOf;
use crate::{Gvk, Kind, Object, Scope};

/// An object of the kind `K` with exactly the fields that were written.
///
/// [`Client::apply`](crate::Client::apply) sends it and returns a `K`. It has metadata like every object, so that
/// [`owner::set_controller_reference`](crate::owner::set_controller_reference) and [`Key::of`](crate::Key::of) accept
/// it.
///
/// If a value does not fit its field and the compiler could not detect it, the object stores the error.
/// [`ApplyObject::check`], [`ApplyObject::complete`] and sending the object return it.
pub struct ApplyObject<K> {
    /// Name, labels and so on. Fields that are `None` are not sent.
    pub metadata: ObjectMeta,
    /// All fields except `apiVersion`, `kind` and `metadata`.
    fields: Map<String, Value>,
    error: Option<Box<ObjectError>>,
    kind: PhantomData<fn() -> K>,
}

/// A value of a type that serializes to the JSON of its field. It is validated at run time.
///
/// Use it for your own enums and newtypes in `object!`: `imagePullPolicy: Checked(policy)`.
#[derive(Debug, Clone, Copy)]
pub struct Checked<T>(pub T);

/// Why JSON is not a valid object of its kind.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectError {
    /// Fields are unknown or have values of another type.
    #[error("{object}: {}", joined(mismatches))]
    Fields {
        /// The kind and the name of the object.
        object: String,
        /// The invalid fields, with their paths.
        mismatches: Vec<Mismatch>,
    },
    /// The object does not match its Rust type.
    #[error("{object}: {path} does not match its Rust type")]
    Decode {
        /// The kind and the name of the object.
        object: String,
        /// The path of the field.
        path: String,
        /// The error of the decoder.
        #[source]
        source: Arc<serde_json::Error>,
    },
    /// A value could not be serialized as JSON.
    #[error("failed to encode {path} as JSON")]
    Encode {
        /// The field.
        path: String,
        /// The error of the encoder.
        #[source]
        source: Arc<serde_json::Error>,
    },
    /// `apiVersion` or `kind` does not match the type.
    #[error("{field} is {found}, expected {expected}")]
    Kind {
        /// `apiVersion` or `kind`.
        field: &'static str,
        /// The value in the object.
        found: Value,
        /// The value of the type.
        expected: String,
    },
}

/// Builds an object from JSON and validates every field.
///
/// Built-in kinds are validated against the fields, types and enums of Kubernetes. A custom resource must be complete,
/// and its Rust type must have every field. `apiVersion` and `kind` are optional. In built-in kinds, null counts as
/// absent.
///
/// ```
/// use k8s_openapi::api::apps::v1::Deployment;
/// use kubewright_runtime::object;
/// use serde_json::json;
///
/// let error = object::<Deployment>(json!({ "metadata": { "name": "web" }, "spec": { "replica": 3 } })).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "Deployment web: spec.replica: unknown field of DeploymentSpec; did you mean `replicas`?"
/// );
/// ```
pub fn object<K: Object>(value: impl Serialize) -> Result<ApplyObject<K>, ObjectError> {
    let value = serde_json::to_value(value)
        .map_err(|source| ObjectError::Encode { path: K::kind(&()).into_owned(), source: source.into() })?;
    let Value::Object(mut members) = value else {
        let mismatches = vec![Mismatch { path: String::new(), problem: "is not a JSON object".to_owned() }];
        return Err(ObjectError::Fields { object: K::kind(&()).into_owned(), mismatches });
    };
    for (field, expected) in [("apiVersion", K::api_version(&())), ("kind", K::kind(&()))] {
        match members.remove(field) {
            Some(found) if found != *expected => {
                return Err(ObjectError::Kind { field, found, expected: expected.into_owned() });
            }
            _ => {}
        }
    }
    ApplyObject::new(members, None, check::<K>).check()
}

/// Validates the members of an object of a kind.
type Check = fn(&Gvk, &mut Map<String, Value>) -> Result<(), ObjectError>;

impl<K: Object> ApplyObject<K> {
    /// Builds an object from its members, without `apiVersion` and `kind`. Stores the first error.
    fn new(mut members: Map<String, Value>, error: Option<ObjectError>, check: Check) -> Self {
        let gvk = Gvk::new(K::group(&()), K::version(&()), K::kind(&()));
        let (metadata, error) = checked(&gvk, &mut members, error, check);
        Self { metadata, fields: members, error: error.map(Box::new), kind: PhantomData }
    }

    /// Returns the object, or its stored error.
    pub fn check(self) -> Result<Self, ObjectError> {
        match self.error {
            Some(error) => Err(*error),
            None => Ok(self),
        }
    }

    /// All fields except `apiVersion`, `kind` and `metadata`.
    pub fn fields(&self) -> &Map<String, Value> {
        &self.fields
    }

    /// Converts to the Rust type. Fields that were not written get their defaults.
    pub fn complete(&self) -> Result<K, client::Error> {
        let what = || format!("{} {}", K::kind(&()), self.metadata.name.as_deref().unwrap_or_default());
        let value =
            serde_json::to_value(self).map_err(|source| client::Error::Encode { what: what(), source })?;
        serde_json::from_value(value).map_err(|source| client::Error::Decode { what: what(), source })
    }

    /// The fields that a field manager applied before, with the current values of the object: see [`extract`].
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kubewright_runtime::apply::ExtractError;
    /// use kubewright_runtime::object::ApplyObject;
    ///
    /// fn is_current(map: &ConfigMap, wanted: &ApplyObject<ConfigMap>) -> Result<bool, ExtractError> {
    ///     Ok(ApplyObject::extract(map, "my-operator")? == *wanted)
    /// }
    /// ```
    pub fn extract(object: &K, field_manager: &str) -> Result<Self, ExtractError> {
        extract(object, field_manager, None)
    }

    /// The status fields that a field manager applied before: see [`extract`].
    pub fn extract_status(object: &K, field_manager: &str) -> Result<Self, ExtractError> {
        extract(object, field_manager, Some("status"))
    }
}

impl<K> Clone for ApplyObject<K> {
    fn clone(&self) -> Self {
        Self {
            metadata: self.metadata.clone(),
            fields: self.fields.clone(),
            error: self.error.clone(),
            kind: PhantomData,
        }
    }
}

impl<K> PartialEq for ApplyObject<K> {
    fn eq(&self, other: &Self) -> bool {
        self.metadata == other.metadata
            && self.fields == other.fields
            && self.error.is_none()
            && other.error.is_none()
    }
}

impl<K: Object> fmt::Debug for ApplyObject<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct(&K::kind(&()));
        shown.field("metadata", &self.metadata).field("fields", &self.fields);
        if let Some(error) = &self.error {
            shown.field("error", error);
        }
        shown.finish()
    }
}

impl<K: Object> Serialize for ApplyObject<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Some(error) = &self.error {
            return Err(S::Error::custom(crate::error::Chain(&**error)));
        }
        let mut map = serializer.serialize_map(Some(self.fields.len() + 3))?;
        map.serialize_entry("apiVersion", &K::api_version(&()))?;
        map.serialize_entry("kind", &K::kind(&()))?;
        map.serialize_entry("metadata", &self.metadata)?;
        for (name, value) in &self.fields {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<'de, K> Deserialize<'de> for ApplyObject<K> {
    /// Accepts all fields: the server may return fields that are newer than this version of the table.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut members: Map<String, Value> = Map::deserialize(deserializer)?;
        members.retain(|name, _| !matches!(name.as_str(), "apiVersion" | "kind"));
        match split(&mut members) {
            (_, Some(error)) => Err(D::Error::custom(error)),
            (metadata, None) => Ok(Self { metadata, fields: members, error: None, kind: PhantomData }),
        }
    }
}

/// The dynamic type of an [`ApplyObject`] for kube. It is empty, because `K` determines the kind.
#[derive(Debug)]
pub struct Applies<K>(PhantomData<fn() -> K>);

impl<K> Default for Applies<K> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<K: Object> kube::Resource for ApplyObject<K> {
    type DynamicType = Applies<K>;
    type Scope = K::Scope;

    fn kind(_: &Applies<K>) -> Cow<'_, str> {
        K::kind(&()).into_owned().into()
    }

    fn group(_: &Applies<K>) -> Cow<'_, str> {
        K::group(&()).into_owned().into()
    }

    fn version(_: &Applies<K>) -> Cow<'_, str> {
        K::version(&()).into_owned().into()
    }

    fn plural(_: &Applies<K>) -> Cow<'_, str> {
        K::plural(&()).into_owned().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

impl<K: Object> KindOf<ApplyObject<K>> for Applies<K> {
    type Stored = K;

    fn known() -> Option<Kind> {
        Some(Kind::of::<K>())
    }

    fn gvk(_: &ApplyObject<K>) -> Option<Gvk> {
        Some(Gvk::new(K::group(&()), K::version(&()), K::kind(&())))
    }

    fn scope() -> Option<Scope> {
        Some(<K as Object>::scope())
    }
}

/// Splits off the metadata and validates the object.
fn checked(
    gvk: &Gvk,
    members: &mut Map<String, Value>,
    error: Option<ObjectError>,
    check: Check,
) -> (ObjectMeta, Option<ObjectError>) {
    let error = error.or_else(|| check(gvk, members).err());
    let object = described(gvk, members);
    let (metadata, wrong) = split(members);
    let path = "metadata".to_owned();
    let wrong = wrong.map(|source| ObjectError::Decode { object, path, source: source.into() });
    (metadata, error.or(wrong))
}

/// Removes the metadata from an object. If it cannot be decoded, only name and namespace are kept.
fn split(members: &mut Map<String, Value>) -> (ObjectMeta, Option<serde_json::Error>) {
    let value = members.remove("metadata").unwrap_or_else(|| Value::Object(Map::new()));
    match ObjectMeta::deserialize(&value) {
        Ok(metadata) => (metadata, None),
        Err(error) => {
            let text = |name| value.get(name).and_then(Value::as_str).map(str::to_owned);
            let (name, namespace) = (text("name"), text("namespace"));
            (ObjectMeta { name, namespace, ..ObjectMeta::default() }, Some(error))
        }
    }
}

/// Validates an object against the API of Kubernetes if its kind is built-in, otherwise against its Rust type.
fn check<K: Object>(gvk: &Gvk, members: &mut Map<String, Value>) -> Result<(), ObjectError> {
    if let Some(checked) = check_facts(gvk, members) {
        return checked;
    }
    let mut whole = members.clone();
    whole.insert("apiVersion".to_owned(), Value::from(gvk.api_version()));
    whole.insert("kind".to_owned(), Value::from(&*gvk.kind));
    let (read, mut found) = strict::read::<K>(&Value::Object(whole));
    // Types with a fixed kind need not have these two fields.
    found.unknown.retain(|mismatch| !matches!(&*mismatch.path, "apiVersion" | "kind"));
    match read {
        // Report unknown fields first: a misspelt field is probably why another one is missing.
        _ if !found.unknown.is_empty() => {
            Err(ObjectError::Fields { object: described(gvk, members), mismatches: found.unknown })
        }
        Ok(_) => Ok(()),
        Err(source) => {
            let path = found.failed_at.filter(|path| !path.is_empty());
            let path = path.unwrap_or_else(|| "the object".to_owned());
            Err(ObjectError::Decode { object: described(gvk, members), path, source: source.into() })
        }
    }
}

/// Validates an object against the API of Kubernetes. `None` if its kind is not built-in.
fn check_facts(gvk: &Gvk, members: &mut Map<String, Value>) -> Option<Result<(), ObjectError>> {
    // The table merges groups with the same first label into one package, so compare the whole group.
    let of_group = |ty: &&facts::Type| ty.kind_of == Some(&*format!("{}/{}", gvk.group, gvk.version));
    let ty = facts::type_of_kind(&gvk.group, &gvk.version, &gvk.kind).filter(of_group)?;
    drop_nulls(ty, members);
    let value = Value::Object(std::mem::take(members));
    let mismatches = facts::mismatches(ty, &value);
    if let Value::Object(whole) = value {
        *members = whole;
    }
    let object = described(gvk, members);
    Some(if mismatches.is_empty() { Ok(()) } else { Err(ObjectError::Fields { object, mismatches }) })
}

/// Drops null fields of known types: the API server treats them as absent.
fn drop_nulls(ty: &'static facts::Type, members: &mut Map<String, Value>) {
    if ty.any {
        return;
    }
    members.retain(|name, value| {
        let Some(field) = ty.field(name) else { return true };
        drop_nulls_below(&field.ty, value);
        !value.is_null() || matches!(field.ty, FieldType::Json | FieldType::Raw)
    });
}

fn drop_nulls_below(ty: &'static FieldType, value: &mut Value) {
    match (ty, value) {
        (FieldType::Object(of), Value::Object(members)) => drop_nulls(of.get(), members),
        (FieldType::List(of), Value::Array(items)) => {
            for item in items {
                drop_nulls_below(of, item);
            }
        }
        (FieldType::Map(of), Value::Object(entries)) => {
            for entry in entries.values_mut() {
                drop_nulls_below(of, entry);
            }
        }
        _ => {}
    }
}

fn described(gvk: &Gvk, members: &Map<String, Value>) -> String {
    let metadata = members.get("metadata");
    let text = |name| metadata.and_then(|metadata| metadata.get(name)).and_then(Value::as_str);
    match (text("namespace"), text("name")) {
        (Some(namespace), Some(name)) => format!("{} {namespace}/{name}", gvk.kind),
        (None, Some(name)) => format!("{} {name}", gvk.kind),
        (_, None) => gvk.kind.clone(),
    }
}

fn joined(mismatches: &[Mismatch]) -> String {
    let texts: Vec<String> = mismatches.iter().map(ToString::to_string).collect();
    texts.join("; ")
}
