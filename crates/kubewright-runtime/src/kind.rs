//! Kinds and their resources.

use std::any::TypeId;
use std::fmt;
use std::sync::Arc;

use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};
use kube::core::TypeMeta;
use kubewright_apimachinery::gvk::split_api_version;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Group, version and kind.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Gvk {
    /// The group; empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The kind.
    pub kind: String,
}

impl Gvk {
    /// Creates it from group, version and kind.
    pub fn new(group: impl Into<String>, version: impl Into<String>, kind: impl Into<String>) -> Self {
        Self { group: group.into(), version: version.into(), kind: kind.into() }
    }

    /// Parses `apiVersion` and `kind` of an object.
    pub fn of(api_version: &str, kind: &str) -> Self {
        let (group, version) = split_api_version(api_version);
        Self::new(group, version, kind)
    }

    /// `group/version`, or the version in the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }
}

impl fmt::Display for Gvk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, Kind={}", self.api_version(), self.kind)
    }
}

/// Whether a kind is namespaced or cluster-scoped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// Namespaced.
    Namespaced,
    /// Cluster-scoped.
    Cluster,
}

/// A kind and its REST resource. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Kind(Arc<RestResource>);

#[derive(PartialEq, Eq, Hash, PartialOrd, Ord)]
struct RestResource {
    gvk: Gvk,
    plural: String,
    scope: Scope,
}

impl Kind {
    /// Creates a kind with the resource name `plural`.
    pub fn new(gvk: Gvk, plural: impl Into<String>, scope: Scope) -> Self {
        Self(Arc::new(RestResource { gvk, plural: plural.into(), scope }))
    }

    /// The kind of a Rust type.
    pub fn of<K: Object>() -> Self {
        let gvk = Gvk::new(K::group(&()), K::version(&()), K::kind(&()));
        Self::new(gvk, K::plural(&()), K::scope())
    }

    /// Group, version and kind.
    pub fn gvk(&self) -> &Gvk {
        &self.0.gvk
    }

    /// The resource name in paths and RBAC rules.
    pub fn plural(&self) -> &str {
        &self.0.plural
    }

    /// Whether the kind is namespaced.
    pub fn scope(&self) -> Scope {
        self.0.scope
    }

    /// The kind alone, such as `Deployment`.
    pub fn name(&self) -> &str {
        &self.0.gvk.kind
    }

    /// The `apiVersion` and `kind` fields of objects of this kind.
    pub fn type_meta(&self) -> TypeMeta {
        TypeMeta { api_version: self.0.gvk.api_version(), kind: self.0.gvk.kind.clone() }
    }

    /// The path of the collection, in a namespace or in all.
    pub fn path(&self, namespace: Option<&str>) -> String {
        let Gvk { group, version, .. } = &self.0.gvk;
        let root =
            if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
        match namespace {
            Some(namespace) if self.0.scope == Scope::Namespaced => {
                format!("{root}/namespaces/{namespace}/{}", self.0.plural)
            }
            _ => format!("{root}/{}", self.0.plural),
        }
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0.gvk, f)
    }
}

/// A Rust type of a Kubernetes kind: every type of k8s-openapi and every derived `CustomResource`.
///
/// Implemented for all of them; do not implement it yourself. For kinds that are known only at run time, use
/// [`DynamicObject`](kube::api::DynamicObject).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the Rust type of a Kubernetes kind",
    note = "use a type of k8s-openapi, or derive `CustomResource` on the spec",
    note = "for `DynamicObject`, use the functions that take a kind, such as `Manager::dynamic_controller`"
)]
pub trait Object:
    kube::Resource<DynamicType = (), Scope: 'static>
    + Serialize
    + DeserializeOwned
    + Clone
    + fmt::Debug
    + Send
    + Sync
    + 'static
{
    /// Whether the kind is namespaced.
    fn scope() -> Scope {
        let scope = TypeId::of::<Self::Scope>();
        debug_assert!(
            scope == TypeId::of::<NamespaceResourceScope>() || scope == TypeId::of::<ClusterResourceScope>(),
            "{} is neither namespaced nor cluster-scoped",
            Self::kind(&()),
        );
        if scope == TypeId::of::<ClusterResourceScope>() { Scope::Cluster } else { Scope::Namespaced }
    }
}

/// The dynamic type of Rust types that determine their kind.
///
/// The bound of [`Object`]'s implementation says the same as `DynamicType = ()`, but has a message of its own. Only `()`
/// implements it.
#[diagnostic::on_unimplemented(
    message = "the kind of this type is known only at run time",
    note = "for a reconciler of `DynamicObject`, use `Manager::dynamic_controller` instead of `Manager::controller`",
    note = "for other uses of `DynamicObject`, use the functions that take a kind, such as `Client::get_dynamic`"
)]
pub trait StaticKind {}

impl StaticKind for () {}

impl<K> Object for K where
    K: kube::Resource<DynamicType: StaticKind>
        + kube::Resource<DynamicType = (), Scope: 'static>
        + Serialize
        + DeserializeOwned
        + Clone
        + fmt::Debug
        + Send
        + Sync
        + 'static
{
}
