//! The table of built-in kinds with rules of their own: one [`KindRules`] per kind.
//!
//! The folder of a kind, `<group>/<kind>`, contains its rules and defines its row. [`rules`] is the only place that
//! finds rules by group and kind. A kind without a row has the rules of [`KindRules::DEFAULT`].

use serde_json::Value;

use crate::quota::Quota;
use crate::registry::RegistryRules;
use crate::reset_fields::ResetFields;
use crate::selectable::Selectable;
use crate::table::row::Row;
use crate::{
    admissionregistration, apiextensions, apiregistration, apps, authorization, autoscaling, batch,
    certificates, coordination, core, discovery, events, flowcontrol, networking, node, policy, rbac,
    resource, scheduling, storage, strategy, table,
};
use kubewright_apimachinery::field::ErrorList;
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::meta::{Check, NameRule};

/// The rules of one kind. Each field is one stage of a request.
pub(crate) struct KindRules {
    /// The API group; empty for core.
    pub(crate) group: &'static str,
    pub(crate) kind: &'static str,
    /// The version, if the versions of the kind have different fields.
    pub(crate) version: Option<&'static str>,

    /// Sets the defaults.
    pub(crate) defaults: fn(&mut Value),
    /// Prepares a new object.
    pub(crate) prepare_create: fn(&mut Value),
    /// Prepares an object that replaces the second one.
    pub(crate) prepare_update: fn(&mut Value, &Value),
    /// Prepares an update of a subresource.
    pub(crate) prepare_subresource: fn(&str, &mut Value, &Value),
    /// Warnings about a new object, or about one that replaces the second one.
    pub(crate) warnings: fn(&Value, Option<&Value>) -> Vec<String>,

    /// The rule for `metadata.name`, which may depend on the spec.
    pub(crate) name: fn(&Value) -> NameRule,
    /// Whether finalizers must be qualified or known. A few kinds use only the generic rules.
    pub(crate) kube_finalizers: bool,
    /// The metadata checks on update, in upstream's order.
    pub(crate) update_checks: &'static [Check],
    /// The metadata checks on an update of a subresource.
    pub(crate) subresource_checks: fn(&str) -> &'static [Check],
    /// Validates a new object, except its metadata.
    pub(crate) validate: fn(&Value) -> ErrorList,
    /// Validates an object that replaces the second one, except its metadata.
    pub(crate) validate_update: fn(&Value, &Value) -> ErrorList,
    /// Validates an update of a subresource, except the metadata.
    pub(crate) validate_subresource: fn(&str, &Value, &Value) -> ErrorList,

    /// The fields that the endpoint of a subresource ignores, or that of the object if it is empty. `None` stands for
    /// the generic rule.
    pub(crate) reset_fields: fn(&str) -> Option<ResetFields>,
    /// The supported field labels, if they are other than name and namespace.
    pub(crate) selectable: Option<&'static Selectable>,
    /// The cells of a table row.
    pub(crate) cells: fn(&Row<'_>) -> Vec<Value>,
    /// The fields that `cells` and `row_conditions` read, if parsing only these is worthwhile.
    pub(crate) cell_paths: Option<&'static [&'static str]>,
    /// The `conditions` of a table row.
    pub(crate) row_conditions: fn(&Value) -> Option<Value>,
    /// Sorts the rows of a table.
    pub(crate) sort_rows: Option<fn(&mut [&Value])>,
    /// Converts an object of another version or view to this one.
    pub(crate) convert: Option<fn(Value) -> Value>,
    /// Usage for ResourceQuota other than the object count.
    pub(crate) quota: Option<&'static Quota>,
    /// How objects are stored and deleted.
    pub(crate) registry: RegistryRules,
}

impl KindRules {
    /// The rules of a kind without a row. Rows override them.
    pub(crate) const DEFAULT: Self = Self {
        group: "",
        kind: "",
        version: None,
        defaults: |_| {},
        prepare_create: |_| {},
        prepare_update: |_, _| {},
        prepare_subresource: strategy::keep_spec,
        warnings: |_, _| Vec::new(),
        name: |_| NameRule::DnsSubdomain,
        kube_finalizers: false,
        update_checks: &[Check::Update],
        subresource_checks: |_| &[Check::Update],
        validate: |_| ErrorList::new(),
        validate_update: |_, _| ErrorList::new(),
        validate_subresource: |_, _, _| ErrorList::new(),
        reset_fields: |_| None,
        selectable: None,
        cells: table::name_and_creation,
        cell_paths: None,
        row_conditions: |_| None,
        sort_rows: None,
        convert: None,
        quota: None,
        registry: RegistryRules::DEFAULT,
    };

    fn is_of(&self, gvk: Gvk<'_>) -> bool {
        self.kind == gvk.kind
            && is_same_group(self.group, gvk.group)
            && self.version.is_none_or(|version| version == gvk.version)
    }
}

/// Compares groups without a call of memcmp for the core group. A comparison of two empty strings reads at an address
/// that is not mapped, which takes more than 100 ns on some CPUs.
fn is_same_group(a: &str, b: &str) -> bool {
    if a.is_empty() { b.is_empty() } else { a == b }
}

/// The rules of a kind.
pub(crate) fn rules(gvk: Gvk<'_>) -> &'static KindRules {
    KINDS.iter().find(|rules| rules.is_of(gvk)).copied().unwrap_or(&KindRules::DEFAULT)
}

/// All rows. A row of one version comes before that of the other versions.
pub(crate) static KINDS: &[&KindRules] = &[
    &core::binding::RULES,
    &core::component_status::RULES,
    &core::config_map::RULES,
    &core::endpoints::RULES,
    &core::event::RULES,
    &core::limit_range::RULES,
    &core::namespace::RULES,
    &core::node::RULES,
    &core::persistent_volume::RULES,
    &core::persistent_volume_claim::RULES,
    &core::pod::RULES,
    &core::pod_template::RULES,
    &core::replication_controller::RULES,
    &core::resource_quota::RULES,
    &core::secret::RULES,
    &core::service::RULES,
    &core::service_account::RULES,
    &admissionregistration::mutating_admission_policy::RULES,
    &admissionregistration::mutating_admission_policy_binding::RULES,
    &admissionregistration::mutating_webhook_configuration::RULES,
    &admissionregistration::validating_admission_policy::RULES,
    &admissionregistration::validating_admission_policy_binding::RULES,
    &admissionregistration::validating_webhook_configuration::RULES,
    &apiextensions::custom_resource_definition::RULES,
    &apiregistration::api_service::RULES,
    &apps::controller_revision::RULES,
    &apps::daemon_set::RULES,
    &apps::deployment::RULES,
    &apps::replica_set::RULES,
    &apps::stateful_set::RULES,
    &authorization::local_subject_access_review::RULES,
    &authorization::self_subject_access_review::RULES,
    &authorization::subject_access_review::RULES,
    &autoscaling::horizontal_pod_autoscaler::V1_RULES,
    &autoscaling::horizontal_pod_autoscaler::RULES,
    &autoscaling::scale::RULES,
    &batch::cron_job::RULES,
    &batch::job::RULES,
    &certificates::certificate_signing_request::RULES,
    &coordination::lease::RULES,
    &discovery::endpoint_slice::RULES,
    &events::event::RULES,
    &flowcontrol::flow_schema::RULES,
    &flowcontrol::priority_level_configuration::RULES,
    &networking::ingress::RULES,
    &networking::ingress_class::RULES,
    &networking::ip_address::RULES,
    &networking::network_policy::RULES,
    &networking::service_cidr::RULES,
    &node::runtime_class::RULES,
    &policy::pod_disruption_budget::RULES,
    &rbac::cluster_role::RULES,
    &rbac::cluster_role_binding::RULES,
    &rbac::role::RULES,
    &rbac::role_binding::RULES,
    &resource::device_class::RULES,
    &resource::resource_claim::RULES,
    &resource::resource_claim_template::RULES,
    &resource::resource_slice::RULES,
    &scheduling::priority_class::RULES,
    &storage::csi_driver::RULES,
    &storage::csi_node::RULES,
    &storage::csi_storage_capacity::RULES,
    &storage::storage_class::RULES,
    &storage::volume_attachment::RULES,
    &storage::volume_attributes_class::RULES,
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::facts::resources;

    #[test]
    fn each_row_belongs_to_one_built_in_kind() {
        let mut seen = BTreeSet::new();
        for row in KINDS {
            let key = (row.group, row.kind, row.version);
            assert!(seen.insert(key), "two rows for {key:?}");
            let is_resource = resources().iter().any(|r| (r.group, r.kind) == (row.group, row.kind));
            let is_scale = (row.group, row.kind) == ("autoscaling", "Scale");
            assert!(is_resource || is_scale, "{key:?} is not in the facts table");
        }
    }

    #[test]
    fn every_stored_kind_has_a_row() {
        for resource in resources().iter().filter(|resource| resource.verbs.contains(&"list")) {
            let gvk = Gvk { group: resource.group, version: resource.version, kind: resource.kind };
            assert_eq!(rules(gvk).kind, resource.kind, "{gvk:?}");
        }
    }

    #[test]
    fn a_custom_kind_with_the_name_of_a_built_in_one_has_no_rules() {
        let gvk = Gvk { group: "example.com", version: "v1", kind: "Pod" };
        assert_eq!(rules(gvk).kind, "");
    }
}
