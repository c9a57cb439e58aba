//! Types of custom resources, as server-side apply needs them.
//!
//! Has the parts of a schema that affect ownership: scalar types, list types and their keys, key defaults, map types,
//! and where unknown fields are allowed. Callers build a [`TypeDef`] from their own form of a schema, once per
//! version of a CRD; this crate does not read `openAPIV3Schema`.

use std::sync::LazyLock;

use serde_json::Value;

use super::schema::{Atom, Fields, Keys, List, Map, Relation, Scalar, Ty};
use kubewright_apimachinery::types::{self, Merge, Type};

static OBJECT_META: LazyLock<Option<&'static Type>> =
    LazyLock::new(|| types::type_named("meta.v1.ObjectMeta"));

/// The possible shapes of a value. A value with several shapes can change between them.
#[derive(Debug, Clone, Default)]
pub struct TypeDef {
    scalar: Option<Scalar>,
    list: Option<Box<ListDef>>,
    map: Option<Box<MapDef>>,
}

/// A list type.
#[derive(Debug, Clone)]
pub struct ListDef {
    /// The type of the items.
    pub element: TypeRef,
    /// How items are identified.
    pub list_type: ListType,
}

/// How list items are identified.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ListType {
    /// Not at all: the list has one owner.
    #[default]
    Atomic,
    /// By value.
    Set,
    /// By the values of these fields.
    Map(Box<[Box<str>]>),
}

/// A map or object type.
#[derive(Debug, Clone, Default)]
pub struct MapDef {
    /// Sorted by name.
    fields: Vec<(Box<str>, FieldDef)>,
    element: Option<TypeRef>,
    atomic: bool,
}

/// A declared field.
#[derive(Debug, Clone)]
pub struct FieldDef {
    /// The type of the field.
    pub ty: TypeRef,
    /// The default, for fields that are keys of a list.
    pub default: Option<Value>,
}

/// The type at one position of a schema.
#[derive(Debug, Clone)]
pub enum TypeRef {
    /// Any type; maps are granular, lists atomic.
    Deduced,
    /// Any type, atomic.
    Untyped,
    /// The metadata of objects.
    ObjectMeta,
    /// A described type.
    Def(TypeDef),
}

impl TypeDef {
    /// A value that can be a list, a map or a scalar.
    pub fn any(list: ListDef, map: MapDef) -> Self {
        Self { scalar: Some(Scalar::Untyped), list: Some(Box::new(list)), map: Some(Box::new(map)) }
    }

    pub(crate) fn atom(&self) -> Atom<'_> {
        Atom {
            scalar: self.scalar,
            list: self.list.as_deref().map(|list| List {
                element: list.element.ty(),
                relation: match &list.list_type {
                    ListType::Atomic => Relation::Atomic,
                    ListType::Set => Relation::Set,
                    // Without keys, items can only be identified by their values.
                    ListType::Map(keys) if keys.is_empty() => Relation::Set,
                    ListType::Map(keys) => Relation::Keys(Keys::Owned(keys)),
                },
            }),
            map: self.map.as_deref().map(|map| Map {
                fields: if map.fields.is_empty() { Fields::None } else { Fields::Custom(map) },
                element: map.element.as_ref().map(TypeRef::ty),
                atomic: map.atomic,
            }),
        }
    }
}

impl From<Scalar> for TypeDef {
    fn from(scalar: Scalar) -> Self {
        Self { scalar: Some(scalar), ..Self::default() }
    }
}

impl From<ListDef> for TypeDef {
    fn from(list: ListDef) -> Self {
        Self { list: Some(Box::new(list)), ..Self::default() }
    }
}

impl From<MapDef> for TypeDef {
    fn from(map: MapDef) -> Self {
        Self { map: Some(Box::new(map)), ..Self::default() }
    }
}

impl ListDef {
    /// A list of items of a type.
    pub fn new(element: impl Into<TypeDef>, list_type: ListType) -> Self {
        Self { element: TypeRef::Def(element.into()), list_type }
    }
}

impl ListType {
    /// Items that are identified by the values of these fields.
    pub fn map<'a>(keys: impl IntoIterator<Item = &'a str>) -> Self {
        Self::Map(keys.into_iter().map(Box::from).collect())
    }
}

impl MapDef {
    /// An object with these fields and no others.
    pub fn object<'a>(fields: impl IntoIterator<Item = (&'a str, FieldDef)>) -> Self {
        let mut fields: Vec<(Box<str>, FieldDef)> =
            fields.into_iter().map(|(name, field)| (name.into(), field)).collect();
        fields.sort_by(|(one, _), (other, _)| one.cmp(other));
        Self { fields, element: None, atomic: false }
    }

    /// Allows undeclared fields of a type.
    #[must_use]
    pub fn with_element(mut self, element: TypeRef) -> Self {
        self.element = Some(element);
        self
    }

    /// Makes the map have one owner.
    #[must_use]
    pub fn atomic(mut self) -> Self {
        self.atomic = true;
        self
    }

    /// Declares `apiVersion`, `kind` and `metadata`, which every resource has.
    #[must_use]
    pub fn resource(mut self) -> Self {
        self.set_field("apiVersion", FieldDef::new(Scalar::String));
        self.set_field("kind", FieldDef::new(Scalar::String));
        self.set_field("metadata", FieldDef { ty: TypeRef::ObjectMeta, default: None });
        self
    }

    pub(crate) fn field(&self, name: &str) -> Option<&FieldDef> {
        let at = self.fields.binary_search_by(|(own, _)| (**own).cmp(name)).ok()?;
        Some(&self.fields[at].1)
    }

    fn set_field(&mut self, name: &str, field: FieldDef) {
        match self.fields.binary_search_by(|(own, _)| (**own).cmp(name)) {
            Ok(at) => self.fields[at].1 = field,
            Err(at) => self.fields.insert(at, (name.into(), field)),
        }
    }
}

impl FieldDef {
    /// A field of a type, without a default.
    pub fn new(ty: impl Into<TypeDef>) -> Self {
        Self { ty: TypeRef::Def(ty.into()), default: None }
    }
}

impl TypeRef {
    pub(crate) fn ty(&self) -> Ty<'_> {
        match self {
            Self::Deduced => Ty::Deduced,
            Self::Untyped => Ty::Untyped,
            Self::ObjectMeta => match *OBJECT_META {
                Some(ty) => Ty::Object { ty, merge: &Merge::Unset },
                None => Ty::Deduced,
            },
            Self::Def(ty) => Ty::Custom(ty),
        }
    }
}
