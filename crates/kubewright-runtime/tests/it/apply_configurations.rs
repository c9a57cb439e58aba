//! Apply configurations, and the extraction of applied fields.
//!
//! The partial structs are written by hand, because the derive macro is in a crate that depends on this one.

use anyhow::Result;
use k8s_openapi::api::apps::v1::Deployment;
use kubewright_runtime::apply::{Configuration, Configured, ExtractError, extract};
use kubewright_runtime::{CacheOptions, Client, Key, KindOptions, Patch};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::world::{Widget, World, object, soon, widget};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct WidgetSpecApply {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    color: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    replicas: Option<i32>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct WidgetStatusApply {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    replicas: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    phase: Option<String>,
}

impl Configured for Widget {
    type Spec = WidgetSpecApply;
    type Status = WidgetStatusApply;
}

type WidgetApply = Configuration<Widget>;

fn colour(color: &str) -> WidgetSpecApply {
    WidgetSpecApply { color: Some(color.to_owned()), ..WidgetSpecApply::default() }
}

fn wanted() -> WidgetApply {
    WidgetApply::new("a").namespace("default")
}

fn version(widget: &WidgetApply) -> Option<&str> {
    widget.metadata.resource_version.as_deref()
}

/// A client with a field manager.
fn named(world: &World, owner: &str) -> Client {
    world.client().field_owner(owner)
}

#[tokio::test(start_paused = true)]
async fn extract_returns_the_fields_of_one_manager() -> Result<()> {
    let world = World::new();
    world.widgets().await?;
    let (a, b) = (named(&world, "a"), named(&world, "b"));
    let of_a = wanted().label("by", "a").finalizer("example.org/a").spec(colour("red"));
    let of_b = wanted().label("also", "b").spec(WidgetSpecApply { replicas: Some(3), color: None });
    a.apply(&of_a).await?;
    let both = b.apply(&of_b).await?;
    // The response to a partial apply is the whole object.
    assert_eq!(both.spec, Some(WidgetSpecApply { color: Some("red".to_owned()), replicas: Some(3) }));

    let there = both.complete()?;
    assert_eq!(there.spec.replicas, 3);
    assert_eq!(WidgetApply::extract(&there, "a")?, of_a);
    assert_eq!(WidgetApply::extract(&there, "b")?, of_b);
    assert_eq!(WidgetApply::extract(&there, "nobody")?, wanted());
    // As JSON it has only the applied fields.
    let said: Value = extract(&there, "a", None)?;
    assert_eq!(
        said,
        json!({
            "apiVersion": "example.org/v1",
            "kind": "Widget",
            "metadata": {
                "name": "a", "namespace": "default", "labels": {"by": "a"}, "finalizers": ["example.org/a"],
            },
            "spec": {"color": "red"},
        })
    );
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn applying_extracted_fields_again_changes_nothing() -> Result<()> {
    let world = World::new();
    world.widgets().await?;
    let (a, b) = (named(&world, "a"), named(&world, "b"));
    a.apply(&wanted().label("by", "a").spec(colour("red"))).await?;
    let before = b
        .apply(&wanted().annotation("by", "b").spec(WidgetSpecApply { replicas: Some(2), color: None }))
        .await?;
    let there = before.complete()?;
    for client in [("a", &a), ("b", &b)] {
        let after = client.1.apply(&WidgetApply::extract(&there, client.0)?).await?;
        assert_eq!(version(&after), version(&before), "{}", client.0);
    }
    // Omitted fields are removed, so the comparison above is not trivial.
    let less = wanted().spec(colour("red"));
    assert_ne!(WidgetApply::extract(&there, "a")?, less);
    let after = a.apply(&less).await?;
    assert_eq!((after.metadata.labels.as_ref(), version(&after) == version(&before)), (None, false));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_status_is_owned_separately() -> Result<()> {
    let world = World::new();
    world.widgets().await?;
    let client = named(&world, "a");
    client.apply(&wanted().spec(colour("red"))).await?;
    let phase = WidgetStatusApply { phase: Some("Ready".to_owned()), replicas: None };
    let said = wanted().status(phase.clone());
    client.status().apply(&said).await?;
    let there = client.get::<Widget>(&Key::namespaced("default", "a")).await?;
    assert_eq!(WidgetApply::extract_status(&there, "a")?, said);
    assert_eq!(WidgetApply::extract(&there, "a")?, wanted().spec(colour("red")));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_field_of_another_manager_is_a_conflict_unless_forced() -> Result<()> {
    let world = World::new();
    world.widgets().await?;
    named(&world, "a").apply(&wanted().spec(colour("red"))).await?;
    let b = named(&world, "b");
    let blue = wanted().spec(colour("blue"));
    assert!(b.patch(&blue, &Patch::apply(&blue)?).await.unwrap_err().is_conflict());
    let taken = b.apply(&blue).await?.complete()?;
    assert_eq!(WidgetApply::extract(&taken, "a")?, wanted());
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn list_items_of_built_in_kinds_are_extracted_by_key() -> Result<()> {
    let world = World::new();
    let template = |container: Value| {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "default"}, "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}},
        }})
    };
    let (a, b) = (named(&world, "a"), named(&world, "b"));
    let place: Deployment = object(json!({"metadata": {"name": "web", "namespace": "default"}}));
    let ports = json!([{"containerPort": 80, "protocol": "TCP"}]);
    let main = template(json!({"name": "main", "image": "one", "args": ["x", "y"], "ports": ports}));
    let side = template(json!({"name": "side", "image": "two"}));
    a.patch(&place, &Patch::apply(&main)?).await?;
    let there = b.patch(&place, &Patch::apply(&side)?).await?;
    assert_eq!(extract::<Value>(&there, "a", None)?, main);
    assert_eq!(extract::<Value>(&there, "b", None)?, side);
    let again = a.patch(&place, &Patch::apply(extract::<Value>(&there, "a", None)?)?).await?;
    assert_eq!(again.metadata.resource_version, there.metadata.resource_version);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_object_without_managed_fields_is_an_error_with_advice() -> Result<()> {
    let world = World::new();
    world.widgets().await?;
    named(&world, "a").apply(&wanted().spec(colour("red"))).await?;
    let key = Key::namespaced("default", "a");
    let running = world.cache(CacheOptions::default());
    running.cache.informer::<Widget>();
    let there = soon("the cache", world.cached(&running.cache).get::<Widget>(&key)).await?;
    let error = WidgetApply::extract(&there, "a").unwrap_err();
    assert!(matches!(error, ExtractError::NoManagedFields(_)));
    insta::assert_snapshot!(error, @"Widget default/a has no metadata.managedFields, which the cache drops by default: read it with Client::uncached, or keep them with KindOptions::keep_managed_fields");

    let keeping = CacheOptions::default().kind::<Widget>(KindOptions::new().keep_managed_fields());
    let running = world.cache(keeping);
    running.cache.informer::<Widget>();
    let there = soon("the cache", world.cached(&running.cache).get::<Widget>(&key)).await?;
    assert_eq!(WidgetApply::extract(&there, "a")?, wanted().spec(colour("red")));
    // An object that was never stored has no managedFields either.
    assert!(WidgetApply::extract(&widget("b", "red"), "a").is_err());
    Ok(())
}
