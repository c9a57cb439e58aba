//! JSON patches: RFC 6902, as `github.com/evanphx/json-patch` version 4 applies them.
//!
//! Clients depend on the quirks of that version: `replace` and `copy` treat a missing field as `null`, a
//! missing `value` is `null`, negative indices count from the end, and the text before the first slash of a
//! path is ignored. A failing operation fails the whole patch. No crate is used, because those for Rust follow the RFC
//! without these quirks.
//!
//! Differences: the library compares scalars in `test` by their spelling; here `1` equals `1.0`, and an
//! escaped character equals the plain one. No operation makes the document deeper than
//! [`json::MAX_DEPTH`](crate::json::MAX_DEPTH), and the total work of a patch is limited.

mod operation;

use std::collections::HashSet;
use std::fmt::Write as _;

use serde_json::Value;

use self::operation::Operation;
use crate::json::{Document, MAX_STRICT_ERRORS, ParseOptions, quote};

/// Maximum number of operations of a patch.
pub const MAX_OPERATIONS: usize = 10_000;
/// Maximum size of the JSON that the `copy` operations of a patch add.
pub const MAX_COPIED_BYTES: usize = 3 * 1024 * 1024;
/// Maximum number of values that a patch may visit or shift, which takes less than a second. Upstream has no
/// such limit: ten thousand insertions at the front of a long list take minutes there.
const MAX_STEPS: usize = 100_000_000;

/// A decoded patch.
#[derive(Debug, Clone)]
pub struct JsonPatch {
    operations: Vec<Operation>,
}

/// Why a patch was rejected. Webhook failures contain the text of every variant; the status codes below are
/// those of a client's PATCH.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonPatchError {
    /// Not a valid patch. Status 400 with this text.
    #[error("{0}")]
    Decode(String),
    /// More than [`MAX_OPERATIONS`]. Status 413 with the text `Request entity is too large: ` and this
    /// message.
    #[error("The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {0}")]
    TooManyOperations(usize),
    /// An operation cannot be applied to the document. Status 422, reason `Invalid`, with the generic text
    /// `the server rejected our request due to an error in our request`.
    #[error("{0}")]
    Apply(String),
    /// A `test` failed. Status 422, as for [`JsonPatchError::Apply`].
    #[error("testing value {path} failed: test failed")]
    TestFailed {
        /// The tested path.
        path: String,
    },
}

/// Decodes a patch and applies it to a document.
pub fn apply_json_patch(document: &Value, patch: &[u8]) -> Result<Value, JsonPatchError> {
    JsonPatch::decode(patch)?.apply(document.clone())
}

impl JsonPatch {
    /// Decodes a patch. Checks only its outer structure; invalid operations fail when they are applied.
    /// `null` is the empty patch.
    pub fn decode(patch: &[u8]) -> Result<Self, JsonPatchError> {
        let wrong = |kind: &str, go_type: &str| {
            JsonPatchError::Decode(format!(
                "json: cannot unmarshal {kind} into Go value of type jsonpatch.{go_type}"
            ))
        };
        let document = Document::parse(patch, ParseOptions::default());
        let items = match document.map_err(|error| JsonPatchError::Decode(error.to_string()))? {
            Document::Array(items) => items,
            Document::Null => Vec::new(),
            other => return Err(wrong(other.kind(), "Patch")),
        };
        let operations = items.into_iter().map(|item| match item {
            Document::Object(fields) => Operation::new(fields),
            Document::Null => Operation::new(Vec::new()),
            other => Err(wrong(other.kind(), "Operation")),
        });
        let operations: Vec<Operation> = operations.collect::<Result<_, _>>()?;
        if operations.len() > MAX_OPERATIONS {
            return Err(JsonPatchError::TooManyOperations(operations.len()));
        }
        Ok(Self { operations })
    }

    /// Whether the patch has no operations.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Applies the operations in order.
    pub fn apply(&self, document: Value) -> Result<Value, JsonPatchError> {
        operation::apply(&self.operations, document)
    }
}

/// The `fieldValidation` check: every operation must be an object with known fields, and `op`, `path` and
/// `from` must be strings. Returns the strict errors: unknown and duplicate fields.
pub fn check_json_patch(patch: &[u8]) -> Result<Vec<String>, JsonPatchError> {
    let failed = |message: String| JsonPatchError::Decode(format!("error decoding patch: {message}"));
    let wrong = |kind: &str, place: &str| failed(format!("json: cannot unmarshal {kind} into Go {place}"));

    let document =
        Document::parse(patch, ParseOptions::default()).map_err(|error| failed(error.to_string()))?;
    let operations = match &document {
        Document::Array(operations) => &operations[..],
        Document::Null => &[],
        other => return Err(wrong(other.kind(), "value of type []handlers.jsonPatchOp")),
    };
    let mut strict = StrictErrors::default();
    for (i, operation) in operations.iter().enumerate() {
        let fields = match operation {
            Document::Object(fields) => &fields[..],
            Document::Null => &[],
            other => return Err(wrong(other.kind(), "value of type handlers.jsonPatchOp")),
        };
        let mut seen = HashSet::new();
        for (name, field) in fields {
            let mut path = format!("[{i}].{name}");
            if !matches!(name.as_str(), "op" | "path" | "from" | "value") {
                strict.add("unknown", &path);
                continue;
            }
            if !seen.insert(name) {
                strict.add("duplicate", &path);
            }
            if name == "value" {
                if let Some(literal) = strict.walk(field, &mut path) {
                    let place = "struct field jsonPatchOp.value of type float64";
                    return Err(wrong(&format!("number {literal}"), place));
                }
            } else if !matches!(field, Document::String(_) | Document::Null) {
                return Err(wrong(field.kind(), &format!("struct field jsonPatchOp.{name} of type string")));
            }
        }
    }
    Ok(strict.errors)
}

/// Collects errors without repetitions, up to a limit.
#[derive(Default)]
struct StrictErrors {
    errors: Vec<String>,
    seen: HashSet<String>,
}

impl StrictErrors {
    fn add(&mut self, problem: &str, path: &str) {
        let error = format!("json patch {problem} field {}", quote(path));
        if self.errors.len() < MAX_STRICT_ERRORS && self.seen.insert(error.clone()) {
            self.errors.push(error);
        }
    }

    /// Finds duplicate fields. Returns the first number that is out of range. Restores `path`.
    fn walk<'a>(&mut self, value: &'a Document, path: &mut String) -> Option<&'a str> {
        let len = path.len();
        match value {
            Document::Array(items) => items.iter().enumerate().find_map(|(i, item)| {
                write!(path, "[{i}]").expect("writing to a string cannot fail");
                let found = self.walk(item, path);
                path.truncate(len);
                found
            }),
            Document::Object(fields) => {
                let mut seen = HashSet::new();
                fields.iter().find_map(|(name, field)| {
                    path.push('.');
                    path.push_str(name);
                    if !seen.insert(name) {
                        self.add("duplicate", path);
                    }
                    let found = self.walk(field, path);
                    path.truncate(len);
                    found
                })
            }
            Document::Number(literal) => value.to_value().is_err().then_some(literal),
            Document::Null | Document::Bool(_) | Document::String(_) => None,
        }
    }
}

#[cfg(test)]
mod tests;
