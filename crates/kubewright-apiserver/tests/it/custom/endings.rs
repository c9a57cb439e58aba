//! Deletion of custom resources and CRDs: owners, finalizers, namespaces and watches.

use anyhow::{Context as _, Result};
use futures_util::{Stream, TryStreamExt as _};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::runtime::wait::{await_condition, conditions as awaited};
use kube::{Client, Resource, ResourceExt};
use serde_json::json;
use tokio::task::JoinSet;

use super::{Widget, conditions, definition, definitions, names, resource, thing, version, widget, widgets};
use crate::world::{alone, client, config_map, object, server, soon};

const DEFINITION: &str = "widgets.example.org";
const HOLD: &str = "example.org/hold";

fn owned_by<K: Resource<DynamicType = ()>>(owner: &K) -> Vec<OwnerReference> {
    owner.owner_ref(&()).into_iter().collect()
}

/// A ConfigMap owned by `owner`.
async fn child<K: Resource<DynamicType = ()>>(client: &Client, owner: &K, name: &str) -> Result<ConfigMap> {
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let mut map = config_map(name);
    map.metadata.owner_references = Some(owned_by(owner));
    Ok(maps.create(&PostParams::default(), &map).await?)
}

/// The remaining events of a watch, as `type name`.
async fn rest(watch: impl Stream<Item = kube::Result<WatchEvent<Widget>>>) -> Result<Vec<String>> {
    let told = watch.map_ok(|event| match event {
        WatchEvent::Added(widget) => format!("added {}", widget.name_any()),
        WatchEvent::Modified(widget) => format!("modified {}", widget.name_any()),
        WatchEvent::Deleted(widget) => format!("deleted {}", widget.name_any()),
        other => format!("{other:?}"),
    });
    Ok(soon("the end of the watch", told.try_collect()).await?)
}

#[tokio::test]
async fn dependents_of_a_custom_resource_are_deleted_with_it() -> Result<()> {
    let client = alone();
    let widgets = widgets(&client).await?;
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    for name in ["background", "foreground", "orphan"] {
        let owner = widgets.create(&PostParams::default(), &widget(name)).await?;
        let mut inner = widget(&format!("{name}-inner"));
        inner.metadata.owner_references = Some(owned_by(&owner));
        let inner = widgets.create(&PostParams::default(), &inner).await?;
        child(&client, &inner, &format!("{name}-innermost")).await?;
    }
    widgets.delete("background", &DeleteParams::background()).await?;
    widgets.delete("foreground", &DeleteParams::foreground()).await?;
    widgets.delete("orphan", &DeleteParams::orphan()).await?;
    assert_eq!(names(&widgets).await?, ["orphan-inner"]);
    assert_eq!(names(&maps).await?, ["orphan-innermost"]);
    assert_eq!(widgets.get("orphan-inner").await?.owner_references(), []);
    Ok(())
}

#[tokio::test]
async fn a_cluster_scoped_object_can_own_namespaced_objects() -> Result<()> {
    let client = alone();
    let mut cluster_wide = definition("Thing", &[version("v1", true, &json!({"size": {"type": "integer"}}))]);
    cluster_wide.spec.scope = "Cluster".to_owned();
    definitions(&client).create(&PostParams::default(), &cluster_wide).await?;
    let things: Api<DynamicObject> = Api::all_with(client.clone(), &resource("Thing", "v1"));
    let owner = things.create(&PostParams::default(), &thing("a", &json!({"size": 1}))).await?;
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let mut map = config_map("child");
    map.metadata.owner_references = Some(owner.owner_ref(&resource("Thing", "v1")).into_iter().collect());
    maps.create(&PostParams::default(), &map).await?;
    assert_eq!(names(&maps).await?, ["child"]);
    things.delete("a", &DeleteParams::default()).await?;
    assert!(names(&maps).await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn an_object_with_a_missing_owner_is_collected() -> Result<()> {
    let client = alone();
    let widgets = widgets(&client).await?;
    let owner = widgets.create(&PostParams::default(), &widget("a")).await?;
    widgets.delete("a", &DeleteParams::default()).await?;
    let again = widgets.create(&PostParams::default(), &widget("a")).await?;
    assert_ne!(again.uid(), owner.uid());
    // The reference has the UID of a former object with that name.
    child(&client, &owner, "child").await?;
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    assert!(maps.get_opt("child").await?.is_none());
    Ok(())
}

#[tokio::test]
async fn deleting_a_crd_deletes_its_objects_and_their_dependents() -> Result<()> {
    let client = alone();
    let widgets = widgets(&client).await?;
    for name in ["a", "b"] {
        let owner = widgets.create(&PostParams::default(), &widget(name)).await?;
        child(&client, &owner, name).await?;
    }
    definitions(&client).delete(DEFINITION, &DeleteParams::default()).await?;
    assert!(definitions(&client).get_opt(DEFINITION).await?.is_none());
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    assert!(names(&maps).await?.is_empty());
    let Err(kube::Error::Api(status)) = widgets.get("a").await else {
        panic!("the resource is still served")
    };
    assert_eq!(status.code, 404);

    // A new CRD with the same name has no old objects.
    super::widgets(&client).await?;
    assert!(names(&widgets).await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn dependents_of_a_crd_are_deleted_with_it() -> Result<()> {
    let client = alone();
    widgets(&client).await?;
    let definition = definitions(&client).get(DEFINITION).await?;
    child(&client, &definition, "child").await?;
    definitions(&client).delete(DEFINITION, &DeleteParams::default()).await?;
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    assert!(maps.get_opt("child").await?.is_none());
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_watch_reports_every_deletion_before_it_ends_with_the_crd() -> Result<()> {
    let client = alone();
    let widgets = widgets(&client).await?;
    for name in ["a", "b"] {
        widgets.create(&PostParams::default(), &widget(name)).await?;
    }
    let watch = widgets.watch(&WatchParams::default(), "0").await?;
    let quiet: Api<Widget> = Api::namespaced(client.clone(), "elsewhere");
    let quiet = quiet.watch(&WatchParams::default(), "0").await?;
    definitions(&client).delete(DEFINITION, &DeleteParams::default()).await?;
    assert_eq!(rest(watch).await?, ["added a", "added b", "deleted a", "deleted b"]);
    assert!(rest(quiet).await?.is_empty());
    Ok(())
}

/// More non-matching events than a watch reads at a time.
#[tokio::test(start_paused = true)]
async fn a_watch_reports_the_last_deletion_after_many_non_matching_ones() -> Result<()> {
    let client = alone();
    let widgets = widgets(&client).await?;
    for at in 0..600 {
        widgets.create(&PostParams::default(), &widget(&format!("a{at:03}"))).await?;
    }
    widgets.create(&PostParams::default(), &widget("z")).await?;
    let one = WatchParams::default().fields("metadata.name=z");
    let watch = widgets.watch(&one, "0").await?;
    definitions(&client).delete(DEFINITION, &DeleteParams::default()).await?;
    assert_eq!(rest(watch).await?, ["added z", "deleted z"]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_watch_does_not_continue_with_a_new_crd_of_the_same_name() -> Result<()> {
    let client = alone();
    let widgets = widgets(&client).await?;
    widgets.create(&PostParams::default(), &widget("a")).await?;
    let watch = widgets.watch(&WatchParams::default(), "0").await?;
    definitions(&client).delete(DEFINITION, &DeleteParams::default()).await?;
    super::widgets(&client).await?;
    widgets.create(&PostParams::default(), &widget("b")).await?;
    assert_eq!(rest(watch).await?, ["added a", "deleted a"]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_terminating_crd_waits_for_the_finalizers_of_its_objects() -> Result<()> {
    let client = alone();
    let widgets = widgets(&client).await?;
    let mut held = widget("held");
    held.finalizers_mut().push(HOLD.to_owned());
    widgets.create(&PostParams::default(), &held).await?;
    widgets.create(&PostParams::default(), &widget("free")).await?;
    let watch = widgets.watch(&WatchParams::default(), "0").await?;
    definitions(&client).delete(DEFINITION, &DeleteParams::default()).await?;

    let waiting = definitions(&client).get(DEFINITION).await?;
    assert!(waiting.metadata.deletion_timestamp.is_some());
    assert_eq!(conditions(&waiting)["Terminating"], "True InstanceDeletionInProgress");
    assert_eq!(names(&widgets).await?, ["held"]);
    assert!(widgets.get("held").await?.metadata.deletion_timestamp.is_some());
    let Err(kube::Error::Api(status)) = widgets.create(&PostParams::default(), &widget("late")).await else {
        panic!("an object was created for a terminating CRD");
    };
    assert_eq!(status.code, 403);
    assert_eq!(
        status.message,
        "widgets.example.org \"late\" is forbidden: create not allowed while custom resource definition is \
         terminating"
    );

    let uid = waiting.uid().context("no uid")?;
    let ended = await_condition(definitions(&client), DEFINITION, awaited::is_deleted(&uid));
    let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    let options = PatchParams::default();
    let release = widgets.patch("held", &options, &patch);
    let (released, gone) = tokio::join!(release, soon("the removal of the CRD", ended));
    released?;
    gone?;
    assert!(definitions(&client).get_opt(DEFINITION).await?.is_none());
    let told = rest(watch).await?;
    assert_eq!(told, ["added free", "added held", "deleted free", "modified held", "deleted held"]);
    Ok(())
}

#[tokio::test]
async fn a_terminating_crd_with_a_finalizer_stays_without_its_objects() -> Result<()> {
    let client = alone();
    let widgets = widgets(&client).await?;
    widgets.create(&PostParams::default(), &widget("a")).await?;
    let patch = Patch::Merge(json!({"metadata": {"finalizers": [HOLD]}}));
    definitions(&client).patch_metadata(DEFINITION, &PatchParams::default(), &patch).await?;
    // The server adds its own finalizer at the first write, so a patch of the list would remove it.
    definitions(&client).delete(DEFINITION, &DeleteParams::default()).await?;
    let waiting = definitions(&client).get(DEFINITION).await?;
    assert_eq!(waiting.finalizers(), [HOLD]);
    assert_eq!(conditions(&waiting)["Terminating"], "False InstanceDeletionCompleted");
    assert!(names(&widgets).await?.is_empty());
    let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    definitions(&client).patch_metadata(DEFINITION, &PatchParams::default(), &patch).await?;
    assert!(definitions(&client).get_opt(DEFINITION).await?.is_none());
    assert!(widgets.get("a").await.is_err());
    Ok(())
}

#[tokio::test]
async fn deleting_a_namespace_deletes_its_custom_resources() -> Result<()> {
    let client = alone();
    let here = widgets(&client).await?;
    here.create(&PostParams::default(), &widget("stays")).await?;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    namespaces.create(&PostParams::default(), &object(json!({"metadata": {"name": "team"}}))).await?;
    let there: Api<Widget> = Api::namespaced(client.clone(), "team");
    there.create(&PostParams::default(), &widget("goes")).await?;
    let mut held = widget("held");
    held.finalizers_mut().push(HOLD.to_owned());
    there.create(&PostParams::default(), &held).await?;

    namespaces.delete("team", &DeleteParams::default()).await?;
    assert_eq!(names(&there).await?, ["held"]);
    let waiting = namespaces.get("team").await?.status.unwrap_or_default();
    let why: Vec<_> = waiting.conditions.unwrap_or_default().into_iter().filter_map(|c| c.message).collect();
    assert!(why.iter().any(|why| why.contains("widgets.example.org has 1 resource instances")), "{why:?}");
    assert!(why.iter().any(|why| why.contains("example.org/hold in 1 resource instances")), "{why:?}");
    let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    there.patch("held", &PatchParams::default(), &patch).await?;
    assert!(namespaces.get_opt("team").await?.is_none());
    assert_eq!(names(&here).await?, ["stays"]);
    Ok(())
}

/// The last finalizers may be removed before, during or after the check for remaining instances.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_crd_is_removed_whenever_the_last_finalizer_is() -> Result<()> {
    for _ in 0..20 {
        let server = server();
        let client = client(&server);
        let widgets = widgets(&client).await?;
        for at in 0..4 {
            let mut held = widget(&format!("held-{at}"));
            held.finalizers_mut().push(HOLD.to_owned());
            widgets.create(&PostParams::default(), &held).await?;
        }
        let mut tasks = JoinSet::new();
        for at in 0..4 {
            let widgets = widgets.clone();
            tasks.spawn(async move {
                let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
                widgets.patch(&format!("held-{at}"), &PatchParams::default(), &patch).await?;
                anyhow::Ok(())
            });
        }
        definitions(&client).delete(DEFINITION, &DeleteParams::default()).await?;
        while let Some(done) = soon("a finalizer", tasks.join_next()).await {
            done??;
        }
        assert!(definitions(&client).get_opt(DEFINITION).await?.is_none());
    }
    Ok(())
}
