//! Cache options of one namespace.

use std::sync::Arc;
use std::time::Duration;

use super::super::entry::Transform;
use super::Resync;
use crate::Object;

/// Cache options of one or all kinds in one namespace. Each option that is set replaces that of the kind.
///
/// ```
/// use k8s_openapi::api::core::v1::Secret;
/// use kubewright_runtime::cache::NamespaceOptions;
/// use kubewright_runtime::{CacheOptions, KindOptions};
///
/// // All Secrets of `team-a`, and the Secrets with a label in all other namespaces.
/// let secrets = KindOptions::new()
///     .namespace("team-a", NamespaceOptions::new())
///     .namespace("", NamespaceOptions::new().labels("shared=true"));
/// let options = CacheOptions::default().kind::<Secret>(secrets);
/// ```
#[derive(Clone, Default)]
pub struct NamespaceOptions {
    pub(super) labels: Option<String>,
    pub(super) fields: Option<String>,
    pub(super) transform: Option<Transformer>,
    pub(super) resync: Resync,
}

impl NamespaceOptions {
    /// Uses the options of the kind.
    pub fn new() -> Self {
        Self::default()
    }

    /// The label selector in this namespace; an empty one selects all objects.
    #[must_use]
    pub fn labels(mut self, selector: impl Into<String>) -> Self {
        self.labels = Some(selector.into());
        self
    }

    /// The field selector in this namespace; an empty one selects all objects.
    #[must_use]
    pub fn fields(mut self, selector: impl Into<String>) -> Self {
        self.fields = Some(selector.into());
        self
    }

    /// The transform in this namespace; see [`KindOptions::transform`](super::KindOptions::transform).
    #[must_use]
    pub fn transform<K: Object>(mut self, change: impl Fn(&mut K) + Send + Sync + 'static) -> Self {
        self.transform = Some(Transformer::typed(change));
        self
    }

    /// The transform in this namespace; see [`KindOptions::transform_json`](super::KindOptions::transform_json).
    #[must_use]
    pub fn transform_json(mut self, change: impl Fn(&mut serde_json::Value) + Send + Sync + 'static) -> Self {
        self.transform = Some(Transformer::json(change));
        self
    }

    /// The resync period in this namespace; `None` for no resync. Must not be zero.
    #[must_use]
    pub fn resync(mut self, every: Option<Duration>) -> Self {
        self.resync = Resync::Own(every);
        self
    }

    pub(super) fn is_empty(&self) -> bool {
        let has_resync = matches!(self.resync, Resync::Own(_));
        self.labels.is_none() && self.fields.is_none() && self.transform.is_none() && !has_resync
    }
}

/// A transform and the informers that it applies to.
#[derive(Clone)]
pub(super) struct Transformer {
    change: Transform,
    /// Applies to metadata informers (true), to informers of whole objects (false), or to both (`None`).
    metadata: Option<bool>,
}

impl Transformer {
    pub(super) fn typed<K: Object>(change: impl Fn(&mut K) + Send + Sync + 'static) -> Self {
        let change: Transform = Arc::new(move |json| {
            let mut object: K = serde_json::from_str(json)?;
            change(&mut object);
            serde_json::to_string(&object)
        });
        Self { change, metadata: Some(K::metadata_api()) }
    }

    pub(super) fn json(change: impl Fn(&mut serde_json::Value) + Send + Sync + 'static) -> Self {
        let change: Transform = Arc::new(move |json| {
            let mut object: serde_json::Value = serde_json::from_str(json)?;
            change(&mut object);
            serde_json::to_string(&object)
        });
        Self { change, metadata: None }
    }

    /// The transform, if it applies to this type of informer.
    pub(super) fn of(&self, metadata_only: bool) -> Option<Transform> {
        self.metadata.is_none_or(|metadata| metadata == metadata_only).then(|| self.change.clone())
    }
}
