//! MutatingAdmissionWebhook: webhooks that change objects. Calls no webhook yet.

use super::{Operation, Plugin};

pub(super) struct MutatingAdmissionWebhook;

impl Plugin for MutatingAdmissionWebhook {
    fn name(&self) -> &'static str {
        "MutatingAdmissionWebhook"
    }

    fn handles(&self, _operation: Operation) -> bool {
        false
    }
}
