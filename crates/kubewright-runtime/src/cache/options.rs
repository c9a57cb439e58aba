//! Cache options: namespaces, selectors, transforms, resync.
//!
//! [`Cache::new`](super::Cache::new) validates them once.

mod namespace;

use std::collections::BTreeMap;
use std::time::Duration;

pub use self::namespace::NamespaceOptions;
use self::namespace::Transformer;
use super::informer::{Scoped, Settings};
use super::reflector::Selection;
use crate::{Gvk, Kind, Object, Scope};

/// The default resync period.
pub const RESYNC: Duration = Duration::from_hours(10);

/// The default of [`CacheOptions::decoded_budget`].
pub const DECODED_BUDGET: usize = 4 << 20;

/// Invalid cache options.
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

/// The options of a cache.
#[derive(Clone)]
pub struct CacheOptions {
    /// The namespaces to watch; all if empty.
    pub namespaces: Vec<String>,
    /// Options per namespace, for kinds that have no options for that namespace. See [`CacheOptions::namespace`].
    pub namespace_options: BTreeMap<String, NamespaceOptions>,
    /// The resync period; `None` for no resync. Must not be zero.
    pub resync: Option<Duration>,
    /// The options of kinds that are not in `kinds`.
    pub default_kind: KindOptions,
    /// Options per kind, instead of `default_kind`.
    pub kinds: BTreeMap<Gvk, KindOptions>,
    /// How many bytes of JSON of repeatedly read objects are kept decoded, for all kinds together. A decoded object
    /// takes several times as much memory, a Pod about five times.
    pub decoded_budget: usize,
    /// The seed of the retry jitter; random if `None`.
    pub seed: Option<u64>,
}

impl Default for CacheOptions {
    fn default() -> Self {
        Self {
            namespaces: Vec::new(),
            namespace_options: BTreeMap::new(),
            resync: Some(RESYNC),
            default_kind: KindOptions::default(),
            kinds: BTreeMap::new(),
            decoded_budget: DECODED_BUDGET,
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

    /// Watches a namespace with its own options, in addition to [`CacheOptions::namespaces`]. The empty name means all
    /// namespaces without their own options.
    #[must_use]
    pub fn namespace(mut self, name: impl Into<String>, options: NamespaceOptions) -> Self {
        let name = name.into();
        self.namespaces.push(name.clone());
        self.namespace_options.insert(name, options);
        self
    }

    /// The namespaces that are watched by default; empty if all are.
    pub(crate) fn default_namespaces(&self) -> Vec<String> {
        let all = self.namespaces.iter().any(String::is_empty);
        if all { Vec::new() } else { self.namespaces.clone() }
    }

    pub(super) fn check(&self) -> Result<(), CacheOptionsError> {
        if self.resync == Some(Duration::ZERO) {
            return Err(CacheOptionsError::ZeroResync(None));
        }
        let zero_in = |namespaces: &BTreeMap<String, NamespaceOptions>| {
            namespaces.values().any(|options| options.resync.is_zero())
        };
        let zero = |options: &KindOptions| options.resync.is_zero() || zero_in(&options.namespace_options);
        if zero(&self.default_kind) || zero_in(&self.namespace_options) {
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

    /// What a caller selects in addition to the selectors of these options. Callers with the same selection share an
    /// informer.
    pub(super) fn requested(
        &self,
        kind: &Kind,
        labels: &str,
        fields: &str,
        metadata_only: bool,
    ) -> Selection {
        let own = self.of(kind);
        // A caller that repeats the kind's selector needs no other informer, unless a namespace has a different
        // selector.
        let repeats = |own: &str, more: &str| {
            own == more && self.namespace_options.is_empty() && self.of(kind).namespace_options.is_empty()
        };
        let more = |own: &str, more: &str| if repeats(own, more) { String::new() } else { more.to_owned() };
        Selection { labels: more(&own.labels, labels), fields: more(&own.fields, fields), metadata_only }
    }

    /// The settings of an informer. Objects must match the selectors of these options and of the caller.
    pub(super) fn settings(&self, kind: &Kind, requested: &Selection) -> Settings {
        let own = self.of(kind);
        Settings {
            metadata_only: requested.metadata_only,
            scopes: self.scopes(kind, requested),
            keep_managed_fields: own.keep_managed_fields,
            keep_decoded: own.keep_decoded,
        }
    }

    /// The watched scopes: one per namespace, or one for all.
    fn scopes(&self, kind: &Kind, requested: &Selection) -> Vec<Scoped> {
        let own = self.of(kind);
        let none = NamespaceOptions::default();
        let scoped = |namespace: Option<&str>, options: &NamespaceOptions, except: Vec<String>| {
            let labels = options.labels.as_ref().unwrap_or(&own.labels);
            let fields = options.fields.as_ref().unwrap_or(&own.fields);
            let metadata_only = requested.metadata_only;
            Scoped {
                namespace: namespace.map(str::to_owned),
                except,
                selection: Selection {
                    labels: both(labels, &requested.labels),
                    fields: both(fields, &requested.fields),
                    metadata_only,
                },
                transform: options
                    .transform
                    .as_ref()
                    .or(own.transform.as_ref())
                    .and_then(|it| it.of(metadata_only)),
                resync: options.resync.or(own.resync.or(self.resync)),
            }
        };
        let names: &[String] = match kind.scope() {
            Scope::Namespaced => own.namespaces.as_ref().unwrap_or(&self.namespaces),
            Scope::Cluster => &[],
        };
        let options = |name: &String| {
            let known = own.namespace_options.get(name).or_else(|| self.namespace_options.get(name));
            (name.clone(), known.unwrap_or(&none))
        };
        let mut named: BTreeMap<String, &NamespaceOptions> = names.iter().map(options).collect();
        // The empty name means all namespaces, as everywhere in Kubernetes.
        let Some(rest) = named.remove("").or(named.is_empty().then_some(&none)) else {
            return named.iter().map(|(name, options)| scoped(Some(name), options, Vec::new())).collect();
        };
        // A namespace with the same options as all others needs no watch of its own.
        named.retain(|_, options| !options.is_empty() || !rest.is_empty());
        let all = scoped(None, rest, named.keys().cloned().collect());
        let named = named.iter().map(|(name, options)| scoped(Some(name), options, Vec::new()));
        named.chain([all]).collect()
    }
}

/// Combines two selectors. A comma means "and" in label selectors and in field selectors.
fn both(own: &str, more: &str) -> String {
    match (own, more) {
        (own, more) if own.is_empty() || own == more => more.to_owned(),
        (own, "") => own.to_owned(),
        (own, more) => format!("{own},{more}"),
    }
}

/// The resync period of a kind or a namespace.
#[derive(Clone, Copy, Default)]
enum Resync {
    /// The period of the cache, or of the kind.
    #[default]
    AsAll,
    /// Its own period; `None` for no resync.
    Own(Option<Duration>),
}

impl Resync {
    fn or(self, all: Option<Duration>) -> Option<Duration> {
        match self {
            Self::AsAll => all,
            Self::Own(every) => every,
        }
    }

    fn is_zero(self) -> bool {
        self.or(None) == Some(Duration::ZERO)
    }
}

/// Cache options of one kind.
#[derive(Clone, Default)]
pub struct KindOptions {
    namespaces: Option<Vec<String>>,
    labels: String,
    fields: String,
    keep_managed_fields: bool,
    keep_decoded: bool,
    resync: Resync,
    transform: Option<Transformer>,
    namespace_options: BTreeMap<String, NamespaceOptions>,
}

impl KindOptions {
    /// Uses the defaults of the cache.
    pub fn new() -> Self {
        Self::default()
    }

    /// Watches these namespaces instead of those of the cache.
    #[must_use]
    pub fn namespaces<N: Into<String>>(mut self, namespaces: impl IntoIterator<Item = N>) -> Self {
        self.namespaces = Some(namespaces.into_iter().map(Into::into).collect());
        self
    }

    /// Watches a namespace with its own options, in addition to [`KindOptions::namespaces`]. The empty name means all
    /// namespaces without their own options.
    #[must_use]
    pub fn namespace(mut self, name: impl Into<String>, options: NamespaceOptions) -> Self {
        let name = name.into();
        self.namespaces.get_or_insert_default().push(name.clone());
        self.namespace_options.insert(name, options);
        self
    }

    /// Caches only objects that match a label selector. A [`Watch`](crate::controller::Watch) with its own label
    /// selector gets the objects that match both.
    #[must_use]
    pub fn labels(mut self, selector: impl Into<String>) -> Self {
        self.labels = selector.into();
        self
    }

    /// Caches only objects that match a field selector, such as `spec.nodeName=node-1`. A
    /// [`Watch`](crate::controller::Watch) with its own field selector gets the objects that match both.
    #[must_use]
    pub fn fields(mut self, selector: impl Into<String>) -> Self {
        self.fields = selector.into();
        self
    }

    /// Keeps `metadata.managedFields`. By default they are dropped, because they are large and rarely read.
    #[must_use]
    pub fn keep_managed_fields(mut self) -> Self {
        self.keep_managed_fields = true;
        self
    }

    /// Keeps objects of this kind decoded after their first read, in addition to their JSON and not counted against
    /// [`CacheOptions::decoded_budget`]. Use it for kinds that are listed often: reads then decode only changed
    /// objects.
    #[must_use]
    pub fn keep_decoded(mut self) -> Self {
        self.keep_decoded = true;
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
    /// Fields that `K` does not have are dropped, too. A transform of whole objects does not apply to metadata
    /// informers, and a transform of metadata does not apply to informers of whole objects.
    ///
    /// If the transform panics or fails to decode an object, the object is stored as the server sent it. A panic is
    /// logged and counted in `kubewright_cache_panics_total`.
    #[must_use]
    pub fn transform<K: Object>(mut self, change: impl Fn(&mut K) + Send + Sync + 'static) -> Self {
        self.transform = Some(Transformer::typed(change));
        self
    }

    /// Like [`KindOptions::transform`], but on the JSON of an object. It applies to all informers and keeps unknown
    /// fields, so it can be used in [`CacheOptions::default_kind`].
    #[must_use]
    pub fn transform_json(mut self, change: impl Fn(&mut serde_json::Value) + Send + Sync + 'static) -> Self {
        self.transform = Some(Transformer::json(change));
        self
    }
}
