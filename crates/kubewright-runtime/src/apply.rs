//! Typed server-side apply: objects of which a manager says only what it means, and what it said before.
//!
//! Owns the form of such objects ([`Configuration`]) and how one is found again in what the server has ([`extract`]).
//! What was not said is never sent: a zero is a wish, an absence is none. `#[derive(ApplyConfiguration)]` of the crate
//! `kubewright` makes the types.
//!
//! Kinds of k8s-openapi need none of this. Their own structs leave out what is `None`, and `Client::apply` takes them.
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

/// A struct that has a twin whose fields may all be left out. Derive it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no apply configuration",
    label = "this is to be applied field by field",
    note = "write `#[derive(ApplyConfiguration)]` on the struct `{Self}`"
)]
pub trait ApplyConfiguration {
    /// The twin.
    type Partial: Partial;
}

/// A struct whose fields may all be left out. Nothing to implement.
pub trait Partial:
    Serialize + DeserializeOwned + Default + Clone + PartialEq + fmt::Debug + Send + Sync + 'static
{
}

impl<P> Partial for P where
    P: Serialize + DeserializeOwned + Default + Clone + PartialEq + fmt::Debug + Send + Sync + 'static
{
}

/// A kind whose objects can be applied in part. `#[derive(ApplyConfiguration)]` on its spec implements it.
pub trait Configured: Object {
    /// What may be said of `spec`.
    type Spec: Partial;
    /// What may be said of `status`.
    type Status: Partial;
}

/// Of kinds without a status.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoStatus {}

/// What one manager means of an object.
///
/// It is an [`Object`] of its kind itself: [`Client::apply`](crate::Client::apply) takes it, and
/// [`Subresource::apply`](client::Subresource::apply) for the status. What these return is the object as the server has
/// it then; [`Configuration::complete`] makes the whole of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", bound = "")]
pub struct Configuration<K: Configured> {
    #[serde(default = "api_version::<K>")]
    api_version: String,
    #[serde(default = "kind::<K>")]
    kind: String,
    /// Name, labels and the like: what is `None` is not sent.
    pub metadata: ObjectMeta,
    /// What the object is to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<K::Spec>,
    /// What it was found to be. Servers take it from [`Client::status`](crate::Client::status) only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<K::Status>,
}

impl<K: Configured> Configuration<K> {
    /// Says nothing yet of the object of this name.
    pub fn new(name: impl Into<String>) -> Self {
        let metadata = ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() };
        Self { api_version: api_version::<K>(), kind: kind::<K>(), metadata, spec: None, status: None }
    }

    /// Says nothing yet of this object.
    pub fn of(object: &K) -> Self {
        let ObjectMeta { name, namespace, .. } = object.meta();
        let mut configuration = Self::new(name.clone().unwrap_or_default());
        configuration.metadata.namespace.clone_from(namespace);
        configuration
    }

    /// The object is in this namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.metadata.namespace = Some(namespace.into());
        self
    }

    /// The object has this label.
    #[must_use]
    pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.metadata.labels.get_or_insert_with(BTreeMap::new).insert(key.into(), value.into());
        self
    }

    /// The object has this annotation.
    #[must_use]
    pub fn annotation(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.metadata.annotations.get_or_insert_with(BTreeMap::new).insert(key.into(), value.into());
        self
    }

    /// The object belongs to this one.
    #[must_use]
    pub fn owner(mut self, owner: OwnerReference) -> Self {
        self.metadata.owner_references.get_or_insert_with(Vec::new).push(owner);
        self
    }

    /// The object is not to go before this finalizer does.
    #[must_use]
    pub fn finalizer(mut self, finalizer: impl Into<String>) -> Self {
        self.metadata.finalizers.get_or_insert_with(Vec::new).push(finalizer.into());
        self
    }

    /// What the object is to be.
    #[must_use]
    pub fn spec(mut self, spec: impl Into<K::Spec>) -> Self {
        self.spec = Some(spec.into());
        self
    }

    /// What the object was found to be.
    #[must_use]
    pub fn status(mut self, status: impl Into<K::Status>) -> Self {
        self.status = Some(status.into());
        self
    }

    /// What a manager applied of an object before: see [`extract`].
    pub fn extract(object: &K, manager: &str) -> Result<Self, ExtractError> {
        extract(object, manager, None)
    }

    /// What a manager applied of the status of an object before: see [`extract`].
    pub fn extract_status(object: &K, manager: &str) -> Result<Self, ExtractError> {
        extract(object, manager, Some("status"))
    }

    /// The whole object, if everything that its type must have is said: as it is in what a server answers.
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
