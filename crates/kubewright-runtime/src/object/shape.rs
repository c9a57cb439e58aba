//! Which Rust types fit which fields: the part of `object!` that the compiler checks.
//!
//! Each marker type stands for the type of a field. Rust types are checked at compile time. The content of JSON values
//! and structs is only known at run time and validated then.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::marker::PhantomData;
use std::sync::Arc;

use k8s_openapi::ByteString;
use k8s_openapi::apimachinery::pkg::api::resource;
use k8s_openapi::apimachinery::pkg::apis::meta::v1;
use k8s_openapi::apimachinery::pkg::util::intstr;
use serde::Serialize;
use serde_json::{Error, Value};

/// A value for a field of the shape `S`.
///
/// Strings, integers, lists, maps and the types of k8s-openapi fit the matching fields. Wrap your own types that
/// serialize to the right JSON in [`Checked`](super::Checked).
#[diagnostic::on_unimplemented(
    message = "a `{Self}` does not fit a field of the shape `{S}`",
    label = "not of the shape `{S}`",
    note = "an Option goes with a question mark: `key?: option`",
    note = "another type that serializes to the right JSON goes as `object::Checked(value)`, which is checked at run time"
)]
pub trait Fits<S> {
    /// Whether the type alone proves that the value fits.
    const STATIC: bool = true;

    /// The value as JSON.
    fn to_json(&self) -> Result<Value, Error>;
}

/// A string.
#[derive(Debug)]
pub enum Text {}
/// A boolean.
#[derive(Debug)]
pub enum Bool {}
/// A 32-bit integer.
#[derive(Debug)]
pub enum Int32 {}
/// A 64-bit integer.
#[derive(Debug)]
pub enum Int64 {}
/// A number.
#[derive(Debug)]
pub enum Number {}
/// Bytes, as base64.
#[derive(Debug)]
pub enum Bytes {}
/// A resource quantity.
#[derive(Debug)]
pub enum Quantity {}
/// An integer or a string.
#[derive(Debug)]
pub enum IntOrString {}
/// A time with a precision of seconds.
#[derive(Debug)]
pub enum Time {}
/// A time with a precision of microseconds.
#[derive(Debug)]
pub enum MicroTime {}
/// An object with known fields.
#[derive(Debug)]
pub enum Struct {}
/// Any JSON.
#[derive(Debug)]
pub enum Json {}
/// A list.
#[derive(Debug)]
pub struct List<S>(PhantomData<S>);
/// A map with string keys.
#[derive(Debug)]
pub struct Map<S>(PhantomData<S>);

macro_rules! fits {
    ($($shape:ty: $($fitting:ty),+;)+) => {
        $(
            $(impl Fits<$shape> for $fitting {
                fn to_json(&self) -> Result<Value, Error> {
                    serde_json::to_value(self)
                }
            })+
            impl Fits<$shape> for Value {
                const STATIC: bool = false;

                fn to_json(&self) -> Result<Value, Error> {
                    Ok(self.clone())
                }
            }
            impl<T: Fits<$shape> + ?Sized> Fits<$shape> for &T {
                const STATIC: bool = T::STATIC;

                fn to_json(&self) -> Result<Value, Error> {
                    (**self).to_json()
                }
            }
        )+
    };
}

fits! {
    Text: str, String, Cow<'_, str>, Box<str>;
    Bool: bool;
    Int32: i8, i16, i32, u8, u16;
    Int64: i8, i16, i32, i64, u8, u16, u32;
    Number: i8, i16, i32, i64, u8, u16, u32, u64, f32, f64;
    Bytes: ByteString;
    Quantity: resource::Quantity, str, String, i32, i64, u32;
    IntOrString: intstr::IntOrString, str, String, i8, i16, i32, u8, u16;
    Time: v1::Time;
    MicroTime: v1::MicroTime;
}

impl Fits<Text> for Arc<str> {
    fn to_json(&self) -> Result<Value, Error> {
        Ok(Value::from(&**self))
    }
}

impl<T: Serialize> Fits<Struct> for T {
    const STATIC: bool = false;

    fn to_json(&self) -> Result<Value, Error> {
        serde_json::to_value(self)
    }
}

impl<T: Serialize> Fits<Json> for T {
    fn to_json(&self) -> Result<Value, Error> {
        serde_json::to_value(self)
    }
}

impl<S, T: Serialize> Fits<S> for super::Checked<T> {
    const STATIC: bool = false;

    fn to_json(&self) -> Result<Value, Error> {
        serde_json::to_value(&self.0)
    }
}

impl<S, T: Fits<S>> Fits<List<S>> for [T] {
    const STATIC: bool = T::STATIC;

    fn to_json(&self) -> Result<Value, Error> {
        self.iter().map(Fits::to_json).collect()
    }
}

impl<S, T: Fits<S>> Fits<List<S>> for Vec<T> {
    const STATIC: bool = T::STATIC;

    fn to_json(&self) -> Result<Value, Error> {
        self.as_slice().to_json()
    }
}

impl<S, T: Fits<S>, const N: usize> Fits<List<S>> for [T; N] {
    const STATIC: bool = T::STATIC;

    fn to_json(&self) -> Result<Value, Error> {
        self.as_slice().to_json()
    }
}

impl<S> Fits<List<S>> for Value {
    const STATIC: bool = false;

    fn to_json(&self) -> Result<Value, Error> {
        Ok(self.clone())
    }
}

impl<S, T: Fits<List<S>> + ?Sized> Fits<List<S>> for &T {
    const STATIC: bool = T::STATIC;

    fn to_json(&self) -> Result<Value, Error> {
        (**self).to_json()
    }
}

impl<S, K: AsRef<str>, T: Fits<S>> Fits<Map<S>> for BTreeMap<K, T> {
    const STATIC: bool = T::STATIC;

    fn to_json(&self) -> Result<Value, Error> {
        entries(self)
    }
}

impl<S, K: AsRef<str>, T: Fits<S>, H> Fits<Map<S>> for HashMap<K, T, H> {
    const STATIC: bool = T::STATIC;

    fn to_json(&self) -> Result<Value, Error> {
        entries(self)
    }
}

impl<S> Fits<Map<S>> for Value {
    const STATIC: bool = false;

    fn to_json(&self) -> Result<Value, Error> {
        Ok(self.clone())
    }
}

impl<S, T: Fits<Map<S>> + ?Sized> Fits<Map<S>> for &T {
    const STATIC: bool = T::STATIC;

    fn to_json(&self) -> Result<Value, Error> {
        (**self).to_json()
    }
}

fn entries<'a, S, K: AsRef<str> + 'a, T: Fits<S> + 'a>(
    map: impl IntoIterator<Item = (&'a K, &'a T)>,
) -> Result<Value, Error> {
    map.into_iter().map(|(key, value)| Ok((key.as_ref().to_owned(), value.to_json()?))).collect()
}
