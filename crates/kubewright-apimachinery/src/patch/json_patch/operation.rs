//! The operations of a JSON patch.
//!
//! All error texts are those of the library, because webhook failures show them to users.

use std::borrow::Cow;
use std::num::IntErrorKind;

use serde_json::Value;

use super::{JsonPatchError, MAX_COPIED_BYTES, MAX_STEPS};
use crate::json::{self, Document, quote};

/// An operation as sent by the client. It is validated when it is applied.
#[derive(Debug, Clone)]
pub(super) struct Operation {
    op: Text,
    path: Text,
    from: Text,
    value: Option<Value>,
}

/// A field that should be a string.
#[derive(Debug, Clone, Default)]
enum Text {
    #[default]
    Missing,
    Is(String),
    /// Another JSON type.
    Wrong(&'static str),
}

impl From<Document> for Text {
    fn from(field: Document) -> Self {
        match field {
            Document::Null => Self::Missing,
            Document::String(text) => Self::Is(text),
            other => Self::Wrong(other.kind()),
        }
    }
}

impl Text {
    fn get(&self, missing: &str) -> Result<&str, String> {
        match self {
            Self::Is(text) => Ok(text),
            Self::Missing => Err(format!("{missing}: {MISSING}")),
            Self::Wrong(kind) => Err(format!("json: cannot unmarshal {kind} into Go value of type string")),
        }
    }
}

/// The library's message for a missing value.
const MISSING: &str = "missing value";

impl Operation {
    pub(super) fn new(fields: Vec<(String, Document)>) -> Result<Self, JsonPatchError> {
        let (mut op, mut path, mut from, mut value) = (Text::Missing, Text::Missing, Text::Missing, None);
        for (name, field) in fields {
            match name.as_str() {
                "op" => op = field.into(),
                "path" => path = field.into(),
                "from" => from = field.into(),
                "value" => value = Some(field),
                _ => {}
            }
        }
        let value = value.map(|value| value.to_value()).transpose();
        let value = value.map_err(|error| JsonPatchError::Decode(error.to_string()))?;
        Ok(Self { op, path, from, value })
    }

    fn path(&self) -> Result<&str, String> {
        self.path.get("operation missing path field")
    }

    fn from(&self) -> Result<&str, String> {
        self.from.get("operation, missing from field")
    }

    fn value(&self) -> Value {
        self.value.clone().unwrap_or_default()
    }
}

pub(super) fn apply(operations: &[Operation], document: Value) -> Result<Value, JsonPatchError> {
    let mut patching = Patching { document, copied: 0, steps: 0 };
    for operation in operations {
        patching.apply(operation)?;
    }
    Ok(patching.document)
}

/// A document during patching. It never becomes deeper than [`json::MAX_DEPTH`], because walking, writing and
/// dropping it recurse.
struct Patching {
    document: Value,
    copied: usize,
    steps: usize,
}

impl Patching {
    fn apply(&mut self, operation: &Operation) -> Result<(), JsonPatchError> {
        let kind = if let Text::Is(kind) = &operation.op { kind } else { "unknown" };
        let applied = match kind {
            "add" => self.add(operation),
            "remove" => self.remove(operation),
            "replace" => self.replace(operation),
            "move" => self.r#move(operation),
            "copy" => self.copy(operation),
            "test" => return self.test(operation),
            _ => Err(format!("Unexpected kind: {kind}")),
        };
        applied.map_err(JsonPatchError::Apply)
    }

    fn add(&mut self, operation: &Operation) -> Result<(), String> {
        let path = operation.path().map_err(|_| format!("add operation failed to decode path: {MISSING}"))?;
        let mut target = self.find(path).ok_or_else(|| {
            format!("add operation does not apply: doc is missing path: \"{path}\": {MISSING}")
        })?;
        target.add(operation.value()).map_err(|e| format!("error in add for path: '{path}': {e}"))
    }

    fn remove(&mut self, operation: &Operation) -> Result<(), String> {
        let path =
            operation.path().map_err(|_| format!("remove operation failed to decode path: {MISSING}"))?;
        let mut target = self.find(path).ok_or_else(|| {
            format!("remove operation does not apply: doc is missing path: \"{path}\": {MISSING}")
        })?;
        target.remove().map_err(|e| format!("error in remove for path: '{path}': {e}"))?;
        Ok(())
    }

    fn replace(&mut self, operation: &Operation) -> Result<(), String> {
        let path = operation.path().map_err(|e| format!("replace operation failed to decode path: {e}"))?;
        if path.is_empty() {
            let value = operation.value();
            if !value.is_object() && !value.is_array() {
                // Go prints a nil error like this.
                return Err("replace operation value must be object or array: %!w(<nil>)".to_owned());
            }
            self.document = value;
            return Ok(());
        }
        let mut target = self.find(path).ok_or_else(|| {
            format!("replace operation does not apply: doc is missing path: {path}: {MISSING}")
        })?;
        let value = operation.value();
        target.admit(&value).map_err(|e| format!("error in replace for path: '{path}': {e}"))?;
        target
            .set(value)
            .map_err(|_| format!("replace operation does not apply: doc is missing key: {path}: {MISSING}"))
    }

    fn r#move(&mut self, operation: &Operation) -> Result<(), String> {
        let from = operation.from().map_err(|e| format!("move operation failed to decode from: {e}"))?;
        let mut source = self.find(from).ok_or_else(|| {
            format!("move operation does not apply: doc is missing from path: {from}: {MISSING}")
        })?;
        let value = source.remove().map_err(|e| format!("error in move for path: '{}': {e}", source.key))?;
        let path = operation.path().map_err(|e| format!("move operation failed to decode path: {e}"))?;
        let mut target = self.find(path).ok_or_else(|| {
            format!("move operation does not apply: doc is missing destination path: {path}: {MISSING}")
        })?;
        target.add(value).map_err(|e| format!("error in move for path: '{path}': {e}"))
    }

    fn copy(&mut self, operation: &Operation) -> Result<(), String> {
        let from = operation.from().map_err(|e| format!("copy operation failed to decode from: {e}"))?;
        let source = self.find(from).ok_or_else(|| {
            format!("copy operation does not apply: doc is missing from path: {from}: {MISSING}")
        })?;
        let value = source.get().map_err(|e| format!("error in copy for from: '{from}': {e}"))?.cloned();
        let path =
            operation.path().map_err(|_| format!("copy operation failed to decode path: {MISSING}"))?;
        // A missing value is copied as `null`, which adds nothing to the size.
        self.copied += value.as_ref().map_or(0, |value| json::to_vec(value).len());
        let copied = self.copied;
        let mut target = self.find(path).ok_or_else(|| {
            format!("copy operation does not apply: doc is missing destination path: {path}: {MISSING}")
        })?;
        if copied > MAX_COPIED_BYTES {
            return Err(format!(
                "Unable to complete the copy, the accumulated size increase of copy is {copied}, exceeding the \
                 limit {MAX_COPIED_BYTES}"
            ));
        }
        let value = value.unwrap_or_default();
        target.add(value).map_err(|e| format!("error while adding value during copy: {e}"))
    }

    fn test(&mut self, operation: &Operation) -> Result<(), JsonPatchError> {
        let failed = JsonPatchError::Apply;
        let path =
            operation.path().map_err(|e| failed(format!("test operation failed to decode path: {e}")))?;
        let actual = if path.is_empty() {
            Some(&self.document)
        } else {
            let target = self.find(path).ok_or_else(|| {
                failed(format!("test operation does not apply: is missing path: {path}: {MISSING}"))
            })?;
            target.get().map_err(|e| failed(format!("error in test for path: '{path}': {e}")))?
        };
        // `test` treats a missing value as `null`.
        let absent = Value::Null;
        if equal(actual.unwrap_or(&absent), operation.value.as_ref().unwrap_or(&absent)) {
            return Ok(());
        }
        Err(JsonPatchError::TestFailed { path: path.to_owned() })
    }

    /// Finds the container of the last path part. The text before the first slash is ignored, but there must
    /// be a slash.
    fn find(&mut self, path: &str) -> Option<Target<'_>> {
        let (parents, key) = path.rsplit_once('/')?;
        let (mut container, mut depth) = (&mut self.document, 1);
        for part in parents.split('/').skip(1) {
            depth += 1;
            container = match container {
                Value::Object(fields) => fields.get_mut(&*unescape(part))?,
                Value::Array(items) => {
                    let index = existing_index(&unescape(part), items.len()).ok()?;
                    &mut items[index]
                }
                _ => return None,
            };
        }
        let is_container = container.is_object() || container.is_array();
        is_container.then(|| Target {
            container,
            depth,
            key: unescape(key).into_owned(),
            steps: &mut self.steps,
        })
    }
}

/// A position in a container. It may be vacant.
struct Target<'a> {
    container: &'a mut Value,
    /// The depth of the container; the root has depth 1.
    depth: usize,
    key: String,
    steps: &'a mut usize,
}

impl<'a> Target<'a> {
    fn get(self) -> Result<Option<&'a Value>, String> {
        match self.container {
            Value::Object(fields) => Ok(fields.get(&self.key)),
            Value::Array(items) => existing_index(&self.key, items.len()).map(|index| items.get(index)),
            _ => Ok(None),
        }
    }

    /// Checks that adding a value here does not exceed the depth limit.
    fn admit(&mut self, value: &Value) -> Result<(), String> {
        let mut steps = 0;
        let depth = self.depth + depth(value, &mut steps);
        self.spend(steps)?;
        // The parser's error text.
        if depth <= json::MAX_DEPTH { Ok(()) } else { Err("exceeded max depth".to_owned()) }
    }

    fn spend(&mut self, steps: usize) -> Result<(), String> {
        *self.steps += steps;
        if *self.steps <= MAX_STEPS {
            return Ok(());
        }
        Err(format!("the patch moves more than {MAX_STEPS} values"))
    }

    fn set(&mut self, value: Value) -> Result<(), String> {
        match self.container {
            Value::Array(items) => {
                let index = existing_index(&self.key, items.len())?;
                items[index] = value;
                Ok(())
            }
            _ => self.put(value),
        }
    }

    fn add(&mut self, value: Value) -> Result<(), String> {
        self.admit(&value)?;
        self.put(value)
    }

    fn put(&mut self, value: Value) -> Result<(), String> {
        match self.container {
            Value::Object(fields) => {
                fields.insert(self.key.clone(), value);
            }
            Value::Array(items) if self.key == "-" => items.push(value),
            Value::Array(items) => {
                let index = parse_index(&self.key)
                    .map_err(|e| format!("value was not a proper array index: '{}': {e}", self.key))?;
                let (index, len) = (position(index, items.len() + 1)?, items.len());
                items.insert(index, value);
                self.spend(len - index)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn remove(&mut self) -> Result<Value, String> {
        match self.container {
            Value::Object(fields) => fields
                .remove(&self.key)
                .ok_or_else(|| format!("Unable to remove nonexistent key: {}: {MISSING}", self.key)),
            Value::Array(items) => {
                let index = existing_index(&self.key, items.len())?;
                let removed = items.remove(index);
                let moved = items.len() - index;
                self.spend(moved)?;
                Ok(removed)
            }
            _ => Ok(Value::Null),
        }
    }
}

/// The nesting depth of a value. Adds the number of values to `values`. Recurses at most as deep as a
/// document or patch.
fn depth(value: &Value, values: &mut usize) -> usize {
    *values += 1;
    let below = match value {
        Value::Array(items) => items.iter().map(|item| depth(item, values)).max(),
        Value::Object(fields) => fields.values().map(|field| depth(field, values)).max(),
        _ => return 0,
    };
    1 + below.unwrap_or_default()
}

fn existing_index(key: &str, len: usize) -> Result<usize, String> {
    position(parse_index(key)?, len)
}

fn parse_index(key: &str) -> Result<i64, String> {
    key.parse().map_err(|error: std::num::ParseIntError| {
        let problem = match error.kind() {
            IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        format!("strconv.Atoi: parsing {}: {problem}", quote(key))
    })
}

/// The position of an index in a list of `len` items. Negative indices count from the end.
fn position(index: i64, len: usize) -> Result<usize, String> {
    let counted =
        if index < 0 { i64::try_from(len).ok().and_then(|len| index.checked_add(len)) } else { Some(index) };
    let position = counted.and_then(|index| usize::try_from(index).ok()).filter(|&position| position < len);
    position.ok_or_else(|| format!("Unable to access invalid index: {index}: invalid index referenced"))
}

/// Unescapes a path part: `~1` is a slash and `~0` a tilde.
fn unescape(part: &str) -> Cow<'_, str> {
    if !part.contains('~') {
        return Cow::Borrowed(part);
    }
    let mut out = String::with_capacity(part.len());
    let mut rest = part;
    while let Some((before, after)) = rest.split_once('~') {
        out.push_str(before);
        rest = if let Some(after) = after.strip_prefix('1') {
            out.push('/');
            after
        } else {
            out.push('~');
            after.strip_prefix('0').unwrap_or(after)
        };
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Equality of values where `1` equals `1.0`.
fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            a == b || (a.is_f64() || b.is_f64()) && a.as_f64() == b.as_f64()
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| equal(a, b)))
        }
        _ => a == b,
    }
}
