//! MutatingAdmissionPolicy: CEL policies that change objects. Evaluates no policy yet.

use super::{Operation, Plugin};

pub(super) struct MutatingAdmissionPolicy;

impl Plugin for MutatingAdmissionPolicy {
    fn name(&self) -> &'static str {
        "MutatingAdmissionPolicy"
    }

    fn handles(&self, _operation: Operation) -> bool {
        false
    }
}
