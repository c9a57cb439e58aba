//! Defaults of a manager's controllers, filters of all sources, and default options of a cache.

use std::time::Duration;

use anyhow::Result;
use http::StatusCode;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{DynamicObject, PostParams};
use kubewright_runtime::controller::{ControllerOptions, Predicate};
use kubewright_runtime::internal::serve::{Handler, text};
use kubewright_runtime::{CacheOptions, Key, KindOptions, Manager, ManagerOptions, Outcome};
use serde_json::json;

use crate::operator::{Acts, Crowd, Notes, Running, manager, options, touch};
use crate::serve::get;
use crate::world::{World, eventually, object, settle, soon};

#[tokio::test(start_paused = true)]
async fn a_controller_uses_the_options_of_its_manager_by_default() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a", "b", "c"]).await?;
    let controllers = ControllerOptions { concurrency: 3, ..ControllerOptions::default() };
    let options = ManagerOptions { controllers, ..options().namespaces(["default"]) };
    let manager = Manager::new(world.kube.clone(), options)?;
    let crowds = [Crowd::default(), Crowd::default()];
    let slow = |crowd: &Crowd| {
        let crowd = crowd.clone();
        Acts::<ConfigMap>::new(move |_, _| {
            let crowd = crowd.clone();
            Box::pin(async move {
                let _here = crowd.enter();
                tokio::time::sleep(Duration::from_secs(1)).await;
                Ok(Outcome::done())
            })
        })
    };
    manager.controller(slow(&crowds[0])).register()?;
    manager.controller(slow(&crowds[1])).named("alone").concurrency(1).register()?;
    let running = Running::start(&manager);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!((crowds[0].most(), crowds[1].most()), (3, 1));
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn a_filter_applies_to_every_source_of_a_controller() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a"]).await?;
    let (manager, notes) = (manager(&world)?, Notes::new());
    let ignored = Predicate::<DynamicObject>::new(|event| {
        let labels = event.object().and_then(|it| it.metadata.labels.clone()).unwrap_or_default();
        !labels.contains_key("ignored")
    });
    manager
        .controller(Acts::<ConfigMap>::noting(&notes))
        .watches::<Secret>(|_, _| vec![Key::namespaced("default", "a")])
        .filter(ignored)
        .register()?;
    let running = Running::start(&manager);
    eventually("the first reconcile", || notes.take() == ["a"]).await;
    let secret = |name: &str, labels: serde_json::Value| -> Secret {
        object(json!({ "metadata": { "name": name, "namespace": "default", "labels": labels } }))
    };
    world.api().create(&PostParams::default(), &secret("quiet", json!({ "ignored": "" }))).await?;
    settle().await;
    assert_eq!(notes.len(), 0, "a filtered event reconciles nothing");
    world.api().create(&PostParams::default(), &secret("loud", json!({}))).await?;
    eventually("the reconcile for the secret", || notes.take() == ["a"]).await;
    let labels = json!({ "metadata": { "labels": { "ignored": "" } } });
    crate::operator::patch::<ConfigMap>(&world, "a", labels).await?;
    touch::<ConfigMap>(&world, "a", "once").await?;
    settle().await;
    assert_eq!(notes.len(), 0, "the filter also applies to the reconciled kind");
    running.end().await
}

#[tokio::test(start_paused = true)]
async fn default_selectors_and_transforms_apply_to_kinds_without_their_own() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a", "b"]).await?;
    let labels = json!({ "metadata": { "labels": { "keep": "yes" } } });
    crate::operator::patch::<ConfigMap>(&world, "a", labels).await?;
    let secret: Secret =
        object(json!({ "metadata": { "name": "s", "namespace": "default" }, "stringData": { "k": "v" } }));
    world.api().create(&PostParams::default(), &secret).await?;
    let default_kind = KindOptions::new().labels("keep=yes").transform_json(|object| {
        object["data"] = json!({});
    });
    let options = CacheOptions { default_kind, ..CacheOptions::default() };
    let running = world.cache(options.kind::<Secret>(KindOptions::new().namespaces(["default"])));
    let (maps, secrets) = (running.cache.informer::<ConfigMap>(), running.cache.informer::<Secret>());
    soon("the lists", async {
        maps.synced().await?;
        secrets.synced().await
    })
    .await?;
    let kept = running.cache.list::<ConfigMap>(&kubewright_runtime::ListOptions::namespace("default"))?;
    assert_eq!(kept.iter().map(|map| Key::of(&**map)).collect::<Vec<_>>(), [Key::namespaced("default", "a")]);
    assert!(
        kept[0].data.as_ref().is_none_or(std::collections::BTreeMap::is_empty),
        "the default transform applies"
    );
    let secret = running.cache.get::<Secret>(&Key::namespaced("default", "s"))?.expect("it is cached");
    assert!(secret.data.as_ref().is_some_and(|data| data.contains_key("k")), "its own options apply");
    Ok(())
}

#[tokio::test]
async fn the_metrics_server_serves_additional_paths() -> Result<()> {
    let world = World::new();
    let options = ManagerOptions { metrics_bind_address: "127.0.0.1:0".parse()?, ..options() };
    let manager = Manager::new(world.kube.clone(), options)?;
    manager.metrics().add_handler("/debug/state", Handler::new(|_| async { text(StatusCode::OK, "fine") }));
    let running = Running::start(&manager);
    let address = manager.addresses().await.metrics.expect("metrics are served");
    assert_eq!(get(address, "/debug/state").await?, (200, "fine".to_owned()));
    assert!(get(address, "/metrics").await?.1.contains("process_start_time_seconds"));
    assert_eq!(get(address, "/debug").await?.0, 404);
    running.end().await
}
