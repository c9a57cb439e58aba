//! Lookup of types and patch strategies along a patch.
//!
//! Corresponds to upstream's reflection over Go structs, with the same errors. There is no information below
//! maps, raw extensions and other values without fields.

use super::Result;
use super::StrategicPatchError as Error;
use crate::types::{Field, FieldType, Type};

/// The type of a part of the document.
#[derive(Clone, Copy)]
pub(super) struct Schema {
    shape: Shape,
    /// Whether Go uses a pointer.
    pointer: bool,
}

#[derive(Clone, Copy)]
enum Shape {
    Struct(&'static Type),
    Other(&'static FieldType),
}

/// A field of type object or map.
pub(super) struct Member {
    pub(super) schema: Schema,
    /// The patch replaces the value.
    pub(super) replace: bool,
}

/// A field of type list.
pub(super) struct List {
    pub(super) element: Schema,
    /// The patch is merged into the list.
    pub(super) merge: bool,
    /// The merge key.
    pub(super) key: Option<&'static str>,
}

impl Schema {
    pub(super) fn of(ty: &'static Type) -> Self {
        Self { shape: Shape::Struct(ty), pointer: false }
    }

    fn new(ty: &'static FieldType, pointer: bool) -> Self {
        let shape = match ty {
            FieldType::Object(of) => Shape::Struct(of.get()),
            other => Shape::Other(other),
        };
        Self { shape, pointer }
    }

    /// Looks up the field `name` of type object.
    pub(super) fn member(self, name: &str) -> Result<Member> {
        let field = self.field(name)?;
        Ok(Member { schema: Self::new(&field.ty, field.pointer), replace: field.patch.replace })
    }

    /// Looks up the field `name` of type list.
    pub(super) fn list(self, name: &str) -> Result<List> {
        let field = self.field(name)?;
        let element = match &field.ty {
            FieldType::List(of) if matches!(**of, FieldType::List(_) | FieldType::Bytes) => {
                return Err(Error::ListOfListsInType);
            }
            FieldType::List(of) => Self::new(of, false),
            FieldType::Bytes => Self::new(&field.ty, false),
            other if field.pointer => Self::new(other, false),
            _ => return Err(Error::NotAList(self.go_kind())),
        };
        Ok(List { element, merge: field.patch.merge, key: field.patch.key })
    }

    /// The `reflect.Kind` of the type.
    pub(super) fn go_kind(self) -> &'static str {
        if self.pointer {
            return "ptr";
        }
        match self.shape {
            Shape::Struct(_) => "struct",
            Shape::Other(ty) => go_kind(ty),
        }
    }

    fn field(self, name: &str) -> Result<&'static Field> {
        let unknown = |ty| Error::UnknownField { ty, field: name.to_owned() };
        match self.shape {
            Shape::Struct(ty) => {
                // Go's JSON decoder matches field names case-insensitively.
                let other_case = || ty.fields.iter().find(|field| field.name.eq_ignore_ascii_case(name));
                let found = ty.field(name).or_else(other_case);
                found.ok_or_else(|| unknown(ty.name.rsplit('.').next().unwrap_or_default()))
            }
            Shape::Other(ty) => Err(match ty {
                FieldType::Raw => unknown("RawExtension"),
                FieldType::Json => unknown("JSON"),
                FieldType::FieldsV1 => unknown("FieldsV1"),
                FieldType::Quantity => unknown("Quantity"),
                FieldType::IntOrString => unknown("IntOrString"),
                FieldType::Time => unknown("Time"),
                FieldType::MicroTime => unknown("MicroTime"),
                other => Error::NotAStruct(go_kind(other)),
            }),
        }
    }
}

fn go_kind(ty: &FieldType) -> &'static str {
    match ty {
        FieldType::String => "string",
        FieldType::Bool => "bool",
        FieldType::Int32 => "int32",
        FieldType::Int64 => "int64",
        FieldType::Number => "float64",
        FieldType::Bytes | FieldType::List(_) => "slice",
        FieldType::Map(_) => "map",
        FieldType::Quantity
        | FieldType::IntOrString
        | FieldType::Time
        | FieldType::MicroTime
        | FieldType::FieldsV1
        | FieldType::Raw
        | FieldType::Json
        | FieldType::Object(_) => "struct",
    }
}
