//! Defaults of FlowSchema and PriorityLevelConfiguration.

use serde_json::Value;

use super::zero_to;
use kubewright_apimachinery::object::Fields as _;

pub(super) fn flow_schema(object: &mut Value) {
    zero_to(object, "spec.matchingPrecedence", 1000);
}

pub(super) fn priority_level(object: &mut Value) {
    if object.has("spec.limited") {
        object.default_at("spec.limited.nominalConcurrencyShares", 30);
        object.default_at("spec.limited.lendablePercent", 0);
        if object.has("spec.limited.limitResponse.queuing") {
            zero_to(object, "spec.limited.limitResponse.queuing.handSize", 8);
            zero_to(object, "spec.limited.limitResponse.queuing.queues", 64);
            zero_to(object, "spec.limited.limitResponse.queuing.queueLengthLimit", 50);
        }
    }
    if object.has("spec.exempt") {
        object.default_at("spec.exempt.nominalConcurrencyShares", 0);
        object.default_at("spec.exempt.lendablePercent", 0);
    }
}
