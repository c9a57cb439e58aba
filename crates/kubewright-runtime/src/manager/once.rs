//! A single reconcile outside of a controller, for tests.
//!
//! It uses its own cache, which lists when the reconcile begins, so that the reconciler sees all earlier writes of the
//! test. The manager is not started.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::Manager;
use crate::cache::{Cache, Informer};
use crate::client::Client;
use crate::controller::Role;
use crate::fence::Fence;
use crate::reconcile::{Context, Error, Outcome, Reconciler};
use crate::{Key, Kind, Object};

impl Manager {
    /// Runs a reconciler once, for tests. The object is read from the server, and nothing is queued.
    ///
    /// The reconciler reads from a temporary cache with the registered kinds and indexes, also through an
    /// [`Index`](crate::cache::Index), a [`Cache`] or a [`Client`] of this manager that it holds. Without any, it reads
    /// from the server.
    pub async fn reconcile_once<R: Reconciler<Object: Object>>(
        &self,
        reconciler: &R,
        key: &Key,
    ) -> Result<Outcome, Error> {
        self.reconcile_once_with(reconciler, key, &[]).await
    }

    /// Like [`Manager::reconcile_once`], with the indexes of further caches.
    #[doc(hidden)]
    pub async fn reconcile_once_with<R: Reconciler<Object: Object>>(
        &self,
        reconciler: &R,
        key: &Key,
        caches: &[Cache],
    ) -> Result<Outcome, Error> {
        self.once(key, &Kind::of::<R::Object>(), caches, async |cx| {
            let object = cx.client().uncached().get_opt::<R::Object>(key).await?;
            match object {
                Some(object) => {
                    cx.set_object(object.clone());
                    reconciler.reconcile(&object, cx).await
                }
                None => reconciler.deleted(key, cx).await,
            }
        })
        .await
    }

    /// Runs a function with a context, on a new cache of the registered kinds.
    async fn once<T>(
        &self,
        key: &Key,
        kind: &Kind,
        caches: &[Cache],
        run: impl AsyncFnOnce(&Context) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.prepare().await.map_err(Error::new)?;
        let cache = self.inner.cache.unstarted();
        for other in caches {
            cache.copy_indexes(other)?;
        }
        let owned = self.registered(kind, &cache);
        if cache.registered().is_empty() {
            return run(&self.context("reconcile-once", self.client().uncached(), key, owned)).await;
        }
        let client = Client::on(self.inner.kube.clone(), Some(cache.clone()), Fence::open())
            .field_owner(&self.inner.options.name);
        let watches = cache.run(self.inner.kube.clone(), CancellationToken::new());
        let reconciled = async {
            cache.synced().await?;
            let cx = self.context("reconcile-once", client, key, owned);
            cache.in_place(run(&cx)).await
        };
        tokio::select! {
            biased;
            reconciled = reconciled => reconciled,
            () = watches => unreachable!("watches run until they are cancelled"),
        }
    }

    /// Adds the kinds of all controllers to a cache. Returns the informers of what the controllers of `kind` own.
    fn registered(&self, kind: &Kind, cache: &Cache) -> Arc<[Arc<Informer>]> {
        let state = self.state();
        let mut owned = Vec::new();
        for (controller, _) in &state.controllers {
            for source in &controller.sources {
                let informer = source.informer(cache);
                if source.role == Role::Owned && controller.kind.as_ref() == Some(kind) {
                    owned.push(informer);
                }
            }
        }
        owned.into()
    }
}
