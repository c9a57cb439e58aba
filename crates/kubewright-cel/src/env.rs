//! The declarations that an expression can use: variables and object types.
//!
//! Functions are the same in every environment; see [`super::decls`].

use std::collections::HashMap;
use std::sync::Arc;

use super::escape;
use super::schema::{DeclType, Schema};
use super::types::Type;

/// The type of a JSON patch operation.
pub(crate) const JSON_PATCH: &str = "JSONPatch";

/// The variables and object types that an expression may use.
#[derive(Debug, Clone, Default)]
pub struct Env {
    variables: HashMap<String, Type>,
    objects: HashMap<Arc<str>, HashMap<String, Type>>,
    patch_types: bool,
}

impl Env {
    /// Creates an environment without variables.
    pub fn new() -> Self {
        Self::default()
    }

    /// Declares a variable.
    #[must_use]
    pub fn with_variable(mut self, name: &str, of: Type) -> Self {
        self.variables.insert(name.to_owned(), of);
        self
    }

    /// Declares an object type. The field names must be escaped as CEL requires.
    #[must_use]
    pub fn with_object(mut self, name: &str, fields: impl IntoIterator<Item = (String, Type)>) -> Self {
        self.objects.insert(Arc::from(name), fields.into_iter().collect());
        self
    }

    /// Declares variables that contain a resource with this schema. Its object types get names that start with
    /// `type_name`. A schema without a type declares dynamic variables.
    #[must_use]
    pub fn with_resource(mut self, variables: &[&str], type_name: &str, schema: Schema) -> Self {
        let declared = DeclType::of(&schema.into_resource());
        let of = declared.map_or(Type::Dyn, |declared| declared.declare(type_name, &mut self));
        for variable in variables {
            self = self.with_variable(variable, of.clone());
        }
        self
    }

    /// Declares the types that mutation expressions construct: `Object`, `Object.spec` and so on, and
    /// `JSONPatch`.
    #[must_use]
    pub fn with_patch_types(mut self) -> Self {
        self.patch_types = true;
        self
    }

    /// The type that `name{...}` constructs, if it is constructible.
    pub(crate) fn constructed(&self, name: &str) -> Option<Type> {
        let known = name == JSON_PATCH || name == "Object" || name.starts_with("Object.");
        (self.patch_types && known).then(|| Type::object(name))
    }

    pub(crate) fn variable(&self, name: &str) -> Option<&Type> {
        self.variables.get(name)
    }

    /// The type of a field of an object.
    pub(crate) fn field_type(&self, object: &str, field: &str) -> Result<&Type, NoField> {
        let fields = self.objects.get(object).ok_or(NoField::NoObject)?;
        // CEL's reserved words need no escaping in a field selection.
        let reserved = || escape::is_reserved(field).then(|| fields.get(&format!("__{field}__"))).flatten();
        fields.get(field).or_else(reserved).ok_or(NoField::Undefined)
    }
}

/// Why a field lookup failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoField {
    /// The object type is not declared.
    NoObject,
    /// The object type has no such field.
    Undefined,
}
