//! Types of expressions: how they are written, and which may stand for which.
//!
//! Owns unification: [`Mapping`] remembers what type parameters were found to be. Follows cel-go's checker,
//! including what it lets pass (`dyn` fits everything, `null` fits messages, times and opaque types).

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// The type of an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Type {
    /// Anything: checked when the expression runs.
    Dyn,
    /// The type of `null`.
    Null,
    /// `true` or `false`.
    Bool,
    /// A signed number of 64 bits.
    Int,
    /// An unsigned number of 64 bits.
    Uint,
    /// A floating point number.
    Double,
    /// A string of Unicode characters.
    String,
    /// A sequence of bytes.
    Bytes,
    /// A length of time.
    Duration,
    /// A point in time.
    Timestamp,
    /// A list with items of one type.
    List(Box<Type>),
    /// A map with keys and values of one type each.
    Map(Box<Type>, Box<Type>),
    /// An object with declared fields, by its name.
    Object(Arc<str>),
    /// A type of a library, with parameters.
    Opaque(Arc<str>, Vec<Type>),
    /// The type of a type.
    Type(Option<Box<Type>>),
    /// A parameter of a function's type.
    Param(Arc<str>),
    /// What something has that was reported already.
    Error,
}

/// The name of the type of optional values.
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

    /// An object with declared fields.
    pub fn object(name: &str) -> Self {
        Self::Object(Arc::from(name))
    }

    /// A value that may be missing.
    pub fn optional(value: Type) -> Self {
        Self::Opaque(Arc::from(OPTIONAL), vec![value])
    }

    /// What is inside an optional value.
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

    /// The name that a value of this type tells by `type()`, and that its type has in expressions.
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

    /// The types inside this one.
    pub(crate) fn params(&self) -> Vec<&Type> {
        match self {
            Self::List(item) => vec![item],
            Self::Map(key, value) => vec![key, value],
            Self::Opaque(_, params) => params.iter().collect(),
            Self::Type(Some(of)) => vec![of],
            _ => Vec::new(),
        }
    }

    /// The same type with each type inside it changed.
    fn with_params(&self, mut change: impl FnMut(&Type) -> Type) -> Type {
        match self {
            Self::List(item) => Self::list(change(item)),
            Self::Map(key, value) => Self::map(change(key), change(value)),
            Self::Opaque(name, params) => Self::Opaque(name.clone(), params.iter().map(change).collect()),
            Self::Type(Some(of)) => Self::Type(Some(Box::new(change(of)))),
            other => other.clone(),
        }
    }

    /// This type with the parameters' names replaced.
    pub(crate) fn renamed(&self, names: &HashMap<Arc<str>, Type>) -> Type {
        match self {
            Self::Param(name) => names.get(name).cloned().unwrap_or_else(|| self.clone()),
            other => other.with_params(|param| param.renamed(names)),
        }
    }

    /// Whether values of both types are of one kind, with `dyn` on either side matching all.
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

/// What type parameters were found to be.
#[derive(Debug, Clone, Default)]
pub(crate) struct Mapping(HashMap<Arc<str>, Type>);

impl Mapping {
    /// Whether a value of type `from` may stand where `to` is wanted. Remembers what parameters must be if so.
    pub(crate) fn is_assignable(&mut self, from: &Type, to: &Type) -> bool {
        let mut tried = self.clone();
        let fits = tried.assign(from, to);
        if fits {
            *self = tried;
        }
        fits
    }

    /// As [`Self::is_assignable`], for all at once.
    pub(crate) fn are_assignable(&mut self, from: &[Type], to: &[Type]) -> bool {
        let mut tried = self.clone();
        let fits = from.len() == to.len() && from.iter().zip(to).all(|(from, to)| tried.assign(from, to));
        if fits {
            *self = tried;
        }
        fits
    }

    /// The type with parameters replaced by what they were found to be; by `dyn` if they are free and
    /// `free_to_dyn` is set.
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
            // A type is a type: what it is of cannot affect which overload is meant.
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

    /// Takes `found` for the parameter `name`, if that agrees with what is known of it.
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

    /// Whether the parameter `name` does not stand within `within`.
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
    /// The parameter is something else already.
    Known,
    /// The parameter stands within the type itself.
    Occurs,
}

/// The more general of two types that unify.
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
    fn types_are_written_as_cel_go_writes_them() {
        let map = Type::map(Type::String, Type::list(Type::Timestamp));
        assert_eq!(map.to_string(), "map(string, list(timestamp))");
        assert_eq!(Type::optional(Type::Null).to_string(), "optional_type(null)");
        assert_eq!(Type::Type(None).to_string(), "type");
    }

    #[test]
    fn a_parameter_stays_what_it_was_found_to_be() {
        let mut mapping = Mapping::default();
        let list = Type::list(param("A"));
        assert!(mapping.are_assignable(&[Type::list(Type::Int), Type::Int], &[list.clone(), param("A")]));
        assert!(!mapping.is_assignable(&Type::String, &param("A")));
        assert_eq!(mapping.substitute(&list, true), Type::list(Type::Int));
    }

    #[test]
    fn a_type_within_itself_is_refused() {
        let mut mapping = Mapping::default();
        assert!(!mapping.is_assignable(&Type::list(param("A")), &param("A")));
    }

    #[test]
    fn null_fits_messages_and_times_only() {
        let mut mapping = Mapping::default();
        assert!(mapping.is_assignable(&Type::Null, &Type::object("x")));
        assert!(mapping.is_assignable(&Type::Duration, &Type::Null));
        assert!(!mapping.is_assignable(&Type::Null, &Type::Int));
    }
}
