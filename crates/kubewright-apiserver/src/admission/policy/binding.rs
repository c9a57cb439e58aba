//! Compiled bindings of admission policies.

use kubewright_apimachinery::object::Fields as _;
use serde_json::Value;

use crate::admission::Attributes;
use crate::admission::webhook::{Compile, Criteria, is_exempt_from_policies};

/// A ValidatingAdmissionPolicyBinding or MutatingAdmissionPolicyBinding.
pub(crate) struct Binding {
    pub(crate) name: String,
    pub(crate) policy: String,
    pub(crate) criteria: Criteria,
    /// `validationActions`.
    pub(crate) actions: Vec<String>,
    /// `paramRef`, or null.
    pub(crate) param_ref: Value,
}

impl Compile for Binding {
    fn compile(object: &Value) -> Vec<Self> {
        let spec = object.at("spec");
        let actions = spec.list_at("validationActions").iter();
        vec![Self {
            name: object.str_at("metadata.name").to_owned(),
            policy: spec.str_at("policyName").to_owned(),
            criteria: Criteria::of_match_resources(spec.at("matchResources")),
            actions: actions.filter_map(|action| action.as_str().map(str::to_owned)).collect(),
            param_ref: spec.at("paramRef").clone(),
        }]
    }

    fn criteria(&self) -> &Criteria {
        &self.criteria
    }

    fn is_exempt(attributes: &Attributes<'_>) -> bool {
        is_exempt_from_policies(attributes)
    }
}
