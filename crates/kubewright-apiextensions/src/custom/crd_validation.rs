//! A CRD, compiled for the handling of its custom resources.

use std::collections::BTreeMap;

use serde_json::Value;

use super::scale::ScalePaths;
use crate::structural::{SchemaError, Structural};
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::object::Fields as _;

/// A compiled CRD.
#[derive(Debug, Clone, PartialEq)]
pub struct CrdValidation {
    /// API group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Whether the resource is namespaced.
    pub namespaced: bool,
    /// `spec.preserveUnknownFields`: nothing is pruned. Only CRDs created through `v1beta1` have it.
    pub preserve_unknown_fields: bool,
    /// Versions by name, including those that are not served.
    pub versions: BTreeMap<String, Version>,
}

/// A version of a CRD.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Version {
    /// The schema; empty if there is none.
    pub schema: Structural,
    /// Whether the version has a schema.
    pub has_schema: bool,
    /// Whether the status subresource is enabled.
    pub status: bool,
    /// The scale subresource, if enabled.
    pub scale: Option<ScalePaths>,
}

impl CrdValidation {
    /// Compiles a CustomResourceDefinition.
    pub fn compile(crd: &Value) -> Result<Self, SchemaError> {
        let spec = crd.at("spec");
        let accepted = crd.str_at("status.acceptedNames.kind");
        let mut versions = BTreeMap::new();
        for version in spec.list_at("versions") {
            versions.insert(version.str_at("name").to_owned(), Version::compile(version)?);
        }
        Ok(Self {
            group: spec.str_at("group").to_owned(),
            kind: if accepted.is_empty() { spec.str_at("names.kind") } else { accepted }.to_owned(),
            namespaced: spec.str_at("scope") == "Namespaced",
            preserve_unknown_fields: spec.bool_at("preserveUnknownFields"),
            versions,
        })
    }

    /// Group, version and kind of objects of a version.
    pub fn gvk<'a>(&'a self, version: &'a str) -> Gvk<'a> {
        Gvk { group: &self.group, version, kind: &self.kind }
    }
}

impl Version {
    fn compile(version: &Value) -> Result<Self, SchemaError> {
        let schema = match version.at("schema.openAPIV3Schema") {
            Value::Null => Structural::default(),
            schema => Structural::parse(schema)?,
        };
        if let Some(name) = schema.first_unknown_type() {
            return Err(SchemaError::UnknownType(name.to_owned()));
        }
        let subresources = version.at("subresources");
        Ok(Self {
            schema,
            has_schema: version.has("schema.openAPIV3Schema"),
            status: subresources.has("status"),
            scale: subresources.has("scale").then(|| ScalePaths::compile(subresources.at("scale"))),
        })
    }
}
