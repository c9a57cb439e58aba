//! MutatingAdmissionPolicyBinding.

use super::policy;
use crate::kinds::KindRules;

pub(crate) const RULES: KindRules = KindRules {
    kind: "MutatingAdmissionPolicyBinding",
    defaults: policy::binding_defaults,
    validate: policy::binding,
    validate_update: |new, _| policy::binding(new),
    cells: policy::binding_cells,
    ..super::GROUP
};
