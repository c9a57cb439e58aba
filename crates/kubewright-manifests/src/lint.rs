//! What is wrong with manifests, before a cluster says so.
//!
//! Owns the findings: each has a code, the place in the operator's sources, the reason and the remedy.

use serde::{Deserialize, Serialize};

use crate::declare::Item;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Worth a look; the manifests are written.
    Warning,
    /// A cluster would refuse it, or lose what was meant; nothing is written.
    Error,
}

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// `KW` and three digits: docs/lints.md has a section for each.
    pub code: String,
    /// How bad it is.
    pub level: Level,
    /// Where it comes from.
    pub item: Item,
    /// The field within it, as `spec.replicas`; empty for the whole.
    pub field: String,
    /// What is wrong, and why that matters.
    pub message: String,
    /// What to write instead.
    pub help: String,
}
