//! Finalizers, on the server.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Result, bail};
use http::Method;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;
use kube::api::{DeleteParams, DynamicObject};
use kube::core::PartialObjectMeta;
use kubewright_runtime::client::Error;
use kubewright_runtime::finalizer::{self, Event};
use kubewright_runtime::{CacheOptions, Client, Gvk, Key, Patch};
use serde_json::json;

use crate::world::{Effect, RecordedRequest, World, config_map, eventually, settle, soon};

const NAME: &str = "example.org/cleanup";
const OTHER: &str = "example.org/other";

fn key() -> Key {
    Key::namespaced("default", "a")
}

/// The calls of a reconciler.
#[derive(Default)]
struct Seen {
    applied: AtomicUsize,
    cleaned: AtomicUsize,
}

impl Seen {
    fn counts(&self) -> (usize, usize) {
        (self.applied.load(Ordering::Relaxed), self.cleaned.load(Ordering::Relaxed))
    }

    /// Reconciles an object and returns which event it got.
    async fn reconcile(&self, client: &Client, object: &ConfigMap) -> Result<&'static str> {
        finalizer::run(client, object, NAME, async |event| {
            assert!(finalizer::contains(event.object(), NAME), "the finalizer exists for every event");
            match event {
                Event::Apply(_) => {
                    self.applied.fetch_add(1, Ordering::Relaxed);
                    Ok("applied")
                }
                Event::Cleanup(_) => {
                    self.cleaned.fetch_add(1, Ordering::Relaxed);
                    Ok("cleaned")
                }
            }
        })
        .await
    }
}

async fn now(client: &Client) -> Result<Arc<ConfigMap>> {
    Ok(client.uncached().get::<ConfigMap>(&key()).await?)
}

/// Sets the finalizers of the object, as another client.
async fn set(world: &World, finalizers: &[&str]) -> Result<()> {
    let patch = kube::api::Patch::Merge(json!({"metadata": {"finalizers": finalizers}}));
    world.api::<ConfigMap>().patch("a", &kube::api::PatchParams::default(), &patch).await?;
    Ok(())
}

async fn delete(world: &World) -> Result<()> {
    world.api::<ConfigMap>().delete("a", &DeleteParams::default()).await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_is_added_once_and_the_cleanup_runs_once() -> Result<()> {
    let world = World::new();
    let client = world.client();
    let seen = Seen::default();
    let object = client.create(&config_map("a")).await?;
    world.faults.forget();
    // Added, and applied in the same call.
    assert_eq!(seen.reconcile(&client, &object).await?, "applied");
    assert_eq!(now(&client).await?.finalizers(), [NAME]);
    assert_eq!(world.faults.count(RecordedRequest::is_write), 1);
    assert_eq!(world.faults.requests()[0].content_type, "application/json-patch+json");
    // Applied without another write.
    for _ in 0..3 {
        assert_eq!(seen.reconcile(&client, &*now(&client).await?).await?, "applied");
    }
    assert_eq!((seen.counts(), world.faults.count(RecordedRequest::is_write)), ((4, 0), 1));

    delete(&world).await?;
    let going = now(&client).await?;
    assert!(going.metadata.deletion_timestamp.is_some());
    assert_eq!(seen.reconcile(&client, &going).await?, "cleaned");
    assert!(client.get_opt::<ConfigMap>(&key()).await?.is_none());
    assert_eq!((seen.counts(), world.faults.count(RecordedRequest::is_write)), ((4, 1), 2));
    // A stale object is cleaned up again, which is not an error.
    assert_eq!(seen.reconcile(&client, &going).await?, "cleaned");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_cleanup_that_fails_keeps_the_object() -> Result<()> {
    let world = World::new();
    let client = world.client();
    let mut object = config_map("a");
    finalizer::add(&mut object, NAME);
    client.create(&object).await?;
    delete(&world).await?;
    world.faults.forget();
    let fail = async |_: Event<'_, ConfigMap>| -> Result<()> { bail!("cleanup failed") };
    for _ in 0..3 {
        let error = finalizer::run(&client, &*now(&client).await?, NAME, fail).await.unwrap_err();
        assert_eq!(error.to_string(), "cleanup failed");
        assert!(error.downcast_ref::<finalizer::Error>().is_none());
    }
    assert_eq!(world.faults.count(RecordedRequest::is_write), 0);
    assert_eq!(now(&client).await?.finalizers(), [NAME]);
    Seen::default().reconcile(&client, &*now(&client).await?).await?;
    assert!(client.get_opt::<ConfigMap>(&key()).await?.is_none());
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_apply_that_fails_keeps_the_finalizer() -> Result<()> {
    let world = World::new();
    let client = world.client();
    let object = Arc::new(client.create(&config_map("a")).await?);
    let fail = async |_: Event<'_, ConfigMap>| -> Result<()> { bail!("not yet") };
    assert_eq!(finalizer::run(&client, &*object, NAME, fail).await.unwrap_err().to_string(), "not yet");
    // The apply may have done something before it failed.
    assert_eq!(now(&client).await?.finalizers(), [NAME]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn other_finalizers_are_kept() -> Result<()> {
    let world = World::new();
    let client = world.client();
    let seen = Seen::default();
    let mut object = config_map("a");
    finalizer::add(&mut object, OTHER);
    let object = client.create(&object).await?;
    seen.reconcile(&client, &object).await?;
    assert_eq!(now(&client).await?.finalizers(), [OTHER, NAME]);
    delete(&world).await?;
    assert_eq!(seen.reconcile(&client, &*now(&client).await?).await?, "cleaned");
    assert_eq!(now(&client).await?.finalizers(), [OTHER]);
    // It waits for the other finalizer: nothing left to do here.
    assert_eq!(seen.reconcile(&client, &*now(&client).await?).await?, "");
    assert_eq!(seen.counts(), (1, 1));
    set(&world, &[]).await?;
    assert!(client.get_opt::<ConfigMap>(&key()).await?.is_none());
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn concurrent_changes_are_not_lost() -> Result<()> {
    let world = World::new();
    let client = world.client();
    let seen = Seen::default();
    let old = Arc::new(client.create(&config_map("a")).await?);
    // Another finalizer is added concurrently,
    set(&world, &[OTHER]).await?;
    assert_eq!(seen.reconcile(&client, &old).await?, "applied");
    assert_eq!(now(&client).await?.finalizers(), [OTHER, NAME]);
    // or ours already exists and the cache is stale,
    assert_eq!(seen.reconcile(&client, &old).await?, "applied");
    assert_eq!(now(&client).await?.finalizers(), [OTHER, NAME]);
    // or other fields change.
    let before = now(&client).await?;
    client.patch(&*before, &Patch::merge(json!({"data": {"other": "1"}}))).await?;

    delete(&world).await?;
    let going = now(&client).await?;
    // The index of ours changes during the cleanup.
    let cleanup = async |_: Event<'_, ConfigMap>| -> Result<()> {
        set(&world, &[NAME]).await?;
        Ok(())
    };
    finalizer::run(&client, &*going, NAME, cleanup).await?;
    assert!(client.get_opt::<ConfigMap>(&key()).await?.is_none());
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_that_another_client_removed_during_the_cleanup_is_not_an_error() -> Result<()> {
    let world = World::new();
    let client = world.client();
    let mut object = config_map("a");
    object.metadata.finalizers = Some(vec![OTHER.to_owned(), NAME.to_owned()]);
    client.create(&object).await?;
    delete(&world).await?;
    let cleanup = async |_: Event<'_, ConfigMap>| set(&world, &[OTHER]).await;
    finalizer::run(&client, &*now(&client).await?, NAME, cleanup).await?;
    assert_eq!(now(&client).await?.finalizers(), [OTHER]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_deleted_before_it_has_the_finalizer_is_ignored() -> Result<()> {
    let world = World::new();
    let client = world.client();
    let seen = Seen::default();
    // It was deleted,
    let old = Arc::new(client.create(&config_map("a")).await?);
    delete(&world).await?;
    assert_eq!(seen.reconcile(&client, &old).await?, "");
    // or recreated under the same name,
    client.create(&config_map("a")).await?;
    assert_eq!(seen.reconcile(&client, &old).await?, "");
    assert!(now(&client).await?.finalizers().is_empty());
    // or it is being deleted and waits for another finalizer.
    set(&world, &[OTHER]).await?;
    let old = now(&client).await?;
    delete(&world).await?;
    assert_eq!(seen.reconcile(&client, &old).await?, "");
    assert_eq!(now(&client).await?.finalizers(), [OTHER]);
    assert_eq!(seen.counts(), (0, 0));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_recreated_object_keeps_its_finalizer() -> Result<()> {
    let world = World::new();
    let client = world.client();
    let mut object = config_map("a");
    finalizer::add(&mut object, NAME);
    client.create(&object).await?;
    delete(&world).await?;
    let going = now(&client).await?;
    let cleanup = async |_: Event<'_, ConfigMap>| -> Result<()> {
        set(&world, &[]).await?;
        client.create(&object).await?;
        Ok(())
    };
    finalizer::run(&client, &*going, NAME, cleanup).await?;
    assert_eq!(now(&client).await?.finalizers(), [NAME]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn errors_of_the_server_are_distinct_from_those_of_the_reconciler() -> Result<()> {
    #[derive(Debug, thiserror::Error)]
    #[error("mine")]
    struct Mine;
    let world = World::new();
    let client = world.client();
    let object = Arc::new(client.create(&config_map("a")).await?);
    let fail = async |_: Event<'_, ConfigMap>| -> Result<()> { Err(Mine)? };
    world.faults.next(1, Effect::Refuse, RecordedRequest::is_write);
    let error = finalizer::run(&client, &*object, NAME, fail).await.unwrap_err();
    let Some(finalizer::Error::Add { source, .. }) = error.downcast_ref() else { panic!("{error:?}") };
    assert!(matches!(source, Error::Send(_)));
    assert_eq!(error.to_string(), "failed to add the finalizer example.org/cleanup");
    let error = finalizer::run(&client, &*object, NAME, fail).await.unwrap_err();
    assert!(error.is::<Mine>());

    delete(&world).await?;
    world.faults.next(1, Effect::Status(403, "Forbidden"), RecordedRequest::is_write);
    let done = async |_: Event<'_, ConfigMap>| -> Result<()> { Ok(()) };
    let error = finalizer::run(&client, &*now(&client).await?, NAME, done).await.unwrap_err();
    let Some(finalizer::Error::Remove { source, .. }) = error.downcast_ref() else { panic!("{error:?}") };
    assert!(source.is_forbidden());
    assert_eq!(now(&client).await?.finalizers(), [NAME]);

    let error = finalizer::run(&client, &*object, "cleanup", done).await.unwrap_err();
    assert!(matches!(error.downcast_ref(), Some(finalizer::Error::Name(_))));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_write_that_fails_for_another_reason_is_not_retried() -> Result<()> {
    let world = World::new();
    let client = world.client();
    let object = Arc::new(client.create(&config_map("a")).await?);
    let patches = |asked: &RecordedRequest| asked.method == Method::PATCH;
    world.faults.every(Effect::Status(422, "Invalid"), patches);
    let error = finalizer::ensure(&client, &*object, NAME).await.unwrap_err();
    assert!(matches!(error, finalizer::Error::Add { .. }));
    assert_eq!(world.faults.count(patches), 1, "nothing changed, so the write is not retried");
    world.faults.heal();
    world.faults.forget();
    world.faults.every(Effect::Status(409, "Conflict"), patches);
    assert!(finalizer::ensure(&client, &*object, NAME).await.is_err());
    assert_eq!(world.faults.count(patches), 5);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn dynamic_and_metadata_objects_support_finalizers() -> Result<()> {
    let world = World::new();
    let client = world.client();
    client.create(&config_map("a")).await?;
    let dynamic: Arc<DynamicObject> = client.get_dynamic(&Gvk::new("", "v1", "ConfigMap"), &key()).await?;
    set(&world, &[OTHER]).await?;
    let object = finalizer::ensure(&client, &*dynamic, NAME).await?.unwrap();
    assert_eq!(object.finalizers(), [OTHER, NAME]);
    delete(&world).await?;
    let metadata = client.get::<PartialObjectMeta<ConfigMap>>(&key()).await?;
    // Its index changes after the object was read.
    set(&world, &[NAME, OTHER]).await?;
    finalizer::run(&client, &*metadata, NAME, async |_| Ok(())).await?;
    assert_eq!(now(&client).await?.finalizers(), [OTHER]);
    finalizer::release(&client, &*object, OTHER).await?;
    assert!(client.get_opt::<ConfigMap>(&key()).await?.is_none());
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_reconciler_on_the_cache_sees_the_whole_lifecycle() -> Result<()> {
    let world = World::new();
    let running = world.cache(CacheOptions::default());
    let client = world.cached(&running.cache);
    let mut follower = running.cache.informer::<ConfigMap>().follower();
    let seen = Arc::new(Seen::default());
    // In a separate task, to check that the future is Send.
    let reconciler = tokio::spawn({
        let (client, seen) = (client.clone(), seen.clone());
        async move {
            while let Some(changes) = follower.next().await {
                for change in changes.iter().filter(|change| *change.latest().key() == key()) {
                    if let Some(object) = client.get_opt::<ConfigMap>(change.latest().key()).await? {
                        seen.reconcile(&client, &object).await?;
                    }
                }
            }
            anyhow::Ok(())
        }
    });
    world.config_maps(&["a"]).await?;
    eventually("the apply", || seen.counts().0 > 0).await;
    settle().await;
    delete(&world).await?;
    eventually("the cleanup", || seen.counts().1 == 1).await;
    settle().await;
    assert!(client.uncached().get_opt::<ConfigMap>(&key()).await?.is_none());
    assert_eq!(
        seen.counts(),
        (2, 1),
        "after the create, after the finalizer was added, and after the delete"
    );
    drop(running);
    soon("the end", reconciler).await??;
    Ok(())
}
