//! The strategy of built-in kinds: rows of the facts table.

use std::borrow::Cow;

use kubewright_apimachinery::decode::Form;
use kubewright_apimachinery::encode::{self, TakenApart};
use kubewright_apimachinery::gvk::{Gvk, split_api_version};
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::patch::strategic::{apply_strategic_merge_patch, conversion_error};
use kubewright_apimachinery::status::{ApiError, Qualified};
use kubewright_apimachinery::{decode, types};
use kubewright_apis::facts::TypeRef;
use kubewright_apis::registry::{self, RegistryRules};
use kubewright_apis::reset_fields::ResetFields;
use kubewright_apis::{convert, defaults, selectable, strategy, table, validation};
use kubewright_structured_merge::{self as apply, ConvertError, ReplicasPaths, Reset, Versions};
use serde_json::Value;

use super::{Strategy, Verdict};
use crate::encoding::request_body::{self, Media};
use crate::encoding::response::set_kind;
use crate::registry::store::attributes;
use crate::request::options::FieldValidation;
use crate::storage::Attributes;

/// A built-in kind in one version.
#[derive(Debug)]
pub(crate) struct BuiltIn {
    gvk: Gvk<'static>,
    plural: &'static str,
    namespaced: bool,
    /// Resolved on first use.
    ty: TypeRef,
    /// Group, version and kind in storage.
    stored: Gvk<'static>,
    registry: &'static RegistryRules,
}

impl BuiltIn {
    pub(crate) fn new(
        gvk: Gvk<'static>,
        plural: &'static str,
        namespaced: bool,
        ty: TypeRef,
        stored: Option<Gvk<'static>>,
    ) -> Self {
        let registry = registry::rules(gvk);
        Self { gvk, plural, namespaced, ty, stored: stored.unwrap_or(gvk), registry }
    }

    /// A kind that is only sent to a subresource: Scale, Binding, Eviction, TokenRequest.
    pub(crate) fn of_subresource(gvk: Gvk<'static>, ty: TypeRef) -> Self {
        Self::new(gvk, "", true, ty, None)
    }

    /// Decodes a body, with the defaults that `default` sets.
    pub(super) fn decode_with(
        &self,
        media: Media,
        bytes: &[u8],
        validation: FieldValidation,
        default: impl FnOnce(&mut Value) -> Result<(), String>,
    ) -> Result<(Value, Vec<String>), ApiError> {
        let decoded = request_body::decode_as(self.gvk, self.ty.get(), media, bytes)?;
        let warnings = request_body::strict(&decoded.strict, validation)
            .map_err(|error| not_handled(self.gvk, self.gvk.kind, &error.message))?;
        let mut object = decoded.value;
        default(&mut object).map_err(|why| not_handled(self.gvk, self.gvk.kind, &why))?;
        Ok((object, warnings))
    }

    /// Decodes the result of a server-side apply.
    pub(super) fn complete_applied(&self, object: &mut Value) -> Result<(), String> {
        decode::complete(self.ty.get(), object).map(drop).map_err(|error| error.to_string())
    }

    fn is_storage_form(&self) -> bool {
        self.stored == self.gvk
    }
}

/// The path of the replicas in all versions of built-in workloads, past and present.
pub(super) fn replicas_paths() -> ReplicasPaths {
    let mut paths = ReplicasPaths::default();
    for version in ["apps/v1", "apps/v1beta1", "apps/v1beta2", "extensions/v1beta1", "v1"] {
        paths.add(version, Some("spec.replicas"));
    }
    paths
}

/// The error for a body that is not an object of the kind.
pub(super) fn not_handled(given: Gvk<'_>, expected: &str, why: &str) -> ApiError {
    let Gvk { version, kind, .. } = given;
    ApiError::bad_request(format!("{kind} in version {version:?} cannot be handled as a {expected}: {why}"))
}

impl Strategy for BuiltIn {
    fn gvk(&self) -> Gvk<'_> {
        self.gvk
    }

    fn decode(
        &self,
        media: Media,
        bytes: &[u8],
        validation: FieldValidation,
    ) -> Result<(Value, Vec<String>), ApiError> {
        self.decode_with(media, bytes, validation, |object| self.default(object))
    }

    fn decode_value(&self, object: &mut Value) -> Result<Vec<String>, String> {
        let strict = decode::unknown_fields(self.ty.get(), object);
        decode::complete(self.ty.get(), object).map_err(|error| error.to_string())?;
        Ok(strict)
    }

    fn decode_patched(&self, object: &mut Value, strategic: bool) -> Result<Vec<String>, String> {
        if strategic {
            if let Some(why) = conversion_error(self.ty.get(), object) {
                return Err(why);
            }
            // Converted to the resource's type, whatever its own kind is.
            set_kind(object, self.gvk.api_version(), self.gvk.kind);
        } else {
            request_body::check_registered(self.gvk, Gvk::of(object))?;
        }
        self.decode_value(object)
    }

    fn default(&self, object: &mut Value) -> Result<(), String> {
        defaults::apply(self.gvk, object);
        Ok(())
    }

    fn default_applied(&self, object: &mut Value) -> Result<(), String> {
        self.complete_applied(object)?;
        self.default(object)
    }

    fn strategic_merge(&self, object: &Value, patch: &Value) -> Option<Result<Value, ApiError>> {
        Some(apply_strategic_merge_patch(self.ty.get(), object, patch).map_err(|error| {
            let reason = match error.code() {
                400 => "BadRequest",
                422 => "Invalid",
                _ => "",
            };
            ApiError::new(error.code(), reason, error.to_string())
        }))
    }

    fn print_patched(&self, patched: &Value, touched: &dyn Fn() -> TakenApart) -> String {
        encode::to_string(self.ty.get(), patched, &touched())
    }

    fn check_create(&self, _: &str) -> Result<(), ApiError> {
        Ok(())
    }

    fn prepare_for_create(&self, object: &mut Value) {
        strategy::prepare_create(self.gvk, object);
    }

    fn prepare_for_update(&self, subresource: &str, new: &mut Value, old: &Value) {
        match subresource {
            // A binding may change fields that updates may not.
            "binding" => {}
            // A scale changes the object like any update.
            "" | "scale" => strategy::prepare_update(self.gvk, new, old),
            other => strategy::prepare_subresource(self.gvk, other, new, old),
        }
    }

    fn complete(&self, object: &mut Value) -> Result<Form, ApiError> {
        match decode::complete(self.ty.get(), object) {
            Ok(completed) => Ok(completed.form),
            Err(error) => Err(ApiError::internal(error.to_string())),
        }
    }

    fn validate(&self, object: &Value) -> Verdict {
        validation::create(self.gvk, self.namespaced, object).into()
    }

    fn validate_update(&self, subresource: &str, new: &Value, old: &Value) -> Verdict {
        let (gvk, namespaced) = (self.gvk, self.namespaced);
        match subresource {
            "binding" => Verdict::default(),
            "" | "scale" => validation::update(gvk, namespaced, new, old).into(),
            other => validation::update_subresource(gvk, other, namespaced, new, old).into(),
        }
    }

    fn warnings(&self, new: &Value, old: Option<&Value>) -> Vec<String> {
        strategy::warnings(self.gvk, new, old)
    }

    fn canonicalize(&self, object: &mut Value) -> Result<(), ApiError> {
        decode::normalise(self.ty.get(), object).map_err(|error| ApiError::internal(error.to_string()))
    }

    fn registry_rules(&self) -> &'static RegistryRules {
        self.registry
    }

    fn kind_in_errors<'a>(&'a self, _: &'a Value) -> Qualified<'a> {
        // Upstream names core Events for both groups of Events.
        self.stored.qualified_kind()
    }

    fn reset_fields(&self, subresource: &str) -> Reset {
        match ResetFields::of(self.gvk.group, self.gvk.kind, subresource) {
            ResetFields::These(paths) => Reset::fields(paths),
            ResetFields::AllBut(paths) => Reset::all_but(paths),
        }
    }

    fn versions(&self) -> &dyn Versions {
        self
    }

    fn check_selectable(&self, field: &str) -> Result<(), ApiError> {
        selectable::check(self.gvk, self.namespaced, field).map_err(ApiError::bad_request)
    }

    fn selectable(&self, object: &Value) -> Vec<(Cow<'_, str>, String)> {
        let fields = selectable::fields(self.gvk, object).into_iter();
        fields.map(|(field, value)| (field.into(), value)).collect()
    }

    fn columns(&self) -> Vec<Value> {
        table::column_definitions(self.gvk.group, self.gvk.version, self.plural)
    }

    fn cells(&self, object: &Value, now: i64) -> Vec<Value> {
        table::cells(self.gvk, object, now)
    }

    fn cell_paths(&self) -> Option<Vec<Vec<&str>>> {
        let paths = table::cell_paths(self.gvk)?;
        Some(paths.iter().map(|path| path.split('.').collect()).collect())
    }

    fn to_storage(&self, mut object: Value) -> (Value, Attributes) {
        if !self.is_storage_form() {
            object = convert::convert(object, self.stored);
        }
        let attributes = attributes(Some(self.stored), &object);
        if let Some(object) = object.as_object_mut() {
            object.remove("apiVersion");
            object.remove("kind");
        }
        (object, attributes)
    }

    fn read_stored(&self, mut object: Value) -> Value {
        set_kind(&mut object, self.stored.api_version(), self.stored.kind);
        if self.is_storage_form() { object } else { convert::convert(object, self.gvk) }
    }
}

impl Versions for BuiltIn {
    fn schema(&self, api_version: &str) -> Result<apply::Schema<'_>, ConvertError> {
        let (group, version) = split_api_version(api_version);
        let ty = types::type_of_kind(group, version, self.gvk.kind).ok_or(ConvertError::Missing)?;
        Ok(apply::Schema::built_in(ty))
    }

    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConvertError> {
        let (group, version) = split_api_version(api_version);
        let ty = types::type_of_kind(group, version, self.gvk.kind).ok_or(ConvertError::Missing)?;
        if object.str_at("apiVersion") == api_version {
            return Ok(object.clone());
        }
        let mut object = convert::convert(object.clone(), Gvk { group, version, kind: self.gvk.kind });
        decode::normalise(ty, &mut object).map_err(|error| ConvertError::Failed(error.to_string()))?;
        Ok(object)
    }
}
