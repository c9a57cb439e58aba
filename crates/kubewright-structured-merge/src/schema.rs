//! Merge strategies of types: which parts are granular and which are atomic.
//!
//! One view over three sources: the table of built-in types, the type of a custom resource ([`TypeDef`]), and
//! deduced types without a schema. A [`Schema`] is a reference and cheap to copy.

use serde_json::{Value, json};

use super::path::Element;
use super::type_def::{MapDef, TypeDef};
use kubewright_apimachinery::decode;
use kubewright_apimachinery::types::{self, FieldType, Merge, Type};

/// The schema of a kind in one API version.
#[derive(Debug, Clone, Copy)]
pub struct Schema<'s>(Ty<'s>);

impl<'s> Schema<'s> {
    /// The schema of a built-in type.
    pub fn built_in(ty: &'static Type) -> Self {
        Self(Ty::Object { ty, merge: &Merge::Unset })
    }

    /// The schema of a custom resource.
    pub fn custom(ty: &'s TypeDef) -> Self {
        Self(Ty::Custom(ty))
    }

    /// No schema: maps are granular, lists are atomic.
    pub fn deduced() -> Self {
        Self(Ty::Deduced)
    }

    pub(crate) fn ty(self) -> Ty<'s> {
        self.0
    }

    /// Whether upstream decodes objects to Go structs, where empty `omitempty` fields are absent.
    pub(crate) fn is_built_in(self) -> bool {
        matches!(self.0, Ty::Object { .. })
    }

    /// The object that a create starts from. For built-in kinds it contains the fields that are always
    /// serialized.
    pub(crate) fn empty_object(self, api_version: &str, kind: &str) -> Value {
        let mut object = json!({"apiVersion": api_version, "kind": kind});
        if let Ty::Object { ty, .. } = self.0 {
            // Cannot fail: both fields are strings.
            decode::normalise(ty, &mut object).ok();
        }
        object
    }
}

/// A type at one position of a schema.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ty<'s> {
    /// Any type; maps are granular, lists atomic.
    Deduced,
    /// Any type, atomic.
    Untyped,
    /// An object type of the table, with the merge strategy of the field that holds it.
    Object { ty: &'static Type, merge: &'static Merge },
    /// A field of the table.
    Field(&'static types::Field),
    /// The item type of a list or map of the table.
    Inner(&'static FieldType),
    /// A type of a custom resource.
    Custom(&'s TypeDef),
}

/// The possible shapes of a value.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Atom<'s> {
    pub(crate) scalar: Option<Scalar>,
    pub(crate) list: Option<List<'s>>,
    pub(crate) map: Option<Map<'s>>,
}

/// A scalar type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scalar {
    /// A number.
    Numeric,
    /// A string.
    String,
    /// A bool.
    Boolean,
    /// Any scalar.
    Untyped,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct List<'s> {
    pub(crate) element: Ty<'s>,
    pub(crate) relation: Relation<'s>,
}

/// How list items are identified.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Relation<'s> {
    /// Not at all: the list is atomic.
    Atomic,
    /// By value: the list is a set.
    Set,
    /// By key fields: the list is associative.
    Keys(Keys<'s>),
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Keys<'s> {
    Static(&'s [&'static str]),
    Owned(&'s [Box<str>]),
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Map<'s> {
    pub(crate) fields: Fields<'s>,
    /// The type of undeclared fields; `None` if they are not allowed.
    pub(crate) element: Option<Ty<'s>>,
    pub(crate) atomic: bool,
}

/// The declared fields.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fields<'s> {
    None,
    Known(&'static Type),
    Custom(&'s MapDef),
}

/// The shape of a value, or the first possible one.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape<'s> {
    Scalar(Scalar),
    List(List<'s>),
    Map(Map<'s>),
}

/// Which shapes of an [`Atom`] match a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    Scalar,
    List,
    Map,
    /// The value is null or matches no shape: all are possible.
    Whole,
}

impl<'s> Ty<'s> {
    /// The shape of a value of this type.
    pub(crate) fn shape_of(self, value: &Value) -> Shape<'s> {
        // Fast path: most types have one shape, and most values are scalars.
        let ty = match self {
            Self::Field(field) => &field.ty,
            Self::Inner(ty) => ty,
            _ => return self.atom().shape_of(value),
        };
        match ty {
            FieldType::String | FieldType::Bytes => Shape::Scalar(Scalar::String),
            FieldType::Bool => Shape::Scalar(Scalar::Boolean),
            FieldType::Int32 | FieldType::Int64 | FieldType::Number => Shape::Scalar(Scalar::Numeric),
            FieldType::Quantity | FieldType::Time | FieldType::MicroTime => Shape::Scalar(Scalar::Untyped),
            _ => self.atom().shape_of(value),
        }
    }

    pub(crate) fn atom(self) -> Atom<'s> {
        match self {
            Self::Deduced => Atom {
                scalar: Some(Scalar::Untyped),
                list: Some(List { element: Self::Untyped, relation: Relation::Atomic }),
                map: Some(Map { fields: Fields::None, element: Some(Self::Deduced), atomic: false }),
            },
            Self::Untyped => Atom {
                scalar: Some(Scalar::Untyped),
                list: Some(List { element: Self::Untyped, relation: Relation::Atomic }),
                map: Some(Map { fields: Fields::None, element: Some(Self::Untyped), atomic: true }),
            },
            Self::Object { ty, merge } => object(ty, merge),
            Self::Field(field) => built_in(&field.ty, &field.merge, list_relation(field)),
            Self::Inner(ty) => built_in(ty, &Merge::Unset, Relation::Atomic),
            Self::Custom(ty) => ty.atom(),
        }
    }
}

fn object<'s>(ty: &'static Type, merge: &Merge) -> Atom<'s> {
    if ty.any {
        return Ty::Deduced.atom();
    }
    let atomic = match merge {
        Merge::Atomic => true,
        Merge::Granular => false,
        _ => ty.atomic,
    };
    // Upstream publishes an object type without fields as one with arbitrary fields.
    let element = ty.fields.is_empty().then_some(Ty::Deduced);
    let fields = if ty.fields.is_empty() { Fields::None } else { Fields::Known(ty) };
    Atom { map: Some(Map { fields, element, atomic }), ..Atom::default() }
}

fn built_in<'s>(ty: &'static FieldType, merge: &'static Merge, relation: Relation<'s>) -> Atom<'s> {
    let scalar = |scalar| Atom { scalar: Some(scalar), ..Atom::default() };
    let map = |element, atomic| Atom {
        map: Some(Map { fields: Fields::None, element: Some(element), atomic }),
        ..Atom::default()
    };
    match ty {
        FieldType::String | FieldType::Bytes => scalar(Scalar::String),
        FieldType::Bool => scalar(Scalar::Boolean),
        FieldType::Int32 | FieldType::Int64 | FieldType::Number => scalar(Scalar::Numeric),
        FieldType::Quantity | FieldType::Time | FieldType::MicroTime => scalar(Scalar::Untyped),
        FieldType::IntOrString | FieldType::Json => Ty::Deduced.atom(),
        FieldType::FieldsV1 => map(Ty::Deduced, false),
        FieldType::Raw => Ty::Untyped.atom(),
        FieldType::List(of) => {
            Atom { list: Some(List { element: Ty::Inner(of), relation }), ..Atom::default() }
        }
        FieldType::Map(of) => map(Ty::Inner(of), *merge == Merge::Atomic),
        FieldType::Object(of) => object(of.get(), merge),
    }
}

/// Lists without server-side apply markers use the strategic merge patch strategy.
fn list_relation(field: &'static types::Field) -> Relation<'static> {
    match &field.merge {
        Merge::Set => Relation::Set,
        Merge::Map(keys) => Relation::Keys(Keys::Static(keys)),
        Merge::Unset if field.patch.merge => match &field.patch.key {
            Some(key) => Relation::Keys(Keys::Static(std::slice::from_ref(key))),
            None => Relation::Set,
        },
        _ => Relation::Atomic,
    }
}

impl<'s> Atom<'s> {
    /// The matching shape. A single possible shape always matches.
    pub(crate) fn which(&self, value: Option<&Value>) -> Which {
        match (self.scalar, self.list.is_some(), self.map.is_some()) {
            (Some(_), false, false) => return Which::Scalar,
            (None, true, false) => return Which::List,
            (None, false, true) => return Which::Map,
            _ => {}
        }
        match value {
            Some(Value::Array(_)) if self.list.is_some() => Which::List,
            Some(Value::Object(_)) if self.map.is_some() => Which::Map,
            Some(Value::String(_) | Value::Number(_) | Value::Bool(_)) if self.scalar.is_some() => {
                Which::Scalar
            }
            _ => Which::Whole,
        }
    }

    pub(crate) fn shape(&self, which: Which) -> Shape<'s> {
        match (which, self) {
            (Which::Map | Which::Whole, Self { map: Some(map), .. }) => Shape::Map(*map),
            (Which::Scalar | Which::Whole, Self { scalar: Some(scalar), .. }) => Shape::Scalar(*scalar),
            (Which::List | Which::Whole, Self { list: Some(list), .. }) => Shape::List(*list),
            _ => Shape::Scalar(Scalar::Untyped),
        }
    }

    fn shape_of(&self, value: &Value) -> Shape<'s> {
        self.shape(self.which(Some(value)))
    }
}

impl<'s> Map<'s> {
    /// The type of a declared field.
    pub(crate) fn field(&self, name: &str) -> Option<Ty<'s>> {
        match self.fields {
            Fields::None => None,
            Fields::Known(ty) => ty.field(name).map(Ty::Field),
            Fields::Custom(map) => map.field(name).map(|field| field.ty.ty()),
        }
    }

    /// The path element and the type of a field.
    pub(crate) fn entry(&self, name: &str) -> (Element, Option<Ty<'s>>) {
        if let Fields::Known(ty) = self.fields
            && let Some(field) = ty.field(name)
        {
            return (Element::known(field.name), Some(Ty::Field(field)));
        }
        (Element::field(name), self.at(name))
    }

    /// The type of a field, declared or not.
    pub(crate) fn at(&self, name: &str) -> Option<Ty<'s>> {
        self.field(name).or(self.element)
    }

    /// Whether all fields are undeclared and untyped. Their sets are never adapted to the schema.
    pub(crate) fn is_deduced(&self) -> bool {
        matches!(self.fields, Fields::None)
            && match self.element {
                Some(Ty::Deduced) => true,
                Some(Ty::Custom(ty)) => ty.atom().scalar == Some(Scalar::Untyped),
                _ => false,
            }
    }

    /// The default of a key field.
    pub(crate) fn default_of(&self, name: &str) -> Option<Value> {
        match self.fields {
            Fields::None => None,
            Fields::Known(ty) => {
                let field = ty.field(name)?;
                match field.default {
                    Some(text) => serde_json::from_str(text).ok(),
                    // Fields that Go always serializes have their zero value as the published default.
                    None if field.always && !field.pointer => zero(&field.ty),
                    None => None,
                }
            }
            Fields::Custom(map) => map.field(name)?.default.clone(),
        }
    }
}

fn zero(ty: &FieldType) -> Option<Value> {
    match ty {
        FieldType::String => Some("".into()),
        FieldType::Bool => Some(false.into()),
        FieldType::Int32 | FieldType::Int64 | FieldType::Number => Some(0.into()),
        _ => None,
    }
}

impl List<'_> {
    pub(crate) fn is_atomic(&self) -> bool {
        matches!(self.relation, Relation::Atomic)
    }
}

impl<'s> Keys<'s> {
    pub(crate) fn iter(self) -> impl Iterator<Item = &'s str> {
        let (fixed, owned): (&'s [&'static str], &'s [Box<str>]) = match self {
            Self::Static(keys) => (keys, &[]),
            Self::Owned(keys) => (&[], keys),
        };
        fixed.iter().copied().chain(owned.iter().map(|key| &**key))
    }
}
