//! Checks of what a MutatingAdmissionPolicy changes.

use kubewright_apiserver::ApiServer;
use serde_json::{Value, json};

use super::post;
use crate::webhooks::{create_config_map, send};
use crate::world::server;

/// Creates a policy for new ConfigMaps and Deployments with these mutations and additional spec fields, and its
/// binding.
pub(super) async fn mutate(server: &ApiServer, name: &str, mutations: &Value, more: &Value) {
    let mut spec = json!({
        "matchConstraints": {"resourceRules": [{
            "apiGroups": ["", "apps"], "apiVersions": ["v1"], "operations": ["CREATE"],
            "resources": ["configmaps", "deployments"],
        }]},
        "reinvocationPolicy": "Never",
        "mutations": mutations,
    });
    for (field, value) in more.as_object().unwrap() {
        spec[field] = value.clone();
    }
    let policy = json!({"metadata": {"name": name}, "spec": spec});
    let (status, body) = post(server, "mutatingadmissionpolicies", &policy).await;
    assert_eq!(status, 201, "{body}");
    let binding = json!({"metadata": {"name": name}, "spec": {"policyName": name}});
    let (status, body) = post(server, "mutatingadmissionpolicybindings", &binding).await;
    assert_eq!(status, 201, "{body}");
}

fn configuration(expression: &str) -> Value {
    json!([{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}])
}

fn json_patch(expression: &str) -> Value {
    json!([{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}])
}

/// The error of a policy for a new Deployment, after the policy's name.
async fn denied(mutations: &Value) -> String {
    let server = server();
    mutate(&server, "p", mutations, &json!({})).await;
    let deployment = json!({"metadata": {"name": "a"}, "spec": {
        "selector": {"matchLabels": {"app": "a"}},
        "template": {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "main", "image": "i"}]}},
    }});
    let path = "/apis/apps/v1/namespaces/default/deployments";
    let (status, _, body) = send(&server, "POST", path, &deployment).await;
    assert_eq!((status, &body["reason"]), (403, &json!("Invalid")), "{body}");
    let message = body["message"].as_str().unwrap();
    message.strip_prefix("policy 'p' with binding 'p' denied request: ").expect(message).to_owned()
}

#[tokio::test]
async fn an_apply_configuration_must_conform_to_the_schema() {
    let start = "error applying patch: failed to convert patch object to typed object: ";
    for (expression, why) in [
        ("Object{nosuch: 1}", ".nosuch: field not declared in schema"),
        (
            "Object{spec: Object.spec{replicas: 'x'}}",
            ".spec.replicas: expected numeric (int or float), got string",
        ),
    ] {
        assert_eq!(denied(&configuration(expression)).await, format!("{start}{why}"));
    }
}

#[tokio::test]
async fn an_apply_configuration_must_not_set_atomic_values() {
    let start =
        "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: ";
    let selector = "Object{spec: Object.spec{selector: Object.spec.selector{\
                    matchLabels: Object.spec.selector.matchLabels{app: 'b'}}}}";
    assert_eq!(denied(&configuration(selector)).await, format!("{start}.spec.selector"));
    let containers = "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{\
                      containers: [Object.spec.template.spec.containers{name: 'main', args: ['a'], command: ['c']}]}}}}";
    let container = ".spec.template.spec.containers[0]";
    assert_eq!(
        denied(&configuration(containers)).await,
        format!("{start}{container}.args, {container}.command")
    );
}

#[tokio::test]
async fn the_type_names_of_objects_must_match_their_fields() {
    let mismatch = |name: &str, expected: &str| {
        format!(
            "unexpected type name \"{name}\", expected \"{expected}\", which matches field name path from root \
             Object type"
        )
    };
    let labels = "Object{metadata: Object.metadata{labels: Object.spec{a: 'b'}}}";
    assert_eq!(
        denied(&configuration(labels)).await,
        format!("type mismatch: {}", mismatch("Object.spec", "Object.metadata.labels"))
    );
    // In lists, and below a name that is wrong itself. All errors are reported.
    let containers = "Object{spec: Object.spec{template: Object.spec.pod{spec: Object.spec.template.spec{\
                      containers: [1].map(i, Object.spec.containers{name: 'main'})}}}}";
    assert_eq!(
        denied(&configuration(containers)).await,
        format!(
            "type mismatch: {}\n{}",
            mismatch("Object.spec.pod", "Object.spec.template"),
            mismatch("Object.spec.containers", "Object.spec.template.spec.containers"),
        )
    );
    let patch =
        "[JSONPatch{op: 'add', path: '/metadata', value: Object.metadata{labels: Object.labels{a: 'b'}}}]";
    assert_eq!(
        denied(&json_patch(patch)).await,
        format!("type mismatch: {}", mismatch("Object.labels", "Object.metadata.labels"))
    );
}

#[tokio::test]
async fn the_result_of_a_json_patch_is_decoded_strictly() {
    for failure_policy in ["Fail", "Ignore"] {
        let server = server();
        let patch = json_patch("[JSONPatch{op: 'add', path: '/nosuch', value: 1}]");
        mutate(&server, "p", &patch, &json!({"failurePolicy": failure_policy})).await;
        let (status, _, body) = create_config_map(&server, "a").await;
        assert_eq!(
            (status, body["message"].as_str().unwrap()),
            (500, "Internal error occurred: strict decoding error: unknown field \"nosuch\""),
            "{failure_policy}"
        );
    }
}

/// Undeclared fields of a custom resource are pruned, as in every write.
#[tokio::test]
async fn a_json_patch_may_add_undeclared_fields_to_a_custom_resource() {
    let server = server();
    let definition = json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"size": {"type": "integer"}}}}}],
        },
    });
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(send(&server, "POST", path, &definition).await.0, 201);
    let rules = json!({"resourceRules": [{"apiGroups": ["example.com"], "apiVersions": ["v1"],
        "operations": ["CREATE"], "resources": ["widgets"]}]});
    let patch = json_patch(
        "[JSONPatch{op: 'add', path: '/nosuch', value: 1}, JSONPatch{op: 'add', path: '/size', value: 2}]",
    );
    mutate(&server, "p", &patch, &json!({"matchConstraints": rules})).await;
    let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}});
    let path = "/apis/example.com/v1/namespaces/default/widgets";
    let (status, _, body) = send(&server, "POST", path, &widget).await;
    assert_eq!((status, &body["size"], &body["nosuch"]), (201, &json!(2), &Value::Null), "{body}");
}
