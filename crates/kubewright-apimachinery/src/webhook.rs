//! The declaration of an admission webhook: the values of `#[webhook]`, and the defaults derived from the handler's kind.
//!
//! Owns the defaults. The runtime serves a declared webhook, and kubewright-manifests writes its configuration.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::gvk::Gvk;

/// The timeout of a webhook that declares none. The API server's own default, 10 s, delays every write for longer when the
/// operator hangs.
pub const DEFAULT_TIMEOUT_SECONDS: i32 = 5;
/// The label of an operator's namespace in kubebuilder's layout: `control-plane: controller-manager`.
pub const MANAGER_LABEL: (&str, &str) = ("control-plane", "controller-manager");

/// The source location of a declaration, which findings report.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Item {
    /// The file, relative to the root of the workspace.
    pub file: String,
    /// The line.
    pub line: u32,
    /// The path of the Rust item: `guestbook::api::v1::Guestbook`.
    pub path: String,
}

/// An admission webhook, with the fields of controller-gen's marker. Empty fields have defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Declaration {
    /// Where it was declared.
    pub item: Item,
    /// Name of the webhook: a domain with at least three labels.
    pub name: String,
    /// Whether it changes objects. A validating webhook only accepts or rejects them.
    pub mutating: bool,
    /// Path on the operator's webhook server; empty if `url` is set.
    pub path: String,
    /// An address outside the cluster, instead of a Service and a path.
    pub url: String,
    /// API groups.
    pub groups: Vec<String>,
    /// Versions of these groups.
    pub versions: Vec<String>,
    /// Plurals, with subresources as `pods/status`.
    pub resources: Vec<String>,
    /// Operations: `create`, `update`, `delete`, `connect`, `*`.
    pub verbs: Vec<String>,
    /// `fail` or `ignore`.
    pub failure_policy: String,
    /// `exact` or `equivalent`; the API server's default if empty.
    pub match_policy: String,
    /// `none` or `noneOnDryRun`.
    pub side_effects: String,
    /// How long the API server waits for the response.
    pub timeout_seconds: Option<i32>,
    /// `never` or `ifNeeded`; the API server's default if empty.
    pub reinvocation_policy: String,
    /// Versions of AdmissionReview that it understands; `v1` if empty.
    pub admission_review_versions: Vec<String>,
    /// The Service; `webhook-service` if empty, as kubebuilder names it.
    pub service_name: String,
    /// Namespace of the Service; `system` if empty, which kustomize replaces.
    pub service_namespace: String,
    /// Port of the Service; the API server's default if absent.
    pub service_port: Option<u16>,
    /// A LabelSelector: the webhook is called for objects in matching namespaces only.
    pub namespace_selector: Option<Value>,
    /// A LabelSelector: the webhook is called for matching objects only.
    pub object_selector: Option<Value>,
    /// CEL conditions. The webhook is called if all of them are true.
    pub match_conditions: Vec<MatchCondition>,
    /// Name of the webhook configuration; the usual one if empty.
    pub configuration: String,
}

/// A CEL condition that a request must meet before the webhook is called.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MatchCondition {
    /// Name, for errors.
    pub name: String,
    /// Expression.
    pub expression: String,
}

impl Declaration {
    /// Fills what was not declared from the kind of the handler's objects.
    ///
    /// ```
    /// use kubewright_apimachinery::gvk::Gvk;
    /// use kubewright_apimachinery::webhook::Declaration;
    ///
    /// let kind = Gvk { group: "view.example.com", version: "v1", kind: "MarkdownView" };
    /// let webhook = Declaration::default().for_kind(kind, "markdownviews", true);
    /// assert_eq!(webhook.path, "/validate-view-example-com-v1-markdownview");
    /// assert_eq!(webhook.name, "vmarkdownview-v1.kb.io");
    /// ```
    #[must_use]
    pub fn for_kind(mut self, kind: Gvk<'_>, plural: &str, namespaced: bool) -> Self {
        let lower = kind.kind.to_lowercase();
        let (verb, initial) = if self.mutating { ("mutate", 'm') } else { ("validate", 'v') };
        fill(&mut self.name, || format!("{initial}{lower}-{}.kb.io", kind.version));
        if self.url.is_empty() {
            fill(&mut self.path, || path(verb, kind));
        }
        let lists = [
            (&mut self.groups, kind.group),
            (&mut self.versions, kind.version),
            (&mut self.resources, plural),
        ];
        for (list, usual) in lists {
            if list.is_empty() {
                list.push(usual.to_owned());
            }
        }
        // A selector of namespaces matches every object that is in none.
        if namespaced && self.namespace_selector.is_none() {
            self.namespace_selector = Some(outside_of_operators());
        }
        self.with_common_defaults()
    }

    /// Fills what was not declared by a handler of several kinds. The namespace selector has no effect on kinds that are
    /// cluster-scoped.
    #[must_use]
    pub fn with_defaults(mut self) -> Self {
        self.namespace_selector.get_or_insert_with(outside_of_operators);
        self.with_common_defaults()
    }

    fn with_common_defaults(mut self) -> Self {
        if self.verbs.is_empty() {
            self.verbs = vec!["create".to_owned(), "update".to_owned()];
        }
        fill(&mut self.failure_policy, || "fail".to_owned());
        fill(&mut self.side_effects, || "none".to_owned());
        self.timeout_seconds.get_or_insert(DEFAULT_TIMEOUT_SECONDS);
        self
    }
}

/// The path of a kind's webhook, as kubebuilder names it: `/mutate-view-example-com-v1-markdownview`.
pub fn path(verb: &str, kind: Gvk<'_>) -> String {
    let Gvk { group, version, kind } = kind;
    format!("/{verb}-{}-{version}-{}", group.replace('.', "-"), kind.to_lowercase())
}

/// Selects namespaces other than kube-system and those of operators. A webhook that fails must not stop the pods that would
/// repair it.
pub fn outside_of_operators() -> Value {
    let (label, value) = MANAGER_LABEL;
    json!({
        "matchExpressions": [
            { "key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system"] },
            { "key": label, "operator": "NotIn", "values": [value] },
        ],
    })
}

fn fill(text: &mut String, usual: impl FnOnce() -> String) {
    if text.is_empty() {
        *text = usual();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VIEW: Gvk<'_> = Gvk { group: "view.example.com", version: "v1", kind: "MarkdownView" };

    #[test]
    fn an_empty_declaration_is_completed_as_kubebuilder_scaffolds_it() {
        let webhook =
            Declaration { mutating: true, ..Declaration::default() }.for_kind(VIEW, "markdownviews", true);
        assert_eq!(webhook.name, "mmarkdownview-v1.kb.io");
        assert_eq!(webhook.path, "/mutate-view-example-com-v1-markdownview");
        assert_eq!((webhook.groups, webhook.versions), (vec!["view.example.com".into()], vec!["v1".into()]));
        assert_eq!((webhook.resources, webhook.verbs.len()), (vec!["markdownviews".into()], 2));
        assert_eq!((webhook.failure_policy.as_str(), webhook.side_effects.as_str()), ("fail", "none"));
        assert_eq!(webhook.timeout_seconds, Some(5));
        assert_eq!(webhook.namespace_selector, Some(outside_of_operators()));
    }

    #[test]
    fn what_is_declared_is_kept() {
        let declared = Declaration {
            name: "a.b.c".into(),
            path: "/p".into(),
            verbs: vec!["delete".into()],
            failure_policy: "ignore".into(),
            timeout_seconds: Some(1),
            namespace_selector: Some(json!({})),
            ..Declaration::default()
        };
        let webhook = declared.clone().for_kind(VIEW, "markdownviews", true);
        let kept = |it: &Declaration| {
            let Declaration {
                name, path, verbs, failure_policy, timeout_seconds, namespace_selector, ..
            } = it.clone();
            (name, path, verbs, failure_policy, timeout_seconds, namespace_selector)
        };
        assert_eq!(kept(&webhook), kept(&declared));
    }

    #[test]
    fn a_handler_of_several_kinds_excludes_operators_unless_it_has_a_selector() {
        assert_eq!(Declaration::default().with_defaults().namespace_selector, Some(outside_of_operators()));
        let all = Declaration { namespace_selector: Some(json!({})), ..Declaration::default() };
        assert_eq!(all.with_defaults().namespace_selector, Some(json!({})));
    }

    #[test]
    fn a_webhook_at_a_url_has_no_path_and_cluster_scoped_kinds_have_no_namespace_selector() {
        let declared = Declaration { url: "https://a.example.com".into(), ..Declaration::default() };
        let webhook = declared.for_kind(VIEW, "markdownviews", false);
        assert_eq!((webhook.path.as_str(), webhook.namespace_selector), ("", None));
    }
}
