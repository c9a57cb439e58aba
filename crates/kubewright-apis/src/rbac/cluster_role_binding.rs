//! ClusterRoleBinding.

use super::role_binding::{binding, binding_update, cells, defaults};
use crate::kinds::KindRules;

pub(crate) const RULES: KindRules = KindRules {
    kind: "ClusterRoleBinding",
    defaults,
    validate: |object| binding(object, KINDS),
    validate_update: |new, old| binding_update(new, old, KINDS),
    cells,
    ..super::GROUP
};

/// The kinds that a ClusterRoleBinding may refer to.
const KINDS: &[&str] = &["ClusterRole"];
