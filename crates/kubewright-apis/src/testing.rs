//! Helpers for the tests of kinds: each runs one stage on an object.

use serde_json::{Value, json};

use crate::facts::type_of_kind;
use crate::kinds::rules;
use crate::{defaults, strategy, table, validation};
use kubewright_apimachinery::decode::normalise;
use kubewright_apimachinery::field::ErrorList;
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::object::Fields as _;

pub(crate) const DEPLOYMENT: Gvk<'_> = Gvk { group: "apps", version: "v1", kind: "Deployment" };
pub(crate) const DAEMON_SET: Gvk<'_> = Gvk { group: "apps", version: "v1", kind: "DaemonSet" };
pub(crate) const STATEFUL_SET: Gvk<'_> = Gvk { group: "apps", version: "v1", kind: "StatefulSet" };
pub(crate) const JOB: Gvk<'_> = Gvk { group: "batch", version: "v1", kind: "Job" };
pub(crate) const HPA_V1: Gvk<'_> =
    Gvk { group: "autoscaling", version: "v1", kind: "HorizontalPodAutoscaler" };

/// 2024-01-01T01:00:00Z, one hour after the creation of the objects of [`row`].
pub(crate) const NOW: i64 = 1_704_070_800;
pub(crate) const CREATED: &str = "2024-01-01T00:00:00Z";

pub(crate) fn messages(errors: &ErrorList) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

/// An object with its defaults. Checks that defaulting is idempotent.
pub(crate) fn defaulted(mut object: Value) -> Value {
    let text = object.clone();
    defaults::apply(Gvk::of(&text), &mut object);
    let once = object.clone();
    defaults::apply(Gvk::of(&text), &mut object);
    assert_eq!(object, once, "defaulting is idempotent");
    object
}

/// A decoded object with this spec and its defaults. Checks that defaulting is idempotent.
pub(crate) fn defaulted_spec(api_version: &str, kind: &str, spec: &Value) -> Value {
    let mut object =
        json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "o"}, "spec": spec});
    let head = object.clone();
    let gvk = Gvk::of(&head);
    let ty = type_of_kind(gvk.group, gvk.version, gvk.kind).expect("known kind");
    let default = |object: &mut Value| {
        normalise(ty, object).expect("right types");
        defaults::apply(gvk, object);
        normalise(ty, object).expect("right types");
    };
    default(&mut object);
    let once = object.clone();
    default(&mut object);
    assert_eq!(object, once);
    object
}

pub(crate) fn spec_without_template(object: &Value) -> Value {
    let mut spec = object.at("spec").clone();
    spec.remove_at("template");
    spec
}

/// A valid pod template.
pub(crate) fn template() -> Value {
    json!({"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}})
}

/// An object after preparation for its creation.
pub(crate) fn prepared_for_create(mut object: Value) -> Value {
    let text = object.clone();
    strategy::prepare_create(Gvk::of(&text), &mut object);
    object
}

/// An object after preparation for replacing `old`.
pub(crate) fn prepared_for_update(mut new: Value, old: &Value) -> Value {
    let text = new.clone();
    strategy::prepare_update(Gvk::of(&text), &mut new, old);
    new
}

/// A changed object after preparation for replacing `old`.
pub(crate) fn changed(gvk: Gvk<'_>, old: &Value, change: impl FnOnce(&mut Value)) -> Value {
    let mut new = old.clone();
    change(&mut new);
    strategy::prepare_update(gvk, &mut new, old);
    new
}

/// An object after decoding, defaulting and preparation.
pub(crate) fn prepared(api_version: &str, kind: &str, body: &Value) -> Value {
    let mut object = body.clone();
    object.set_at("apiVersion", api_version);
    object.set_at("kind", kind);
    object.default_at("metadata.name", "x");
    object.set_at("metadata.uid", "u");
    let head = object.clone();
    let gvk = Gvk::of(&head);
    let ty = type_of_kind(gvk.group, gvk.version, gvk.kind).expect("known kind");
    normalise(ty, &mut object).expect("right types");
    defaults::apply(gvk, &mut object);
    strategy::prepare_create(gvk, &mut object);
    normalise(ty, &mut object).expect("right types");
    object
}

/// The validation errors of a new object, except for its metadata.
pub(crate) fn create_errors(object: &Value) -> Vec<String> {
    messages(&(rules(Gvk::of(object)).validate)(object))
}

/// The validation errors of an update, except for the metadata.
pub(crate) fn update_errors(new: &Value, old: &Value) -> Vec<String> {
    messages(&(rules(Gvk::of(new)).validate_update)(new, old))
}

/// The validation errors of a status update, except for the metadata.
pub(crate) fn status_errors(new: &Value, old: &Value) -> Vec<String> {
    messages(&(rules(Gvk::of(new)).validate_subresource)("status", new, old))
}

/// The validation errors of a new, prepared object with this spec.
pub(crate) fn spec_errors(api_version: &str, kind: &str, spec: &Value) -> Vec<String> {
    create_errors(&prepared(api_version, kind, &json!({"spec": spec})))
}

/// A valid workload with additional fields in its spec.
pub(crate) fn workload(others: &Value) -> Value {
    let mut spec = json!({
        "selector": {"matchLabels": {"app": "a"}},
        "template": {
            "metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "nginx"}]},
        },
    });
    for (name, value) in others.as_object().expect("an object") {
        spec[name] = value.clone();
    }
    spec
}

/// A valid Job with additional fields in its spec.
pub(crate) fn job(others: &Value) -> Value {
    let pod = json!({"containers": [{"name": "c", "image": "nginx"}], "restartPolicy": "Never"});
    let mut spec = json!({"template": {"spec": pod}});
    for (name, value) in others.as_object().expect("an object") {
        spec[name] = value.clone();
    }
    spec
}

/// Creates an object like the server, with a cluster IP for a service that needs one.
pub(crate) fn request_errors(mut object: Value) -> Vec<String> {
    let copy = object.clone();
    let gvk = Gvk::of(&copy);
    object.set_at("metadata.name", "x");
    object.set_at("metadata.namespace", "ns");
    defaults::apply(gvk, &mut object);
    strategy::prepare_create(gvk, &mut object);
    if gvk.kind == "Service" {
        let errors = strategy::service_ip_families(&mut object, None);
        if !errors.is_empty() {
            return errors.iter().map(ToString::to_string).collect();
        }
        if object.str_at("spec.type") != "ExternalName" && !object.has("spec.clusterIP") {
            object.set_at("spec.clusterIP", "10.0.0.7");
            object.set_at("spec.clusterIPs", json!(["10.0.0.7"]));
        }
    }
    validation::create(gvk, true, &object).iter().map(ToString::to_string).collect()
}

pub(crate) fn networking(kind: &str, spec: Value) -> Vec<String> {
    let mut object = json!({"apiVersion": "networking.k8s.io/v1", "kind": kind});
    object.set_at("spec", spec);
    let mut errors = request_errors(object);
    // These tests set a namespace on every object.
    errors.retain(|error| !error.starts_with("metadata.namespace"));
    errors
}

/// The cells of an object named `o` that was created an hour ago.
pub(crate) fn row(api_version: &str, kind: &str, parts: Value) -> Value {
    let mut object = parts;
    object.set_at("apiVersion", api_version);
    object.set_at("kind", kind);
    object.default_at("metadata.name", "o");
    object.default_at("metadata.creationTimestamp", CREATED);
    let gvk = Gvk::of(&object);
    let found = table::cells(gvk, &object, NOW);
    if let Some(paths) = table::cell_paths(gvk) {
        let paths: Vec<Vec<&str>> = paths.iter().map(|path| path.split('.').collect()).collect();
        let part = only(&object, &paths.iter().map(Vec::as_slice).collect::<Vec<_>>());
        assert_eq!(table::cells(gvk, &part, NOW), found, "{kind}: cell_paths lacks a path");
        assert_eq!(table::row_conditions(gvk, &part), table::row_conditions(gvk, &object), "{kind}");
    }
    Value::Array(found)
}

/// The fields at these paths.
fn only(value: &Value, paths: &[&[&str]]) -> Value {
    match value {
        _ if paths.iter().any(|path| path.is_empty()) => value.clone(),
        Value::Object(fields) => {
            let kept = fields.iter().filter_map(|(name, value)| {
                let below: Vec<&[&str]> =
                    paths.iter().filter(|path| path[0] == name).map(|path| &path[1..]).collect();
                (!below.is_empty()).then(|| (name.clone(), only(value, &below)))
            });
            Value::Object(kept.collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(|item| only(item, paths)).collect()),
        scalar => scalar.clone(),
    }
}
