//! Clusters besides the one that a manager runs in.
//!
//! Each has a connection, a cache and a client of its own. Its cache starts and ends with the manager's, and readiness
//! covers it.

use std::sync::Arc;

use super::lifecycle::{Life, Part, Place};
use super::{Command, Handle, Manager, ManagerError};
use crate::cache::{Cache, CacheOptions};
use crate::client::Client;

/// Another cluster that a manager watches and writes to. Cheap to clone.
///
/// Controllers watch its objects with
/// [`ControllerBuilder::watches_in`](crate::controller::ControllerBuilder::watches_in).
#[derive(Clone)]
pub struct Cluster {
    name: Arc<str>,
    kube: kube::Client,
    client: Client,
    cache: Cache,
    handle: Handle,
    manager: Manager,
}

impl Cluster {
    /// The name in metrics and in the readiness check.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The client of this cluster: reads from its cache what the cache watches. With leader election, its writes leave
    /// only while this replica leads.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The cache of this cluster.
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// Stops all watches of this cluster and drops its objects. Sources of controllers that read it end.
    pub async fn detach(&self) {
        self.manager.readyz().remove(&check_name(&self.name));
        self.handle.remove().await;
    }
}

impl Manager {
    /// Adds another cluster, before or while the manager runs.
    ///
    /// Its cache starts with the manager, or now if the manager runs, and `/readyz` has a check for it. Its metrics have
    /// the label `cluster`.
    pub fn attach(
        &self,
        name: &str,
        kube: kube::Client,
        mut options: CacheOptions,
    ) -> Result<Cluster, ManagerError> {
        options.seed = options.seed.or_else(|| Some(self.state().rng.u64(..)));
        let cache = Cache::new(options)?;
        self.reserve(&format!("cluster {name}"))?;
        self.metrics().with_registry(|registry| {
            let label = ("cluster".into(), name.to_owned().into());
            cache.register_metrics(registry.sub_registry_with_label(label));
        });
        let (life, handle) = Life::new(&self.inner, &format!("cluster {name}"), true);
        let client = Client::cached(kube.clone(), cache.clone())
            .field_owner(&self.inner.options.name)
            .fenced(self.inner.fence.clone());
        let watched = cache.clone();
        self.readyz().add(check_name(name), move || watched.health());
        let cluster = Cluster { name: name.into(), kube, client, cache, handle, manager: self.clone() };
        let mut state = self.state();
        let Some(running) = &state.running else {
            state.clusters.push((cluster.clone(), life));
            return Ok(cluster);
        };
        let commands = running.commands.clone();
        drop(state);
        // Started before the command arrives: sources that are added next wait for its informers.
        let part = cluster.part(life);
        commands.send(Command::Start(part)).map_err(|_| ManagerError::Stopped)?;
        Ok(cluster)
    }
}

impl Cluster {
    /// The part that runs the cache. Informers that are registered before this call count as registered at the start.
    pub(super) fn part(&self, life: Life) -> Part {
        let (cache, kube) = (self.cache.clone(), self.kube.clone());
        Part {
            name: format!("cache of cluster {}", self.name),
            place: Place::Cache,
            life,
            run: Box::new(move |cancel| {
                let watches = cache.run(kube, cancel);
                Box::pin(async move {
                    watches.await;
                    Ok(())
                })
            }),
        }
    }
}

fn check_name(cluster: &str) -> String {
    format!("informer-sync-{cluster}")
}
