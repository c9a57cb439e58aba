//! From a request's body, or from storage, to an object that the rules can work on.
//!
//! Either way the object is brought into form first ([`coerce`]): metadata as Go's type has it, unknown fields
//! gone, nulls gone where they mean nothing. Defaults come after that.

use std::sync::LazyLock;

use serde_json::Value;

use super::defaults::apply_defaults;
use super::definition::Definition;
use super::metadata::{self, Malformed};
use super::prune::{prune_nulls, prune_paths, unknown_field};
use super::schema::Schema;
use kubewright_apimachinery::decode::Decoded;
use kubewright_apimachinery::field::{FieldError, Path};
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::json::{self, ParseError, ParseOptions, Parsed};
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::status::ApiError;

/// A body that is no custom resource.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum DecodeError {
    /// Not JSON.
    #[error(transparent)]
    Syntax(#[from] ParseError),
    /// No `kind`. The text is upstream's, with the body in it.
    #[error("Object 'Kind' is missing in '{body}'")]
    MissingKind {
        /// The whole body.
        body: String,
    },
    /// Metadata of another shape.
    #[error(transparent)]
    Shape(#[from] ShapeError),
}

/// An object whose metadata, or that of a resource in it, has another shape.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ShapeError {
    /// Of the object itself. The text is Go's.
    #[error("{0}")]
    Metadata(String),
    /// Of a resource in it.
    #[error("{0}")]
    Embedded(FieldError),
}

/// An object in storage that cannot be read. The text is upstream's.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ReadError {
    /// Stored in a version that the definition no longer has.
    #[error("request to convert CR from an invalid group/version: {0}")]
    From(String),
    /// Wanted in a version that the definition does not have.
    #[error("request to convert CR to an invalid group/version: {0}")]
    To(String),
    /// Stored metadata cannot be repaired.
    #[error(transparent)]
    Shape(#[from] ShapeError),
}

/// Decodes a body: JSON that says its kind, brought into form and defaulted. [`Decoded::strict`] has repeated
/// fields first, then unknown ones. What the body says it is must still be compared with what the path wants:
/// see [`check_version`].
pub fn decode(definition: &Definition, json: &[u8]) -> Result<Decoded, DecodeError> {
    decode_parsed(definition, json::parse(json, ParseOptions::default())?, json)
}

/// As [`decode`], for a body that has been parsed already.
pub fn decode_parsed(definition: &Definition, parsed: Parsed, json: &[u8]) -> Result<Decoded, DecodeError> {
    let mut strict: Vec<String> = parsed.strict_errors().collect();
    let mut value = parsed.value;
    if value.str_at("kind").is_empty() {
        return Err(DecodeError::MissingKind { body: String::from_utf8_lossy(json).into_owned() });
    }
    strict.extend(complete(definition, &mut value)?);
    Ok(Decoded { value, strict })
}

/// Brings an object that a client sent into form and defaults it. Returns what strict validation complains of.
pub fn complete(definition: &Definition, object: &mut Value) -> Result<Vec<String>, ShapeError> {
    let strict = coerce(definition, object, Malformed::Refuse)?;
    default(definition, object);
    Ok(strict)
}

/// The body must be of the version that the path names.
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

/// An object from storage in the version wanted, converted as strategy `None` does.
pub fn read(definition: &Definition, mut stored: Value, version: &str) -> Result<Value, ReadError> {
    restore(definition, &mut stored)?;
    if Gvk::of(&stored).version != version {
        convert(definition, &mut stored, version)?;
    }
    Ok(stored)
}

/// Brings an object from storage into form and defaults it, in the version in which it was stored. A webhook
/// that converts is called after this, and [`coerce`] after that.
pub fn restore(definition: &Definition, stored: &mut Value) -> Result<(), ReadError> {
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

/// Converts an object as strategy `None` does: another `apiVersion`, and what that version does not know goes.
pub fn convert(definition: &Definition, object: &mut Value, version: &str) -> Result<(), ReadError> {
    let api_version = definition.gvk(version).api_version();
    if !definition.versions.contains_key(version) {
        return Err(ReadError::To(api_version));
    }
    object.set_at("apiVersion", api_version);
    coerce(definition, object, Malformed::Refuse)?;
    Ok(())
}

/// Brings an object into form, by the schema of the version that it says it has; of a version that the
/// definition does not have nothing but metadata stays. Returns the unknown fields as strict validation names
/// them: those of metadata first, then others, then those of metadata in embedded resources.
pub fn coerce(
    definition: &Definition,
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

/// Nulls in metadata have been dealt with.
fn prune_nulls_below(schema: &Schema, object: &mut Value) {
    let metadata = object.as_object_mut().and_then(|fields| fields.remove("metadata"));
    prune_nulls(schema, object);
    if let (Some(metadata), Value::Object(fields)) = (metadata, object) {
        fields.insert("metadata".to_owned(), metadata);
    }
}

fn default(definition: &Definition, object: &mut Value) {
    if let Some(schema) = schema_of(definition, object) {
        apply_defaults(schema, object);
    }
}

/// The schema of the version that an object says it has, the empty one if the definition has no such version;
/// none for objects of other kinds.
fn schema_of<'a>(definition: &'a Definition, object: &Value) -> Option<&'a Schema> {
    static EMPTY: LazyLock<Schema> = LazyLock::new(Schema::default);
    let gvk = Gvk::of(object);
    let ours = gvk.group == definition.group && gvk.kind == definition.kind;
    ours.then(|| definition.versions.get(gvk.version).map_or(&*EMPTY, |version| &version.schema))
}
