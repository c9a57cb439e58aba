//! CRDs belong to one server: other servers do not have them, forks diverge, and the data directory keeps
//! them.

use std::path::Path;
use std::pin::pin;

use anyhow::Result;
use futures_util::TryStreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{
    Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams,
};
use kube::{Resource as _, ResourceExt};
use kubewright_apiserver::ApiServer;
use serde_json::json;

use super::{Widget, conditions, definition, definitions, dynamic, names, thing, version, widget, widgets};
use crate::world::{client, config_map, options, server};

const DEFINITION: &str = "widgets.example.org";

fn widgets_of(server: &ApiServer) -> Api<Widget> {
    Api::default_namespaced(client(server))
}

#[tokio::test]
async fn a_crd_of_one_server_is_unknown_to_another() -> Result<()> {
    let (one, two) = (server(), server());
    widgets(&client(&one)).await?.create(&PostParams::default(), &widget("a")).await?;
    assert!(names(&definitions(&client(&two))).await?.is_empty());
    let Err(kube::Error::Api(status)) = widgets_of(&two).list(&ListParams::default()).await else {
        panic!("the other server serves it");
    };
    assert_eq!(status.code, 404);
    // A different CRD of the same kind on the other server.
    let other = definition("Widget", &[version("v1", true, &json!({"size": {"type": "integer"}}))]);
    definitions(&client(&two)).create(&PostParams::default(), &other).await?;
    let there = dynamic(&client(&two), "Widget", "v1");
    let mut wide = DynamicObject::new("a", &super::resource("Widget", "v1"));
    wide.data = json!({"spec": {"color": "red", "size": 1}});
    assert_eq!(there.create(&PostParams::default(), &wide).await?.data["spec"], json!({"size": 1}));
    assert_eq!(names(&widgets_of(&one)).await?, ["a"]);
    Ok(())
}

#[tokio::test]
async fn a_fork_has_the_crds_and_is_independent() -> Result<()> {
    let server = server();
    widgets(&client(&server)).await?.create(&PostParams::default(), &widget("a")).await?;
    let fork = server.fork();
    assert_eq!(widgets_of(&fork).get("a").await?, widgets_of(&server).get("a").await?);
    widgets_of(&fork).create(&PostParams::default(), &widget("of-the-fork")).await?;
    assert_eq!(names(&widgets_of(&server)).await?, ["a"]);

    definitions(&client(&fork)).delete(DEFINITION, &DeleteParams::default()).await?;
    assert!(widgets_of(&fork).list(&ListParams::default()).await.is_err());
    widgets_of(&server).create(&PostParams::default(), &widget("b")).await?;
    assert_eq!(names(&widgets_of(&server)).await?, ["a", "b"]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_watch_is_not_affected_by_crd_changes_in_a_fork() -> Result<()> {
    let server = server();
    let here = widgets(&client(&server)).await?;
    let fork = server.fork();
    let mut watch = pin!(here.watch(&WatchParams::default().timeout(30), "0").await?);
    definitions(&client(&fork)).delete(DEFINITION, &DeleteParams::default()).await?;
    for at in 0..10 {
        let name = format!("a{at}");
        here.create(&PostParams::default(), &widget(&name)).await?;
        let event = watch.try_next().await?;
        assert!(matches!(event, Some(WatchEvent::Added(widget)) if widget.name_any() == name));
    }
    Ok(())
}

/// Both servers write the CRD at the same revision.
#[tokio::test]
async fn a_crd_change_takes_effect_although_a_fork_changed_it_differently() -> Result<()> {
    let fields = json!({"size": {"type": "integer"}});
    let server = server();
    let here = client(&server);
    definitions(&here)
        .create(&PostParams::default(), &definition("Thing", &[version("v1", true, &fields)]))
        .await?;
    let fork = server.fork();
    let patch = Patch::Merge(json!({"metadata": {"labels": {"x": "y"}}}));
    let options = PatchParams::default();
    definitions(&client(&fork)).patch("things.example.org", &options, &patch).await?;

    let fields = json!({"size": {"type": "integer"}, "color": {"type": "string"}});
    let patch = Patch::Merge(json!({"spec": {"versions": [version("v1", true, &fields)]}}));
    definitions(&here).patch("things.example.org", &options, &patch).await?;
    let new = thing("a", &json!({"color": "red"}));
    let created = dynamic(&here, "Thing", "v1").create(&PostParams::default(), &new).await?;
    assert_eq!(created.data["spec"], json!({"color": "red"}));
    let created = dynamic(&client(&fork), "Thing", "v1").create(&PostParams::default(), &new).await?;
    assert_eq!(created.data["spec"], json!({}));
    Ok(())
}

/// Opens a server on a directory, after all clients of the previous one are dropped.
fn open(dir: &Path) -> Result<ApiServer> {
    Ok(ApiServer::open(dir, options())?.0)
}

/// Creates CRDs, labels and owner references for the next server.
async fn fill(server: &ApiServer) -> Result<()> {
    let here = widgets(&client(server)).await?;
    let mut first = widget("a");
    first.labels_mut().insert("team".to_owned(), "blue".to_owned());
    let owner = here.create(&PostParams::default(), &first).await?;
    here.create(&PostParams::default(), &widget("b")).await?;
    let mut inner = widget("inner");
    inner.metadata.owner_references = Some(owner.owner_ref(&()).into_iter().collect());
    let inner = here.create(&PostParams::default(), &inner).await?;
    let mut map = config_map("innermost");
    map.metadata.owner_references = Some(inner.owner_ref(&()).into_iter().collect());
    Api::<ConfigMap>::default_namespaced(client(server)).create(&PostParams::default(), &map).await?;
    Ok(())
}

#[tokio::test]
async fn crds_and_their_objects_survive_a_restart() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let server = open(dir.path())?;
    fill(&server).await?;
    let before = definitions(&client(&server)).get(DEFINITION).await?;
    let first = widgets_of(&server).get("a").await?;
    server.close()?;
    drop(server);

    let server = open(dir.path())?;
    assert_eq!(definitions(&client(&server)).get(DEFINITION).await?, before);
    assert_eq!(widgets_of(&server).get("a").await?, first);
    let selected = async |options: ListParams| -> Result<Vec<String>> {
        let found = widgets_of(&server).list(&options).await?.items;
        Ok(found.iter().map(ResourceExt::name_any).collect())
    };
    assert_eq!(selected(ListParams::default().labels("team=blue")).await?, ["a"]);
    assert_eq!(selected(ListParams::default().fields("spec.color=red")).await?, ["a", "b", "inner"]);
    let mut wrong = widget("c");
    wrong.spec.replicas = 11;
    let refused = widgets_of(&server).create(&PostParams::default(), &wrong).await;
    assert!(refused.is_err(), "validation rules still apply");

    // Owner references still work.
    widgets_of(&server).delete("a", &DeleteParams::default()).await?;
    assert_eq!(names(&widgets_of(&server)).await?, ["b"]);
    assert!(names(&Api::<ConfigMap>::default_namespaced(client(&server))).await?.is_empty());
    definitions(&client(&server)).delete(DEFINITION, &DeleteParams::default()).await?;
    server.close()?;
    drop(server);

    let server = open(dir.path())?;
    assert!(names(&definitions(&client(&server))).await?.is_empty());
    assert!(widgets_of(&server).list(&ListParams::default()).await.is_err());
    Ok(())
}

#[tokio::test]
async fn a_terminating_crd_is_removed_after_a_restart() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let server = open(dir.path())?;
    let mut held = widget("held");
    held.finalizers_mut().push("example.org/hold".to_owned());
    widgets(&client(&server)).await?.create(&PostParams::default(), &held).await?;
    definitions(&client(&server)).delete(DEFINITION, &DeleteParams::default()).await?;
    server.close()?;
    drop(server);

    let server = open(dir.path())?;
    let going = definitions(&client(&server)).get(DEFINITION).await?;
    assert_eq!(conditions(&going)["Terminating"], "True InstanceDeletionInProgress");
    let here = widgets_of(&server);
    let refused = here.create(&PostParams::default(), &widget("late")).await;
    assert!(matches!(refused, Err(kube::Error::Api(status)) if status.code == 403));
    let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    here.patch("held", &PatchParams::default(), &patch).await?;
    assert!(definitions(&client(&server)).get_opt(DEFINITION).await?.is_none());
    Ok(())
}
