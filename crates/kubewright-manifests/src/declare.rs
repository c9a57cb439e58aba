//! What an operator declares, and where its attributes put it.
//!
//! Owns the data that goes from an operator's program to the tool that writes manifests. An attribute emits a
//! [`submit!`] of a [`Declaration`]; [`all`] finds those of the whole program. Nothing here decides what becomes of
//! them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use inventory::submit;

use crate::lint::Finding;

/// Something declared anywhere in the program, made when it is asked for.
pub struct Declaration(fn() -> Declared);

inventory::collect!(Declaration);

impl Declaration {
    /// What an attribute registers.
    pub const fn new(make: fn() -> Declared) -> Self {
        Self(make)
    }
}

/// Everything that attributes of this program declare, in an order of its own that does not depend on the linker's.
pub fn all() -> Vec<Declared> {
    let mut declared: Vec<Declared> =
        inventory::iter::<Declaration>.into_iter().map(|made| (made.0)()).collect();
    declared.sort_by(|one, other| one.item().cmp(other.item()));
    declared
}

/// The place in the operator's sources that something comes from: findings name it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Item {
    /// Where it is, as the compiler names it: from the root of the workspace.
    pub file: String,
    /// In which line.
    pub line: u32,
    /// What it is: `guestbook::api::v1::Guestbook`.
    pub path: String,
}

/// One thing that is declared.
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
    /// Where it was declared.
    pub fn item(&self) -> &Item {
        match self {
            Self::Rule(rule) => &rule.item,
            Self::Webhook(webhook) => &webhook.item,
            Self::Kind(kind) => &kind.item,
        }
    }
}

/// A right that the operator needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Rule {
    /// Where it was declared.
    pub item: Item,
    /// API groups; the core group is the empty one.
    pub groups: Vec<String>,
    /// Plurals, with subresources as `pods/log`.
    pub resources: Vec<String>,
    /// Names of objects that it is restricted to.
    pub resource_names: Vec<String>,
    /// What may be done.
    pub verbs: Vec<String>,
    /// Paths that are no resources.
    pub urls: Vec<String>,
    /// The namespace of the Role; empty for the ClusterRole.
    pub namespace: String,
    /// The role that has the rule; empty for the operator's own.
    pub role_name: String,
}

/// An admission webhook that the operator serves: the fields of controller-gen's marker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Webhook {
    /// Where it was declared.
    pub item: Item,
    /// Its name, as the API server logs it: three labels at least.
    pub name: String,
    /// Whether it changes objects, or only accepts them.
    pub mutating: bool,
    /// Path on the operator's webhook server; empty where `url` is set.
    pub path: String,
    /// An address outside the cluster, instead of a Service and a path.
    pub url: String,
    /// API groups.
    pub groups: Vec<String>,
    /// Versions of these.
    pub versions: Vec<String>,
    /// Plurals, with subresources as `pods/status`.
    pub resources: Vec<String>,
    /// Operations: `create`, `update`, `delete`, `connect`, `*`.
    pub verbs: Vec<String>,
    /// `fail` or `ignore`.
    pub failure_policy: String,
    /// `exact` or `equivalent`; the API server's default where empty.
    pub match_policy: String,
    /// `none` or `noneOnDryRun`.
    pub side_effects: String,
    /// The API server's default where absent.
    pub timeout_seconds: Option<i32>,
    /// `never` or `ifNeeded`; the API server's default where empty.
    pub reinvocation_policy: String,
    /// Versions of AdmissionReview that it understands.
    pub admission_review_versions: Vec<String>,
    /// The Service; `webhook-service` where empty, as kubebuilder names it.
    pub service_name: String,
    /// Its namespace; `system` where empty, which kustomize replaces.
    pub service_namespace: String,
    /// Its port; the API server's default where absent.
    pub service_port: Option<u16>,
    /// Which namespaces' objects it is asked about: a LabelSelector.
    pub namespace_selector: Option<Value>,
    /// Which objects it is asked about: a LabelSelector.
    pub object_selector: Option<Value>,
    /// Conditions in CEL, by name.
    pub match_conditions: Vec<MatchCondition>,
    /// The name of the configuration that it goes into, and not the usual one.
    pub configuration: String,
}

/// A condition that a request must meet before a webhook is asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MatchCondition {
    /// What it is called in errors.
    pub name: String,
    /// In CEL.
    pub expression: String,
}

/// One version of a custom kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Kind {
    /// Where it was declared.
    pub item: Item,
    /// A CustomResourceDefinition with this version alone.
    pub definition: Value,
    /// What was found wrong with the type while its schema was made.
    pub findings: Vec<Finding>,
}
