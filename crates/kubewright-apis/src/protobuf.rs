//! Kubernetes' protobuf encoding: decoding to and encoding from JSON.
//!
//! A body is an envelope (`k8s\0`, then `apiVersion`, `kind` and the object) around a message whose field numbers are
//! in `facts/protobuf.txt`. Built-in kinds, their lists, Status, discovery documents and PartialObjectMetadata have a
//! protobuf form; custom resources and Tables have none. No crate is used: objects are JSON values here, and generated
//! types of all kinds would only be converted.

mod decode;
mod encode;
mod numbers;
mod reader;
#[cfg(test)]
mod tests;

use crate::facts::{self, Type};
use kubewright_apimachinery::gvk::split_api_version;
use kubewright_apimachinery::json;

pub use decode::decode;
pub use encode::{encode, encode_member, envelope, list_head, watch_frame};

/// The media type.
pub const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";
/// The end of every body: no content encoding, no content type.
pub const TAIL: &[u8] = b"\x1a\0\"\0";
/// The start of every body.
const MAGIC: &[u8] = b"k8s\0";
/// The largest depth of nested messages; as JSON.
const MAX_DEPTH: usize = json::MAX_DEPTH;

/// The bytes are not an object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProtobufError {
    /// The envelope is missing.
    #[error("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")]
    NoMagic,
    /// A message ends too early, or is wrong in itself.
    #[error("unexpected EOF")]
    Truncated,
    /// The wire type of a value does not fit its field.
    #[error("proto: wrong wireType = {wire} for field {field}")]
    WireType {
        /// The wire type that was found.
        wire: u8,
        /// The field, as JSON calls it.
        field: &'static str,
    },
    /// Text is not UTF-8.
    #[error("string field contains invalid UTF-8")]
    Utf8,
    /// Messages nest too deep.
    #[error("exceeded max depth")]
    Depth,
    /// A time is outside the years that JSON can show.
    #[error("Time.MarshalJSON: year outside of range [0,9999]")]
    Time,
    /// A field that holds JSON holds something else.
    #[error("a raw field contains invalid JSON")]
    Json,
    /// No such kind is built in.
    #[error("no kind {kind:?} is registered for version {api_version:?}")]
    UnknownKind {
        /// `apiVersion` of the envelope.
        api_version: String,
        /// `kind` of the envelope.
        kind: String,
    },
}

type Result<T> = std::result::Result<T, ProtobufError>;

/// How the message of a kind is read and written.
enum Message {
    /// Along its type.
    Typed(&'static Type),
    /// `PartialObjectMetadata`.
    Metadata,
    /// `PartialObjectMetadataList`.
    MetadataList,
    /// `APIGroupDiscoveryList`, which is only written.
    Discovery,
}

impl Message {
    fn of(api_version: &str, kind: &str) -> Option<Self> {
        let (group, version) = split_api_version(api_version);
        match (group, kind) {
            ("meta.k8s.io", "PartialObjectMetadata") => return Some(Self::Metadata),
            ("meta.k8s.io", "PartialObjectMetadataList") => return Some(Self::MetadataList),
            ("apidiscovery.k8s.io", "APIGroupDiscoveryList") if version == "v2" => {
                return Some(Self::Discovery);
            }
            _ => {}
        }
        // Status, DeleteOptions and others are served in every group.
        let found = facts::type_of_kind(group, version, kind)
            .filter(|ty| ty.kind_of.is_some_and(|of| split_api_version(of) == (group, version)));
        found.or_else(|| facts::type_named(&format!("meta.v1.{kind}"))).map(Self::Typed)
    }
}
