//! Reads: get and list, from the server and from the cache, of typed and dynamic kinds.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, PostParams};
use kube::core::PartialObjectMeta;
use kubewright_runtime::client::Error;
use kubewright_runtime::{CacheOptions, Delete, Gvk, Key, Kind, ListOptions, Scope};

use super::{key, widgets};
use crate::world::{Effect, RecordedRequest, Widget, World, config_map, eventually, soon, widget};

#[tokio::test(start_paused = true)]
async fn without_a_cache_all_reads_go_to_the_server() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a", "b"]).await?;
    let client = world.client();
    assert!(client.cache().is_none());
    let map = client.get::<ConfigMap>(&key("a")).await?;
    assert_eq!(map.data.as_ref().unwrap()["key"], "value");
    assert!(client.get_opt::<ConfigMap>(&key("none")).await?.is_none());
    assert!(client.get::<ConfigMap>(&key("none")).await.unwrap_err().is_not_found());
    let metadata = client.get::<PartialObjectMeta<ConfigMap>>(&key("a")).await?;
    assert_eq!(metadata.metadata.uid, map.metadata.uid);
    assert_eq!(client.list::<ConfigMap>(&ListOptions::namespace("default")).await?.len(), 2);
    let metadata = client.list::<PartialObjectMeta<ConfigMap>>(&ListOptions::namespace("default")).await?;
    assert_eq!(metadata[1].metadata.name.as_deref(), Some("b"));
    let asked = world.faults.requests();
    assert_eq!(asked.len(), 6);
    assert!(asked[3].accept.contains("as=PartialObjectMetadata;"));
    assert!(asked[5].accept.contains("as=PartialObjectMetadataList;"));
    // The underlying kube client works as well.
    Api::<ConfigMap>::default_namespaced(client.kube()).get("a").await?;
    assert_eq!(world.faults.count(|_| true), 7);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn watched_kinds_are_read_from_the_cache_unless_uncached() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a", "b"]).await?;
    let running = world.cache(CacheOptions::default());
    let client = world.cached(&running.cache);
    running.cache.informer::<ConfigMap>();
    // The first read waits until the first list is complete.
    let map = soon("the object", client.get::<ConfigMap>(&key("a"))).await?;
    assert_eq!(map.data.as_ref().unwrap()["key"], "value");
    assert_eq!(client.list::<ConfigMap>(&ListOptions::namespace("default")).await?.len(), 2);
    let missing = client.get::<ConfigMap>(&key("none")).await.unwrap_err();
    assert!(missing.is_not_found());
    // The error equals that of the server.
    let asked = client.uncached().get::<ConfigMap>(&key("none")).await.unwrap_err();
    assert_eq!(missing.to_string(), asked.to_string());
    assert_eq!(
        missing.status().map(|it| (it.code, it.reason.clone())),
        asked.status().map(|it| (it.code, it.reason.clone()))
    );
    world.faults.forget();
    client.uncached().get::<ConfigMap>(&key("a")).await?;
    client.uncached().list::<ConfigMap>(&ListOptions::namespace("default")).await?;
    assert_eq!(world.faults.count(|_| true), 2);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn readers_of_the_cache_share_decoded_objects() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a"]).await?;
    let running = world.cache(CacheOptions::default());
    let client = world.cached(&running.cache);
    running.cache.informer::<ConfigMap>();
    soon("the object", client.get::<ConfigMap>(&key("a"))).await?;
    let second = client.get::<ConfigMap>(&key("a")).await?;
    let third = client.get::<ConfigMap>(&key("a")).await?;
    assert!(std::sync::Arc::ptr_eq(&second, &third));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn long_lists_are_read_in_pages() -> Result<()> {
    let world = World::new();
    for at in 0..1_201 {
        world.config_maps(&[&format!("map-{at:04}")]).await?;
    }
    let client = world.client();
    let list = ListOptions::namespace("default");
    assert_eq!(client.list::<ConfigMap>(&list).await?.len(), 1_201);
    let limits = |world: &World| -> Vec<String> {
        world.faults.requests().iter().map(|it| it.parameter("limit").unwrap_or("none").to_owned()).collect()
    };
    assert_eq!(limits(&world), ["500", "500", "500"]);
    world.faults.forget();
    let some = client.list::<ConfigMap>(&list.clone().limit(700)).await?;
    assert_eq!((some.len(), some[699].metadata.name.as_deref()), (700, Some("map-0699")));
    assert_eq!(limits(&world), ["500", "200"]);
    world.faults.forget();
    assert!(client.list::<ConfigMap>(&list.clone().limit(0)).await?.is_empty());
    assert_eq!(world.faults.count(|_| true), 0);
    // The continue token expires: the client then lists in one request.
    world.faults.next(1, Effect::Status(410, "Expired"), |asked| asked.parameter("continue").is_some());
    assert_eq!(client.list::<ConfigMap>(&list.clone()).await?.len(), 1_201);
    assert_eq!(limits(&world), ["500", "500", "none"]);
    // The limit still applies.
    world.faults.next(1, Effect::Status(410, "Expired"), |asked| asked.parameter("continue").is_some());
    assert_eq!(client.list::<ConfigMap>(&list.limit(600)).await?.len(), 600);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_server_evaluates_label_and_field_selectors() -> Result<()> {
    let world = World::new();
    world.widgets().await?;
    let client = world.client();
    for (name, color, tier) in [("a", "red", "front"), ("b", "red", "back"), ("c", "blue", "front")] {
        let mut widget = widget(name, color);
        widget.metadata.labels = Some([("tier".to_owned(), tier.to_owned())].into());
        client.create(&widget).await?;
    }
    let names = async |list: ListOptions| -> Result<Vec<String>> {
        let widgets = client.list::<Widget>(&list).await?;
        Ok(widgets.iter().map(|widget| widget.metadata.name.clone().unwrap()).collect())
    };
    assert_eq!(names(ListOptions::all()).await?, ["a", "b", "c"]);
    assert_eq!(names(ListOptions::all().labels("tier=front")).await?, ["a", "c"]);
    assert_eq!(names(ListOptions::all().labels("tier=front").field("spec.color", "red")).await?, ["a"]);
    let selector = "tier in (back)".parse()?;
    assert_eq!(names(ListOptions::all().matching(&selector)).await?, ["b"]);
    assert_eq!(names(ListOptions::namespace("default").field("metadata.name", "c")).await?, ["c"]);
    assert_eq!(names(ListOptions::namespace("other")).await?, Vec::<String>::new());
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn kinds_are_discovered_on_demand() -> Result<()> {
    let world = World::new();
    let client = world.client();
    let namespaces = client.kind(&Gvk::new("", "v1", "Namespace")).await?;
    assert_eq!((namespaces.plural(), namespaces.scope()), ("namespaces", Scope::Cluster));
    let deployments = client.kind(&Gvk::new("apps", "v1", "Deployment")).await?;
    assert_eq!((deployments.plural(), deployments.scope()), ("deployments", Scope::Namespaced));
    // One discovery request per group version.
    client.kind(&Gvk::new("", "v1", "Pod")).await?;
    client.kind(&Gvk::new("apps", "v1", "ReplicaSet")).await?;
    assert_eq!(world.faults.count(|_| true), 2);
    let paths: Vec<String> = world.faults.requests().iter().map(RecordedRequest::line).collect();
    assert_eq!(paths, ["GET /api/v1", "GET /apis/apps/v1"]);
    // A subresource is not a kind.
    assert!(client.kind(&Gvk::new("apps", "v1", "Scale")).await.unwrap_err().is_unknown_kind());
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_installed_later_is_discovered() -> Result<()> {
    let world = World::new();
    let client = world.client();
    let error = client.get_dynamic(&widgets(), &key("a")).await.unwrap_err();
    assert!(error.is_unknown_kind() && !error.is_not_found());
    assert_eq!(
        error.to_string(),
        "the API server does not serve example.org/v1, Kind=Widget: install its CRD, or correct the name"
    );
    world.widgets().await?;
    // Repeated lookups do not flood the server.
    for _ in 0..10 {
        assert!(client.kind(&widgets()).await.is_err());
    }
    assert_eq!(world.faults.count(|_| true), 1);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(client.kind(&widgets()).await?, Kind::of::<Widget>());
    assert!(client.get_dynamic(&widgets(), &key("a")).await.unwrap_err().is_not_found());
    // A failed request is not an unknown kind.
    world.faults.next(1, Effect::Refuse, |_| true);
    let error = client.kind(&Gvk::new("batch", "v1", "Job")).await.unwrap_err();
    assert!(matches!(error, Error::Send(_)) && !error.is_unknown_kind());
    client.kind(&Gvk::new("batch", "v1", "Job")).await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn dynamic_objects_have_api_version_and_kind_from_cache_and_server() -> Result<()> {
    let world = World::new();
    world.widgets().await?;
    world.api().create(&PostParams::default(), &widget("a", "red")).await?;
    let running = world.cache(CacheOptions::default());
    let client = world.cached(&running.cache);
    for cached in [false, true] {
        if cached {
            running.cache.informer_of(&client.kind(&widgets()).await?, false);
        }
        let one = soon("the object", client.get_dynamic(&widgets(), &key("a"))).await?;
        let all = client.list_dynamic(&widgets(), &ListOptions::all()).await?;
        for object in [&one, &all[0]] {
            let types = object.types.as_ref().unwrap();
            assert_eq!((&*types.api_version, &*types.kind), ("example.org/v1", "Widget"));
            assert_eq!(object.data["spec"]["color"], "red");
        }
    }
    assert_eq!(world.faults.watches(RecordedRequest::is_watch), 1);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_namespaced_client_rejects_other_namespaces() -> Result<()> {
    let world = World::new();
    world.namespace("other").await?;
    world.config_maps(&["a"]).await?;
    let running = world.cache(CacheOptions::default());
    running.cache.informer::<ConfigMap>();
    soon("the list", running.cache.synced()).await?;
    for client in [world.client(), world.cached(&running.cache)] {
        let client = client.namespaced("default");
        client.get::<ConfigMap>(&Key::cluster("a")).await?;
        client.get::<ConfigMap>(&key("a")).await?;
        assert_eq!(client.list::<ConfigMap>(&ListOptions::all()).await?.len(), 1);
        // Cluster-scoped objects are still accessible.
        client.get::<Namespace>(&Key::cluster("other")).await?;
        assert!(client.list::<Namespace>(&ListOptions::all()).await?.len() > 1);
        for error in [
            client.get::<ConfigMap>(&Key::namespaced("other", "a")).await.unwrap_err(),
            client.list::<ConfigMap>(&ListOptions::namespace("other")).await.unwrap_err(),
            client
                .delete_all_of::<ConfigMap>(&ListOptions::namespace("other"), &Delete::new())
                .await
                .unwrap_err(),
        ] {
            assert!(matches!(&error, Error::OtherNamespace { namespace, .. } if namespace == "other"));
            assert!(error.to_string().contains("this client is restricted to \"default\""), "{error}");
        }
    }
    let error = world.client().get::<ConfigMap>(&Key::cluster("a")).await.unwrap_err();
    assert!(matches!(error, Error::NamespaceMissing { .. }));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn names_of_roles_may_have_any_characters() -> Result<()> {
    use k8s_openapi::api::rbac::v1::ClusterRole;

    let world = World::new();
    let client = world.client();
    for name in ["system:mine", "what is this?", "a#b", "ü&=+"] {
        let mut role = ClusterRole::default();
        role.metadata.name = Some(name.to_owned());
        client.create(&role).await?;
        let role = client.get::<ClusterRole>(&Key::cluster(name)).await?;
        assert_eq!(role.metadata.name.as_deref(), Some(name));
        let found = client.list::<ClusterRole>(&ListOptions::all().field("metadata.name", name)).await?;
        assert_eq!(found.len(), 1, "{name}");
        client.delete(&*role).await?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_selector_with_commas_and_equal_signs_is_escaped() -> Result<()> {
    let world = World::new();
    world.widgets().await?;
    let client = world.client();
    for (name, color) in [("a", "a=b,c\\d"), ("b", "a")] {
        client.create(&widget(name, color)).await?;
    }
    let found = client.list::<Widget>(&ListOptions::all().field("spec.color", "a=b,c\\d")).await?;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].metadata.name.as_deref(), Some("a"));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_read_during_the_first_list_waits_for_it() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a"]).await?;
    world.faults.next(1, Effect::Delay(Duration::from_secs(20)), |_| true);
    let running = world.cache(CacheOptions::default());
    let client = world.cached(&running.cache);
    running.cache.informer::<ConfigMap>();
    let started = tokio::time::Instant::now();
    soon("the object", client.get::<ConfigMap>(&key("a"))).await?;
    assert_eq!(started.elapsed(), Duration::from_secs(20));
    // The cache itself never waits.
    assert!(running.cache.get::<ConfigMap>(&key("a"))?.is_some());
    client.create(&config_map("b")).await?;
    eventually("the event", || running.cache.get::<ConfigMap>(&key("b")).unwrap().is_some()).await;
    Ok(())
}
