//! Handles that change a running controller: add and remove watches, and remove the controller.

use std::marker::PhantomData;

use kube::api::DynamicObject;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::Objects;
use super::source::{KindSource, Watch};
use crate::cache::Cache;
use crate::manager::{Handle, RegisterError};
use crate::{Key, Kind, Object};

/// A handle of a registered controller. Dropping it does not affect the controller.
///
/// A watch that is added here delivers all existing objects and then every change. It needs permissions that the
/// generated RBAC rules do not include: declare them with `#[rbac]`.
pub struct ControllerHandle<C = Objects> {
    handle: Handle,
    kind: Option<Kind>,
    sources: mpsc::UnboundedSender<AddedSource>,
    of: PhantomData<C>,
}

impl<C> Clone for ControllerHandle<C> {
    fn clone(&self) -> Self {
        Self::new(self.handle.clone(), self.kind.clone(), self.sources.clone())
    }
}

/// A source that is added to a controller after its registration.
pub(crate) struct AddedSource {
    pub(super) source: KindSource,
    pub(super) cancel: CancellationToken,
}

/// A watch that was added with [`ControllerHandle`]. Dropping it does not affect the watch.
#[derive(Clone)]
pub struct WatchHandle {
    cancel: CancellationToken,
}

impl WatchHandle {
    /// Stops delivering events to the controller. The cache keeps the objects until
    /// [`Cache::remove`](crate::Cache::remove) or [`Cache::remove_kind`](crate::Cache::remove_kind) is called.
    pub fn remove(&self) {
        self.cancel.cancel();
    }
}

impl<C> ControllerHandle<C> {
    /// `kind` is the reconciled kind of a controller of [`Objects`].
    pub(super) fn new(
        handle: Handle,
        kind: Option<Kind>,
        sources: mpsc::UnboundedSender<AddedSource>,
    ) -> Self {
        Self { handle, kind, sources, of: PhantomData }
    }

    /// The name of the controller.
    pub fn name(&self) -> &str {
        self.handle.name()
    }

    /// Stops the controller and waits until it has ended; see [`Handle::remove`].
    pub async fn remove(&self) {
        self.handle.remove().await;
    }

    /// Whether the controller has ended.
    pub fn is_ended(&self) -> bool {
        self.handle.is_ended()
    }

    /// Adds a watch of a type, like [`ControllerBuilder::watches_with`](super::ControllerBuilder::watches_with).
    pub fn watches<K: Object>(
        &self,
        watch: Watch<K>,
        map: impl Fn(&K, &Cache) -> Vec<Key> + Send + Sync + 'static,
    ) -> Result<WatchHandle, RegisterError> {
        self.add(KindSource::mapped(Kind::of::<K>(), K::metadata_api(), watch, map))
    }

    /// Adds a watch of a kind that is known only at run time.
    pub fn watches_kind(
        &self,
        kind: Kind,
        watch: Watch<DynamicObject>,
        map: impl Fn(&DynamicObject, &Cache) -> Vec<Key> + Send + Sync + 'static,
    ) -> Result<WatchHandle, RegisterError> {
        self.add(KindSource::mapped(kind, false, watch, map))
    }

    fn add(&self, source: KindSource) -> Result<WatchHandle, RegisterError> {
        let cancel = CancellationToken::new();
        let added = AddedSource { source, cancel: cancel.clone() };
        self.sources.send(added).map_err(|_| RegisterError::Stopped(self.name().to_owned()))?;
        Ok(WatchHandle { cancel })
    }
}

impl ControllerHandle<Objects> {
    /// Adds a watch of an owned kind that is known only at run time. Its changes reconcile the owner.
    pub fn owns_kind(&self, kind: Kind, watch: Watch<DynamicObject>) -> Result<WatchHandle, RegisterError> {
        let owner = self.kind.clone().expect("the builder sets the kind of a controller of objects");
        self.add(KindSource::owner(kind, false, watch, owner))
    }
}
