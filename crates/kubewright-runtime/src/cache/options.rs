//! What a cache keeps: namespaces, selections, transforms, resync.
//!
//! Options are checked once, when a [`Cache`](super::Cache) is built from them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::entry::Transform;
use super::informer::Settings;
use super::reflector::Selection;
use crate::{Gvk, Kind, Object, Scope};

/// The default resync period.
pub const RESYNC: Duration = Duration::from_hours(10);

/// The JSON of the objects that are kept decoded, per informer.
const HOT_BYTES: usize = 1 << 20;

/// Options that a cache cannot work with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CacheOptionsError {
    /// The resync period is zero.
    #[error("the resync period{} is zero: set a positive period, or None for no resync", of(.0.as_ref()))]
    ZeroResync(Option<Gvk>),
}

fn of(kind: Option<&Gvk>) -> String {
    kind.map(|kind| format!(" of {kind}")).unwrap_or_default()
}

/// What a cache keeps.
#[derive(Clone)]
pub struct CacheOptions {
    /// The namespaces to watch; all if empty.
    pub namespaces: Vec<String>,
    /// The resync period; `None` for no resync. Must not be zero.
    pub resync: Option<Duration>,
    /// Options of kinds that have none of their own.
    pub default_kind: KindOptions,
    /// Options of single kinds, instead of `default_kind`.
    pub kinds: BTreeMap<Gvk, KindOptions>,
    /// Seed of the jitter of retries; random if `None`.
    pub seed: Option<u64>,
}

impl Default for CacheOptions {
    fn default() -> Self {
        Self {
            namespaces: Vec::new(),
            resync: Some(RESYNC),
            default_kind: KindOptions::default(),
            kinds: BTreeMap::new(),
            seed: None,
        }
    }
}

impl CacheOptions {
    /// Sets the options of one kind.
    #[must_use]
    pub fn kind<K: Object>(mut self, options: KindOptions) -> Self {
        self.kinds.insert(Kind::of::<K>().gvk().clone(), options);
        self
    }

    pub(super) fn check(&self) -> Result<(), CacheOptionsError> {
        if self.resync == Some(Duration::ZERO) {
            return Err(CacheOptionsError::ZeroResync(None));
        }
        let zero = |options: &KindOptions| matches!(options.resync, Resync::Own(Some(Duration::ZERO)));
        if zero(&self.default_kind) {
            return Err(CacheOptionsError::ZeroResync(None));
        }
        match self.kinds.iter().find(|(_, options)| zero(options)) {
            Some((kind, _)) => Err(CacheOptionsError::ZeroResync(Some(kind.clone()))),
            None => Ok(()),
        }
    }

    fn of(&self, kind: &Kind) -> &KindOptions {
        self.kinds.get(kind.gvk()).unwrap_or(&self.default_kind)
    }

    /// The selection of a kind: the cache's own selectors and, in addition, those of the caller. An object must match
    /// both.
    pub(super) fn selection(
        &self,
        kind: &Kind,
        labels: &str,
        fields: &str,
        metadata_only: bool,
    ) -> Selection {
        let own = self.of(kind);
        let and = |own: &str, more: &str| match own {
            own if own.is_empty() || own == more => more.to_owned(),
            own if more.is_empty() => own.to_owned(),
            // A comma is "and" in label selectors and in field selectors.
            own => format!("{own},{more}"),
        };
        Selection { labels: and(&own.labels, labels), fields: and(&own.fields, fields), metadata_only }
    }

    pub(super) fn settings(&self, kind: &Kind, selection: Selection) -> Settings {
        let own = self.of(kind).clone();
        let mut namespaces = match kind.scope() {
            Scope::Namespaced => own.namespaces.unwrap_or_else(|| self.namespaces.clone()),
            Scope::Cluster => Vec::new(),
        };
        namespaces.sort();
        namespaces.dedup();
        if namespaces.iter().any(String::is_empty) {
            // The empty name means all namespaces, as everywhere in Kubernetes.
            namespaces.clear();
        }
        let metadata_only = selection.metadata_only;
        Settings {
            selection,
            namespaces,
            transform: own.transform.filter(|_| own.transforms.applies(metadata_only)),
            keep_managed_fields: own.keep_managed_fields,
            resync: match own.resync {
                Resync::AsAll => self.resync,
                Resync::Own(every) => every,
            },
            hot_bytes: HOT_BYTES,
        }
    }
}

/// The resync period of a kind.
#[derive(Clone, Copy, Default)]
enum Resync {
    /// The period of the cache.
    #[default]
    AsAll,
    /// Its own period; `None` for no resync.
    Own(Option<Duration>),
}

/// How one kind is kept.
#[derive(Clone, Default)]
pub struct KindOptions {
    namespaces: Option<Vec<String>>,
    labels: String,
    fields: String,
    keep_managed_fields: bool,
    resync: Resync,
    transform: Option<Transform>,
    transforms: Transforms,
}

/// The informers that a transform applies to.
#[derive(Clone, Copy, Default)]
enum Transforms {
    #[default]
    All,
    /// Those of metadata, or those of whole objects.
    Metadata(bool),
}

impl Transforms {
    fn applies(self, metadata_only: bool) -> bool {
        match self {
            Self::All => true,
            Self::Metadata(metadata) => metadata == metadata_only,
        }
    }
}

impl KindOptions {
    /// The defaults of the cache.
    pub fn new() -> Self {
        Self::default()
    }

    /// Watches these namespaces instead of those of the cache.
    #[must_use]
    pub fn namespaces<N: Into<String>>(mut self, namespaces: impl IntoIterator<Item = N>) -> Self {
        self.namespaces = Some(namespaces.into_iter().map(Into::into).collect());
        self
    }

    /// Keeps only objects that match a label selector. A [`Watch`](crate::controller::Watch) with labels of its own
    /// gets the objects that match both.
    #[must_use]
    pub fn labels(mut self, selector: impl Into<String>) -> Self {
        self.labels = selector.into();
        self
    }

    /// Keeps only objects that match a field selector, such as `spec.nodeName=node-1`. A
    /// [`Watch`](crate::controller::Watch) with fields of its own gets the objects that match both.
    #[must_use]
    pub fn fields(mut self, selector: impl Into<String>) -> Self {
        self.fields = selector.into();
        self
    }

    /// Keeps `metadata.managedFields`. They are dropped otherwise, because they are large and rarely read.
    #[must_use]
    pub fn keep_managed_fields(mut self) -> Self {
        self.keep_managed_fields = true;
        self
    }

    /// The resync period of this kind; `None` for no resync. Must not be zero.
    #[must_use]
    pub fn resync(mut self, every: Option<Duration>) -> Self {
        self.resync = Resync::Own(every);
        self
    }

    /// Changes every object before it is stored, for example to drop large fields.
    ///
    /// Fields that `K` does not have are dropped as well. A transform of whole objects does not apply to informers of
    /// metadata, and a transform of metadata does not apply to informers of whole objects.
    ///
    /// If the transform panics or cannot decode an object, the object is stored as the server sent it. The panic is
    /// logged and counted in `kubewright_cache_panics_total`.
    #[must_use]
    pub fn transform<K: Object>(mut self, change: impl Fn(&mut K) + Send + Sync + 'static) -> Self {
        self.transforms = Transforms::Metadata(K::metadata_api());
        self.transform = Some(Arc::new(move |json| {
            let mut object: K = serde_json::from_str(json)?;
            change(&mut object);
            serde_json::to_string(&object)
        }));
        self
    }

    /// As [`KindOptions::transform`], on the JSON of an object. It applies to all informers, and keeps unknown fields; so
    /// it can be the transform of [`CacheOptions::default_kind`].
    #[must_use]
    pub fn transform_json(mut self, change: impl Fn(&mut serde_json::Value) + Send + Sync + 'static) -> Self {
        self.transforms = Transforms::All;
        self.transform = Some(Arc::new(move |json| {
            let mut object: serde_json::Value = serde_json::from_str(json)?;
            change(&mut object);
            serde_json::to_string(&object)
        }));
        self
    }
}
