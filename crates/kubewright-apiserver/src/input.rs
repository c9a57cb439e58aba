//! Bodies of requests: size, media type, and decoding into objects of the expected type.

use std::borrow::Cow;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use kubewright_apimachinery::decode::{self, Decoded};
use kubewright_apimachinery::facts::Type;
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::json::{self, ParseOptions};
use kubewright_apimachinery::protobuf;
use kubewright_apimachinery::status::ApiError;
use serde_json::Value;

use crate::options::FieldValidation;
use crate::request::Request;
use crate::resources::{Served, is_registered};

/// The largest body, in bytes.
pub(crate) const MAX_BODY: usize = 3 << 20;

/// The stack that reading YAML gets: reading recurses, and takes more of it than a worker has.
const YAML_STACK: usize = 64 << 20;

/// Media types in which bodies are read, as messages list them.
const ACCEPTED: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

/// Reads a body whole, up to the limit.
pub(crate) async fn read<B>(mut body: B) -> Result<Bytes, ApiError>
where
    B: http_body::Body + Unpin,
    B::Error: std::fmt::Display,
{
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame =
            frame.map_err(|error| ApiError::bad_request(format!("unable to read the body: {error}")))?;
        if let Ok(mut data) = frame.into_data() {
            use bytes::Buf as _;
            while data.has_remaining() {
                let chunk = data.chunk();
                if whole.len() + chunk.len() > MAX_BODY {
                    return Err(too_large(&format!("limit is {MAX_BODY}")));
                }
                whole.extend_from_slice(chunk);
                let read = chunk.len();
                data.advance(read);
            }
        }
    }
    Ok(whole.freeze())
}

pub(crate) fn too_large(why: &str) -> ApiError {
    ApiError::new(413, "RequestEntityTooLarge", format!("Request entity too large: {why}"))
}

/// What a body is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Media {
    Json,
    Yaml,
    Protobuf,
}

/// The media type of an object in a request's body.
pub(crate) fn media(request: &Request) -> Result<Media, ApiError> {
    let given = request.header(http::header::CONTENT_TYPE);
    match essence(given) {
        "" | "application/json" => Ok(Media::Json),
        "application/yaml" => Ok(Media::Yaml),
        "application/vnd.kubernetes.protobuf" => Ok(Media::Protobuf),
        _ => Err(ApiError::new(
            415,
            "UnsupportedMediaType",
            format!(
                "the body of the request was in an unknown format - accepted media types include: {ACCEPTED}"
            ),
        )),
    }
}

/// A media type without its parameters.
pub(crate) fn essence(media: &str) -> &str {
    media.split(';').next().unwrap_or_default().trim()
}

/// Decodes a body as an object of `served`, whatever of its kinds the body names.
pub(crate) fn decode(served: &Served, media: Media, bytes: &[u8]) -> Result<Decoded, ApiError> {
    decode_as(served.gvk(), served.ty, media, bytes)
}

/// Decodes a body as an object of one kind.
pub(crate) fn decode_as(
    expected: Gvk<'_>,
    ty: &'static Type,
    media: Media,
    bytes: &[u8],
) -> Result<Decoded, ApiError> {
    let json = &*to_json(media, bytes)?;
    check_kind(expected, json)?;
    let mut decoded = if json.trim_ascii() == b"null" {
        Decoded { value: Value::Object(serde_json::Map::new()), strict: Vec::new() }
    } else {
        decode::decode(ty, json).map_err(|error| {
            // The version is that of the body, the kind the expected one.
            ApiError::bad_request(format!(
                "{} in version {:?} cannot be handled as a {}: {error}",
                expected.kind, expected.version, expected.kind
            ))
        })?
    };
    // A body `null` decodes to the zero object.
    let object = decoded.value.as_object_mut().ok_or_else(|| ApiError::internal("no object was decoded"))?;
    object.insert("apiVersion".into(), expected.api_version().into());
    object.insert("kind".into(), expected.kind.into());
    decode::complete(ty, &mut decoded.value).map_err(|error| ApiError::bad_request(error.to_string()))?;
    Ok(decoded)
}

/// What a body says it is must be what the path wants, or nothing.
fn check_kind(expected: Gvk<'_>, json: &[u8]) -> Result<(), ApiError> {
    let unrecognized = |why: &str| {
        ApiError::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): {why} ({})",
            expected.kind,
            shown(json)
        ))
    };
    let parsed = json::parse(json, ParseOptions::default())
        .map_err(|error| unrecognized(&format!("couldn't get version/kind; json parse error: {error}")))?;
    let found = &parsed.value;
    let go = "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }";
    match found {
        Value::Object(_) | Value::Null => {}
        other => {
            let why = format!(
                "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go value of type {go}",
                json_kind(other)
            );
            return Err(unrecognized(&why));
        }
    }
    for name in ["apiVersion", "kind"] {
        let value = &found[name];
        if !value.is_null() && !value.is_string() {
            let why = format!(
                "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go struct field .{name} of type string",
                json_kind(value)
            );
            return Err(unrecognized(&why));
        }
    }
    let api_version = found["apiVersion"].as_str().unwrap_or_default();
    if api_version.matches('/').count() > 1 {
        return Err(unrecognized(&format!("unexpected GroupVersion string: {api_version}")));
    }
    let given = Gvk::of(found);
    let given = Gvk {
        group: if api_version.is_empty() { expected.group } else { given.group },
        version: if api_version.is_empty() { expected.version } else { given.version },
        kind: if given.kind.is_empty() { expected.kind } else { given.kind },
    };
    if is_registered(given)
        && given.kind == expected.kind
        && given.group == expected.group
        && given != expected
    {
        return Err(ApiError::bad_request(format!(
            "the API version in the data ({}) does not match the expected API version ({})",
            given.api_version(),
            expected.api_version()
        )));
    }
    check_registered(expected, given).map_err(|why| {
        ApiError::bad_request(format!(
            "{} in version {:?} cannot be handled as a {}: {why}",
            given.kind, given.version, expected.kind
        ))
    })
}

/// Why an object of one kind is none of another, in upstream's words.
pub(crate) fn check_registered(expected: Gvk<'_>, given: Gvk<'_>) -> Result<(), String> {
    if given == expected {
        return Ok(());
    }
    if is_registered(given) {
        let group = expected.group.split('.').next().unwrap_or_default();
        let internal = if group.is_empty() { "core" } else { group };
        return Err(format!(
            "converting ({}.{}) to ({internal}.{}): unknown conversion",
            given.version, given.kind, expected.kind
        ));
    }
    Err(format!(
        "no kind {:?} is registered for version {:?} in scheme \"pkg/api/legacyscheme/scheme.go:30\"",
        given.kind,
        given.api_version()
    ))
}

fn json_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The start of a body, as messages show it: text if it is JSON-like, else hex.
fn shown(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    if bytes.is_empty() {
        return "<empty>".to_owned();
    }
    let looks_like_json = bytes.trim_ascii_start().first() == Some(&b'{');
    let cut = &bytes[..bytes.len().min(30)];
    let dots = if bytes.len() > 30 { " ..." } else { "" };
    if looks_like_json {
        return format!("{}{dots}", String::from_utf8_lossy(cut));
    }
    let mut hex = String::new();
    for byte in cut {
        write!(hex, "{byte:02x}").unwrap_or_default();
    }
    hex + dots
}

/// A body as JSON text, whatever it is written in.
pub(crate) fn to_json(media: Media, bytes: &[u8]) -> Result<Cow<'_, [u8]>, ApiError> {
    match media {
        Media::Json => Ok(Cow::Borrowed(bytes)),
        Media::Yaml => {
            let value = yaml(bytes).map_err(|why| {
                ApiError::bad_request(format!("error converting YAML to JSON: yaml: {why}"))
            })?;
            Ok(Cow::Owned(json::to_vec(&value)))
        }
        Media::Protobuf => {
            let value = protobuf::decode(bytes).map_err(|error| ApiError::bad_request(error.to_string()))?;
            Ok(Cow::Owned(json::to_vec(&value)))
        }
    }
}

/// Reads YAML, on a thread of its own for the sake of its stack.
fn yaml(bytes: &[u8]) -> Result<Value, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    let read = || {
        let options = serde_saphyr::options! { budget: serde_saphyr::budget! { max_depth: json::MAX_DEPTH } };
        serde_saphyr::from_str_with_options(text, options).map_err(|error| error.to_string())
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(YAML_STACK).spawn_scoped(scope, read);
        match thread.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err("the reader failed".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    })
}

/// Applies a request's wish about unknown and duplicate fields: an error, warnings, or nothing.
pub(crate) fn strict(strict: &[String], validation: FieldValidation) -> Result<Vec<String>, ApiError> {
    match validation {
        _ if strict.is_empty() => Ok(Vec::new()),
        FieldValidation::Ignore => Ok(Vec::new()),
        FieldValidation::Warn => Ok(strict.to_vec()),
        FieldValidation::Strict => {
            Err(ApiError::bad_request(format!("strict decoding error: {}", strict.join(", "))))
        }
    }
}
