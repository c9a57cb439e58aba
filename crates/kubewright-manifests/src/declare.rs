//! What an operator declares, and where its attributes put it.
//!
//! Owns the data that goes from an operator's program to the tool that writes manifests. An attribute emits a
//! [`submit!`] of a [`Declaration`]; [`all`] finds those of the whole program. Nothing here decides what becomes of
//! them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use inventory::submit;
pub use kubewright_apimachinery::webhook::{Declaration as Webhook, Item, MatchCondition};

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

/// One thing that is declared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Declared {
    /// `#[rbac(...)]`.
    Rule(Rule),
    /// `#[webhook(url = ...)]`: a webhook that is served outside of the cluster.
    Webhook(Box<Webhook>),
    /// `#[webhook(...)]` on the impl of a handler. Its webhook is declared where the handler is registered.
    Handler(Handler),
    /// A kind in `crds!(...)`.
    Kind(Kind),
}

impl Declared {
    /// Where it was declared.
    pub fn item(&self) -> &Item {
        match self {
            Self::Rule(rule) => &rule.item,
            Self::Webhook(webhook) => &webhook.item,
            Self::Handler(handler) => &handler.item,
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

/// A type that implements a webhook.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handler {
    /// Where it was declared.
    pub item: Item,
    /// The method of the manager that registers it: `validator`.
    pub registration: String,
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
