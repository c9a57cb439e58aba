//! What an expression may name: variables and the fields of objects.
//!
//! Functions are the same everywhere and are not part of it; see [`super::decls`].

use std::collections::HashMap;
use std::sync::Arc;

use super::escape;
use super::types::Type;

/// The variables and object types that an expression may use.
#[derive(Debug, Clone, Default)]
pub struct Env {
    variables: HashMap<String, Type>,
    objects: HashMap<Arc<str>, HashMap<String, Type>>,
    patch_types: bool,
}

impl Env {
    /// Nothing but functions and types.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with a variable.
    #[must_use]
    pub fn with_variable(mut self, name: &str, of: Type) -> Self {
        self.variables.insert(name.to_owned(), of);
        self
    }

    /// The same with an object type. Fields have the names by which expressions select them.
    #[must_use]
    pub fn with_object(mut self, name: &str, fields: impl IntoIterator<Item = (String, Type)>) -> Self {
        self.objects.insert(Arc::from(name), fields.into_iter().collect());
        self
    }

    /// The same with the types that mutations construct: `Object`, `Object.spec` and so on, and `JSONPatch`.
    #[must_use]
    pub fn with_patch_types(mut self) -> Self {
        self.patch_types = true;
        self
    }

    /// The type that `name{...}` constructs, if it may be constructed.
    pub(crate) fn constructed(&self, name: &str) -> Option<Type> {
        let known = name == "JSONPatch" || name == "Object" || name.starts_with("Object.");
        (self.patch_types && known).then(|| Type::object(name))
    }

    pub(crate) fn variable(&self, name: &str) -> Option<&Type> {
        self.variables.get(name)
    }

    /// The type of a field of an object.
    pub(crate) fn field_type(&self, object: &str, field: &str) -> Result<&Type, NoField> {
        let fields = self.objects.get(object).ok_or(NoField::NoObject)?;
        // Words that CEL reserves need no escape behind a dot.
        let reserved = || escape::is_reserved(field).then(|| fields.get(&format!("__{field}__"))).flatten();
        fields.get(field).or_else(reserved).ok_or(NoField::Undefined)
    }
}

/// Why there is no such field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoField {
    /// The object is not declared.
    NoObject,
    /// The object has no such field.
    Undefined,
}
