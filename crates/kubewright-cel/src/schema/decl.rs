//! CEL types declared by a schema, with size limits.
//!
//! The numbers must match upstream's, because they decide which rules are too expensive.

use std::collections::BTreeMap;

use super::Schema;
use crate::env::Env;
use crate::escape;
use crate::types::Type;

/// Maximum size of a request body.
pub(crate) const MAX_REQUEST_BYTES: i64 = 3 * 1024 * 1024;

const MIN_STRING: i64 = 2;
const MIN_BOOL: i64 = 4;
const MIN_NUMBER: i64 = 1;
const MIN_DURATION: i64 = 3;
const MIN_DATE_TIME: i64 = 21;
const DATE: i64 = 12;
const MAX_TIME: i64 = 32;

/// A type with the size limits of its values.
#[derive(Debug, Clone)]
pub(crate) struct DeclType {
    pub(crate) kind: DeclKind,
    /// Maximum number of characters, items or entries; 0 for scalars.
    pub(crate) max_elements: i64,
    /// Minimum size of a value as JSON.
    pub(crate) min_bytes: i64,
}

/// The kind of a type.
#[derive(Debug, Clone)]
pub(crate) enum DeclKind {
    Simple(Type),
    List(Box<DeclType>),
    Map(Box<DeclType>),
    /// Fields by their escaped names.
    Object(BTreeMap<String, DeclType>),
}

impl DeclType {
    /// The type of `schema`; `None` if CEL does not support such values.
    pub(crate) fn of(schema: &Schema) -> Option<Self> {
        if schema.int_or_string {
            let max = schema.max_length.map_or(MAX_REQUEST_BYTES - 2, characters);
            return Some(Self::simple(Type::Dyn, max, 1));
        }
        match schema.type_name.as_str() {
            "array" => {
                let item = Self::of(schema.items.as_deref()?)?;
                let fitting = (MAX_REQUEST_BYTES - 2) / (item.min_bytes + 1);
                let max_elements = schema.max_items.map_or(fitting, |max| max.max(0));
                Some(Self { kind: DeclKind::List(Box::new(item)), max_elements, min_bytes: 2 })
            }
            "object" => match &schema.additional {
                Some(values) => {
                    let value = Self::of(values)?;
                    let fitting = (MAX_REQUEST_BYTES - 2) / (value.min_bytes + 6);
                    let max_elements = schema.max_properties.map_or(fitting, |max| max.max(0));
                    Some(Self { kind: DeclKind::Map(Box::new(value)), max_elements, min_bytes: 2 })
                }
                None => Some(Self::object(schema)),
            },
            "string" => Some(Self::string(schema)),
            "boolean" => Some(Self::simple(Type::Bool, 0, MIN_BOOL)),
            "number" => Some(Self::simple(Type::Double, 0, MIN_NUMBER)),
            "integer" => Some(Self::simple(Type::Int, 0, MIN_NUMBER)),
            _ => None,
        }
    }

    fn simple(of: Type, max_elements: i64, min_bytes: i64) -> Self {
        Self { kind: DeclKind::Simple(of), max_elements, min_bytes }
    }

    fn object(schema: &Schema) -> Self {
        let mut fields = BTreeMap::new();
        let mut min_bytes = 2;
        for (name, property) in schema.visible().into_iter().flatten() {
            let Some(field) = Self::of(property) else { continue };
            if schema.required.contains(name) && !property.has_default {
                min_bytes += i64::try_from(name.len()).unwrap_or(i64::MAX / 2) + field.min_bytes + 4;
            }
            if let Some(escaped) = escape::escape(name) {
                fields.insert(escaped.into_owned(), field);
            }
        }
        Self { kind: DeclKind::Object(fields), max_elements: 0, min_bytes }
    }

    fn string(schema: &Schema) -> Self {
        let longest = MAX_REQUEST_BYTES - 2;
        match schema.format.as_str() {
            "byte" => {
                Self::simple(Type::Bytes, schema.max_length.map_or(longest, |max| max.max(0)), MIN_STRING)
            }
            "duration" => Self::simple(Type::Duration, MAX_TIME, MIN_DURATION),
            "date" => Self::simple(Type::Timestamp, DATE, DATE),
            "date-time" => Self::simple(Type::Timestamp, MAX_TIME, MIN_DATE_TIME),
            _ => {
                let of_enum = schema.longest_enum.and_then(|length| i64::try_from(length).ok());
                let max = schema.max_length.map(characters).or(of_enum).unwrap_or(longest);
                Self::simple(Type::String, max, MIN_STRING)
            }
        }
    }

    /// The maximum number of values of this type in one request.
    pub(crate) fn max_cardinality(&self) -> u64 {
        u64::try_from(MAX_REQUEST_BYTES / (self.min_bytes + 1)).unwrap_or(0)
    }

    /// Returns the CEL type. Declares object types in `env` with names that start with `name`.
    pub(crate) fn declare(&self, name: &str, env: &mut Env) -> Type {
        match &self.kind {
            DeclKind::Simple(of) => of.clone(),
            DeclKind::List(item) => Type::list(item.declare(&format!("{name}.@idx"), env)),
            DeclKind::Map(value) => Type::map(Type::String, value.declare(&format!("{name}.@elem"), env)),
            DeclKind::Object(fields) => {
                let mut declared = Vec::new();
                for (field, of) in fields {
                    declared.push((field.clone(), of.declare(&format!("{name}.{field}"), env)));
                }
                *env = std::mem::take(env).with_object(name, declared);
                Type::object(name)
            }
        }
    }

    /// The type at a path of fields, `@items`, `@keys` and `@values`.
    pub(crate) fn at<'a>(&'a self, path: &[&str]) -> Option<&'a DeclType> {
        static KEY: DeclType =
            DeclType { kind: DeclKind::Simple(Type::String), max_elements: 0, min_bytes: MIN_STRING };
        let Some((step, rest)) = path.split_first() else { return Some(self) };
        let next = match (&self.kind, *step) {
            (DeclKind::List(inner) | DeclKind::Map(inner), "@items" | "@values") => inner,
            (DeclKind::Map(_), "@keys") => &KEY,
            (DeclKind::Object(fields), field) => fields.get(field)?,
            _ => return None,
        };
        next.at(rest)
    }
}

/// Limit in bytes for a `maxLength` in characters: a character takes up to four bytes.
fn characters(max: i64) -> i64 {
    max.max(0).saturating_mul(4)
}
