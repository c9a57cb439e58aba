//! Kinds of batch.

pub(crate) mod cron_job;
pub(crate) mod job;

use crate::kinds::KindRules;
use crate::strategy::{keep_status_and_count, reset_status_and_generation};
use kubewright_apimachinery::meta::Check;

/// Rules that both kinds share.
const GROUP: KindRules = KindRules {
    group: "batch",
    prepare_create: reset_status_and_generation,
    prepare_update: keep_status_and_count,
    kube_finalizers: true,
    update_checks: &[Check::New, Check::Update],
    ..KindRules::DEFAULT
};
