//! Request bodies: size, media type, and decoding into objects of the expected type.

use std::borrow::Cow;
use std::time::Duration;

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use http_body_util::BodyExt as _;
use kubewright_apimachinery::decode::{self, Decoded};
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::json::{self, ParseOptions, Parsed};
use kubewright_apimachinery::status::ApiError;
use kubewright_apimachinery::types::Type;
use kubewright_apis::protobuf;
use serde_json::Value;
use serde_saphyr::options::DuplicateKeyPolicy;
use tokio::sync::SemaphorePermit;

use crate::registry::resource::is_registered;
use crate::request::Request;
use crate::request::options::FieldValidation;
use crate::server::RequestLimits;
use crate::stack::on_large_stack;

/// Maximum size of a body in bytes.
pub(crate) const MAX_BODY: usize = 3 << 20;

/// Memory for bodies is reserved in steps of this size.
const RESERVED_AT_ONCE: usize = 64 << 10;

/// The supported media types, as error messages list them.
const ACCEPTED: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

/// A body that is not read may be sent for this long before the connection is closed.
const DRAIN_TIME: Duration = Duration::from_secs(2);
/// The most that is read of a body that is not used.
const DRAIN_BYTES: usize = 16 << 20;

/// Reads the rest of a body that was not used. Otherwise a client on HTTP/1.1 that is still sending gets a connection
/// reset instead of the response. Returns whether the end was reached.
pub(crate) async fn drain<B>(body: &mut B) -> bool
where
    B: http_body::Body + Unpin,
{
    if body.is_end_stream() {
        return true;
    }
    let read = async {
        let mut left = DRAIN_BYTES;
        while let Some(Ok(frame)) = body.frame().await {
            let size = frame.data_ref().map_or(0, bytes::Buf::remaining);
            let Some(rest) = left.checked_sub(size) else { return false };
            left = rest;
        }
        true
    };
    tokio::time::timeout(DRAIN_TIME, read).await.unwrap_or(false)
}

/// Reads a complete body, up to the limit. The memory of large bodies is reserved until the permits are dropped.
pub(crate) async fn read<'l, B>(
    body: &mut B,
    limits: &'l RequestLimits,
) -> Result<(Bytes, Vec<SemaphorePermit<'l>>), ApiError>
where
    B: http_body::Body + Unpin,
    B::Error: std::fmt::Display,
{
    // Most bodies arrive in one chunk, which needs no copy.
    let mut first = Bytes::new();
    let mut whole = BytesMut::new();
    let (mut reserved, mut unreserved) = (Vec::new(), 0);
    while let Some(frame) = body.frame().await {
        let frame =
            frame.map_err(|error| ApiError::bad_request(format!("unable to read the body: {error}")))?;
        let Ok(mut data) = frame.into_data() else { continue };
        let read = data.remaining();
        if first.len() + whole.len() + read > MAX_BODY {
            return Err(too_large(&format!("limit is {MAX_BODY}")));
        }
        unreserved += read;
        if unreserved >= RESERVED_AT_ONCE {
            reserved.push(limits.reserve(unreserved)?);
            unreserved = 0;
        }
        if first.is_empty() && whole.is_empty() {
            first = data.copy_to_bytes(read);
            continue;
        }
        whole.extend_from_slice(&std::mem::take(&mut first));
        whole.put(data);
    }
    Ok((if first.is_empty() { whole.freeze() } else { first }, reserved))
}

pub(crate) fn too_large(why: &str) -> ApiError {
    ApiError::new(413, "RequestEntityTooLarge", format!("Request entity too large: {why}"))
}

/// The encoding of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Media {
    Json,
    Yaml,
    Protobuf,
}

/// The media type of an object in a request's body.
pub(crate) fn media(request: &Request) -> Result<Media, ApiError> {
    let given = request.header(http::header::CONTENT_TYPE);
    match &*essence(given).to_ascii_lowercase() {
        "application/json" => Ok(Media::Json),
        "" if given.is_empty() => Ok(Media::Json),
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

/// Decodes a body as an object of one kind.
pub(crate) fn decode_as(
    expected: Gvk<'_>,
    ty: &'static Type,
    media: Media,
    bytes: &[u8],
) -> Result<Decoded, ApiError> {
    let (json, repeated) = body_json(expected.kind, media, bytes)?;
    let json = &*json;
    let parsed = parse_kind(expected.kind, json, bytes)?;
    check_kind(expected, &parsed.value, bytes)?;
    let mut decoded = if parsed.value.is_null() {
        // Start from an empty object, with defaults.
        let mut value = Value::Object(serde_json::Map::new());
        decode::complete(ty, &mut value).map_err(|error| ApiError::bad_request(error.to_string()))?;
        Decoded { value, strict: Vec::new() }
    } else {
        decode::decode_parsed(ty, parsed, json).map_err(|error| {
            // Upstream reports the body's version, but the expected kind.
            ApiError::bad_request(format!(
                "{} in version {:?} cannot be handled as a {}: {error}",
                expected.kind, expected.version, expected.kind
            ))
        })?
    };
    decoded.strict.splice(..0, repeated);
    let object = decoded.value.as_object_mut().ok_or_else(|| ApiError::internal("no object was decoded"))?;
    object.insert("apiVersion".into(), expected.api_version().into());
    object.insert("kind".into(), expected.kind.into());
    Ok(decoded)
}

/// The body of an object as JSON. Other bodies are rejected with upstream's error.
pub(crate) fn body_json<'a>(
    expected: &str,
    media: Media,
    bytes: &'a [u8],
) -> Result<(Cow<'a, [u8]>, Option<String>), ApiError> {
    match media {
        Media::Json => Ok((Cow::Borrowed(bytes), None)),
        Media::Yaml => {
            let (value, repeated) = yaml(first_document(bytes))
                .map_err(|why| unrecognized(expected, &format!("yaml: {why}"), bytes))?;
            Ok((Cow::Owned(json::to_vec(&value)), repeated))
        }
        Media::Protobuf => {
            let empty = match bytes {
                [] => Some("empty data"),
                b"k8s\0" => Some("empty body"),
                _ => None,
            };
            if let Some(why) = empty {
                return Err(unrecognized(expected, why, bytes));
            }
            let value =
                on_large_stack(|| protobuf::decode(bytes)).map_err(|error| match error.to_string() {
                    why if why.starts_with("provided data") => unrecognized(expected, &why, bytes),
                    why => ApiError::bad_request(why),
                })?;
            Ok((Cow::Owned(json::to_vec(&value)), None))
        }
    }
}

/// Parses a body and checks that it has a kind. `bytes` is the body as sent. Errors have upstream's wording.
pub(crate) fn parse_kind(expected: &str, json: &[u8], bytes: &[u8]) -> Result<Parsed, ApiError> {
    let unrecognized = |why: String| {
        unrecognized(expected, &format!("couldn't get version/kind; json parse error: {why}"), bytes)
    };
    let parsed =
        json::parse(json, ParseOptions::default()).map_err(|error| unrecognized(error.to_string()))?;
    let go = "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }";
    match &parsed.value {
        Value::Object(_) | Value::Null => {}
        other => {
            let kind = json_kind(other);
            return Err(unrecognized(format!("json: cannot unmarshal {kind} into Go value of type {go}")));
        }
    }
    for name in ["apiVersion", "kind"] {
        let value = &parsed.value[name];
        if !value.is_null() && !value.is_string() {
            let kind = json_kind(value);
            return Err(unrecognized(format!(
                "json: cannot unmarshal {kind} into Go struct field .{name} of type string"
            )));
        }
    }
    Ok(parsed)
}

/// The error for a body that is not an object of the kind.
pub(crate) fn unrecognized(expected: &str, why: &str, json: &[u8]) -> ApiError {
    let body = shown(json);
    ApiError::bad_request(format!(
        "the object provided is unrecognized (must be of type {expected}): {why} ({body})"
    ))
}

/// Checks that the body's apiVersion and kind, if set, match the path.
fn check_kind(expected: Gvk<'_>, found: &Value, json: &[u8]) -> Result<(), ApiError> {
    let api_version = found["apiVersion"].as_str().unwrap_or_default();
    if api_version.matches('/').count() > 1 {
        let why = format!("unexpected GroupVersion string: {api_version}");
        return Err(unrecognized(expected.kind, &why, json));
    }
    let given = Gvk::of(found);
    let given = Gvk {
        group: if api_version.is_empty() { expected.group } else { given.group },
        version: if api_version.is_empty() { expected.version } else { given.version },
        kind: if given.kind.is_empty() { expected.kind } else { given.kind },
    };
    if given != expected
        && given.kind == expected.kind
        && given.group == expected.group
        && is_registered(given)
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

/// Checks that one kind is acceptable as another. Errors have upstream's wording.
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

pub(crate) fn json_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The start of a body for error messages: text if it is JSON-like, otherwise hex.
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

/// Converts a body to JSON. The second value is the strict validation error for duplicate YAML keys; the last
/// value of a duplicate key is used.
pub(crate) fn to_json(media: Media, bytes: &[u8]) -> Result<(Cow<'_, [u8]>, Option<String>), ApiError> {
    match media {
        Media::Json => Ok((Cow::Borrowed(bytes), None)),
        Media::Yaml => {
            let (value, repeated) = yaml(bytes).map_err(|why| {
                ApiError::bad_request(format!("error converting YAML to JSON: yaml: {why}"))
            })?;
            Ok((Cow::Owned(json::to_vec(&value)), repeated))
        }
        Media::Protobuf => {
            let value = on_large_stack(|| protobuf::decode(bytes))
                .map_err(|error| ApiError::bad_request(error.to_string()))?;
            Ok((Cow::Owned(json::to_vec(&value)), None))
        }
    }
}

fn yaml(bytes: &[u8]) -> Result<(Value, Option<String>), YamlError> {
    let value = read_yaml(bytes, DuplicateKeyPolicy::LastWins)?;
    let repeated = match read_yaml(bytes, DuplicateKeyPolicy::Error) {
        Err(YamlError::Repeated { key, line }) => Some(already_set(line, &key)),
        _ => None,
    };
    Ok((value, repeated))
}

/// Parses the first document of an apply configuration in JSON or YAML. The second value is the strict
/// validation error for duplicate keys; the last value of a duplicate key is used.
pub(crate) fn applied(bytes: &[u8]) -> Result<(Value, Option<String>), String> {
    if let Ok(parsed) = json::parse(bytes, ParseOptions::default()) {
        let repeated = parsed.strict_errors().next();
        // Assumes JSON in one line: the error names line 1.
        let repeated = repeated.and_then(|text| Some(text.split('"').nth(1)?.rsplit('.').next()?.to_owned()));
        return Ok((parsed.value, repeated.map(|key| already_set(1, &key))));
    }
    yaml(first_document(bytes)).map_err(|error| format!("error converting YAML to JSON: yaml: {error}"))
}

/// The prefix of Go's list of YAML errors. Warnings omit it.
const UNMARSHAL_ERRORS: &str = "yaml: unmarshal errors:\n  ";

fn already_set(line: u64, key: &str) -> String {
    format!("{UNMARSHAL_ERRORS}line {line}: key {key:?} already set in map")
}

/// A strict validation error as a warning.
pub(crate) fn warning(complaint: &str) -> String {
    complaint.strip_prefix(UNMARSHAL_ERRORS).unwrap_or(complaint).to_owned()
}

fn first_document(bytes: &[u8]) -> &[u8] {
    let separator = b"\n---";
    let mut from = 0;
    while let Some(at) = bytes[from..].windows(separator.len()).position(|window| window == separator) {
        let end = from + at;
        let rest = &bytes[end + separator.len()..];
        // Comments and markers alone are not a document.
        let blank = |line: &[u8]| {
            let line = line.trim_ascii();
            line.is_empty() || line == b"---" || line.starts_with(b"#") || line.starts_with(b"%")
        };
        let empty = bytes[..end].split(|byte| *byte == b'\n').all(blank);
        if rest.first().is_none_or(u8::is_ascii_whitespace) && !empty {
            return &bytes[..=end];
        }
        from = end + separator.len();
    }
    bytes
}

/// Why a text is not valid YAML.
#[derive(Debug, thiserror::Error)]
enum YamlError {
    #[error("line {line}: key {key:?} already set in map")]
    Repeated { key: String, line: u64 },
    #[error("{0}")]
    Other(String),
}

/// Parses YAML on a larger stack: the parser is recursive.
fn read_yaml(bytes: &[u8], duplicate_keys: DuplicateKeyPolicy) -> Result<Value, YamlError> {
    let text = std::str::from_utf8(bytes).map_err(|error| YamlError::Other(error.to_string()))?;
    let read = || {
        let budget = serde_saphyr::budget! { max_depth: json::MAX_DEPTH };
        let options = serde_saphyr::options! { budget: budget, duplicate_keys: duplicate_keys };
        serde_saphyr::from_str_with_options(text, options).map_err(|error| yaml_error(&error, text))
    };
    on_large_stack(read)
}

fn yaml_error(error: &serde_saphyr::Error, text: &str) -> YamlError {
    match error.without_snippet() {
        serde_saphyr::Error::DuplicateMappingKey { key: Some(key), location } => {
            YamlError::Repeated { key: key.clone(), line: location.line() }
        }
        other => YamlError::Other(go_message(other, text)),
    }
}

/// The message of Go's parser, where its wording is known to differ.
fn go_message(error: &serde_saphyr::Error, text: &str) -> String {
    let message = error.to_string();
    let line = error.location().map_or(0, |location| location.line());
    if message.contains("recursive references") {
        let anchor = text.split_once('&').map_or("", |(_, rest)| rest);
        let name =
            anchor.split(|c: char| c.is_whitespace() || "[]{},".contains(c)).next().unwrap_or_default();
        return format!("anchor '{name}' value contains itself");
    }
    let words = if message.contains("unclosed bracket") {
        "did not find expected node content"
    } else if message.contains("tabs disallowed") {
        "found character that cannot start any token"
    } else {
        return message;
    };
    format!("line {line}: {words}")
}

/// Handles unknown and duplicate fields by the request's `fieldValidation`: an error, warnings, or nothing.
pub(crate) fn strict(strict: &[String], validation: FieldValidation) -> Result<Vec<String>, ApiError> {
    match validation {
        _ if strict.is_empty() => Ok(Vec::new()),
        FieldValidation::Ignore => Ok(Vec::new()),
        FieldValidation::Warn => Ok(strict.iter().map(|complaint| warning(complaint)).collect()),
        FieldValidation::Strict => {
            Err(ApiError::bad_request(format!("strict decoding error: {}", strict.join(", "))))
        }
    }
}
