//! Values of expressions.
//!
//! Strings, lists and maps of the input are borrowed and converted lazily; values created by expressions are
//! reference-counted. Owns equality and ordering, as defined by cel-go and Kubernetes.

mod compare;
mod list;
mod map;
mod type_names;

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;

use serde_json::Value as Json;

pub use list::List;
pub(crate) use list::ListKind;
pub use map::Map;

use super::error::EvalError;
use super::library::authz::Authorization;
use super::library::formats::NamedFormat;
use super::library::semver::Semver;
use super::library::time::Timestamp;
use super::library::url::Url;
use super::types::Type;
use kubewright_apimachinery::quantity::Quantity;

/// A value or an evaluation error.
pub(crate) type Evaluated<'a> = Result<Value<'a>, EvalError>;

/// A CEL value.
#[derive(Debug, Clone)]
pub enum Value<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A signed 64-bit integer.
    Int(i64),
    /// An unsigned 64-bit integer.
    Uint(u64),
    /// A 64-bit floating-point number.
    Double(f64),
    /// A string.
    String(Cow<'a, str>),
    /// Bytes.
    Bytes(Arc<[u8]>),
    /// A duration in nanoseconds.
    Duration(i64),
    /// A timestamp.
    Timestamp(Timestamp),
    /// A list.
    List(List<'a>),
    /// A map or an object.
    Map(Map<'a>),
    /// An optional value.
    Optional(Option<Arc<Value<'a>>>),
    /// A type, by its name.
    Type(Cow<'a, str>),
    /// A value of a Kubernetes library.
    Extension(Extension),
    /// The `authorizer` variable, or a check under construction.
    Authorization(Authorization<'a>),
    /// Data without a schema, which supports only comparison.
    Unknown(&'a Json),
}

/// A value of a Kubernetes library.
#[derive(Debug, Clone)]
pub enum Extension {
    /// A quantity, such as `1Gi`.
    Quantity(Arc<Quantity>),
    /// An IP address.
    Ip(IpAddr),
    /// An IP address and its prefix length.
    Cidr(IpAddr, u8),
    /// A URL.
    Url(Arc<Url>),
    /// A semantic version.
    Semver(Arc<Semver>),
    /// A named format, such as `dns1123Label`.
    Format(&'static NamedFormat),
}

impl<'a> Value<'a> {
    /// Creates a string.
    pub fn string(text: impl Into<Cow<'a, str>>) -> Self {
        Self::String(text.into())
    }

    /// Creates a list.
    pub fn list(items: Vec<Value<'a>>) -> Self {
        Self::List(List::built(items))
    }

    pub(crate) fn strings(items: impl IntoIterator<Item = String>) -> Self {
        Self::list(items.into_iter().map(Self::string).collect())
    }

    /// Creates an optional with a value.
    pub fn some(value: Value<'a>) -> Self {
        Self::Optional(Some(Arc::new(value)))
    }

    /// The name of the value's type.
    pub fn type_name(&self) -> &str {
        match self {
            Self::Null => Type::Null.runtime_name(),
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::String(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::Duration(_) => "google.protobuf.Duration",
            Self::Timestamp(_) => "google.protobuf.Timestamp",
            Self::List(_) => "list",
            Self::Map(map) => map.type_name().unwrap_or("map"),
            Self::Optional(_) => "optional_type",
            Self::Type(_) => "type",
            Self::Extension(value) => value.type_name(),
            Self::Authorization(value) => value.type_name(),
            Self::Unknown(_) => "unknown",
        }
    }

    /// The result of `size()`, which also determines costs; `None` for types without a size.
    pub(crate) fn size(&self) -> Option<usize> {
        Some(match self {
            Self::String(text) => text.chars().count(),
            Self::Bytes(bytes) => bytes.len(),
            Self::List(list) => list.len(),
            Self::Map(map) => map.len(),
            Self::Extension(Extension::Ip(ip)) => ip_length(*ip),
            Self::Extension(Extension::Cidr(_, bits)) => usize::from(bits.div_ceil(8)),
            _ => return None,
        })
    }

    /// Whether this is the zero value of its type.
    pub(crate) fn is_zero(&self) -> bool {
        match self {
            Self::Null => true,
            Self::Bool(value) => !value,
            Self::Int(value) => *value == 0,
            Self::Uint(value) => *value == 0,
            Self::Double(value) => *value == 0.0,
            Self::String(text) => text.is_empty(),
            Self::Bytes(bytes) => bytes.is_empty(),
            Self::Duration(nanos) => *nanos == 0,
            Self::Timestamp(time) => time.is_zero(),
            Self::List(list) => list.is_empty(),
            Self::Map(map) => map.is_empty(),
            Self::Optional(inner) => inner.is_none(),
            Self::Type(_) | Self::Extension(_) | Self::Authorization(_) | Self::Unknown(_) => false,
        }
    }

    /// The value as error messages show it.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Bool(value) => value.to_string(),
            Self::Int(value) => value.to_string(),
            Self::Uint(value) => value.to_string(),
            Self::Double(value) => super::library::convert::double_to_string(*value),
            Self::String(text) | Self::Type(text) => text.clone().into_owned(),
            other => other.type_name().to_owned(),
        }
    }
}

impl Extension {
    fn type_name(&self) -> &'static str {
        match self {
            Self::Quantity(_) => "kubernetes.Quantity",
            Self::Ip(_) => "net.IP",
            Self::Cidr(..) => "net.CIDR",
            Self::Url(_) => "kubernetes.URL",
            Self::Semver(_) => "kubernetes.Semver",
            Self::Format(_) => "kubernetes.NamedFormat",
        }
    }
}

fn ip_length(ip: IpAddr) -> usize {
    if ip.is_ipv4() { 4 } else { 16 }
}
