//! A single reconcile outside of a controller, for tests.
//!
//! It uses its own cache, which lists when the reconcile begins, so that the reconciler sees all earlier writes of the
//! test. The manager is not started.

use tokio_util::sync::CancellationToken;

use super::Manager;
use crate::Key;
use crate::client::Client;
use crate::fence::Fence;
use crate::reconcile::{Context, Error};

impl Manager {
    /// Runs a function with a context, on a new cache of the registered kinds.
    pub(crate) async fn once<T>(
        &self,
        key: &Key,
        run: impl AsyncFnOnce(&Context) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.prepare().await.map_err(Error::new)?;
        let cache = self.inner.cache.unstarted();
        for source in self.state().controllers.iter().flat_map(|(controller, _)| &controller.sources) {
            source.informer(&cache);
        }
        if cache.registered().is_empty() {
            return run(&self.context("reconcile-once", self.client().uncached(), key)).await;
        }
        let client = Client::on(self.inner.kube.clone(), Some(cache.clone()), Fence::open())
            .field_owner(&self.inner.options.name);
        let watches = cache.run(self.inner.kube.clone(), CancellationToken::new());
        let reconciled = async {
            cache.synced().await?;
            run(&self.context("reconcile-once", client, key)).await
        };
        tokio::select! {
            biased;
            reconciled = reconciled => reconciled,
            () = watches => unreachable!("watches run until they are cancelled"),
        }
    }
}
