//! Lists: from the input, or created by an expression.
//!
//! A list from the input keeps its `x-kubernetes-list-type`. Lists of type `set` and `map` compare equal in
//! any order, and `+` merges them.

use std::sync::Arc;

use serde_json::Value as Json;

use super::{Evaluated, Value};
use crate::data;
use crate::error::EvalError;
use crate::schema::Schema;

/// A list.
#[derive(Debug, Clone)]
pub struct List<'a> {
    items: Items<'a>,
    kind: ListKind<'a>,
}

#[derive(Debug, Clone)]
enum Items<'a> {
    Built(Arc<Vec<Value<'a>>>),
    Data(&'a [Json], Option<&'a Schema>),
}

/// The list type according to the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListKind<'a> {
    /// Created by the expression.
    Plain,
    /// Type `atomic`.
    Atomic,
    /// Type `set`: unique items, order ignored.
    Set,
    /// Type `map` with these keys.
    Map(&'a [String]),
}

impl<'a> List<'a> {
    pub(crate) fn built(items: Vec<Value<'a>>) -> Self {
        Self { items: Items::Built(Arc::new(items)), kind: ListKind::Plain }
    }

    /// A list from the input, with the schema of its items.
    pub(crate) fn data(items: &'a [Json], schema: Option<&'a Schema>, kind: ListKind<'a>) -> Self {
        Self { items: Items::Data(items, schema), kind }
    }

    /// Whether the list is from the input and follows its list type.
    pub(crate) fn is_data(&self) -> bool {
        self.kind != ListKind::Plain
    }

    /// The number of items.
    pub fn len(&self) -> usize {
        match &self.items {
            Items::Built(items) => items.len(),
            Items::Data(items, _) => items.len(),
        }
    }

    /// Whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The item at `index`, if there is one.
    pub(crate) fn get(&self, index: usize) -> Option<Evaluated<'a>> {
        match &self.items {
            Items::Built(items) => items.get(index).cloned().map(Ok),
            Items::Data(items, schema) => items.get(index).map(|item| data::value(item, *schema)),
        }
    }

    /// The items, if an expression created the list.
    pub(crate) fn created(&self) -> &[Value<'a>] {
        match &self.items {
            Items::Built(items) => items,
            Items::Data(..) => &[],
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Evaluated<'a>> + '_ {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// All items, or the first error.
    pub(crate) fn values(&self) -> Result<Vec<Value<'a>>, EvalError> {
        self.iter().collect()
    }

    pub(crate) fn contains(&self, value: &Value<'_>) -> Result<bool, EvalError> {
        let mut failed = None;
        for item in self.iter() {
            match item.and_then(|item| item.equals(value)) {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(false), Err)
    }

    /// `self + other`.
    pub(crate) fn add(mut self, other: &List<'a>) -> Result<List<'a>, EvalError> {
        let kind = self.kind;
        let mut items = match &mut self.items {
            // The accumulator of a comprehension is not shared: appending in place keeps comprehensions
            // linear.
            Items::Built(items) => {
                Arc::try_unwrap(std::mem::take(items)).unwrap_or_else(|shared| (*shared).clone())
            }
            Items::Data(..) => self.values()?,
        };
        for item in other.iter() {
            let item = item?;
            match kind {
                ListKind::Plain | ListKind::Atomic => items.push(item),
                ListKind::Set => {
                    if !contains(&items, &item)? {
                        items.push(item);
                    }
                }
                ListKind::Map(keys) => match position_by_keys(&items, &item, keys)? {
                    Some(at) => items[at] = item,
                    None => items.push(item),
                },
            }
        }
        Ok(List { items: Items::Built(Arc::new(items)), kind })
    }

    pub(crate) fn equals(&self, other: &List<'_>) -> Result<bool, EvalError> {
        if self.len() != other.len() {
            return Ok(false);
        }
        if let ListKind::Set | ListKind::Map(_) = self.kind {
            let mine = self.values()?;
            for item in other.iter() {
                let item = item?;
                let found = match self.kind {
                    ListKind::Map(keys) => match position_by_keys(&mine, &item, keys)? {
                        Some(at) => mine[at].equals(&item)?,
                        None => false,
                    },
                    _ => contains(&mine, &item)?,
                };
                if !found {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        for (mine, theirs) in self.iter().zip(other.iter()) {
            if !mine?.equals(&theirs?)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn contains(items: &[Value<'_>], item: &Value<'_>) -> Result<bool, EvalError> {
    for other in items {
        if other.equals(item)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The position of the last item with the same values for all `keys`.
fn position_by_keys(
    items: &[Value<'_>],
    item: &Value<'_>,
    keys: &[String],
) -> Result<Option<usize>, EvalError> {
    let wanted = key_of(item, keys)?;
    for (at, other) in items.iter().enumerate().rev() {
        let found = key_of(other, keys)?;
        let mut all_equal = true;
        for pair in wanted.iter().zip(&found) {
            all_equal = all_equal
                && match pair {
                    (Some(a), Some(b)) => a.equals(b)?,
                    (None, None) => true,
                    _ => false,
                };
        }
        if all_equal {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

fn key_of<'a>(item: &Value<'a>, keys: &[String]) -> Result<Vec<Option<Value<'a>>>, EvalError> {
    let Value::Map(map) = item else { return Err(EvalError::no_overload()) };
    keys.iter().map(|key| map.property(key).transpose()).collect()
}
