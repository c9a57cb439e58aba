//! The objects of an informer by key.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::cache::Informer;
use crate::client::Error;
use crate::{Key, ListOptions, Object};

/// The objects of an informer by key: client-go's `Store`. Only the informer writes to it. Cheap to clone.
///
/// Reads never wait for the network. They fail if the first list is not complete or the informer has stopped, so a result
/// is never incomplete.
///
/// ```
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use kubewright_runtime::{Cache, CacheOptions, Client, Key};
/// use kubewright_runtime::informer::Informer;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = kubewright_apiserver::ApiServer::new(kubewright_apiserver::Options::default());
/// # let kube = kube::Client::new(server, "default");
/// # let mut map = ConfigMap::default();
/// # map.metadata.name = Some("colours".to_owned());
/// # Client::new(kube.clone()).namespaced("default").create(&map).await?;
/// # let options = CacheOptions { namespaces: vec!["default".to_owned()], ..CacheOptions::default() };
/// # let cache = Cache::new(options)?;
/// let store = Informer::<ConfigMap>::new(&cache).store();
/// assert!(store.list().is_err()); // not listed yet
/// # let running = tokio::spawn(cache.run(kube, Default::default()));
/// # cache.synced().await?;
/// assert_eq!(store.list_keys()?, [Key::namespaced("default", "colours")]);
/// assert!(store.get_by_key(&Key::namespaced("default", "shapes"))?.is_none());
/// # running.abort();
/// # Ok(())
/// # }
/// ```
pub struct Store<K> {
    informer: Arc<Informer>,
    of: PhantomData<fn() -> K>,
}

impl<K: Object> Store<K> {
    pub(super) fn new(informer: Arc<Informer>) -> Self {
        Self { informer, of: PhantomData }
    }

    /// The object with this key, or `None` if it does not exist.
    pub fn get_by_key(&self, key: &Key) -> Result<Option<Arc<K>>, Error> {
        self.informer.get(key)?.map(|entry| self.informer.decode(&entry)).transpose()
    }

    /// All objects, ordered by key.
    pub fn list(&self) -> Result<Vec<Arc<K>>, Error> {
        let entries = self.informer.entries(&ListOptions::all())?;
        entries.iter().map(|entry| self.informer.decode(entry)).collect()
    }

    /// All keys, in order. Decodes no object.
    pub fn list_keys(&self) -> Result<Vec<Key>, Error> {
        let entries = self.informer.entries(&ListOptions::all())?;
        Ok(entries.iter().map(|entry| entry.key().clone()).collect())
    }
}

impl<K> Clone for Store<K> {
    fn clone(&self) -> Self {
        Self { informer: self.informer.clone(), of: PhantomData }
    }
}

impl<K> fmt::Debug for Store<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Store({})", self.informer.kind().gvk())
    }
}
