//! Typed index handles: look up cached objects by a value that a function computes from them.
//!
//! An [`Index`] is registered once per type and name; registering the same function again returns it. Lookups never
//! wait, and fail instead of returning an incomplete result: see [`Cache::get`].

use std::any::TypeId;
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Weak};

use kube::api::DynamicObject;
use tracing::warn;

use super::{Cache, Entry, Informer};
use crate::client::{Error, Writable};
use crate::error::Chain;
use crate::manager::RegisterError;
use crate::{Gvk, Kind, ListOptions, Object};

/// An index over the cached objects of a type, created by [`Cache::index`]. Cheap to clone.
///
/// ```no_run
/// use k8s_openapi::api::core::v1::Pod;
/// use kubewright_runtime::{Cache, ListOptions};
///
/// # fn example(cache: Cache) -> Result<(), Box<dyn std::error::Error>> {
/// let by_node = cache.index::<Pod>("spec.nodeName", |pod| {
///     pod.spec.iter().filter_map(|spec| spec.node_name.clone()).collect()
/// })?;
/// let pods = by_node.get("node-1")?;
/// let web = by_node.list("node-1", &ListOptions::namespace("default").labels("app=web"))?;
/// # Ok(())
/// # }
/// ```
pub struct Index<K> {
    /// Weak, so that [`Cache::remove`] frees the objects.
    informer: Weak<Informer>,
    kind: Gvk,
    metadata_only: bool,
    name: Arc<str>,
    object: PhantomData<fn() -> K>,
}

impl<K: Writable> Index<K> {
    /// The name of the index, for `ListOptions::field(name, value)`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The objects with an index value, ordered by key. Fails if the first list is not complete, or the type is no
    /// longer watched.
    pub fn get(&self, value: &str) -> Result<Vec<Arc<K>>, Error> {
        self.list(value, &ListOptions::all())
    }

    /// The objects with an index value that also match the namespace, labels and fields of `list`, up to its limit.
    pub fn list(&self, value: &str, list: &ListOptions) -> Result<Vec<Arc<K>>, Error> {
        let informer = self.informer.upgrade().ok_or_else(|| Error::CacheStopped(self.kind.to_string()))?;
        let informer = informer.in_place(self.metadata_only).unwrap_or(informer);
        let list = list.clone().field(&*self.name, value);
        informer.entries(&list)?.iter().map(|entry| informer.object(entry)).collect()
    }
}

impl<K> Clone for Index<K> {
    fn clone(&self) -> Self {
        Self {
            informer: self.informer.clone(),
            kind: self.kind.clone(),
            metadata_only: self.metadata_only,
            name: self.name.clone(),
            object: PhantomData,
        }
    }
}

impl<K> fmt::Debug for Index<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Index({} by {})", self.kind, self.name)
    }
}

impl Cache {
    /// Indexes the objects of a type by a value, and watches the type. `ListOptions::field(name, value)` uses the same index.
    ///
    /// `values` returns the index values of an object: none, one or several. If it panics, the object is cached without
    /// an entry in this index; the panic is logged and counted in `kubewright_cache_panics_total`.
    ///
    /// An index can be added before or after the cache starts. Registering the same function under the same name again
    /// returns the existing index; this works for functions and for closures without captures. Fails if another
    /// function is registered under that name.
    pub fn index<K: Object>(
        &self,
        name: &str,
        values: impl Fn(&K) -> Vec<String> + Send + Sync + 'static,
    ) -> Result<Index<K>, RegisterError> {
        // Decode through the informer, so that the other index functions and the next readers share the object.
        index_of(&self.informer::<K>(), K::metadata_api(), name, values, Informer::decode_new)
    }

    /// Like [`Cache::index`], for a kind that is known only at run time. `ListOptions::field(name, value)` of
    /// [`Client::list_dynamic`](crate::Client::list_dynamic) uses the same index.
    pub fn index_kind(
        &self,
        kind: &Kind,
        name: &str,
        values: impl Fn(&DynamicObject) -> Vec<String> + Send + Sync + 'static,
    ) -> Result<Index<DynamicObject>, RegisterError> {
        index_of(&self.informer_of(kind, false), false, name, values, Informer::decode_dynamic)
    }
}

/// Adds an index to an informer.
fn index_of<K: Writable>(
    informer: &Arc<Informer>,
    metadata_only: bool,
    name: &str,
    values: impl Fn(&K) -> Vec<String> + Send + Sync + 'static,
    decode: fn(&Informer, &Entry) -> Result<Arc<K>, Error>,
) -> Result<Index<K>, RegisterError> {
    let function = identity(&values);
    let (reader, name): (_, Arc<str>) = (Arc::downgrade(informer), name.into());
    let index = name.clone();
    let values = move |entry: &Entry| {
        let Some(informer) = reader.upgrade() else { return Vec::new() };
        match decode(&informer, entry) {
            Ok(object) => values(&object),
            Err(error) => {
                warn!(
                    kind = %informer.kind().gvk(),
                    object = %entry.key(),
                    index = &*index,
                    error = %Chain(&error),
                    "Failed to decode object for index; skipping it",
                );
                Vec::new()
            }
        }
    };
    let kind = informer.kind().gvk().clone();
    if !informer.add_index(&name, function, Arc::new(values)) {
        return Err(RegisterError::IndexTaken { kind, index: name.to_string() });
    }
    Ok(Index { informer: Arc::downgrade(informer), kind, metadata_only, name, object: PhantomData })
}

/// Identifies a function by its type. `None` for closures with captures: one type may capture different data.
fn identity<F: 'static>(_: &F) -> Option<TypeId> {
    (size_of::<F>() == 0).then(TypeId::of::<F>)
}
