//! Equality and ordering of values.
//!
//! Numbers of different types are equal if their values are. Kubernetes' data types are stricter than CEL's:
//! comparing a list of the input with a non-list is an error, not `false`.

use std::cmp::Ordering;

use super::{Extension, Value};
use crate::error::EvalError;

impl Value<'_> {
    /// `self == other`.
    pub(crate) fn equals(&self, other: &Value<'_>) -> Result<bool, EvalError> {
        Ok(match (self, other) {
            (Self::Null, Value::Null) => true,
            (Self::Null, _) | (_, Value::Null) => false,
            (Self::Bool(a), Value::Bool(b)) => a == b,
            (
                Self::Int(_) | Self::Uint(_) | Self::Double(_),
                Value::Int(_) | Value::Uint(_) | Value::Double(_),
            ) => compare_numbers(self, other) == Some(Ordering::Equal),
            (Self::String(a), Value::String(b)) | (Self::Type(a), Value::Type(b)) => a == b,
            (Self::Bytes(a), Value::Bytes(b)) => a == b,
            (Self::Duration(a), Value::Duration(b)) => a == b,
            (Self::Timestamp(a), Value::Timestamp(b)) => a == b,
            (Self::List(a), Value::List(b)) => return a.equals(b),
            (Self::Map(a), Value::Map(b)) => return a.equals(b),
            (Self::List(list), _) if list.is_data() => return Err(EvalError::no_overload()),
            (Self::Map(map), _) if map.is_data() => return Err(EvalError::no_overload()),
            (Self::Optional(a), Value::Optional(b)) => match (a, b) {
                (None, None) => true,
                (Some(a), Some(b)) => return a.equals(b),
                _ => false,
            },
            (Self::Extension(a), Value::Extension(b)) => return a.equals(b),
            (Self::Extension(Extension::Ip(_) | Extension::Cidr(..)), _) => {
                return Err(EvalError::no_overload());
            }
            (Self::Unknown(a), Value::Unknown(b)) => a == b,
            _ => false,
        })
    }

    /// Compares two values. Fails if their types have no order.
    pub(crate) fn order(&self, other: &Value<'_>) -> Result<Ordering, EvalError> {
        Ok(match (self, other) {
            (Self::Bool(a), Value::Bool(b)) => a.cmp(b),
            (
                Self::Int(_) | Self::Uint(_) | Self::Double(_),
                Value::Int(_) | Value::Uint(_) | Value::Double(_),
            ) => {
                compare_numbers(self, other).ok_or_else(|| EvalError::new("NaN values cannot be ordered"))?
            }
            (Self::String(a), Value::String(b)) => a.cmp(b),
            (Self::Bytes(a), Value::Bytes(b)) => a.cmp(b),
            (Self::Duration(a), Value::Duration(b)) => a.cmp(b),
            (Self::Timestamp(a), Value::Timestamp(b)) => a.cmp(b),
            _ => return Err(EvalError::no_overload()),
        })
    }

    /// Whether values of this type have an order.
    pub(crate) fn is_ordered(&self) -> bool {
        matches!(
            self,
            Self::Bool(_)
                | Self::Int(_)
                | Self::Uint(_)
                | Self::Double(_)
                | Self::String(_)
                | Self::Bytes(_)
                | Self::Duration(_)
                | Self::Timestamp(_)
        )
    }
}

impl Extension {
    fn equals(&self, other: &Self) -> Result<bool, EvalError> {
        Ok(match (self, other) {
            (Self::Quantity(a), Self::Quantity(b)) => a == b,
            (Self::Ip(a), Self::Ip(b)) => a == b,
            (Self::Cidr(a, a_bits), Self::Cidr(b, b_bits)) => a == b && a_bits == b_bits,
            (Self::Url(a), Self::Url(b)) => a.text() == b.text(),
            (Self::Semver(a), Self::Semver(b)) => a.cmp(b) == Ordering::Equal,
            (Self::Format(a), Self::Format(b)) => a.name == b.name,
            _ => return Err(EvalError::no_overload()),
        })
    }
}

/// Compares two numbers; `None` if one is NaN.
fn compare_numbers(a: &Value<'_>, b: &Value<'_>) -> Option<Ordering> {
    match (a, b) {
        (Value::Double(a), Value::Double(b)) => a.partial_cmp(b),
        (Value::Double(a), b) => compare_double(*a, whole(b)?),
        (a, Value::Double(b)) => compare_double(*b, whole(a)?).map(Ordering::reverse),
        (a, b) => Some(whole(a)?.cmp(&whole(b)?)),
    }
}

#[expect(clippy::cast_precision_loss, reason = "cel-go compares integers with doubles as doubles")]
fn compare_double(double: f64, whole: i128) -> Option<Ordering> {
    double.partial_cmp(&(whole as f64))
}

fn whole(value: &Value<'_>) -> Option<i128> {
    match value {
        Value::Int(value) => Some(i128::from(*value)),
        Value::Uint(value) => Some(i128::from(*value)),
        _ => None,
    }
}
