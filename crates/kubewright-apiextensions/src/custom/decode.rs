//! Decoding of custom resources, from request bodies and from storage.
//!
//! Both are normalised first ([`coerce`]): metadata as in Go's `ObjectMeta`, without unknown fields and
//! without meaningless nulls. Defaulting follows.

use std::sync::LazyLock;

use serde_json::Value;

use super::crd_validation::CrdValidation;
use super::defaults::apply_defaults;
use super::metadata::{self, Malformed};
use super::prune::{prune_nulls, prune_paths, unknown_field};
use crate::structural::Structural;
use kubewright_apimachinery::decode::Decoded;
use kubewright_apimachinery::field::{FieldError, Path};
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::json::{self, ParseError, ParseOptions, Parsed};
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::status::ApiError;

/// Why a body is not a valid custom resource.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum DecodeError {
    /// The body is not valid JSON.
    #[error(transparent)]
    Syntax(#[from] ParseError),
    /// The `kind` is missing. The text is upstream's and contains the body.
    #[error("Object 'Kind' is missing in '{body}'")]
    MissingKind {
        /// The whole body.
        body: String,
    },
    /// The metadata is malformed.
    #[error(transparent)]
    Shape(#[from] ShapeError),
}

/// Malformed metadata of an object or of an embedded resource.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ShapeError {
    /// The metadata of the object itself. The text is Go's.
    #[error("{0}")]
    Metadata(String),
    /// The metadata of an embedded resource.
    #[error("{0}")]
    Embedded(FieldError),
}

/// Why a stored object cannot be read. The text is upstream's.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ReadError {
    /// Stored in a version that the CRD no longer has.
    #[error("request to convert CR from an invalid group/version: {0}")]
    From(String),
    /// Requested in a version that the CRD does not have.
    #[error("request to convert CR to an invalid group/version: {0}")]
    To(String),
    /// The stored metadata cannot be repaired.
    #[error(transparent)]
    Shape(#[from] ShapeError),
}

/// Decodes a body: parses, normalises and defaults it. [`Decoded::strict`] lists duplicate fields first, then
/// unknown ones. The caller must compare version and kind with the request path; see [`check_version`].
pub fn decode(definition: &CrdValidation, json: &[u8]) -> Result<Decoded, DecodeError> {
    decode_parsed(definition, json::parse(json, ParseOptions::default())?, json)
}

/// Like [`decode`], for a body that is already parsed.
pub fn decode_parsed(
    definition: &CrdValidation,
    parsed: Parsed,
    json: &[u8],
) -> Result<Decoded, DecodeError> {
    let mut strict: Vec<String> = parsed.strict_errors().collect();
    let mut value = parsed.value;
    if value.str_at("kind").is_empty() {
        return Err(DecodeError::MissingKind { body: String::from_utf8_lossy(json).into_owned() });
    }
    strict.extend(complete(definition, &mut value)?);
    Ok(Decoded { value, strict })
}

/// Normalises and defaults an object that a client sent. Returns strict validation errors.
pub fn complete(definition: &CrdValidation, object: &mut Value) -> Result<Vec<String>, ShapeError> {
    let strict = coerce(definition, object, Malformed::Refuse)?;
    default(definition, object);
    Ok(strict)
}

/// Checks that the object has the version and kind of the request path.
pub fn check_version(expected: Gvk<'_>, object: &Value) -> Result<(), ApiError> {
    let given = object.str_at("apiVersion");
    let expected = expected.api_version();
    if given == expected {
        return Ok(());
    }
    Err(ApiError::bad_request(format!(
        "the API version in the data ({given}) does not match the expected API version ({expected})"
    )))
}

/// Reads a stored object in the requested version, converted with strategy `None`.
pub fn read(definition: &CrdValidation, mut stored: Value, version: &str) -> Result<Value, ReadError> {
    restore(definition, &mut stored)?;
    if Gvk::of(&stored).version != version {
        convert(definition, &mut stored, version)?;
    }
    Ok(stored)
}

/// Normalizes and defaults a stored object in its stored version, before webhook conversion. Call [`coerce`] after the
/// conversion.
pub fn restore(definition: &CrdValidation, stored: &mut Value) -> Result<(), ReadError> {
    let gvk = Gvk::of(stored);
    if gvk.group != definition.group || !definition.versions.contains_key(gvk.version) {
        return Err(ReadError::From(stored.str_at("apiVersion").to_owned()));
    }
    coerce(definition, stored, Malformed::Drop)?;
    if stored.has("metadata") && stored.int_at("metadata.generation").unwrap_or_default() == 0 {
        stored.set_at("metadata.generation", 1);
    }
    default(definition, stored);
    Ok(())
}

/// Converts an object with strategy `None`: sets `apiVersion` and prunes fields unknown to the version.
pub fn convert(definition: &CrdValidation, object: &mut Value, version: &str) -> Result<(), ReadError> {
    let api_version = definition.gvk(version).api_version();
    if !definition.versions.contains_key(version) {
        return Err(ReadError::To(api_version));
    }
    object.set_at("apiVersion", api_version);
    coerce(definition, object, Malformed::Refuse)?;
    Ok(())
}

/// Normalises an object by the schema of its version. If the CRD does not have that version, only metadata is
/// kept. Returns the unknown fields as strict validation errors: those of metadata first, then others, then
/// those of metadata in embedded resources.
pub fn coerce(
    definition: &CrdValidation,
    object: &mut Value,
    malformed: Malformed,
) -> Result<Vec<String>, ShapeError> {
    let mut unknown = Vec::new();
    if let Some(given) = object.get_mut("metadata") {
        unknown = metadata::unknown_fields(given, "metadata");
        metadata::coerce(given, malformed).map_err(ShapeError::Metadata)?;
    }
    if let Some(schema) = schema_of(definition, object) {
        if !definition.preserve_unknown_fields {
            unknown.extend(prune_paths(schema, object, true));
            prune_nulls_below(schema, object);
        }
        let embedded = metadata::coerce_metadata(schema, object, &Path::root(), false, malformed);
        unknown.extend(embedded.map_err(ShapeError::Embedded)?);
    }
    Ok(unknown.iter().map(|path| unknown_field(path)).collect())
}

/// Prunes nulls outside of metadata, which is already normalised.
fn prune_nulls_below(schema: &Structural, object: &mut Value) {
    let metadata = object.as_object_mut().and_then(|fields| fields.remove("metadata"));
    prune_nulls(schema, object);
    if let (Some(metadata), Value::Object(fields)) = (metadata, object) {
        fields.insert("metadata".to_owned(), metadata);
    }
}

fn default(definition: &CrdValidation, object: &mut Value) {
    if let Some(schema) = schema_of(definition, object) {
        apply_defaults(schema, object);
    }
}

/// The schema of an object's version; the empty schema if the CRD does not have that version. `None` for
/// objects of other kinds.
fn schema_of<'a>(definition: &'a CrdValidation, object: &Value) -> Option<&'a Structural> {
    static EMPTY: LazyLock<Structural> = LazyLock::new(Structural::default);
    let gvk = Gvk::of(object);
    let ours = gvk.group == definition.group && gvk.kind == definition.kind;
    ours.then(|| definition.versions.get(gvk.version).map_or(&*EMPTY, |version| &version.schema))
}
