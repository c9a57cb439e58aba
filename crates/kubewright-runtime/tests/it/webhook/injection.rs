//! What the injection of the CA owns, and what it reads.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kubewright_runtime::client::Delete;
use kubewright_runtime::internal::certificates::{ExpectedTargets, RotatorOptions};
use kubewright_runtime::{Client, Clock, Key, Patch, TokioClock, eventually};
use serde_json::{Value, json};

use super::certificates::{LIMIT, Replica, START, cluster, install, material};
use crate::world::{RecordedRequest, World, object};

/// A validating configuration with these webhooks, as `kubectl apply --server-side` sends it.
fn configuration(webhooks: &[&str]) -> Value {
    let hook = |name: &&str| {
        json!({
            "name": format!("{name}.example.com"),
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "clientConfig": { "service": { "namespace": "system", "name": "webhook-service", "path": "/x" } },
        })
    };
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": { "name": "deployed" },
        "webhooks": webhooks.iter().map(hook).collect::<Vec<_>>(),
    })
}

async fn deploy(client: &Client, webhooks: &[&str]) {
    let wanted = configuration(webhooks);
    let named: ValidatingWebhookConfiguration = object(wanted.clone());
    let apply = Patch::apply(wanted).expect("JSON").force();
    client.clone().field_owner("kubectl").patch(&named, &apply).await.expect("applied");
}

/// The names of the deployed webhooks, once all of them have a bundle.
async fn injected(client: &Client) -> Vec<String> {
    eventually(LIMIT, async || {
        let found = client.get::<ValidatingWebhookConfiguration>(&Key::cluster("deployed")).await;
        let hooks = found.expect("it exists").webhooks.clone().unwrap_or_default();
        if hooks.iter().all(|hook| hook.client_config.ca_bundle.is_some()) {
            Ok(hooks.into_iter().map(|hook| hook.name).collect::<Vec<_>>())
        } else {
            Err("not injected")
        }
    })
    .await
    .expect("injected")
}

#[tokio::test(start_paused = true)]
async fn a_webhook_can_be_removed_renamed_and_added_by_its_own_field_manager() {
    let (client, clock) = cluster();
    install(&client).await;
    deploy(&client, &["a", "b"]).await;
    let replica = Replica::start(&client, &clock);
    replica.ready().await;
    assert_eq!(injected(&client).await, ["a.example.com", "b.example.com"]);

    deploy(&client, &["a"]).await;
    assert_eq!(injected(&client).await, ["a.example.com"]);
    deploy(&client, &["c"]).await;
    assert_eq!(injected(&client).await, ["c.example.com"]);
    deploy(&client, &["c", "a"]).await;
    let mut names = injected(&client).await;
    names.sort();
    assert_eq!(names, ["a.example.com", "c.example.com"]);

    // Unlike an apply, the patch does not own the entries.
    let found = client.get::<ValidatingWebhookConfiguration>(&Key::cluster("deployed")).await;
    let fields = found.expect("it exists").metadata.managed_fields.clone().unwrap_or_default();
    let own = fields.iter().find(|entry| entry.manager.as_deref() == Some("kubewright-webhook-ca"));
    let own = serde_json::to_string(&own.and_then(|own| own.fields_v1.as_ref())).expect("JSON");
    assert!(own.contains("f:caBundle") && !own.contains("f:name"), "{own}");
}

#[tokio::test(start_paused = true)]
async fn other_crds_and_configurations_are_not_read_one_by_one() {
    let world = World::new();
    let direct = Client::new(world.direct.clone());
    install(&direct).await;
    for index in 0..200 {
        let crd: CustomResourceDefinition = object(json!({
            "metadata": { "name": format!("things.g{index}.example.com") },
            "spec": {
                "group": format!("g{index}.example.com"), "scope": "Namespaced",
                "names": { "kind": "Thing", "plural": "things" },
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "schema": { "openAPIV3Schema": { "type": "object" } },
                }],
                "conversion": (index == 7).then(|| json!({
                    "strategy": "Webhook",
                    "webhook": {
                        "clientConfig": {
                            "service": { "namespace": "system", "name": "webhook-service", "path": "/convert" },
                        },
                        "conversionReviewVersions": ["v1"],
                    },
                })),
            },
        }));
        direct.create(&crd).await.expect("created");
        let other: ValidatingWebhookConfiguration =
            object(json!({ "metadata": { "name": format!("other-{index}") }, "webhooks": [] }));
        direct.create(&other).await.expect("created");
    }
    let clock: Arc<dyn Clock> = Arc::new(TokioClock::starting_at(START.parse().expect("a time")));
    let targets = ExpectedTargets {
        validating: vec!["/x".to_owned()],
        crds: vec!["things.g7.example.com".to_owned()],
        ..ExpectedTargets::default()
    };
    world.faults.forget();
    let options = RotatorOptions::new("system", "webhook-service", targets);
    let replica = Replica::start_with(&world.client(), &clock, options);
    replica.ready().await;
    // The events of the watches arrive.
    tokio::time::sleep(Duration::from_secs(30)).await;
    let reads = |kind: &'static str| {
        move |request: &RecordedRequest| {
            request.method == http::Method::GET && !request.is_watch() && request.path.contains(kind)
        }
    };
    let count = |kind| world.faults.count(reads(kind));
    assert!(count("validatingwebhookconfigurations") < 10, "{}", count("validatingwebhookconfigurations"));
    assert!(count("customresourcedefinitions") < 10, "{}", count("customresourcedefinitions"));
    let lists = world
        .faults
        .count(|request| request.path.ends_with("/customresourcedefinitions") && !request.is_watch());
    assert_eq!(lists, 0, "CRDs are read by name");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_secret_is_created_again_with_the_same_ca() {
    let (client, clock) = cluster();
    install(&client).await;
    let replicas: Vec<Replica> = (0..3).map(|_| Replica::start(&client, &clock)).collect();
    for replica in &replicas {
        replica.ready().await;
    }
    let before = material(&client).await;
    let key = Key::namespaced("system", "webhook-service-cert");
    client.delete_key::<Secret>(&key, &Delete::new()).await.expect("deleted");
    eventually(LIMIT, async || match client.get_opt::<Secret>(&key).await {
        Ok(Some(_)) => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await
    .expect("created again");
    assert_eq!(material(&client).await, before);
    for replica in &replicas {
        assert_eq!(replica.readiness(), Ok(()));
    }
}
