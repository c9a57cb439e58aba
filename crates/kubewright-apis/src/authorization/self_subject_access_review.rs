//! SelfSubjectAccessReview.

use super::review_spec::attributes;
use crate::kinds::KindRules;
use kubewright_apimachinery::object::Fields as _;

pub(crate) const RULES: KindRules = KindRules {
    kind: "SelfSubjectAccessReview",
    validate: |object| attributes(object.at("spec")),
    ..super::GROUP
};
