//! The context of a reconcile: the client, the time, events, and helpers for the reconciled object.
//!
//! [`Context`] has no logic of its own: every helper calls the client, the cache or the event recorder with the
//! reconciled object.

use std::sync::{Arc, OnceLock};

use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::ReconcileId;
use super::object::{ErasedObject, Reconciled};
use crate::cache::{Informer, Removal};
use crate::client::{self, Client, Writable};
use crate::controller::Cause;
use crate::events::Recorder;
use crate::owner::set_controller_reference;
use crate::queue::Causes;
use crate::{Clock, Key, ListOptions, Object, Scope};

/// The index of owned objects for [`Context::owned`]. The name does not collide with Kubernetes fields.
pub(crate) const OWNER_INDEX: &str = "kubewright/controller-uid";

/// The context of a reconcile.
pub struct Context {
    parts: ContextParts,
    /// The object, after it was read from the cache.
    object: OnceLock<Arc<dyn ErasedObject>>,
}

/// The parts of a [`Context`].
pub(crate) struct ContextParts {
    pub(crate) client: Client,
    pub(crate) key: Key,
    /// The informer of the reconciled object; `None` for key controllers.
    pub(crate) informer: Option<Arc<Informer>>,
    /// The informers of the owned kinds.
    pub(crate) owned: Arc<[Arc<Informer>]>,
    /// Why the object was removed from the cache, if its removal was observed.
    pub(crate) removal: Option<Removal>,
    pub(crate) id: ReconcileId,
    pub(crate) controller: Arc<str>,
    pub(crate) recorder: Recorder,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) cancel: CancellationToken,
    pub(crate) causes: Causes<Cause>,
    pub(crate) retries: u32,
}

impl From<ContextParts> for Context {
    fn from(parts: ContextParts) -> Self {
        Self { parts, object: OnceLock::new() }
    }
}

impl Context {
    /// The client. It reads watched kinds from the cache, and writes to the server.
    ///
    /// The key is not reconciled again before the cache has seen the writes of this client.
    pub fn client(&self) -> &Client {
        &self.parts.client
    }

    /// The reconciled key.
    pub fn key(&self) -> &Key {
        &self.parts.key
    }

    /// The ID of this run, as in its logs.
    pub fn id(&self) -> ReconcileId {
        self.parts.id
    }

    /// The name of the controller.
    pub fn controller(&self) -> &str {
        &self.parts.controller
    }

    /// Records Kubernetes Events.
    pub fn events(&self) -> &Recorder {
        &self.parts.recorder
    }

    /// The current time, for timestamps in objects.
    pub fn now(&self) -> jiff::Timestamp {
        self.parts.clock.now()
    }

    /// Why this run was triggered: the events of objects, as far as they were kept. Use it for logs, such as
    /// `info!(because = %cx.causes(), "scaled")`, not for decisions: a reconciler acts on the current state.
    pub fn causes(&self) -> &Causes<Cause> {
        &self.parts.causes
    }

    /// The number of consecutive failures of the key.
    pub fn retries(&self) -> u32 {
        self.parts.retries
    }

    /// Resolves when the manager stops. For reconciles that wait.
    pub fn cancelled(&self) -> impl Future<Output = ()> + '_ {
        self.parts.cancel.cancelled()
    }

    /// The reconciled object as an `Arc`, for a task that outlives the reconcile. Any other object is cloned.
    pub fn object_arc<K: Writable>(&self, object: &K) -> Arc<K> {
        let reconciled = self.object.get().and_then(|it| it.read().downcast::<K>().ok());
        reconciled
            .filter(|it| std::ptr::eq(Arc::as_ptr(it), std::ptr::from_ref(object)))
            .unwrap_or_else(|| Arc::new(object.clone()))
    }

    /// Applies an object that the reconciled object controls, and returns it as the server stored it.
    ///
    /// Sets the controller reference, and the namespace if there is none. Then it calls [`Client::apply`], which sends
    /// nothing if nothing would change.
    pub async fn apply_owned<K: Writable>(&self, mut child: K) -> Result<K::Stored, client::Error> {
        let owner = self.object()?;
        let kind = self.client().kind_of(&child).await?;
        let meta = child.metadata_mut();
        if kind.scope() == Scope::Namespaced && meta.namespace.is_none() {
            meta.namespace.clone_from(&owner.as_owner().metadata().namespace);
        }
        set_controller_reference(owner.as_owner(), &mut child)?;
        self.client().apply(&child).await
    }

    /// The objects of a type that the reconciled object controls, from the cache, ordered by key.
    ///
    /// The controller must declare the type with [`owns`](crate::controller::ControllerBuilder::owns). Objects that
    /// were created in this reconcile may be missing.
    pub fn owned<K: Object>(&self) -> Result<Vec<Arc<K>>, client::Error> {
        let owner = self.object()?;
        let uid = owner.as_owner().metadata().uid.clone().unwrap_or_default();
        let kind = crate::Kind::of::<K>();
        let mut informers = self.parts.owned.iter().filter(|informer| *informer.kind() == kind).peekable();
        if informers.peek().is_none() {
            return Err(client::Error::NotOwned(kind.gvk().to_string()));
        }
        let list = ListOptions { namespace: self.key().namespace().map(str::to_owned), ..ListOptions::all() };
        let mut found = std::collections::BTreeMap::new();
        for informer in informers {
            informer.add_index(&OWNER_INDEX.into(), None, Arc::new(controller_uids));
            for entry in informer.entries(&list.clone().field(OWNER_INDEX, &uid))? {
                found.insert(entry.key().clone(), informer.decode(&entry)?);
            }
        }
        Ok(found.into_values().collect())
    }

    /// Sets the status of the reconciled object. Returns whether a request was sent.
    ///
    /// See [`Client::set_status`]. A second call in the same reconcile compares with the status that the first one
    /// wrote.
    pub async fn set_status(&self, status: impl Serialize) -> Result<bool, client::Error> {
        let object = self.object()?;
        let status = client::encoded_status(&status)?;
        object.set_status(self.client(), status).await
    }

    /// Why the object is not in the cache, if its removal was observed.
    pub(crate) fn removal(&self) -> Option<Removal> {
        self.parts.removal
    }

    /// The informer of the reconciled object.
    pub(crate) fn informer(&self) -> Option<&Arc<Informer>> {
        self.parts.informer.as_ref()
    }

    /// Sets the reconciled object.
    pub(crate) fn set_object<K: Writable>(&self, object: Arc<K>) {
        // A context is used for one reconcile, so this is the first call.
        let _ = self.object.set(Arc::new(Reconciled::new(object)));
    }

    fn object(&self) -> Result<&Arc<dyn ErasedObject>, client::Error> {
        self.object.get().ok_or_else(|| client::Error::NoObject(self.key().to_string()))
    }
}

/// The uid of the controller reference.
fn controller_uids(entry: &crate::cache::Entry) -> Vec<String> {
    let owners = entry.owners().into_iter();
    owners.filter(|owner| owner.controller == Some(true)).map(|owner| owner.uid).collect()
}
