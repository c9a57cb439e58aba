//! Priority: resolves the priority class of a pod.

use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::status::ApiError;
use serde_json::Value;

use super::{Admission, Attributes, Cluster, Notes, Operation, Plugin};

const CLASSES: &str = "scheduling.k8s.io/priorityclasses";

pub(super) struct Priority;

impl Plugin for Priority {
    fn name(&self) -> &'static str {
        "Priority"
    }

    fn handles(&self, operation: Operation) -> bool {
        matches!(operation, Operation::Create | Operation::Update)
    }

    fn admit<'a>(
        &'a self,
        cluster: &'a Cluster,
        attributes: &'a mut Attributes<'_>,
        _notes: &'a mut Notes,
    ) -> Admission<'a> {
        if !attributes.is_for("", "pods") {
            return Admission::ALLOWED;
        }
        if attributes.operation == Operation::Create {
            return resolve(cluster, attributes).into();
        }
        keep(attributes);
        Admission::ALLOWED
    }

    fn validate<'a>(
        &'a self,
        cluster: &'a Cluster,
        attributes: &'a Attributes<'_>,
        _notes: &'a mut Notes,
    ) -> Admission<'a> {
        if !attributes.is_for("scheduling.k8s.io", "priorityclasses") {
            return Admission::ALLOWED;
        }
        check_class(cluster, attributes).into()
    }
}

/// Rejects a second default class.
fn check_class(cluster: &Cluster, attributes: &Attributes<'_>) -> Result<(), ApiError> {
    if !attributes.object.bool_at("globalDefault") {
        return Ok(());
    }
    let Some(default) = default_class(cluster) else { return Ok(()) };
    let name = default.str_at("metadata.name");
    if attributes.operation == Operation::Update && name == attributes.object.str_at("metadata.name") {
        return Ok(());
    }
    let why = format!("PriorityClass {name} is already marked as default. Only one default can exist");
    Err(attributes.forbidden(&why))
}

/// The default class; the one with the lowest value if there are several.
fn default_class(cluster: &Cluster) -> Option<Value> {
    let all = cluster.list(CLASSES, "").into_iter();
    all.filter(|class| class.bool_at("globalDefault")).min_by_key(|class| class.int_at("value"))
}

/// A pod keeps the priority that it was admitted with.
fn keep(attributes: &mut Attributes<'_>) {
    let Some(old) = attributes.old_object else { return };
    for field in ["spec.priority", "spec.preemptionPolicy"] {
        if !attributes.object.has(field) && old.has(field) {
            attributes.object.set_at(field, old.at(field).clone());
        }
    }
}

/// Sets a pod's priority from its class or the default class; otherwise zero.
fn resolve(cluster: &Cluster, attributes: &mut Attributes<'_>) -> Result<(), ApiError> {
    let name = attributes.object.str_at("spec.priorityClassName").to_owned();
    let class = if name.is_empty() {
        default_class(cluster)
    } else {
        let Some(class) = cluster.get(CLASSES, "", &name) else {
            return Err(attributes.forbidden(&format!("no PriorityClass with name {name} was found")));
        };
        Some(class)
    };
    let pod = &mut attributes.object;
    let (value, policy) = match &class {
        Some(class) => {
            if name.is_empty() {
                pod.set_at("spec.priorityClassName", class.at("metadata.name").clone());
            }
            (class.int_at("value").unwrap_or_default(), class.str_at("preemptionPolicy").to_owned())
        }
        None => (0, String::new()),
    };
    if let Some(given) = pod.int_at("spec.priority").filter(|given| *given != value) {
        let why = format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller \
             computed {value} from the given PriorityClass name"
        );
        return Err(attributes.forbidden(&why));
    }
    pod.set_at("spec.priority", value);
    let policy = if policy.is_empty() { "PreemptLowerPriority" } else { &policy };
    let given = pod.str_at("spec.preemptionPolicy").to_owned();
    if !given.is_empty() && given != policy {
        let why = format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission \
             controller computed {policy} from the given PriorityClass name"
        );
        return Err(attributes.forbidden(&why));
    }
    pod.set_at("spec.preemptionPolicy", policy);
    Ok(())
}
