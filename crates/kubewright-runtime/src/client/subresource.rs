//! Subresources: status, scale, and others.

use http::{Method, Request};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::unknown::Target;
use super::write::Answer;
use super::{Client, Error, Patch, Writable, path, read};
use crate::query::Query;
use crate::{Key, Kind, Object};

/// Access to a subresource, such as `status`.
///
/// ```no_run
/// # use kubewright_runtime::{Client, Key};
/// # use k8s_openapi::api::{apps::v1::Deployment, autoscaling::v1::Scale};
/// # async fn example(client: Client, deployment: Deployment) -> Result<(), kubewright_runtime::client::Error> {
/// client.status().update(&deployment).await?;
/// let scale: Scale = client.subresource("scale").get::<Deployment, _>(&Key::of(&deployment)).await?;
/// # Ok(())
/// # }
/// ```
pub struct Subresource<'a> {
    client: &'a Client,
    name: &'a str,
}

impl Client {
    /// The status subresource.
    pub fn status(&self) -> Subresource<'_> {
        self.subresource("status")
    }

    /// A subresource by its name.
    pub fn subresource<'a>(&'a self, name: &'a str) -> Subresource<'a> {
        Subresource { client: self, name }
    }
}

impl Subresource<'_> {
    /// Replaces the subresource. Fails with a conflict if the object changed since it was read.
    pub async fn update<K: Writable>(&self, object: &K) -> Result<K, Error> {
        self.client.replace(object, Some(self.name)).await
    }

    /// Patches the subresource.
    pub async fn patch<K: Writable>(&self, object: &K, patch: &Patch) -> Result<K, Error> {
        self.client.send_patch(object, patch, Some(self.name)).await
    }

    /// Patches the difference between two states of an object. Returns `None` and sends nothing if there is none.
    pub async fn patch_between<K: Writable>(&self, before: &K, after: &K) -> Result<Option<K>, Error> {
        let patch = Patch::between(before, after)?;
        if patch.is_empty() { Ok(None) } else { self.patch(before, &patch).await.map(Some) }
    }

    /// Server-side apply of the subresource. Takes ownership of conflicting fields.
    pub async fn apply<K: Writable>(&self, wanted: &K) -> Result<K::Stored, Error> {
        self.client.send_patch(wanted, &Patch::apply(wanted)?.force(), Some(self.name)).await
    }

    /// Gets the subresource from the server. It may have its own type.
    pub async fn get<K: Object, P: DeserializeOwned>(&self, key: &Key) -> Result<P, Error> {
        let (kind, _, path) = self.path::<K>(key)?;
        let request = Request::get(path).body(Vec::new()).map_err(Error::Build)?;
        let body = self.client.send(request).await?;
        read(&kind, &body)
    }

    /// Replaces a subresource that has its own type, such as a Scale.
    pub async fn replace<K: Object, P: Serialize + DeserializeOwned>(
        &self,
        key: &Key,
        part: &P,
    ) -> Result<P, Error> {
        self.send::<K, P, P>(Method::PUT, key, part).await
    }

    /// Posts to a subresource. Some respond with the subresource, such as a TokenRequest; others with a
    /// [`Status`](kube::core::Status), such as an Eviction or a Binding.
    ///
    /// ```no_run
    /// # use kubewright_runtime::{Client, Key};
    /// # use k8s_openapi::api::{core::v1::Pod, policy::v1::Eviction};
    /// # use kube::core::Status;
    /// # async fn example(client: Client, pod: Key) -> Result<(), kubewright_runtime::client::Error> {
    /// let eviction = Eviction::default();
    /// client.subresource("eviction").create::<Pod, _, Status>(&pod, &eviction).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn create<K: Object, P: Serialize, A: DeserializeOwned>(
        &self,
        key: &Key,
        part: &P,
    ) -> Result<A, Error> {
        self.send::<K, P, A>(Method::POST, key, part).await
    }

    async fn send<K: Object, P: Serialize, A: DeserializeOwned>(
        &self,
        method: Method,
        key: &Key,
        part: &P,
    ) -> Result<A, Error> {
        let (kind, key, path) = self.path::<K>(key)?;
        let query = self.client.parameters(Query::new(path));
        let body = serde_json::to_vec(part)
            .map_err(|source| Error::Encode { what: format!("{} of {}", self.name, kind.name()), source })?;
        let target = Target::Object(key);
        let body = self.client.write(&kind, &target, method, query, "application/json", body).await?;
        // A subresource has the resourceVersion of its object.
        if let (Ok(answer), Target::Object(key)) = (read::<Answer>(&kind, &body), &target) {
            self.client.note_answer(&kind, key, &answer.metadata);
        }
        read(&kind, &body)
    }

    fn path<K: Object>(&self, key: &Key) -> Result<(Kind, Key, String), Error> {
        let kind = Kind::of::<K>();
        let key = self.client.key_in_namespace(&kind, key)?;
        let path = path(&kind, &key, Some(self.name));
        Ok((kind, key, path))
    }
}
