//! RBAC: roles and bindings take effect with the request that writes them.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, header};
use http_body_util::{BodyExt as _, Full};
use kubewright_apiserver::authn::User;
use kubewright_apiserver::authz::{Action, ActionOn, Authorization, Authorizer};
use kubewright_apiserver::{ApiServer, Controllers, Options};
use serde_json::{Value, json};

use crate::world::{options, server};

const GROUP: &str = "/apis/rbac.authorization.k8s.io/v1";
const IN_DEFAULT: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Sends a request as a user. The body is JSON or a patch, depending on the method.
async fn send(server: &ApiServer, user: &User, method: Method, path: &str, body: Value) -> (u16, Value) {
    let media = match method {
        Method::PATCH if path.contains("fieldManager=") => "application/apply-patch+yaml",
        Method::PATCH => "application/merge-patch+json",
        _ => "application/json",
    };
    let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
    let request = Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, media);
    let mut request = request.body(Full::new(body)).expect("the test's own request is well-formed");
    request.extensions_mut().insert(user.clone());
    let answer = server.handle(request).await;
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.expect("the response is complete").to_bytes();
    (status, serde_json::from_slice(&body).unwrap_or_default())
}

async fn get(server: &ApiServer, user: &User, path: &str) -> u16 {
    send(server, user, Method::GET, path, Value::Null).await.0
}

/// Creates an object as the administrator.
async fn write(server: &ApiServer, path: &str, body: Value) {
    let (status, answer) = send(server, &User::admin(), Method::POST, path, body).await;
    assert_eq!(status, 201, "{answer}");
}

fn user(name: &str) -> User {
    User::authenticated(name, [])
}

fn role(name: &str, rules: &Value) -> Value {
    json!({"metadata": {"name": name}, "rules": rules})
}

fn binding(name: &str, kind: &str, role: &str, to: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
        "subjects": [{"kind": "User", "name": to}],
    })
}

/// Grants a user permissions in the namespace `default`.
async fn allow(server: &ApiServer, name: &str, to: &str, rules: Value) {
    write(server, &format!("{IN_DEFAULT}/roles"), role(name, &rules)).await;
    write(server, &format!("{IN_DEFAULT}/rolebindings"), binding(name, "Role", name, to)).await;
}

fn maps(verbs: &[&str]) -> Value {
    json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs}])
}

#[tokio::test]
async fn permissions_change_with_the_request_that_writes_them() {
    let server = server();
    let (jane, admin) = (user("jane"), User::admin());
    assert_eq!(get(&server, &jane, MAPS).await, 403);
    allow(&server, "reader", "jane", maps(&["list"])).await;
    assert_eq!(get(&server, &jane, MAPS).await, 200);
    assert_eq!(get(&server, &user("max"), MAPS).await, 403);
    assert_eq!(get(&server, &jane, "/api/v1/namespaces/kube-system/configmaps").await, 403);

    let path = format!("{IN_DEFAULT}/roles/reader");
    let (status, _) = send(&server, &admin, Method::PATCH, &path, json!({"rules": maps(&["get"])})).await;
    assert_eq!(status, 200);
    assert_eq!(get(&server, &jane, MAPS).await, 403);
    assert_eq!(get(&server, &jane, &format!("{MAPS}/kube-root-ca.crt")).await, 404);

    let path = format!("{IN_DEFAULT}/rolebindings/reader");
    assert_eq!(send(&server, &admin, Method::DELETE, &path, Value::Null).await.0, 200);
    assert_eq!(get(&server, &jane, &format!("{MAPS}/kube-root-ca.crt")).await, 403);
}

#[tokio::test]
async fn permissions_in_a_namespace_are_deleted_with_it() {
    let server = server();
    let jane = user("jane");
    write(&server, "/api/v1/namespaces", json!({"metadata": {"name": "brief"}})).await;
    let bindings = format!("{GROUP}/namespaces/brief/rolebindings");
    write(&server, &bindings, binding("view", "ClusterRole", "view", "jane")).await;
    assert_eq!(get(&server, &jane, "/api/v1/namespaces/brief/pods").await, 200);
    send(&server, &User::admin(), Method::DELETE, "/api/v1/namespaces/brief", Value::Null).await;
    write(&server, "/api/v1/namespaces", json!({"metadata": {"name": "brief"}})).await;
    assert_eq!(get(&server, &jane, "/api/v1/namespaces/brief/pods").await, 403);
}

#[tokio::test]
async fn a_fork_starts_with_the_same_permissions_and_is_independent() {
    let server = server();
    let jane = user("jane");
    allow(&server, "reader", "jane", maps(&["list"])).await;
    assert_eq!(get(&server, &jane, MAPS).await, 200);
    let fork = server.fork();
    assert_eq!(get(&fork, &jane, MAPS).await, 200);
    let path = format!("{IN_DEFAULT}/rolebindings/reader");
    send(&fork, &User::admin(), Method::DELETE, &path, Value::Null).await;
    assert_eq!((get(&fork, &jane, MAPS).await, get(&server, &jane, MAPS).await), (403, 200));
    allow(&server, "more", "max", maps(&["list"])).await;
    assert_eq!((get(&fork, &user("max"), MAPS).await, get(&server, &user("max"), MAPS).await), (403, 200));
}

#[tokio::test]
async fn permission_for_one_object_allows_listing_and_watching_it() {
    let server = server();
    let rules = json!([
        {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["mine"], "verbs": ["list", "watch"]},
    ]);
    allow(&server, "mine", "jane", rules).await;
    let jane = user("jane");
    assert_eq!(get(&server, &jane, &format!("{MAPS}?fieldSelector=metadata.name%3Dmine")).await, 200);
    let watch = format!("{MAPS}?watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3Dmine");
    assert_eq!(get(&server, &jane, &watch).await, 200);
    for other in ["", "?fieldSelector=metadata.name%3Dother", "?fieldSelector=metadata.name%21%3Dmine"] {
        assert_eq!(get(&server, &jane, &format!("{MAPS}{other}")).await, 403, "{other}");
    }
}

#[tokio::test]
async fn a_patch_or_update_that_creates_needs_permission_to_create() {
    let server = server();
    allow(&server, "patcher", "jane", maps(&["patch", "update"])).await;
    let jane = user("jane");
    let path = format!("{MAPS}/new?fieldManager=me");
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new"}});
    let (status, answer) = send(&server, &jane, Method::PATCH, &path, map.clone()).await;
    assert_eq!(status, 403);
    assert_eq!(
        answer["message"],
        "configmaps \"new\" is forbidden: User \"jane\" cannot create resource \"configmaps\" in API group \"\" in the \
         namespace \"default\""
    );
    write(&server, MAPS, map.clone()).await;
    assert_eq!(send(&server, &jane, Method::PATCH, &path, map.clone()).await.0, 200);
    allow(&server, "creator", "jane", maps(&["create"])).await;
    let other = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}});
    let path = format!("{MAPS}/other?fieldManager=me");
    assert_eq!(send(&server, &jane, Method::PATCH, &path, other).await.0, 201);

    // A PUT can create a Lease.
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    let rules = |verbs: &[&str]| json!([{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": verbs}]);
    allow(&server, "leases", "jane", rules(&["update"])).await;
    let lease = json!({"metadata": {"name": "l"}, "spec": {"leaseDurationSeconds": 1}});
    let put = async |lease: &Value| {
        send(&server, &jane, Method::PUT, &format!("{leases}/l"), lease.clone()).await.0
    };
    assert_eq!(put(&lease).await, 403);
    // Validation errors take precedence.
    assert_eq!(put(&json!({"metadata": {"name": "l"}, "spec": {"leaseDurationSeconds": -1}})).await, 422);
    allow(&server, "leases-more", "jane", rules(&["create"])).await;
    assert_eq!(put(&lease).await, 201);
}

/// A user who may write roles and bindings in `default`, and read ConfigMaps there.
async fn with_delegate(server: &ApiServer) -> User {
    // Without `escalate` and `bind`.
    let verbs = ["get", "list", "create", "update", "patch", "delete"];
    let rules = json!([
        {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles", "rolebindings"], "verbs": verbs},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]},
    ]);
    allow(server, "delegate", "jane", rules).await;
    user("jane")
}

#[tokio::test]
async fn privilege_escalation_needs_the_verbs_escalate_or_bind() {
    let server = server();
    let jane = with_delegate(&server).await;
    let (roles, bindings) = (format!("{IN_DEFAULT}/roles"), format!("{IN_DEFAULT}/rolebindings"));
    let post = async |path: &str, body: Value| send(&server, &jane, Method::POST, path, body).await;

    assert_eq!(post(&roles, role("same", &maps(&["get"]))).await.0, 201);
    let (status, answer) = post(&roles, role("more", &maps(&["get", "list", "watch"]))).await;
    assert_eq!(status, 403);
    assert_eq!(
        answer["message"],
        "roles.rbac.authorization.k8s.io \"more\" is forbidden: user \"jane\" (groups=[\"system:authenticated\"]) is \
         attempting to grant RBAC permissions not currently held:\n\
         {APIGroups:[\"\"], Resources:[\"configmaps\"], Verbs:[\"list\" \"watch\"]}"
    );
    let applied = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "more"},
        "rules": maps(&["list"]),
    });
    let path = format!("{roles}/more?fieldManager=me");
    assert_eq!(send(&server, &jane, Method::PATCH, &path, applied.clone()).await.0, 403);
    let path = format!("{roles}/more");
    assert_eq!(send(&server, &jane, Method::PUT, &path, applied).await.0, 403);

    assert_eq!(post(&bindings, binding("same", "Role", "same", "max")).await.0, 201);
    assert_eq!(post(&bindings, binding("view", "ClusterRole", "view", "max")).await.0, 403);
    let (status, answer) = post(&bindings, binding("none", "ClusterRole", "none", "max")).await;
    assert_eq!((status, &answer["details"]["kind"]), (404, &json!("rolebindings")));

    let role_verbs = json!([{
        "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles", "clusterroles"],
        "resourceNames": ["view"], "verbs": ["bind"],
    }]);
    allow(&server, "binder", "jane", role_verbs).await;
    assert_eq!(post(&bindings, binding("view", "ClusterRole", "view", "max")).await.0, 201);
    assert_eq!(post(&bindings, binding("edit", "ClusterRole", "edit", "max")).await.0, 403);
    let escalate =
        json!([{"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["escalate"]}]);
    allow(&server, "escalator", "jane", escalate).await;
    assert_eq!(post(&roles, role("more", &maps(&["*"]))).await.0, 201);
}

#[tokio::test]
async fn finalizers_of_a_role_can_be_removed_without_its_permissions() {
    let server = server();
    let jane = with_delegate(&server).await;
    let mut secret = role("secret", &maps(&["*"]));
    secret["metadata"]["finalizers"] = json!(["example.com/wait"]);
    write(&server, &format!("{IN_DEFAULT}/roles"), secret).await;
    let path = format!("{IN_DEFAULT}/roles/secret");
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    assert_eq!(send(&server, &jane, Method::PATCH, &path, label).await.0, 403);
    let release = json!({"metadata": {"finalizers": null}});
    let (status, answer) = send(&server, &jane, Method::PATCH, &path, release).await;
    assert_eq!(status, 200, "{answer}");
}

#[tokio::test]
async fn only_administrators_can_create_aggregated_roles() {
    let server = server();
    let rules = json!([{
        "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"], "verbs": ["create"],
    }]);
    write(&server, &format!("{GROUP}/clusterroles"), role("author", &rules)).await;
    write(
        &server,
        &format!("{GROUP}/clusterrolebindings"),
        binding("author", "ClusterRole", "author", "jane"),
    )
    .await;
    let mut sum = role("sum", &Value::Null);
    sum["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]});
    let (status, answer) =
        send(&server, &user("jane"), Method::POST, &format!("{GROUP}/clusterroles"), sum).await;
    assert_eq!(status, 403);
    assert_eq!(
        answer["message"],
        "clusterroles.rbac.authorization.k8s.io \"sum\" is forbidden: must have cluster-admin privileges to use the \
         aggregationRule"
    );
}

async fn cluster_role(server: &ApiServer, name: &str) -> Value {
    send(server, &User::admin(), Method::GET, &format!("{GROUP}/clusterroles/{name}"), Value::Null).await.1
}

#[tokio::test]
async fn an_aggregated_role_has_the_rules_of_the_roles_it_selects() {
    let server = server();
    assert!(cluster_role(&server, "admin").await["rules"].as_array().is_some_and(|rules| rules.len() > 10));
    let mut widgets =
        role("widgets", &json!([{"apiGroups": ["example.com"], "resources": ["widgets"], "verbs": ["get"]}]));
    widgets["metadata"]["labels"] = json!({"rbac.authorization.k8s.io/aggregate-to-view": "true"});
    write(&server, &format!("{GROUP}/clusterroles"), widgets).await;
    let has = async |name: &str| {
        let role = cluster_role(&server, name).await;
        role["rules"]
            .as_array()
            .is_some_and(|rules| rules.iter().any(|rule| rule["resources"][0] == "widgets"))
    };
    // `edit` includes `view`, and `admin` includes `edit`: nested aggregation is updated too.
    assert_eq!((has("view").await, has("edit").await, has("admin").await), (true, true, true));
    let managers = cluster_role(&server, "view").await["metadata"]["managedFields"].clone();
    assert_eq!(managers[0]["manager"], "clusterrole-aggregation-controller");
    assert_eq!(
        (&managers[0]["operation"], &managers[0]["fieldsV1"]),
        (&json!("Apply"), &json!({"f:rules": {}}))
    );

    let path = format!("{GROUP}/clusterroles/widgets");
    send(&server, &User::admin(), Method::DELETE, &path, Value::Null).await;
    assert_eq!((has("view").await, has("edit").await, has("admin").await), (false, false, false));
}

#[tokio::test]
async fn without_controllers_aggregated_roles_are_not_updated() {
    let server = ApiServer::new(Options { controllers: Controllers::None, ..options() });
    assert_eq!(cluster_role(&server, "admin").await["rules"], Value::Null);
}

#[tokio::test]
async fn cyclic_aggregation_terminates() {
    let server = server();
    for (name, next) in [("a", "b"), ("b", "c"), ("c", "a")] {
        let mut sum = role(name, &json!([{"apiGroups": [name], "resources": ["widgets"], "verbs": ["get"]}]));
        sum["metadata"]["labels"] = json!({"name": name});
        sum["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {"name": next}}]});
        write(&server, &format!("{GROUP}/clusterroles"), sum).await;
    }
    assert_eq!(cluster_role(&server, "a").await["metadata"]["name"], "a");
}

#[tokio::test]
async fn a_forbidden_error_names_missing_roles() {
    let server = server();
    write(&server, &format!("{IN_DEFAULT}/rolebindings"), binding("b", "Role", "none", "jane")).await;
    write(&server, &format!("{GROUP}/clusterrolebindings"), binding("c", "ClusterRole", "gone", "jane"))
        .await;
    let (status, answer) = send(&server, &user("jane"), Method::GET, MAPS, Value::Null).await;
    assert_eq!(status, 403);
    assert_eq!(
        answer["message"],
        "configmaps is forbidden: User \"jane\" cannot list resource \"configmaps\" in API group \"\" in the namespace \
         \"default\": RBAC: [clusterrole.rbac.authorization.k8s.io \"gone\" not found, \
         role.rbac.authorization.k8s.io \"none\" not found]"
    );
    let review = json!({"spec": {"namespace": "default"}});
    let path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    let (_, answer) = send(&server, &user("jane"), Method::POST, path, review).await;
    assert!(
        answer["status"]["evaluationError"].as_str().is_some_and(|error| error.starts_with("[clusterrole."))
    );
    assert_eq!(answer["status"]["resourceRules"].as_array().map(Vec::len), Some(2));
}

/// The effective user of a request with impersonation headers.
async fn whoami_as(server: &ApiServer, sender: &User, headers: &[(&str, &str)]) -> (u16, Value) {
    let mut request = Request::post("/apis/authentication.k8s.io/v1/selfsubjectreviews");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut request = request
        .header(header::CONTENT_TYPE, "application/json")
        .body(Full::new(Bytes::from_static(b"{}")))
        .expect("the test's own request is well-formed");
    request.extensions_mut().insert(sender.clone());
    let answer = server.handle(request).await;
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.expect("the response is complete").to_bytes();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    (status, if status == 201 { body["status"]["userInfo"].clone() } else { body["message"].clone() })
}

async fn allow_everywhere(server: &ApiServer, name: &str, to: &str, rules: Value) {
    write(server, &format!("{GROUP}/clusterroles"), role(name, &rules)).await;
    write(server, &format!("{GROUP}/clusterrolebindings"), binding(name, "ClusterRole", name, to)).await;
}

#[tokio::test]
async fn impersonation_needs_permission_for_each_attribute() {
    let server = server();
    let jane = user("jane");
    let rules = json!([
        {"apiGroups": [""], "resources": ["users", "serviceaccounts"], "verbs": ["impersonate"]},
        {"apiGroups": [""], "resources": ["groups"], "resourceNames": ["devs"], "verbs": ["impersonate"]},
        {"apiGroups": ["authentication.k8s.io"], "resources": ["userextras/scopes"], "verbs": ["impersonate"]},
    ]);
    allow_everywhere(&server, "imp", "jane", rules).await;
    let (status, bob) = whoami_as(
        &server,
        &jane,
        &[("Impersonate-User", "bob"), ("Impersonate-Group", "devs"), ("Impersonate-Extra-Scopes", "view")],
    )
    .await;
    assert_eq!(status, 201, "{bob}");
    assert_eq!(
        bob,
        json!({"username": "bob", "groups": ["devs", "system:authenticated"], "extra": {"scopes": ["view"]}})
    );
    let (_, robot) =
        whoami_as(&server, &jane, &[("Impersonate-User", "system:serviceaccount:a:robot")]).await;
    assert_eq!(
        robot["groups"],
        json!(["system:serviceaccounts", "system:serviceaccounts:a", "system:authenticated"])
    );
    for (header, value, what) in [
        ("Impersonate-Group", "system:masters", "groups \"system:masters\""),
        ("Impersonate-Uid", "7", "uids.authentication.k8s.io \"7\""),
        ("Impersonate-Extra-Other", "x", "userextras.authentication.k8s.io \"x\""),
    ] {
        let (status, message) =
            whoami_as(&server, &jane, &[("Impersonate-User", "bob"), (header, value)]).await;
        assert_eq!(status, 403);
        let expected = format!("{what} is forbidden: User \"jane\" cannot impersonate resource");
        assert!(message.as_str().is_some_and(|message| message.starts_with(&expected)), "{message}");
    }
}

#[tokio::test]
async fn constrained_impersonation_allows_only_some_requests() {
    let server = server();
    let jane = user("jane");
    let rules = json!([
        {"apiGroups": ["authentication.k8s.io"], "resources": ["users"], "resourceNames": ["bob"],
         "verbs": ["impersonate:user-info"]},
        {"apiGroups": ["authentication.k8s.io"], "resources": ["nodes"], "verbs": ["impersonate:arbitrary-node"]},
        {"apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"],
         "verbs": ["impersonate-on:user-info:create", "impersonate-on:arbitrary-node:create"]},
    ]);
    allow_everywhere(&server, "imp", "jane", rules).await;
    let (status, bob) = whoami_as(&server, &jane, &[("Impersonate-User", "bob")]).await;
    assert_eq!((status, &bob["username"]), (201, &json!("bob")));
    let (_, node) = whoami_as(&server, &jane, &[("Impersonate-User", "system:node:n1")]).await;
    assert_eq!(node["groups"], json!(["system:nodes", "system:authenticated"]));
    let (status, message) = whoami_as(&server, &jane, &[("Impersonate-User", "max")]).await;
    assert_eq!(status, 403);
    assert_eq!(
        message,
        "users.authentication.k8s.io \"max\" is forbidden: User \"jane\" cannot impersonate:user-info resource \"users\" \
         in API group \"authentication.k8s.io\" at the cluster scope"
    );
    let mut request =
        Request::get(MAPS).header("Impersonate-User", "bob").body(Full::<Bytes>::default()).unwrap();
    request.extensions_mut().insert(jane);
    assert_eq!(server.handle(request).await.status().as_u16(), 403);
}

#[tokio::test]
async fn always_allow_rejects_anonymous_requests() {
    let server = ApiServer::new(Options { authorization: Authorization::AlwaysAllow, ..options() });
    assert_eq!(get(&server, &user("jane"), MAPS).await, 200);
    assert_eq!(get(&server, &User::anonymous(), MAPS).await, 401);
    assert_eq!(get(&server, &User::anonymous(), "/healthz").await, 401);
    assert_eq!(
        send(
            &server,
            &user("jane"),
            Method::POST,
            &format!("{IN_DEFAULT}/roles"),
            role("all", &maps(&["*"]))
        )
        .await
        .0,
        201
    );
}

struct MapsOnly;

impl Authorizer for MapsOnly {
    fn allows(&self, _: &User, action: Action<'_>) -> bool {
        matches!(action.on, ActionOn::Resource { resource: "configmaps", .. })
    }
}

#[tokio::test]
async fn a_custom_authorizer_replaces_rbac() {
    let server =
        ApiServer::new(Options { authorization: Authorization::Custom(Arc::new(MapsOnly)), ..options() });
    assert_eq!(get(&server, &User::anonymous(), MAPS).await, 200);
    assert_eq!(get(&server, &User::admin(), "/api/v1/nodes").await, 403);
}
