//! The strategy of custom resources: the schemas, columns and subresources of their CRD.

use std::borrow::Cow;
use std::sync::Arc;

use kubewright_apiextensions::custom::ScalePaths;
use kubewright_apiextensions::{crd, custom};
use kubewright_apimachinery::decode::{Decoded, Form};
use kubewright_apimachinery::encode::TakenApart;
use kubewright_apimachinery::gvk::{Gvk, split_api_version};
use kubewright_apimachinery::json;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::status::{ApiError, Qualified};
use kubewright_apis::selectable;
use kubewright_structured_merge::{ReplicasPaths, Reset, Versions};
use serde_json::Value;

use super::built_in::not_handled;
use super::{Strategy, Verdict};
use crate::encoding::request_body::{self, Media};
use crate::registry::crd_resource::CrdResource;
use crate::registry::store::attributes;
use crate::request::options::FieldValidation;
use crate::storage::Attributes;

/// A custom resource in one version of its CRD.
#[derive(Debug)]
pub(crate) struct CustomResource {
    crd: Arc<CrdResource>,
    version: String,
}

impl CustomResource {
    pub(crate) fn new(crd: Arc<CrdResource>, version: &str) -> Self {
        Self { crd, version: version.to_owned() }
    }

    /// The schema and subresources of this version.
    fn rules(&self) -> Option<&custom::Version> {
        self.crd.validation.versions.get(&self.version)
    }

    /// The names and columns of this version.
    fn info(&self) -> Option<&crd::Version> {
        self.crd.version(&self.version)
    }
}

impl Strategy for CustomResource {
    fn gvk(&self) -> Gvk<'_> {
        let info = &self.crd.info;
        Gvk { group: &info.group, version: &self.version, kind: &info.names.kind }
    }

    fn decode(
        &self,
        media: Media,
        bytes: &[u8],
        validation: FieldValidation,
    ) -> Result<(Value, Vec<String>), ApiError> {
        let expected = self.gvk();
        let (json, repeated) = request_body::body_json(expected.kind, media, bytes)?;
        let parsed = request_body::parse_kind(expected.kind, &json, bytes)?;
        let (version, kind) =
            (parsed.value.str_at("apiVersion").to_owned(), parsed.value.str_at("kind").to_owned());
        let (group, version) = split_api_version(&version);
        let given = Gvk { group, version, kind: &kind };
        let Decoded { value, strict } = match custom::decode_parsed(&self.crd.validation, parsed, &json) {
            Ok(decoded) => decoded,
            Err(error @ (custom::DecodeError::MissingKind { .. } | custom::DecodeError::Syntax(_))) => {
                return Err(request_body::unrecognized(expected.kind, &error.to_string(), bytes));
            }
            Err(error) => return Err(not_handled(given, expected.kind, &error.to_string())),
        };
        let strict: Vec<String> = repeated.into_iter().chain(strict).collect();
        let warnings = request_body::strict(&strict, validation)
            .map_err(|error| not_handled(given, expected.kind, &error.message))?;
        custom::check_version(expected, &value)?;
        Ok((value, warnings))
    }

    fn decode_value(&self, object: &mut Value) -> Result<Vec<String>, String> {
        custom::complete(&self.crd.validation, object).map_err(|error| error.to_string())
    }

    fn decode_patched(&self, object: &mut Value, _: bool) -> Result<Vec<String>, String> {
        if object.str_at("kind").is_empty() {
            return Err(format!("Object 'Kind' is missing in '{}'", json::to_string(object)));
        }
        self.decode_value(object)
    }

    fn default(&self, _: &mut Value) -> Result<(), String> {
        Ok(())
    }

    fn default_applied(&self, object: &mut Value) -> Result<(), String> {
        // The configuration was validated against the schema, so nothing is pruned.
        if let Some(rules) = self.rules() {
            custom::apply_defaults(&rules.schema, object);
        }
        Ok(())
    }

    fn strategic_merge(&self, _: &Value, _: &Value) -> Option<Result<Value, ApiError>> {
        None
    }

    fn print_patched(&self, patched: &Value, _: &dyn Fn() -> TakenApart) -> String {
        json::to_string(patched)
    }

    fn check_create(&self, name: &str) -> Result<(), ApiError> {
        let info = &self.crd.info;
        if !info.terminating {
            return Ok(());
        }
        let resource = Qualified { group: &info.group, name: &info.names.plural };
        let why = "create not allowed while custom resource definition is terminating";
        Err(ApiError::forbidden(resource, name, why))
    }

    fn prepare_for_create(&self, object: &mut Value) {
        if let Some(rules) = self.rules() {
            custom::prepare_create(rules, object);
        }
    }

    fn prepare_for_update(&self, subresource: &str, new: &mut Value, old: &Value) {
        match (subresource, self.rules()) {
            ("status", _) => custom::prepare_status_update(new, old),
            (_, Some(rules)) => custom::prepare_update(rules, new, old),
            (_, None) => {}
        }
    }

    fn complete(&self, _: &mut Value) -> Result<Form, ApiError> {
        Ok(Form::Normal)
    }

    fn validate(&self, object: &Value) -> Verdict {
        let errors = custom::validate_create(&self.crd.validation, &self.version, object);
        self.crd.check_rules(&self.version, errors, object, None)
    }

    fn validate_update(&self, subresource: &str, new: &Value, old: &Value) -> Verdict {
        let validate =
            if subresource == "status" { custom::validate_status } else { custom::validate_replace };
        let errors = validate(&self.crd.validation, &self.version, new, old);
        self.crd.check_rules(&self.version, errors, new, Some(old))
    }

    fn warnings(&self, new: &Value, old: Option<&Value>) -> Vec<String> {
        custom::warnings(new, old)
    }

    fn canonicalize(&self, _: &mut Value) -> Result<(), ApiError> {
        Ok(())
    }

    fn is_routed(&self) -> bool {
        false
    }

    fn kind_in_errors<'a>(&'a self, object: &'a Value) -> Qualified<'a> {
        Gvk::of(object).qualified_kind()
    }

    fn reset_fields(&self, subresource: &str) -> Reset {
        if subresource == "status" {
            Reset::fields(&[&["metadata"], &["spec"]])
        } else {
            let has_status = self.rules().is_some_and(|rules| rules.status);
            let ignored: &[&[&str]] = if has_status { &[&["status"]] } else { &[] };
            Reset::fields(ignored).only_in(&self.gvk().api_version())
        }
    }

    fn versions(&self) -> &dyn Versions {
        &*self.crd
    }

    fn check_selectable(&self, field: &str) -> Result<(), ApiError> {
        if self.info().is_some_and(|info| info.selectable.iter().any(|known| known.name == field)) {
            return Ok(());
        }
        selectable::check(self.gvk(), self.crd.info.namespaced, field).map_err(ApiError::bad_request)
    }

    fn selectable(&self, object: &Value) -> Vec<(Cow<'_, str>, String)> {
        let fields = self.info().into_iter().flat_map(|info| &info.selectable);
        fields.map(|field| (field.name.as_str().into(), field.value(object))).collect()
    }

    fn columns(&self) -> Vec<Value> {
        self.info().map(|info| info.columns.definitions().to_vec()).unwrap_or_default()
    }

    fn cells(&self, object: &Value, now: i64) -> Vec<Value> {
        self.info().map(|info| info.columns.cells(object, now)).unwrap_or_default()
    }

    fn cell_paths(&self) -> Option<Vec<Vec<&str>>> {
        self.info().map(|info| info.columns.paths())
    }

    fn to_storage(&self, object: Value) -> (Value, Attributes) {
        // `apiVersion` and `kind` stay, because the storage version of the CRD may change.
        let object = self.crd.to_stored(object);
        let attributes = attributes(None, &object);
        (object, attributes)
    }

    fn read_stored(&self, object: Value) -> Value {
        self.crd.read(object, &self.version)
    }

    fn is_unstructured(&self) -> bool {
        true
    }

    fn scale_paths(&self) -> Option<&ScalePaths> {
        self.rules()?.scale.as_ref()
    }

    fn replicas_paths(&self) -> ReplicasPaths {
        let mut paths = ReplicasPaths::default();
        for (name, version) in &self.crd.validation.versions {
            let path = version.scale.as_ref().map(|scale| scale.spec_replicas.as_str());
            paths.add(&self.crd.validation.gvk(name).api_version(), path);
        }
        paths
    }

    fn crd(&self) -> Option<&Arc<CrdResource>> {
        Some(&self.crd)
    }
}
