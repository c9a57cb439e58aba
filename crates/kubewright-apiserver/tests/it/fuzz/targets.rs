//! The fuzz targets: one function per target. A panic is a finding.
//!
//! cargo-fuzz calls these functions with libFuzzer's input (`fuzz/` at the root of the repository), and the
//! test suite with mutated seeds. So this file must not depend on either. Each target also checks a property
//! that holds for every input.

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use kubewright_apimachinery::decode;
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::json::{self, ParseOptions};
use kubewright_apimachinery::patch::strategic::apply_strategic_merge_patch;
use kubewright_apimachinery::patch::{
    apply_json_patch, apply_merge_patch, check_json_patch, check_merge_patch, decode_merge_patch,
};
use kubewright_apimachinery::quantity::Quantity;
use kubewright_apimachinery::selector::{FieldSelector, LabelSelector};
use kubewright_apimachinery::types::{self, Type};
use kubewright_apis::{defaults, protobuf, validation};
use kubewright_apiserver::clock::ManualClock;
use kubewright_apiserver::{ApiServer, Options};
use serde_json::{Value, json};

use super::choices::Choices;
use super::objects;

/// JSON round-trips.
pub fn json_text(data: &[u8]) {
    let Ok(parsed) = json::parse(data, ParseOptions::default()) else {
        // A strict parser rejects it as well, unless it is too deep.
        let refused = serde_json::from_slice::<Value>(data);
        assert!(refused.is_err(), "valid JSON was rejected: {:?}", String::from_utf8_lossy(data));
        return;
    };
    // A negative zero is written as `-0`, as in Go, and read as an integer: so compare the second round.
    let again =
        json::parse(&json::to_vec(&parsed.value), ParseOptions::default()).expect("written JSON is valid");
    let written = json::to_vec(&again.value);
    let third = json::parse(&written, ParseOptions::default()).expect("written JSON is valid");
    assert_eq!(third.value, again.value);
    assert_eq!(json::to_vec(&third.value), written);
    assert_eq!(third.duplicates, [""; 0]);
}

/// A label selector keeps its meaning when it is printed and parsed again.
pub fn label_selector(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(selector) = LabelSelector::parse(text) else { return };
    let printed = selector.to_string();
    let again = LabelSelector::parse(&printed).expect("a printed selector is valid");
    assert_eq!(again.to_string(), printed);
    for labels in [json!({}), json!({"a": "b", "tier": "web"}), json!({"a": "1", "x.io/y": ""})] {
        let labels = labels.as_object().cloned().unwrap_or_default();
        assert_eq!(selector.matches(&labels), again.matches(&labels), "{text:?} and {printed:?}");
    }
}

/// A field selector keeps its meaning when it is printed and parsed again.
pub fn field_selector(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(selector) = FieldSelector::parse(text) else { return };
    let printed = selector.to_string();
    let again = FieldSelector::parse(&printed).expect("a printed selector is valid");
    // Requirements are sorted by their text, and `==` is printed as `=`: so compare the second round.
    let third = FieldSelector::parse(&again.to_string()).expect("a printed selector is valid");
    assert_eq!(third, again, "{text:?} and {printed:?}");
    for value in ["", "a", "1"] {
        let field = |name: &str| (name.is_empty() || name == "metadata.name").then_some(value);
        assert_eq!(selector.matches(field), again.matches(field), "{text:?} and {printed:?}");
    }
}

/// A quantity round-trips, and its printed form is canonical.
pub fn quantity(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(quantity) = Quantity::parse(text) else { return };
    let printed = quantity.to_string();
    let again = Quantity::parse(&printed).expect("a printed quantity is valid");
    assert_eq!(again.sign(), quantity.sign(), "{text:?}");
    // As upstream, values beyond all suffixes are printed without one (1000E as 1), and the largest exponents
    // overflow when zeros are moved into them.
    if quantity.value().unsigned_abs() < i64::MAX.unsigned_abs() {
        // A binary quantity may be printed without a suffix, which makes it decimal: so compare the second
        // round.
        let second = again.to_string();
        let third = Quantity::parse(&second).expect("a printed quantity is valid");
        assert_eq!(third.to_string(), second, "{text:?}");
        let amounts = |quantity: &Quantity| (quantity.value(), quantity.milli_value());
        assert_eq!(amounts(&again), amounts(&quantity), "{text:?}");
    }
    for scale in [-18, -9, 0, 3, 18] {
        quantity.scaled_value(scale);
    }
    quantity.to_f64();
}

/// A JSON patch fails, or its result round-trips.
pub fn json_patch(data: &[u8]) {
    let _ = check_json_patch(data);
    for document in documents() {
        let Ok(patched) = apply_json_patch(document, data) else { continue };
        let written = json::to_vec(&patched);
        json::parse(&written, ParseOptions::default()).expect("a patched object is JSON");
        assert!(written.len() < (4 << 20) + 20 * data.len(), "{} bytes from {}", written.len(), data.len());
    }
}

/// Applying a merge patch twice equals applying it once.
pub fn merge_patch(data: &[u8]) {
    let _ = check_merge_patch(data);
    let Ok(patch) = decode_merge_patch(data) else { return };
    for document in documents() {
        let once = apply_merge_patch(document, &patch);
        assert_eq!(apply_merge_patch(&once, &patch), once);
    }
}

/// A strategic merge patch of any type is applied or rejected.
pub fn strategic_merge_patch(data: &[u8]) {
    let Some((choice, data)) = data.split_first() else { return };
    let ty = type_by(*choice);
    let Ok(parsed) = json::parse(data, ParseOptions::default()) else { return };
    if !parsed.value.is_object() {
        return;
    }
    for document in documents() {
        if let Ok(patched) = apply_strategic_merge_patch(ty, document, &parsed.value) {
            json::parse(&json::to_vec(&patched), ParseOptions::default()).expect("a patched object is JSON");
        }
    }
}

/// Decoding is idempotent: a decoded, defaulted and encoded object decodes to itself.
pub fn object(data: &[u8]) {
    let Some((choice, data)) = data.split_first() else { return };
    let ty = type_by(*choice);
    let Ok(decoded) = decode::decode(ty, data) else { return };
    let mut value = decoded.value;
    decode::normalise(ty, &mut value).expect("a decoded object has its type");
    let again = decode::decode(ty, &json::to_vec(&value)).expect("an encoded object decodes");
    assert_eq!(again.strict, [""; 0]);
    let mut second = again.value;
    decode::normalise(ty, &mut second).expect("a decoded object has its type");
    assert_eq!(second, value);

    let Some((group, version)) = ty.kind_of.and_then(|kind_of| kind_of.split_once('/')) else { return };
    let kind = ty.name.rsplit('.').next().unwrap_or_default();
    let gvk = Gvk { group, version, kind };
    defaults::apply(gvk, &mut value);
    let once = value.clone();
    defaults::apply(gvk, &mut value);
    assert_eq!(value, once, "defaulting is idempotent");
    validation::create(gvk, true, &value);
    validation::update(gvk, true, &value, &once);
}

/// A YAML body gets a response.
pub fn yaml(data: &[u8]) {
    let server = SERVER.fork();
    for path in ["/api/v1/namespaces/default/configmaps", "/api/v1/namespaces/default/pods"] {
        let request = Request::post(path).header(header::CONTENT_TYPE, "application/yaml");
        let request = request.body(Full::new(Bytes::copy_from_slice(data))).expect("the request is valid");
        let (status, body) = answer(&server, request);
        assert!(!status.is_server_error(), "{status} {}", String::from_utf8_lossy(&body));
    }
}

/// A protobuf body gets a response in protobuf. Decoded objects can be encoded.
pub fn protobuf(data: &[u8]) {
    if let Ok(object) = protobuf::decode(data) {
        let written = protobuf::encode(&object).expect("a decoded object can be encoded");
        protobuf::decode(&written).expect("encoded protobuf is valid");
    }
    let server = SERVER.fork();
    for path in [
        "/api/v1/namespaces/default/configmaps",
        "/api/v1/namespaces/default/pods",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    ] {
        let request = Request::post(path)
            .header(header::CONTENT_TYPE, protobuf::MEDIA_TYPE)
            .header(header::ACCEPT, protobuf::MEDIA_TYPE);
        let request = request.body(Full::new(Bytes::copy_from_slice(data))).expect("the request is valid");
        let (status, body) = answer(&server, request);
        assert!(!status.is_server_error(), "{status} {}", String::from_utf8_lossy(&body));
        protobuf::decode(&body).expect("the response is protobuf");
    }
}

/// Any request gets a response. The first line has method, path, media type and accepted media type; the rest
/// is the body.
pub fn request(data: &[u8]) {
    let end = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
    let Ok(line) = std::str::from_utf8(&data[..end]) else { return };
    let body = data.get(end + 1..).unwrap_or_default();
    let mut words = line.split(' ').chain(std::iter::repeat(""));
    let mut word = || words.next().unwrap_or_default();
    let mut request = Request::builder().method(word()).uri(word());
    for name in [header::CONTENT_TYPE, header::ACCEPT] {
        match word() {
            "" => {}
            value => request = request.header(name, value),
        }
    }
    let Ok(request) = request.body(Full::new(Bytes::copy_from_slice(body))) else { return };
    let patches = request.method() == Method::PATCH;
    let what = format!("{} {}", request.method(), request.uri());
    let (status, body) = answer(&SERVER.fork(), request);
    expect_no_server_error(&what, status, &body, patches);
}

const JSON: &str = "application/json";

/// Creates, changes and deletes an object of any kind, generated from the input.
pub fn life(data: &[u8]) {
    let mut choices = Choices::new(data);
    let resource = objects::resource(&mut choices);
    let server = SERVER.fork();
    let object = objects::object(resource, &mut choices);
    let collection = objects::path(resource);
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let one = format!("{collection}/{}", escape(name));
    let send = |method: Method, path: &str, media: &str, body: &Value| {
        let body = if body.is_null() { Vec::new() } else { json::to_vec(body) };
        let key = if method == Method::GET { header::ACCEPT } else { header::CONTENT_TYPE };
        let patches = method == Method::PATCH;
        let what = format!("{method} {path}");
        let request = Request::builder().method(method).uri(path).header(key, media);
        // The name may not be valid in a path.
        let Ok(request) = request.body(Full::new(Bytes::from(body))) else { return StatusCode::BAD_REQUEST };
        let (status, body) = answer(&server, request);
        expect_no_server_error(&what, status, &body, patches);
        status
    };
    send(Method::POST, &collection, JSON, &object);
    for media in [JSON, "application/yaml", "application/json;as=Table;v=v1;g=meta.k8s.io"] {
        send(Method::GET, &collection, media, &Value::Null);
    }
    let second = objects::object(resource, &mut choices);
    for media in ["application/strategic-merge-patch+json", "application/merge-patch+json"] {
        send(Method::PATCH, &one, media, &second);
        send(Method::PATCH, &format!("{one}/status"), media, &second);
        send(Method::PATCH, &format!("{one}/scale"), media, &second);
    }
    send(Method::PUT, &one, JSON, &objects::object(resource, &mut choices));
    send(Method::GET, &one, "application/json;as=Table;v=v1;g=meta.k8s.io", &Value::Null);
    send(Method::GET, &format!("{collection}?watch=1"), JSON, &Value::Null);
    send(Method::DELETE, &one, JSON, &Value::Null);
    send(Method::DELETE, &collection, JSON, &Value::Null);
}

fn escape(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    name.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// A server with one object of several kinds. Every input gets a fork of it.
static SERVER: LazyLock<ApiServer> = LazyLock::new(|| {
    let clock = Arc::new(ManualClock::new(1_767_225_600_000_000));
    let server = ApiServer::new(Options { clock, seed: Some(1), ..Options::default() });
    for (path, object) in objects::VICTIMS {
        let request = Request::post(*path).header(header::CONTENT_TYPE, "application/json");
        let request =
            request.body(Full::new(Bytes::from_static(object.as_bytes()))).expect("the request is valid");
        let (status, body) = answer(&server, request);
        assert_eq!(status, StatusCode::CREATED, "{path}: {}", String::from_utf8_lossy(&body));
    }
    server
});

/// The response that is available immediately; of a watch its start.
pub(super) fn answer(server: &ApiServer, request: Request<Full<Bytes>>) -> (StatusCode, Vec<u8>) {
    thread_local! {
        static RUNTIME: tokio::runtime::Runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    }
    RUNTIME.with(|runtime| {
        let response = runtime.block_on(server.handle(request));
        let _entered = runtime.enter();
        let status = response.status();
        let mut frames = response.into_body();
        let mut body = Vec::new();
        while let Some(Some(Ok(frame))) = frames.frame().now_or_never() {
            body.extend_from_slice(frame.data_ref().map_or(&[], |data| data.as_ref()));
        }
        (status, body)
    })
}

/// An error must have a Status, and must not be internal.
fn expect_no_server_error(what: &str, status: StatusCode, body: &[u8], patches: bool) {
    if status.is_success() {
        return;
    }
    if body.starts_with(b"k8s\0") {
        let refusal = protobuf::decode(body).expect("the error is protobuf");
        assert_eq!(refusal["kind"], "Status", "{what}: {status} {refusal}");
        return;
    }
    if String::from_utf8_lossy(body).contains("\nkind: Status\n") {
        // The requested YAML error.
        assert!(status.is_client_error(), "{what}: {status}");
        return;
    }
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let reason = body["reason"].as_str().unwrap_or_default();
    let message = body["message"].as_str().unwrap_or_default();
    match status {
        // An unknown path, or the response to HEAD.
        StatusCode::NOT_FOUND if body.is_null() => {}
        _ if body.is_null() && what.starts_with("HEAD ") => {}
        // As upstream, an invalid patch directive and an invalid resourceVersion return 500 without a reason.
        StatusCode::INTERNAL_SERVER_ERROR
            if reason.is_empty() && (patches || what.contains("resourceVersion")) => {}
        StatusCode::INTERNAL_SERVER_ERROR
            if message.ends_with("resourceVersion should not be set on objects to be created") => {}
        StatusCode::INTERNAL_SERVER_ERROR
            if reason.is_empty() && message.starts_with("strconv.ParseUint: parsing ") => {}
        // A future resourceVersion.
        StatusCode::GATEWAY_TIMEOUT if reason == "Timeout" => {}
        _ => {
            assert!(status.is_client_error(), "{what}: {status} {body}");
            assert_eq!(body["kind"], "Status", "{what}: {status} {body}");
        }
    }
}

/// The objects that patches are applied to.
fn documents() -> &'static [Value] {
    static DOCUMENTS: LazyLock<Vec<Value>> = LazyLock::new(|| {
        let victims =
            objects::VICTIMS.iter().map(|(_, text)| serde_json::from_str(text).expect("the object is JSON"));
        victims.chain([json!({}), json!({"data": {"a": {}}, "list": [1, [2], {"a": null}]})]).collect()
    });
    &DOCUMENTS
}

fn type_by(choice: u8) -> &'static Type {
    const NAMES: &[&str] = &[
        "core.v1.Pod",
        "apps.v1.Deployment",
        "core.v1.Service",
        "core.v1.ConfigMap",
        "batch.v1.CronJob",
        "core.v1.Node",
        "networking.v1.Ingress",
        "autoscaling.v2.HorizontalPodAutoscaler",
    ];
    types::type_named(NAMES[usize::from(choice) % NAMES.len()]).expect("the table has the type")
}
