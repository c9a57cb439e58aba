//! Further clusters that a manager is connected to.
//!
//! Each has its own connection, cache and client. Its cache starts and stops with the manager's and has a readiness
//! check.

use std::sync::Arc;

use futures_util::FutureExt as _;

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
    /// The name, as used in metrics and in the readiness check.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The client of this cluster. It reads watched kinds from the cluster's cache. With leader election, it sends
    /// writes only while this replica leads.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The cache of this cluster.
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// Stops all watches of this cluster. Reads of its cache fail from then on, controller sources of this cluster end,
    /// and its metrics and its readiness check are removed. The cached objects are dropped with the last `Cluster`,
    /// cache and client of this cluster.
    pub async fn detach(&self) {
        // Another cluster may have been attached with this name since the first call.
        if self.manager.inner.caches.remove(&self.cache) {
            self.manager.readyz().remove(&check_name(&self.name));
        }
        self.handle.remove().await;
    }
}

impl Manager {
    /// Adds another cluster, before or while the manager runs.
    ///
    /// Its cache starts with the manager, or immediately if the manager runs. `/readyz` gets a check for it, and its
    /// metrics have the label `cluster`.
    pub fn attach(
        &self,
        name: &str,
        kube: kube::Client,
        mut options: CacheOptions,
    ) -> Result<Cluster, ManagerError> {
        options.seed = options.seed.or_else(|| Some(self.state().rng.u64(..)));
        let cache = Cache::new(options)?;
        self.reserve(&format!("cluster {name}"))?;
        self.inner.caches.add(Some(name), &cache);
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
        let part = cluster.part(life);
        if commands.send(Command::Start(part)).is_err() {
            self.inner.caches.remove(&cluster.cache);
            self.readyz().remove(&check_name(name));
            return Err(ManagerError::Stopped);
        }
        Ok(cluster)
    }
}

impl Cluster {
    /// Starts the cache, and returns the part that runs its watches. Informers registered before this call count as
    /// registered at the start, whenever the part runs.
    pub(super) fn part(&self, life: Life) -> Part {
        let watches = self.cache.run(self.kube.clone(), life.stopped());
        Part {
            name: format!("cache of cluster {}", self.name),
            place: Place::Cache,
            life,
            run: Box::new(|_| Box::pin(watches.map(Ok))),
        }
    }
}

fn check_name(cluster: &str) -> String {
    format!("informer-sync-{cluster}")
}
