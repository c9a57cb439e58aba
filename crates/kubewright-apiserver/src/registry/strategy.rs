//! Strategies: what differs between built-in kinds, CustomResourceDefinitions and custom resources.
//!
//! The write path, admission and encoding call a [`Strategy`] and do not distinguish the three. The
//! rules themselves are pure functions of `kubewright-apis` and `kubewright-apiextensions`.

mod built_in;
mod crd;
mod custom_resource;

use std::borrow::Cow;
use std::fmt::Debug;
use std::sync::Arc;

use kubewright_apiextensions::custom::ScalePaths;
use kubewright_apimachinery::decode::Form;
use kubewright_apimachinery::encode::TakenApart;
use kubewright_apimachinery::field::ErrorList;
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::status::{ApiError, Qualified};
use kubewright_apis::registry::RegistryRules;
use kubewright_structured_merge::{ReplicasPaths, Reset, Versions};
use serde_json::Value;

use super::crd_resource::CrdResource;
use crate::encoding::request_body::Media;
use crate::request::options::FieldValidation;
use crate::storage::Attributes;
pub(crate) use built_in::BuiltIn;
pub(crate) use crd::CrdStrategy;
pub(crate) use custom_resource::CustomResource;

/// The result of validation.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) errors: ErrorList,
    pub(crate) warnings: Vec<String>,
}

impl From<ErrorList> for Verdict {
    fn from(errors: ErrorList) -> Self {
        Self { errors, warnings: Vec::new() }
    }
}

/// The rules of one kind in one version, with upstream's names where it has them.
///
/// A write calls `decode` or `decode_value`, `default`, `prepare_for_create` or `prepare_for_update`,
/// `complete`, `validate` or `validate_update`, `canonicalize` and `warnings`, in this order.
pub(crate) trait Strategy: Debug + Send + Sync {
    /// Group, version and kind.
    fn gvk(&self) -> Gvk<'_>;

    /// Decodes the body of a create or update, and sets defaults. Also returns warnings.
    fn decode(
        &self,
        media: Media,
        bytes: &[u8],
        validation: FieldValidation,
    ) -> Result<(Value, Vec<String>), ApiError>;

    /// Decodes an object that is not a request body: the result of a patch or of admission. Returns strict
    /// validation errors.
    fn decode_value(&self, object: &mut Value) -> Result<Vec<String>, String>;

    /// As [`Strategy::decode_value`], for the result of a patch. `strategic` patches convert the object to
    /// this kind.
    fn decode_patched(&self, object: &mut Value, strategic: bool) -> Result<Vec<String>, String>;

    /// Sets defaults that decoding does not set. Errors have Go's wording.
    fn default(&self, object: &mut Value) -> Result<(), String>;

    /// Decodes and defaults the result of a server-side apply, which already conforms to the schema.
    fn default_applied(&self, object: &mut Value) -> Result<(), String>;

    /// Applies a strategic merge patch; `None` if the kind does not support them.
    fn strategic_merge(&self, object: &Value, patch: &Value) -> Option<Result<Value, ApiError>>;

    /// A patched object as error messages show it.
    fn print_patched(&self, patched: &Value, touched: &dyn Fn() -> TakenApart) -> String;

    /// Rejects a create that the state of the kind does not allow.
    fn check_create(&self, name: &str) -> Result<(), ApiError>;

    /// Resets fields that clients may not set on create.
    fn prepare_for_create(&self, object: &mut Value);

    /// Resets fields that clients may not change through this endpoint.
    fn prepare_for_update(&self, subresource: &str, new: &mut Value, old: &Value);

    /// Completes an object for validation.
    fn complete(&self, object: &mut Value) -> Result<Form, ApiError>;

    /// Validates a new object.
    fn validate(&self, object: &Value) -> Verdict;

    /// Validates an object that replaces `old` through this endpoint.
    fn validate_update(&self, subresource: &str, new: &Value, old: &Value) -> Verdict;

    /// Upstream's warnings on create and update.
    fn warnings(&self, new: &Value, old: Option<&Value>) -> Vec<String>;

    /// Converts an object to the form that is returned and stored.
    fn canonicalize(&self, object: &mut Value) -> Result<(), ApiError>;

    /// How the objects are stored and deleted. The default is that of custom resources.
    fn registry_rules(&self) -> &'static RegistryRules {
        &RegistryRules::CUSTOM_RESOURCE
    }

    /// Whether upstream has a router in front of the handlers. It rejects unknown paths, verbs and media types with
    /// errors of its own.
    fn is_routed(&self) -> bool {
        true
    }

    /// The object in the state in which it waits for the deletion of others, if the kind has such a state.
    fn mark_deleted(&self, _object: &Value, _now: &str) -> Option<Value> {
        None
    }

    /// The kind in validation errors.
    fn kind_in_errors<'a>(&'a self, object: &'a Value) -> Qualified<'a>;

    /// The fields that this endpoint never changes, which field managers do not own.
    fn reset_fields(&self, subresource: &str) -> Reset;

    /// The versions of the kind, for tracking field ownership.
    fn versions(&self) -> &dyn Versions;

    /// Checks that field selectors support a field. The error is upstream's.
    fn check_selectable(&self, field: &str) -> Result<(), ApiError>;

    /// The selectable fields of an object, besides name and namespace.
    fn selectable(&self, object: &Value) -> Vec<(Cow<'_, str>, String)>;

    /// The columns of a Table.
    fn columns(&self) -> Vec<Value>;

    /// The cells of an object's row.
    fn cells(&self, object: &Value, now: i64) -> Vec<Value>;

    /// The paths of all fields that [`Strategy::cells`] reads. A path in a list applies to its items. `None` if any field
    /// may be read.
    fn cell_paths(&self) -> Option<Vec<Vec<&str>>>;

    /// An object in storage form, and its indexed attributes.
    fn to_storage(&self, object: Value) -> (Value, Attributes);

    /// An object from storage in this version, with `apiVersion` and `kind`. Conversion webhooks are not
    /// called.
    fn read_stored(&self, object: Value) -> Value;

    /// Whether upstream handles the objects as unstructured content: stored objects and items of lists have `apiVersion`
    /// and `kind`, and there is no protobuf encoding.
    fn is_unstructured(&self) -> bool {
        false
    }

    /// Where the scale subresource finds the replicas. `None` for kinds that upstream converts to a Scale in Go.
    fn scale_paths(&self) -> Option<&ScalePaths> {
        None
    }

    /// The path of the replicas in each version that field managers may have used. The default is that of workloads.
    fn replicas_paths(&self) -> ReplicasPaths {
        built_in::replicas_paths()
    }

    /// The CRD of a custom resource.
    fn crd(&self) -> Option<&Arc<CrdResource>> {
        None
    }
}
