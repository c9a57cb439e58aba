//! `object!` against the embedded API server: requests, field ownership, and errors at run time.

use std::collections::BTreeMap;

use kubewright::k8s_openapi::api::apps::v1::Deployment;
use kubewright::k8s_openapi::api::core::v1::{ConfigMap, Container, Secret, Service};
use kubewright::object::{ApplyObject, Checked};
use kubewright::owner::{controller_of, set_controller_reference};
use kubewright::prelude::*;
use kubewright::serde::{Deserialize, Serialize};
use kubewright::serde_json::{self, Value, json};
use kubewright::{Client, Key, kube, object, schemars};
use kubewright_apiserver::{ApiServer, Options};

#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(group = "example.com", version = "v1", kind = "Shelf", plural = "shelves", namespaced)]
#[kube(crates(
    kube_core = "kubewright::kube::core",
    k8s_openapi = "kubewright::k8s_openapi",
    schemars = "kubewright::schemars",
    serde = "kubewright::serde",
    serde_json = "kubewright::serde_json"
))]
#[x_kube(crates(
    kube_core = "kubewright::kube::core",
    schemars = "kubewright::schemars",
    serde = "kubewright::serde",
    serde_json = "kubewright::serde_json"
))]
#[schemars(crate = "kubewright::schemars")]
#[serde(crate = "kubewright::serde", rename_all = "camelCase")]
struct ShelfSpec {
    most_books: u16,
    #[serde(default)]
    books: Vec<Book>,
}

#[derive(Serialize, Deserialize, schemars::JsonSchema, Clone, Debug)]
#[schemars(crate = "kubewright::schemars")]
#[serde(crate = "kubewright::serde")]
struct Book {
    title: String,
}

/// An operator's own enum, serialized as a string.
#[derive(Serialize)]
#[serde(crate = "kubewright::serde")]
enum PullPolicy {
    Always,
    Allways,
}

fn client() -> Client {
    Client::new(kube::Client::new(ApiServer::new(Options::default()), "default"))
}

fn web(replicas: i32, grace: Option<i64>) -> ApplyObject<Deployment> {
    let labels = BTreeMap::from([("app".to_owned(), "web".to_owned())]);
    object! { Deployment {
        metadata: { name: "web", namespace: "default", labels: { "app.kubernetes.io/name": "web" } },
        spec: {
            replicas: replicas,
            selector: { matchLabels: &labels },
            template: {
                metadata: { labels: labels },
                spec: {
                    terminationGracePeriodSeconds?: grace,
                    containers: [{ name: "web", image: "nginx", resources: { limits: { cpu: 1, memory: "1Gi" } } }],
                },
            },
        },
    } }
}

#[test]
fn literals_expressions_options_and_computed_keys_become_json() {
    let (key, none, some) = ("page".to_owned(), None::<String>, Some("b"));
    let args = vec!["x", "y"];
    let made = object! { "v1" Pod {
        metadata: {
            name: format!("{}-1", "web"),
            labels: { "a/b~c": "1", (&key): key.to_uppercase(), (format!("{key}s")): "2", absent?: none, present?: some },
        },
        spec: {
            hostNetwork: 1 + 1 == 2,
            priority: -3,
            terminationGracePeriodSeconds: { let half = 15_u32; half * 2 },
            containers: [
                { name: "a", args: ["one", key.as_str(), "two"], command: &args, tty: true },
                json!({ "name": "b", "env": [{ "name": "A", "value": null }] }),
                Container { name: "c".to_owned(), ..Container::default() },
            ],
        },
    } };
    assert_eq!(
        serde_json::to_value(&made).unwrap(),
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": { "name": "web-1", "labels": { "a/b~c": "1", "page": "PAGE", "pages": "2", "present": "b" } },
            "spec": {
                "hostNetwork": true,
                "priority": -3,
                "terminationGracePeriodSeconds": 30,
                "containers": [
                    { "name": "a", "args": ["one", "page", "two"], "command": ["x", "y"], "tty": true },
                    { "name": "b", "env": [{ "name": "A" }] },
                    { "name": "c" },
                ],
            },
        })
    );
}

#[test]
fn values_unknown_at_compile_time_are_checked_at_run_time() {
    let with = |container: Value, policy: PullPolicy| {
        object! { Deployment {
            metadata: { name: "web", namespace: "default" },
            spec: { template: { spec: { containers: [container, { name: "b", imagePullPolicy: Checked(policy) }] }, .. }, .. },
        } }
    };
    with(json!({ "name": "a" }), PullPolicy::Always).check().unwrap();
    let wrong = with(json!({ "name": "a", "imag": "x" }), PullPolicy::Allways);
    let text = "Deployment default/web: spec.template.spec.containers[0].imag: unknown field of Container; \
                did you mean `image`?; spec.template.spec.containers[1].imagePullPolicy: unknown value \"Allways\"; \
                did you mean \"Always\"?";
    assert_eq!(wrong.clone().check().unwrap_err().to_string(), text);
    // Serialization checks it too.
    assert_eq!(serde_json::to_value(&wrong).unwrap_err().to_string(), text);
    assert!(wrong.complete().is_err());
    let labels = json!({ "a": 1 });
    let wrong = object! { ConfigMap { metadata: { name: "a", labels: labels } } };
    assert_eq!(wrong.metadata.name.as_deref(), Some("a"));
    assert_eq!(
        wrong.check().unwrap_err().to_string(),
        "ConfigMap a: metadata.labels.a: is an integer, not a string"
    );
}

#[tokio::test]
async fn a_field_manager_owns_exactly_the_written_fields() {
    let client = client();
    let (a, b) = (client.field_owner("a"), client.field_owner("b"));
    let wanted = web(3, Some(5));
    let stored: Deployment = a.apply(&wanted).await.unwrap();
    assert_eq!(stored.spec.as_ref().and_then(|spec| spec.replicas), Some(3));
    assert_eq!(ApplyObject::extract(&stored, "a").unwrap(), {
        // The server writes quantities as strings.
        let mut wanted = serde_json::to_value(&wanted).unwrap();
        wanted["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["cpu"] = json!("1");
        object::<Deployment>(wanted).unwrap()
    });

    // Another field manager takes over a field.
    let replicas =
        object! { Deployment { metadata: { name: "web", namespace: "default" }, spec: { replicas: 5, .. } } };
    let stored = b.apply(&replicas).await.unwrap();
    assert_eq!(stored.spec.as_ref().and_then(|spec| spec.replicas), Some(5));
    assert_eq!(ApplyObject::extract(&stored, "b").unwrap(), replicas);
    assert!(ApplyObject::extract(&stored, "a").unwrap().fields()["spec"].get("replicas").is_none());

    // A field that is omitted is released and gets its default again.
    let grace = |web: Deployment| web.spec.unwrap().template.spec.unwrap().termination_grace_period_seconds;
    assert_eq!(grace(stored), Some(5));
    assert_eq!(grace(a.apply(&web(5, None)).await.unwrap()), Some(30));
}

#[tokio::test]
async fn an_object_can_have_an_owner_and_a_status_and_be_created() {
    let client = client();
    let owner = client.apply(&web(1, None)).await.unwrap();
    let mut map = object! { ConfigMap { metadata: { name: "pages", namespace: "default" }, data: { "a.md": "hello" } } };
    set_controller_reference(&owner, &mut map).unwrap();
    let stored: ConfigMap = client.create(&map).await.unwrap();
    assert_eq!(controller_of(&stored).map(|owner| owner.name.as_str()), Some("web"));
    assert_eq!(Key::of(&map), Key::of(&stored));

    let status = object! { Deployment {
        metadata: { name: "web", namespace: "default" },
        status: { observedGeneration: 1, conditions: [{ type: "Available", status: "True", lastTransitionTime: "2026-01-02T03:04:05Z" }] },
        ..
    } };
    let stored = client.field_owner("status").status().apply(&status).await.unwrap();
    assert_eq!(stored.status.as_ref().and_then(|status| status.observed_generation), Some(1));
    assert_eq!(ApplyObject::extract_status(&stored, "status").unwrap(), status);
}

#[tokio::test]
async fn an_invalid_object_is_not_sent() {
    let client = client();
    let selector = json!({ "app": ["web"] });
    let wrong = object! { Service {
        metadata: { name: "web", namespace: "default" },
        spec: { selector: selector, ports: [{ port: 80 }] },
    } };
    let error = client.apply(&wrong).await.unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(cause, "Service default/web: spec.selector.app: is a list, not a string");
    assert!(client.get_opt::<Service>(&Key::of(&wrong)).await.unwrap().is_none());
}

#[tokio::test]
async fn a_custom_resource_is_decoded_as_its_type() {
    let client = client();
    client.create(&Shelf::crd()).await.unwrap();
    let title = "Emma";
    let shelf = object! { Shelf {
        metadata: { name: "a", namespace: "default" },
        spec: { mostBooks: 3, books: [{ title: title }] },
    } };
    let stored: Shelf = client.apply(&shelf).await.unwrap();
    assert_eq!((stored.spec.most_books, stored.spec.books.len()), (3, 1));

    let wrong = object! { Shelf { metadata: { name: "a" }, spec: { mostBooks: 3, books: [{ title: "x", titel: "y" }] } } };
    assert_eq!(
        wrong.check().unwrap_err().to_string(),
        "Shelf a: spec.books[0].titel: unknown field; did you mean `title`?"
    );
    let error =
        object::<Shelf>(json!({ "metadata": { "name": "a" }, "spec": { "mostBooks": "3" } })).unwrap_err();
    assert_eq!(error.to_string(), "Shelf a: spec.mostBooks does not match its Rust type");
}

#[test]
fn json_is_checked_at_run_time() {
    let secret = object::<Secret>(json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "a", "namespace": null }, "data": { "k": "YQ==" },
    }));
    let secret = secret.unwrap();
    assert_eq!(secret.metadata.namespace, None);
    assert_eq!(secret.complete().unwrap().data.unwrap()["k"].0, b"a");
    for (value, error) in [
        (json!({ "kind": "Secrets" }), "kind is \"Secrets\", expected Secret"),
        (json!({ "apiVersion": "apps/v1" }), "apiVersion is \"apps/v1\", expected v1"),
        (json!([]), "Secret: the object: is not a JSON object"),
        (
            json!({ "stringdata": {} }),
            "Secret: stringdata: unknown field of Secret; did you mean `stringData`?",
        ),
        (
            json!({ "metadata": { "creationTimestamp": "yesterday" } }),
            "Secret: metadata does not match its Rust type",
        ),
    ] {
        assert_eq!(object::<Secret>(value).unwrap_err().to_string(), error);
    }
}
