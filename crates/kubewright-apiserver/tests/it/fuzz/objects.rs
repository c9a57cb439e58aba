//! Generates objects of every kind: mostly valid, with some invalid fields.
//!
//! A completely random object is rejected for its first field. So generation starts from a valid object, if
//! there is one for the kind, and changes a few of its fields by their types.

use kubewright_apis::facts::{self, FieldType, Resource, Type};
use serde_json::{Map, Value, json};

use super::choices::Choices;

/// Existing objects, and templates for others: path and text.
pub(crate) const VICTIMS: &[(&str, &str)] = &[
    (
        "/api/v1/namespaces/default/configmaps",
        r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"victim","labels":{"a":"b"}},"data":{"k":"v"}}"#,
    ),
    (
        "/api/v1/namespaces/default/secrets",
        r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"victim"},"data":{"k":"dg=="}}"#,
    ),
    (
        "/api/v1/namespaces/default/pods",
        r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"victim","finalizers":["example.org/f"]},"spec":{"containers":[{"name":"c","image":"i","ports":[{"containerPort":80}],"env":[{"name":"A","value":"b"}],"resources":{"requests":{"cpu":"100m"},"limits":{"cpu":"1","memory":"1Gi"}},"readinessProbe":{"httpGet":{"port":80}}}],"volumes":[{"name":"v","emptyDir":{}}],"tolerations":[{"operator":"Exists"}]}}"#,
    ),
    (
        "/apis/apps/v1/namespaces/default/deployments",
        r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"victim"},"spec":{"replicas":2,"selector":{"matchLabels":{"a":"b"}},"strategy":{"rollingUpdate":{"maxSurge":"25%"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}"#,
    ),
    (
        "/apis/apps/v1/namespaces/default/statefulsets",
        r#"{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"name":"victim"},"spec":{"serviceName":"s","selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}},"volumeClaimTemplates":[{"metadata":{"name":"d"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}]}}"#,
    ),
    (
        "/apis/apps/v1/namespaces/default/daemonsets",
        r#"{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"name":"victim"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}"#,
    ),
    (
        "/apis/apps/v1/namespaces/default/replicasets",
        r#"{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"name":"victim"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}"#,
    ),
    (
        "/apis/apps/v1/namespaces/default/controllerrevisions",
        r#"{"apiVersion":"apps/v1","kind":"ControllerRevision","metadata":{"name":"victim"},"revision":1,"data":{"a":[{}]}}"#,
    ),
    (
        "/api/v1/namespaces/default/services",
        r#"{"apiVersion":"v1","kind":"Service","metadata":{"name":"victim"},"spec":{"type":"NodePort","selector":{"a":"b"},"ports":[{"name":"http","port":80,"targetPort":"http"},{"name":"dns","port":53,"protocol":"UDP"}]}}"#,
    ),
    (
        "/apis/batch/v1/namespaces/default/jobs",
        r#"{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"victim"},"spec":{"completions":3,"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}"#,
    ),
    (
        "/apis/batch/v1/namespaces/default/cronjobs",
        r#"{"apiVersion":"batch/v1","kind":"CronJob","metadata":{"name":"victim"},"spec":{"schedule":"*/5 * * * *","jobTemplate":{"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}}}"#,
    ),
    (
        "/apis/networking.k8s.io/v1/namespaces/default/ingresses",
        r#"{"apiVersion":"networking.k8s.io/v1","kind":"Ingress","metadata":{"name":"victim"},"spec":{"rules":[{"host":"a.b","http":{"paths":[{"path":"/","pathType":"Prefix","backend":{"service":{"name":"s","port":{"number":80}}}}]}}]}}"#,
    ),
    (
        "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies",
        r#"{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"name":"victim"},"spec":{"podSelector":{},"ingress":[{"from":[{"ipBlock":{"cidr":"10.0.0.0/8"}}],"ports":[{"port":80}]}]}}"#,
    ),
    (
        "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers",
        r#"{"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler","metadata":{"name":"victim"},"spec":{"maxReplicas":3,"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"d"},"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":50}}}]}}"#,
    ),
    (
        "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
        r#"{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"victim"},"spec":{"minAvailable":"50%","selector":{"matchLabels":{"a":"b"}}}}"#,
    ),
    (
        "/api/v1/namespaces/default/persistentvolumeclaims",
        r#"{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"victim"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}"#,
    ),
    (
        "/api/v1/persistentvolumes",
        r#"{"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":"victim"},"spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"],"hostPath":{"path":"/x"}}}"#,
    ),
    (
        "/api/v1/nodes",
        r#"{"apiVersion":"v1","kind":"Node","metadata":{"name":"victim","labels":{"node-role.kubernetes.io/x":""}},"spec":{"podCIDR":"10.1.0.0/24"}}"#,
    ),
    ("/api/v1/namespaces", r#"{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"victim"}}"#),
    (
        "/api/v1/namespaces/default/resourcequotas",
        r#"{"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"victim"},"spec":{"hard":{"pods":"5","requests.cpu":"1"}}}"#,
    ),
    (
        "/api/v1/namespaces/default/limitranges",
        r#"{"apiVersion":"v1","kind":"LimitRange","metadata":{"name":"victim"},"spec":{"limits":[{"type":"Container","default":{"cpu":"1"}}]}}"#,
    ),
    (
        "/apis/coordination.k8s.io/v1/namespaces/default/leases",
        r#"{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"victim"},"spec":{"holderIdentity":"x","leaseDurationSeconds":15}}"#,
    ),
    (
        "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
        r#"{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","metadata":{"name":"victim"},"addressType":"IPv4","endpoints":[{"addresses":["10.1.2.3"]}],"ports":[{"port":80}]}"#,
    ),
    (
        "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles",
        r#"{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"victim"},"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}"#,
    ),
    (
        "/apis/storage.k8s.io/v1/storageclasses",
        r#"{"apiVersion":"storage.k8s.io/v1","kind":"StorageClass","metadata":{"name":"victim"},"provisioner":"example.org/x"}"#,
    ),
    (
        "/apis/events.k8s.io/v1/namespaces/default/events",
        r#"{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"victim"},"eventTime":"2026-01-01T00:00:00.000000Z","reportingController":"x.io/y","reportingInstance":"z","action":"a","reason":"r","type":"Normal","regarding":{"namespace":"default"}}"#,
    ),
    (
        "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
        r#"{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration","metadata":{"name":"victim"},"webhooks":[{"name":"a.b.c","clientConfig":{"url":"https://x/y"},"sideEffects":"None","admissionReviewVersions":["v1"]}]}"#,
    ),
];

/// A resource that supports create.
pub(crate) fn resource(choices: &mut Choices<'_>) -> &'static Resource {
    let all: Vec<&Resource> =
        facts::resources().iter().filter(|resource| resource.verbs.contains(&"create")).collect();
    // Half of the time a resource with a template.
    if choices.once_in(2) {
        return choices.one(&all);
    }
    let (path, _) = choices.one(VICTIMS);
    all.iter().find(|resource| self::path(resource) == path).copied().unwrap_or(all[0])
}

/// The path of a resource.
pub(crate) fn path(resource: &Resource) -> String {
    let root = if resource.group.is_empty() {
        format!("/api/{}", resource.version)
    } else {
        format!("/apis/{}/{}", resource.group, resource.version)
    };
    let namespace = if resource.namespaced() { "/namespaces/default" } else { "" };
    format!("{root}{namespace}/{}", resource.plural)
}

/// An object of a resource.
pub(crate) fn object(resource: &Resource, choices: &mut Choices<'_>) -> Value {
    let path = path(resource);
    let victim = VICTIMS.iter().find(|(at, _)| *at == path);
    let mut object: Value =
        victim.map_or(json!({}), |(_, text)| serde_json::from_str(text).expect("the object is JSON"));
    if !object["metadata"].is_object() {
        object["metadata"] = json!({"name": "victim"});
    }
    if let Some(ty) = facts::type_of_kind(resource.group, resource.version, resource.kind) {
        change_fields(ty, &mut object, choices, 0);
    }
    // With a wrong kind no other field is checked.
    if !choices.once_in(32) && object.is_object() {
        let api_version = if resource.group.is_empty() {
            resource.version.to_owned()
        } else {
            format!("{}/{}", resource.group, resource.version)
        };
        object["apiVersion"] = api_version.into();
        object["kind"] = resource.kind.into();
        if object["metadata"].is_object() && !choices.once_in(8) {
            object["metadata"]["name"] = choices.one(&["victim", "other"]).into();
        }
    }
    object
}

fn change_fields(ty: &'static Type, object: &mut Value, choices: &mut Choices<'_>, depth: usize) {
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let Some(fields) = object.as_object_mut() else { return };
    for field in &ty.fields {
        match fields.get_mut(field.name) {
            Some(_) if choices.once_in(24) => {
                fields.remove(field.name);
            }
            Some(present) => change(&field.ty, &field.enum_values, present, choices, depth + 1),
            None if choices.once_in(if field.required { 3 } else { 12 }) && depth < 9 => {
                fields.insert(field.name.to_owned(), made(&field.ty, &field.enum_values, choices, depth + 1));
            }
            None => {}
        }
    }
    if choices.once_in(48) {
        fields.insert("bogus".to_owned(), absurd(choices));
    }
}

/// Changes some values.
fn change(
    ty: &'static FieldType,
    values: &[&'static str],
    value: &mut Value,
    choices: &mut Choices<'_>,
    depth: usize,
) {
    if choices.once_in(24) {
        *value = absurd(choices);
        return;
    }
    match (ty, &mut *value) {
        (FieldType::Object(of), Value::Object(_)) => change_fields(of.get(), value, choices, depth),
        (FieldType::List(of), Value::Array(items)) => {
            for item in items.iter_mut() {
                change(of, &[], item, choices, depth);
            }
            match choices.below(16) {
                13 => items.extend(items.first().cloned()),
                14 => items.push(made(of, &[], choices, depth)),
                15 => items.clear(),
                _ => {}
            }
        }
        (FieldType::Map(of), Value::Object(entries)) => {
            for entry in entries.values_mut() {
                change(of, &[], entry, choices, depth);
            }
            if choices.once_in(12) {
                entries.insert(choices.one(TEXTS).to_owned(), made(of, &[], choices, depth));
            }
        }
        _ if choices.once_in(8) => *value = made(ty, values, choices, depth),
        _ => {}
    }
}

/// A value of a type.
fn made(ty: &'static FieldType, values: &[&'static str], choices: &mut Choices<'_>, depth: usize) -> Value {
    if choices.once_in(24) {
        return absurd(choices);
    }
    match ty {
        FieldType::String if !values.is_empty() => choices.one(values).into(),
        FieldType::String => choices.one(TEXTS).into(),
        FieldType::Bool => choices.once_in(2).into(),
        FieldType::Number => choices.one(&[0.0, -1.5, 1e300, 0.1]).into(),
        FieldType::Bytes => choices.one(&["", "dg==", "dg", "!"]).into(),
        FieldType::Quantity => choices.one(QUANTITIES).into(),
        FieldType::IntOrString if choices.once_in(2) => {
            choices.one(&["50%", "http", "", "-1%", "101%", "99999999999%"]).into()
        }
        FieldType::Int32 | FieldType::Int64 | FieldType::IntOrString => choices.one(INTEGERS).into(),
        FieldType::Time | FieldType::MicroTime => choices.one(TIMES).into(),
        FieldType::FieldsV1 | FieldType::Raw | FieldType::Json => absurd(choices),
        FieldType::List(of) => (0..choices.below(4)).map(|_| made(of, &[], choices, depth + 1)).collect(),
        FieldType::Map(of) => {
            let entry = |choices: &mut Choices<'_>| {
                (choices.one(TEXTS).to_owned(), made(of, &[], choices, depth + 1))
            };
            Value::Object((0..choices.below(3)).map(|_| entry(choices)).collect())
        }
        FieldType::Object(of) => {
            let mut object = json!({});
            change_fields(of.get(), &mut object, choices, depth + 1);
            object
        }
    }
}

/// A value of any type.
fn absurd(choices: &mut Choices<'_>) -> Value {
    match choices.below(10) {
        0 => Value::Null,
        1 => json!({}),
        2 => json!([]),
        3 => json!([null, {"name": null}, [1]]),
        4 => json!({"a": {"b": [{"c": 1}]}}),
        5 => choices.one(INTEGERS).into(),
        6 => true.into(),
        7 => 1.5.into(),
        8 => json!({"$patch": choices.one(&["delete", "replace", "merge", "bogus"])}),
        _ => choices.one(TEXTS).into(),
    }
}

const INTEGERS: &[i64] =
    &[0, 1, 80, -1, 2, 65_536, 1_000_000, i32::MAX as i64, i32::MIN as i64, i64::MAX, i64::MIN];
const QUANTITIES: &[&str] = &[
    "1",
    "100m",
    "1Gi",
    "0",
    "-1",
    "1e3",
    "1e-9",
    "9223372036854775807",
    "-9223372036854775808Ei",
    "1e30",
    "x",
    "",
];
const TIMES: &[&str] = &[
    "2026-01-01T00:00:00Z",
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59.999999Z",
    "1969-12-31T00:00:00+23:59",
    "x",
    "",
];

/// Strings with a special meaning for some field.
const TEXTS: &[&str] = &[
    "a",
    "",
    "web",
    "default",
    "kubernetes",
    "victim",
    "a/b",
    "example.org/x",
    "a.b.c",
    "-",
    "A b",
    "ä",
    "😀",
    "\u{0}",
    "\n",
    "80",
    "10.0.0.1",
    "10.0.0.0/24",
    "fd00::1",
    "::",
    "1.2.3.4/33",
    "http",
    "TCP",
    "UDP",
    "None",
    "ClusterIP",
    "ExternalName",
    "LoadBalancer",
    "Always",
    "Never",
    "OnFailure",
    "Exists",
    "In",
    "=",
    "*",
    "*/5 * * * *",
    "@every 1h",
    "TZ=UTC 0 0 31 2 *",
    "IPv4",
    "IPv6",
    "cpu",
    "memory",
    "requests.cpu",
    "pods",
    "ReadWriteOnce",
    "Block",
    "Orphan",
    "foregroundDeletion",
    "v1",
    "apps/v1",
    "Deployment",
    "https://x/y",
    "//",
    "..",
    "/x/../y",
    "0777",
    "{}",
    "$(A)",
    "true",
    "null",
    "Europe/Berlin",
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
];
