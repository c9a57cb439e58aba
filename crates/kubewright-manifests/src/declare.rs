//! Declarations of an operator.
//!
//! An attribute emits a [`submit!`] of a [`Declaration`]; [`all`] collects those of the whole program.

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use ::inventory::submit;
pub use kubewright_apimachinery::webhook::{Declaration as Webhook, Item, MatchCondition};

use crate::lint::Finding;

/// A registered declaration. Its value is created on demand.
pub struct Declaration(fn() -> Declared);

::inventory::collect!(Declaration);

impl Declaration {
    /// Creates the registration that an attribute submits.
    pub const fn new(make: fn() -> Declared) -> Self {
        Self(make)
    }
}

/// All declarations of this program, sorted, because the linker's order is not stable.
pub fn all() -> Vec<Declared> {
    let mut declared: Vec<Declared> =
        ::inventory::iter::<Declaration>.into_iter().map(|made| (made.0)()).collect();
    declared.sort_by(|one, other| one.item().cmp(other.item()));
    declared
}

/// A declaration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum Declared {
    /// `#[rbac(...)]`.
    Rule(Rule),
    /// `#[webhook(url = ...)]`: a webhook that is served outside of the cluster.
    Webhook(Box<Webhook>),
    /// `#[webhook(...)]` on the impl of a handler. Its webhook is declared where the handler is registered.
    Handler(Handler),
    /// A kind in `crds!(...)`.
    Kind(Kind),
    /// `#[olm(...)]`.
    Olm(Olm),
}

impl Declared {
    /// The source location.
    pub fn item(&self) -> &Item {
        match self {
            Self::Rule(rule) => &rule.item,
            Self::Webhook(webhook) => &webhook.item,
            Self::Handler(handler) => &handler.item,
            Self::Kind(kind) => &kind.item,
            Self::Olm(olm) => &olm.item,
        }
    }
}

/// How an OLM bundle describes a kind and its operator. Empty texts are not set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Olm {
    /// The source location.
    pub item: Item,
    /// The API group of the kind.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// The name of the kind for people.
    pub display_name: String,
    /// One or two sentences about the kind.
    pub description: String,
    /// The path of the operator's icon in the project.
    pub icon: String,
    /// The capability level of the operator.
    pub capabilities: String,
    /// The categories of the operator in catalogs.
    pub categories: Vec<String>,
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

/// A type that implements a webhook.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handler {
    /// Where it was declared.
    pub item: Item,
    /// The method of the manager that registers it: `validator`.
    pub registration: String,
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
