//! Subresources.

use anyhow::Result;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::autoscaling::v1::Scale;
use k8s_openapi::api::core::v1::{Binding, Pod, ServiceAccount};
use k8s_openapi::api::policy::v1::Eviction;
use kube::api::DynamicObject;
use kube::core::Status;
use kubewright_runtime::{Gvk, Patch};
use serde_json::json;

use super::{dynamic_widget, key};
use crate::world::{Widget, WidgetStatus, World, object, pod, widget};

fn deployment(name: &str) -> Deployment {
    object(json!({
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "main", "image": "one"}]},
            },
        },
    }))
}

fn phase(widget: &Widget) -> Option<&str> {
    widget.status.as_ref()?.phase.as_deref()
}

#[tokio::test(start_paused = true)]
async fn the_status_is_written_separately() -> Result<()> {
    let world = World::new();
    world.widgets().await?;
    let client = world.client();
    let mut there = client.create(&widget("a", "red")).await?;
    there.status = Some(WidgetStatus { replicas: 1, phase: Some("Ready".to_owned()) });
    there.spec.color = "blue".to_owned();
    let updated = client.status().update(&there).await?;
    assert_eq!((phase(&updated), &*updated.spec.color), (Some("Ready"), "red"));
    // And the rest separately from the status.
    let mut whole = updated.clone();
    whole.status = None;
    whole.spec.color = "green".to_owned();
    let updated = client.update(&whole).await?;
    assert_eq!((phase(&updated), &*updated.spec.color), (Some("Ready"), "green"));

    let patch = Patch::merge(json!({"status": {"phase": "Patched"}, "spec": {"color": "black"}}));
    let patched = client.status().patch(&updated, &patch).await?;
    assert_eq!((phase(&patched), &*patched.spec.color), (Some("Patched"), "green"));
    assert!(client.status().update(&updated).await.unwrap_err().is_conflict());

    let mut wanted = widget("a", "ignored");
    wanted.status = Some(WidgetStatus { replicas: 2, phase: Some("Applied".to_owned()) });
    let applied = client.status().apply(&wanted).await?;
    assert_eq!((phase(&applied), &*applied.spec.color), (Some("Applied"), "green"));
    let part: Widget = client.status().get::<Widget, _>(&key("a")).await?;
    assert_eq!(phase(&part), Some("Applied"));

    let dynamic = client.get_dynamic(&super::widgets(), &key("a")).await?;
    let mut dynamic = (*dynamic).clone();
    dynamic.data["status"]["phase"] = "Dynamic".into();
    let updated = client.status().update(&dynamic).await?;
    assert_eq!(updated.data["status"]["phase"], "Dynamic");
    let mut wanted = dynamic_widget("a", "ignored");
    wanted.data["status"] = json!({"phase": "Both"});
    let applied = client.status().apply(&wanted).await?;
    assert_eq!(applied.data["status"]["phase"], "Both");

    let revision = world.server.revision();
    wanted.data["status"] = json!({"phase": "Dry"});
    client.dry_run().status().apply(&wanted).await?;
    assert_eq!(world.server.revision(), revision);
    assert!(world.faults.count(|asked| asked.path.ends_with("/widgets/a/status")) >= 6);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn scale_is_read_and_written() -> Result<()> {
    let world = World::new();
    world.widgets().await?;
    let client = world.client();
    client.create(&widget("a", "red")).await?;
    let mut scale: Scale = client.subresource("scale").get::<Widget, _>(&key("a")).await?;
    assert_eq!(scale.spec.as_ref().unwrap().replicas, Some(1));
    scale.spec.as_mut().unwrap().replicas = Some(3);
    let scaled = client.subresource("scale").replace::<Widget, _>(&key("a"), &scale).await?;
    assert_eq!(scaled.spec.unwrap().replicas, Some(3));
    assert_eq!(client.get::<Widget>(&key("a")).await?.spec.replicas, 3);
    // An outdated object is a conflict here as well.
    let stale = client.subresource("scale").replace::<Widget, _>(&key("a"), &scale).await;
    assert!(stale.unwrap_err().is_conflict());

    client.create(&deployment("web")).await?;
    let scale: Scale = client.subresource("scale").get::<Deployment, _>(&key("web")).await?;
    assert_eq!(scale.spec.unwrap().replicas, Some(1));
    let missing = client.subresource("scale").get::<Deployment, Scale>(&key("none")).await;
    assert!(missing.unwrap_err().is_not_found());
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn scale_is_patched_and_applied() -> Result<()> {
    let world = World::new();
    world.widgets().await?;
    let client = world.client();
    let deployment: Deployment = client.create(&deployment("web")).await?;
    let scale = |name: &str, replicas: i32| -> Scale {
        object(json!({"metadata": {"name": name, "namespace": "default"}, "spec": {"replicas": replicas}}))
    };
    let patch = |replicas: i32| Patch::merge(json!({"spec": {"replicas": replicas}}));

    let patched: Scale = client.subresource("scale").patch_as(&deployment, &patch(3)).await?;
    assert_eq!(patched.spec.unwrap().replicas, Some(3));
    let applied = client.subresource("scale").apply_as(&deployment, &scale("web", 5)).await?;
    assert_eq!(applied.spec.unwrap().replicas, Some(5));
    let untyped = client.subresource("scale").patch(&deployment, &patch(5)).await.unwrap_err();
    assert_eq!(
        untyped.to_string(),
        "failed to decode an object of apps/v1, Kind=Deployment from scale; use patch_as or apply_as if scale has its own type"
    );
    let stored = client.get::<Deployment>(&key("web")).await?;
    assert_eq!(stored.spec.as_ref().unwrap().replicas, Some(5));
    // A merge patch with an outdated version is a conflict here as well.
    let stale = patch(1).optimistic(deployment.metadata.resource_version.as_deref().unwrap());
    let stale = client.subresource("scale").patch_as::<_, Scale>(&deployment, &stale).await;
    assert!(stale.unwrap_err().is_conflict());

    let dynamic = client.create(&dynamic_widget("a", "red")).await?;
    let patched: Scale = client.subresource("scale").patch_as(&dynamic, &patch(2)).await?;
    assert_eq!(patched.spec.unwrap().replicas, Some(2));
    let applied = client.subresource("scale").apply_as(&dynamic, &scale("a", 4)).await?;
    assert_eq!(applied.spec.unwrap().replicas, Some(4));
    assert_eq!(client.get::<Widget>(&key("a")).await?.spec.replicas, 4);

    let revision = world.server.revision();
    let dry: Scale = client.dry_run().subresource("scale").patch_as(&dynamic, &patch(9)).await?;
    assert_eq!((dry.spec.unwrap().replicas, world.server.revision()), (Some(9), revision));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn subresources_of_dynamic_objects_are_read_and_written() -> Result<()> {
    let world = World::new();
    world.widgets().await?;
    let client = world.client();
    client.create(&dynamic_widget("a", "red")).await?;
    let (gvk, subresource) = (super::widgets(), client.subresource("scale"));
    let mut scale: DynamicObject = subresource.get_dynamic(&gvk, &key("a")).await?;
    assert_eq!(scale.types.as_ref().unwrap().kind, "Scale");
    scale.data["spec"]["replicas"] = 3.into();
    let scaled = subresource.replace_dynamic(&gvk, &key("a"), &scale).await?;
    assert_eq!(scaled.data["spec"]["replicas"], 3);
    let scale: Scale = subresource.get_dynamic(&gvk, &key("a")).await?;
    assert_eq!(scale.spec.unwrap().replicas, Some(3));
    let missing = subresource.get_dynamic::<Scale>(&gvk, &key("none")).await;
    assert!(missing.unwrap_err().is_not_found());

    client.create(&pod("a")).await?;
    let binding = json!({"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n"}});
    let pods = Gvk::new("", "v1", "Pod");
    let status: Status = client.subresource("binding").create_dynamic(&pods, &key("a"), &binding).await?;
    assert!(status.is_success());
    let bound = client.get::<Pod>(&key("a")).await?;
    assert_eq!(bound.spec.as_ref().unwrap().node_name.as_deref(), Some("n"));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn pods_are_bound_and_evicted() -> Result<()> {
    let world = World::new();
    let client = world.client();
    client.create(&pod("a")).await?;
    let binding: Binding =
        object(json!({"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n"}}));
    let status = client.subresource("binding").create::<Pod, _, Status>(&key("a"), &binding).await?;
    assert!(status.is_success());
    let bound = client.get::<Pod>(&key("a")).await?;
    assert_eq!(bound.spec.as_ref().unwrap().node_name.as_deref(), Some("n"));
    let again = client.subresource("binding").create::<Pod, _, Status>(&key("a"), &binding).await;
    assert!(again.unwrap_err().is_conflict());

    let eviction: Eviction = object(json!({
        "metadata": {"name": "a", "namespace": "default"}, "deleteOptions": {"gracePeriodSeconds": 0},
    }));
    let dry = client.dry_run();
    dry.subresource("eviction").create::<Pod, _, Status>(&key("a"), &eviction).await?;
    assert!(client.get_opt::<Pod>(&key("a")).await?.is_some());
    client.subresource("eviction").create::<Pod, _, Status>(&key("a"), &eviction).await?;
    assert!(client.get_opt::<Pod>(&key("a")).await?.is_none());
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_token_is_requested() -> Result<()> {
    let world = World::new();
    let client = world.client();
    let account: ServiceAccount = object(json!({"metadata": {"name": "robot", "namespace": "default"}}));
    client.create(&account).await?;
    let request: TokenRequest = object(json!({"spec": {"audiences": ["me"], "expirationSeconds": 600}}));
    let token: TokenRequest =
        client.subresource("token").create::<ServiceAccount, _, _>(&key("robot"), &request).await?;
    assert!(token.status.unwrap().token.is_some_and(|token| !token.is_empty()));
    Ok(())
}
