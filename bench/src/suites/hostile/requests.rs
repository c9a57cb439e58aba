//! The expensive requests, and the objects that they need.

use bytes::Bytes;
use http::{Method, Request, header};
use http_body_util::Full;
use serde_json::{Value, json};

use super::Call;

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";
/// Objects of the large list.
const LISTED: usize = 100_000;
/// Dependents of the deleted owner.
const DEPENDENTS: usize = 10_000;
/// CRDs of one group.
const CRD_COUNT: usize = 5_000;
/// CRDs of the published OpenAPI document.
const OPENAPI_KINDS: usize = 1_000;
/// The target for the peak memory of the server.
const PEAK_MB: f64 = 600.0;
const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";
/// ClusterRoles that aggregate each other.
const RING: usize = 200;

/// Expensive requests of one client.
pub(super) struct Attack {
    pub(super) name: &'static str,
    /// The requests before the measurement. All must succeed.
    pub(super) prepare: fn(&str) -> Vec<Call>,
    /// Further requests, with the UID of the last prepared object.
    pub(super) then: fn(&str, &str) -> Vec<Call>,
    /// The measured requests, one after another.
    pub(super) calls: fn(&str) -> Vec<Call>,
    /// Whether the requests cannot be repeated.
    pub(super) is_single: bool,
    /// Whether the responses are not read.
    pub(super) is_unread: bool,
    /// The target for the peak memory of the server, in megabytes.
    pub(super) peak: f64,
}

pub(super) fn attacks() -> Vec<Attack> {
    let attack = |name, prepare, calls| Attack {
        name,
        prepare,
        then: |_, _| Vec::new(),
        calls,
        is_single: false,
        is_unread: false,
        peak: PEAK_MB,
    };
    vec![
        attack("regular expression on 100,000 letters", regex, |base| {
            vec![widget(base, &"ä".repeat(100_000))]
        }),
        attack("nested regular expression on 1 MB", nested_regex, |base| {
            vec![widget(base, &"xä".repeat(330_000))]
        }),
        attack("enum of 20,000 against 100,000 invalid items", many_values, |base| {
            vec![widget_of(base, &json!({ "values": vec!["x"; 100_000] }))]
        }),
        attack("enum of 20,000 against 100,000 items", many_values, |base| {
            let items: Vec<String> = (0..100_000).map(|at| format!("value-{}", at % 20_000)).collect();
            vec![widget_of(base, &json!({ "values": items }))]
        }),
        Attack {
            is_unread: true,
            is_single: true,
            ..attack("20 unread Table watches of 100,000", maps, |base| {
                let watch = || {
                    let mut watch = listed(base, TABLE);
                    *watch.uri_mut() = format!("{base}{MAPS}?watch=true").parse().unwrap_or_default();
                    watch
                };
                (0..20).map(|_| watch()).collect()
            })
        },
        Attack { is_single: true, ..attack("5,000 CRDs in one group", |base| vec![small(base)], many_crds) },
        attack("list of 100,000 as Table", maps, |base| vec![listed(base, TABLE)]),
        attack("list of 100,000 as metadata", maps, |base| {
            vec![listed(base, "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")]
        }),
        attack("list of 100,000 as YAML", maps, |base| vec![listed(base, "application/yaml")]),
        attack(
            "3 MiB of YAML",
            |base| vec![small(base)],
            |base| {
                let lines: Vec<String> = (0..100_000).map(|at| format!("  key-{at}: \"{at:012}\"")).collect();
                let text = format!(
                    "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: large}}\ndata:\n{}\n",
                    lines.join("\n")
                );
                let request = Request::post(format!("{base}{MAPS}?dryRun=All"));
                let request = request.header(header::CONTENT_TYPE, "application/yaml");
                request.body(Full::new(Bytes::from(text))).into_iter().collect()
            },
        ),
        Attack {
            then: dependents,
            is_single: true,
            ..attack(
                "deletion of an owner of 10,000",
                |base| vec![small(base), map(base, &json!({ "name": "owner" }))],
                |base| {
                    let path = format!("{base}{MAPS}/owner?propagationPolicy=Foreground");
                    Request::delete(path).body(Full::default()).into_iter().collect()
                },
            )
        },
        Attack {
            is_single: true,
            ..attack("OpenAPI v2 of 1,000 custom kinds", openapi_kinds, |base| {
                vec![call(Method::GET, &format!("{base}/openapi/v2"), &Value::Null)]
            })
        },
        attack("patch of a custom resource of 2 MB", large_widget, |base| {
            let path = format!("{base}{WIDGETS}/hostile?dryRun=All");
            let mut patch = call(Method::PATCH, &path, &json!({ "metadata": { "labels": { "a": "b" } } }));
            let media = header::HeaderValue::from_static("application/merge-patch+json");
            patch.headers_mut().insert(header::CONTENT_TYPE, media);
            vec![patch]
        }),
        Attack {
            is_single: true,
            ..attack("ring of 200 aggregated ClusterRoles", |base| vec![small(base)], ring)
        },
    ]
}

/// The read of the well-behaved client.
pub(super) fn small_read(base: &str) -> Call {
    call(Method::GET, &format!("{base}{MAPS}/small"), &Value::Null)
}

fn call(method: Method, uri: &str, body: &Value) -> Call {
    let bytes = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
    let mut request = Request::new(Full::new(bytes));
    *request.method_mut() = method;
    *request.uri_mut() = uri.parse().unwrap_or_default();
    request.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    request
}

fn map(base: &str, metadata: &Value) -> Call {
    call(Method::POST, &format!("{base}{MAPS}"), &json!({ "metadata": metadata, "data": { "key": "value" } }))
}

fn small(base: &str) -> Call {
    map(base, &json!({ "name": "small" }))
}

fn maps(base: &str) -> Vec<Call> {
    let many = (0..LISTED).map(|at| map(base, &json!({ "name": format!("map-{at:06}") })));
    std::iter::once(small(base)).chain(many).collect()
}

fn listed(base: &str, accept: &'static str) -> Call {
    let mut request = call(Method::GET, &format!("{base}{MAPS}"), &Value::Null);
    request.headers_mut().insert(header::ACCEPT, header::HeaderValue::from_static(accept));
    request
}

fn crd(base: &str, spec: &Value) -> Call {
    crd_named(base, "widgets", "Widget", spec)
}

fn many_crds(base: &str) -> Vec<Call> {
    crds(base, CRD_COUNT)
}

fn openapi_kinds(base: &str) -> Vec<Call> {
    std::iter::once(small(base)).chain(crds(base, OPENAPI_KINDS)).collect()
}

fn large_widget(base: &str) -> Vec<Call> {
    let items: Vec<String> = (0..100_000).map(|at| format!("value-of-item-{at}")).collect();
    let values = json!({ "values": { "type": "array", "items": { "type": "string" } } });
    let mut create = widget_of(base, &json!({ "values": items }));
    *create.uri_mut() = format!("{base}{WIDGETS}").parse().unwrap_or_default();
    vec![small(base), crd(base, &values), create]
}

fn crds(base: &str, count: usize) -> Vec<Call> {
    let text = json!({ "text": { "type": "string" } });
    let names = (0..count).map(|at| (format!("kinds{at}"), format!("Kind{at}")));
    names.map(|(plural, kind)| crd_named(base, &plural, &kind, &text)).collect()
}

fn crd_named(base: &str, plural: &str, kind: &str, spec: &Value) -> Call {
    let schema =
        json!({ "type": "object", "properties": { "spec": { "type": "object", "properties": spec } } });
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.example.com") },
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": { "kind": kind, "plural": plural },
            "versions": [{
                "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema },
            }],
        },
    });
    call(Method::POST, &format!("{base}{CRDS}"), &crd)
}

fn regex(base: &str) -> Vec<Call> {
    vec![small(base), crd(base, &json!({ "text": { "type": "string", "pattern": "\\p{L}{1,1000}!" } }))]
}

fn nested_regex(base: &str) -> Vec<Call> {
    vec![
        small(base),
        crd(base, &json!({ "text": { "type": "string", "pattern": "(\\p{L}{1,100}){1,10}!" } })),
    ]
}

fn many_values(base: &str) -> Vec<Call> {
    let values: Vec<String> = (0..20_000).map(|at| format!("value-{at}")).collect();
    let items = json!({ "type": "string", "enum": values });
    vec![small(base), crd(base, &json!({ "values": { "type": "array", "items": items } }))]
}

fn widget(base: &str, text: &str) -> Call {
    widget_of(base, &json!({ "text": text }))
}

fn widget_of(base: &str, spec: &Value) -> Call {
    let object = json!({
        "apiVersion": "example.com/v1", "kind": "Widget", "metadata": { "name": "hostile" }, "spec": spec,
    });
    call(Method::POST, &format!("{base}{WIDGETS}?dryRun=All"), &object)
}

fn dependents(base: &str, uid: &str) -> Vec<Call> {
    let owner = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "blockOwnerDeletion": true, "uid": uid,
    });
    let dependent =
        |at: usize| map(base, &json!({ "name": format!("dependent-{at:05}"), "ownerReferences": [owner] }));
    (0..DEPENDENTS).map(dependent).collect()
}

fn ring(base: &str) -> Vec<Call> {
    let role = |at: usize| {
        let next = json!({ "matchLabels": { "ring": format!("{}", (at + 1) % RING) } });
        let role = json!({
            "metadata": { "name": format!("ring-{at:03}"), "labels": { "ring": format!("{at}") } },
            "aggregationRule": { "clusterRoleSelectors": [next] },
        });
        call(Method::POST, &format!("{base}{ROLES}"), &role)
    };
    let source = json!({
        "metadata": { "name": "source", "labels": { "ring": "0" } },
        "rules": [{ "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] }],
    });
    (0..RING).map(role).chain([call(Method::POST, &format!("{base}{ROLES}"), &source)]).collect()
}
