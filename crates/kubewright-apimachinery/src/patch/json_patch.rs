//! JSON patches: RFC 6902, as `github.com/evanphx/json-patch` version 4 applies them.
//!
//! That library is older than its fixes, and clients rely on what it does: `replace` and `copy` take a field
//! that is not there for `null`, a missing `value` is `null`, negative indices count from the end, and the
//! text before the first slash of a path is ignored. A failing operation fails the whole patch.
//!
//! Not kept: the library compares scalars in `test` as they are spelled; here `1` equals `1.0`, and an
//! escaped character equals the plain one. No operation makes the document deeper than
//! [`json::MAX_DEPTH`](crate::json::MAX_DEPTH), and all together move a bounded number of values.

mod operation;

use std::collections::HashSet;
use std::fmt::Write as _;

use serde_json::Value;

use self::operation::Operation;
use crate::json::{Document, MAX_STRICT_ERRORS, ParseOptions, quote};

/// How many operations a patch may have.
pub const MAX_OPERATIONS: usize = 10_000;
/// How many bytes of JSON the `copy` operations of a patch may add.
pub const MAX_COPIED_BYTES: usize = 3 * 1024 * 1024;
/// How many values a patch may look at or shift in their lists: less than a second's work. Upstream has no such
/// limit, and ten thousand insertions at the front of a long list keep it busy for minutes.
const MAX_STEPS: usize = 100_000_000;

/// A decoded patch.
#[derive(Debug, Clone)]
pub struct JsonPatch {
    operations: Vec<Operation>,
}

/// Why a patch was refused. Webhooks' answers show the text of every error; the status below is what the
/// server gives a client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonPatchError {
    /// It is no patch. Status 400 with the text.
    #[error("{0}")]
    Decode(String),
    /// It has more than [`MAX_OPERATIONS`]. Status 413 with the text behind `Request entity is too large: `.
    #[error("The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {0}")]
    TooManyOperations(usize),
    /// An operation does not fit the document. Status 422 with reason `Invalid` and a text that says nothing:
    /// `the server rejected our request due to an error in our request`.
    #[error("{0}")]
    Apply(String),
    /// A `test` failed. Status 422, as for [`JsonPatchError::Apply`].
    #[error("testing value {path} failed: test failed")]
    TestFailed {
        /// What was tested.
        path: String,
    },
}

/// Decodes a patch and applies it to a document.
pub fn apply_json_patch(document: &Value, patch: &[u8]) -> Result<Value, JsonPatchError> {
    JsonPatch::decode(patch)?.apply(document.clone())
}

impl JsonPatch {
    /// Decodes a patch. Only its outer form is checked; an operation that is wrong in itself fails when it
    /// is applied. `null` is the empty patch.
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

    /// Whether the patch says nothing.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Applies the operations one after the other.
    pub fn apply(&self, document: Value) -> Result<Value, JsonPatchError> {
        operation::apply(&self.operations, document)
    }
}

/// The check that `fieldValidation` asks for: every operation must be an object with the known fields, and
/// `op`, `path` and `from` strings. Returns the strict errors, which are unknown and repeated fields.
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

/// Each error once, and not too many.
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

    /// Finds repeated fields, and returns the first number that is out of range. The path is left as it was.
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
