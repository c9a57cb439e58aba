//! The peer of the facts table: the same facts as JSON, parsed with serde_json.
//!
//! Does the same work as our parser: fields are indexed by name and references are resolved. Strings borrow
//! from the input and unset properties are omitted.

use std::borrow::Cow;
use std::hint::black_box;

use kubewright_apimachinery::types as facts;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
pub(super) struct Type<'a> {
    name: &'a str,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kind_of: Option<&'a str>,
    #[serde(default, skip_serializing_if = "is_default")]
    atomic: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    any: bool,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    unions: Option<Cow<'a, str>>,
    #[serde(borrow)]
    fields: Vec<Field<'a>>,
    #[serde(skip)]
    by_name: Vec<u16>,
}

#[derive(Serialize, Deserialize)]
struct Field<'a> {
    name: &'a str,
    #[serde(borrow)]
    ty: FieldType<'a>,
    #[serde(default, skip_serializing_if = "is_default")]
    required: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    pointer: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    always: bool,
    #[serde(borrow, default, skip_serializing_if = "is_default")]
    merge: Merge<'a>,
    #[serde(borrow, default, skip_serializing_if = "is_default")]
    patch: Patch<'a>,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    enum_values: Vec<&'a str>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    default: Option<Cow<'a, str>>,
}

#[derive(Serialize, Deserialize)]
enum FieldType<'a> {
    String,
    Bool,
    Int32,
    Int64,
    Number,
    Bytes,
    Quantity,
    IntOrString,
    Time,
    MicroTime,
    FieldsV1,
    Raw,
    Json,
    #[serde(borrow)]
    List(Box<FieldType<'a>>),
    Map(Box<FieldType<'a>>),
    Object(&'a str),
}

#[derive(Serialize, Deserialize, Default, PartialEq)]
enum Merge<'a> {
    #[default]
    Unset,
    Atomic,
    Granular,
    Set,
    #[serde(borrow)]
    Map(Vec<&'a str>),
}

#[derive(Serialize, Deserialize, Default, PartialEq)]
struct Patch<'a> {
    #[serde(default, skip_serializing_if = "is_default")]
    merge: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    retain_keys: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    replace: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Serializes each type.
pub(super) fn write(types: &[&facts::Type]) -> Vec<String> {
    types.iter().map(|ty| serde_json::to_string(&Type::of(ty)).expect("facts serialize to JSON")).collect()
}

/// Parses one type. `names` are the sorted names of all types.
pub(super) fn read<'a>(text: &'a str, names: &[&str]) -> Type<'a> {
    let mut ty: Type<'_> = serde_json::from_str(text).expect("JSON written by `write`");
    for field in &ty.fields {
        if let Some(name) = field.ty.reference() {
            black_box(names.binary_search(&name).expect("reference to a known type"));
        }
    }
    ty.by_name = (0..).take(ty.fields.len()).collect();
    ty.by_name.sort_unstable_by_key(|at| ty.fields[usize::from(*at)].name);
    ty
}

impl<'a> Type<'a> {
    fn of(ty: &'a facts::Type) -> Self {
        Self {
            name: ty.name,
            kind_of: ty.kind_of,
            atomic: ty.atomic,
            any: ty.any,
            unions: ty.unions.map(Cow::Borrowed),
            fields: ty.fields.iter().map(Field::of).collect(),
            by_name: Vec::new(),
        }
    }
}

impl<'a> Field<'a> {
    fn of(field: &'a facts::Field) -> Self {
        let facts::Patch { merge, retain_keys, replace, key } = field.patch;
        Self {
            name: field.name,
            ty: FieldType::of(&field.ty),
            required: field.required,
            pointer: field.pointer,
            always: field.always,
            merge: match &field.merge {
                facts::Merge::Unset => Merge::Unset,
                facts::Merge::Atomic => Merge::Atomic,
                facts::Merge::Granular => Merge::Granular,
                facts::Merge::Set => Merge::Set,
                facts::Merge::Map(keys) => Merge::Map(keys.to_vec()),
            },
            patch: Patch { merge, retain_keys, replace, key },
            enum_values: field.enum_values.to_vec(),
            default: field.default.map(Cow::Borrowed),
        }
    }
}

impl<'a> FieldType<'a> {
    fn of(ty: &'a facts::FieldType) -> Self {
        match ty {
            facts::FieldType::String => Self::String,
            facts::FieldType::Bool => Self::Bool,
            facts::FieldType::Int32 => Self::Int32,
            facts::FieldType::Int64 => Self::Int64,
            facts::FieldType::Number => Self::Number,
            facts::FieldType::Bytes => Self::Bytes,
            facts::FieldType::Quantity => Self::Quantity,
            facts::FieldType::IntOrString => Self::IntOrString,
            facts::FieldType::Time => Self::Time,
            facts::FieldType::MicroTime => Self::MicroTime,
            facts::FieldType::FieldsV1 => Self::FieldsV1,
            facts::FieldType::Raw => Self::Raw,
            facts::FieldType::Json => Self::Json,
            facts::FieldType::List(of) => Self::List(Box::new(Self::of(of))),
            facts::FieldType::Map(of) => Self::Map(Box::new(Self::of(of))),
            facts::FieldType::Object(of) => Self::Object(of.name()),
        }
    }

    fn reference(&self) -> Option<&'a str> {
        match self {
            Self::Object(name) => Some(name),
            Self::List(of) | Self::Map(of) => of.reference(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peer_parses_every_fact() {
        let names: Vec<&str> = facts::type_names().collect();
        let types: Vec<&facts::Type> = facts::type_names().filter_map(facts::type_named).collect();
        for text in write(&types) {
            assert_eq!(serde_json::to_string(&read(&text, &names)).unwrap(), text);
        }
    }
}
