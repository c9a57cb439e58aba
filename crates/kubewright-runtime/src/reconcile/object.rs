//! The type-erased reconciled object.
//!
//! [`Context`](super::Context) has no type parameter, so that reconcilers are easy to write and cheap to compile. Only
//! [`ErasedObject::set_status`] changes the object.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::client::{self, Client, Writable};
use crate::owner::Referable;

/// A reconciled object of any type.
pub(super) trait ErasedObject: Send + Sync {
    /// The object as it was read from the cache.
    fn read(&self) -> Arc<dyn Any + Send + Sync>;

    /// The object as the owner of other objects.
    fn as_owner(&self) -> &dyn Referable;

    /// Sets the status. Returns whether a request was sent.
    fn set_status<'a>(
        &'a self,
        client: &'a Client,
        status: Value,
    ) -> BoxFuture<'a, Result<bool, client::Error>>;
}

/// A reconciled object of one type.
pub(super) struct Reconciled<K> {
    object: Arc<K>,
    /// The object after the last status write of this reconcile.
    latest: Mutex<Arc<K>>,
}

impl<K> Reconciled<K> {
    pub(super) fn new(object: Arc<K>) -> Self {
        Self { latest: Mutex::new(object.clone()), object }
    }
}

impl<K: Writable> ErasedObject for Reconciled<K> {
    fn read(&self) -> Arc<dyn Any + Send + Sync> {
        self.object.clone()
    }

    fn as_owner(&self) -> &dyn Referable {
        &*self.object
    }

    fn set_status<'a>(
        &'a self,
        client: &'a Client,
        status: Value,
    ) -> BoxFuture<'a, Result<bool, client::Error>> {
        Box::pin(async move {
            let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let written = client.set_status(&*latest, status).await?;
            let changed = written.is_some();
            if let Some(written) = written {
                *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(written);
            }
            Ok(changed)
        })
    }
}
