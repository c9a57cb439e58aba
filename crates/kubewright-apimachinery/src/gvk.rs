//! Group, version and kind.

use serde_json::Value;

use crate::object::Fields as _;
use crate::status::Qualified;

/// Group, version and kind of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Gvk<'a> {
    /// API group; empty for the core group.
    pub group: &'a str,
    /// API version.
    pub version: &'a str,
    /// Kind.
    pub kind: &'a str,
}

impl<'a> Gvk<'a> {
    /// Reads `apiVersion` and `kind` of an object; missing parts are empty.
    pub fn of(object: &'a Value) -> Self {
        let (group, version) = split_api_version(object.str_at("apiVersion"));
        Self { group, version, kind: object.str_at("kind") }
    }

    /// Group and kind, as used in messages about invalid objects.
    pub fn qualified_kind(self) -> Qualified<'a> {
        Qualified { group: self.group, name: self.kind }
    }

    /// The `apiVersion` of objects of this kind.
    pub fn api_version(self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }
}

/// Splits `apps/v1` into group and version; `v1` has the empty group.
pub fn split_api_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn group_version_and_kind_are_read_from_an_object() {
        let object = json!({"apiVersion": "apps/v1", "kind": "Deployment"});
        let gvk = Gvk::of(&object);
        assert_eq!(gvk, Gvk { group: "apps", version: "v1", kind: "Deployment" });
        assert_eq!(gvk.api_version(), "apps/v1");
        assert_eq!(gvk.qualified_kind().to_string(), "Deployment.apps");
        assert_eq!(Gvk::of(&json!({})), Gvk { group: "", version: "", kind: "" });
    }
}
