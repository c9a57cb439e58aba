//! Recipe: a resource outside of the cluster.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kubewright::prelude::*;
use kubewright::tokio::sync::mpsc;
use kubewright::{Context, Key, Result};
use serde::{Deserialize, Serialize};

/// How often a record is compared with the DNS server, which reports no changes.
const POLL: Duration = Duration::from_mins(5);

#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(group = "example.com", version = "v1", kind = "Record", namespaced)]
pub struct RecordSpec {
    pub address: String,
}

/// The records of a DNS server. A real client sends requests and returns errors.
#[derive(Clone, Default)]
pub struct Dns(Arc<Mutex<BTreeMap<String, String>>>);

impl Dns {
    pub fn records(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub struct RecordReconciler {
    pub dns: Dns,
}

impl Reconciler for RecordReconciler {
    type Object = Record;

    async fn reconcile(&self, record: &Record, cx: &Context) -> Result<Outcome> {
        // A name that follows from the key is found again after a crash.
        let name = cx.key().to_string();
        let mut records = self.dns.records();
        if records.get(&name) != Some(&record.spec.address) {
            records.insert(name, record.spec.address.clone());
        }
        Ok(Outcome::requeue_after(POLL))
    }
}

/// `changed` has the keys of records that another program reports as changed.
pub fn register(manager: &Manager, dns: Dns, changed: mpsc::Receiver<Key>) -> Result<()> {
    manager.controller(RecordReconciler { dns }).channel(changed).requeue_jitter(0.1).register()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use anyhow::ensure;
    use kubewright_envtest::{Environment, Mode, eventually};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_changed_record_is_corrected_by_a_poll_and_by_a_notification() -> Result<()> {
        let env = Environment::builder().mode(Mode::Embedded).crd::<Record>().start().await?;
        let (manager, dns) = (env.manager("records")?, Dns::default());
        let (changed, receiver) = mpsc::channel(1);
        register(&manager, dns.clone(), receiver)?;
        let running = env.run(manager);
        let record =
            "{apiVersion: example.com/v1, kind: Record, metadata: {name: www}, spec: {address: 192.0.2.1}}";
        env.apply_yaml("default", record).await?;
        let corrected = async || {
            let now = dns.records().get("default/www").cloned();
            ensure!(now.as_deref() == Some("192.0.2.1"), "{now:?}");
            Ok(())
        };
        eventually(Duration::from_secs(30), corrected).await?;

        dns.records().insert("default/www".into(), "203.0.113.9".into());
        assert!(eventually(Duration::from_mins(1), corrected).await.is_err(), "corrected before the poll");
        eventually(POLL + POLL, corrected).await?;

        dns.records().remove("default/www");
        changed.send(Key::namespaced("default", "www")).await?;
        eventually(Duration::from_secs(30), corrected).await?;
        Ok(running.stop().await?)
    }
}
