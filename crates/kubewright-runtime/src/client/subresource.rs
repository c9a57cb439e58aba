//! Subresources: status, scale, and others.

use http::{Method, Request};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::unknown::Target;
use super::write::Answer;
use super::{Client, Error, Patch, Writable, path, read};
use crate::query::Query;
use crate::{Gvk, Key, Kind, Object};

/// Access to a subresource, such as `status`.
///
/// [`update`](Self::update), [`patch`](Self::patch) and [`apply`](Self::apply) are for a subresource with the type of
/// its object, such as `status`. The other methods send and return any type, such as a Scale.
///
/// ```no_run
/// # use kubewright_runtime::{Client, Key, Patch};
/// # use k8s_openapi::api::{apps::v1::Deployment, autoscaling::v1::Scale};
/// # async fn example(client: Client, deployment: Deployment) -> Result<(), kubewright_runtime::client::Error> {
/// client.status().update(&deployment).await?;
/// let scale: Scale = client.subresource("scale").get::<Deployment, _>(&Key::of(&deployment)).await?;
/// let patch = Patch::merge(serde_json::json!({ "spec": { "replicas": 3 } }));
/// let scale: Scale = client.subresource("scale").patch_as(&deployment, &patch).await?;
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

    /// Patches the subresource. For a subresource with its own type, use [`patch_as`](Self::patch_as): this method
    /// sends the patch, and then fails to decode the response.
    pub async fn patch<K: Writable>(&self, object: &K, patch: &Patch) -> Result<K, Error> {
        self.client.send_patch(object, patch, Some(self.name)).await.map_err(|error| self.advise(error))
    }

    /// Patches a subresource that has its own type, such as a Scale.
    pub async fn patch_as<K: Writable, P: DeserializeOwned>(
        &self,
        object: &K,
        patch: &Patch,
    ) -> Result<P, Error> {
        let (kind, key) = self.client.locate(object).await?;
        let body = self.client.write_patch(&kind, &key, patch, Some(self.name)).await?;
        self.decode(&kind, &key, &body)
    }

    /// Patches the difference between two states of an object. Returns `None` and sends nothing if there is none.
    pub async fn patch_between<K: Writable>(&self, before: &K, after: &K) -> Result<Option<K>, Error> {
        let patch = Patch::between(before, after)?;
        if patch.is_empty() { Ok(None) } else { self.patch(before, &patch).await.map(Some) }
    }

    /// Server-side apply of the subresource. Takes ownership of conflicting fields.
    pub async fn apply<K: Writable>(&self, wanted: &K) -> Result<K::Stored, Error> {
        let patch = Patch::apply(wanted)?.force();
        self.client.send_patch(wanted, &patch, Some(self.name)).await.map_err(|error| self.advise(error))
    }

    /// Server-side apply of a subresource that has its own type, such as a Scale. Takes ownership of conflicting fields.
    /// The server requires `apiVersion` and `kind` in `part`; types of k8s-openapi have them.
    pub async fn apply_as<K: Writable, P: Serialize + DeserializeOwned>(
        &self,
        object: &K,
        part: &P,
    ) -> Result<P, Error> {
        self.patch_as(object, &Patch::apply(part)?.force()).await
    }

    /// Gets the subresource from the server. It may have its own type.
    pub async fn get<K: Object, P: DeserializeOwned>(&self, key: &Key) -> Result<P, Error> {
        self.fetch(&Kind::of::<K>(), key).await
    }

    /// Gets the subresource of an object whose kind is known only at run time.
    ///
    /// ```no_run
    /// # use kubewright_runtime::{Client, Gvk, Key};
    /// # use kube::api::DynamicObject;
    /// # async fn example(client: Client, key: Key) -> Result<(), kubewright_runtime::client::Error> {
    /// let gvk = Gvk::new("apps", "v1", "Deployment");
    /// let mut scale: DynamicObject = client.subresource("scale").get_dynamic(&gvk, &key).await?;
    /// scale.data["spec"]["replicas"] = 3.into();
    /// client.subresource("scale").replace_dynamic(&gvk, &key, &scale).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn get_dynamic<P: DeserializeOwned>(&self, gvk: &Gvk, key: &Key) -> Result<P, Error> {
        self.fetch(&self.client.kind(gvk).await?, key).await
    }

    /// Replaces a subresource that has its own type, such as a Scale.
    pub async fn replace<K: Object, P: Serialize + DeserializeOwned>(
        &self,
        key: &Key,
        part: &P,
    ) -> Result<P, Error> {
        self.send(Method::PUT, &Kind::of::<K>(), key, part).await
    }

    /// Replaces the subresource of an object whose kind is known only at run time.
    pub async fn replace_dynamic<P: Serialize + DeserializeOwned>(
        &self,
        gvk: &Gvk,
        key: &Key,
        part: &P,
    ) -> Result<P, Error> {
        self.send(Method::PUT, &self.client.kind(gvk).await?, key, part).await
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
        self.send(Method::POST, &Kind::of::<K>(), key, part).await
    }

    /// Posts to a subresource of an object whose kind is known only at run time.
    pub async fn create_dynamic<P: Serialize, A: DeserializeOwned>(
        &self,
        gvk: &Gvk,
        key: &Key,
        part: &P,
    ) -> Result<A, Error> {
        self.send(Method::POST, &self.client.kind(gvk).await?, key, part).await
    }

    /// The error of a response that is not the object, with what to do.
    fn advise(&self, error: Error) -> Error {
        match error {
            Error::Decode { what, source } if self.name != "status" => {
                let name = self.name;
                let what = format!("{what} from {name}; use patch_as or apply_as if {name} has its own type");
                Error::Decode { what, source }
            }
            error => error,
        }
    }

    async fn fetch<P: DeserializeOwned>(&self, kind: &Kind, key: &Key) -> Result<P, Error> {
        let key = self.client.key_in_namespace(kind, key)?;
        let request = Request::get(path(kind, &key, Some(self.name))).body(Vec::new());
        let body = self.client.send(request.map_err(Error::Build)?).await?;
        read(kind, &body)
    }

    async fn send<P: Serialize, A: DeserializeOwned>(
        &self,
        method: Method,
        kind: &Kind,
        key: &Key,
        part: &P,
    ) -> Result<A, Error> {
        let key = self.client.key_in_namespace(kind, key)?;
        let query = self.client.parameters(Query::new(path(kind, &key, Some(self.name))));
        let body = serde_json::to_vec(part)
            .map_err(|source| Error::Encode { what: format!("{} of {}", self.name, kind.name()), source })?;
        let target = Target::Object(key.clone());
        let body = self.client.write(kind, &target, method, query, "application/json", body).await?;
        self.decode(kind, &key, &body)
    }

    /// Decodes the response to a write, and tracks its version.
    fn decode<A: DeserializeOwned>(&self, kind: &Kind, key: &Key, body: &[u8]) -> Result<A, Error> {
        // A subresource has the resourceVersion of its object.
        if let Ok(answer) = read::<Answer>(kind, body) {
            self.client.note_answer(kind, key, &answer.metadata);
        }
        read(kind, body)
    }
}
