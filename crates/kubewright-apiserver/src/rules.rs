//! The strategy of a resource: decoding, defaulting, preparation, validation and tables.
//!
//! Built-in kinds follow the facts table and upstream's strategies, CRDs have their own rules, and custom
//! resources follow their CRD. The write path is the same for all and calls this module where they differ.

use std::borrow::Cow;

use kubewright_apiextensions::{crd, custom};
use kubewright_apimachinery::decode::{Decoded, Form};
use kubewright_apimachinery::field::ErrorList;
use kubewright_apimachinery::gvk::{Gvk, split_api_version};
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::status::ApiError;
use kubewright_apimachinery::{decode, types};
use kubewright_apis::{convert, defaults, selectable, strategy, table, validation};
use kubewright_cel::rules::Compiler;
use kubewright_structured_merge::{self as apply, ConvertError, Reset, Versions};
use serde_json::Value;

use crate::custom::{Custom, Verdict};
use crate::input::{self, Media};
use crate::options::FieldValidation;
use crate::resources::{Resource, ResourceKind};

impl Resource {
    /// Decodes the body of a create or update, and sets defaults. Also returns warnings.
    pub(crate) fn decode(
        &self,
        media: Media,
        bytes: &[u8],
        validation: FieldValidation,
    ) -> Result<(Value, Vec<String>), ApiError> {
        match &self.shape {
            ResourceKind::BuiltIn(ty) => {
                let decoded = input::decode_as(self.gvk(), ty.get(), media, bytes)?;
                let warnings = input::strict(&decoded.strict, validation)
                    .map_err(|error| self.not_handled(self.gvk(), &error.message))?;
                let mut object = decoded.value;
                self.set_defaults(&mut object).map_err(|why| self.not_handled(self.gvk(), &why))?;
                Ok((object, warnings))
            }
            ResourceKind::Custom(custom) => self.decode_custom(custom, media, bytes, validation),
        }
    }

    fn decode_custom(
        &self,
        custom: &Custom,
        media: Media,
        bytes: &[u8],
        validation: FieldValidation,
    ) -> Result<(Value, Vec<String>), ApiError> {
        let (json, repeated) = input::body_json(self.kind(), media, bytes)?;
        let parsed = input::parse_kind(self.kind(), &json, bytes)?;
        let (version, kind) =
            (parsed.value.str_at("apiVersion").to_owned(), parsed.value.str_at("kind").to_owned());
        let (group, version) = split_api_version(&version);
        let gvk = Gvk { group, version, kind: &kind };
        let Decoded { value, strict } = match custom::decode_parsed(&custom.rules, parsed, &json) {
            Ok(decoded) => decoded,
            Err(error @ (custom::DecodeError::MissingKind { .. } | custom::DecodeError::Syntax(_))) => {
                return Err(input::unrecognized(self.kind(), &error.to_string(), bytes));
            }
            Err(error) => return Err(self.not_handled(gvk, &error.to_string())),
        };
        let strict: Vec<String> = repeated.into_iter().chain(strict).collect();
        let warnings =
            input::strict(&strict, validation).map_err(|error| self.not_handled(gvk, &error.message))?;
        custom::check_version(self.gvk(), &value)?;
        Ok((value, warnings))
    }

    fn not_handled(&self, given: Gvk<'_>, why: &str) -> ApiError {
        let Gvk { version, kind, .. } = given;
        let expected = self.kind();
        ApiError::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a {expected}: {why}"
        ))
    }

    /// Sets the defaults of a built-in kind. Errors have Go's wording.
    pub(crate) fn set_defaults(&self, object: &mut Value) -> Result<(), String> {
        if self.defines_resources() {
            crd::complete(object)?;
            crd::set_defaults(object);
        }
        defaults::apply(self.gvk(), object);
        Ok(())
    }

    /// Resets fields that clients may not set on create.
    pub(crate) fn prepare_create(&self, object: &mut Value) {
        match &self.shape {
            ResourceKind::BuiltIn(_) if self.defines_resources() => crd::prepare_create(object),
            ResourceKind::BuiltIn(_) => strategy::prepare_create(self.gvk(), object),
            ResourceKind::Custom(custom) => {
                if let Some(version) = custom.rules.versions.get(self.version()) {
                    custom::prepare_create(version, object);
                }
            }
        }
    }

    /// Resets fields that clients may not change through this endpoint.
    pub(crate) fn prepare_update(&self, subresource: &str, new: &mut Value, old: &Value) {
        match (&self.shape, subresource) {
            // A binding may change fields that updates may not.
            (_, "binding") => {}
            (ResourceKind::BuiltIn(_), "status") if self.defines_resources() => crd::prepare_status(new, old),
            (ResourceKind::BuiltIn(_), _) if self.defines_resources() => crd::prepare_update(new, old),
            // A scale changes the object like any update.
            (ResourceKind::BuiltIn(_), "" | "scale") => strategy::prepare_update(self.gvk(), new, old),
            (ResourceKind::BuiltIn(_), other) => strategy::prepare_subresource(self.gvk(), other, new, old),
            (ResourceKind::Custom(_), "status") => custom::prepare_status_update(new, old),
            (ResourceKind::Custom(custom), _) => {
                if let Some(version) = custom.rules.versions.get(self.version()) {
                    custom::prepare_update(version, new, old);
                }
            }
        }
    }

    pub(crate) fn validate_create(&self, object: &Value) -> Verdict {
        match &self.shape {
            ResourceKind::BuiltIn(_) if self.defines_resources() => {
                only(crd::validate_create(object, &Compiler))
            }
            ResourceKind::BuiltIn(_) => only(validation::create(self.gvk(), self.namespaced(), object)),
            ResourceKind::Custom(custom) => {
                let errors = custom::validate_create(&custom.rules, self.version(), object);
                custom.check_rules(self.version(), errors, object, None)
            }
        }
    }

    pub(crate) fn validate_update(&self, subresource: &str, new: &Value, old: &Value) -> Verdict {
        let (gvk, namespaced) = (self.gvk(), self.namespaced());
        match (&self.shape, subresource) {
            (_, "binding") => Verdict::default(),
            (ResourceKind::BuiltIn(_), "status") if self.defines_resources() => {
                only(crd::validate_status_update(new, old))
            }
            (ResourceKind::BuiltIn(_), _) if self.defines_resources() => {
                only(crd::validate_update(new, old, &Compiler))
            }
            (ResourceKind::BuiltIn(_), "" | "scale") => only(validation::update(gvk, namespaced, new, old)),
            (ResourceKind::BuiltIn(_), other) => {
                only(validation::update_subresource(gvk, other, namespaced, new, old))
            }
            (ResourceKind::Custom(custom), subresource) => {
                let validate =
                    if subresource == "status" { custom::validate_status } else { custom::validate_replace };
                let errors = validate(&custom.rules, self.version(), new, old);
                custom.check_rules(self.version(), errors, new, Some(old))
            }
        }
    }

    /// Upstream's warnings on create and update.
    pub(crate) fn warnings(&self, new: &Value, old: Option<&Value>) -> Vec<String> {
        match &self.shape {
            ResourceKind::BuiltIn(_) if self.defines_resources() => crd::warnings(new, old),
            ResourceKind::BuiltIn(_) => strategy::warnings(self.gvk(), new, old),
            ResourceKind::Custom(_) => custom::warnings(new, old),
        }
    }

    /// Completes an object for validation.
    pub(crate) fn complete(&self, object: &mut Value) -> Result<Form, ApiError> {
        match self.shape {
            ResourceKind::BuiltIn(ty) => match decode::complete(ty.get(), object) {
                Ok(completed) => Ok(completed.form),
                Err(error) => Err(ApiError::internal(error.to_string())),
            },
            ResourceKind::Custom(_) => Ok(Form::Normal),
        }
    }

    /// Brings an object into the form in which it is returned and stored.
    pub(crate) fn normalise(&self, object: &mut Value) -> Result<(), ApiError> {
        if let ResourceKind::BuiltIn(ty) = self.shape {
            decode::normalise(ty.get(), object).map_err(|error| ApiError::internal(error.to_string()))?;
        }
        Ok(())
    }

    /// The fields that this endpoint never changes, which field managers do not own.
    pub(crate) fn reset(&self, subresource: &str) -> Reset {
        match (&self.shape, subresource) {
            (ResourceKind::BuiltIn(_), _) => Reset::of_kind(self.group(), self.kind(), subresource),
            (ResourceKind::Custom(_), "status") => Reset::of_custom_status(),
            (ResourceKind::Custom(custom), _) => {
                let has_status = custom.rules.versions.get(self.version()).is_some_and(|v| v.status);
                Reset::of_custom(&self.gvk().api_version(), has_status)
            }
        }
    }

    /// The versions of the kind, for tracking field ownership.
    pub(crate) fn versions(&self) -> &dyn Versions {
        match &self.shape {
            ResourceKind::BuiltIn(_) => self,
            ResourceKind::Custom(custom) => &**custom,
        }
    }

    /// Checks that field selectors support a field. The error is upstream's.
    pub(crate) fn check_selectable(&self, field: &str) -> Result<(), ApiError> {
        let named = |version: &crd::Version| version.selectable.iter().any(|known| known.name == field);
        let own = self.custom().and_then(|custom| custom.version(self.version()));
        if own.is_some_and(named) {
            return Ok(());
        }
        selectable::check(self.gvk(), self.namespaced(), field).map_err(ApiError::bad_request)
    }

    /// The selectable fields of an object, besides name and namespace.
    pub(crate) fn selectable(&self, object: &Value) -> Vec<(Cow<'_, str>, String)> {
        match &self.shape {
            ResourceKind::BuiltIn(_) => {
                let fields = selectable::fields(self.gvk(), object).into_iter();
                fields.map(|(field, value)| (field.into(), value)).collect()
            }
            ResourceKind::Custom(custom) => {
                let fields = custom.version(self.version()).into_iter().flat_map(|v| &v.selectable);
                fields.map(|field| (field.name.as_str().into(), field.value(object))).collect()
            }
        }
    }

    /// The columns of a Table.
    pub(crate) fn columns(&self) -> Vec<Value> {
        match &self.shape {
            ResourceKind::BuiltIn(_) => {
                table::column_definitions(self.group(), self.version(), self.plural())
            }
            ResourceKind::Custom(custom) => custom
                .version(self.version())
                .map(|version| version.columns.definitions().to_vec())
                .unwrap_or_default(),
        }
    }

    /// The cells of an object's row.
    pub(crate) fn cells(&self, object: &Value, now: i64) -> Vec<Value> {
        match &self.shape {
            ResourceKind::BuiltIn(_) => table::cells(self.gvk(), object, now),
            ResourceKind::Custom(custom) => custom
                .version(self.version())
                .map(|version| version.columns.cells(object, now))
                .unwrap_or_default(),
        }
    }
}

impl Versions for Resource {
    fn schema(&self, api_version: &str) -> Result<apply::Schema<'_>, ConvertError> {
        let (group, version) = split_api_version(api_version);
        let ty = types::type_of_kind(group, version, self.kind()).ok_or(ConvertError::Missing)?;
        Ok(apply::Schema::built_in(ty))
    }

    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConvertError> {
        let (group, version) = split_api_version(api_version);
        let ty = types::type_of_kind(group, version, self.kind()).ok_or(ConvertError::Missing)?;
        if object.str_at("apiVersion") == api_version {
            return Ok(object.clone());
        }
        let mut object = convert::convert(object.clone(), Gvk { group, version, kind: self.kind() });
        decode::normalise(ty, &mut object).map_err(|error| ConvertError::Failed(error.to_string()))?;
        Ok(object)
    }
}

fn only(errors: ErrorList) -> Verdict {
    Verdict { errors, warnings: Vec::new() }
}
