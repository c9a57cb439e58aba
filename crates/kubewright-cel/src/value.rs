//! Values of expressions.
//!
//! Strings, lists and maps of the data are borrowed and looked at only where an expression looks; what an
//! expression makes is shared. Owns equality and order, as cel-go and Kubernetes' own data types have them.

mod compare;
mod list;
mod map;

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

/// A value, or the error that took its place.
pub(crate) type Evaluated<'a> = Result<Value<'a>, EvalError>;

/// A value of an expression.
#[derive(Debug, Clone)]
pub enum Value<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A signed number.
    Int(i64),
    /// An unsigned number.
    Uint(u64),
    /// A floating point number.
    Double(f64),
    /// A string.
    String(Cow<'a, str>),
    /// Bytes.
    Bytes(Arc<[u8]>),
    /// A length of time in nanoseconds.
    Duration(i64),
    /// A point in time.
    Timestamp(Timestamp),
    /// A list.
    List(List<'a>),
    /// A map, or an object.
    Map(Map<'a>),
    /// A value that may be missing.
    Optional(Option<Arc<Value<'a>>>),
    /// A type, by its name.
    Type(Cow<'a, str>),
    /// A value of one of Kubernetes' libraries.
    Extension(Extension),
    /// The authorizer, or a check of it.
    Authorization(Authorization<'a>),
    /// Data without a schema: it can be compared, and nothing else.
    Unknown(&'a Json),
}

/// Values of Kubernetes' libraries.
#[derive(Debug, Clone)]
pub enum Extension {
    /// An amount, such as `1Gi`.
    Quantity(Arc<Quantity>),
    /// An IP address.
    Ip(IpAddr),
    /// An IP address and the length of its prefix.
    Cidr(IpAddr, u8),
    /// A URL.
    Url(Arc<Url>),
    /// A semantic version.
    Semver(Arc<Semver>),
    /// A rule for strings, such as `dns1123Label`.
    Format(&'static NamedFormat),
}

impl<'a> Value<'a> {
    /// A string.
    pub fn string(text: impl Into<Cow<'a, str>>) -> Self {
        Self::String(text.into())
    }

    /// A list of what is given.
    pub fn list(items: Vec<Value<'a>>) -> Self {
        Self::List(List::built(items))
    }

    pub(crate) fn strings(items: impl IntoIterator<Item = String>) -> Self {
        Self::list(items.into_iter().map(Self::string).collect())
    }

    /// A value that is there.
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
            Self::Map(_) => "map",
            Self::Optional(_) => "optional_type",
            Self::Type(_) => "type",
            Self::Extension(value) => value.type_name(),
            Self::Authorization(value) => value.type_name(),
            Self::Unknown(_) => "unknown",
        }
    }

    /// The size as `size()` tells it and as costs are counted by; `None` for what has none.
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

    /// Whether the value is empty or zero.
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

    /// The value as an error message shows it.
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
