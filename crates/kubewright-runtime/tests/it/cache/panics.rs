//! Panics of index functions, of transforms, and of an informer itself.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use anyhow::Result;
use bytes::Bytes;
use http::{Request, Response};
use http_body::Frame;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::client::Body;
use kubewright_runtime::client::Error;
use kubewright_runtime::{CacheOptions, Key, KindOptions, ListOptions, Manager, ManagerOptions};
use tower::ServiceExt as _;

use crate::operator::{Acts, Notes, Running, metric, options};
use crate::world::{RunningCache, Widget, World, eventually, soon};

fn names(maps: &[std::sync::Arc<ConfigMap>]) -> Vec<&str> {
    maps.iter().map(|map| map.metadata.name.as_deref().unwrap_or_default()).collect()
}

fn name_of(map: &ConfigMap) -> &str {
    map.metadata.name.as_deref().unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn an_index_function_that_panics_leaves_one_object_out_of_its_index() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a", "bad"]).await?;
    let manager = Manager::new(world.kube.clone(), options().namespaces(["default"]))?;
    let cache = manager.cache();
    cache.index::<ConfigMap>("broken", |map| {
        assert!(!name_of(map).starts_with("bad"), "the index function of this test");
        vec!["x".to_owned()]
    })?;
    cache.index::<ConfigMap>("sound", |_| vec!["x".to_owned()])?;
    let running = Running::start(&manager);
    soon("the list", cache.synced()).await?;
    world.config_maps(&["bad-too", "c"]).await?;
    let informer = cache.informer::<ConfigMap>();
    eventually("the events", || informer.len() == 4).await;
    let found = |index| cache.list::<ConfigMap>(&ListOptions::all().field(index, "x"));
    assert_eq!(names(&found("broken")?), ["a", "c"]);
    assert_eq!(names(&found("sound")?), ["a", "bad", "bad-too", "c"]);
    assert!(cache.get::<ConfigMap>(&Key::namespaced("default", "bad"))?.is_some());
    // An index that is added later processes the same objects.
    cache.index::<ConfigMap>("late", |map| {
        assert!(name_of(map) != "a", "the index function of this test");
        vec!["x".to_owned()]
    })?;
    assert_eq!(names(&found("late")?), ["bad", "bad-too", "c"]);
    let panics = |index| {
        let labels = format!(r#"group="",version="v1",kind="ConfigMap",function="index",name="{index}""#);
        metric(&manager, &format!("kubewright_cache_panics_total{{{labels}}}"))
    };
    assert_eq!((panics("broken"), panics("late"), panics("sound")), (Some(2.0), Some(1.0), None));
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn a_transform_that_panics_keeps_the_object_untransformed() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a", "bad"]).await?;
    let transform = |map: &mut ConfigMap| {
        assert!(name_of(map) != "bad", "the transform of this test");
        map.data = None;
    };
    let cache = CacheOptions::default().kind::<ConfigMap>(KindOptions::new().transform(transform));
    let options = ManagerOptions { cache, ..options() }.namespaces(["default"]);
    let (manager, notes) = (Manager::new(world.kube.clone(), options)?, Notes::new());
    manager.controller(Acts::<ConfigMap>::noting(&notes)).register()?;
    let running = Running::start(&manager);
    soon("the list", manager.cache().synced()).await?;
    let data = |name: &str| -> Result<bool> {
        let map = manager.cache().get::<ConfigMap>(&Key::namespaced("default", name))?;
        Ok(map.is_some_and(|map| map.data.is_some()))
    };
    assert!(data("bad")? && !data("a")?);
    eventually("the reconciles", || notes.len() == 2).await;
    let labels = r#"group="",version="v1",kind="ConfigMap",function="transform",name="""#;
    assert_eq!(metric(&manager, &format!("kubewright_cache_panics_total{{{labels}}}")), Some(1.0));
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn an_object_that_the_transform_cannot_decode_is_kept_untransformed() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a"]).await?;
    // A ConfigMap has no spec, so it cannot be decoded as a Widget.
    let options = KindOptions::new().transform(|_: &mut Widget| {}).namespaces(["default"]);
    let running = world.cache(CacheOptions::default().kind::<ConfigMap>(options));
    soon("the list", running.cache.informer::<ConfigMap>().synced()).await?;
    assert_eq!(names(&running.cache.list::<ConfigMap>(&ListOptions::all())?), ["a"]);
    Ok(())
}

/// A response body that panics when it is read, like a bug in the informer.
struct Broken(kubewright_apiserver::Body, bool);

impl http_body::Body for Broken {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Self(body, broken) = self.get_mut();
        assert!(!*broken, "the body of this test");
        Pin::new(body).poll_frame(cx)
    }
}

#[tokio::test(start_paused = true)]
async fn an_informer_that_panics_fails_readiness_and_reads() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a"]).await?;
    let server = world.server.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let server = server.clone();
        async move {
            let broken = request.uri().path().contains("configmaps");
            let response: Response<_> = server.oneshot(request).await?;
            Ok::<_, Infallible>(response.map(|body| Broken(body, broken)))
        }
    });
    let running = RunningCache::start(kube::Client::new(service, "default"), CacheOptions::default());
    let (maps, pods) = (running.cache.informer::<ConfigMap>(), running.cache.informer::<Pod>());
    assert!(matches!(soon("the end", maps.synced()).await, Err(Error::CacheStopped(_))));
    soon("the list", pods.synced()).await?;
    let read = running.cache.list::<ConfigMap>(&ListOptions::all());
    assert!(matches!(read, Err(Error::CacheStopped(_))), "{read:?}");
    running.cache.list::<Pod>(&ListOptions::all())?;
    assert_eq!(running.cache.health(), Err("informer has stopped: v1, Kind=ConfigMap".to_owned()));
    Ok(())
}
