//! ValidatingAdmissionPolicy: CEL policies that refuse requests. Evaluates no policy yet.

use super::{Operation, Plugin};

pub(super) struct ValidatingAdmissionPolicy;

impl Plugin for ValidatingAdmissionPolicy {
    fn name(&self) -> &'static str {
        "ValidatingAdmissionPolicy"
    }

    fn handles(&self, _operation: Operation) -> bool {
        false
    }
}
