//! Maps and objects: from the input, or created by an expression.
//!
//! Objects from the input follow their schema: undeclared fields cannot be selected, fields with the value
//! `null` are absent, and field names are escaped.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map as JsonMap, Value as Json};

use super::{Evaluated, Value};
use crate::data;
use crate::error::EvalError;
use crate::escape;
use crate::schema::Schema;

/// A map or an object.
#[derive(Debug, Clone)]
pub struct Map<'a>(Entries<'a>);

#[derive(Debug, Clone)]
enum Entries<'a> {
    Built(Arc<Built<'a>>),
    Data(&'a JsonMap<String, Json>, Option<&'a Schema>),
}

/// Entries in insertion order.
#[derive(Debug, Clone, Default)]
struct Built<'a> {
    /// The type name of an object that an expression constructed.
    type_name: Option<&'a str>,
    entries: Vec<(Value<'a>, Value<'a>)>,
    index: HashMap<Key, usize>,
}

/// Lookup key. Numbers of different types with the same value are the same key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Bool(bool),
    Number(i128),
    String(String),
}

impl Key {
    fn of(value: &Value<'_>) -> Option<Self> {
        match value {
            Value::Bool(value) => Some(Self::Bool(*value)),
            Value::Int(value) => Some(Self::Number(i128::from(*value))),
            Value::Uint(value) => Some(Self::Number(i128::from(*value))),
            #[expect(clippy::cast_possible_truncation, reason = "the value is whole and within 65 bits")]
            Value::Double(value) if value.fract() == 0.0 && value.abs() < 2f64.powi(64) => {
                Some(Self::Number(*value as i128))
            }
            Value::String(text) => Some(Self::String(text.clone().into_owned())),
            _ => None,
        }
    }
}

impl<'a> Map<'a> {
    /// Creates a map. Fails on duplicate keys.
    pub(crate) fn built(entries: Vec<(Value<'a>, Value<'a>)>) -> Result<Self, EvalError> {
        let mut map = Self(Entries::Built(Arc::default()));
        for (key, value) in entries {
            map = map.insert(key, value)?;
        }
        Ok(map)
    }

    /// Creates an object of a type that mutation expressions construct, such as `Object.spec`.
    pub(crate) fn object(type_name: &'a str, fields: Vec<(Value<'a>, Value<'a>)>) -> Result<Self, EvalError> {
        let mut object = Self::built(fields)?;
        if let Entries::Built(built) = &mut object.0 {
            Arc::make_mut(built).type_name = Some(type_name);
        }
        Ok(object)
    }

    /// The type name of an object that an expression constructed.
    pub(crate) fn type_name(&self) -> Option<&'a str> {
        match &self.0 {
            Entries::Built(built) => built.type_name,
            Entries::Data(..) => None,
        }
    }

    /// The entries, if an expression created the map.
    pub(crate) fn created(&self) -> &[(Value<'a>, Value<'a>)] {
        match &self.0 {
            Entries::Built(built) => &built.entries,
            Entries::Data(..) => &[],
        }
    }

    /// A map or object from the input, with its schema.
    pub(crate) fn data(entries: &'a JsonMap<String, Json>, schema: Option<&'a Schema>) -> Self {
        Self(Entries::Data(entries, schema))
    }

    pub(crate) fn is_data(&self) -> bool {
        matches!(self.0, Entries::Data(_, Some(_)))
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        match &self.0 {
            Entries::Built(built) => built.entries.len(),
            Entries::Data(entries, _) => entries.len(),
        }
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value at `key`. Fails if the key has an unsupported type.
    pub(crate) fn find(&self, key: &Value<'_>) -> Result<Option<Value<'a>>, EvalError> {
        match (&self.0, key) {
            (Entries::Built(built), key) => {
                let at = Key::of(key).and_then(|key| built.index.get(&key));
                Ok(at.map(|at| built.entries[*at].1.clone()))
            }
            (Entries::Data(..), Value::String(name)) => self.field(name).transpose(),
            (Entries::Data(_, Some(_)), _) => Err(EvalError::no_overload()),
            (Entries::Data(_, None), _) => Ok(None),
        }
    }

    /// The value of a field by its escaped name.
    pub(crate) fn field(&self, name: &str) -> Option<Evaluated<'a>> {
        match &self.0 {
            Entries::Built(_) => self.find(&Value::string(name)).transpose(),
            Entries::Data(_, Some(schema)) if schema.visible().is_some() => {
                self.property(&escape::unescape(name)?)
            }
            Entries::Data(..) => self.property(name),
        }
    }

    /// The value of a property by its unescaped name.
    pub(crate) fn property(&self, name: &str) -> Option<Evaluated<'a>> {
        let (entries, schema) = match &self.0 {
            Entries::Built(_) => return self.find(&Value::string(name)).transpose(),
            Entries::Data(entries, schema) => (entries, schema),
        };
        let found = entries.get(name)?;
        let Some(schema) = schema else { return Some(data::value(found, None)) };
        if schema.visible().is_some() && found.is_null() {
            return None;
        }
        Some(data::value(found, Some(schema.property(name)?)))
    }

    /// The keys that a comprehension iterates over.
    pub(crate) fn keys(&self) -> Vec<Value<'a>> {
        match &self.0 {
            Entries::Built(built) => built.entries.iter().map(|(key, _)| key.clone()).collect(),
            Entries::Data(entries, schema) => {
                let visible = entries.keys().filter(|name| schema.is_none_or(|s| s.property(name).is_some()));
                let is_object = schema.is_some_and(|schema| schema.visible().is_some());
                visible
                    .map(|name| match escape::escape(name).filter(|_| is_object) {
                        Some(Cow::Owned(escaped)) => Value::string(escaped),
                        _ => Value::string(name.as_str()),
                    })
                    .collect()
            }
        }
    }

    /// Adds an entry. Fails if the key exists.
    pub(crate) fn insert(self, key: Value<'a>, value: Value<'a>) -> Result<Self, EvalError> {
        let Some(name) = Key::of(&key) else {
            return Err(EvalError::new(format!("unsupported key type: {}", key.type_name())));
        };
        let mut built = match self.0 {
            Entries::Built(built) => Arc::try_unwrap(built).unwrap_or_else(|shared| (*shared).clone()),
            Entries::Data(..) => Built::default(),
        };
        let at = built.entries.len();
        if built.index.insert(name, at).is_some() {
            return Err(EvalError::new(format!("insert failed: key {} already exists", key.shown())));
        }
        built.entries.push((key, value));
        Ok(Self(Entries::Built(Arc::new(built))))
    }

    pub(crate) fn equals(&self, other: &Map<'_>) -> Result<bool, EvalError> {
        if self.len() != other.len() || self.type_name() != other.type_name() {
            return Ok(false);
        }
        if let (Entries::Data(mine, Some(schema)), Entries::Data(theirs, _)) = (&self.0, &other.0) {
            return equal_objects(mine, schema, theirs, self, other);
        }
        for key in self.keys() {
            let (mine, theirs) = (self.find(&key)?, other.find(&key)?);
            let is_equal = match (mine, theirs) {
                (Some(mine), Some(theirs)) => mine.equals(&theirs)?,
                (None, None) => true,
                _ => false,
            };
            if !is_equal {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Compares declared fields according to their schema and others as untyped data. As upstream, ignores fields
/// that only one side has; the caller compares the number of fields first.
fn equal_objects(
    mine: &JsonMap<String, Json>,
    schema: &Schema,
    theirs: &JsonMap<String, Json>,
    a: &Map<'_>,
    b: &Map<'_>,
) -> Result<bool, EvalError> {
    for (name, value) in mine {
        let is_equal = if schema.property(name).is_some() {
            match (a.property(name).transpose()?, b.property(name).transpose()?) {
                (Some(a), Some(b)) => a.equals(&b)?,
                (None, None) => true,
                _ => false,
            }
        } else {
            theirs.get(name).is_none_or(|other| value == other)
        };
        if !is_equal {
            return Ok(false);
        }
    }
    Ok(true)
}
