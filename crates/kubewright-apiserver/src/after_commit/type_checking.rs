//! The controller `validatingadmissionpolicy-status` of kube-controller-manager: `status.typeChecking` and
//! `status.observedGeneration`.
//!
//! Under [`Controllers::Core`](crate::Controllers::Core) it runs as part of the write. It checks the policy against the
//! kinds that are served at that time; like upstream's it does not repeat the check when a CRD changes.

use std::collections::BTreeSet;
use std::sync::Arc;

use kubewright_apimachinery::gvk::{Gvk, split_api_version};
use kubewright_apimachinery::object::Fields as _;
use kubewright_apis::admission::{ExpressionWarning, type_check};
use kubewright_apis::openapi::{self, CustomVersion, NoDescriptions};
use kubewright_structured_merge as apply;
use serde_json::{Value, json};

use crate::encoding::response;
use crate::fieldmanager::FieldManager;
use crate::registry::conversion::Recorder;
use crate::registry::resource::Registry;
use crate::registry::store::ObjectStore;
use crate::storage::Expect;

/// The name of ValidatingAdmissionPolicies in storage.
pub(super) const STORAGE: &str = "admissionregistration.k8s.io/validatingadmissionpolicies";

const MANAGER: &str = "validatingadmissionpolicy-status-controller";
/// The maximum number of kinds of one rule.
const MAX_TYPES: usize = 10;
/// Maximum number of retries after a conflict.
const TRIES: usize = 8;

/// Checks the types of the expressions of policies.
pub(super) struct PolicyTypeChecker {
    objects: Arc<ObjectStore>,
}

impl PolicyTypeChecker {
    pub(super) fn new(objects: Arc<ObjectStore>) -> Self {
        Self { objects }
    }

    /// Checks the expressions of a policy if its spec changed since the last check.
    pub(super) fn check(&self, name: &str) {
        let registry = self.objects.registry();
        let Some(resource) = registry.stored(STORAGE) else { return };
        for _ in 0..TRIES {
            let Some(version) = self.objects.storage().get(STORAGE, name) else { return };
            let live = response::object(resource, &version);
            let generation = live.int_at("metadata.generation").unwrap_or_default();
            if generation <= live.int_at("status.observedGeneration").unwrap_or_default() {
                return;
            }
            let mut checked = json!({});
            let warnings = type_warnings(&registry, live.at("spec"));
            if !warnings.is_empty() {
                let warning =
                    |it: ExpressionWarning| json!({"fieldRef": it.field_ref, "warning": it.warning});
                checked["expressionWarnings"] = warnings.into_iter().map(warning).collect();
            }
            let wanted = json!({
                "apiVersion": resource.gvk().api_version(),
                "kind": resource.kind(),
                "metadata": {"name": name},
                "status": {"observedGeneration": generation, "typeChecking": checked},
            });
            let manager = FieldManager::named(MANAGER);
            let applied =
                manager.with_write(&Recorder::new(&*self.objects.clock, resource), "status", |write| {
                    apply::apply(Some(&live), &wanted, true, write)
                });
            let mut new = match applied.map_err(|error| error.to_api_error()) {
                Ok(new) => new,
                Err(error) => {
                    tracing::warn!(policy = name, error = error.message, "failed to type check policy");
                    return;
                }
            };
            if let Err(error) = resource.strategy.canonicalize(&mut new) {
                tracing::warn!(policy = name, error = error.message, "failed to type check policy");
                return;
            }
            if self.objects.put_without_steps(resource, name, Expect::At(version.revision), new).is_ok() {
                return;
            }
        }
    }
}

fn type_warnings(registry: &Registry, spec: &Value) -> Vec<ExpressionWarning> {
    let schema = |gvk: Gvk<'_>| schema_of(registry, gvk);
    let types: Vec<(Gvk<'_>, Value)> = matched_kinds(registry, spec)
        .into_iter()
        .filter_map(|gvk| schema(gvk).map(|schema| (gvk, schema)))
        .collect();
    let (group, version) = split_api_version(spec.str_at("paramKind.apiVersion"));
    let params = schema(Gvk { group, version, kind: spec.str_at("paramKind.kind") });
    type_check(spec, &types, params.as_ref())
}

/// The published schema of a served kind.
fn schema_of(registry: &Registry, gvk: Gvk<'_>) -> Option<Value> {
    let Gvk { group, version, .. } = gvk;
    let found = registry.all().find(|resource| resource.gvk() == gvk)?;
    let custom: Vec<CustomVersion<'_>> =
        found.crd().into_iter().flat_map(|custom| custom.published_versions()).collect();
    let path = if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") };
    openapi::resolved_schema(&openapi::v3_document(&path, &custom, &NoDescriptions)?, gvk)
}

/// The kinds that a policy matches, sorted. Rules with wildcards are skipped, and so are resources with wildcards,
/// subresources and resources that are not served.
fn matched_kinds<'a>(registry: &'a Registry, spec: &Value) -> BTreeSet<Gvk<'a>> {
    let mut kinds = BTreeSet::new();
    for rule in spec.list_at("matchConstraints.resourceRules") {
        let names = |field: &str| -> Vec<&str> {
            let mut names: Vec<&str> = rule.list_at(field).iter().filter_map(Value::as_str).collect();
            names.sort_unstable();
            names
        };
        let (groups, versions, resources) = (names("apiGroups"), names("apiVersions"), names("resources"));
        if groups.iter().chain(&versions).any(|name| name.contains('*')) {
            continue;
        }
        let mut count = 0;
        for group in groups {
            for version in &versions {
                for name in resources.iter().filter(|name| !name.contains(['*', '/'])) {
                    // Upstream's RESTMapper treats an empty group as any group.
                    let found = registry.all().filter(|resource| {
                        resource.version() == *version
                            && (group.is_empty() || resource.group() == group)
                            && (resource.plural() == *name || resource.singular() == *name)
                            && resource.crd().is_none_or(|custom| custom.info.established)
                    });
                    for resource in found {
                        kinds.insert(resource.gvk());
                        count += 1;
                        if count == MAX_TYPES {
                            return kinds;
                        }
                    }
                }
            }
        }
    }
    kinds
}
