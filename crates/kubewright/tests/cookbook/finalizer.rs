//! Recipe: a finalizer.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use kubewright::finalizer::{self, Event};
use kubewright::prelude::*;
use kubewright::{Context, Key, Result};
use serde::{Deserialize, Serialize};

const FINALIZER: &str = "example.com/bucket";

#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(group = "example.com", version = "v1", kind = "Bucket", namespaced)]
pub struct BucketSpec {
    pub region: String,
}

/// The buckets of an object store. A real client sends requests and returns errors.
#[derive(Clone, Default)]
pub struct Store(Arc<Mutex<BTreeSet<String>>>);

impl Store {
    fn ensure(&self, name: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(name);
    }

    /// Succeeds if the bucket does not exist, because a cleanup can run more than once.
    fn remove(&self, name: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
    }
}

pub struct BucketReconciler {
    pub store: Store,
}

impl Reconciler for BucketReconciler {
    type Object = Bucket;

    async fn reconcile(&self, bucket: &Bucket, cx: &Context) -> Result<Outcome> {
        finalizer::run(cx.client(), bucket, FINALIZER, async |event| {
            match event {
                Event::Apply(bucket) => self.store.ensure(bucket.name_any()),
                Event::Cleanup(bucket) => self.store.remove(&bucket.name_any()),
            }
            Ok(Outcome::done())
        })
        .await
    }
}

pub fn register(manager: &Manager, store: Store) -> Result<()> {
    manager.controller(BucketReconciler { store }).finalizer(FINALIZER).register()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use anyhow::ensure;
    use kubewright_envtest::{Environment, eventually};

    use super::*;

    const BUCKET: &str =
        "{apiVersion: example.com/v1, kind: Bucket, metadata: {name: logs}, spec: {region: eu}}";

    #[tokio::test]
    async fn the_bucket_is_removed_before_its_object() -> Result<()> {
        let env = Environment::builder().crd::<Bucket>().start().await?;
        let (manager, store, client) = (env.manager("buckets")?, Store::default(), env.runtime_client());
        register(&manager, store.clone())?;
        let running = env.run(manager);
        let key = Key::namespaced("default", "logs");
        let stored = |store: &Store| store.0.lock().unwrap().contains("logs");

        env.apply_yaml("default", BUCKET).await?;
        eventually(Duration::from_secs(30), async || {
            ensure!(stored(&store), "no bucket");
            Ok(())
        })
        .await?;
        assert_eq!(client.get::<Bucket>(&key).await?.finalizers(), [FINALIZER]);

        client.delete(&*client.get::<Bucket>(&key).await?).await?;
        eventually(Duration::from_secs(30), async || {
            ensure!(client.get_opt::<Bucket>(&key).await?.is_none(), "the object exists");
            Ok(())
        })
        .await?;
        assert!(!stored(&store), "the bucket was not removed");
        Ok(running.stop().await?)
    }
}
