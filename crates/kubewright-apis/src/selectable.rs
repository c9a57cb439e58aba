//! The fields of built-in kinds that field selectors may name, and their values.
//!
//! Every kind has `metadata.name`, most have `metadata.namespace`, and a few have more. Custom resources bring
//! their own list (`selectableFields`), which is not looked at here.

use serde_json::Value;

use crate::facts;
use kubewright_apimachinery::field::quote;
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::object::Fields as _;

const NAME: &str = "metadata.name";
const NAMESPACE: &str = "metadata.namespace";

/// What selectors may name in `object`, which is of kind `gvk` and in that version's form.
pub fn fields(gvk: Gvk<'_>, object: &Value) -> Vec<(&'static str, String)> {
    let value = |label: &'static str, read: Read| (label, read.of(object));
    match table(gvk) {
        Some(table) => table.fields.iter().map(|(label, read)| value(label, *read)).collect(),
        None => vec![value(NAME, Read::Text(NAME)), value(NAMESPACE, Read::Text(NAMESPACE))],
    }
}

/// Whether selectors may name more than names and namespaces in objects of kind `gvk`.
pub fn has_own(gvk: Gvk<'_>) -> bool {
    table(gvk).is_some()
}

/// Whether selectors may name `label` in objects of kind `gvk`.
pub fn supported(gvk: Gvk<'_>, label: &str) -> bool {
    match table(gvk) {
        Some(table) => table.fields.iter().any(|(known, _)| *known == label),
        None => matches!(label, NAME | NAMESPACE),
    }
}

/// Checks that selectors may name `label`; the error is what upstream answers with 400.
///
/// `namespaced` matters for custom resources only: upstream takes `metadata.namespace` for every kind that has
/// no list of its own.
pub fn check(gvk: Gvk<'_>, namespaced: bool, label: &str) -> Result<(), String> {
    if !is_built_in(gvk) {
        let known = label == NAME || namespaced && label == NAMESPACE;
        return if known { Ok(()) } else { Err(Refusal::Plain.text(gvk, label)) };
    }
    if supported(gvk, label) {
        return Ok(());
    }
    Err(table(gvk).map_or(Refusal::Unknown, |table| table.refusal).text(gvk, label))
}

/// The selectable fields of a kind that has more than its name and namespace, or fewer.
struct Table {
    fields: &'static [(&'static str, Read)],
    refusal: Refusal,
}

/// How the value of a field is read.
#[derive(Clone, Copy)]
enum Read {
    /// The string at a path.
    Text(&'static str),
    /// The number at a path, which is zero unless it is there.
    Number(&'static str),
    /// The bool at a path, which is false unless it is there.
    Flag(&'static str),
    /// The first string that is not empty.
    Either(&'static str, &'static str),
    /// The first address of a pod.
    PodIp,
    /// Nothing: the label is known, but objects have no value under it.
    Nothing,
}

impl Read {
    fn of(self, object: &Value) -> String {
        match self {
            Self::Text(path) => object.str_at(path).to_owned(),
            Self::Number(path) => object.int_at(path).unwrap_or_default().to_string(),
            Self::Flag(path) => object.bool_at(path).to_string(),
            Self::Either(first, second) => match object.str_at(first) {
                "" => object.str_at(second).to_owned(),
                text => text.to_owned(),
            },
            Self::PodIp => {
                object.list_at("status.podIPs").first().map_or("", |ip| ip.str_at("ip")).to_owned()
            }
            Self::Nothing => String::new(),
        }
    }
}

/// How upstream words that a label is not selectable; it has several ways.
#[derive(Clone, Copy)]
enum Refusal {
    Unknown,
    Plain,
    Job,
    WithKind,
}

impl Refusal {
    fn text(self, gvk: Gvk<'_>, label: &str) -> String {
        match self {
            Self::Unknown => {
                format!("{} is not a known field selector: only \"{NAME}\", \"{NAMESPACE}\"", quote(label))
            }
            Self::Plain => format!("field label not supported: {label}"),
            Self::Job => format!("field label {} not supported for batchv1.Job", quote(label)),
            Self::WithKind => {
                format!("field label not supported for {}, Kind={}: {label}", gvk.api_version(), gvk.kind)
            }
        }
    }
}

fn is_built_in(gvk: Gvk<'_>) -> bool {
    facts::resources().iter().any(|r| r.group == gvk.group && r.version == gvk.version && r.kind == gvk.kind)
}

/// The table of a kind, if it has one.
fn table(gvk: Gvk<'_>) -> Option<Table> {
    use Read::{Either, Flag, Nothing, Number, PodIp, Text};
    macro_rules! texts {
        ($($path:literal),*) => { &[$(($path, Text($path))),*] };
    }
    let mut refusal = Refusal::Plain;
    let fields: &[(&str, Read)] = match (gvk.group, gvk.kind) {
        ("", "Pod") => &[
            (NAME, Text(NAME)),
            (NAMESPACE, Text(NAMESPACE)),
            ("spec.nodeName", Text("spec.nodeName")),
            // Its name before v1.
            ("spec.host", Text("spec.nodeName")),
            ("spec.restartPolicy", Text("spec.restartPolicy")),
            ("spec.schedulerName", Text("spec.schedulerName")),
            ("spec.serviceAccountName", Text("spec.serviceAccountName")),
            ("spec.hostNetwork", Flag("spec.hostNetwork")),
            ("status.phase", Text("status.phase")),
            ("status.podIP", PodIp),
            ("status.podIPs", Nothing),
            ("status.nominatedNodeName", Text("status.nominatedNodeName")),
        ],
        ("", "Node") => &[(NAME, Text(NAME)), ("spec.unschedulable", Flag("spec.unschedulable"))],
        ("", "Namespace") => texts!("metadata.name", "status.phase"),
        ("", "Secret") => texts!("metadata.name", "metadata.namespace", "type"),
        ("", "Service") => texts!("metadata.name", "metadata.namespace", "spec.clusterIP", "spec.type"),
        ("", "ReplicationController") => &[
            (NAME, Text(NAME)),
            (NAMESPACE, Text(NAMESPACE)),
            ("status.replicas", Number("status.replicas")),
        ],
        ("", "Event") => &[
            (NAME, Text(NAME)),
            (NAMESPACE, Text(NAMESPACE)),
            ("involvedObject.kind", Text("involvedObject.kind")),
            ("involvedObject.namespace", Text("involvedObject.namespace")),
            ("involvedObject.name", Text("involvedObject.name")),
            ("involvedObject.uid", Text("involvedObject.uid")),
            ("involvedObject.apiVersion", Text("involvedObject.apiVersion")),
            ("involvedObject.resourceVersion", Text("involvedObject.resourceVersion")),
            ("involvedObject.fieldPath", Text("involvedObject.fieldPath")),
            ("reason", Text("reason")),
            ("reportingComponent", Text("reportingComponent")),
            ("source", Either("source.component", "reportingComponent")),
            ("type", Text("type")),
        ],
        ("events.k8s.io", "Event") => texts!(
            "metadata.name",
            "metadata.namespace",
            "regarding.kind",
            "regarding.namespace",
            "regarding.name",
            "regarding.uid",
            "regarding.apiVersion",
            "regarding.resourceVersion",
            "regarding.fieldPath",
            "reason",
            "reportingController",
            "type"
        ),
        ("batch", "Job") => {
            refusal = Refusal::Job;
            &[
                (NAME, Text(NAME)),
                (NAMESPACE, Text(NAMESPACE)),
                ("status.successful", Number("status.succeeded")),
            ]
        }
        ("certificates.k8s.io", "CertificateSigningRequest") => texts!("metadata.name", "spec.signerName"),
        ("resource.k8s.io", "ResourceSlice") => {
            refusal = Refusal::WithKind;
            texts!("metadata.name", "spec.nodeName", "spec.driver")
        }
        _ => return None,
    };
    Some(Table { fields, refusal })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn gvk<'a>(group: &'a str, kind: &'a str) -> Gvk<'a> {
        Gvk { group, version: "v1", kind }
    }

    fn value(object: &Value, label: &str) -> Option<String> {
        fields(Gvk::of(object), object).into_iter().find(|(known, _)| *known == label).map(|(_, value)| value)
    }

    #[test]
    fn absent_fields_of_a_pod_read_as_gos_zero_values() {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "ns"},
            "spec": {"nodeName": "n1"}, "status": {"phase": "Running", "podIPs": [{"ip": "10.1.0.5"}, {"ip": "fd00::5"}]},
        });
        let expect = |label, text: &str| assert_eq!(value(&pod, label).as_deref(), Some(text), "{label}");
        expect("metadata.name", "p");
        expect("metadata.namespace", "ns");
        expect("spec.nodeName", "n1");
        expect("spec.host", "n1");
        expect("spec.hostNetwork", "false");
        expect("spec.serviceAccountName", "");
        expect("status.phase", "Running");
        expect("status.podIP", "10.1.0.5");
        expect("status.podIPs", "");
    }

    #[test]
    fn counts_read_as_numbers() {
        let job = json!({"apiVersion": "batch/v1", "kind": "Job", "status": {"succeeded": 2}});
        assert_eq!(value(&job, "status.successful").as_deref(), Some("2"));
        let controller = json!({"apiVersion": "v1", "kind": "ReplicationController"});
        assert_eq!(value(&controller, "status.replicas").as_deref(), Some("0"));
    }

    #[test]
    fn an_event_without_source_names_its_reporter() {
        let mut event = json!({"apiVersion": "v1", "kind": "Event", "reportingComponent": "r", "source": {"component": "c"}});
        assert_eq!(value(&event, "source").as_deref(), Some("c"));
        event.remove_at("source");
        assert_eq!(value(&event, "source").as_deref(), Some("r"));
    }

    #[test]
    fn both_views_of_events_have_their_own_labels() {
        assert!(supported(gvk("", "Event"), "involvedObject.kind"));
        assert!(!supported(gvk("events.k8s.io", "Event"), "involvedObject.kind"));
        assert!(supported(gvk("events.k8s.io", "Event"), "regarding.kind"));
        let event = json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "regarding": {"kind": "Pod"}});
        assert_eq!(value(&event, "regarding.kind").as_deref(), Some("Pod"));
    }

    #[test]
    fn a_label_that_is_not_selectable_is_refused_in_upstreams_words() {
        let refused = |gvk, label, text: &str| assert_eq!(check(gvk, true, label), Err(text.to_owned()));
        refused(
            gvk("", "ConfigMap"),
            "metadata.uid",
            r#""metadata.uid" is not a known field selector: only "metadata.name", "metadata.namespace""#,
        );
        refused(
            gvk("apps", "Deployment"),
            "spec.replicas",
            r#""spec.replicas" is not a known field selector: only "metadata.name", "metadata.namespace""#,
        );
        refused(gvk("", "Pod"), "spec.bogus", "field label not supported: spec.bogus");
        refused(gvk("", "Namespace"), "metadata.namespace", "field label not supported: metadata.namespace");
        refused(gvk("events.k8s.io", "Event"), "bogus", "field label not supported: bogus");
        refused(gvk("batch", "Job"), "x", r#"field label "x" not supported for batchv1.Job"#);
        refused(
            gvk("resource.k8s.io", "ResourceSlice"),
            "x",
            "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: x",
        );
    }

    #[test]
    fn custom_resources_have_a_namespace_only_if_they_are_in_one() {
        let widget = gvk("example.com", "Widget");
        assert_eq!(check(widget, true, "metadata.namespace"), Ok(()));
        assert_eq!(check(widget, true, "metadata.name"), Ok(()));
        let refused = Err("field label not supported: metadata.namespace".to_owned());
        assert_eq!(check(widget, false, "metadata.namespace"), refused);
        assert_eq!(
            check(gvk("rbac.authorization.k8s.io", "ClusterRole"), false, "metadata.namespace"),
            Ok(())
        );
    }
}
