//! ValidatingAdmissionWebhook: webhooks that refuse requests. Calls no webhook yet.

use super::{Operation, Plugin};

pub(super) struct ValidatingAdmissionWebhook;

impl Plugin for ValidatingAdmissionWebhook {
    fn name(&self) -> &'static str {
        "ValidatingAdmissionWebhook"
    }

    fn handles(&self, _operation: Operation) -> bool {
        false
    }
}
