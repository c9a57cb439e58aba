//! Custom resources as operators use them: serving, watching, applying, scaling, status and finalizers.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use futures_util::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::finalizer::{Event as Finalizer, finalizer};
use kube::runtime::wait::await_condition;
use kube::runtime::watcher::{self, Event, watcher};
use kube::runtime::{WatchStreamExt as _, reflector};
use kube::{Client, CustomResourceExt as _, Resource as _, ResourceExt};
use serde_json::{Value, json};

use super::{Widget, conditions, definitions, widget, widgets};
use crate::world::{alone, config_map, soon};

fn applied(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec})
}

async fn apply(widgets: &Api<Widget>, manager: &str, spec: Value) -> kube::Result<Widget> {
    widgets.patch("a", &PatchParams::apply(manager), &Patch::Apply(applied("a", &spec))).await
}

#[tokio::test]
async fn a_derived_kind_is_served_when_its_create_returns() -> Result<()> {
    let client = alone();
    let widgets = widgets(&client).await?;
    let created = widgets.create(&PostParams::default(), &widget("a")).await?;
    assert_eq!((created.metadata.generation, &created.spec), (Some(1), &widget("a").spec));
    assert_eq!(widgets.get("a").await?, created);

    let defined = definitions(&client).get("widgets.example.org").await?;
    assert_eq!(conditions(&defined)["Established"], "True InitialNamesAccepted");
    assert_eq!(conditions(&defined)["NamesAccepted"], "True NoConflicts");
    let (found, capabilities) = kube::discovery::pinned_kind(
        &client,
        &kube::core::GroupVersionKind::gvk("example.org", "v1", "Widget"),
    )
    .await?;
    assert_eq!(found.plural, "widgets");
    let mut subresources: Vec<_> = capabilities.subresources.into_iter().map(|(sub, _)| sub.plural).collect();
    subresources.sort();
    assert_eq!(subresources, ["scale", "status"]);
    Ok(())
}

#[tokio::test]
async fn the_schema_defaults_selects_and_rejects() -> Result<()> {
    let client = alone();
    let widgets = widgets(&client).await?;
    let sparse = apply(&widgets, "tester", json!({"color": "red"})).await?;
    assert_eq!((sparse.spec.replicas, sparse.spec.max), (1, 10));
    let mut blue = widget("b");
    blue.spec.color = "blue".to_owned();
    widgets.create(&PostParams::default(), &blue).await?;
    let found = widgets.list(&ListParams::default().fields("spec.color=blue")).await?;
    assert_eq!(found.items.iter().map(ResourceExt::name_any).collect::<Vec<_>>(), ["b"]);

    blue.metadata.name = Some("c".to_owned());
    blue.spec.replicas = 11;
    let Err(kube::Error::Api(status)) = widgets.create(&PostParams::default(), &blue).await else {
        panic!("an object that violates a rule was accepted");
    };
    assert_eq!(
        status.message,
        "Widget.example.org \"c\" is invalid: spec: Invalid value: replicas must not exceed max"
    );
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_watcher_and_a_reflector_follow_custom_objects() -> Result<()> {
    let client = alone();
    let widgets = widgets(&client).await?;
    widgets.create(&PostParams::default(), &widget("a")).await?;
    for config in [watcher::Config::default(), watcher::Config::default().streaming_lists()] {
        let (reader, writer) = reflector::store();
        let stream = watcher(widgets.clone(), config).reflect(writer);
        let mut stream = pin!(stream.map_ok(|event: Event<Widget>| event.to_string()));
        let mut next = async |count: usize| -> Result<Vec<String>> {
            Ok(soon("events", stream.by_ref().take(count).try_collect()).await?)
        };
        assert_eq!(next(3).await?, ["Init", "InitApply(a)", "InitDone"]);
        widgets.create(&PostParams::default(), &widget("b")).await?;
        let patch = Patch::Merge(json!({"spec": {"color": "blue"}}));
        widgets.patch("b", &PatchParams::default(), &patch).await?;
        assert_eq!(next(2).await?, ["Apply(b)", "Apply(b)"]);
        let found = reader.get(&reflector::ObjectRef::new("b").within("default")).context("b")?;
        assert_eq!(found.spec.color, "blue");
        widgets.delete("b", &DeleteParams::default()).await?;
        assert_eq!(next(1).await?, ["Delete(b)"]);
        assert_eq!(reader.len(), 1);
    }
    Ok(())
}

#[tokio::test]
async fn fields_are_applied_forced_and_released() -> Result<()> {
    let widgets = widgets(&alone()).await?;
    let created = apply(&widgets, "one", json!({"color": "red", "settings": {"a": "1", "b": "1"}})).await?;
    let again = apply(&widgets, "one", json!({"color": "red", "settings": {"a": "1", "b": "1"}})).await?;
    assert_eq!(again.resource_version(), created.resource_version());

    let Err(kube::Error::Api(conflict)) =
        apply(&widgets, "two", json!({"color": "blue", "settings": {"a": "2"}})).await
    else {
        panic!("another manager's field was changed without force");
    };
    assert!(conflict.is_conflict());
    let causes: Vec<_> = conflict.details.iter().flat_map(|details| &details.causes).collect();
    let fields: Vec<_> = causes.iter().map(|cause| cause.field.as_str()).collect();
    assert_eq!(fields, [".spec.color", ".spec.settings.a"]);
    assert!(causes.iter().all(|cause| cause.reason == "FieldManagerConflict"), "{causes:?}");

    let force = PatchParams::apply("two").force();
    let body = Patch::Apply(applied("a", &json!({"color": "blue", "settings": {"a": "2"}})));
    let forced = widgets.patch("a", &force, &body).await?;
    assert_eq!(forced.spec.color, "blue");
    assert_eq!(forced.spec.settings, [("a".into(), "2".into()), ("b".into(), "1".into())].into());

    // The first manager releases the fields that it still owns; the field that it lost stays.
    let nothing = json!({"apiVersion": "example.org/v1", "kind": "Widget"});
    let left = widgets.patch("a", &PatchParams::apply("one"), &Patch::Apply(nothing)).await?;
    assert_eq!(left.spec.color, "blue");
    assert_eq!(left.spec.settings, [("a".into(), "2".into())].into());
    let managers: Vec<_> =
        left.managed_fields().iter().filter_map(|entry| entry.manager.as_deref()).collect();
    assert_eq!(managers, ["two"]);
    Ok(())
}

#[tokio::test]
async fn status_is_written_only_through_its_subresource() -> Result<()> {
    let widgets = widgets(&alone()).await?;
    let mut first = widget("a");
    first.status = Some(super::WidgetStatus { replicas: 7, selector: None });
    let created = widgets.create(&PostParams::default(), &first).await?;
    assert_eq!(created.status, None);

    let patch = json!({"spec": {"color": "blue"}, "status": {"replicas": 2}});
    let patched = widgets.patch_status("a", &PatchParams::default(), &Patch::Merge(patch)).await?;
    assert_eq!((patched.spec.color.as_str(), patched.metadata.generation), ("red", Some(1)));
    assert_eq!(patched.status.as_ref().map(|status| status.replicas), Some(2));

    let mut status = applied("a", &json!({"color": "blue"}));
    status["status"] = json!({"replicas": 2, "selector": "app=a"});
    let by_apply = widgets.patch_status("a", &PatchParams::apply("status"), &Patch::Apply(&status)).await?;
    assert_eq!(by_apply.spec.color, "red");
    assert_eq!(by_apply.status.as_ref().and_then(|status| status.selector.as_deref()), Some("app=a"));

    let mut replaced = by_apply.clone();
    replaced.status = None;
    replaced.spec.color = "green".to_owned();
    let replaced = widgets.replace("a", &PostParams::default(), &replaced).await?;
    assert_eq!((replaced.spec.color.as_str(), replaced.metadata.generation), ("green", Some(2)));
    assert_eq!(replaced.status, by_apply.status);
    let managed: Vec<_> = replaced
        .managed_fields()
        .iter()
        .map(|entry| {
            (entry.operation.clone().unwrap_or_default(), entry.subresource.clone().unwrap_or_default())
        })
        .collect();
    assert!(managed.contains(&("Apply".to_owned(), "status".to_owned())), "{managed:?}");
    assert_eq!(widgets.get_status("a").await?, replaced);
    Ok(())
}

#[tokio::test]
async fn replicas_are_applied_through_the_scale_of_a_custom_resource() -> Result<()> {
    let client = alone();
    let widgets = widgets(&client).await?;
    widgets.create(&PostParams::default(), &widget("a")).await?;
    let scale = json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a"}, "spec": {"replicas": 3}});
    let applied =
        widgets.patch_scale("a", &PatchParams::apply("autoscaler").force(), &Patch::Apply(&scale)).await?;
    assert_eq!(applied.spec.and_then(|spec| spec.replicas), Some(3));
    let scaled = widgets.get("a").await?;
    assert_eq!(scaled.spec.replicas, 3);
    let owners = scaled.metadata.managed_fields.unwrap_or_default();
    let owner =
        owners.iter().find(|owner| owner.manager.as_deref() == Some("autoscaler")).context("no owner")?;
    assert_eq!((owner.operation.as_deref(), owner.subresource.as_deref()), (Some("Apply"), Some("scale")));
    assert_eq!(
        owner.fields_v1.as_ref().map(|fields| &fields.0),
        Some(&json!({"f:spec": {"f:replicas": {}}}))
    );
    Ok(())
}

#[tokio::test]
async fn a_custom_resource_is_scaled() -> Result<()> {
    let widgets = widgets(&alone()).await?;
    widgets.create(&PostParams::default(), &widget("a")).await?;
    let patch = json!({"status": {"replicas": 1, "selector": "app=a"}});
    widgets.patch_status("a", &PatchParams::default(), &Patch::Merge(patch)).await?;
    let scale = widgets.get_scale("a").await?;
    assert_eq!(scale.spec.as_ref().and_then(|spec| spec.replicas), Some(1));
    let status = scale.status.clone().context("no status")?;
    assert_eq!((status.replicas, status.selector.as_deref()), (1, Some("app=a")));

    let patch = Patch::Merge(json!({"spec": {"replicas": 3}}));
    let patched = widgets.patch_scale("a", &PatchParams::default(), &patch).await?;
    assert_eq!(patched.spec.and_then(|spec| spec.replicas), Some(3));
    let mut stale = scale;
    stale.spec.get_or_insert_default().replicas = Some(4);
    let refused = widgets.replace_scale("a", &PostParams::default(), &stale).await;
    assert!(matches!(refused, Err(kube::Error::Api(status)) if status.is_conflict()));
    stale.metadata.resource_version = None;
    widgets.replace_scale("a", &PostParams::default(), &stale).await?;
    let scaled = widgets.get("a").await?;
    assert_eq!((scaled.spec.replicas, scaled.metadata.generation), (4, Some(3)));

    // Validation rules apply to scale as well.
    let patch = Patch::Merge(json!({"spec": {"replicas": 11}}));
    let refused = widgets.patch_scale("a", &PatchParams::default(), &patch).await;
    let Err(kube::Error::Api(status)) = refused else { panic!("scaled beyond the maximum") };
    assert!(status.message.contains("replicas must not exceed max"), "{}", status.message);
    Ok(())
}

#[tokio::test]
async fn a_finalizer_runs_before_a_custom_resource_is_removed() -> Result<()> {
    const NAME: &str = "example.org/cleanup";
    let widgets = widgets(&alone()).await?;
    widgets.create(&PostParams::default(), &widget("a")).await?;
    let run = async || -> Result<&'static str> {
        let seen = std::cell::Cell::new("nothing");
        finalizer(&widgets, NAME, Arc::new(widgets.get("a").await?), |event| {
            seen.set(match event {
                Finalizer::Apply(_) => "apply",
                Finalizer::Cleanup(_) => "cleanup",
            });
            std::future::ready(Ok::<_, Infallible>(Action::await_change()))
        })
        .await?;
        Ok(seen.get())
    };
    assert_eq!(run().await?, "nothing", "the first run adds the finalizer");
    assert_eq!(run().await?, "apply");
    widgets.delete("a", &DeleteParams::default()).await?;
    assert_eq!(run().await?, "cleanup");
    assert!(widgets.get_opt("a").await?.is_none());
    Ok(())
}

/// Keeps a ConfigMap with each widget's color, and updates the status.
async fn reconcile(widget: Arc<Widget>, client: Arc<Client>) -> kube::Result<Action> {
    let maps: Api<ConfigMap> = Api::default_namespaced((*client).clone());
    let widgets: Api<Widget> = Api::default_namespaced((*client).clone());
    let name = widget.name_any();
    let mut map = config_map(&name);
    map.metadata.owner_references = Some(widget.controller_owner_ref(&()).into_iter().collect());
    map.data = Some([("color".to_owned(), widget.spec.color.clone())].into());
    let params = PatchParams::apply("operator").force();
    maps.patch(&name, &params, &Patch::Apply(map)).await?;
    let mut status = json!({"apiVersion": Widget::api_version(&()), "kind": Widget::kind(&())});
    status["status"] = json!({"replicas": widget.spec.replicas});
    widgets.patch_status(&name, &params, &Patch::Apply(status)).await?;
    Ok(Action::requeue(Duration::from_hours(1)))
}

#[tokio::test(start_paused = true)]
async fn an_operator_reconciles_its_own_kind() -> Result<()> {
    let client = alone();
    let widgets = widgets(&client).await?;
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = Controller::new(widgets.clone(), watcher::Config::default())
        .owns(maps.clone(), watcher::Config::default())
        .graceful_shutdown_on(async { stopped.await.unwrap_or_default() })
        .run(reconcile, |_, _: &kube::Error, _| Action::requeue(Duration::from_secs(1)), Arc::new(client))
        .for_each(|_| std::future::ready(()));
    let running = tokio::spawn(running);

    widgets.create(&PostParams::default(), &widget("a")).await?;
    let reported = |replicas| {
        move |widget: Option<&Widget>| {
            widget.and_then(|widget| widget.status.as_ref()).is_some_and(|status| status.replicas == replicas)
        }
    };
    soon("the report", await_condition(widgets.clone(), "a", reported(1))).await?;
    let patch = Patch::Merge(json!({"spec": {"replicas": 2, "color": "blue"}}));
    widgets.patch("a", &PatchParams::default(), &patch).await?;
    soon("the second report", await_condition(widgets.clone(), "a", reported(2))).await?;
    assert_eq!(maps.get("a").await?.data.unwrap_or_default()["color"], "blue");

    // An owned object is recreated, and deleted with its owner.
    maps.delete("a", &DeleteParams::default()).await?;
    let is_there = |map: Option<&ConfigMap>| map.is_some();
    soon("the second map", await_condition(maps.clone(), "a", is_there)).await?;
    widgets.delete("a", &DeleteParams::default()).await?;
    assert!(maps.get_opt("a").await?.is_none());
    assert!(stop.send(()).is_ok(), "the controller still exists");
    soon("the end of the controller", running).await?;
    Ok(())
}

#[tokio::test]
async fn a_crd_is_applied_as_operators_do_on_start() -> Result<()> {
    let client = alone();
    let params = PatchParams::apply("operator").force();
    let definitions = definitions(&client);
    let first = definitions.patch(Widget::crd_name(), &params, &Patch::Apply(Widget::crd())).await?;
    let widgets: Api<Widget> = Api::default_namespaced(client.clone());
    widgets.create(&PostParams::default(), &widget("a")).await?;
    let settled = definitions.get(Widget::crd_name()).await?;
    let second = definitions.patch(Widget::crd_name(), &params, &Patch::Apply(Widget::crd())).await?;
    assert_eq!(second.resource_version(), settled.resource_version(), "the second apply changed nothing");
    assert_eq!(second.uid(), first.uid());
    assert_eq!(super::names(&widgets).await?, ["a"]);
    Ok(())
}

#[tokio::test]
async fn a_dry_run_creates_changes_and_deletes_nothing() -> Result<()> {
    let client = alone();
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let said = definitions(&client).create(&dry, &Widget::crd()).await?;
    assert_eq!(said.name_any(), Widget::crd_name());
    assert!(definitions(&client).get_opt(Widget::crd_name()).await?.is_none());
    let widgets = widgets(&client).await?;
    assert_eq!(widgets.create(&dry, &widget("a")).await?.spec, widget("a").spec);
    let applied = Patch::Apply(applied("a", &json!({"color": "red"})));
    widgets.patch("a", &PatchParams::apply("tester").dry_run(), &applied).await?;
    assert!(super::names(&widgets).await?.is_empty());

    widgets.create(&PostParams::default(), &widget("a")).await?;
    widgets.delete("a", &DeleteParams::default().dry_run()).await?;
    definitions(&client).delete(Widget::crd_name(), &DeleteParams::default().dry_run()).await?;
    assert_eq!(super::names(&widgets).await?, ["a"]);
    widgets.create(&PostParams::default(), &widget("b")).await?;
    Ok(())
}

#[tokio::test]
async fn a_namespaced_custom_resource_needs_an_existing_namespace() -> Result<()> {
    let client = alone();
    widgets(&client).await?;
    let nowhere: Api<Widget> = Api::namespaced(client, "nowhere");
    let Err(kube::Error::Api(status)) = nowhere.create(&PostParams::default(), &widget("a")).await else {
        panic!("the object was created without its namespace");
    };
    assert_eq!((status.code, status.message.as_str()), (404, "namespaces \"nowhere\" not found"));
    assert!(super::names(&nowhere).await?.is_empty());
    Ok(())
}
