//! PATCH: JSON patches, merge patches and strategic merge patches.
//!
//! A patch is applied to the object as the requested version shows it; the result is decoded like any body
//! and goes the way of every update.

use bytes::Bytes;
use http::{Response, StatusCode};
use kubewright_apimachinery::encode::{self, TakenApart};
use kubewright_apimachinery::facts::Type;
use kubewright_apimachinery::field::{FieldError, Path};
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::patch::strategic::{apply_strategic_merge_patch, go_text};
use kubewright_apimachinery::patch::{
    JsonPatch, JsonPatchError, apply_merge_patch, check_json_patch, check_merge_patch, decode_merge_patch,
};
use kubewright_apimachinery::status::{ApiError, Qualified};
use kubewright_apimachinery::{decode, defaults, json};
use serde_json::Value;

use crate::body::Body;
use crate::input::{self, essence};
use crate::options::{FieldValidation, WriteKind, WriteOptions};
use crate::output;
use crate::request::Request;
use crate::resources::Served;
use crate::server::Inner;
use crate::write::{Update, check_name, check_namespace};

/// A patch, decoded as far as it can be without the object.
pub(crate) enum Patch {
    /// And the paths that it goes to, for messages.
    Json(JsonPatch, TakenApart),
    Merge(Value),
    Strategic(Value),
}

impl Patch {
    /// Decodes the body of a PATCH. Answers with the complaints of strict validation, too.
    pub(crate) fn read(
        request: &Request,
        body: &Bytes,
        validation: FieldValidation,
    ) -> Result<(Self, Vec<String>), ApiError> {
        let checks = validation != FieldValidation::Ignore;
        match essence(request.header(http::header::CONTENT_TYPE)) {
            "application/json-patch+json" => {
                let strict = if checks {
                    check_json_patch(body).map_err(|e| json_patch_error(&e))?
                } else {
                    Vec::new()
                };
                let patch = JsonPatch::decode(body).map_err(|error| json_patch_error(&error))?;
                Ok((Self::Json(patch, taken_apart(body)), strict))
            }
            "application/merge-patch+json" => {
                let (patch, strict) = merge_patch(body, checks)?;
                Ok((Self::Merge(patch), strict))
            }
            "application/strategic-merge-patch+json" => {
                let (patch, strict) = strategic_patch(body, checks)?;
                Ok((Self::Strategic(patch), strict))
            }
            _ => Err(unsupported()),
        }
    }

    /// The object after the patch.
    pub(crate) fn apply(&self, ty: &'static Type, object: &Value) -> Result<Value, ApiError> {
        match self {
            Self::Json(patch, _) => patch.apply(object.clone()).map_err(|error| json_patch_error(&error)),
            Self::Merge(patch) => Ok(apply_merge_patch(object, patch)),
            Self::Strategic(patch) => apply_strategic_merge_patch(ty, object, patch).map_err(|error| {
                let reason = match error.code() {
                    400 => "BadRequest",
                    422 => "Invalid",
                    _ => "",
                };
                ApiError::new(error.code(), reason, error.to_string())
            }),
        }
    }
}

/// The paths of a JSON patch that was found to be one.
fn taken_apart(body: &Bytes) -> TakenApart {
    let operations =
        json::parse(body, json::ParseOptions::default()).map(|parsed| parsed.value).unwrap_or_default();
    let operations: Vec<&Value> = operations.as_array().into_iter().flatten().collect();
    let pointers =
        operations.iter().flat_map(|operation| [operation["path"].as_str(), operation["from"].as_str()]);
    TakenApart::by_pointers(pointers.flatten())
}

impl Patch {
    /// A patched object as one of its type; what strict validation complains of comes with it.
    pub(crate) fn decode(
        &self,
        gvk: Gvk<'_>,
        ty: &'static Type,
        patched: &Value,
    ) -> Result<(Value, Vec<String>), ApiError> {
        let mut object = patched.clone();
        if matches!(self, Self::Strategic(_)) {
            // Put into the struct at hand, whatever it says it is.
            output::set_kind(&mut object, gvk.api_version(), gvk.kind);
        } else if let Err(why) = input::check_registered(gvk, Gvk::of(patched)) {
            return Err(self.refused(ty, patched, why));
        }
        let strict = decode::unknown_fields(ty, &object);
        decode::complete(ty, &mut object).map_err(|error| self.refused(ty, patched, error.to_string()))?;
        Ok((object, strict))
    }

    /// The patched object is none, or not one that strict validation lets through.
    pub(crate) fn refused(&self, ty: &'static Type, patched: &Value, why: String) -> ApiError {
        let shown = match self {
            Self::Json(_, apart) => encode::to_string(ty, patched, apart),
            Self::Merge(patch) => encode::to_string(ty, patched, &TakenApart::by_merge_patch(patch)),
            Self::Strategic(patch) => go_text(patch),
        };
        let errors = vec![FieldError::invalid(&Path::new("patch"), shown, why)];
        ApiError::invalid(Qualified { group: "", name: "" }, "", &errors)
    }
}

fn merge_patch(body: &Bytes, checks: bool) -> Result<(Value, Vec<String>), ApiError> {
    let bad =
        |error: kubewright_apimachinery::patch::MergePatchError| ApiError::bad_request(error.to_string());
    let strict = if checks { check_merge_patch(body).map_err(bad)? } else { Vec::new() };
    Ok((decode_merge_patch(body).map_err(bad)?, strict))
}

fn strategic_patch(body: &Bytes, checks: bool) -> Result<(Value, Vec<String>), ApiError> {
    let strict = if checks {
        check_merge_patch(body).map_err(|error| ApiError::bad_request(error.to_string()))?
    } else {
        Vec::new()
    };
    let parsed = json::parse(body, json::ParseOptions::default())
        .map_err(|error| ApiError::bad_request(format!("error decoding patch: {error}")))?;
    match parsed.value {
        Value::Object(_) => Ok((parsed.value, strict)),
        Value::Null => Ok((Value::Object(serde_json::Map::new()), strict)),
        _ => Err(ApiError::bad_request("error decoding patch")),
    }
}

fn json_patch_error(error: &JsonPatchError) -> ApiError {
    match error {
        JsonPatchError::Decode(why) => ApiError::bad_request(why.clone()),
        JsonPatchError::TooManyOperations(_) => input::too_large(&error.to_string()),
        JsonPatchError::Apply(_) | JsonPatchError::TestFailed { .. } => {
            let message = "the server rejected our request due to an error in our request";
            let mut error = ApiError::new(422, "Invalid", message);
            error.details = Some(Box::default());
            error
        }
    }
}

fn unsupported() -> ApiError {
    let mut error = ApiError::new(415, "UnsupportedMediaType", "415: Unsupported Media Type");
    error.details = Some(Box::default());
    error
}

impl Inner {
    /// PATCH of an object, or of one of its subresources.
    pub(crate) fn patch(
        &self,
        request: &Request,
        served: &Served,
        namespace: &str,
        name: &str,
        subresource: &str,
        body: &Bytes,
    ) -> Result<Response<Body>, ApiError> {
        let format = output::negotiate(request)?;
        let kind = match essence(request.header(http::header::CONTENT_TYPE)) {
            "application/apply-patch+yaml" => WriteKind::Apply,
            "application/json-patch+json"
            | "application/merge-patch+json"
            | "application/strategic-merge-patch+json" => WriteKind::Patch,
            _ => return Err(unsupported()),
        };
        let options = WriteOptions::read(&request.query, kind)?;
        let (patch, patch_strict) = Patch::read(request, body, options.field_validation)?;
        let complaints = std::cell::RefCell::new(Vec::new());
        let mut warnings = Vec::new();
        let update = Update {
            served,
            namespace,
            name,
            subresource,
            dry_run: options.dry_run,
            create: false,
            replaces: false,
        };
        let outcome = self.update_object(&update, &mut warnings, |old| {
            let patched = patch.apply(served.ty, old)?;
            let (mut object, strict) = patch.decode(served.gvk(), served.ty, &patched)?;
            let strict: Vec<String> = patch_strict.iter().cloned().chain(strict).collect();
            *complaints.borrow_mut() = input::strict(&strict, options.field_validation)
                .map_err(|error| patch.refused(served.ty, &patched, error.message))?;
            check_name(&object, name)?;
            check_namespace(served, namespace, &mut object)?;
            defaults::apply(served.gvk(), &mut object);
            Ok(object)
        });
        let warnings: Vec<String> = complaints.into_inner().into_iter().chain(warnings).collect();
        Ok(self.answer_write(served, format, outcome, StatusCode::OK, &warnings))
    }
}
