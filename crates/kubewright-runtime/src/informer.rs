//! Informers without a manager: the parts of client-go, one by one.
//!
//! A controller needs none of this: [`Manager`](crate::Manager) connects the same parts. Use them for a program with its
//! own control loop, or to read and follow objects without reconciling them.
//!
//! | client-go | here |
//! |---|---|
//! | `SharedInformerFactory` | [`Cache`]: [`run`](Cache::run) starts all watches, [`synced`](Cache::synced) waits for the first lists |
//! | `Reflector` | internal to the cache: lists and watches one kind, resumes a broken watch, lists again if it expired |
//! | `DeltaFIFO` | internal to the cache: the unread changes of one event handler, merged per object |
//! | `SharedIndexInformer` | [`Informer`]: one per type, shared by all its users |
//! | `Indexer` | [`Indexer`] |
//! | `Store` | [`Store`] |
//! | `Lister` | [`Lister`] |
//! | `ResourceEventHandler` | [`EventHandler`] |
//! | `workqueue.TypedRateLimitingInterface` | [`WorkQueue`](crate::queue::WorkQueue) |
//!
//! A control loop: the handler adds keys to a queue, and a worker takes them and reads the current state from the lister.
//!
//! ```
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kubewright_runtime::informer::{EventHandler, Informer};
//! use kubewright_runtime::queue::WorkQueue;
//! use kubewright_runtime::{Cache, CacheOptions, Client, Key};
//! use tokio_util::sync::CancellationToken;
//!
//! struct Enqueue(WorkQueue);
//!
//! impl EventHandler<ConfigMap> for Enqueue {
//!     fn on_add(&self, map: &ConfigMap, _is_in_initial_list: bool) {
//!         self.0.add(Key::of(map));
//!     }
//!
//!     fn on_update(&self, _old: &ConfigMap, map: &ConfigMap) {
//!         self.0.add(Key::of(map));
//!     }
//!
//!     fn on_delete(&self, map: &ConfigMap) {
//!         self.0.add(Key::of(map));
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let server = kubewright_apiserver::ApiServer::new(kubewright_apiserver::Options::default());
//! # let kube = kube::Client::new(server, "default");
//! # let mut map = ConfigMap::default();
//! # map.metadata.name = Some("colours".to_owned());
//! # Client::new(kube.clone()).namespaced("default").create(&map).await?;
//! let options = CacheOptions { namespaces: vec!["default".to_owned()], ..CacheOptions::default() };
//! let cache = Cache::new(options)?;
//! let maps = Informer::<ConfigMap>::new(&cache);
//! let (queue, lister) = (WorkQueue::new(), maps.lister());
//! let cancel = CancellationToken::new();
//! tokio::spawn(maps.add_event_handler(Enqueue(queue.clone())));
//! tokio::spawn(cache.run(kube, cancel.clone()));
//! cache.synced().await?;
//!
//! let item = queue.get().await.expect("the queue is open");
//! let map = lister.get(&item)?.expect("it exists");
//! assert_eq!(map.metadata.name.as_deref(), Some("colours"));
//! queue.forget(&item);
//! item.done();
//! cancel.cancel();
//! # Ok(())
//! # }
//! ```

mod handler;
mod indexer;
mod lister;
mod store;

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;

pub use self::handler::EventHandler;
pub use self::indexer::Indexer;
pub use self::lister::Lister;
pub use self::store::Store;
use crate::cache::{self, Cache};
use crate::client::Error;
use crate::{Kind, Object};

/// Lists and watches the objects of one type, keeps them in memory, and calls event handlers. Cheap to clone.
///
/// All informers of a type share one watch and one store of their [`Cache`], as those of a `SharedInformerFactory` in
/// client-go. The watch runs in [`Cache::run`]. The cache of a manager can be used as well.
pub struct Informer<K> {
    cache: Cache,
    shared: Arc<cache::Informer>,
    of: PhantomData<fn() -> K>,
}

impl<K: Object> Informer<K> {
    /// The informer of a type in this cache. The first one creates the watch, which starts with the cache, or now if the
    /// cache is running.
    pub fn new(cache: &Cache) -> Self {
        Self { cache: cache.clone(), shared: cache.informer::<K>(), of: PhantomData }
    }

    /// The watched kind.
    pub fn kind(&self) -> &Kind {
        self.shared.kind()
    }

    /// Registers a handler, and returns the future that calls it. Spawn the future: it ends when the informer stops, and
    /// dropping it removes the handler.
    ///
    /// The handler gets all existing objects first, then every change, one call at a time. A slow handler delays neither
    /// the watch nor other handlers; changes of one object that it has not seen yet are merged. A panic in the handler is
    /// logged and affects only one event.
    #[must_use = "the handler is called only while the returned future runs"]
    pub fn add_event_handler<H: EventHandler<K>>(
        &self,
        handler: H,
    ) -> impl Future<Output = ()> + Send + use<K, H> {
        // Follow from now on, not from the first poll of the future.
        let follower = self.shared.follower();
        handler::deliver::<K>(self.shared.clone(), follower, handler)
    }

    /// The objects by key.
    pub fn store(&self) -> Store<K> {
        Store::new(self.shared.clone())
    }

    /// Reads by key, namespace and label selector.
    pub fn lister(&self) -> Lister<K> {
        Lister::new(self.shared.clone())
    }

    /// Adds indexes, and reads by an index value.
    pub fn indexer(&self) -> Indexer<K> {
        Indexer::new(self.cache.clone(), self.shared.clone())
    }

    /// Whether the first list is complete.
    pub fn has_synced(&self) -> bool {
        self.shared.is_synced()
    }

    /// Waits until the first list is complete. Fails if the informer stops.
    pub async fn synced(&self) -> Result<(), Error> {
        self.shared.synced().await
    }
}

impl<K> Clone for Informer<K> {
    fn clone(&self) -> Self {
        Self { cache: self.cache.clone(), shared: self.shared.clone(), of: PhantomData }
    }
}

impl<K> fmt::Debug for Informer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shared.fmt(f)
    }
}
