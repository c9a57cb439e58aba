//! Admission policies.

mod cost;
mod matching;
mod misconfigured;
mod mutating;

use kubewright_apiserver::ApiServer;
use serde_json::{Value, json};

use crate::webhooks::{CONFIG_MAPS, create_config_map, send};
use crate::world::server;

const REGISTRATION: &str = "/apis/admissionregistration.k8s.io/v1";

async fn post(server: &ApiServer, plural: &str, object: &Value) -> (u16, Value) {
    let (status, _, body) = send(server, "POST", &format!("{REGISTRATION}/{plural}"), object).await;
    (status, body)
}

/// Creates a policy for ConfigMaps with these additional spec fields, and a binding with its own.
async fn enforce(server: &ApiServer, policy: Value, binding: Value) {
    let mut spec = json!({"matchConstraints": {"resourceRules": [{
        "apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"],
    }]}});
    for (field, value) in policy.as_object().unwrap() {
        spec[field] = value.clone();
    }
    let (status, body) =
        post(server, "validatingadmissionpolicies", &json!({"metadata": {"name": "p"}, "spec": spec})).await;
    assert_eq!(status, 201, "{body}");
    let mut spec = json!({"policyName": "p", "validationActions": ["Deny"]});
    for (field, value) in binding.as_object().unwrap() {
        spec[field] = value.clone();
    }
    let binding = json!({"metadata": {"name": "b"}, "spec": spec});
    let (status, body) = post(server, "validatingadmissionpolicybindings", &binding).await;
    assert_eq!(status, 201, "{body}");
}

#[tokio::test]
async fn a_policy_denies_with_message_and_reason() {
    let server = server();
    let policy = json!({
        "variables": [
            {"name": "size", "expression": "size(object.data)"},
            {"name": "broken", "expression": "object.nosuch.field"},
        ],
        "matchConditions": [{"name": "write", "expression": "request.operation != 'DELETE'"}],
        "validations": [
            {"expression": "variables.size < 2 || has(object.metadata.labels) || variables.broken == 1",
             "messageExpression": "'too many: ' + string(variables.size)", "reason": "Forbidden"},
        ],
    });
    enforce(&server, policy, json!({})).await;
    assert_eq!(create_config_map(&server, "a").await.0, 201);
    let two = json!({"metadata": {"name": "b"}, "data": {"a": "1", "b": "2"}});
    let (status, _, body) = send(&server, "POST", CONFIG_MAPS, &two).await;
    // A failing variable is an error only if it is used.
    assert_eq!((status, &body["reason"]), (422, &json!("Invalid")));
    let message = body["message"].as_str().unwrap();
    assert!(
        message.contains("composited variable \"broken\" fails to evaluate: no such key: nosuch"),
        "{message}"
    );
    let (status, _, _) = send(&server, "DELETE", &format!("{CONFIG_MAPS}/a"), &Value::Null).await;
    assert_eq!(status, 200);
}

#[tokio::test]
async fn the_reason_determines_the_status_code() {
    let server = server();
    let validations = json!({"validations": [
        {"expression": "namespaceObject.metadata.name == 'default'"},
        {"expression": "authorizer.serviceAccount('default', 'x').requestResource.check('create').allowed()",
         "message": "service accounts may not", "reason": "Forbidden"},
    ]});
    enforce(&server, validations, json!({})).await;
    let (status, _, body) = create_config_map(&server, "a").await;
    assert_eq!((status, &body["reason"]), (403, &json!("Forbidden")));
    assert_eq!(
        body["message"],
        "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: service \
         accounts may not"
    );
}

#[tokio::test]
async fn a_binding_warns_and_selects_parameters() {
    let server = server();
    for (name, max) in [("one", "1"), ("two", "2")] {
        let params = json!({"metadata": {"name": name, "labels": {"params": "yes"}}, "data": {"max": max}});
        assert_eq!(send(&server, "POST", CONFIG_MAPS, &params).await.0, 201);
    }
    let policy = json!({
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "validations": [{"expression": "size(object.data) <= int(params.data.max)",
            "messageExpression": "'at most ' + params.data.max"}],
    });
    let binding = json!({
        "validationActions": ["Warn", "Audit"],
        "paramRef": {"selector": {"matchLabels": {"params": "yes"}}, "parameterNotFoundAction": "Deny"},
    });
    enforce(&server, policy, binding).await;
    let three = json!({"metadata": {"name": "c"}, "data": {"a": "1", "b": "2", "c": "3"}});
    let (status, warnings, _) = send(&server, "POST", CONFIG_MAPS, &three).await;
    assert_eq!(status, 201);
    let expected = |max: &str| {
        format!(
            "299 - \"Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': at most {max}\""
        )
    };
    assert_eq!(warnings, [expected("1"), expected("2")]);
    for name in ["one", "two"] {
        assert_eq!(send(&server, "DELETE", &format!("{CONFIG_MAPS}/{name}"), &Value::Null).await.0, 200);
    }
    let (status, _, body) = create_config_map(&server, "d").await;
    assert_eq!(status, 422);
    let message = body["message"].as_str().unwrap();
    assert!(
        message.ends_with("no params found for policy binding with `Deny` parameterNotFoundAction"),
        "{message}"
    );
}

#[tokio::test]
async fn expressions_are_compiled_when_a_policy_is_created() {
    let server = server();
    let policy = json!({"metadata": {"name": "p"}, "spec": {
        "matchConstraints": {"resourceRules": [{
            "apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}]},
        "variables": [{"name": "a", "expression": "1"}],
        "validations": [
            {"expression": "variables.a == 1 && variables.nosuch == 2"},
            {"expression": "true", "messageExpression": "authorizer.path('/x').check('get').reason()"},
        ],
        "auditAnnotations": [{"key": "k", "valueExpression": "1"}],
    }});
    let (status, body) = post(&server, "validatingadmissionpolicies", &policy).await;
    assert_eq!(status, 422);
    let causes = body["details"]["causes"].as_array().unwrap();
    let found = |field: &str| {
        let cause = causes.iter().find(|cause| cause["field"] == field);
        cause.unwrap_or_else(|| panic!("{field}: {causes:?}"))["message"].as_str().unwrap().to_owned()
    };
    assert!(found("spec.validations[0].expression").contains("undefined field 'nosuch'"));
    assert!(found("spec.validations[1].messageExpression").contains("undeclared reference to 'authorizer'"));
    let annotation = found("spec.auditAnnotations[0].valueExpression");
    assert!(annotation.contains("must evaluate to one of [string null_type] but got int"), "{annotation}");
}

#[tokio::test]
async fn a_mutating_policy_changes_objects() {
    let server = server();
    let rules = json!({"resourceRules": [{
        "apiGroups": ["", "apps"], "apiVersions": ["v1"], "operations": ["CREATE"],
        "resources": ["configmaps", "deployments"],
    }]});
    let policies = [
        (
            "a-labels",
            json!([{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression":
            "Object{metadata: Object.metadata{labels: Object.metadata.labels{team: request.namespace}}}"}}]),
        ),
        (
            "b-data",
            json!([{"patchType": "JSONPatch", "jsonPatch": {"expression":
            "[JSONPatch{op: 'add', path: '/metadata/annotations', value: {'seen': object.metadata.labels.team}}]"}}]),
        ),
    ];
    for (name, mutations) in policies {
        let policy = json!({"metadata": {"name": name}, "spec": {
            "matchConstraints": rules, "reinvocationPolicy": "Never", "mutations": mutations}});
        let (status, body) = post(&server, "mutatingadmissionpolicies", &policy).await;
        assert_eq!(status, 201, "{body}");
        let binding = json!({"metadata": {"name": name}, "spec": {"policyName": name}});
        let (status, body) = post(&server, "mutatingadmissionpolicybindings", &binding).await;
        assert_eq!(status, 201, "{body}");
    }
    let (status, _, created) = create_config_map(&server, "a").await;
    assert_eq!(status, 201);
    assert_eq!(created["metadata"]["labels"], json!({"team": "default"}));
    assert_eq!(created["metadata"]["annotations"], json!({"seen": "default"}));
    assert_eq!(created["data"], json!({"key": "1"}));
}

#[tokio::test]
async fn a_mutation_that_fails_denies_the_request() {
    let server = server();
    let policy = json!({"metadata": {"name": "p"}, "spec": {
        "matchConstraints": {"resourceRules": [{
            "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]},
        "reinvocationPolicy": "Never",
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression":
            "[JSONPatch{op: 'remove', path: '/nosuch'}]"}}],
    }});
    assert_eq!(post(&server, "mutatingadmissionpolicies", &policy).await.0, 201);
    let binding = json!({"metadata": {"name": "b"}, "spec": {"policyName": "p"}});
    assert_eq!(post(&server, "mutatingadmissionpolicybindings", &binding).await.0, 201);
    let (status, _, body) = create_config_map(&server, "a").await;
    assert_eq!((status, &body["reason"]), (403, &json!("Invalid")));
    let message = body["message"].as_str().unwrap();
    assert!(message.starts_with("policy 'p' with binding 'b' denied request: JSON Patch: "), "{message}");
}

const POLICY: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/p";

async fn status(server: &ApiServer) -> Value {
    send(server, "GET", POLICY, &Value::Null).await.2["status"].take()
}

#[tokio::test]
async fn a_policy_is_type_checked_against_the_kinds_that_it_matches() {
    let server = server();
    let rule = |group: &str, resource: &str| json!({"apiGroups": [group], "apiVersions": ["v1"], "operations": ["*"], "resources": [resource]});
    let mut policy = json!({
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "matchConstraints": {"resourceRules": [
            rule("apps", "deployments"), rule("", "pods"), rule("nosuch.example.com", "things"), rule("*", "*"),
        ]},
        "validations": [
            {"expression": "object.metadata.name != params.data.name"},
            {"expression": "object.spec.replicas > 1", "messageExpression": "'' + params.nosuch"},
        ],
    });
    enforce(&server, policy.clone(), json!({})).await;
    let checked = status(&server).await;
    assert_eq!(checked["observedGeneration"], 1);
    let caret = "undefined field 'replicas'\n | object.spec.replicas > 1\n | ...........^\n";
    let warnings = &checked["typeChecking"]["expressionWarnings"];
    assert_eq!(
        warnings[0],
        json!({"fieldRef": "spec.validations[1].expression",
            "warning": format!("/v1, Kind=Pod: ERROR: <input>:1:12: {caret}")})
    );
    assert_eq!(warnings[1]["fieldRef"], "spec.validations[1].messageExpression");
    let message = warnings[1]["warning"].as_str().unwrap();
    assert!(message.contains("/v1, Kind=Pod: ERROR: <input>:1:12: undefined field 'nosuch'"), "{message}");
    assert!(message.contains("\n\napps/v1, Kind=Deployment: ERROR: <input>:1:12: undefined"), "{message}");
    assert_eq!(warnings.as_array().unwrap().len(), 2);

    // A corrected policy has no warnings.
    policy["validations"] = json!([{"expression": "object.metadata.name != params.data.name"}]);
    let (_, _, mut object) = send(&server, "GET", POLICY, &Value::Null).await;
    object["spec"]["validations"] = policy["validations"].clone();
    assert_eq!(send(&server, "PUT", POLICY, &object).await.0, 200);
    let checked = status(&server).await;
    assert_eq!(checked["observedGeneration"], 2);
    assert_eq!(checked["typeChecking"]["expressionWarnings"], Value::Null);
    let (_, _, object) = send(&server, "GET", POLICY, &Value::Null).await;
    let managers = object["metadata"]["managedFields"].as_array().unwrap();
    let ours =
        managers.iter().find(|it| it["manager"] == "validatingadmissionpolicy-status-controller").unwrap();
    assert_eq!((&ours["operation"], &ours["subresource"]), (&json!("Apply"), &json!("status")));
}

#[tokio::test]
async fn a_custom_resource_is_type_checked_with_its_schema() {
    let server = server();
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "size": {"type": "integer"}, "port": {"x-kubernetes-int-or-string": true}}}}});
    let crd = json!({
        "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "scope": "Cluster", "names": {"kind": "Thing", "plural": "things"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]},
    });
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(send(&server, "POST", path, &crd).await.0, 201);
    let policy = json!({
        "matchConstraints": {"resourceRules": [{"apiGroups": ["example.com"], "apiVersions": ["v1"],
            "operations": ["*"], "resources": ["things"]}]},
        "validations": [
            {"expression": "object.spec.size > 1 && object.spec.port != 'http' && object.spec.port != 1"},
            {"expression": "object.spec.size == 'big'"},
        ],
    });
    enforce(&server, policy, json!({})).await;
    let warnings = status(&server).await["typeChecking"]["expressionWarnings"].take();
    assert_eq!(
        warnings,
        json!([{"fieldRef": "spec.validations[1].expression", "warning":
            "example.com/v1, Kind=Thing: ERROR: <input>:1:18: found no matching overload for '_==_' applied to \
             '(int, string)'\n | object.spec.size == 'big'\n | .................^\n"}])
    );
}

#[tokio::test]
async fn a_policy_without_warnings_has_an_empty_type_check() {
    let server = server();
    enforce(&server, json!({"validations": [{"expression": "size(object.data) > 0"}]}), json!({})).await;
    assert_eq!(status(&server).await, json!({"observedGeneration": 1, "typeChecking": {}}));
}

#[tokio::test]
async fn without_controllers_the_status_of_a_policy_stays_empty() {
    let options = kubewright_apiserver::Options {
        controllers: kubewright_apiserver::Controllers::None,
        ..kubewright_apiserver::Options::default()
    };
    let server = ApiServer::new(options);
    enforce(&server, json!({"validations": [{"expression": "object.nosuch == 1"}]}), json!({})).await;
    assert_eq!(status(&server).await, json!({}));
}

#[tokio::test]
async fn a_missing_parameter_is_allowed_or_denied_by_the_binding() {
    for (action, expected) in [("Allow", 201), ("Deny", 422)] {
        let server = server();
        let policy = json!({
            "paramKind": {"apiVersion": "v1", "kind": "Secret"},
            "validations": [{"expression": "false"}],
        });
        let reference = json!({"name": "missing", "namespace": "default", "parameterNotFoundAction": action});
        enforce(&server, policy, json!({"paramRef": reference})).await;
        let (status, _, body) = create_config_map(&server, "a").await;
        assert_eq!(status, expected, "{action}: {body}");
        let secret = json!({"metadata": {"name": "missing"}});
        assert_eq!(send(&server, "POST", "/api/v1/namespaces/default/secrets", &secret).await.0, 201);
        let (status, _, _) = create_config_map(&server, "b").await;
        assert_eq!(status, 422, "{action}: with the parameter, the expression is evaluated");
    }
}

#[tokio::test]
async fn a_custom_resource_is_a_parameter() {
    let server = server();
    let schema = json!({"type": "object", "properties": {"max": {"type": "integer"}}});
    let definition = json!({
        "metadata": {"name": "limits.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"kind": "Limit", "plural": "limits"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    });
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(send(&server, "POST", path, &definition).await.0, 201);
    let limit = json!({"apiVersion": "example.com/v1", "kind": "Limit", "metadata": {"name": "l"}, "max": 1});
    let limits = "/apis/example.com/v1/namespaces/default/limits";
    assert_eq!(send(&server, "POST", limits, &limit).await.0, 201);
    let policy = json!({
        "paramKind": {"apiVersion": "example.com/v1", "kind": "Limit"},
        "validations": [{"expression": "size(object.data) <= params.max"}],
    });
    let reference = json!({"name": "l", "parameterNotFoundAction": "Deny"});
    enforce(&server, policy, json!({"paramRef": reference})).await;
    assert_eq!(create_config_map(&server, "a").await.0, 201);
    let two = json!({"metadata": {"name": "b"}, "data": {"a": "1", "b": "2"}});
    assert_eq!(send(&server, "POST", CONFIG_MAPS, &two).await.0, 422);
    assert_eq!(send(&server, "PATCH", &format!("{limits}/l"), &json!({"max": 2})).await.0, 200);
    assert_eq!(send(&server, "POST", CONFIG_MAPS, &two).await.0, 201);
}

#[tokio::test]
async fn a_mutating_policy_is_reinvoked_if_needed() {
    for (reinvocation, expected) in [("Never", "no"), ("IfNeeded", "yes")] {
        let server = server();
        let label = "Object{metadata: Object.metadata{labels: Object.metadata.labels{\
                     seen: has(object.metadata.annotations) ? 'yes' : 'no'}}}";
        let annotate = "Object{metadata: Object.metadata{annotations: Object.metadata.annotations{by: 'b'}}}";
        for (name, policy, expression) in [("a", reinvocation, label), ("b", "Never", annotate)] {
            let policy = json!({"metadata": {"name": name}, "spec": {
                "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
                    "operations": ["CREATE"], "resources": ["configmaps"]}]},
                "reinvocationPolicy": policy,
                "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}],
            }});
            let (status, body) = post(&server, "mutatingadmissionpolicies", &policy).await;
            assert_eq!(status, 201, "{body}");
            let binding = json!({"metadata": {"name": name}, "spec": {"policyName": name}});
            assert_eq!(post(&server, "mutatingadmissionpolicybindings", &binding).await.0, 201);
        }
        let (status, _, created) = create_config_map(&server, "a").await;
        assert_eq!(status, 201, "{created}");
        assert_eq!(created["metadata"]["labels"]["seen"], expected, "{reinvocation}");
        assert_eq!(created["metadata"]["annotations"]["by"], "b");
    }
}
