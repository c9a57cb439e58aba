//! Fields of built-in kinds that field selectors support, and their values.
//!
//! Every kind supports `metadata.name` and most support `metadata.namespace`. The `selectableFields` of
//! custom resources are not handled here.

use serde_json::Value;

use crate::facts;
use crate::kinds::rules;
use kubewright_apimachinery::field::quote;
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::object::Fields as _;

pub(crate) const NAME: &str = "metadata.name";

pub(crate) const NAMESPACE: &str = "metadata.namespace";

/// The selectable fields of `object`, which has the form of version `gvk`.
pub fn fields(gvk: Gvk<'_>, object: &Value) -> Vec<(&'static str, String)> {
    let value = |label: &'static str, read: Read| (label, read.of(object));
    match rules(gvk).selectable {
        Some(table) => table.fields.iter().map(|(label, read)| value(label, *read)).collect(),
        None => vec![value(NAME, Read::Text(NAME)), value(NAMESPACE, Read::Text(NAMESPACE))],
    }
}

/// The field labels of a kind with labels other than name and namespace.
pub fn own(gvk: Gvk<'_>) -> Option<&'static Selectable> {
    rules(gvk).selectable
}

/// Whether a kind supports a field label.
pub fn supported(gvk: Gvk<'_>, label: &str) -> bool {
    match rules(gvk).selectable {
        Some(table) => table.fields.iter().any(|(known, _)| *known == label),
        None => matches!(label, NAME | NAMESPACE),
    }
}

/// Checks that a kind supports a field label. The error is upstream's message of the 400 response.
///
/// `namespaced` only matters for custom resources. For all other kinds without a table, upstream accepts
/// `metadata.namespace`.
pub fn check(gvk: Gvk<'_>, namespaced: bool, label: &str) -> Result<(), String> {
    if !is_built_in(gvk) {
        let known = label == NAME || namespaced && label == NAMESPACE;
        return if known { Ok(()) } else { Err(Refusal::Plain.text(gvk, label)) };
    }
    if supported(gvk, label) {
        return Ok(());
    }
    Err(rules(gvk).selectable.map_or(Refusal::Unknown, |table| table.refusal).text(gvk, label))
}

/// The field labels of a kind with labels other than name and namespace.
#[derive(Debug, PartialEq, Eq)]
pub struct Selectable {
    pub(crate) fields: &'static [(&'static str, Read)],
    pub(crate) refusal: Refusal,
}

impl Selectable {
    /// The number of labels.
    pub fn count(&self) -> usize {
        self.fields.len()
    }

    /// The position of a label among [`Selectable::values`].
    pub fn position(&self, label: &str) -> Option<usize> {
        self.fields.iter().position(|(known, _)| *known == label)
    }

    /// The values of `object` in the order of the labels. Values of metadata labels are left empty: they are part of
    /// the object's key.
    pub fn values(&self, object: &Value) -> impl Iterator<Item = String> {
        self.fields.iter().map(
            |(label, read)| {
                if label.starts_with("metadata.") { String::new() } else { read.of(object) }
            },
        )
    }
}

/// Field labels whose names are the paths of string fields.
macro_rules! texts {
    ($($path:literal),* $(,)?) => { &[$(($path, $crate::selectable::Read::Text($path))),*] };
}
pub(crate) use texts;

/// How to get the value of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Read {
    /// The string at a path.
    Text(&'static str),
    /// The number at a path; 0 if absent.
    Number(&'static str),
    /// The boolean at a path; false if absent.
    Flag(&'static str),
    /// The first non-empty string.
    Either(&'static str, &'static str),
    /// The first address of a pod.
    PodIp,
    /// A supported label without a value.
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

/// Upstream's variants of the error for an unsupported label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
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
    fn absent_fields_have_gos_zero_value() {
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
    fn replica_counts_are_selectable() {
        let job = json!({"apiVersion": "batch/v1", "kind": "Job", "status": {"succeeded": 2}});
        assert_eq!(value(&job, "status.successful").as_deref(), Some("2"));
        let controller = json!({"apiVersion": "v1", "kind": "ReplicationController"});
        assert_eq!(value(&controller, "status.replicas").as_deref(), Some("0"));
    }

    #[test]
    fn an_event_without_source_uses_its_reporting_component() {
        let mut event = json!({"apiVersion": "v1", "kind": "Event", "reportingComponent": "r", "source": {"component": "c"}});
        assert_eq!(value(&event, "source").as_deref(), Some("c"));
        event.remove_at("source");
        assert_eq!(value(&event, "source").as_deref(), Some("r"));
    }

    #[test]
    fn core_and_events_k8s_io_have_different_labels() {
        assert!(supported(gvk("", "Event"), "involvedObject.kind"));
        assert!(!supported(gvk("events.k8s.io", "Event"), "involvedObject.kind"));
        assert!(supported(gvk("events.k8s.io", "Event"), "regarding.kind"));
        let event = json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "regarding": {"kind": "Pod"}});
        assert_eq!(value(&event, "regarding.kind").as_deref(), Some("Pod"));
    }

    #[test]
    fn an_unsupported_label_is_rejected_with_upstreams_message() {
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
    fn only_namespaced_custom_resources_support_metadata_namespace() {
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
