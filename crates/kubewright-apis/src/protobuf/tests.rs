//! Tests of reading and writing protobuf.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::numbers::{Either, MESSAGES, Member, SCHEMA, members};
use super::*;
use crate::facts::{FieldType, TypeRef};
use kubewright_apimachinery::decode::normalise;

/// Bytes of a field that holds bytes.
fn field(number: u16, bytes: &[u8]) -> Vec<u8> {
    let [low, high] = (number << 3 | 2).to_le_bytes();
    let mut encoded = match (low, high) {
        (0..0x80, 0) => vec![low],
        _ => vec![low | 0x80, high << 1 | low >> 7],
    };
    encoded.push(u8::try_from(bytes.len()).unwrap());
    encoded.extend_from_slice(bytes);
    encoded
}

fn number(number: u8, value: u8) -> Vec<u8> {
    vec![number << 3, value]
}

fn body(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let meta = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
    [MAGIC, &field(1, &meta), &field(2, raw)].concat()
}

#[test]
fn the_table_is_sorted_and_every_line_is_read() {
    assert!(MESSAGES.is_sorted_by(|a, b| a.name < b.name));
    assert!(MESSAGES.iter().all(|message| !members(message.name).is_empty()));
}

#[test]
fn every_field_of_a_served_kind_has_a_number() {
    fn check(ty: &'static Type, seen: &mut Vec<&'static str>, missing: &mut Vec<String>) {
        if seen.contains(&ty.name) || ty.any {
            return;
        }
        seen.push(ty.name);
        let mut known: Vec<&str> = Vec::new();
        let mut open = vec![ty.name];
        while let Some(name) = open.pop() {
            for (_, member) in members(name) {
                match member {
                    Member::Field(field) => known.push(field),
                    Member::Inline(embedded) => open.push(embedded),
                }
            }
        }
        for field in &ty.fields {
            if !known.contains(&field.name) && !matches!(field.name, "apiVersion" | "kind") {
                missing.push(format!("{}.{}", ty.name, field.name));
            }
            if let Some(of) = field.ty.object() {
                check(of, seen, missing);
            }
        }
    }
    let (mut seen, mut missing) = (Vec::new(), Vec::new());
    for resource in facts::resources() {
        check(
            facts::type_of_kind(resource.group, resource.version, resource.kind).unwrap(),
            &mut seen,
            &mut missing,
        );
    }
    assert_eq!(missing, Vec::<String>::new());
}

#[test]
fn a_config_map_is_read() {
    let meta = field(1, b"a");
    let entry = [field(1, b"k"), field(2, b"v")].concat();
    let raw = [field(1, &meta), field(2, &entry), number(4, 1)].concat();
    assert_eq!(
        decode(&body("v1", "ConfigMap", &raw)).unwrap(),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}, "immutable": true})
    );
}

#[test]
fn what_json_shows_flat_is_nested() {
    // Volume { name, VolumeSource { emptyDir {} } }
    let volume = [field(1, b"v"), field(2, &field(2, b""))].concat();
    let raw = field(2, &field(1, &volume));
    let pod = decode(&body("v1", "Pod", &raw)).unwrap();
    assert_eq!(pod["spec"], json!({"volumes": [{"name": "v", "emptyDir": {}}]}));
}

#[test]
fn leaves_take_their_json_form() {
    // ServicePort { port 80, targetPort { type 1, strVal "http" } }
    let port = [number(3, 80), field(4, &[number(1, 1), field(3, b"http")].concat())].concat();
    let service = decode(&body("v1", "Service", &field(2, &field(1, &port)))).unwrap();
    assert_eq!(service["spec"], json!({"ports": [{"port": 80, "targetPort": "http"}]}));
}

#[test]
fn broken_bytes_are_errors() {
    assert_eq!(decode(b"{}"), Err(ProtobufError::NoMagic));
    let whole = body("v1", "ConfigMap", &field(1, &field(1, b"abc")));
    for end in MAGIC.len() + 1..whole.len() {
        // A cut between two fields is a shorter message, any other an error; neither is a panic.
        let cut = decode(&whole[..end]);
        assert!(cut != decode(&whole), "cut at {end}");
    }
    assert!(matches!(decode(&body("v1", "Nope", b"")), Err(ProtobufError::UnknownKind { .. })));
    let wrong = field(1, &number(1, 7));
    assert!(matches!(decode(&body("v1", "ConfigMap", &wrong)), Err(ProtobufError::WireType { wire: 0, .. })));
}

/// `bytes` as an object of the kind, in normal form.
fn read_back(api_version: &str, kind: &str, bytes: &[u8]) -> Value {
    let Some(Message::Typed(ty)) = Message::of(api_version, kind) else { panic!("{api_version} {kind}") };
    let mut value = decode(bytes).unwrap();
    normalise(ty, &mut value).unwrap();
    value
}

#[test]
fn a_status_has_the_bytes_of_a_real_server() {
    let message = "only the following media types are accepted: application/json, application/yaml, \
                   application/vnd.kubernetes.protobuf";
    let status = json!({
        "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure", "message": message,
        "reason": "NotAcceptable", "code": 406,
    });
    let mut expected =
        b"k8s\0\n\x0c\n\x02v1\x12\x06Status\x12\x99\x01\n\x06\n\0\x12\0\x1a\0\x12\x07Failure\x1at".to_vec();
    expected.extend_from_slice(message.as_bytes());
    expected.extend_from_slice(b"\"\rNotAcceptable0\x96\x03\x1a\0\"\0");
    assert_eq!(encode(&status).unwrap(), expected);
}

#[test]
fn a_crd_keeps_its_items_and_additional_properties() {
    let schema = json!({
        "type": "object",
        "default": {"a": [1, null]},
        "enum": ["a", 1, {"b": true}],
        "properties": {
            "list": {"type": "array", "items": {"type": "string", "maxLength": 3}},
            "tuple": {"items": [{"type": "string"}, {"minimum": 0.5, "maximum": 10}]},
            "map": {"type": "object", "additionalProperties": {"type": "integer", "nullable": true}},
            "open": {"additionalProperties": true},
            "closed": {"additionalProperties": false},
            "deep": {"items": {"items": {"additionalProperties": {"items": {"type": "string"}}}}},
        },
        "dependencies": {"a": ["b", "c"], "d": {"required": ["e"]}},
    });
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]},
    });
    let read = read_back("apiextensions.k8s.io/v1", "CustomResourceDefinition", &encode(&crd).unwrap());
    assert_eq!(read["spec"]["versions"][0]["schema"]["openAPIV3Schema"], schema);
}

#[test]
fn a_schema_that_a_client_sent_has_its_items() {
    // items { schema { type "string" } }, additionalProperties { allows 1, schema { type "integer" } }
    let items = field(24, &field(1, &field(5, b"string")));
    let more = field(30, &[number(1, 1), field(2, &field(5, b"integer"))].concat());
    let validation = field(1, &[items, more].concat());
    let version = field(7, &field(4, &validation));
    let crd =
        decode(&body("apiextensions.k8s.io/v1", "CustomResourceDefinition", &field(2, &version))).unwrap();
    assert_eq!(
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"],
        json!({"items": {"type": "string"}, "additionalProperties": {"type": "integer"}})
    );
}

#[test]
fn lists_that_are_messages_of_their_own_are_read_and_written() {
    let list = json!({
        "apiVersion": "v1", "kind": "APIResourceList", "groupVersion": "apps/v1",
        "resources": [{"name": "a", "singularName": "", "namespaced": true, "kind": "A", "verbs": ["get", "list"]}],
    });
    assert_eq!(decode(&encode(&list).unwrap()).unwrap()["resources"][0]["verbs"], json!(["get", "list"]));
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {"extra": {"scopes": ["a", "b"], "x": ["c"]}},
    });
    assert_eq!(
        decode(&encode(&review).unwrap()).unwrap()["spec"]["extra"],
        json!({"scopes": ["a", "b"], "x": ["c"]})
    );
}

#[test]
fn numbers_are_cut_as_go_cuts_them() {
    let mut replicas = vec![1 << 3];
    replicas.extend_from_slice(&[0xff, 0xff, 0xff, 0xff, 0x0f]);
    let read = decode(&body("apps/v1", "Deployment", &field(2, &replicas))).unwrap();
    assert_eq!(read["spec"]["replicas"], -1);
}

#[test]
fn unknown_fields_are_skipped() {
    let raw = [field(1, &field(1, b"a")), field(15, b"unknown"), vec![14 << 3 | 1, 1, 2, 3, 4, 5, 6, 7, 8]]
        .concat();
    let read = decode(&body("v1", "ConfigMap", &raw)).unwrap();
    assert_eq!(read["metadata"], json!({"name": "a"}));
}

#[test]
fn metadata_is_read_and_written_without_its_object() {
    let one =
        json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": {"name": "a"}});
    assert_eq!(decode(&encode(&one).unwrap()).unwrap()["metadata"]["name"], "a");
    let list = json!({
        "apiVersion": "meta.k8s.io/v1beta1", "kind": "PartialObjectMetadataList",
        "metadata": {"resourceVersion": "7"}, "items": [one],
    });
    let read = decode(&encode(&list).unwrap()).unwrap();
    assert_eq!(read["metadata"]["resourceVersion"], "7");
    assert_eq!(read["items"][0]["metadata"]["name"], "a");
}

#[test]
fn a_list_is_its_head_its_items_and_the_tail() {
    let items = [json!({"metadata": {"name": "a"}}), json!({"metadata": {"name": "b"}, "data": {"k": "v"}})];
    let members: Vec<Vec<u8>> =
        items.iter().map(|item| encode_member("v1", "ConfigMap", item).unwrap()).collect();
    let metadata = json!({"metadata": {"resourceVersion": "3"}});
    let head = list_head("v1", "ConfigMapList", &metadata, members.iter().map(Vec::len).sum());
    let list = json!({
        "apiVersion": "v1", "kind": "ConfigMapList", "metadata": {"resourceVersion": "3"}, "items": items,
    });
    assert_eq!([head, members.concat(), TAIL.to_vec()].concat(), encode(&list).unwrap());
}

#[test]
fn a_watch_frame_has_its_length_in_front() {
    let frame = watch_frame("ADDED", b"k8s\0x");
    assert_eq!(frame, b"\0\0\0\x10\n\x05ADDED\x12\x07\n\x05k8s\0x");
}

#[test]
fn aggregated_discovery_is_written() {
    let list = json!({
        "apiVersion": "apidiscovery.k8s.io/v2", "kind": "APIGroupDiscoveryList", "metadata": {},
        "items": [{"metadata": {"name": "g"}, "versions": [{"version": "v1", "freshness": "Current", "resources": [{
            "resource": "as", "responseKind": {"group": "", "version": "", "kind": "A"}, "scope": "Cluster",
            "singularResource": "a", "verbs": ["get"],
            "subresources": [{"subresource": "status", "responseKind": {"group": "", "version": "", "kind": "A"}, "verbs": ["get"]}],
        }]}]}],
    });
    let kind = b"\x12\x07\n\0\x12\0\x1a\x01A";
    let sub = [field(1, b"status"), kind.to_vec(), field(4, b"get")].concat();
    let resource = [
        field(1, b"as"),
        kind.to_vec(),
        field(3, b"Cluster"),
        field(4, b"a"),
        field(5, b"get"),
        field(8, &sub),
    ];
    let version = [field(1, b"v1"), field(2, &resource.concat()), field(3, b"Current")].concat();
    let bytes = encode(&list).unwrap();
    let expected = field(2, &version);
    assert!(bytes.windows(expected.len()).any(|window| window == expected), "{bytes:?}");
    assert!(bytes.ends_with(TAIL));
}

/// Random choices that an object is built from.
struct Choices<'a>(std::slice::Iter<'a, u8>);

impl Choices<'_> {
    fn next(&mut self) -> u8 {
        self.0.next().copied().unwrap_or_default()
    }

    fn object(&mut self, ty: &'static Type, depth: usize) -> Value {
        let mut object = Map::new();
        for field in &ty.fields {
            if !matches!(field.name, "apiVersion" | "kind") && self.next() % 4 > 1 {
                object.insert(field.name.to_owned(), self.value(&field.ty, depth));
            }
        }
        let mut object = Value::Object(object);
        normalise(ty, &mut object).unwrap();
        object
    }

    fn value(&mut self, ty: &'static FieldType, depth: usize) -> Value {
        let choice = self.next();
        match ty {
            FieldType::String => Value::from(["", "a", "é\u{1f600}", "line\nbreak"][usize::from(choice % 4)]),
            FieldType::Bool => Value::Bool(choice % 2 == 1),
            FieldType::Int32 => Value::from([0, 1, -1, i32::MAX, i32::MIN][usize::from(choice % 5)]),
            FieldType::Int64 => Value::from([0, 1, -1, i64::MAX, i64::MIN][usize::from(choice % 5)]),
            FieldType::Number => {
                [json!(0.5), json!(1), json!(-3), json!(1e300)][usize::from(choice % 4)].clone()
            }
            FieldType::Bytes => Value::from(["", "AA==", "AP8=", "////"][usize::from(choice % 4)]),
            FieldType::Quantity => Value::from(["0", "100m", "1Gi", "-2"][usize::from(choice % 4)]),
            FieldType::IntOrString => {
                [json!(0), json!(80), json!("http"), json!("")][usize::from(choice % 4)].clone()
            }
            FieldType::Time => {
                Value::from(["2024-02-29T23:59:59Z", "1969-12-31T23:59:59Z"][usize::from(choice % 2)])
            }
            FieldType::MicroTime => Value::from(
                ["2024-02-29T23:59:59.000001Z", "1969-12-31T23:59:59.999999Z"][usize::from(choice % 2)],
            ),
            FieldType::FieldsV1 => json!({"f:spec": {".": {}, "f:x": {}}}),
            FieldType::Raw => json!({"b": {"c": [1, null, "d"]}, "a": true}),
            FieldType::Json => {
                [json!(1), json!("a"), json!([{}]), json!(false)][usize::from(choice % 4)].clone()
            }
            FieldType::List(of) => (0..choice % 3).map(|_| self.value(of, depth)).collect(),
            // A list in a map is never nil.
            FieldType::Map(of) if matches!(**of, FieldType::List(_)) => json!({"b": ["x"], "a": ["", "y"]}),
            FieldType::Map(of) => {
                let entries = (0..choice % 3)
                    .map(|at| (["b", "", "a/c"][usize::from(at)].to_owned(), self.value(of, depth)));
                Value::Object(entries.collect())
            }
            FieldType::Object(of) if depth > 8 && Either::named(of.name()).is_none() => json!({}),
            FieldType::Object(of) => self.reference(*of, choice, depth + 1),
        }
    }

    fn reference(&mut self, of: TypeRef, choice: u8, depth: usize) -> Value {
        let schema = facts::type_named(SCHEMA).unwrap();
        match Either::named(of.name()) {
            Some(Either::Bool) if choice.is_multiple_of(2) => Value::Bool(choice.is_multiple_of(4)),
            Some(Either::Array) if choice.is_multiple_of(2) => json!([{"type": "string"}, {}]),
            Some(Either::Strings) if choice.is_multiple_of(2) => json!(["a", ""]),
            Some(_) if depth > 4 => json!({}),
            Some(_) => self.object(schema, depth),
            None => self.object(of.get(), depth),
        }
    }
}

/// Objects of every kind, in normal form.
fn objects() -> impl Strategy<Value = Value> {
    let kinds: Vec<&'static Type> =
        facts::type_names().filter_map(facts::type_named).filter(|ty| ty.kind_of.is_some()).collect();
    let bytes = proptest::collection::vec(any::<u8>(), 0..400);
    (0..kinds.len(), bytes).prop_map(move |(at, bytes)| {
        let ty = kinds[at];
        let mut object = Choices(bytes.iter()).object(ty, 0);
        let kind = ty.name.rsplit('.').next().unwrap();
        // A watch event is not an object and has no kind.
        if ty.field("kind").is_some() {
            object["apiVersion"] = ty.kind_of.unwrap().trim_start_matches('/').into();
            object["kind"] = kind.into();
        }
        object
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn what_is_written_is_read_back(object in objects()) {
        let (api_version, kind) = (object["apiVersion"].as_str(), object["kind"].as_str());
        if let (Some(api_version), Some(kind)) = (api_version, kind) {
            prop_assert_eq!(read_back(api_version, kind, &encode(&object).unwrap()), object);
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(
        kind in prop::sample::select(vec![("v1", "Pod"), ("apps/v1", "Deployment"), ("v1", "Status"),
            ("apiextensions.k8s.io/v1", "CustomResourceDefinition"), ("meta.k8s.io/v1", "PartialObjectMetadataList"),
            ("authorization.k8s.io/v1", "SubjectAccessReview"), ("v1", "EventList"), ("", "")]),
        raw in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let _ = decode(&raw);
        let _ = decode(&[MAGIC, &raw].concat());
        let meta = [field(1, kind.0.as_bytes()), field(2, kind.1.as_bytes())].concat();
        let mut whole = [MAGIC, &field(1, &meta)].concat();
        let length = u8::try_from(raw.len()).unwrap();
        whole.extend_from_slice(&[2 << 3 | 2, length | 0x80, length >> 7]);
        whole.extend_from_slice(&raw);
        let _ = decode(&whole);
    }

    #[test]
    fn damaged_bytes_are_read_or_refused(object in objects(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        if let Some(mut bytes) = encode(&object) {
            let at = at.index(bytes.len());
            bytes[at] = byte;
            if let Ok(value) = decode(&bytes) {
                let _ = encode(&value);
            }
        }
    }
}
