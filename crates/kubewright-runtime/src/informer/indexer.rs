//! Indexes of an informer.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::cache::{Cache, Index, Informer};
use crate::client::Error;
use crate::manager::RegisterError;
use crate::{Key, ListOptions, Object};

/// Finds objects of an informer by a value that a function computes from them: client-go's `Indexer`. Cheap to clone.
///
/// ```
/// # use k8s_openapi::api::core::v1::Pod;
/// # use kubewright_runtime::{Cache, CacheOptions, Client};
/// use kubewright_runtime::informer::Informer;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = kubewright_apiserver::ApiServer::new(kubewright_apiserver::Options::default());
/// # let kube = kube::Client::new(server, "default");
/// # let cache = Cache::new(CacheOptions::default())?;
/// let indexer = Informer::<Pod>::new(&cache).indexer();
/// indexer.add_index("spec.nodeName", |pod| {
///     pod.spec.iter().filter_map(|spec| spec.node_name.clone()).collect()
/// })?;
/// # let running = tokio::spawn(cache.run(kube, Default::default()));
/// # cache.synced().await?;
/// assert!(indexer.by_index("spec.nodeName", "node-1")?.is_empty());
/// assert!(indexer.by_index("spec.hostname", "web").is_err()); // no such index
/// # running.abort();
/// # Ok(())
/// # }
/// ```
pub struct Indexer<K> {
    cache: Cache,
    informer: Arc<Informer>,
    of: PhantomData<fn() -> K>,
}

impl<K: Object> Indexer<K> {
    pub(super) fn new(cache: Cache, informer: Arc<Informer>) -> Self {
        Self { cache, informer, of: PhantomData }
    }

    /// Adds an index. `values` returns the index values of an object: none, one or several. See [`Cache::index`].
    pub fn add_index(
        &self,
        name: &str,
        values: impl Fn(&K) -> Vec<String> + Send + Sync + 'static,
    ) -> Result<Index<K>, RegisterError> {
        self.cache.index(name, values)
    }

    /// The objects with this value of an index, ordered by key. Fails if the index does not exist, if the first list is
    /// not complete, or if the informer has stopped.
    pub fn by_index(&self, name: &str, value: &str) -> Result<Vec<Arc<K>>, Error> {
        let entries = self.informer.entries(&ListOptions::all().field(name, value))?;
        entries.iter().map(|entry| self.informer.decode(entry)).collect()
    }

    /// The keys of the objects with this value of an index, in order. Decodes no object.
    pub fn index_keys(&self, name: &str, value: &str) -> Result<Vec<Key>, Error> {
        let entries = self.informer.entries(&ListOptions::all().field(name, value))?;
        Ok(entries.iter().map(|entry| entry.key().clone()).collect())
    }
}

impl<K> Clone for Indexer<K> {
    fn clone(&self) -> Self {
        Self { cache: self.cache.clone(), informer: self.informer.clone(), of: PhantomData }
    }
}

impl<K> fmt::Debug for Indexer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Indexer({})", self.informer.kind().gvk())
    }
}
