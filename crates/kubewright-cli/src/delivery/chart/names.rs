//! Replaces the names that kustomize gave to objects by the names of a Helm release.
//!
//! kustomize prefixes the names of all objects and sets one namespace. In the chart, the prefix is the full
//! name of the release, and the namespace is the release's. References follow, wherever they occur.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::template::{Entry, Item, Node, Part};
use crate::delivery::rendered::Object;

/// The label that identifies the operator in selectors.
const NAME_LABEL: &str = "app.kubernetes.io/name";
/// Labels that the templates of the chart set.
const CHART_LABELS: &[&str] = &[
    NAME_LABEL,
    "app.kubernetes.io/instance",
    "app.kubernetes.io/managed-by",
    "app.kubernetes.io/version",
    "helm.sh/chart",
];

/// The names in config/default.
#[derive(Debug)]
pub(super) struct Names {
    /// The name of the chart, which is the prefix of its named templates.
    pub(super) chart: String,
    /// The name prefix of kustomize.
    prefix: String,
    namespace: String,
    /// Prefixed names of objects.
    objects: BTreeSet<String>,
    /// The name of the operator's ServiceAccount.
    account: String,
}

impl Names {
    pub(super) fn new(chart: &str, prefix: &str, namespace: &str, account: &str) -> Self {
        Self {
            chart: chart.to_owned(),
            prefix: prefix.to_owned(),
            namespace: namespace.to_owned(),
            objects: BTreeSet::new(),
            account: account.to_owned(),
        }
    }

    /// Adds the name of an object. Names without the prefix, such as those of CRDs, are fixed.
    pub(super) fn add(&mut self, object: &Object) {
        if self.suffix(object.name()).is_some() {
            self.objects.insert(object.name().to_owned());
        }
    }

    /// The name of an object without the prefix.
    pub(super) fn suffix<'a>(&self, name: &'a str) -> Option<&'a str> {
        name.strip_prefix(&self.prefix).filter(|suffix| !suffix.is_empty())
    }

    /// A name with the prefix of kustomize.
    pub(super) fn prefixed(&self, suffix: &str) -> String {
        format!("{}{suffix}", self.prefix)
    }

    pub(super) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The action that returns the name of an object in a release.
    pub(super) fn action(&self, suffix: &str) -> String {
        format!("include \"{}.resourceName\" (dict \"suffix\" \"{suffix}\" \"context\" $)", self.chart)
    }

    /// The name of a named template.
    pub(super) fn template(&self, name: &str) -> String {
        format!("{}.{name}", self.chart)
    }

    /// An object as a node.
    pub(super) fn node(&self, object: &Value) -> Node {
        let Value::Object(fields) = object else { return Node::Data(object.clone()) };
        let is_definition = object["kind"] == "CustomResourceDefinition";
        let fields = sorted(fields).into_iter().map(|(key, value)| {
            let node = match key.as_str() {
                "metadata" => self.metadata(value),
                // Schemas contain no references, but descriptions can contain names.
                "spec" if is_definition => self.definition(value),
                _ => self.value(key, value),
            };
            Entry::Field(key.clone(), node)
        });
        Node::Map(fields.collect())
    }

    fn metadata(&self, metadata: &Value) -> Node {
        let Value::Object(fields) = metadata else { return Node::Data(metadata.clone()) };
        let mut entries = Vec::new();
        for (key, value) in sorted(fields) {
            let node = match (key.as_str(), value) {
                ("labels", Value::Object(labels)) => self.labels("labels", labels),
                _ => self.value(key, value),
            };
            entries.push(Entry::Field(key.clone(), node));
        }
        Node::Map(entries)
    }

    fn definition(&self, spec: &Value) -> Node {
        let Value::Object(fields) = spec else { return Node::Data(spec.clone()) };
        let fields = sorted(fields).into_iter().map(|(key, value)| {
            let node = if key == "conversion" { self.value(key, value) } else { Node::Data(value.clone()) };
            Entry::Field(key.clone(), node)
        });
        Node::Map(fields.collect())
    }

    /// Labels, with those of the chart from a named template.
    fn labels(&self, template: &str, labels: &Map<String, Value>) -> Node {
        let own = sorted(labels).into_iter().filter(|(label, _)| !CHART_LABELS.contains(&label.as_str()));
        let mut entries = vec![Entry::Include(self.template(template))];
        entries.extend(own.map(|(label, value)| Entry::Field(label.clone(), Node::Data(value.clone()))));
        Node::Map(entries)
    }

    /// A value below a field.
    pub(super) fn value(&self, field: &str, value: &Value) -> Node {
        match value {
            Value::String(text) => self.text(field, text),
            Value::Array(items) => {
                let items: Vec<Node> = items.iter().map(|item| self.value(field, item)).collect();
                if items.iter().all(|item| matches!(item, Node::Data(_))) {
                    return Node::Data(value.clone());
                }
                Node::List(items.into_iter().map(Item::Node).collect())
            }
            Value::Object(fields) if fields.get(NAME_LABEL).is_some_and(Value::is_string) => {
                self.labels("selectorLabels", fields)
            }
            Value::Object(fields) => {
                let is_account = fields.get("kind").is_some_and(|kind| kind == "ServiceAccount");
                let entries: Vec<(String, Node)> = sorted(fields)
                    .into_iter()
                    .map(|(key, value)| {
                        let field = if is_account && key == "name" { "serviceAccountName" } else { key };
                        (key.clone(), self.value(field, value))
                    })
                    .collect();
                if entries.iter().all(|(_, node)| matches!(node, Node::Data(_))) {
                    return Node::Data(value.clone());
                }
                Node::Map(entries.into_iter().map(|(key, node)| Entry::Field(key, node)).collect())
            }
            _ => Node::Data(value.clone()),
        }
    }

    /// Replaces names in a string such as `shop-webhook-service.shop-system.svc`.
    fn text(&self, field: &str, text: &str) -> Node {
        if field == "serviceAccountName" && text == self.account {
            return Node::text(format!("include \"{}\" $", self.template("serviceAccountName")));
        }
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let mut parts: Vec<Part> = Vec::new();
        let mut data = String::new();
        let mut rest = text;
        while !rest.is_empty() {
            let word = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
            let action = match &rest[..word] {
                namespace if namespace == self.namespace => Some("$.Release.Namespace".to_owned()),
                name if self.objects.contains(name) => self.suffix(name).map(|suffix| self.action(suffix)),
                _ => None,
            };
            match action {
                Some(action) => {
                    if !data.is_empty() {
                        parts.push(Part::Data(std::mem::take(&mut data)));
                    }
                    parts.push(Part::Action(action));
                }
                None => data.push_str(&rest[..word]),
            }
            let other = rest[word..].find(is_name).unwrap_or(rest.len() - word);
            data.push_str(&rest[word..word + other]);
            rest = &rest[word + other..];
        }
        if parts.is_empty() {
            return Node::Data(text.into());
        }
        if !data.is_empty() {
            parts.push(Part::Data(data));
        }
        Node::Text(parts)
    }
}

/// The fields in the order of their names, which does not depend on the order of the source.
fn sorted(fields: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut fields: Vec<_> = fields.iter().collect();
    fields.sort_by_key(|(name, _)| *name);
    fields
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn names() -> Names {
        let mut names = Names::new("shop", "shop-", "shop-system", "shop-controller-manager");
        for (kind, name) in [
            ("Service", "shop-webhook-service"),
            ("ServiceAccount", "shop-controller-manager"),
            ("Namespace", "shop-system"),
        ] {
            let object = json!({ "apiVersion": "v1", "kind": kind, "metadata": { "name": name } });
            names.add(&Object::new(object).unwrap());
        }
        names
    }

    #[test]
    fn names_are_replaced_inside_of_strings() {
        let names = names();
        let service = names.action("webhook-service");
        assert_eq!(
            names.value("dnsNames", &json!("shop-webhook-service.shop-system.svc")),
            Node::Text(vec![
                Part::Action(service),
                Part::Data(".".into()),
                Part::Action("$.Release.Namespace".into()),
                Part::Data(".svc".into()),
            ])
        );
        for other in ["shop", "my-shop-webhook-service", "shop-system2", ""] {
            assert_eq!(names.value("x", &json!(other)), Node::Data(json!(other)));
        }
    }

    #[test]
    fn the_service_account_has_its_own_template() {
        let subjects = json!([{ "kind": "ServiceAccount", "name": "shop-controller-manager", "namespace": "shop-system" }]);
        let node = names().node(&json!({ "subjects": subjects }));
        insta::assert_snapshot!(node.document(None), @r#"
        subjects:
        - kind: ServiceAccount
          name: {{ include "shop.serviceAccountName" $ | quote }}
          namespace: {{ $.Release.Namespace | quote }}
        "#);
    }

    #[test]
    fn labels_and_selectors_use_the_templates_of_the_chart() {
        let object = json!({
            "kind": "Service",
            "metadata": { "labels": { "app.kubernetes.io/name": "shop", "app.kubernetes.io/managed-by": "kustomize", "control-plane": "x" } },
            "spec": { "selector": { "app.kubernetes.io/name": "shop", "control-plane": "x" } },
        });
        insta::assert_snapshot!(names().node(&object).document(None), @r#"
        kind: Service
        metadata:
          labels:
            {{- include "shop.labels" . | nindent 4 }}
            control-plane: x
        spec:
          selector:
            {{- include "shop.selectorLabels" . | nindent 4 }}
            control-plane: x
        "#);
    }

    #[test]
    fn schemas_are_data() {
        let crd = json!({
            "kind": "CustomResourceDefinition",
            "spec": { "versions": [{ "description": "in shop-system" }] },
        });
        assert!(names().node(&crd).document(None).contains("description: in shop-system\n"));
    }
}
