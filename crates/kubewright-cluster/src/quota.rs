//! The ResourceQuota controller: recomputes the used resources.
//!
//! The API server charges quotas on admission; this controller counts existing objects and thereby releases
//! usage. It reads the quota before the objects and writes with optimistic locking, so concurrent admissions
//! are not lost. Both reads bypass the cache, which may lag behind admission.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{
    ConfigMap, PersistentVolumeClaim, Pod, ResourceQuota, ResourceQuotaStatus, Secret, Service,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Text;
use kube::api::DynamicObject;
use kube::core::PartialObjectMeta;
use kubewright_apimachinery::quantity::{Notation, Quantity};
use kubewright_apis::quota::{self, Amounts};
use kubewright_runtime::controller::{Predicate, Watch};
use kubewright_runtime::{
    Cache, Context, Gvk, Key, ListOptions, Manager, Object, Outcome, Patch, Reconciler, RegisterError,
    Result, client,
};

use crate::pod;

/// Resources whose objects are watched.
const WATCHED: [&str; 11] = [
    "pods",
    "services",
    "persistentvolumeclaims",
    "configmaps",
    "secrets",
    "deployments.apps",
    "replicasets.apps",
    "statefulsets.apps",
    "daemonsets.apps",
    "jobs.batch",
    "cronjobs.batch",
];
/// Resync period for resources that are not watched, and for terminating pods.
const RESYNC: Duration = Duration::from_secs(30);

/// Registers the ResourceQuota controller.
pub fn register(manager: &Manager) -> Result<(), RegisterError> {
    manager
        .controller(Quotas)
        .named("resourcequota")
        .watches_with::<Pod>(Watch::new().filter(created_or_deleted().or(ends())), in_namespace)
        .watches::<Service>(in_namespace)
        .watches::<PersistentVolumeClaim>(in_namespace)
        .watches_with::<PartialObjectMeta<ConfigMap>>(Watch::new().filter(created_or_deleted()), in_namespace)
        .watches_with::<PartialObjectMeta<Secret>>(Watch::new().filter(created_or_deleted()), in_namespace)
        .watches_with::<Deployment>(Watch::new().filter(created_or_deleted()), in_namespace)
        .watches_with::<ReplicaSet>(Watch::new().filter(created_or_deleted()), in_namespace)
        .watches_with::<StatefulSet>(Watch::new().filter(created_or_deleted()), in_namespace)
        .watches_with::<DaemonSet>(Watch::new().filter(created_or_deleted()), in_namespace)
        .watches_with::<Job>(Watch::new().filter(created_or_deleted()), in_namespace)
        .watches_with::<CronJob>(Watch::new().filter(created_or_deleted()), in_namespace)
        .register()
}

fn created_or_deleted<K: Object>() -> Predicate<K> {
    Predicate::new(|event| !event.is_update())
}

/// Finished pods do not count, so their update triggers a sync.
fn ends() -> Predicate<Pod> {
    Predicate::new(|event| {
        let is_over = |pod: Option<Arc<Pod>>| pod.is_some_and(|pod| pod::is_terminal(&pod));
        is_over(event.new_object()) && !is_over(event.old())
    })
}

/// The quotas in the namespace of an object.
fn in_namespace<K: Object>(object: &K, cache: &Cache) -> Vec<Key> {
    let namespace = object.meta().namespace.clone().unwrap_or_default();
    let quotas = cache.list::<ResourceQuota>(&ListOptions::namespace(namespace)).unwrap_or_default();
    quotas.iter().map(|quota| Key::of(&**quota)).collect()
}

struct Quotas;

impl Reconciler for Quotas {
    type Object = ResourceQuota;

    async fn reconcile(&self, _: &ResourceQuota, cx: &Context) -> Result<Outcome> {
        let fresh = cx.client().uncached();
        let Some(quota) = fresh.get_opt::<ResourceQuota>(cx.key()).await? else { return Ok(Outcome::done()) };
        let hard = quota.spec.as_ref().and_then(|spec| spec.hard.clone()).unwrap_or_default();
        let mut used: Amounts =
            hard.keys().map(|name| (name.clone(), Quantity::new(0, Notation::DecimalSi))).collect();
        let mut kinds: Vec<&str> = hard.keys().filter_map(|name| quota::kind_of(name)).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let mut again = false;
        let shown = serde_json::to_value(&*quota)?;
        for kind in kinds {
            again |= !WATCHED.contains(&kind);
            let Some(objects) = list(kind, cx).await? else {
                // The usage of an unserved kind is unknown. It is counted once its CRD exists.
                used.retain(|name, _| quota::kind_of(name) != Some(kind));
                continue;
            };
            for object in objects {
                again |= kind == "pods" && object.metadata.deletion_timestamp.is_some();
                let object = serde_json::to_value(&*object)?;
                if quota::is_in_scope(&shown, kind, &object) {
                    let mut own = quota::usage(kind, &object, cx.now().as_second());
                    own.retain(|name, _| used.contains_key(name));
                    quota::add(&mut used, &own);
                }
            }
        }
        write(&quota, hard, &used, cx).await?;
        Ok(if again { Outcome::requeue_after(RESYNC) } else { Outcome::done() })
    }
}

async fn write(
    quota: &ResourceQuota,
    hard: BTreeMap<String, Text>,
    used: &Amounts,
    cx: &Context,
) -> Result<(), client::Error> {
    let used = used.iter().map(|(name, much)| (name.clone(), Text(much.to_string()))).collect();
    let mut wanted = quota.clone();
    wanted.status = Some(ResourceQuotaStatus { hard: Some(hard), used: Some(used) });
    let patch = Patch::between(quota, &wanted)?;
    if patch.is_empty() {
        return Ok(());
    }
    let version = quota.metadata.resource_version.as_deref().unwrap_or_default();
    match cx.client().status().patch(quota, &patch.optimistic(version)).await {
        // A concurrent change triggers another sync.
        Err(error) if !error.is_conflict() && !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}

/// The objects of a kind in the namespace of the quota; `None` if the kind is not served.
async fn list(kind: &str, cx: &Context) -> Result<Option<Vec<Arc<DynamicObject>>>> {
    let Some(gvk) = served(kind, cx).await? else { return Ok(None) };
    let namespace = cx.key().namespace().unwrap_or_default();
    Ok(Some(cx.client().uncached().list_dynamic(&gvk, &ListOptions::namespace(namespace)).await?))
}

/// The kind of a resource such as `deployments.apps`.
async fn served(resource: &str, cx: &Context) -> Result<Option<Gvk>> {
    // Common case without discovery.
    if resource == "pods" {
        return Ok(Some(Gvk::new("", "v1", "Pod")));
    }
    let kube = cx.client().kube();
    let (plural, group) = resource.split_once('.').unwrap_or((resource, ""));
    let (version, known) = if group.is_empty() {
        ("v1".to_owned(), kube.list_core_api_resources("v1").await?)
    } else {
        let groups = kube.list_api_groups().await?.groups;
        let found = groups.into_iter().find(|it| it.name == group);
        let Some(preferred) = found.and_then(|it| it.preferred_version.or(it.versions.into_iter().next()))
        else {
            return Ok(None);
        };
        (preferred.version, kube.list_api_group_resources(&preferred.group_version).await?)
    };
    let found = known.resources.into_iter().find(|it| it.name == plural && it.namespaced);
    Ok(found.map(|it| Gvk::new(group, version, it.kind)))
}
