//! One reconcile outside of every controller.
//!
//! Its cache is its own: it is listed when the reconcile begins, so that the reconciler sees what the test has written
//! before, and ends with it. The manager is not started.

use tokio_util::sync::CancellationToken;

use super::Manager;
use crate::Key;
use crate::client::Client;
use crate::fence::Fence;
use crate::reconcile::{Context, Error};

impl Manager {
    /// Runs something with a context, on a cache with what is registered.
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
