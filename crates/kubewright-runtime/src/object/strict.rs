//! Decodes JSON into a Rust type and reports every field that the type ignores.
//!
//! serde drops unknown fields unless a struct has `deny_unknown_fields`, which types of CRDs must not have. This
//! deserializer records ignored fields, with their paths and a suggestion. Limitation: serde buffers the content of
//! `flatten` and of untagged and internally tagged enums, so unknown fields in there are not detected.

use std::cell::RefCell;
use std::fmt;

use kubewright_apimachinery::nearest::nearest;
use kubewright_apimachinery::types::Mismatch;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error as _, IntoDeserializer as _,
    MapAccess, SeqAccess, Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::{Error, Value};

/// The problems of an object.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Fields that the type does not have.
    pub(super) unknown: Vec<Mismatch>,
    /// The path at which decoding failed.
    pub(super) failed_at: Option<String>,
}

/// Decodes a value, and reports the ignored fields.
pub(super) fn read<T: DeserializeOwned>(value: &Value) -> (Result<T, Error>, Found) {
    let found = RefCell::default();
    let read = At { value, path: Path::Root, siblings: &[], found: &found }.read(std::marker::PhantomData);
    (read, found.into_inner())
}

#[derive(Clone, Copy)]
enum Path<'p> {
    Root,
    Field(&'p Self, &'p str),
    Item(&'p Self, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Field(Self::Root, name) => f.write_str(name),
            Self::Field(parent, name) => write!(f, "{parent}.{name}"),
            Self::Item(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

/// A value and its path.
#[derive(Clone, Copy)]
struct At<'a> {
    value: &'a Value,
    path: Path<'a>,
    /// The fields of the struct that contains the value.
    siblings: &'static [&'static str],
    found: &'a RefCell<Found>,
}

impl At<'_> {
    fn read<'de, S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Error> {
        let read = seed.deserialize(self);
        if read.is_err() {
            // The innermost value reports first.
            self.found.borrow_mut().failed_at.get_or_insert_with(|| self.path.to_string());
        }
        read
    }

    fn members<'de, V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.value {
            Value::Object(members) => {
                visitor.visit_map(Members { at: self, fields, rest: members.iter(), value: None })
            }
            _ => self.deserialize_any(visitor),
        }
    }
}

impl<'de> Deserializer<'de> for At<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(flag) => visitor.visit_bool(*flag),
            Value::Number(number) => number.deserialize_any(visitor),
            Value::String(text) => visitor.visit_str(text),
            Value::Array(items) => visitor.visit_seq(Items { at: self, index: 0, rest: items.iter() }),
            Value::Object(_) => self.members(&[], visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.value.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.members(fields, visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let (name, content) = match self.value {
            Value::String(name) => (name, None),
            Value::Object(members) if members.len() == 1 => match members.iter().next() {
                Some((name, content)) => (name, Some(content)),
                None => return self.deserialize_any(visitor),
            },
            _ => return Err(Error::custom("an enum must be a string or an object with one field")),
        };
        visitor.visit_enum(Variant { at: self, name, content })
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let name = match self.path {
            Path::Field(_, name) => name,
            _ => "",
        };
        let near = nearest(name, self.siblings.iter().copied());
        let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        let mismatch = Mismatch { path: self.path.to_string(), problem: format!("unknown field{near}") };
        self.found.borrow_mut().unknown.push(mismatch);
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map identifier
    }
}

struct Members<'a> {
    at: At<'a>,
    fields: &'static [&'static str],
    rest: serde_json::map::Iter<'a>,
    value: Option<(&'a str, &'a Value)>,
}

impl<'de> MapAccess<'de> for Members<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        let Some((name, value)) = self.rest.next() else { return Ok(None) };
        self.value = Some((name, value));
        seed.deserialize(name.as_str().into_deserializer()).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let (name, value) = self.value.take().ok_or_else(|| Error::custom("a value without a key"))?;
        At { value, path: Path::Field(&self.at.path, name), siblings: self.fields, found: self.at.found }
            .read(seed)
    }
}

struct Items<'a> {
    at: At<'a>,
    index: usize,
    rest: std::slice::Iter<'a, Value>,
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        let Some(value) = self.rest.next() else { return Ok(None) };
        let path = Path::Item(&self.at.path, self.index);
        self.index += 1;
        At { value, path, siblings: &[], found: self.at.found }.read(seed).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

struct Variant<'a> {
    at: At<'a>,
    name: &'a str,
    content: Option<&'a Value>,
}

impl Variant<'_> {
    fn content<T>(self, read: impl FnOnce(At<'_>) -> Result<T, Error>) -> Result<T, Error> {
        let value = self
            .content
            .ok_or_else(|| Error::invalid_type(Unexpected::UnitVariant, &"a variant with content"))?;
        read(At { value, path: Path::Field(&self.at.path, self.name), siblings: &[], found: self.at.found })
    }
}

impl<'de> EnumAccess<'de> for Variant<'_> {
    type Error = Error;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Error> {
        Ok((seed.deserialize(self.name.into_deserializer())?, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'_> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        match self.content {
            None | Some(Value::Null) => Ok(()),
            Some(_) => Err(Error::invalid_type(Unexpected::Other("content"), &"a variant without content")),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Error> {
        self.content(|at| at.read(seed))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        self.content(|at| at.deserialize_any(visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.content(|at| at.members(fields, visitor))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Deserialize, Debug, PartialEq)]
    #[serde(rename_all = "camelCase")]
    struct Library {
        most_books: Option<u8>,
        #[serde(alias = "oldShelves", default)]
        shelves: BTreeMap<String, Shelf>,
        #[serde(default)]
        readers: Vec<Shelf>,
        #[serde(default)]
        mode: Mode,
        #[serde(default)]
        rest: Value,
    }

    #[derive(Deserialize, Debug, PartialEq)]
    struct Shelf {
        height: u8,
    }

    #[derive(Deserialize, Debug, PartialEq, Default)]
    #[serde(rename_all = "camelCase")]
    enum Mode {
        #[default]
        Open,
        Closed(Shelf),
        Under {
            shelf: u8,
        },
    }

    fn unknown(value: &Value) -> Vec<String> {
        let (read, found) = read::<Library>(value);
        read.unwrap();
        found.unknown.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn ignored_fields_are_reported_with_their_path_and_a_suggestion() {
        let value = json!({
            "mostBook": 1,
            "shelves": { "a": { "height": 1, "hieght": 2 } },
            "readers": [{ "height": 1 }, { "height": 1, "zzz": [{ "x": 1 }] }],
            "mode": { "closed": { "height": 3, "heights": 4 } },
            "rest": { "anything": [1, { "goes": true }] },
        });
        assert_eq!(
            unknown(&value),
            [
                "mode.closed.heights: unknown field; did you mean `height`?",
                "mostBook: unknown field; did you mean `mostBooks`?",
                "readers[1].zzz: unknown field",
                "shelves.a.hieght: unknown field; did you mean `height`?",
            ]
        );
    }

    #[test]
    fn all_types_of_serde_are_decoded() {
        for value in [
            json!({ "mostBooks": null, "oldShelves": { "a": { "height": 1 } } }),
            json!({ "mostBooks": 5, "readers": [{ "height": 1 }], "mode": "open", "rest": 1.5 }),
            json!({ "mode": { "under": { "shelf": 3 } }, "rest": [] }),
        ] {
            let (read, found) = read::<Library>(&value);
            assert_eq!(read.unwrap(), serde_json::from_value::<Library>(value).unwrap());
            assert!(found.unknown.is_empty(), "{found:?}");
        }
    }

    #[test]
    fn a_value_of_another_type_is_reported_with_its_path() {
        for (value, path) in [
            (json!({ "readers": [{ "height": 1 }, { "height": "high" }] }), "readers[1].height"),
            (json!({ "shelves": { "a": {} } }), "shelves.a"),
            (json!({ "mode": "shut" }), "mode"),
            (json!([]), ""),
        ] {
            let (read, found) = read::<Library>(&value);
            assert!(read.is_err(), "{value}");
            assert_eq!(found.failed_at.as_deref(), Some(path));
        }
    }
}
