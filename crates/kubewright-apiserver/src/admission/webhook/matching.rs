//! Matches requests with the rules and selectors of webhooks and policies, including equivalent resources.

use std::sync::Arc;

use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::selector::LabelSelector;
use kubewright_apimachinery::status::{ApiError, Qualified};
use serde_json::Value;

use crate::admission::{Attributes, Cluster, Operation};
use crate::registry::resource::{Registry, Resource};
use crate::registry::strategy::Strategy;
use crate::storage::StoredObject;

const ADMISSION_REGISTRATION: &str = "admissionregistration.k8s.io";

/// The rules and selectors of one webhook or policy.
#[derive(Debug)]
pub(crate) struct Criteria {
    /// `None` matches everything.
    rules: Option<Vec<Rule>>,
    excluded: Vec<Rule>,
    /// `matchPolicy: Equivalent`.
    equivalent: bool,
    namespaces: Result<LabelSelector, String>,
    objects: Result<LabelSelector, String>,
}

#[derive(Debug)]
struct Rule {
    operations: Vec<String>,
    groups: Vec<String>,
    versions: Vec<String>,
    /// Resource and subresource.
    resources: Vec<(String, String)>,
    scope: Scope,
    /// Resource names of a policy's rule; empty matches all.
    names: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    All,
    Cluster,
    Namespaced,
}

/// A match: the resource in the version that the webhook or policy requests.
#[derive(Debug, Clone)]
pub(crate) struct Invocation {
    /// The equivalent resource, if it differs from the request's resource.
    pub(crate) equivalent: Option<Arc<Resource>>,
}

impl Invocation {
    /// The resource in the version that the webhook or policy requests.
    pub(crate) fn resource<'a>(&'a self, attributes: &'a Attributes<'_>) -> &'a Resource {
        self.equivalent.as_deref().unwrap_or(attributes.resource)
    }

    /// The kind of the object in the version that the webhook or policy requests.
    pub(crate) fn kind<'a>(&'a self, attributes: &'a Attributes<'_>) -> Gvk<'a> {
        match &self.equivalent {
            Some(equivalent) if attributes.kind == attributes.resource.gvk() => equivalent.gvk(),
            _ => attributes.kind,
        }
    }

    /// The rules of objects of [`Invocation::kind`].
    pub(crate) fn strategy<'a>(&'a self, attributes: &'a Attributes<'_>) -> &'a dyn Strategy {
        match &self.equivalent {
            Some(equivalent) if attributes.kind == attributes.resource.gvk() => &*equivalent.strategy,
            _ => attributes.strategy,
        }
    }
}

impl Criteria {
    /// The criteria of a webhook.
    pub(crate) fn of_webhook(webhook: &Value) -> Self {
        Self::compile(webhook, Some(webhook.list_at("rules")), &[])
    }

    /// The criteria of a policy's `matchConstraints` or a binding's `matchResources`: without rules
    /// everything matches.
    pub(crate) fn of_match_resources(resources: &Value) -> Self {
        let rules = resources.list_at("resourceRules");
        let rules = (!rules.is_empty()).then_some(rules);
        Self::compile(resources, rules, resources.list_at("excludeResourceRules"))
    }

    fn compile(object: &Value, rules: Option<&[Value]>, excluded: &[Value]) -> Self {
        let selector = |field: &str| match object.at(field) {
            Value::Null => Ok(LabelSelector::everything()),
            selector => LabelSelector::from_object(selector).map_err(|error| error.to_string()),
        };
        Self {
            rules: rules.map(|rules| rules.iter().map(Rule::compile).collect()),
            excluded: excluded.iter().map(Rule::compile).collect(),
            equivalent: object.str_at("matchPolicy") != "Exact",
            namespaces: selector("namespaceSelector"),
            objects: selector("objectSelector"),
        }
    }

    /// Whether the rules match. Cheaper than [`Criteria::matches`], and sufficient for most requests.
    pub(crate) fn may_match(&self, cluster: &Cluster, attributes: &Attributes<'_>) -> bool {
        let operation = attributes.operation;
        let fits = |rules: &Vec<Rule>| rules.iter().any(|rule| rule.operation(operation));
        self.rules.as_ref().is_none_or(fits) && self.by_rules(cluster, attributes).is_some()
    }

    /// Whether a request matches, and as which resource.
    pub(crate) fn matches(
        &self,
        cluster: &Cluster,
        attributes: &Attributes<'_>,
    ) -> Result<Option<Invocation>, ApiError> {
        let Some(invocation) = self.by_rules(cluster, attributes) else { return Ok(None) };
        let in_namespace = self.matches_namespace(cluster, attributes);
        if matches!(in_namespace, Ok(false)) {
            return Ok(None);
        }
        let by_labels = self.matches_object(attributes);
        if matches!(by_labels, Ok(false)) {
            return Ok(None);
        }
        in_namespace?;
        by_labels?;
        Ok(Some(invocation))
    }

    fn by_rules(&self, cluster: &Cluster, attributes: &Attributes<'_>) -> Option<Invocation> {
        let own = attributes.resource;
        let excluded =
            |resource: &Resource| self.excluded.iter().any(|rule| rule.matches(attributes, resource));
        if excluded(own) {
            return None;
        }
        // Look up equivalent versions only if a rule matches except for group and version.
        let close = |rule: &Rule| rule.operation(attributes.operation) && rule.resource(attributes);
        if self.equivalent
            && self.excluded.iter().any(close)
            && equivalents(&cluster.registry(), attributes).any(|resource| excluded(resource))
        {
            return None;
        }
        let Some(rules) = &self.rules else { return Some(Invocation { equivalent: None }) };
        if rules.iter().any(|rule| rule.matches(attributes, own)) {
            return Some(Invocation { equivalent: None });
        }
        if !self.equivalent || !rules.iter().any(close) {
            return None;
        }
        let registry = cluster.registry();
        let equivalents: Vec<&Arc<Resource>> = equivalents(&registry, attributes).collect();
        let mut found = rules.iter().filter_map(|rule| {
            equivalents.iter().find(|resource| rule.matches(attributes, resource)).copied()
        });
        found.next().map(|resource| Invocation { equivalent: Some(resource.clone()) })
    }

    fn matches_namespace(&self, cluster: &Cluster, attributes: &Attributes<'_>) -> Result<bool, ApiError> {
        if attributes.namespace.is_empty() && attributes.resource.plural() != "namespaces" {
            return Ok(true);
        }
        let selector = self.namespaces.as_ref().map_err(ApiError::internal)?;
        if selector.is_empty() {
            return Ok(true);
        }
        let writes_itself = attributes.resource.plural() == "namespaces"
            && attributes.subresource.is_empty()
            && matches!(attributes.operation, Operation::Create | Operation::Update);
        if writes_itself {
            return Ok(selector.matches(attributes.object.at("metadata.labels")));
        }
        Ok(selector.matches(&namespace_labels(cluster, attributes.namespace)?.attributes))
    }

    fn matches_object(&self, attributes: &Attributes<'_>) -> Result<bool, ApiError> {
        let selector = self.objects.as_ref().map_err(ApiError::internal)?;
        if selector.is_empty() {
            return Ok(true);
        }
        let selected =
            |object: &Value| object.has("metadata") && selector.matches(object.at("metadata.labels"));
        Ok(selected(&attributes.object) || attributes.old_object.is_some_and(selected))
    }
}

/// The other versions of the request's resource, also in other groups.
fn equivalents<'a>(
    registry: &'a Registry,
    attributes: &'a Attributes<'_>,
) -> impl Iterator<Item = &'a Arc<Resource>> {
    let (own, subresource) = (attributes.resource, attributes.subresource);
    registry
        .all()
        .filter(move |resource| resource.storage == own.storage && resource.gvk() != own.gvk())
        .filter(move |resource| subresource.is_empty() || resource.subresource(subresource).is_some())
}

/// The namespace with its labels.
pub(crate) fn namespace_labels(cluster: &Cluster, name: &str) -> Result<Arc<StoredObject>, ApiError> {
    let namespaces = Qualified { group: "", name: "namespaces" };
    cluster.version("namespaces", name).ok_or_else(|| ApiError::not_found(namespaces, name))
}

impl Rule {
    fn compile(rule: &Value) -> Self {
        let texts = |field: &str| -> Vec<String> {
            rule.list_at(field).iter().filter_map(|text| text.as_str().map(str::to_owned)).collect()
        };
        let split = |resource: String| match resource.split_once('/') {
            Some((resource, subresource)) => (resource.to_owned(), subresource.to_owned()),
            None => (resource, String::new()),
        };
        Self {
            operations: texts("operations"),
            groups: texts("apiGroups"),
            versions: texts("apiVersions"),
            resources: texts("resources").into_iter().map(split).collect(),
            scope: match rule.str_at("scope") {
                "Cluster" => Scope::Cluster,
                "Namespaced" => Scope::Namespaced,
                _ => Scope::All,
            },
            names: texts("resourceNames"),
        }
    }

    fn matches(&self, attributes: &Attributes<'_>, resource: &Resource) -> bool {
        let any = |items: &[String], wanted: &str| items.iter().any(|item| item == "*" || item == wanted);
        self.operation(attributes.operation)
            && self.resource(attributes)
            && any(&self.groups, resource.group())
            && any(&self.versions, resource.version())
            && self.scope(attributes, resource)
            && (self.names.is_empty() || self.names.iter().any(|name| name == attributes.name))
    }

    fn operation(&self, operation: Operation) -> bool {
        self.operations.iter().any(|own| own == "*" || own == operation.as_str())
    }

    fn resource(&self, attributes: &Attributes<'_>) -> bool {
        let fits = |own: &str, wanted: &str| own == "*" || own == wanted;
        self.resources.iter().any(|(resource, subresource)| {
            fits(resource, attributes.resource.plural()) && fits(subresource, attributes.subresource)
        })
    }

    fn scope(&self, attributes: &Attributes<'_>, resource: &Resource) -> bool {
        let is_cluster_scoped = attributes.namespace.is_empty()
            || resource.group().is_empty() && resource.plural() == "namespaces";
        match self.scope {
            Scope::All => true,
            Scope::Cluster => is_cluster_scoped,
            Scope::Namespaced => !is_cluster_scoped,
        }
    }
}

/// Webhooks are not called for webhook configurations, policies and bindings.
pub(super) fn is_exempt_from_webhooks(attributes: &Attributes<'_>) -> bool {
    attributes.kind.group == ADMISSION_REGISTRATION
        && matches!(
            attributes.kind.kind,
            "ValidatingWebhookConfiguration"
                | "MutatingWebhookConfiguration"
                | "ValidatingAdmissionPolicy"
                | "ValidatingAdmissionPolicyBinding"
                | "MutatingAdmissionPolicy"
                | "MutatingAdmissionPolicyBinding"
        )
}

/// Policies do not apply to policies and bindings, and not to reviews of users and permissions, without which
/// clients cannot work.
pub(crate) fn is_exempt_from_policies(attributes: &Attributes<'_>) -> bool {
    matches!(
        (attributes.resource.group(), attributes.resource.plural()),
        (
            ADMISSION_REGISTRATION,
            "validatingadmissionpolicies"
                | "validatingadmissionpolicybindings"
                | "mutatingadmissionpolicies"
                | "mutatingadmissionpolicybindings"
        ) | ("authentication.k8s.io", "selfsubjectreviews" | "tokenreviews")
            | (
                "authorization.k8s.io",
                "localsubjectaccessreviews"
                    | "selfsubjectaccessreviews"
                    | "selfsubjectrulesreviews"
                    | "subjectaccessreviews"
            )
    )
}
