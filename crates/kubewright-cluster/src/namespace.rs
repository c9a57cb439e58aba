//! Default objects of namespaces: the ServiceAccount `default` and the ConfigMap `kube-root-ca.crt`.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, ServiceAccount};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubewright_runtime::client::{self, ignore_not_found};
use kubewright_runtime::controller::Watch;
use kubewright_runtime::{Context, Key, Manager, Object, Outcome, Patch, Reconciler, RegisterError, Result};
use serde_json::json;

const ACCOUNT: &str = "default";
const ROOT_CA: &str = "kube-root-ca.crt";
const CERTIFICATE: &str = "ca.crt";
const WHY: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as \
                   the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of \
                   Kubernetes clusters.";

/// Registers the controller of default objects. `root_ca` is the CA certificate of the API server.
pub fn register(manager: &Manager, root_ca: &str) -> Result<(), RegisterError> {
    manager
        .controller(Namespaces { root_ca: root_ca.to_owned() })
        .named("namespace-defaults")
        .watches_with::<ServiceAccount>(Watch::new().fields("metadata.name=default"), |it, _| of(it))
        .watches_with::<ConfigMap>(Watch::new().fields("metadata.name=kube-root-ca.crt"), |it, _| of(it))
        .register()
}

fn of<K: Object>(object: &K) -> Vec<Key> {
    object.meta().namespace.iter().map(|namespace| Key::cluster(namespace)).collect()
}

struct Namespaces {
    root_ca: String,
}

impl Reconciler for Namespaces {
    type Object = Namespace;

    async fn reconcile(&self, namespace: &Namespace, cx: &Context) -> Result<Outcome> {
        if namespace.metadata.deletion_timestamp.is_some() {
            return Ok(Outcome::done());
        }
        // The caches contain only these two names, so read from the API server.
        let (client, name) = (cx.client().uncached(), cx.key().name());
        let account = Key::namespaced(name, ACCOUNT);
        if client.get_opt::<ServiceAccount>(&account).await?.is_none() {
            let account = ServiceAccount { metadata: named(name, ACCOUNT), ..ServiceAccount::default() };
            created(cx.client().create(&account).await)?;
        }
        let data = BTreeMap::from([(CERTIFICATE.to_owned(), self.root_ca.clone())]);
        match client.get_opt::<ConfigMap>(&Key::namespaced(name, ROOT_CA)).await? {
            None => {
                let mut metadata = named(name, ROOT_CA);
                metadata.annotations =
                    Some(BTreeMap::from([("kubernetes.io/description".to_owned(), WHY.to_owned())]));
                let map = ConfigMap { metadata, data: Some(data), ..ConfigMap::default() };
                created(cx.client().create(&map).await)?;
            }
            Some(map) if map.data.as_ref() != Some(&data) => {
                let patch = Patch::json(json!([{ "op": "add", "path": "/data", "value": data }]));
                ignore_not_found(cx.client().patch(&*map, &patch).await)?;
            }
            Some(_) => {}
        }
        Ok(Outcome::done())
    }
}

fn named(namespace: &str, name: &str) -> ObjectMeta {
    ObjectMeta { namespace: Some(namespace.to_owned()), name: Some(name.to_owned()), ..ObjectMeta::default() }
}

/// Ignores `AlreadyExists`, and errors in terminating namespaces.
fn created<K>(result: Result<K, client::Error>) -> Result<()> {
    match result {
        Err(error) if !error.is_already_exists() && !error.is_namespace_terminating() => Err(error.into()),
        _ => Ok(()),
    }
}
