//! Kinds of storage.k8s.io.

pub(crate) mod csi_driver;
pub(crate) mod csi_node;
pub(crate) mod csi_storage_capacity;
pub(crate) mod storage_class;
pub(crate) mod volume_attachment;
pub(crate) mod volume_attributes_class;

use serde_json::{Map, Value};

use crate::kinds::KindRules;
use kubewright_apimachinery::meta::Check;

/// Rules that most kinds of the group share.
const GROUP: KindRules = KindRules {
    group: "storage.k8s.io",
    kube_finalizers: true,
    update_checks: &[Check::New, Check::Update],
    ..KindRules::DEFAULT
};

/// The size of a map of strings in bytes.
fn size(texts: &Map<String, Value>) -> usize {
    texts.iter().map(|(key, value)| key.len() + value.as_str().unwrap_or_default().len()).sum()
}
