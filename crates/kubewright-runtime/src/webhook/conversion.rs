//! Conversion of custom resources between versions, through a hub.
//!
//! Owns the JSON of `ConversionReview` and the rule that nothing is lost: what a spoke cannot represent is kept in one
//! annotation and restored on the way back. User code converts typed objects and does not see reviews.

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::merge;
use crate::error::Chain;
use crate::journal::Converted;
use crate::kind::{Kind, Object};

/// The annotation that keeps the fields of the hub which a spoke cannot represent.
pub const CONVERSION_DATA: &str = "kubewright.dev/conversion-data";

/// Kubernetes limits all annotations of an object to 256 KiB together.
const MAX_ANNOTATION: usize = 200 * 1024;

/// A version of a kind that is not the hub. It converts to the hub and back.
///
/// The hub is usually the storage version. Conversions set `spec` and `status` only: `metadata` is carried over, except
/// for labels and annotations that the conversion adds. Fields of the hub that the spoke lacks need no code: they are kept
/// in an annotation and restored by [`Conversion`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be converted to a hub version",
    note = "implement `Spoke` with `type Hub = ...`, `to_hub` and `from_hub`"
)]
pub trait Spoke: Object + DeserializeOwned + Serialize + Sized {
    /// The version that all others are converted through.
    type Hub: Object + DeserializeOwned + Serialize;

    /// This object in the hub's version.
    fn to_hub(&self) -> Result<Self::Hub, BoxError>;

    /// An object of the hub's version in this version.
    fn from_hub(hub: &Self::Hub) -> Result<Self, BoxError>;
}

/// Any error of a conversion.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

type Convert = fn(Value) -> Result<Value, ConversionError>;

/// The versions of one kind and the conversions between them.
#[derive(Clone)]
pub struct Conversion {
    group_kind: (String, String),
    plural: String,
    hub: String,
    normalize: Convert,
    spokes: BTreeMap<String, Versioned>,
}

#[derive(Clone, Copy)]
struct Versioned {
    to_hub: Convert,
    from_hub: Convert,
}

/// An object could not be converted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConversionError {
    /// The object is of a version that is not registered.
    #[error("cannot convert {kind} of {version}: registered versions are {known}")]
    UnknownVersion {
        /// The object's or the desired `apiVersion`.
        version: String,
        /// The object's kind.
        kind: String,
        /// The registered versions.
        known: String,
    },
    /// The object does not fit the Rust type of its version.
    #[error("failed to decode {0}")]
    Decode(String, #[source] serde_json::Error),
    /// The converted object cannot be written.
    #[error("failed to encode {0}")]
    Encode(String, #[source] serde_json::Error),
    /// `to_hub` or `from_hub` failed.
    #[error("failed to convert {0}")]
    Convert(String, #[source] BoxError),
    /// The annotation with the hub's fields is damaged.
    #[error("annotation {CONVERSION_DATA} is not valid JSON; remove it to drop the fields that it keeps")]
    Annotation(#[source] serde_json::Error),
    /// The hub's fields exceed the size limit of annotations.
    #[error(
        "{bytes} bytes of fields do not exist in {version}; the annotation can store at most {MAX_ANNOTATION}"
    )]
    TooLarge {
        /// The version that lacks the fields.
        version: String,
        /// The size of the fields to keep, in bytes.
        bytes: usize,
    },
}

impl Conversion {
    /// A kind whose hub is `H`.
    pub fn hub<H: Object + DeserializeOwned + Serialize>() -> Self {
        let kind = Kind::of::<H>();
        let gvk = kind.gvk();
        Self {
            group_kind: (gvk.group.clone(), gvk.kind.clone()),
            plural: kind.plural().to_owned(),
            hub: gvk.api_version(),
            normalize: |value| encode(&decode::<H>(value)?),
            spokes: BTreeMap::new(),
        }
    }

    /// Adds a version.
    ///
    /// # Panics
    ///
    /// If the spoke has another hub, or the version is already registered: both are programming errors.
    #[must_use]
    pub fn spoke<S: Spoke>(mut self) -> Self {
        let (spoke, hub) = (Kind::of::<S>(), Kind::of::<S::Hub>());
        let version = spoke.gvk().api_version();
        assert_eq!(hub.gvk().api_version(), self.hub, "{version} converts to another hub");
        let versioned = Versioned {
            to_hub: |value| {
                let spoke: S = decode(value)?;
                encode(&spoke.to_hub().map_err(|error| ConversionError::Convert(named::<S>(), error))?)
            },
            from_hub: |value| {
                let hub: S::Hub = decode(value)?;
                encode(
                    &S::from_hub(&hub).map_err(|error| ConversionError::Convert(named::<S::Hub>(), error))?,
                )
            },
        };
        let taken = version == self.hub || self.spokes.insert(version.clone(), versioned).is_some();
        assert!(!taken, "{version} is registered twice");
        self
    }

    /// The group and kind that it converts.
    pub fn group_kind(&self) -> (&str, &str) {
        (&self.group_kind.0, &self.group_kind.1)
    }

    /// The name of the CRD.
    pub(crate) fn crd_name(&self) -> String {
        format!("{}.{}", self.plural, self.group_kind.0)
    }

    /// The `apiVersion` of the hub and of every spoke.
    pub fn versions(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.hub.as_str()).chain(self.spokes.keys().map(String::as_str))
    }

    /// Converts one object to another version.
    pub fn convert(&self, object: Value, desired: &str) -> Result<Value, ConversionError> {
        let version = object["apiVersion"].as_str().unwrap_or_default().to_owned();
        if version == desired {
            return Ok(object);
        }
        // While an API server removes fields that are no longer applied, it also converts objects without these
        // fields. Objects without `metadata` or `spec` do not fit their Rust type.
        let mut object = object;
        if let Some(fields) = object.as_object_mut() {
            fields.entry("metadata").or_insert_with(|| json!({}));
        }
        let partial = object.get("spec").is_none().then(|| object.clone());
        match (self.convert_whole(object, &version, desired), partial) {
            (Err(ConversionError::Decode(..)), Some(mut partial)) => {
                partial["apiVersion"] = desired.into();
                Ok(partial)
            }
            (converted, _) => converted,
        }
    }

    fn convert_whole(&self, object: Value, version: &str, desired: &str) -> Result<Value, ConversionError> {
        let metadata = object["metadata"].clone();
        let hub = if version == self.hub { object } else { self.to_hub(object, version)? };
        let converted = if desired == self.hub { hub } else { self.to_spoke(hub, desired)? };
        Ok(with_metadata(converted, metadata))
    }

    fn to_hub(&self, mut spoke: Value, version: &str) -> Result<Value, ConversionError> {
        let conversion = self.version(version, &spoke)?;
        let kept = take_annotation(&mut spoke);
        let metadata = spoke["metadata"].clone();
        let mut hub = (conversion.to_hub)(spoke)?;
        let Some(kept) = kept else { return Ok(hub) };
        let mut kept: Map<String, Value> =
            serde_json::from_str(&kept).map_err(ConversionError::Annotation)?;
        // The part of the kept object that the spoke represents, converted to the hub. Everything else is restored.
        kept.insert("apiVersion".to_owned(), self.hub.clone().into());
        kept.insert("kind".to_owned(), self.group_kind.1.clone().into());
        kept.insert("metadata".to_owned(), metadata);
        let kept = Value::Object(kept);
        let shown = (conversion.to_hub)((conversion.from_hub)(kept.clone())?)?;
        merge::restore(&mut hub, &shown, &kept);
        Ok(hub)
    }

    fn to_spoke(&self, hub: Value, desired: &str) -> Result<Value, ConversionError> {
        let conversion = self.version(desired, &hub)?;
        let hub = (self.normalize)(hub)?;
        let mut spoke = (conversion.from_hub)(hub.clone())?;
        let back = (conversion.to_hub)(spoke.clone())?;
        let content = |object: Value| match object {
            Value::Object(mut fields) => {
                fields.retain(|key, _| !matches!(key.as_str(), "apiVersion" | "kind" | "metadata"));
                Value::Object(fields)
            }
            other => other,
        };
        let (hub, back) = (content(hub), content(back));
        if hub != back {
            let kept = hub.to_string();
            if kept.len() > MAX_ANNOTATION {
                return Err(ConversionError::TooLarge { version: desired.to_owned(), bytes: kept.len() });
            }
            annotations(&mut spoke).insert(CONVERSION_DATA.to_owned(), kept.into());
        }
        Ok(spoke)
    }

    fn version(&self, version: &str, object: &Value) -> Result<Versioned, ConversionError> {
        self.spokes.get(version).copied().ok_or_else(|| ConversionError::UnknownVersion {
            version: version.to_owned(),
            kind: object["kind"].as_str().unwrap_or_default().to_owned(),
            known: self.versions().collect::<Vec<_>>().join(", "),
        })
    }
}

impl fmt::Debug for Conversion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let spokes: Vec<_> = self.spokes.keys().collect();
        f.debug_struct("Conversion").field("hub", &self.hub).field("spokes", &spokes).finish_non_exhaustive()
    }
}

/// The response to a ConversionReview.
pub(super) struct Answer {
    pub(super) body: Bytes,
    /// What the review asked for, if it is recorded and could be read.
    pub(super) review: Option<Converted>,
    pub(super) error: Option<String>,
    /// `desiredAPIVersion` of the review.
    pub(super) desired: String,
}

impl Answer {
    fn failed(api_version: &str, uid: &str, message: String) -> Self {
        let body = failure(api_version, uid, &message);
        Self { body, review: None, error: Some(message), desired: String::new() }
    }
}

/// Answers a ConversionReview with the conversions of all kinds. One object that fails makes its review fail and nothing
/// else.
pub(super) fn answer(conversions: &[Conversion], body: &[u8], record: bool) -> Answer {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Review {
        api_version: String,
        kind: String,
        request: Option<Request>,
    }
    #[derive(Deserialize)]
    struct Request {
        uid: String,
        #[serde(rename = "desiredAPIVersion")]
        desired: String,
        #[serde(default)]
        objects: Vec<Value>,
    }
    let review = match serde_json::from_slice::<Review>(body) {
        Ok(review) if review.kind == "ConversionReview" => review,
        Ok(review) => {
            let message =
                format!("expected a ConversionReview, got {:?} of {:?}", review.kind, review.api_version);
            return Answer::failed("apiextensions.k8s.io/v1", "", message);
        }
        Err(error) => {
            let message = format!("failed to decode the ConversionReview: {error}");
            return Answer::failed("apiextensions.k8s.io/v1", "", message);
        }
    };
    let Some(Request { uid, desired, objects }) = review.request else {
        let message = "the ConversionReview has no request".to_owned();
        return Answer::failed(&review.api_version, "", message);
    };
    let asked = record.then(|| Converted::of(&desired, &objects));
    let converted: Result<Vec<Value>, String> =
        objects.into_iter().map(|object| convert_one(conversions, object, &desired)).collect();
    match converted {
        Ok(converted) => {
            let response = json!({
                "uid": uid,
                "convertedObjects": converted,
                "result": { "status": "Success" },
            });
            Answer { body: review_of(&review.api_version, &response), review: asked, error: None, desired }
        }
        Err(message) => {
            Answer { review: asked, desired, ..Answer::failed(&review.api_version, &uid, message) }
        }
    }
}

/// The response to a review whose conversion panicked.
pub(super) fn failed(body: &[u8], message: &str) -> Bytes {
    let review: Value = serde_json::from_slice(body).unwrap_or_default();
    let version = review["apiVersion"].as_str().unwrap_or("apiextensions.k8s.io/v1");
    failure(version, review["request"]["uid"].as_str().unwrap_or_default(), message)
}

fn convert_one(conversions: &[Conversion], object: Value, desired: &str) -> Result<Value, String> {
    let group_of = |version: &str| version.split_once('/').map_or("", |(group, _)| group).to_owned();
    let group = group_of(object["apiVersion"].as_str().unwrap_or_default());
    let kind = object["kind"].as_str().unwrap_or_default().to_owned();
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let conversion =
        conversions.iter().find(|conversion| conversion.group_kind() == (group.as_str(), kind.as_str()));
    let Some(conversion) = conversion else {
        return Err(format!("no conversion is registered for {kind} of group {group:?}"));
    };
    conversion.convert(object, desired).map_err(|error| format!("{kind} {name:?}: {}", Chain(&error)))
}

fn failure(api_version: &str, uid: &str, message: &str) -> Bytes {
    let result = json!({ "status": "Failure", "message": message });
    review_of(api_version, &json!({ "uid": uid, "convertedObjects": [], "result": result }))
}

fn review_of(api_version: &str, response: &Value) -> Bytes {
    json!({ "kind": "ConversionReview", "apiVersion": api_version, "response": response }).to_string().into()
}

fn named<K: Object>() -> String {
    Kind::of::<K>().gvk().to_string()
}

fn decode<K: Object + DeserializeOwned>(value: Value) -> Result<K, ConversionError> {
    serde_json::from_value(value).map_err(|error| ConversionError::Decode(named::<K>(), error))
}

fn encode<K: Object + Serialize>(object: &K) -> Result<Value, ConversionError> {
    let kind = Kind::of::<K>();
    let mut value =
        serde_json::to_value(object).map_err(|error| ConversionError::Encode(named::<K>(), error))?;
    if let Some(fields) = value.as_object_mut() {
        fields.insert("apiVersion".to_owned(), kind.gvk().api_version().into());
        fields.insert("kind".to_owned(), kind.name().into());
    }
    Ok(value)
}

/// The API server accepts changes of labels and annotations only; all other metadata is kept.
fn with_metadata(mut converted: Value, original: Value) -> Value {
    let mut metadata = original;
    if let Some(fields) = metadata.as_object_mut() {
        for key in ["labels", "annotations"] {
            match converted["metadata"].get(key) {
                Some(value) if value.as_object().is_some_and(|map| !map.is_empty()) => {
                    fields.insert(key.to_owned(), value.clone());
                }
                _ => {
                    fields.remove(key);
                }
            }
        }
    }
    converted["metadata"] = metadata;
    converted
}

fn annotations(object: &mut Value) -> &mut Map<String, Value> {
    let annotations = &mut object["metadata"]["annotations"];
    if !annotations.is_object() {
        *annotations = json!({});
    }
    annotations.as_object_mut().expect("an object was put there")
}

fn take_annotation(object: &mut Value) -> Option<String> {
    let annotations = object.pointer_mut("/metadata/annotations")?.as_object_mut()?;
    annotations.remove(CONVERSION_DATA)?.as_str().map(str::to_owned)
}
