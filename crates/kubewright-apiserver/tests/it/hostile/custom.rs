//! Malicious CRDs, CEL rules and apply configurations.

use http::{Method, StatusCode};
use kubewright_apiserver::{ApiServer, Options};
use serde_json::{Value, json};

use super::{MAPS, expect_well, request, send};

const JSON: &str = "application/json";
const APPLY: &str = "application/apply-patch+yaml";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/example.com/v1/widgets";

fn server() -> ApiServer {
    ApiServer::new(Options::default())
}

/// A CRD whose objects have a spec with this schema.
fn definition(spec: &Value) -> String {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Cluster",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
            }],
        },
    })
    .to_string()
}

fn rule(rule: &str) -> Value {
    json!({
        "type": "object",
        "x-kubernetes-validations": [{"rule": rule}],
        "properties": {"a": {"type": "string", "maxLength": 100}},
    })
}

#[track_caller]
fn expect_answer(server: &ApiServer, what: &str, spec: &Value) -> StatusCode {
    let answer = send(server, what, request(Method::POST, DEFINITIONS, JSON, definition(spec)));
    assert!(!answer.status.is_server_error(), "{what}: {} {}", answer.status, answer.json()["message"]);
    answer.status
}

#[test]
fn deep_schemas_are_rejected_or_served() {
    for depth in [50, 120, 190] {
        let string = || json!({"type": "string", "default": "x"});
        let (mut properties, mut items) = (string(), string());
        let (mut object, mut list) = (json!("x"), json!("x"));
        for _ in 0..depth {
            properties = json!({"type": "object", "properties": {"a": properties}});
            object = json!({"a": object});
            items = json!({"type": "array", "items": items});
            list = json!([list]);
        }
        for (what, schema, spec) in [("properties", properties, object), ("items", items, list)] {
            let server = server();
            let what = format!("{depth} levels of {what}");
            let status = expect_answer(&server, &what, &schema);
            if status == StatusCode::CREATED {
                write_all_ways(&server, &what, &spec);
            }
            expect_well(&server);
        }
    }
}

/// Creates, reads, applies and lists an object.
#[track_caller]
fn write_all_ways(server: &ApiServer, what: &str, spec: &Value) {
    let body =
        json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec});
    let body = body.to_string();
    let answer = send(server, what, request(Method::POST, WIDGETS, JSON, body.clone()));
    assert_eq!(answer.status, StatusCode::CREATED, "{what}: {}", answer.json()["message"]);
    let one = format!("{WIDGETS}/w");
    let apply = format!("{one}?fieldManager=m&force=true");
    for (method, path, media) in [
        (Method::PATCH, &apply, APPLY),
        (Method::PATCH, &one, "application/merge-patch+json"),
        (Method::GET, &one, ""),
        (Method::GET, &WIDGETS.to_owned(), ""),
        (Method::DELETE, &one, ""),
    ] {
        let body = if media.is_empty() { String::new() } else { body.clone() };
        let answer = send(server, what, request(method.clone(), path, media, body));
        assert_eq!(answer.status, StatusCode::OK, "{what}: {method} {}", answer.json()["message"]);
    }
}

#[test]
fn rules_with_unbounded_cost_are_rejected() {
    let server = server();
    let deep = |open: &str, close: &str, times: usize| {
        format!("{}self.a == ''{}", open.repeat(times), close.repeat(times))
    };
    let rules = [
        deep("(", ")", 10_000),
        deep("!(", ")", 10_000),
        deep("[", "]", 10_000),
        format!("{}true", "true && ".repeat(20_000)),
        format!("{}''", "self.a + ".repeat(10_000)),
        "[1,2,3].all(a, [1,2,3].all(b, ".repeat(500) + "true" + &"))".repeat(500),
        "'".to_owned() + &"x".repeat(100_000),
        "self.a.matches('a{1000}{1000}{1000}')".to_owned(),
        "self".to_owned() + &".a".repeat(50_000),
        "\u{0}\u{feff}\u{202e}".to_owned(),
    ];
    for rule_text in rules {
        let what: String = rule_text.chars().take(40).collect();
        let status = expect_answer(&server.fork(), &what, &rule(&rule_text));
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{what}");
    }
    // A regular expression that is exponential for backtracking engines; here its cost is linear in its
    // length.
    let long = format!("self.a.matches('{}')", "(a+)+".repeat(2_000));
    expect_answer(&server.fork(), "a long expression", &rule(&long));
    expect_well(&server);
}

#[test]
fn a_rule_that_exceeds_its_budget_is_stopped() {
    let server = server();
    let list = json!({"type": "array", "maxItems": 100_000, "items": {"type": "integer"}});
    let spec = json!({
        "type": "object",
        "x-kubernetes-validations": [{"rule": "self.l.all(a, self.l.all(b, self.l.all(c, a + b + c >= 0)))"}],
        "properties": {"l": list},
    });
    // Rejected by its cost estimate. If a CRD has such a rule already, the runtime cost budget limits it.
    assert_eq!(expect_answer(&server, "a cubic rule", &spec), StatusCode::UNPROCESSABLE_ENTITY);
    expect_well(&server);
}

#[test]
fn exponential_patterns_are_rejected_or_answered_in_time() {
    for pattern in [
        "(a+)+$",
        "(a|aa)+$",
        "a{1000}{1000}",
        "((((((((((a{10}){10}){10}){10}){10}){10}))))",
        "(?P<x",
        "[",
        "\\",
    ] {
        let server = server();
        let spec = json!({"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}});
        if expect_answer(&server, pattern, &spec) != StatusCode::CREATED {
            continue;
        }
        let body = json!({
            "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"},
            "spec": {"a": "a".repeat(50_000) + "b"},
        });
        let answer = send(&server, pattern, request(Method::POST, WIDGETS, JSON, body.to_string()));
        assert!(!answer.status.is_server_error(), "{pattern}: {}", answer.status);
        expect_well(&server);
    }
}

#[test]
fn wide_objects_are_answered_in_time() {
    let server = server();
    let spec = json!({
        "type": "object",
        "properties": {
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "map": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}},
            },
            "atomic": {"type": "array", "items": {"type": "string"}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        },
    });
    assert_eq!(expect_answer(&server, "a definition", &spec), StatusCode::CREATED);
    let many = |element: fn(usize) -> Value| (0..30_000).map(element).collect::<Value>();
    let fields = (0..30_000).map(|at| (format!("f{at}"), json!(at))).collect::<serde_json::Map<_, _>>();
    for spec in [
        json!({"set": many(|at| json!(format!("s{at}")))}),
        json!({"map": many(|at| json!({"name": format!("n{at}")}))}),
        json!({"atomic": many(|at| json!(format!("s{at}")))}),
        json!({"free": fields}),
    ] {
        let what = spec.to_string()[..40].to_owned();
        let body = json!({
            "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec,
        })
        .to_string();
        let fork = server.fork();
        let answer = send(&fork, &what, request(Method::POST, WIDGETS, JSON, body.clone()));
        assert_eq!(answer.status, StatusCode::CREATED, "{what}: {}", answer.json()["message"]);
        let path = format!("{WIDGETS}/w?fieldManager=m&force=true");
        for _ in 0..2 {
            let answer = send(&fork, &what, request(Method::PATCH, &path, APPLY, body.clone()));
            assert_eq!(answer.status, StatusCode::OK, "{what}: {}", answer.json()["message"]);
        }
    }
    expect_well(&server);
}

#[test]
fn objects_of_maximum_depth_can_be_read_again() {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    for depth in [380, 390, 394, 396, 397, 398, 399] {
        let server = server();
        assert_eq!(expect_answer(&server, "a definition", &schema), StatusCode::CREATED);
        let spec = (0..depth).fold(json!("x"), |inner, _| json!({"a": inner}));
        let body = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec});
        let what = format!("{depth} levels");
        let answer = send(&server, &what, request(Method::POST, WIDGETS, JSON, body.to_string()));
        if answer.status == StatusCode::CREATED {
            let answer = send(&server, &what, request(Method::GET, &format!("{WIDGETS}/w"), "", ""));
            let text = String::from_utf8_lossy(&answer.body).into_owned();
            assert!(text.contains(r#""name":"w""#) && text.contains(r#"{"a":"x"}"#), "{what}: {text:.200}");
            send(&server, &what, request(Method::DELETE, &format!("{WIDGETS}/w"), "", ""));
            let apply = format!("{WIDGETS}/w?fieldManager=m");
            let answer = send(&server, &what, request(Method::PATCH, &apply, APPLY, body.to_string()));
            assert!(!answer.status.is_server_error(), "{what}: {}", answer.json()["message"]);
        }
        expect_well(&server);
    }
}

#[test]
fn invalid_managed_fields_are_rejected_or_ignored() {
    let server = server();
    let mut deep = json!({});
    for _ in 0..150 {
        deep = json!({"f:a": deep});
    }
    for fields in [
        deep,
        json!({"k:{": {}}),
        json!({"v:": {}}),
        json!({"i:99999999999999999999": {}}),
        json!({"x": {}, ".": 1}),
        json!(["f:data"]),
        json!("f:data"),
    ] {
        let what = fields.to_string().chars().take(40).collect::<String>();
        let entry = json!({
            "manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields,
        });
        let body = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"},
            "metadata": {"name": "owned", "managedFields": [entry]},
        });
        let fork = server.fork();
        let answer = send(&fork, &what, request(Method::POST, MAPS, JSON, body.to_string()));
        assert!(!answer.status.is_server_error(), "{what}: {}", answer.status);
        let path = format!("{MAPS}/owned?fieldManager=m&force=true");
        let plain = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owned"}, "data": {"a": "c"}});
        let answer = send(&fork, &what, request(Method::PATCH, &path, APPLY, plain.to_string()));
        assert!(answer.status.is_success() || answer.json()["kind"] == "Status", "{what}");
    }
    expect_well(&server);
}

#[test]
fn bombs_in_apply_configurations_are_rejected() {
    let server = server();
    let bomb = "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n\
                d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\n\
                g: [*f,*f,*f,*f,*f,*f,*f,*f,*f]\n";
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let path = format!("{MAPS}/x?fieldManager=m");
    for (what, body) in
        [("a bomb", bomb.to_owned()), ("a deep list", deep), ("a tab", "a:\n\t- b".to_owned())]
    {
        send(&server, what, request(Method::PATCH, &path, APPLY, body)).expect_refusal(what);
    }
    expect_well(&server);
}
