//! Warnings about pods and pod templates: removed, deprecated and likely wrong fields. Warnings never reject
//! a write.

mod ports;
mod volumes;

use std::collections::HashSet;

use serde_json::Value;

use kubewright_apimachinery::field::{Path, quote};
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::quantity::Quantity;

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
const SECCOMP_OF_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_OF_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
const SECCOMP: &str = "non-functional in v1.27+; use the \"seccompProfile\" field instead";
const APP_ARMOR: &str = "deprecated since v1.30; use the \"appArmorProfile\" field instead";

const ANNOTATIONS: [(&str, &str); 3] = [
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "non-functional in v1.16+; use the \"priorityClassName\" field instead",
    ),
    ("security.alpha.kubernetes.io/sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"),
    (
        "security.alpha.kubernetes.io/unsafe-sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
];

/// Warnings about a pod or template at `path`.
pub(super) fn warnings(pod: &Value, path: &Path, is_template: bool) -> Vec<String> {
    let mut found = Warnings::default();
    let spec_path = path.child("spec");
    let spec = pod.at("spec");
    let annotations = pod.map_at("metadata.annotations");
    let annotations_path = path.child("metadata").child("annotations");
    found.node_labels(spec, &spec_path);
    for (key, message) in ANNOTATIONS {
        if annotations.contains_key(key) {
            found.add(&annotations_path.key(key), message);
        }
    }
    volumes::volumes(spec, &spec_path, &mut found);
    found.duplicates(spec, &spec_path);
    found.fractions(spec.at("overhead"), &spec_path.child("overhead"));
    if !spec.has("securityContext.seccompProfile") && annotations.contains_key(SECCOMP_OF_POD) {
        found.add(&annotations_path.key(SECCOMP_OF_POD), SECCOMP);
    }
    for (container, container_path) in containers(spec, &spec_path) {
        let name = container.str_at("name");
        let key = format!("{SECCOMP_OF_CONTAINER}{name}");
        if !container.has("securityContext.seccompProfile") && annotations.contains_key(&key) {
            found.add(&annotations_path.key(&key), SECCOMP);
        }
        let key = format!("{}{name}", super::APP_ARMOR);
        if let Some(annotation) = annotations.get(&key).and_then(Value::as_str)
            && needs_app_armor_field(annotation, container, spec, is_template)
        {
            found.add(&annotations_path.key(&key), APP_ARMOR);
        }
        let resources = container_path.child("resources");
        for resource in ["memory", "ephemeral-storage"] {
            for kind in ["limits", "requests"] {
                let amounts = container.at("resources").at(kind);
                found.fraction(amounts, resource, &resources.child(kind));
            }
        }
        found.hidden_variables(container, &container_path);
    }
    ports::ports(spec, &spec_path, &mut found);
    if spec.int_at("terminationGracePeriodSeconds").is_some_and(|seconds| seconds < 0) {
        let message = "must be >= 0; negative values are invalid and will be treated as 1";
        found.add(&spec_path.child("terminationGracePeriodSeconds"), message);
    }
    found.null_selectors(spec, &spec_path);
    found.addresses(spec, &spec_path);
    found.list
}

/// Whether an AppArmor annotation causes a warning.
///
/// The annotations of a pod have already been converted to fields. So for pods, a field with the same profile
/// counts as converted, and only an annotation without one causes a warning.
fn needs_app_armor_field(annotation: &str, container: &Value, spec: &Value, is_template: bool) -> bool {
    let field = container.at("securityContext.appArmorProfile");
    if is_template {
        return field.is_null() && !spec.has("securityContext.appArmorProfile");
    }
    if spec.str_at("os.name") == "windows" {
        return false;
    }
    match super::app_armor_profile(annotation) {
        Some(profile) => *field == profile,
        None => field.is_null(),
    }
}

/// All containers in upstream's order.
fn containers<'a>(spec: &'a Value, path: &Path) -> Vec<(&'a Value, Path)> {
    let mut all = Vec::new();
    for kind in ["initContainers", "containers", "ephemeralContainers"] {
        let path = path.child(kind);
        all.extend(spec.list_at(kind).iter().enumerate().map(|(index, item)| (item, path.index(index))));
    }
    all
}

/// The warnings so far.
#[derive(Default)]
struct Warnings {
    list: Vec<String>,
}

impl Warnings {
    fn add(&mut self, path: &Path, message: &str) {
        self.list.push(format!("{path}: {message}"));
    }

    fn node_labels(&mut self, spec: &Value, path: &Path) {
        for key in spec.map_at("nodeSelector").keys() {
            if let Some(message) = deprecated_label(key) {
                self.add(&path.child("nodeSelector").key(key), message);
            }
        }
        let affinity = spec.at("affinity.nodeAffinity");
        let affinity_path = path.child("affinity").child("nodeAffinity");
        let terms_path = affinity_path.child(REQUIRED).child("nodeSelectorTerms");
        for (index, term) in affinity.at(REQUIRED).list_at("nodeSelectorTerms").iter().enumerate() {
            self.node_term(term, false, &terms_path.index(index));
        }
        for (index, term) in affinity.list_at(PREFERRED).iter().enumerate() {
            let path = affinity_path.child(PREFERRED).index(index).child("preference");
            self.node_term(term.at("preference"), true, &path);
        }
        for (index, constraint) in spec.list_at("topologySpreadConstraints").iter().enumerate() {
            let path = path.child("topologySpreadConstraints").index(index);
            let key = constraint.str_at("topologyKey");
            if let Some(message) = deprecated_label(key) {
                self.add(&path.child("topologyKey"), &format!("{key} is {message}"));
            }
            if !constraint.has("labelSelector") {
                self.null_selector(&path);
            }
        }
    }

    fn node_term(&mut self, term: &Value, check_values: bool, path: &Path) {
        for (index, expression) in term.list_at("matchExpressions").iter().enumerate() {
            let path = path.child("matchExpressions").index(index);
            let key = expression.str_at("key");
            if let Some(message) = deprecated_label(key) {
                self.add(&path.child("key"), &format!("{key} is {message}"));
            }
            if !check_values {
                continue;
            }
            for (index, value) in expression.list_at("values").iter().filter_map(Value::as_str).enumerate() {
                for message in names::label_value(value) {
                    self.add(&path.child("values").index(index), &format!("{value} is invalid, {message}"));
                }
            }
        }
    }

    fn duplicates(&mut self, spec: &Value, path: &Path) {
        for (list, name) in [("hostAliases", "ip"), ("imagePullSecrets", "name")] {
            let mut seen = HashSet::new();
            for (index, item) in spec.list_at(list).iter().enumerate() {
                let value = item.str_at(name);
                if !seen.insert(value) {
                    let path = path.child(list).index(index).child(name);
                    self.add(&path, &format!("duplicate {name} {}", quote(value)));
                }
            }
        }
        for (index, secret) in spec.list_at("imagePullSecrets").iter().enumerate() {
            if secret.str_at("name").is_empty() {
                let path = path.child("imagePullSecrets").index(index).child("name");
                self.add(&path, "invalid empty name \"\"");
            }
        }
    }

    fn fractions(&mut self, amounts: &Value, path: &Path) {
        for resource in ["memory", "ephemeral-storage"] {
            self.fraction(amounts, resource, path);
        }
    }

    /// Warns about fractional bytes.
    fn fraction(&mut self, amounts: &Value, resource: &str, path: &Path) {
        let Some(value) = amounts.get(resource) else { return };
        if let Ok(amount) = Quantity::from_json(value)
            && amount.milli_value() % 1000 != 0
        {
            let amount = quote(&amount.to_string());
            self.add(
                &path.key(resource),
                &format!("fractional byte value {amount} is invalid, must be an integer"),
            );
        }
    }

    /// Warns about a variable that hides an earlier one with the same name without referencing it.
    fn hidden_variables(&mut self, container: &Value, path: &Path) {
        let mut seen = HashSet::new();
        for (index, variable) in container.list_at("env").iter().enumerate() {
            let (name, value) = (variable.str_at("name"), variable.str_at("value"));
            let reference = format!("$({name})");
            let builds = !variable.has("valueFrom") && value != reference && value.contains(&reference);
            if !seen.insert(name) && !builds {
                let name = quote(name);
                let message =
                    format!("hides previous definition of {name}, which may be dropped when using apply");
                self.add(&path.child("env").index(index), &message);
            }
        }
    }

    fn null_selector(&mut self, path: &Path) {
        self.add(&path.child("labelSelector"), "a null labelSelector results in matching no pod");
    }

    fn null_selectors(&mut self, spec: &Value, path: &Path) {
        for name in ["podAffinity", "podAntiAffinity"] {
            let affinity = spec.at("affinity").at(name);
            let path = path.child("affinity").child(name);
            for (index, term) in affinity.list_at(REQUIRED).iter().enumerate() {
                if !term.has("labelSelector") {
                    self.null_selector(&path.child(REQUIRED).index(index));
                }
            }
            for (index, term) in affinity.list_at(PREFERRED).iter().enumerate() {
                if !term.has("podAffinityTerm.labelSelector") {
                    self.null_selector(&path.child(PREFERRED).index(index).child("podAffinityTerm"));
                }
            }
        }
    }

    fn addresses(&mut self, spec: &Value, path: &Path) {
        let servers_path = path.child("dnsConfig").child("nameservers");
        for (index, server) in spec.list_at("dnsConfig.nameservers").iter().enumerate() {
            let server = server.as_str().unwrap_or_default();
            self.list.extend(names::ip_warnings(servers_path.index(index).as_str(), server));
        }
        for (index, alias) in spec.list_at("hostAliases").iter().enumerate() {
            let path = path.child("hostAliases").index(index).child("ip");
            self.list.extend(names::ip_warnings(path.as_str(), alias.str_at("ip")));
        }
    }
}

/// The warning for a deprecated node label.
fn deprecated_label(key: &str) -> Option<&'static str> {
    Some(match key {
        "beta.kubernetes.io/arch" => "deprecated since v1.14; use \"kubernetes.io/arch\" instead",
        "beta.kubernetes.io/os" => "deprecated since v1.14; use \"kubernetes.io/os\" instead",
        "failure-domain.beta.kubernetes.io/region" => {
            "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead"
        }
        "failure-domain.beta.kubernetes.io/zone" => {
            "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead"
        }
        "beta.kubernetes.io/instance-type" => {
            "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead"
        }
        "app.kubernetes.io/created-by" => "deprecated since v1.9",
        "scheduler.alpha.kubernetes.io/preferAvoidPods" => {
            "deprecated since v1.22; use Taints and Tolerations instead"
        }
        "node-role.kubernetes.io/master" => "use \"node-role.kubernetes.io/control-plane\" instead",
        _ => return None,
    })
}
