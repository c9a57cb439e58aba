//! The strategy of CustomResourceDefinitions: a built-in kind with its own rules.

use std::borrow::Cow;

use kubewright_apiextensions::crd;
use kubewright_apimachinery::decode::Form;
use kubewright_apimachinery::encode::TakenApart;
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::status::{ApiError, Qualified};
use kubewright_apis::registry::RegistryRules;
use kubewright_cel::rules::Compiler;
use kubewright_structured_merge::{Reset, Versions};
use serde_json::Value;

use super::{BuiltIn, Strategy, Verdict};
use crate::encoding::request_body::Media;
use crate::request::options::FieldValidation;
use crate::storage::Attributes;

/// CustomResourceDefinitions.
#[derive(Debug)]
pub(crate) struct CrdStrategy(pub(crate) BuiltIn);

impl Strategy for CrdStrategy {
    fn decode(
        &self,
        media: Media,
        bytes: &[u8],
        validation: FieldValidation,
    ) -> Result<(Value, Vec<String>), ApiError> {
        self.0.decode_with(media, bytes, validation, |object| self.default(object))
    }

    fn default(&self, object: &mut Value) -> Result<(), String> {
        crd::complete(object)?;
        crd::set_defaults(object);
        self.0.default(object)
    }

    fn default_applied(&self, object: &mut Value) -> Result<(), String> {
        self.0.complete_applied(object)?;
        self.default(object)
    }

    fn prepare_for_create(&self, object: &mut Value) {
        crd::prepare_create(object);
    }

    fn prepare_for_update(&self, subresource: &str, new: &mut Value, old: &Value) {
        match subresource {
            "status" => crd::prepare_status(new, old),
            _ => crd::prepare_update(new, old),
        }
    }

    fn validate(&self, object: &Value) -> Verdict {
        crd::validate_create(object, &Compiler).into()
    }

    fn validate_update(&self, subresource: &str, new: &Value, old: &Value) -> Verdict {
        match subresource {
            "status" => crd::validate_status_update(new, old).into(),
            _ => crd::validate_update(new, old, &Compiler).into(),
        }
    }

    fn warnings(&self, new: &Value, old: Option<&Value>) -> Vec<String> {
        crd::warnings(new, old)
    }

    /// A CRD is removed after its custom resources.
    fn mark_deleted(&self, object: &Value, now: &str) -> Option<Value> {
        let mut marked = object.clone();
        marked.set_at("metadata.deletionTimestamp", now);
        crd::prepare_delete(&mut marked, now);
        Some(marked)
    }

    // Everything else is as for other built-in kinds.

    fn gvk(&self) -> Gvk<'_> {
        self.0.gvk()
    }

    fn decode_value(&self, object: &mut Value) -> Result<Vec<String>, String> {
        self.0.decode_value(object)
    }

    fn decode_patched(&self, object: &mut Value, strategic: bool) -> Result<Vec<String>, String> {
        self.0.decode_patched(object, strategic)
    }

    fn strategic_merge(&self, object: &Value, patch: &Value) -> Option<Result<Value, ApiError>> {
        self.0.strategic_merge(object, patch)
    }

    fn print_patched(&self, patched: &Value, touched: &dyn Fn() -> TakenApart) -> String {
        self.0.print_patched(patched, touched)
    }

    fn check_create(&self, name: &str) -> Result<(), ApiError> {
        self.0.check_create(name)
    }

    fn complete(&self, object: &mut Value) -> Result<Form, ApiError> {
        self.0.complete(object)
    }

    fn canonicalize(&self, object: &mut Value) -> Result<(), ApiError> {
        self.0.canonicalize(object)
    }

    fn registry_rules(&self) -> &'static RegistryRules {
        self.0.registry_rules()
    }

    fn kind_in_errors<'a>(&'a self, object: &'a Value) -> Qualified<'a> {
        self.0.kind_in_errors(object)
    }

    fn reset_fields(&self, subresource: &str) -> Reset {
        self.0.reset_fields(subresource)
    }

    fn versions(&self) -> &dyn Versions {
        self.0.versions()
    }

    fn check_selectable(&self, field: &str) -> Result<(), ApiError> {
        self.0.check_selectable(field)
    }

    fn selectable(&self, object: &Value) -> Vec<(Cow<'_, str>, String)> {
        self.0.selectable(object)
    }

    fn columns(&self) -> Vec<Value> {
        self.0.columns()
    }

    fn cells(&self, object: &Value, now: i64) -> Vec<Value> {
        self.0.cells(object, now)
    }

    fn cell_paths(&self) -> Option<Vec<Vec<&str>>> {
        self.0.cell_paths()
    }

    fn to_storage(&self, object: Value) -> (Value, Attributes) {
        self.0.to_storage(object)
    }

    fn read_stored(&self, object: Value) -> Value {
        self.0.read_stored(object)
    }
}
