//! ValidatingWebhookConfiguration.

use super::webhooks;
use crate::kinds::KindRules;

pub(crate) const RULES: KindRules = KindRules { kind: "ValidatingWebhookConfiguration", ..webhooks::RULES };
