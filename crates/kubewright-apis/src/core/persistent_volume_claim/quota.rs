//! Storage usage of claims for ResourceQuota.

use serde_json::Value;

use crate::quota::{Amounts, Quota, whole};
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::quantity::Quantity;

pub(super) const QUOTA: Quota = Quota {
    measures: |name| name == "requests.storage" || name.contains(STORAGE_CLASS),
    usage: Some(usage),
    ..Quota::counted("persistentvolumeclaims")
};

const STORAGE_CLASS: &str = ".storageclass.storage.k8s.io/";

fn usage(object: &Value, _: i64) -> Amounts {
    let mut used = Amounts::new();
    claim(object, &mut used);
    used
}

fn claim(object: &Value, used: &mut Amounts) {
    let class = match object.at("metadata.annotations")["volume.beta.kubernetes.io/storage-class"].as_str() {
        Some(class) => class,
        None => object.str_at("spec.storageClassName"),
    };
    let mut charge = |name: &str, much: Quantity| {
        if !class.is_empty() {
            used.insert(format!("{class}{STORAGE_CLASS}{name}"), much.clone());
        }
        used.insert(name.to_owned(), much);
    };
    charge("persistentvolumeclaims", whole(1));
    let asked = object.at("spec.resources.requests.storage");
    if let Some(much) = Quantity::from_json(asked).ok().filter(|_| !asked.is_null()) {
        charge("requests.storage", much);
    }
}
