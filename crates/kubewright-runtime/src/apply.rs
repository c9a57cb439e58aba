//! Typed server-side apply: partial objects with only the fields that a field manager sets.
//!
//! Owns the type of such objects ([`Configuration`]), and the extraction of the fields that a field manager applied
//! before ([`extract`]). Fields that are not set are never sent; a field that is set to zero is.
//! `#[derive(ApplyConfiguration)]` of the crate `kubewright` generates the types.
//!
//! Kinds of k8s-openapi do not need this. Their structs omit fields that are `None`, and `Client::apply` accepts them.
//!
//! ```
//! # use kube::{CustomResource, KubeSchema};
//! # use serde::{Deserialize, Serialize};
//! # #[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug)]
//! # #[kube(group = "example.com", version = "v1", kind = "Guestbook", namespaced)]
//! # struct GuestbookSpec { pages: i32 }
//! # #[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
//! # struct GuestbookSpecApply {
//! #     #[serde(default, skip_serializing_if = "Option::is_none")]
//! #     pages: Option<i32>,
//! # }
//! # impl GuestbookSpecApply { fn pages(self, pages: i32) -> Self { Self { pages: Some(pages) } } }
//! # impl kubewright_runtime::apply::Configured for Guestbook {
//! #     type Spec = GuestbookSpecApply;
//! #     type Status = kubewright_runtime::apply::NoStatus;
//! # }
//! # type GuestbookApply = kubewright_runtime::apply::Configuration<Guestbook>;
//! use kubewright_runtime::Client;
//! use kubewright_runtime::apply::ExtractError;
//!
//! # #[derive(Debug, thiserror::Error)]
//! # enum Error { #[error(transparent)] Client(#[from] kubewright_runtime::client::Error), #[error(transparent)] Extract(#[from] ExtractError) }
//! async fn three_pages(client: &Client, book: &Guestbook) -> Result<(), Error> {
//!     let wanted = GuestbookApply::of(book).label("size", "small").spec(GuestbookSpecApply::default().pages(3));
//!     if GuestbookApply::extract(book, "guestbook")? != wanted {
//!         client.field_owner("guestbook").apply(&wanted).await?;
//!     }
//!     Ok(())
//! }
//! ```

mod owned;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use self::owned::{ExtractError, extract};
use crate::{Object, client};

/// A struct with a partial form, in which all fields are optional. Derive it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no apply configuration",
    label = "needs a partial form",
    note = "write `#[derive(ApplyConfiguration)]` on the struct `{Self}`"
)]
pub trait ApplyConfiguration {
    /// The partial form.
    type Partial: Partial;
}

/// A struct whose fields are all optional. Implemented automatically.
pub trait Partial:
    Serialize + DeserializeOwned + Default + Clone + PartialEq + fmt::Debug + Send + Sync + 'static
{
}

impl<P> Partial for P where
    P: Serialize + DeserializeOwned + Default + Clone + PartialEq + fmt::Debug + Send + Sync + 'static
{
}

/// A kind with apply configurations. `#[derive(ApplyConfiguration)]` on its spec implements it.
pub trait Configured: Object {
    /// The partial form of `spec`.
    type Spec: Partial;
    /// The partial form of `status`.
    type Status: Partial;
}

/// The status of kinds without one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoStatus {}

/// An apply configuration: the fields of an object that one field manager sets.
///
/// It is an [`Object`] of its kind: [`Client::apply`](crate::Client::apply) accepts it, and
/// [`Subresource::apply`](client::Subresource::apply) for the status. They return the stored object as a configuration;
/// [`Configuration::complete`] converts it to the full type.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", bound = "")]
pub struct Configuration<K: Configured> {
    #[serde(default = "api_version::<K>")]
    api_version: String,
    #[serde(default = "kind::<K>")]
    kind: String,
    /// Name, labels and so on. Fields that are `None` are not sent.
    pub metadata: ObjectMeta,
    /// The desired state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<K::Spec>,
    /// The observed state. The server accepts it only through [`Client::status`](crate::Client::status).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<K::Status>,
}

impl<K: Configured> Configuration<K> {
    /// An empty configuration for the object of this name.
    pub fn new(name: impl Into<String>) -> Self {
        let metadata = ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() };
        Self { api_version: api_version::<K>(), kind: kind::<K>(), metadata, spec: None, status: None }
    }

    /// An empty configuration for this object.
    pub fn of(object: &K) -> Self {
        let ObjectMeta { name, namespace, .. } = object.meta();
        let mut configuration = Self::new(name.clone().unwrap_or_default());
        configuration.metadata.namespace.clone_from(namespace);
        configuration
    }

    /// Sets the namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.metadata.namespace = Some(namespace.into());
        self
    }

    /// Sets a label.
    #[must_use]
    pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.metadata.labels.get_or_insert_with(BTreeMap::new).insert(key.into(), value.into());
        self
    }

    /// Sets an annotation.
    #[must_use]
    pub fn annotation(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.metadata.annotations.get_or_insert_with(BTreeMap::new).insert(key.into(), value.into());
        self
    }

    /// Adds an owner reference.
    #[must_use]
    pub fn owner(mut self, owner: OwnerReference) -> Self {
        self.metadata.owner_references.get_or_insert_with(Vec::new).push(owner);
        self
    }

    /// Adds a finalizer.
    #[must_use]
    pub fn finalizer(mut self, finalizer: impl Into<String>) -> Self {
        self.metadata.finalizers.get_or_insert_with(Vec::new).push(finalizer.into());
        self
    }

    /// Sets the desired state.
    #[must_use]
    pub fn spec(mut self, spec: impl Into<K::Spec>) -> Self {
        self.spec = Some(spec.into());
        self
    }

    /// Sets the observed state.
    #[must_use]
    pub fn status(mut self, status: impl Into<K::Status>) -> Self {
        self.status = Some(status.into());
        self
    }

    /// The fields that a field manager applied before: see [`extract`].
    pub fn extract(object: &K, manager: &str) -> Result<Self, ExtractError> {
        extract(object, manager, None)
    }

    /// The status fields that a field manager applied before: see [`extract`].
    pub fn extract_status(object: &K, manager: &str) -> Result<Self, ExtractError> {
        extract(object, manager, Some("status"))
    }

    /// Converts to the full type. Succeeds if all required fields are set, as in a response of the server.
    pub fn complete(&self) -> Result<K, client::Error> {
        let what = || format!("{} {}", self.kind, self.metadata.name.as_deref().unwrap_or_default());
        let value =
            serde_json::to_value(self).map_err(|source| client::Error::Encode { what: what(), source })?;
        serde_json::from_value(value).map_err(|source| client::Error::Decode { what: what(), source })
    }
}

impl<K: Configured> PartialEq for Configuration<K> {
    fn eq(&self, other: &Self) -> bool {
        self.metadata == other.metadata && self.spec == other.spec && self.status == other.status
    }
}

impl<K: Configured> kube::Resource for Configuration<K> {
    type DynamicType = ();
    type Scope = K::Scope;

    fn kind((): &()) -> Cow<'_, str> {
        K::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        K::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        K::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        K::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

fn api_version<K: Configured>() -> String {
    K::api_version(&()).into_owned()
}

fn kind<K: Configured>() -> String {
    K::kind(&()).into_owned()
}
