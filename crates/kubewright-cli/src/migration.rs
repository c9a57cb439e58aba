//! Storage version migration: rewrites every object in the storage version of its CRD, then trims
//! `status.storedVersions`.
//!
//! Invariant: `status.storedVersions` is trimmed only after every object that existed at the start was
//! rewritten, and only if the storage version is unchanged. Progress is kept in an annotation of the CRD, so
//! an interrupted migration resumes.

use anyhow::{Context as _, Result, anyhow, bail};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use crate::error::Hint as _;

/// Annotation with the target version, the generation of the CRD and the continue token, as JSON.
const PROGRESS: &str = "kubewright.dev/storage-migration";
/// Objects per list request.
const PAGE: u32 = 500;

/// A CRD whose objects may be stored in several versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Migration {
    /// Name of the CRD.
    pub(crate) name: String,
    /// The storage version.
    pub(crate) storage: String,
    /// `status.storedVersions`.
    pub(crate) stored: Vec<String>,
}

/// Finds the CRDs that list more than their storage version: the given ones, or all if `names` is empty.
pub(crate) async fn find(client: &kube::Client, names: &[String]) -> Result<Vec<Migration>> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let mut crds = Vec::new();
    if names.is_empty() {
        crds.extend(api.list(&ListParams::default()).await.context("cannot list CustomResourceDefinitions")?);
    }
    for name in names {
        let crd = api.get_opt(name).await.with_context(|| format!("cannot read the CRD {name}"))?;
        let missing = || anyhow!("CRD {name} not found").hint("list CRDs with `kubectl get crds`");
        crds.push(crd.ok_or_else(missing)?);
    }
    let needed = crds.iter().filter_map(Migration::of);
    Ok(needed.filter(|migration| migration.stored != [migration.storage.clone()]).collect())
}

impl Migration {
    fn of(crd: &CustomResourceDefinition) -> Option<Self> {
        let storage = crd.spec.versions.iter().find(|version| version.storage)?;
        Some(Self {
            name: crd.metadata.name.clone()?,
            storage: storage.name.clone(),
            stored: crd.status.as_ref()?.stored_versions.clone().unwrap_or_default(),
        })
    }

    /// Rewrites every object and trims `status.storedVersions`. Returns the number of objects. `progress` is
    /// called after each page.
    pub(crate) async fn run(&self, client: &kube::Client, progress: impl Fn(usize)) -> Result<usize> {
        self.run_in_pages(client, PAGE, progress).await
    }

    async fn run_in_pages(
        &self,
        client: &kube::Client,
        size: u32,
        progress: impl Fn(usize),
    ) -> Result<usize> {
        let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
        let crd = crds.get(&self.name).await.with_context(|| format!("cannot read the CRD {}", self.name))?;
        let mut kind = ApiResource::from_gvk(&GroupVersionKind::gvk(
            &crd.spec.group,
            &self.storage,
            &crd.spec.names.kind,
        ));
        kind.plural.clone_from(&crd.spec.names.plural);
        let all: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
        let mut position = self.resumed(&crd);
        let mut written = 0;
        loop {
            let mut page = ListParams::default().limit(size);
            page.continue_token.clone_from(&position);
            let objects = match all.list(&page).await {
                // The continue token expired: start over, which only repeats writes.
                Err(kube::Error::Api(status)) if status.code == 410 && position.is_some() => {
                    position = None;
                    continue;
                }
                listed => listed.with_context(|| format!("cannot list {}", self.name))?,
            };
            position = objects.metadata.continue_.filter(|token| !token.is_empty());
            for object in objects.items {
                written += usize::from(self.rewrite(client, &kind, object).await?);
            }
            progress(written);
            let Some(position) = &position else { break };
            self.remember(&crds, Some((crd.metadata.generation, position))).await?;
        }
        self.trim(&crds).await?;
        Ok(written)
    }

    /// Rewrites an object unchanged. Returns false if it was deleted meanwhile.
    async fn rewrite(
        &self,
        client: &kube::Client,
        kind: &ApiResource,
        mut object: DynamicObject,
    ) -> Result<bool> {
        let name = object.metadata.name.clone().unwrap_or_default();
        let api: Api<DynamicObject> = match &object.metadata.namespace {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, kind),
            None => Api::all_with(client.clone(), kind),
        };
        loop {
            match api.replace(&name, &PostParams::default(), &object).await {
                Ok(_) => return Ok(true),
                Err(kube::Error::Api(status)) if status.code == 404 => return Ok(false),
                // Another client wrote it, which stored it in the storage version. Its schema may be newer,
                // so write again.
                Err(kube::Error::Api(status)) if status.code == 409 => {
                    match api
                        .get_opt(&name)
                        .await
                        .with_context(|| format!("cannot read {} {name}", self.name))?
                    {
                        Some(now) => object = now,
                        None => return Ok(false),
                    }
                }
                Err(error) => {
                    return Err(error)
                        .with_context(|| format!("cannot write {} {name}", self.name))
                        .hint("make the object valid in the storage version, then repeat the command");
                }
            }
        }
    }

    /// The continue token of an interrupted migration to the same version. The generation must be the same: if the storage
    /// version changed in between, objects before the token may be stored in another version again.
    fn resumed(&self, crd: &CustomResourceDefinition) -> Option<String> {
        let text = crd.metadata.annotations.as_ref()?.get(PROGRESS)?;
        let kept: Value = serde_json::from_str(text).ok()?;
        let is_same =
            kept["version"] == self.storage.as_str() && kept["generation"] == json!(crd.metadata.generation);
        is_same.then(|| kept["continue"].as_str().map(str::to_owned))?
    }

    /// Stores the generation of the CRD and the continue token, or removes them.
    async fn remember(
        &self,
        crds: &Api<CustomResourceDefinition>,
        position: Option<(Option<i64>, &str)>,
    ) -> Result<()> {
        let kept = position.map(|(generation, token)| {
            json!({ "version": self.storage, "generation": generation, "continue": token }).to_string()
        });
        let patch = json!({ "metadata": { "annotations": { PROGRESS: kept } } });
        let patched = crds.patch(&self.name, &PatchParams::default(), &Patch::Merge(patch)).await;
        patched.map(|_| ()).with_context(|| format!("cannot store the progress in the CRD {}", self.name))
    }

    async fn trim(&self, crds: &Api<CustomResourceDefinition>) -> Result<()> {
        self.remember(crds, None).await?;
        let crd = crds.get(&self.name).await.with_context(|| format!("cannot read the CRD {}", self.name))?;
        if Self::of(&crd).is_none_or(|now| now.storage != self.storage) {
            bail!("the storage version of {} changed during the migration; repeat the command", self.name);
        }
        // The resourceVersion detects a change of the CRD between the check and the write.
        let patch = json!({
            "metadata": { "resourceVersion": crd.metadata.resource_version },
            "status": { "storedVersions": [self.storage] },
        });
        crds.patch_status(&self.name, &PatchParams::default(), &Patch::Merge(patch))
            .await
            .with_context(|| format!("cannot set status.storedVersions of {}", self.name))
            .hint("repeat the command")?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::panic::AssertUnwindSafe;

    use futures_util::FutureExt as _;
    use kubewright_apiserver::{ApiServer, Options};

    use super::*;

    const CRD: &str = "orders.example.com";
    const OBJECTS: usize = 25;
    const PAGES: u32 = 10;

    fn crd(storage: &str) -> CustomResourceDefinition {
        let version = |name: &str| {
            json!({
                "name": name, "served": true, "storage": name == storage,
                "schema": { "openAPIV3Schema": { "type": "object" } },
            })
        };
        let crd = json!({
            "metadata": { "name": CRD },
            "spec": {
                "group": "example.com", "scope": "Namespaced",
                "names": { "kind": "Order", "plural": "orders" },
                "versions": [version("v1"), version("v2")],
            },
        });
        serde_json::from_value(crd).unwrap()
    }

    /// A server with objects that are stored as v1.
    async fn cluster() -> kube::Client {
        let client = kube::Client::new(ApiServer::new(Options::default()), "default");
        Api::all(client.clone()).create(&PostParams::default(), &crd("v1")).await.unwrap();
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Order"));
        let orders: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), &kind);
        for number in 0..OBJECTS {
            let order = DynamicObject::new(&format!("order-{number:02}"), &kind);
            orders.create(&PostParams::default(), &order).await.unwrap();
        }
        client
    }

    async fn set_storage(client: &kube::Client, version: &str) {
        let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
        let versions = json!({ "spec": { "versions": crd(version).spec.versions } });
        crds.patch(CRD, &PatchParams::default(), &Patch::Merge(versions)).await.unwrap();
    }

    async fn found(client: &kube::Client) -> Migration {
        let [migration] = find(client, &[CRD.to_owned()]).await.unwrap().try_into().unwrap();
        migration
    }

    async fn migrate(client: &kube::Client) -> usize {
        found(client).await.run_in_pages(client, PAGES, |_| {}).await.unwrap()
    }

    /// A migration that crashes after the second page.
    async fn interrupted(client: &kube::Client) {
        let migration = found(client).await;
        let pages = Cell::new(0);
        let crash = |_| {
            pages.set(pages.get() + 1);
            assert!(pages.get() < 2, "the test wants this");
        };
        let run = migration.run_in_pages(client, PAGES, crash);
        AssertUnwindSafe(run).catch_unwind().await.unwrap_err();
    }

    async fn stored(client: &kube::Client) -> Vec<String> {
        let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
        let crd = crds.get(CRD).await.unwrap();
        assert!(crd.metadata.annotations.is_none_or(|all| !all.contains_key(PROGRESS)));
        crd.status.unwrap().stored_versions.unwrap()
    }

    #[tokio::test]
    async fn all_pages_are_migrated() {
        let client = cluster().await;
        set_storage(&client, "v2").await;
        assert_eq!(migrate(&client).await, OBJECTS);
        assert_eq!(stored(&client).await, ["v2"]);
        assert_eq!(find(&client, &[]).await.unwrap(), []);
    }

    #[tokio::test]
    async fn an_interrupted_migration_resumes_after_the_last_recorded_page() {
        let client = cluster().await;
        set_storage(&client, "v2").await;
        interrupted(&client).await;
        assert_eq!(found(&client).await.stored, ["v1", "v2"], "not trimmed");
        assert_eq!(migrate(&client).await, OBJECTS - PAGES as usize);
        assert_eq!(stored(&client).await, ["v2"]);
    }

    #[tokio::test]
    async fn a_migration_starts_over_after_the_storage_version_changed_in_between() {
        let client = cluster().await;
        set_storage(&client, "v2").await;
        interrupted(&client).await;
        // Objects of the first page may now be stored as v1 again.
        set_storage(&client, "v1").await;
        set_storage(&client, "v2").await;
        assert_eq!(migrate(&client).await, OBJECTS);
        assert_eq!(stored(&client).await, ["v2"]);
    }
}
