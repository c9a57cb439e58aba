//! Controllers at work: what is reconciled, when, and what follows.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, PostParams};
use kubewright_runtime::{Context, Key, Manager, ManagerOptions, Outcome, Reconciler};
use tokio_util::sync::CancellationToken;

use crate::world::{World, config_map, eventually, settle};

/// A manager that runs until this is dropped.
struct Running {
    task: tokio::task::JoinHandle<Result<(), kubewright_runtime::ManagerError>>,
    stop: CancellationToken,
}

impl Running {
    fn start(manager: Manager) -> Self {
        let stop = CancellationToken::new();
        let stopped = stop.clone().cancelled_owned();
        Self { task: tokio::spawn(manager.run_until(stopped)), stop }
    }

    async fn end(self) -> Result<()> {
        self.stop.cancel();
        self.task.await??;
        Ok(())
    }
}

fn manager(world: &World) -> Result<Manager> {
    // The default namespace only: elsewhere the server has objects of its own.
    let options = ManagerOptions { seed: Some(1), ..ManagerOptions::new("test").namespaces(["default"]) };
    Ok(Manager::new(world.kube.clone(), options)?)
}

/// Notes what it is called with.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    fn push(&self, note: String) {
        self.0.lock().unwrap().push(note);
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl Reconciler for Notes {
    type Object = ConfigMap;

    async fn reconcile(&self, map: Arc<ConfigMap>, cx: &Context) -> kubewright_runtime::Result<Outcome> {
        assert_eq!(Key::of(&*map), *cx.key());
        self.push(format!("{} {:?}", cx.key(), map.data.clone().unwrap_or_default()));
        Ok(Outcome::done())
    }

    async fn gone(&self, key: &Key, _: &Context) -> kubewright_runtime::Result<Outcome> {
        self.push(format!("{key} gone"));
        Ok(Outcome::done())
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_is_reconciled_when_it_is_there_changes_and_goes() -> Result<()> {
    let world = World::new();
    world.config_maps(&["a"]).await?;
    let manager = manager(&world)?;
    let notes = Notes::default();
    manager.controller(notes.clone()).register()?;
    let running = Running::start(manager);
    eventually("the first", || notes.all().len() == 1).await;

    let mut map = config_map("b");
    map.data = Some([("x".to_owned(), "1".to_owned())].into());
    world.api().create(&PostParams::default(), &map).await?;
    eventually("the second", || notes.all().len() == 2).await;
    world.api::<ConfigMap>().delete("b", &DeleteParams::default()).await?;
    eventually("its end", || notes.all().len() == 3).await;
    settle().await;
    assert_eq!(notes.all().last().unwrap(), "default/b gone");
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!(notes.all().len(), 3);
    running.end().await
}
