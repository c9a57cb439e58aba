//! MutatingWebhookConfiguration.

use super::webhooks;
use crate::kinds::KindRules;
use kubewright_apimachinery::object::Fields as _;

pub(crate) const RULES: KindRules = KindRules {
    kind: "MutatingWebhookConfiguration",
    defaults: |object| {
        webhooks::webhooks(object).for_each(|hook| {
            webhooks::webhook(hook);
            hook.default_at("reinvocationPolicy", "Never");
        });
    },
    ..webhooks::RULES
};
