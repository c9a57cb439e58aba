//! Fields that the endpoints of built-in kinds ignore on writes.
//!
//! The main endpoint ignores the status and the status endpoint ignores the spec. A field that an endpoint ignores gets
//! no field manager.

use crate::{facts, kinds};
use kubewright_apimachinery::gvk::Gvk;

type Paths = &'static [&'static [&'static str]];

/// The fields that an endpoint ignores. Each path includes its children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResetFields {
    /// These fields.
    These(Paths),
    /// All fields except these. `*` stands for any item of a list.
    AllBut(Paths),
}

impl ResetFields {
    /// For an endpoint of a built-in kind. `subresource` is empty for the main endpoint.
    pub fn of(group: &str, kind: &str, subresource: &str) -> Self {
        let own = (kinds::rules(Gvk { group, version: "", kind }).reset_fields)(subresource);
        own.unwrap_or_else(|| {
            Self::These(match subresource {
                "status" => &[&["spec"]],
                "" if has_status(group, kind) => &[&["status"]],
                _ => &[],
            })
        })
    }
}

/// Kinds of newer groups also ignore the metadata at the status endpoint.
pub(crate) fn metadata_and_spec(subresource: &str) -> Option<ResetFields> {
    (subresource == "status").then_some(ResetFields::These(&[&["metadata"], &["spec"]]))
}

/// Whether the kind has a status subresource.
fn has_status(group: &str, kind: &str) -> bool {
    let mut resources = facts::resources().iter();
    resources.any(|r| r.kind == kind && r.group == group && r.subresource("status").is_some())
}
