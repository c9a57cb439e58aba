//! Reads of an informer by key, namespace and label selector.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::cache::Informer;
use crate::client::Error;
use crate::{Key, ListOptions, Object};

/// Reads the objects of an informer: client-go's `Lister`. Cheap to clone.
///
/// A control loop reads through it instead of asking the API server. Objects are shared and immutable; clone one to change
/// it. The result may be older than the last write of the program: the write is visible after the watch has delivered it.
///
/// Reads never wait for the network. They fail if the first list is not complete or the informer has stopped, so a result
/// is never incomplete.
///
/// ```
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use kubewright_runtime::{Cache, CacheOptions, Client, Key, ListOptions};
/// use kubewright_runtime::informer::Informer;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = kubewright_apiserver::ApiServer::new(kubewright_apiserver::Options::default());
/// # let kube = kube::Client::new(server, "default");
/// # let mut map = ConfigMap::default();
/// # map.metadata.name = Some("colours".to_owned());
/// # map.metadata.labels = Some([("app".to_owned(), "web".to_owned())].into());
/// # Client::new(kube.clone()).namespaced("default").create(&map).await?;
/// # let cache = Cache::new(CacheOptions::default())?;
/// let lister = Informer::<ConfigMap>::new(&cache).lister();
/// # let running = tokio::spawn(cache.run(kube, Default::default()));
/// # cache.synced().await?;
/// assert!(lister.get(&Key::namespaced("default", "colours"))?.is_some());
/// assert_eq!(lister.list(&ListOptions::namespace("default").labels("app=web"))?.len(), 1);
/// assert_eq!(lister.list(&ListOptions::namespace("other"))?.len(), 0);
/// # running.abort();
/// # Ok(())
/// # }
/// ```
pub struct Lister<K> {
    informer: Arc<Informer>,
    of: PhantomData<fn() -> K>,
}

impl<K: Object> Lister<K> {
    pub(super) fn new(informer: Arc<Informer>) -> Self {
        Self { informer, of: PhantomData }
    }

    /// The object with this key, or `None` if it does not exist.
    pub fn get(&self, key: &Key) -> Result<Option<Arc<K>>, Error> {
        self.informer.get(key)?.map(|entry| self.informer.decode(&entry)).transpose()
    }

    /// The objects that match, ordered by key. A field of `list` is an index of the [`Indexer`](super::Indexer).
    pub fn list(&self, list: &ListOptions) -> Result<Vec<Arc<K>>, Error> {
        self.informer.entries(list)?.iter().map(|entry| self.informer.decode(entry)).collect()
    }
}

impl<K> Clone for Lister<K> {
    fn clone(&self) -> Self {
        Self { informer: self.informer.clone(), of: PhantomData }
    }
}

impl<K> fmt::Debug for Lister<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lister({})", self.informer.kind().gvk())
    }
}
