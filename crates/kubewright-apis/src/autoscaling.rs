//! Kinds of autoscaling.

pub(crate) mod horizontal_pod_autoscaler;
pub(crate) mod scale;

use crate::kinds::KindRules;

/// Rules that both kinds share.
const GROUP: KindRules = KindRules { group: "autoscaling", kube_finalizers: true, ..KindRules::DEFAULT };
