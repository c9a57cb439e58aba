//! Templates of all objects besides the manager's Deployment: their file, their condition and what depends on
//! values.

use std::collections::BTreeSet;

use kubewright_manifests::rbac;
use serde_json::{Value, json};

use super::deployment::{Ports, SECRET};
use super::names::Names;
use super::template::{Entry, Item, Node, Part};
use super::{Features, when};
use crate::delivery::rendered::Object;

/// The annotation that cert-manager reads.
const INJECT: &str = "cert-manager.io/inject-ca-from";
/// The Certificate of the webhook server, without prefix.
const CERTIFICATE: &str = "serving-cert";
/// Its Issuer, without prefix.
const ISSUER: &str = "selfsigned-issuer";
/// The label of namespaces that the scaffold's webhooks ignore.
const CONTROL_PLANE: &str = "control-plane";
/// The label with the name of a namespace.
const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";

/// A file below templates/.
#[derive(Debug)]
pub(super) struct Template {
    pub(super) path: String,
    pub(super) when: Option<String>,
    pub(super) node: Node,
}

/// What the templates of objects depend on.
#[derive(Debug)]
pub(super) struct Objects<'a> {
    pub(super) names: &'a Names,
    pub(super) features: Features,
    pub(super) ports: Ports,
    /// Names of roles that are bound.
    pub(super) bound: BTreeSet<String>,
    /// The name of the operator's ServiceAccount.
    pub(super) account: String,
}

/// Names of roles that a binding refers to.
pub(super) fn bound(objects: &[Object]) -> BTreeSet<String> {
    let names = objects.iter().filter_map(|object| object.value().pointer("/roleRef/name")?.as_str());
    names.map(str::to_owned).collect()
}

impl Objects<'_> {
    /// The template of an object. `None` if the chart does not contain it.
    pub(super) fn template(&self, object: &Object) -> Option<Template> {
        let suffix = self.names.suffix(object.name()).unwrap_or(object.name());
        let mut node = self.names.node(object.value());
        let (folder, when) = match object.kind() {
            // Helm creates the namespace of a release.
            "Namespace" if object.name() == self.names.namespace() => return None,
            "ServiceAccount" if object.name() == self.account => {
                self.account(&mut node);
                ("rbac", Some(when::ACCOUNT.to_owned()))
            }
            "CustomResourceDefinition" => {
                self.definition(&mut node, object.value());
                ("crd", Some(when::CRDS.to_owned()))
            }
            "Role" | "ClusterRole" | "RoleBinding" | "ClusterRoleBinding" => {
                ("rbac", Some(self.role_condition(object, suffix)))
            }
            "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" if self.features.webhooks => {
                self.webhooks(&mut node, object.value());
                ("webhook", Some(when::WEBHOOKS.to_owned()))
            }
            "Service" if self.features.webhooks && suffix == "webhook-service" => {
                ("webhook", Some(when::WEBHOOKS.to_owned()))
            }
            "Service" if suffix.ends_with("metrics-service") => {
                set_ports(&mut node, self.ports.metrics, ".Values.metrics.port");
                ("metrics", Some(when::METRICS.to_owned()))
            }
            "Issuer" | "Certificate" if self.features.cert_manager.is_some() => {
                ("cert-manager", self.features.cert_manager.map(str::to_owned))
            }
            "ServiceMonitor" => {
                ("prometheus", Some(format!("and .Values.prometheus.enable {}", when::METRICS)))
            }
            "NetworkPolicy" => {
                set_ports(&mut node, self.ports.metrics, ".Values.metrics.port");
                let mut condition = when::POLICIES.to_owned();
                if self.features.webhooks && suffix.contains("webhook") {
                    set_ports(&mut node, self.ports.webhook, ".Values.webhook.port");
                    condition = format!("and {condition} {}", when::WEBHOOKS);
                }
                ("network-policy", Some(condition))
            }
            _ => ("extras", None),
        };
        if self.names.suffix(object.name()).is_some()
            && !(object.kind() == "ServiceAccount" && folder == "rbac")
        {
            node.rename(self.names.action(suffix));
        }
        let kind = object.kind().to_lowercase();
        let file = if folder == "extras" { format!("{kind}-{suffix}") } else { suffix.to_owned() };
        Some(Template { path: format!("templates/{folder}/{file}.yaml"), when, node })
    }

    fn account(&self, node: &mut Node) {
        let Some(metadata) = node.field_mut("metadata") else { return };
        let name = format!("include \"{}\" .", self.names.template("serviceAccountName"));
        metadata.set("name", Node::text(name));
        let value = ".Values.serviceAccount.annotations";
        match metadata.field_mut("annotations") {
            Some(annotations) => annotations.entries().push(Entry::Spread(value.into())),
            None => metadata.entries().push(Entry::With("annotations".into(), value.into())),
        }
    }

    fn role_condition(&self, object: &Object, suffix: &str) -> String {
        let also = match suffix {
            _ if suffix.starts_with("leader-election-") => when::LEADER_ELECTION,
            // The debug page needs the permissions to authorize requests that the metrics have.
            _ if suffix.starts_with("metrics-") || suffix == rbac::DEBUG_PAGE_READER => when::METRICS,
            // The permissions for certificates of the manager itself.
            _ if self.features.cert_manager == Some(when::CERTIFICATES)
                && suffix.starts_with("webhook-certificates-") =>
            {
                when::OWN_CERTIFICATES
            }
            _ if self.features.webhooks && suffix.starts_with("webhook-") => when::WEBHOOKS,
            // Roles for users of custom resources are not bound.
            _ if object.kind() == "ClusterRole" && !self.bound.contains(object.name()) => when::HELPERS,
            _ => return when::RBAC.to_owned(),
        };
        format!("and {} {also}", when::RBAC)
    }

    /// A CRD stays installed if `crd.keep` is set, and is converted if there are webhooks.
    fn definition(&self, node: &mut Node, definition: &Value) {
        let keep = Entry::If(
            ".Values.crd.keep".into(),
            vec![Entry::Field("helm.sh/resource-policy".into(), json!("keep").into())],
        );
        let is_converted = definition["spec"]["conversion"]["strategy"] == "Webhook";
        let mut conditional = vec![keep];
        let mut any = ".Values.crd.keep".to_owned();
        if let Some(condition) = self.features.cert_manager.filter(|_| is_converted) {
            conditional.push(self.inject(condition));
            any = format!("or {any} ({condition})");
        }
        annotate(node, conditional, &any);
        if is_converted && self.features.webhooks {
            let Some(spec) = node.field_mut("spec") else { return };
            for entry in spec.entries() {
                if matches!(entry, Entry::Field(name, _) if name == "conversion") {
                    *entry = Entry::If(when::WEBHOOKS.into(), vec![entry.clone()]);
                }
            }
        }
    }

    fn webhooks(&self, node: &mut Node, configuration: &Value) {
        if let Some(condition) = self.features.cert_manager {
            annotate(node, vec![self.inject(condition)], condition);
        }
        // The scaffold's webhooks ignore the operator's namespace by its label, which Helm does not set.
        let Some(Node::List(webhooks)) = node.field_mut("webhooks") else { return };
        for (at, webhook) in webhooks.iter_mut().enumerate() {
            let expressions = &configuration["webhooks"][at]["namespaceSelector"]["matchExpressions"];
            let expressions = expressions.as_array().map(Vec::as_slice).unwrap_or_default();
            let excludes =
                |key: &str| expressions.iter().position(|it| it["key"] == key && it["operator"] == "NotIn");
            let (Some(_), Some(names)) = (excludes(CONTROL_PLANE), excludes(NAMESPACE_NAME)) else {
                continue;
            };
            let items = expressions.iter().enumerate().map(|(at, expression)| {
                let mut node = Node::Data(expression.clone());
                if at == names {
                    let values = expression["values"].as_array().into_iter().flatten();
                    let mut values: Vec<Item> =
                        values.map(|value| Item::Node(Node::Data(value.clone()))).collect();
                    values.push(Item::Node(Node::text("$.Release.Namespace")));
                    node.set("values", Node::List(values));
                }
                Item::Node(node)
            });
            let items = Node::List(items.collect());
            if let Item::Node(webhook) = webhook
                && let Some(selector) = webhook.field_mut("namespaceSelector")
            {
                selector.set("matchExpressions", items);
            }
        }
    }

    /// The annotation with which cert-manager injects its CA.
    fn inject(&self, condition: &str) -> Entry {
        let certificate = vec![
            Part::Action("$.Release.Namespace".into()),
            Part::Data("/".into()),
            Part::Action(self.names.action(CERTIFICATE)),
        ];
        Entry::If(condition.into(), vec![Entry::Field(INJECT.into(), Node::Text(certificate))])
    }
}

/// Adds conditional annotations and removes fixed ones of cert-manager. `any` is true if one of the conditions
/// is.
fn annotate(node: &mut Node, conditional: Vec<Entry>, any: &str) {
    let Some(metadata) = node.field_mut("metadata") else { return };
    if let Some(annotations) = metadata.field_mut("annotations") {
        let entries = annotations.entries();
        entries.retain(|entry| !matches!(entry, Entry::Field(name, _) if name == INJECT));
        if !entries.is_empty() {
            entries.extend(conditional);
            return;
        }
        metadata.entries().retain(|entry| !matches!(entry, Entry::Field(name, _) if name == "annotations"));
    }
    let field = Entry::Field("annotations".into(), Node::Map(conditional));
    metadata.entries().push(Entry::If(any.to_owned(), vec![field]));
}

/// Replaces a port number below `spec` by a value.
fn set_ports(node: &mut Node, port: u64, value: &str) {
    fn replace(node: &mut Node, port: u64, value: &str) {
        if let Node::Data(data) = node {
            if data.is_object() {
                node.entries();
            } else if let Value::Array(items) = data {
                let items = std::mem::take(items);
                *node = Node::List(items.into_iter().map(|item| Item::Node(Node::Data(item))).collect());
            }
        }
        match node {
            Node::Map(entries) => {
                for entry in entries {
                    let Entry::Field(name, node) = entry else { continue };
                    let is_port = matches!(name.as_str(), "port" | "targetPort");
                    if is_port && *node == Node::Data(port.into()) {
                        *node = Node::Action(value.into());
                    } else {
                        replace(node, port, value);
                    }
                }
            }
            Node::List(items) => {
                for item in items {
                    let Item::Node(node) = item else { continue };
                    replace(node, port, value);
                }
            }
            _ => {}
        }
    }
    if let Some(spec) = node.field_mut("spec") {
        replace(spec, port, value);
    }
}

/// The Issuer and the Certificate of the webhook server, for projects without config/certmanager.
pub(super) fn certificates(names: &Names) -> Vec<Value> {
    let metadata = |suffix: &str| {
        json!({
            "name": names.prefixed(suffix),
            "namespace": names.namespace(),
            "labels": { "app.kubernetes.io/name": names.chart },
        })
    };
    let service = format!("{}.{}.svc", names.prefixed("webhook-service"), names.namespace());
    vec![
        json!({
            "apiVersion": "cert-manager.io/v1",
            "kind": "Issuer",
            "metadata": metadata(ISSUER),
            "spec": { "selfSigned": {} },
        }),
        json!({
            "apiVersion": "cert-manager.io/v1",
            "kind": "Certificate",
            "metadata": metadata(CERTIFICATE),
            "spec": {
                "dnsNames": [service.clone(), format!("{service}.cluster.local")],
                "issuerRef": { "kind": "Issuer", "name": names.prefixed(ISSUER) },
                "secretName": SECRET,
            },
        }),
    ]
}
