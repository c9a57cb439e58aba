//! Responses: encodes objects, lists and errors in the negotiated form.
//!
//! An object is returned complete, as metadata only, or as a Table; in JSON, YAML or protobuf. Encodings are
//! computed once per version and form, and shared.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use kubewright_apimachinery::json;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::status::ApiError;
use kubewright_apis::{protobuf, table};
use kubewright_structured_merge::packed;
use serde_json::{Value, json};

use crate::encoding::body::{Body, Items};
use crate::registry::resource::Resource;
use crate::stack::on_large_stack;
use crate::storage::StoredObject;

/// Forms of a version. The cache key of an encoding is the resource's tag combined with one of these.
const FULL: u64 = 0;
const ITEM: u64 = 1;
/// The object as converted by a conversion webhook.
const CONVERTED: u64 = 2;
/// The object as field 2 of a protobuf message, as in objects and lists.
const PROTOBUF: u64 = 3;
const FORMS: u64 = 4;

/// The form in which a client requests objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    /// The complete object.
    Whole,
    /// PartialObjectMetadata, with the version of `meta.k8s.io`.
    Metadata(&'static str),
    /// PartialObjectMetadataList, with the version of `meta.k8s.io`.
    MetadataList(&'static str),
    /// A Table, with the version of `meta.k8s.io` and what each row includes of its object.
    Table(&'static str, Include),
}

/// What a table row includes of its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Include {
    Nothing,
    Metadata,
    Object,
}

/// The encoding of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Json,
    Yaml,
    Protobuf,
}

/// The form of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Format {
    pub(crate) view: View,
    pub(crate) encoding: Encoding,
}

/// An object for a response: a stored version, or one that was not stored.
pub(crate) enum Shown<'a> {
    Version(&'a StoredObject),
    Value(&'a Value),
}

impl Shown<'_> {
    /// The object in the version of `resource`.
    pub(crate) fn object(&self, resource: &Resource) -> Value {
        match self {
            Self::Version(version) => object(resource, version),
            Self::Value(value) => (*value).clone(),
        }
    }
}

/// A stored version as an object of `resource`, with `apiVersion` and `kind`.
pub(crate) fn object(resource: &Resource, version: &StoredObject) -> Value {
    match converted(resource, version) {
        Some(bytes) => {
            json::parse(&bytes, json::ParseOptions::default()).map(|parsed| parsed.value).unwrap_or_default()
        }
        None => resource.strategy.read_stored(version.object()),
    }
}

/// The cached result of a conversion webhook for a stored version.
pub(crate) fn converted(resource: &Resource, version: &StoredObject) -> Option<Bytes> {
    resource.converter()?;
    version.known(resource.tag * FORMS + CONVERTED)
}

/// Caches the result of a conversion webhook for a stored version.
pub(crate) fn keep_converted(resource: &Resource, version: &StoredObject, bytes: Bytes) {
    version.encoded(resource.tag * FORMS + CONVERTED, || bytes);
}

/// As [`object`], packed.
pub(crate) fn packed(resource: &Resource, version: &StoredObject) -> Value {
    match converted(resource, version) {
        Some(bytes) => packed::parse(&bytes).unwrap_or_default(),
        None => resource.strategy.read_stored(packed::parse(&version.json).unwrap_or_default()),
    }
}

pub(crate) fn set_kind(object: &mut Value, api_version: String, kind: &str) {
    if let Some(object) = object.as_object_mut() {
        object.insert("apiVersion".to_owned(), api_version.into());
        object.insert("kind".to_owned(), kind.into());
    }
}

/// A complete stored version as JSON.
pub(crate) fn whole(resource: &Resource, version: &StoredObject) -> Bytes {
    if resource.is_storage_form() {
        // Not cached: that would double the memory of every object.
        return join([kind_prefix(resource).as_bytes(), &version.json[1..]]);
    }
    version.known(resource.tag * FORMS + FULL).unwrap_or_else(|| rendered(resource, version))
}

/// As [`whole`], cached for the other watches and lists.
fn shared_whole(resource: &Resource, version: &StoredObject) -> Bytes {
    if resource.is_storage_form() {
        return whole(resource, version);
    }
    version.encoded(resource.tag * FORMS + FULL, || rendered(resource, version))
}

fn rendered(resource: &Resource, version: &StoredObject) -> Bytes {
    Bytes::from(json::to_vec(&object(resource, version)))
}

/// The start of an object that is returned as stored.
fn kind_prefix(resource: &Resource) -> String {
    format!(r#"{{"kind":"{}","apiVersion":"{}","#, resource.kind(), resource.gvk().api_version())
}

/// Stored versions as list items: without `apiVersion` and `kind`, except for custom resources.
pub(crate) fn items(resource: &Arc<Resource>, versions: Vec<Arc<StoredObject>>) -> Items {
    if resource.is_storage_form() {
        return Items::Stored(versions);
    }
    let resource = resource.clone();
    Items::rendered(versions, Box::new(move |version| item(&resource, version)))
}

/// Stored versions as list items in protobuf.
pub(crate) fn protobuf_items(resource: &Resource, versions: &[Arc<StoredObject>]) -> Vec<Bytes> {
    versions.iter().map(|version| protobuf_member(resource, version)).collect()
}

/// A stored version as field 2 of a protobuf message. Built-in kinds only.
fn protobuf_member(resource: &Resource, version: &StoredObject) -> Bytes {
    version.encoded(resource.tag * FORMS + PROTOBUF, || {
        let object = if resource.is_storage_form() { version.object() } else { object(resource, version) };
        let api_version = resource.gvk().api_version();
        let member = on_large_stack(|| protobuf::encode_member(&api_version, resource.kind(), &object));
        Bytes::from(member.unwrap_or_default())
    })
}

/// An object in protobuf, if its kind has a protobuf encoding.
pub(crate) fn to_protobuf(object: &Value) -> Option<Bytes> {
    on_large_stack(|| protobuf::encode(object)).map(Bytes::from)
}

/// A complete stored version in protobuf.
fn whole_protobuf(resource: &Resource, version: &StoredObject) -> Vec<u8> {
    protobuf::envelope(&resource.gvk().api_version(), resource.kind(), &protobuf_member(resource, version))
}

/// A stored version as an item of a list of complete objects in JSON.
pub(crate) fn item(resource: &Resource, version: &StoredObject) -> Bytes {
    if resource.is_storage_form() {
        return version.json.clone();
    }
    if resource.is_unstructured() {
        return shared_whole(resource, version);
    }
    version.encoded(resource.tag * FORMS + ITEM, || {
        let mut object = object(resource, version);
        if let Some(object) = object.as_object_mut() {
            object.remove("apiVersion");
            object.remove("kind");
        }
        Bytes::from(json::to_vec(&object))
    })
}

/// The type of a watch event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Added,
    Modified,
    Deleted,
}

impl Change {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

/// A watch event with a complete stored version: a line of JSON or a protobuf frame.
pub(crate) fn watch_event(
    resource: &Resource,
    version: &StoredObject,
    change: Change,
    encoding: Encoding,
) -> Bytes {
    // Not cached: that would double the memory of every version in the event ring.
    if encoding == Encoding::Protobuf {
        return Bytes::from(protobuf::watch_frame(change.word(), &whole_protobuf(resource, version)));
    }
    let (start, word, object) = (br#"{"type":""#, change.word().as_bytes(), br#"","object":"#);
    if resource.is_storage_form() {
        let prefix = kind_prefix(resource);
        return join([start, word, object, prefix.as_bytes(), &version.json[1..], b"}\n"]);
    }
    join([start, word, object, &shared_whole(resource, version), b"}\n"])
}

/// A watch event with an object in another form.
pub(crate) fn watch_event_of(change: &str, object: &Value, encoding: Encoding) -> Bytes {
    if encoding == Encoding::Protobuf
        && let Some(body) = to_protobuf(object)
    {
        return Bytes::from(protobuf::watch_frame(change, &body));
    }
    let line = json!({"type": change, "object": object});
    let mut bytes = json::to_vec(&line);
    bytes.push(b'\n');
    Bytes::from(bytes)
}

fn join<const N: usize>(parts: [&[u8]; N]) -> Bytes {
    Bytes::from(parts.concat())
}

/// A response with one object in the requested form.
pub(crate) fn answer_one(
    status: StatusCode,
    resource: &Resource,
    format: Format,
    shown: &Shown<'_>,
    now: i64,
) -> Response<Body> {
    match (format.view, shown) {
        (View::Whole, Shown::Version(version)) if format.encoding == Encoding::Protobuf => {
            respond(status, protobuf::MEDIA_TYPE, whole_protobuf(resource, version))
        }
        (View::Whole, Shown::Version(version)) => answer(status, format, whole(resource, version)),
        (View::Whole, Shown::Value(value)) => answer_value(status, format.encoding, value),
        (view, shown) => {
            let object = transformed(resource, view, &shown.object(resource), now);
            answer_value(status, format.encoding, &object)
        }
    }
}

/// An object as PartialObjectMetadata or as a Table with one row.
pub(crate) fn transformed(resource: &Resource, view: View, object: &Value, now: i64) -> Value {
    match view {
        View::Whole => object.clone(),
        View::Metadata(version) | View::MetadataList(version) => metadata_of(resource, object, version),
        View::Table(version, include) => {
            let list_meta = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
            table_of(resource, version, include, std::iter::once(object), &list_meta, now)
        }
    }
}

/// The metadata of an object.
pub(crate) fn metadata_of(resource: &Resource, object: &Value, version: &str) -> Value {
    let mut metadata = json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": format!("meta.k8s.io/{version}"),
        "metadata": object["metadata"],
    });
    if let Some(annotation) = resource.rules().hidden_annotation {
        remove_annotation(&mut metadata, annotation);
    }
    metadata
}

/// A list of objects in the requested form.
pub(crate) fn list_of(
    resource: &Resource,
    view: View,
    mut objects: Vec<Value>,
    list_meta: &Value,
    now: i64,
) -> Value {
    match view {
        View::Whole => {
            if !resource.is_unstructured() {
                for object in objects.iter_mut().filter_map(Value::as_object_mut) {
                    object.remove("kind");
                    object.remove("apiVersion");
                }
            }
            json!({
                "kind": resource.list_kind(),
                "apiVersion": resource.gvk().api_version(),
                "metadata": list_meta,
                "items": objects,
            })
        }
        View::Metadata(version) | View::MetadataList(version) => {
            let items: Vec<Value> =
                objects.iter().map(|object| metadata_of(resource, object, version)).collect();
            json!({
                "kind": "PartialObjectMetadataList",
                "apiVersion": format!("meta.k8s.io/{version}"),
                "metadata": list_meta,
                // An empty list is nil in Go.
                "items": if items.is_empty() { Value::Null } else { Value::Array(items) },
            })
        }
        View::Table(version, include) => table_of(resource, version, include, objects.iter(), list_meta, now),
    }
}

/// Whether a list in this view is rendered while it is sent: PartialObjectMetadata and Tables, unless rows are sorted.
pub(crate) fn is_rendered_one_by_one(resource: &Resource, view: View, count: usize) -> bool {
    match view {
        View::Whole => false,
        // An empty list is null.
        View::Metadata(_) | View::MetadataList(_) => count > 0,
        View::Table(..) => !table::sorts_rows(resource.gvk()),
    }
}

/// A list in this view without its items, and the field that has them.
pub(crate) fn list_without_items(
    resource: &Resource,
    view: View,
    list_meta: &serde_json::Map<String, Value>,
) -> (Value, &'static str) {
    let (mut list, items) = match view {
        View::Whole => {
            (json!({"kind": resource.list_kind(), "apiVersion": resource.gvk().api_version()}), "items")
        }
        View::Metadata(version) | View::MetadataList(version) => {
            let api_version = format!("meta.k8s.io/{version}");
            (json!({"kind": "PartialObjectMetadataList", "apiVersion": api_version}), "items")
        }
        View::Table(version, _) => {
            let api_version = format!("meta.k8s.io/{version}");
            let columns = resource.strategy.columns();
            (json!({"kind": "Table", "apiVersion": api_version, "columnDefinitions": columns}), "rows")
        }
    };
    list["metadata"] = list_meta.clone().into();
    (list, items)
}

/// The JSON before and after the items of a list in this view.
pub(crate) fn list_ends(
    resource: &Resource,
    view: View,
    list_meta: &serde_json::Map<String, Value>,
) -> (Vec<u8>, &'static [u8]) {
    let (list, items) = list_without_items(resource, view, list_meta);
    let mut head = json::to_vec(&list);
    head.pop();
    head.extend_from_slice(format!(",\"{items}\":[").as_bytes());
    (head, b"]}")
}

/// The row of an object in a Table.
fn row_of(resource: &Resource, version: &str, include: Include, object: &Value, now: i64) -> Value {
    let object_of = match include {
        Include::Nothing => Value::Null,
        Include::Metadata => metadata_of(resource, object, version),
        Include::Object => object.clone(),
    };
    let mut row = json!({"cells": resource.strategy.cells(object, now), "object": object_of});
    if let Some(conditions) = table::row_conditions(resource.gvk(), object) {
        row["conditions"] = conditions;
    }
    row
}

/// A Table with a row for each object.
pub(crate) fn table_of<'a>(
    resource: &Resource,
    version: &str,
    include: Include,
    objects: impl Iterator<Item = &'a Value>,
    list_meta: &Value,
    now: i64,
) -> Value {
    let mut objects: Vec<&Value> = objects.collect();
    table::sort_rows(resource.gvk(), &mut objects);
    let rows: Vec<Value> =
        objects.into_iter().map(|object| row_of(resource, version, include, object, now)).collect();
    json!({
        "kind": "Table",
        "apiVersion": format!("meta.k8s.io/{version}"),
        "metadata": list_meta,
        "columnDefinitions": resource.strategy.columns(),
        "rows": rows,
    })
}

fn remove_annotation(object: &mut Value, name: &str) {
    let Some(annotations) = object.at_mut("metadata.annotations").and_then(Value::as_object_mut) else {
        return;
    };
    annotations.remove(name);
    if annotations.is_empty() {
        object.remove_at("metadata.annotations");
    }
}

/// A response with JSON, in the negotiated encoding.
pub(crate) fn answer(status: StatusCode, format: Format, json: Bytes) -> Response<Body> {
    let (media, bytes) = encoded(format.encoding, json);
    respond(status, media, bytes)
}

/// A response with an object, in the negotiated encoding.
pub(crate) fn answer_value(status: StatusCode, encoding: Encoding, value: &Value) -> Response<Body> {
    if encoding == Encoding::Protobuf
        && let Some(bytes) = to_protobuf(value)
    {
        return respond(status, protobuf::MEDIA_TYPE, bytes);
    }
    let (media, bytes) = encoded(encoding, json::to_vec(value).into());
    respond(status, media, bytes)
}

/// Converts JSON to another encoding and returns its media type. Objects without a protobuf encoding stay
/// JSON.
fn encoded(encoding: Encoding, json: Bytes) -> (&'static str, Bytes) {
    match encoding {
        Encoding::Json => ("application/json", json),
        Encoding::Yaml => ("application/yaml", to_yaml(&json)),
        Encoding::Protobuf => match to_protobuf(&parsed(&json)) {
            Some(bytes) => (protobuf::MEDIA_TYPE, bytes),
            None => ("application/json", json),
        },
    }
}

/// JSON as YAML.
pub(crate) fn to_yaml(json: &Bytes) -> Bytes {
    serde_saphyr::to_string(&parsed(json)).map_or_else(|_| json.clone(), Bytes::from)
}

pub(crate) fn parsed(json: &Bytes) -> Value {
    // Lists and tables are nested a few levels deeper than their objects.
    let options = json::ParseOptions { max_depth: json::MAX_DEPTH + 8, ..json::ParseOptions::default() };
    json::parse(json, options).map(|parsed| parsed.value).unwrap_or_default()
}

/// A response with any body.
pub(crate) fn respond(status: StatusCode, media: &'static str, body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
    response
}

/// A response with a JSON value.
pub(crate) fn respond_json(status: StatusCode, value: &Value) -> Response<Body> {
    respond(status, "application/json", json::to_vec(value))
}

/// An error in the encoding that the client accepts.
pub(crate) fn failure_in(encoding: Encoding, response: Response<Body>) -> Response<Body> {
    let json = response.headers().get(header::CONTENT_TYPE).is_some_and(|media| media == "application/json");
    let (mut parts, body) = response.into_parts();
    match body.into_whole() {
        Ok(bytes) if json => {
            let (media, bytes) = encoded(encoding, bytes);
            parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
            Response::from_parts(parts, bytes.into())
        }
        Ok(bytes) => Response::from_parts(parts, bytes.into()),
        Err(body) => Response::from_parts(parts, body),
    }
}

/// The response for an error.
pub(crate) fn failure(error: &ApiError) -> Response<Body> {
    let status = StatusCode::from_u16(error.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = respond_json(status, &error.to_value());
    if let Some(seconds) =
        error.details.as_ref().map(|details| details.retry_after_seconds).filter(|s| *s > 0)
    {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// Adds `Warning` headers in upstream's format.
pub(crate) fn warn(response: &mut Response<Body>, warnings: &[String]) {
    for warning in warnings {
        let mut text = String::with_capacity(warning.len() + 16);
        text.push_str("299 - \"");
        for c in warning.chars() {
            if matches!(c, '"' | '\\') {
                text.push('\\');
            }
            text.push(if c.is_control() { ' ' } else { c });
        }
        text.push('"');
        // Without duplicates.
        if let Ok(value) = HeaderValue::from_str(&text)
            && !response.headers().get_all(header::WARNING).iter().any(|said| said == value)
        {
            response.headers_mut().append(header::WARNING, value);
        }
    }
}
