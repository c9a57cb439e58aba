//! Priority: resolves the priority class of a pod.

use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::status::ApiError;

use super::{Admission, Attributes, Cluster, Notes, Operation, Plugin};

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
        cluster: &'a Cluster<'_>,
        attributes: &'a mut Attributes<'_>,
        _notes: &'a mut Notes,
    ) -> Admission<'a> {
        if !attributes.is_for("", "pods") {
            return Admission::ALLOWED;
        }
        match attributes.operation {
            Operation::Create => resolve(cluster, attributes).into(),
            _ => {
                keep(attributes);
                Admission::ALLOWED
            }
        }
    }
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

/// A pod's priority is that of its class, or of the default class, or zero.
fn resolve(cluster: &Cluster<'_>, attributes: &mut Attributes<'_>) -> Result<(), ApiError> {
    let classes = "scheduling.k8s.io/priorityclasses";
    let name = attributes.object.str_at("spec.priorityClassName").to_owned();
    let class = if name.is_empty() {
        let all = cluster.list(classes, "").into_iter();
        all.filter(|class| class.bool_at("globalDefault")).min_by_key(|class| class.int_at("value"))
    } else {
        let Some(class) = cluster.get(classes, "", &name) else {
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
