//! Evaluation of a JSONPath on an object.

use std::cmp::Ordering;

use serde_json::Value;

use super::{Node, Slice};

/// Why the evaluation failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FindError {
    /// An index or filter on a value that is not a list.
    #[error("not an array")]
    NotArray,
    /// An index out of range.
    #[error("array index out of bounds: index {index}, length {length}")]
    OutOfBounds {
        /// The index.
        index: i64,
        /// The length of the list.
        length: usize,
    },
    /// A slice that ends before it starts.
    #[error("starting index {from} is greater than ending index {to}")]
    Backwards {
        /// The start of the slice.
        from: i64,
        /// The end of the slice.
        to: i64,
    },
    /// A slice whose step is not positive.
    #[error("step must be > 0")]
    Step,
    /// A filter operand with several values.
    #[error("can only compare one element at a time")]
    Several,
    /// A filter over values that cannot be compared.
    #[error("incompatible types for comparison")]
    Incomparable,
    /// An unknown operator.
    #[error("unrecognized filter operator {0}")]
    Operator(String),
    /// An unknown identifier.
    #[error("unrecognized identifier {0}")]
    Identifier(String),
}

/// A value of the object, or a literal of the path.
#[derive(Debug, Clone)]
pub(super) enum Found<'a> {
    Object(&'a Value),
    Path(Value),
}

impl<'a> Found<'a> {
    pub(super) fn in_object(self) -> Option<&'a Value> {
        match self {
            Self::Object(value) => Some(value),
            Self::Path(_) => None,
        }
    }

    fn get(&self) -> &Value {
        match self {
            Self::Object(value) => value,
            Self::Path(value) => value,
        }
    }
}

pub(super) fn find<'a>(nodes: &[Node], object: &'a Value) -> Result<Vec<Found<'a>>, FindError> {
    nodes.iter().try_fold(vec![Found::Object(object)], step)
}

fn step<'a>(input: Vec<Found<'a>>, node: &Node) -> Result<Vec<Found<'a>>, FindError> {
    let literal = |value: Value| input.iter().map(|_| Found::Path(value.clone())).collect();
    Ok(match node {
        Node::Text(text) => vec![Found::Path(text.as_str().into())],
        Node::Integer(number) => literal((*number).into()),
        Node::Number(number) => literal((*number).into()),
        Node::Bool(flag) => literal((*flag).into()),
        Node::Identifier(name) => return Err(FindError::Identifier(name.clone())),
        Node::Field(name) => values(input).filter_map(|value| value.get(name)).map(Found::Object).collect(),
        Node::Wildcard => values(input).flat_map(children).map(Found::Object).collect(),
        Node::Recursive => {
            let mut found = Vec::new();
            for value in values(input) {
                descend(value, &mut found);
            }
            found
        }
        Node::Slice(slice) => {
            let mut found = Vec::new();
            for value in values(input).filter(|value| !value.is_null()) {
                let items = value.as_array().ok_or(FindError::NotArray)?;
                found.extend(items_of(items, *slice)?.map(Found::Object));
            }
            found
        }
        Node::Union(paths) => {
            let mut found = Vec::new();
            for path in paths {
                found.extend(path.iter().try_fold(input.clone(), step)?);
            }
            found
        }
        Node::Filter { left, operator, right } => {
            let mut found = Vec::new();
            for value in values(input) {
                for item in value.as_array().ok_or(FindError::NotArray)? {
                    if passes(item, left, operator, right)? {
                        found.push(Found::Object(item));
                    }
                }
            }
            found
        }
    })
}

/// The values of the object, without literals.
fn values(input: Vec<Found<'_>>) -> impl Iterator<Item = &Value> {
    input.into_iter().filter_map(Found::in_object)
}

fn children(value: &Value) -> Vec<&Value> {
    match value {
        Value::Object(members) => members.values().collect(),
        Value::Array(items) => items.iter().collect(),
        _ => Vec::new(),
    }
}

fn descend<'a>(value: &'a Value, found: &mut Vec<Found<'a>>) {
    let children = children(value);
    if !children.is_empty() {
        found.push(Found::Object(value));
        for child in children {
            descend(child, found);
        }
    }
}

fn items_of(items: &[Value], slice: Slice) -> Result<impl Iterator<Item = &Value>, FindError> {
    let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
    let from = slice.from.unwrap_or_default();
    let from = if from < 0 { from + length } else { from };
    let to = slice.to.unwrap_or(length);
    let to = if to < 0 || to == 0 && slice.single { to + length } else { to };
    let out_of_bounds = |index| FindError::OutOfBounds { index, length: items.len() };
    let (first, last) = if from == to {
        (0, 0)
    } else {
        if !(0..length).contains(&from) {
            return Err(out_of_bounds(from));
        }
        if !(0..=length).contains(&to) {
            return Err(out_of_bounds(to - 1));
        }
        if from > to {
            return Err(FindError::Backwards { from, to });
        }
        (usize::try_from(from).unwrap_or_default(), usize::try_from(to).unwrap_or_default())
    };
    let step = slice.step.unwrap_or(1);
    let step = usize::try_from(step).ok().filter(|step| *step > 0).ok_or(FindError::Step)?;
    Ok(items[first..last].iter().step_by(step))
}

fn passes(item: &Value, left: &[Node], operator: &str, right: &[Node]) -> Result<bool, FindError> {
    let left = find(left, item);
    if operator == "exists" {
        return Ok(left.is_ok_and(|found| !found.is_empty()));
    }
    let (left, right) = (left?, find(right, item)?);
    match (left.as_slice(), right.as_slice()) {
        ([], _) | (_, []) => Ok(false),
        ([left], [right]) => compare(left.get(), operator, right.get()),
        _ => Err(FindError::Several),
    }
}

fn compare(left: &Value, operator: &str, right: &Value) -> Result<bool, FindError> {
    let is_equality = matches!(operator, "==" | "!=");
    let order = match (left, right) {
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        (Value::Bool(left), Value::Bool(right)) if is_equality => Some(left.cmp(right)),
        // Integers and floats are not comparable.
        (Value::Number(left), Value::Number(right)) => match (left.as_i64(), right.as_i64()) {
            (Some(left), Some(right)) => Some(left.cmp(&right)),
            (None, None) => left.as_f64().partial_cmp(&right.as_f64()),
            _ => None,
        },
        _ => None,
    };
    let order = order.ok_or(FindError::Incomparable)?;
    Ok(match operator {
        "==" => order == Ordering::Equal,
        "!=" => order != Ordering::Equal,
        "<" => order == Ordering::Less,
        "<=" => order != Ordering::Greater,
        ">" => order == Ordering::Greater,
        ">=" => order != Ordering::Less,
        other => return Err(FindError::Operator(other.to_owned())),
    })
}
