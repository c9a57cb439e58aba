//! Types of expressions: formatting and assignability.
//!
//! Owns unification: [`Mapping`] records the substitutions of type parameters. Follows cel-go's checker,
//! including its leniency (`dyn` is assignable to everything, `null` to messages, timestamps, durations and
//! opaque types).

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// The type of an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Type {
    /// Any type; checked at run time.
    Dyn,
    /// The type of `null`.
    Null,
    /// `true` or `false`.
    Bool,
    /// A signed 64-bit integer.
    Int,
    /// An unsigned 64-bit integer.
    Uint,
    /// A 64-bit floating-point number.
    Double,
    /// A Unicode string.
    String,
    /// A sequence of bytes.
    Bytes,
    /// A duration.
    Duration,
    /// A timestamp.
    Timestamp,
    /// A list with items of one type.
    List(Box<Type>),
    /// A map with keys and values of one type each.
    Map(Box<Type>, Box<Type>),
    /// An object type with declared fields, by name.
    Object(Arc<str>),
    /// An opaque type of a library, with type parameters.
    Opaque(Arc<str>, Vec<Type>),
    /// The type of a type.
    Type(Option<Box<Type>>),
    /// A type parameter of a function signature.
    Param(Arc<str>),
    /// The type of an expression with a reported error.
    Error,
}

/// The name of the optional type.
const OPTIONAL: &str = "optional_type";

impl Type {
    /// A list of `item`.
    pub fn list(item: Type) -> Self {
        Self::List(Box::new(item))
    }

    /// A map from `key` to `value`.
    pub fn map(key: Type, value: Type) -> Self {
        Self::Map(Box::new(key), Box::new(value))
    }

    /// An object type.
    pub fn object(name: &str) -> Self {
        Self::Object(Arc::from(name))
    }

    /// An optional value.
    pub fn optional(value: Type) -> Self {
        Self::Opaque(Arc::from(OPTIONAL), vec![value])
    }

    /// The wrapped type of an optional type.
    pub(crate) fn optional_value(&self) -> Option<&Type> {
        match self {
            Self::Opaque(name, params) if &**name == OPTIONAL => params.first(),
            _ => None,
        }
    }

    pub(crate) fn is_dyn(&self) -> bool {
        matches!(self, Self::Dyn)
    }

    pub(crate) fn is_dyn_or_error(&self) -> bool {
        matches!(self, Self::Dyn | Self::Error)
    }

    /// The type name that `type()` returns, and its identifier in expressions.
    pub(crate) fn runtime_name(&self) -> &str {
        match self {
            Self::Dyn => "dyn",
            Self::Null => "null_type",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Uint => "uint",
            Self::Double => "double",
            Self::String => "string",
            Self::Bytes => "bytes",
            Self::Duration => "google.protobuf.Duration",
            Self::Timestamp => "google.protobuf.Timestamp",
            Self::List(_) => "list",
            Self::Map(..) => "map",
            Self::Object(name) | Self::Opaque(name, _) | Self::Param(name) => name,
            Self::Type(_) => "type",
            Self::Error => "error",
        }
    }

    /// The type parameters.
    pub(crate) fn params(&self) -> Vec<&Type> {
        match self {
            Self::List(item) => vec![item],
            Self::Map(key, value) => vec![key, value],
            Self::Opaque(_, params) => params.iter().collect(),
            Self::Type(Some(of)) => vec![of],
            _ => Vec::new(),
        }
    }

    /// Applies `change` to each type parameter.
    fn with_params(&self, mut change: impl FnMut(&Type) -> Type) -> Type {
        match self {
            Self::List(item) => Self::list(change(item)),
            Self::Map(key, value) => Self::map(change(key), change(value)),
            Self::Opaque(name, params) => Self::Opaque(name.clone(), params.iter().map(change).collect()),
            Self::Type(Some(of)) => Self::Type(Some(Box::new(change(of)))),
            other => other.clone(),
        }
    }

    /// Replaces type parameter names.
    pub(crate) fn renamed(&self, names: &HashMap<Arc<str>, Type>) -> Type {
        match self {
            Self::Param(name) => names.get(name).cloned().unwrap_or_else(|| self.clone()),
            other => other.with_params(|param| param.renamed(names)),
        }
    }

    /// Whether both are the same kind of type; `dyn` matches every type.
    pub(crate) fn is_equivalent(&self, other: &Type) -> bool {
        if matches!(self, Self::Dyn | Self::Param(_)) || matches!(other, Self::Dyn | Self::Param(_)) {
            return matches!((self, other), (Self::Dyn, Self::Dyn) | (Self::Param(_), Self::Param(_)));
        }
        let (mine, theirs) = (self.params(), other.params());
        self.runtime_name() == other.runtime_name()
            && mine.len() == theirs.len()
            && mine.iter().zip(theirs).all(|(a, b)| a.is_equivalent(b))
    }

    fn is_nullable(&self) -> bool {
        matches!(self, Self::Null | Self::Opaque(..) | Self::Object(_) | Self::Duration | Self::Timestamp)
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Null => "null",
            Self::Duration => "duration",
            Self::Timestamp => "timestamp",
            Self::Error => "!error!",
            other => other.runtime_name(),
        };
        f.write_str(name)?;
        for (i, param) in self.params().iter().enumerate() {
            write!(f, "{}{param}", if i == 0 { "(" } else { ", " })?;
        }
        if self.params().is_empty() { Ok(()) } else { f.write_str(")") }
    }
}

/// The substitutions of type parameters.
#[derive(Debug, Clone, Default)]
pub(crate) struct Mapping(HashMap<Arc<str>, Type>);

impl Mapping {
    /// Whether a value of type `from` is assignable to `to`. Records the required substitutions on success.
    pub(crate) fn is_assignable(&mut self, from: &Type, to: &Type) -> bool {
        let mut tried = self.clone();
        let fits = tried.assign(from, to);
        if fits {
            *self = tried;
        }
        fits
    }

    /// Like [`Self::is_assignable`], for several types. Records substitutions only if all are assignable.
    pub(crate) fn are_assignable(&mut self, from: &[Type], to: &[Type]) -> bool {
        let mut tried = self.clone();
        let fits = from.len() == to.len() && from.iter().zip(to).all(|(from, to)| tried.assign(from, to));
        if fits {
            *self = tried;
        }
        fits
    }

    /// Applies the substitutions. With `free_to_dyn`, unbound parameters become `dyn`.
    pub(crate) fn substitute(&self, of: &Type, free_to_dyn: bool) -> Type {
        match of {
            Type::Param(name) => match self.0.get(name) {
                Some(found) => self.substitute(found, free_to_dyn),
                None if free_to_dyn => Type::Dyn,
                None => of.clone(),
            },
            other => other.with_params(|param| self.substitute(param, free_to_dyn)),
        }
    }

    fn assign(&mut self, from: &Type, to: &Type) -> bool {
        if let Type::Param(name) = to {
            match self.bind(name, from) {
                Bound::Fits => return true,
                Bound::Known => return false,
                Bound::Occurs => {}
            }
        }
        if let Type::Param(name) = from {
            return matches!(self.bind(name, to), Bound::Fits);
        }
        if from.is_dyn_or_error() || to.is_dyn_or_error() {
            return true;
        }
        match (from, to) {
            (Type::Null, other) | (other, Type::Null) => other.is_nullable(),
            // All types of types are compatible: their parameter cannot affect overload resolution.
            (Type::Type(_), Type::Type(_)) => true,
            (Type::Object(a), Type::Object(b)) => a == b,
            _ => {
                let (mine, theirs) = (from.params(), to.params());
                from.runtime_name() == to.runtime_name()
                    && mine.len() == theirs.len()
                    && mine.iter().zip(theirs).all(|(a, b)| self.assign(a, b))
            }
        }
    }

    /// Binds the parameter `name` to `found`, if compatible with its current binding.
    fn bind(&mut self, name: &Arc<str>, found: &Type) -> Bound {
        if matches!(found, Type::Param(other) if other == name) {
            return Bound::Fits;
        }
        let Some(known) = self.0.get(name).cloned() else {
            if !self.is_absent(name, found) {
                return Bound::Occurs;
            }
            self.0.insert(name.clone(), found.clone());
            return Bound::Fits;
        };
        if *found == known {
            return Bound::Fits;
        }
        if !self.assign(found, &known) {
            return Bound::Known;
        }
        let general = most_general(found, &known);
        if self.is_absent(name, &general) {
            self.0.insert(name.clone(), general);
        }
        Bound::Fits
    }

    /// Whether the parameter `name` does not occur in `within`.
    fn is_absent(&self, name: &Arc<str>, within: &Type) -> bool {
        match within {
            Type::Param(other) if other == name => false,
            Type::Param(other) => self.0.get(other).is_none_or(|found| self.is_absent(name, found)),
            other => other.params().iter().all(|param| self.is_absent(name, param)),
        }
    }
}

enum Bound {
    Fits,
    /// The parameter has another binding.
    Known,
    /// The parameter occurs in the type itself.
    Occurs,
}

/// The more general of two unified types.
pub(crate) fn most_general(a: &Type, b: &Type) -> Type {
    if is_as_general(a, b) { a.clone() } else { b.clone() }
}

fn is_as_general(a: &Type, b: &Type) -> bool {
    if matches!(a, Type::Dyn | Type::Param(_)) {
        return true;
    }
    if matches!(b, Type::Dyn | Type::Param(_)) {
        return false;
    }
    match (a, b) {
        (Type::Type(_), Type::Type(_)) => true,
        (Type::List(_) | Type::Map(..) | Type::Opaque(..), _) => {
            let (mine, theirs) = (a.params(), b.params());
            a.runtime_name() == b.runtime_name()
                && mine.len() == theirs.len()
                && mine.iter().zip(theirs).all(|(a, b)| is_as_general(a, b))
        }
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn param(name: &str) -> Type {
        Type::Param(Arc::from(name))
    }

    #[test]
    fn types_are_formatted_like_in_cel_go() {
        let map = Type::map(Type::String, Type::list(Type::Timestamp));
        assert_eq!(map.to_string(), "map(string, list(timestamp))");
        assert_eq!(Type::optional(Type::Null).to_string(), "optional_type(null)");
        assert_eq!(Type::Type(None).to_string(), "type");
    }

    #[test]
    fn a_type_parameter_keeps_its_binding() {
        let mut mapping = Mapping::default();
        let list = Type::list(param("A"));
        assert!(mapping.are_assignable(&[Type::list(Type::Int), Type::Int], &[list.clone(), param("A")]));
        assert!(!mapping.is_assignable(&Type::String, &param("A")));
        assert_eq!(mapping.substitute(&list, true), Type::list(Type::Int));
    }

    #[test]
    fn a_recursive_type_is_rejected() {
        let mut mapping = Mapping::default();
        assert!(!mapping.is_assignable(&Type::list(param("A")), &param("A")));
    }

    #[test]
    fn null_is_assignable_to_messages_and_times_only() {
        let mut mapping = Mapping::default();
        assert!(mapping.is_assignable(&Type::Null, &Type::object("x")));
        assert!(mapping.is_assignable(&Type::Duration, &Type::Null));
        assert!(!mapping.is_assignable(&Type::Null, &Type::Int));
    }
}
