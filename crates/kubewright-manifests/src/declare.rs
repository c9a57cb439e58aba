//! Declarations of an operator.
//!
//! An attribute emits a [`submit!`] of a [`Declaration`]; [`all`] collects those of the whole program.

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use inventory::submit;

use crate::lint::Finding;

/// A registered declaration. Its value is created on demand.
pub struct Declaration(fn() -> Declared);

inventory::collect!(Declaration);

impl Declaration {
    /// Creates the registration that an attribute submits.
    pub const fn new(make: fn() -> Declared) -> Self {
        Self(make)
    }
}

/// All declarations of this program, sorted, because the linker's order is not stable.
pub fn all() -> Vec<Declared> {
    let mut declared: Vec<Declared> =
        inventory::iter::<Declaration>.into_iter().map(|made| (made.0)()).collect();
    declared.sort_by(|one, other| one.item().cmp(other.item()));
    declared
}

/// The source location of a declaration, for findings.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Item {
    /// The file, relative to the workspace root.
    pub file: String,
    /// The line.
    pub line: u32,
    /// The path of the item, such as `guestbook::api::v1::Guestbook`.
    pub path: String,
}

/// A declaration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Declared {
    /// `#[rbac(...)]`.
    Rule(Rule),
    /// `#[webhook(...)]`.
    Webhook(Box<Webhook>),
    /// A kind in `crds!(...)`.
    Kind(Kind),
}

impl Declared {
    /// The source location.
    pub fn item(&self) -> &Item {
        match self {
            Self::Rule(rule) => &rule.item,
            Self::Webhook(webhook) => &webhook.item,
            Self::Kind(kind) => &kind.item,
        }
    }
}

/// An RBAC rule that the operator needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Rule {
    /// The source location.
    pub item: Item,
    /// API groups; the core group is the empty string.
    pub groups: Vec<String>,
    /// Plurals, also subresources such as `pods/log`.
    pub resources: Vec<String>,
    /// Restricts the rule to objects with these names.
    pub resource_names: Vec<String>,
    /// The verbs.
    pub verbs: Vec<String>,
    /// Non-resource URLs.
    pub urls: Vec<String>,
    /// The namespace of the Role; empty for the ClusterRole.
    pub namespace: String,
    /// The name of the role; empty for the operator's role.
    pub role_name: String,
}

/// An admission webhook with the fields of controller-gen's marker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Webhook {
    /// The source location.
    pub item: Item,
    /// The name, with at least three labels.
    pub name: String,
    /// Whether it is mutating or validating.
    pub mutating: bool,
    /// The path on the operator's webhook server; empty if `url` is set.
    pub path: String,
    /// A URL outside the cluster, instead of a Service and a path.
    pub url: String,
    /// API groups.
    pub groups: Vec<String>,
    /// API versions.
    pub versions: Vec<String>,
    /// Plurals, also subresources such as `pods/status`.
    pub resources: Vec<String>,
    /// Operations: `create`, `update`, `delete`, `connect`, `*`.
    pub verbs: Vec<String>,
    /// `fail` or `ignore`.
    pub failure_policy: String,
    /// `exact` or `equivalent`; empty for the API server's default.
    pub match_policy: String,
    /// `none` or `noneOnDryRun`.
    pub side_effects: String,
    /// `None` for the API server's default.
    pub timeout_seconds: Option<i32>,
    /// `never` or `ifNeeded`; empty for the API server's default.
    pub reinvocation_policy: String,
    /// Supported AdmissionReview versions.
    pub admission_review_versions: Vec<String>,
    /// The Service; empty for kubebuilder's `webhook-service`.
    pub service_name: String,
    /// The namespace of the Service; empty for `system`, which kustomize replaces.
    pub service_namespace: String,
    /// The port of the Service; `None` for the API server's default.
    pub service_port: Option<u16>,
    /// The LabelSelector of namespaces.
    pub namespace_selector: Option<Value>,
    /// The LabelSelector of objects.
    pub object_selector: Option<Value>,
    /// Match conditions.
    pub match_conditions: Vec<MatchCondition>,
    /// The name of the webhook configuration; empty for the default.
    pub configuration: String,
}

/// A match condition of a webhook.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MatchCondition {
    /// The name in errors.
    pub name: String,
    /// The CEL expression.
    pub expression: String,
}

/// One version of a custom resource.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Kind {
    /// The source location.
    pub item: Item,
    /// A CustomResourceDefinition with only this version.
    pub definition: Value,
    /// Findings about the type.
    pub findings: Vec<Finding>,
}
