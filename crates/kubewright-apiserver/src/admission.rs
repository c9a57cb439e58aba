//! The admission that every cluster has switched on, and that needs no webhook.
//!
//! Runs on decoded and defaulted objects, before they are prepared and validated. It may change the object
//! and may refuse it; what it needs of other objects it reads from the store.

use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::status::{ApiError, Cause, Qualified};
use serde_json::{Value, json};

use crate::output;
use crate::resources::Served;
use crate::server::Inner;

const NAMESPACES: Qualified<'_> = Qualified { group: "", name: "namespaces" };
/// How long a pod stays on a node that is not ready or cannot be reached.
const TOLERATION_SECONDS: i64 = 300;

impl Inner {
    /// Admits an object that is about to be created.
    pub(crate) fn admit_create(
        &self,
        served: &Served,
        namespace: &str,
        object: &mut Value,
    ) -> Result<(), ApiError> {
        self.namespace_lifecycle(served, namespace, object.str_at("metadata.name"))?;
        if served.custom().is_some_and(|custom| custom.definition.terminating) {
            let why = "create not allowed while custom resource definition is terminating";
            return Err(ApiError::forbidden(served.qualified(), object.str_at("metadata.name"), why));
        }
        match (served.group(), served.kind()) {
            ("", "Pod") => {
                self.priority(object)?;
                default_tolerations(object);
            }
            ("", "PersistentVolumeClaim") => {
                self.default_storage_class(object);
                protect(object, "kubernetes.io/pvc-protection");
            }
            ("", "PersistentVolume") => protect(object, "kubernetes.io/pv-protection"),
            ("", "Node") => taint_not_ready(object),
            ("networking.k8s.io", "Ingress") => self.default_ingress_class(object),
            _ => {}
        }
        Ok(())
    }

    /// Admits an object that is about to replace `old`.
    pub(crate) fn admit_update(
        &self,
        served: &Served,
        namespace: &str,
        new: &mut Value,
        old: &Value,
    ) -> Result<(), ApiError> {
        self.namespace_exists(served, namespace)?;
        if (served.group(), served.kind()) == ("", "Pod") {
            // A pod keeps the priority that it was admitted with.
            for field in ["spec.priority", "spec.preemptionPolicy"] {
                if !new.has(field) && old.has(field) {
                    new.set_at(field, old.at(field).clone());
                }
            }
            default_tolerations(new);
        }
        Ok(())
    }

    fn namespace_exists(&self, served: &Served, namespace: &str) -> Result<(), ApiError> {
        if !served.namespaced() || self.store.get("namespaces", namespace).is_some() {
            return Ok(());
        }
        Err(ApiError::not_found(NAMESPACES, namespace))
    }

    /// Nothing is created in a namespace that is not there, or that is going away.
    fn namespace_lifecycle(&self, served: &Served, namespace: &str, name: &str) -> Result<(), ApiError> {
        self.namespace_exists(served, namespace)?;
        if !served.namespaced() {
            return Ok(());
        }
        let Some(version) = self.store.get("namespaces", namespace) else { return Ok(()) };
        if !version.attributes.deleting {
            return Ok(());
        }
        let why =
            format!("unable to create new content in namespace {namespace} because it is being terminated");
        let mut error = ApiError::forbidden(served.qualified(), name, &why);
        error.details.get_or_insert_default().causes.push(Cause {
            reason: "NamespaceTerminating".to_owned(),
            message: format!("namespace {namespace} is being terminated"),
            field: "metadata.namespace".to_owned(),
        });
        Err(error)
    }

    /// A pod's priority is that of its class, or of the default class, or zero.
    fn priority(&self, pod: &mut Value) -> Result<(), ApiError> {
        let classes = "scheduling.k8s.io/priorityclasses";
        let name = pod.str_at("spec.priorityClassName").to_owned();
        let class = if name.is_empty() {
            let listing = self.store.list(classes, "", None).ok();
            let all = listing.into_iter().flat_map(|listing| listing.items).map(|version| version.object());
            all.filter(|class| class.bool_at("globalDefault")).min_by_key(|class| class.int_at("value"))
        } else {
            let Some(version) = self.store.get(classes, &name) else {
                let pods = Qualified { group: "", name: "pods" };
                let why = format!("no PriorityClass with name {name} was found");
                return Err(ApiError::forbidden(pods, pod.str_at("metadata.name"), &why));
            };
            Some(version.object())
        };
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
            let pods = Qualified { group: "", name: "pods" };
            let why = format!(
                "the integer value of priority ({given}) must not be provided in pod spec; priority admission \
                 controller computed {value} from the given PriorityClass name"
            );
            return Err(ApiError::forbidden(pods, pod.str_at("metadata.name"), &why));
        }
        pod.set_at("spec.priority", value);
        let policy = if policy.is_empty() { "PreemptLowerPriority" } else { &policy };
        let given = pod.str_at("spec.preemptionPolicy");
        if !given.is_empty() && given != policy {
            let pods = Qualified { group: "", name: "pods" };
            let why = format!(
                "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission \
                 controller computed {policy} from the given PriorityClass name"
            );
            return Err(ApiError::forbidden(pods, pod.str_at("metadata.name"), &why));
        }
        pod.set_at("spec.preemptionPolicy", policy);
        Ok(())
    }

    fn default_storage_class(&self, claim: &mut Value) {
        if claim.has("spec.storageClassName")
            || has_annotation(claim, "volume.beta.kubernetes.io/storage-class")
        {
            return;
        }
        if let Some(name) =
            self.default_class("storage.k8s.io/storageclasses", "storageclass.kubernetes.io/is-default-class")
        {
            claim.set_at("spec.storageClassName", name);
        }
    }

    fn default_ingress_class(&self, ingress: &mut Value) {
        if ingress.has("spec.ingressClassName") || has_annotation(ingress, "kubernetes.io/ingress.class") {
            return;
        }
        if let Some(name) = self
            .default_class("networking.k8s.io/ingressclasses", "ingressclass.kubernetes.io/is-default-class")
        {
            ingress.set_at("spec.ingressClassName", name);
        }
    }

    /// The newest class that is marked as the default.
    fn default_class(&self, storage: &str, annotation: &str) -> Option<String> {
        let registry = self.registry();
        let served = registry.stored(storage)?;
        let listing = self.store.list(storage, "", None).ok()?;
        let classes = listing.items.iter().map(|version| output::object(served, version));
        let marked = classes.filter(|class| {
            class.map_at("metadata.annotations").get(annotation).and_then(Value::as_str) == Some("true")
        });
        let newest = marked.max_by_key(|class| class.str_at("metadata.creationTimestamp").to_owned())?;
        Some(newest.str_at("metadata.name").to_owned())
    }
}

fn has_annotation(object: &Value, name: &str) -> bool {
    object.map_at("metadata.annotations").contains_key(name)
}

/// Keeps an object until nothing uses it any more.
fn protect(object: &mut Value, finalizer: &str) {
    if object.list_at("metadata.finalizers").iter().any(|f| f == finalizer) {
        return;
    }
    let mut finalizers = object.list_at("metadata.finalizers").to_vec();
    finalizers.push(finalizer.into());
    object.set_at("metadata.finalizers", finalizers);
}

/// A pod tolerates a node that is not ready, or cannot be reached, for a while.
fn default_tolerations(pod: &mut Value) {
    let mut tolerations = pod.list_at("spec.tolerations").to_vec();
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerated = tolerations.iter().any(|toleration| {
            let given = toleration.str_at("key");
            let effect = toleration.str_at("effect");
            (given == key || given.is_empty()) && (effect == "NoExecute" || effect.is_empty())
        });
        if !tolerated {
            tolerations.push(json!({
                "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": TOLERATION_SECONDS,
            }));
        }
    }
    pod.set_at("spec.tolerations", tolerations);
}

/// A new node takes no pods before it says that it is ready.
fn taint_not_ready(node: &mut Value) {
    const KEY: &str = "node.kubernetes.io/not-ready";
    let mut taints = node.list_at("spec.taints").to_vec();
    if taints.iter().any(|taint| taint.str_at("key") == KEY && taint.str_at("effect") == "NoSchedule") {
        return;
    }
    taints.push(json!({"key": KEY, "effect": "NoSchedule"}));
    node.set_at("spec.taints", taints);
}
