//! Kinds of apps.

pub(crate) mod controller_revision;
pub(crate) mod daemon_set;
pub(crate) mod deployment;
pub(crate) mod replica_set;
pub(crate) mod stateful_set;

use crate::kinds::KindRules;
use crate::strategy::{keep_status_and_count, reset_status_and_generation};
use kubewright_apimachinery::meta::Check;

/// Rules that most kinds of the group share.
const GROUP: KindRules = KindRules {
    group: "apps",
    prepare_create: reset_status_and_generation,
    prepare_update: keep_status_and_count,
    kube_finalizers: true,
    update_checks: &[Check::New, Check::Update],
    ..KindRules::DEFAULT
};
