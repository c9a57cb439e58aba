//! PodSecurity: enforces the Pod Security Standards that a namespace's labels select.
//!
//! `enforce` rejects pods, `warn` returns warnings for pods and objects with a pod template, `audit` adds
//! audit annotations. The standards are in [`checks`], the labels in [`policy`].

mod checks;
mod policy;

use std::collections::{BTreeMap, HashSet};

use kubewright_apimachinery::field::{ErrorList, aggregate};
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::status::ApiError;
use serde_json::Value;

use super::{Admission, Attributes, Cluster, Notes, Operation, Plugin};
use checks::Violations;
use policy::{Level, LevelVersion, Policy};

/// Maximum number of pods to check when a namespace's labels change.
const MAX_PODS: usize = 3000;

pub(super) struct PodSecurity;

impl Plugin for PodSecurity {
    fn name(&self) -> &'static str {
        "PodSecurity"
    }

    fn handles(&self, operation: Operation) -> bool {
        matches!(operation, Operation::Create | Operation::Update)
    }

    fn validate<'a>(
        &'a self,
        cluster: &'a Cluster,
        attributes: &'a Attributes<'_>,
        notes: &'a mut Notes,
    ) -> Admission<'a> {
        match (attributes.resource.group(), attributes.resource.plural(), attributes.subresource) {
            ("", "namespaces", "") => check_namespace(cluster, attributes, notes).into(),
            ("", "pods", "status" | "binding" | "eviction") => Admission::ALLOWED,
            ("", "pods", _) => check_pod(cluster, attributes, notes).into(),
            (_, _, "") => {
                if let Some(path) = template_path(attributes) {
                    check_template(cluster, attributes, path, notes);
                }
                Admission::ALLOWED
            }
            _ => Admission::ALLOWED,
        }
    }
}

/// The path of the pod template of a resource.
fn template_path(attributes: &Attributes<'_>) -> Option<&'static str> {
    Some(match (attributes.resource.group(), attributes.resource.plural()) {
        ("", "podtemplates") => "template",
        ("", "replicationcontrollers")
        | ("apps", "replicasets" | "deployments" | "statefulsets" | "daemonsets")
        | ("batch", "jobs") => "spec.template",
        ("batch", "cronjobs") => "spec.jobTemplate.spec.template",
        _ => return None,
    })
}

fn policy_of(cluster: &Cluster, namespace: &str) -> (Policy, ErrorList) {
    let Some(version) = cluster.version("namespaces", namespace) else {
        return (Policy::default(), ErrorList::new());
    };
    Policy::of(version.attributes.labels())
}

fn check_namespace(
    cluster: &Cluster,
    attributes: &Attributes<'_>,
    notes: &mut Notes,
) -> Result<(), ApiError> {
    let policy_of = |namespace: &Value| {
        let labels = namespace.map_at("metadata.labels").iter();
        Policy::of(labels.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default())))
    };
    let (new, errors) = policy_of(&attributes.object);
    let invalid =
        || Err(ApiError::invalid(attributes.kind.qualified_kind(), attributes.name, &errors.clone()));
    let Some(old) = attributes.old_object else {
        return if errors.is_empty() { Ok(()) } else { invalid() };
    };
    let (old, old_errors) = policy_of(old);
    if !errors.is_empty() && errors != old_errors {
        return invalid();
    }
    let relaxed = new.enforce.version == old.enforce.version && new.enforce.level <= old.enforce.level;
    if new.enforce == old.enforce || new.enforce.level == Level::Privileged || relaxed {
        return Ok(());
    }
    notes.warnings.extend(check_existing(cluster, attributes.name, new.enforce));
    Ok(())
}

/// Violations of the existing pods of a namespace.
fn check_existing(cluster: &Cluster, namespace: &str, enforce: LevelVersion) -> Vec<String> {
    let mut pods = Vec::new();
    let mut replicas = Vec::new();
    let mut controllers = HashSet::new();
    for pod in cluster.list("pods", namespace) {
        let owners = pod.list_at("metadata.ownerReferences").iter();
        let controller = owners.clone().find(|owner| owner.bool_at("controller"));
        // Check one pod of each controller first.
        let first = controller.is_none_or(|owner| controllers.insert(owner.str_at("uid").to_owned()));
        if first {
            pods.push(pod);
        } else {
            replicas.push(pod);
        }
    }
    pods.append(&mut replicas);
    let total = pods.len();
    let mut violations: BTreeMap<String, (String, usize)> = BTreeMap::new();
    for pod in pods.iter().take(MAX_PODS) {
        let found = checks::evaluate(enforce, pod.at("metadata"), pod.at("spec"));
        if found.is_empty() {
            continue;
        }
        let name = pod.str_at("metadata.name");
        let (first, count) = violations.entry(found.reasons()).or_insert_with(|| (name.to_owned(), 0));
        if name < first.as_str() {
            name.clone_into(first);
        }
        *count += 1;
    }
    let mut warnings = Vec::new();
    if total > MAX_PODS {
        warnings.push(format!(
            "new PodSecurity enforce level only checked against the first {MAX_PODS} of {total} existing pods"
        ));
    }
    if !violations.is_empty() {
        warnings.push(format!(
            "existing pods in namespace {namespace:?} violate the new PodSecurity enforce level \"{enforce}\""
        ));
    }
    let mut by_pod: Vec<String> = violations
        .into_iter()
        .map(|(reasons, (name, count))| match count {
            1 => format!("{name}: {reasons}"),
            2 => format!("{name} (and 1 other pod): {reasons}"),
            _ => format!("{name} (and {} other pods): {reasons}", count - 1),
        })
        .collect();
    by_pod.sort();
    warnings.extend(by_pod);
    warnings
}

fn check_pod(cluster: &Cluster, attributes: &Attributes<'_>, notes: &mut Notes) -> Result<(), ApiError> {
    let (policy, errors) = policy_of(cluster, attributes.namespace);
    if errors.is_empty() && policy.is_privileged() {
        annotate(notes, "enforce-policy", Policy::default().enforce.to_string());
        return Ok(());
    }
    let pod = &attributes.object;
    if attributes.old_object.is_some_and(|old| !changes_images(pod, old)) {
        return Ok(());
    }
    annotate_errors(notes, &errors);
    annotate(notes, "enforce-policy", policy.enforce.to_string());
    let enforced = checks::evaluate(policy.enforce, pod.at("metadata"), pod.at("spec"));
    // A rejected pod is audited, too.
    let found = checks::evaluate(policy.audit, pod.at("metadata"), pod.at("spec"));
    audit(policy.audit, &found, notes);
    if !enforced.is_empty() {
        let why = format!("violates PodSecurity \"{}\": {}", policy.enforce, enforced.details());
        return Err(attributes.forbidden(&why));
    }
    let found = checks::evaluate(policy.warn, pod.at("metadata"), pod.at("spec"));
    warn(policy.warn, &found, notes);
    Ok(())
}

fn check_template(cluster: &Cluster, attributes: &Attributes<'_>, path: &str, notes: &mut Notes) {
    let (policy, errors) = policy_of(cluster, attributes.namespace);
    if errors.is_empty() && policy.warn.level == Level::Privileged && policy.audit.level == Level::Privileged
    {
        return;
    }
    let template = attributes.object.at(path);
    if template.is_null() {
        return;
    }
    annotate_errors(notes, &errors);
    let evaluate = |level| checks::evaluate(level, template.at("metadata"), template.at("spec"));
    audit(policy.audit, &evaluate(policy.audit), notes);
    warn(policy.warn, &evaluate(policy.warn), notes);
}

fn warn(level: LevelVersion, found: &Violations, notes: &mut Notes) {
    if !found.is_empty() {
        notes.warn(format!("would violate PodSecurity \"{level}\": {}", found.details()));
    }
}

fn audit(level: LevelVersion, found: &Violations, notes: &mut Notes) {
    if !found.is_empty() {
        let text = format!("would violate PodSecurity \"{level}\": {}", found.details());
        annotate(notes, "audit-violations", text);
    }
}

fn annotate_errors(notes: &mut Notes, errors: &ErrorList) {
    if !errors.is_empty() {
        annotate(notes, "error", format!("Failed to parse policy: {}", aggregate(errors)));
    }
}

fn annotate(notes: &mut Notes, key: &str, value: String) {
    notes.audit_annotations.insert(format!("pod-security.kubernetes.io/{key}"), value);
}

/// Whether an update changes images, the only relevant field of a pod that is mutable.
fn changes_images(new: &Value, old: &Value) -> bool {
    let images = |pod: &Value, list: &str| -> Vec<String> {
        pod.list_at(list).iter().map(|container| container.str_at("image").to_owned()).collect()
    };
    let differs = |list: &str| images(new, list) != images(old, list);
    if differs("spec.containers") || differs("spec.initContainers") {
        return true;
    }
    new.list_at("spec.ephemeralContainers").iter().any(|container| {
        let before = old
            .list_at("spec.ephemeralContainers")
            .iter()
            .find(|other| other.str_at("name") == container.str_at("name"));
        before.is_none_or(|before| before.str_at("image") != container.str_at("image"))
    })
}
