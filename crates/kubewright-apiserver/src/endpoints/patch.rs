//! PATCH: JSON patches, merge patches, strategic merge patches, and server-side apply.
//!
//! A patch is applied to the object in the requested version; the result is decoded like any body and takes
//! the write path of every update. Server-side apply may create its object.

use bytes::Bytes;
use http::{Response, StatusCode};
use kubewright_apimachinery::encode::TakenApart;
use kubewright_apimachinery::field::{FieldError, Path};
use kubewright_apimachinery::json;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::patch::strategic::go_text;
use kubewright_apimachinery::patch::{
    JsonPatch, JsonPatchError, apply_merge_patch, check_json_patch, check_merge_patch, decode_merge_patch,
};
use kubewright_apimachinery::status::{ApiError, Qualified};
use kubewright_structured_merge as apply;
use kubewright_structured_merge::packed;
use serde_json::{Value, json};

use crate::admission::Notes;
use crate::encoding::body::Body;
use crate::encoding::negotiate::negotiate;
use crate::encoding::request_body::{self, essence};
use crate::fieldmanager::{FieldManager, bound_owners};
use crate::registry::conversion::Recorder;
use crate::registry::resource::Resource;
use crate::registry::strategy::Strategy;
use crate::registry::write::change::{Candidate, Change};
use crate::registry::write::{WritePath, WriteRequest, check_name, check_namespace};
use crate::request::Request;
use crate::request::options::{FieldValidation, WriteKind, WriteOptions};

const APPLY: &str = "application/apply-patch+yaml";

/// A patch, decoded as far as possible without the object.
pub(crate) enum Patch {
    /// With the body as sent, for error messages.
    Json(JsonPatch, Bytes),
    Merge(Value),
    Strategic(Value),
}

impl Patch {
    /// Decodes the body of a PATCH. Also returns its strict validation errors.
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
                Ok((Self::Json(patch, body.clone()), strict))
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
    pub(crate) fn apply(&self, strategy: &dyn Strategy, object: &Value) -> Result<Value, ApiError> {
        match self {
            Self::Json(patch, _) => patch.apply(object.clone()).map_err(|error| json_patch_error(&error)),
            Self::Merge(patch) => Ok(apply_merge_patch(object, patch)),
            Self::Strategic(patch) => {
                strategy.strategic_merge(object, patch).unwrap_or_else(|| Err(unsupported()))
            }
        }
    }
}

/// The decoded paths of a valid JSON patch.
fn taken_apart(body: &Bytes) -> TakenApart {
    let operations =
        json::parse(body, json::ParseOptions::default()).map(|parsed| parsed.value).unwrap_or_default();
    let operations: Vec<&Value> = operations.as_array().into_iter().flatten().collect();
    let pointers =
        operations.iter().flat_map(|operation| [operation["path"].as_str(), operation["from"].as_str()]);
    TakenApart::by_pointers(pointers.flatten())
}

impl Patch {
    /// Decodes a patched object. Also returns its strict validation errors.
    pub(crate) fn decode(
        &self,
        strategy: &dyn Strategy,
        patched: &Value,
    ) -> Result<(Value, Vec<String>), ApiError> {
        let mut object = patched.clone();
        let strict = strategy
            .decode_patched(&mut object, matches!(self, Self::Strategic(_)))
            .map_err(|why| self.refused(strategy, patched, why))?;
        Ok((object, strict))
    }

    /// The error for a patched object that is invalid or fails strict validation.
    pub(crate) fn refused(&self, strategy: &dyn Strategy, patched: &Value, why: String) -> ApiError {
        let shown = match self {
            Self::Strategic(patch) => go_text(patch),
            Self::Json(_, body) => strategy.print_patched(patched, &|| taken_apart(body)),
            Self::Merge(patch) => strategy.print_patched(patched, &|| TakenApart::by_merge_patch(patch)),
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
    // Upstream omits the usual prefix here.
    let bad = |why: String| ApiError::bad_request(why.replacen("error decoding patch: ", "", 1));
    let strict = check_merge_patch(body).map_err(|error| bad(error.to_string()))?;
    let parsed = json::parse(body, json::ParseOptions::default()).map_err(|error| bad(error.to_string()))?;
    let patch = match parsed.value {
        Value::Null => Value::Object(serde_json::Map::new()),
        patch => patch,
    };
    Ok((patch, if checks { strict } else { Vec::new() }))
}

fn json_patch_error(error: &JsonPatchError) -> ApiError {
    match error {
        JsonPatchError::Decode(why) => ApiError::bad_request(why.clone()),
        JsonPatchError::TooManyOperations(_) => request_body::too_large(&error.to_string()),
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

/// The type of a patch, if the resource supports it. Custom resources do not support strategic merge patches.
pub(crate) fn kind_of(request: &Request, resource: &Resource) -> Result<WriteKind, ApiError> {
    match essence(request.header(http::header::CONTENT_TYPE)) {
        APPLY => Ok(WriteKind::Apply),
        "application/json-patch+json" | "application/merge-patch+json" => Ok(WriteKind::Patch),
        "application/strategic-merge-patch+json" if resource.is_routed() => Ok(WriteKind::Patch),
        _ if !resource.is_routed() => Err(ApiError::new(
            415,
            "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types include: \
             application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
        )),
        _ => Err(unsupported()),
    }
}

/// An apply configuration.
pub(crate) struct Applied {
    pub(crate) object: Value,
    pub(crate) force: bool,
    /// The strict validation error for duplicate keys.
    repeated: Option<String>,
    validation: FieldValidation,
}

impl Applied {
    pub(crate) fn read(
        request: &Request,
        body: &Bytes,
        validation: FieldValidation,
    ) -> Result<Self, ApiError> {
        let bad = |why: String| ApiError::bad_request(format!("error decoding YAML: {why}"));
        let (value, repeated) =
            if body.is_empty() { (Value::Null, None) } else { request_body::applied(body).map_err(bad)? };
        let object = match value {
            Value::Object(_) => value,
            Value::Null => json!({}),
            other => {
                let kind = request_body::json_kind(&other);
                return Err(bad(format!(
                    "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {kind} into Go value of \
                     type map[string]interface {{}}"
                )));
            }
        };
        let force = request.query.flag("force");
        Ok(Self { object, force, repeated, validation })
    }

    /// The strict validation result, after the configuration was applied: an error, or warnings.
    pub(crate) fn strict(&self) -> Result<Vec<String>, ApiError> {
        match (&self.repeated, self.validation) {
            (Some(why), FieldValidation::Strict) => {
                let why = format!("error strict decoding YAML: error converting YAML to JSON: {why}");
                Err(ApiError::bad_request(why))
            }
            (Some(why), FieldValidation::Warn) => Ok(vec![request_body::warning(why)]),
            _ => Ok(Vec::new()),
        }
    }
}

/// A PATCH other than apply.
pub(crate) struct PatchObject<'a> {
    resource: &'a Resource,
    /// The patch and its strict validation errors. An invalid patch is reported only on resolve, because a
    /// missing object takes precedence.
    patch: Result<(Patch, Vec<String>), ApiError>,
}

impl PatchObject<'_> {
    pub(crate) fn resolve(
        &self,
        recorder: &Recorder<'_>,
        write: &WriteRequest<'_>,
        live: Option<&Value>,
    ) -> Result<Candidate, ApiError> {
        let resource = self.resource;
        let (patch, strict) = self.patch.as_ref().map_err(Clone::clone)?;
        let live = live.unwrap_or(&Value::Null);
        let mut old = live.clone();
        packed::unpack(&mut old);
        let strategy = &*resource.strategy;
        let patched = patch.apply(strategy, &old)?;
        let (mut object, more) = patch.decode(strategy, &patched)?;
        let strict: Vec<String> = strict.iter().cloned().chain(more).collect();
        let warnings = request_body::strict(&strict, write.options.field_validation)
            .map_err(|error| patch.refused(strategy, &patched, error.message))?;
        strategy.default(&mut object).map_err(|why| patch.refused(strategy, &patched, why))?;
        write.manager.track(recorder, write.subresource, Some(live), &mut object);
        check_namespace(resource, write.namespace, &mut object)?;
        check_name(&object, write.name)?;
        Ok(Candidate::new(object, warnings))
    }
}

/// A server-side apply.
pub(crate) struct Apply {
    /// An invalid configuration is reported on resolve.
    applied: Result<Applied, ApiError>,
    pub(crate) creates: bool,
}

impl Apply {
    pub(crate) fn resolve(
        &self,
        recorder: &Recorder<'_>,
        write: &WriteRequest<'_>,
        live: Option<&Value>,
    ) -> Result<Candidate, ApiError> {
        let WriteRequest { resource, namespace, name, subresource, .. } = *write;
        let applied = self.applied.as_ref().map_err(Clone::clone)?;
        let mut object = write
            .manager
            .with_write(recorder, subresource, |write| {
                apply::apply(live, &applied.object, applied.force, write)
            })
            .map_err(|error| error.to_api_error())?;
        let warnings = applied.strict()?;
        bound_owners(&mut object);
        resource.strategy.default_applied(&mut object).map_err(ApiError::internal)?;
        let uid = object.str_at("metadata.uid");
        if live.is_none() && !uid.is_empty() {
            let why = format!(
                "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            );
            return Err(ApiError::conflict(resource.qualified(), name, &why));
        }
        check_namespace(resource, namespace, &mut object)?;
        check_name(&object, name)?;
        Ok(Candidate::new(object, warnings))
    }
}

/// PATCH of an object, or of one of its subresources.
pub(crate) async fn patch(
    writes: &WritePath,
    request: &Request,
    resource: &Resource,
    namespace: &str,
    name: &str,
    subresource: &str,
    body: &Bytes,
) -> Result<Response<Body>, ApiError> {
    let kind = kind_of(request, resource)?;
    let format = negotiate(request, resource)?;
    let options = WriteOptions::read(&request.query, kind)?;
    let manager = FieldManager::of(request);
    let mut change = if kind == WriteKind::Apply {
        let applied = Applied::read(request, body, options.field_validation);
        Change::Apply(Apply { applied, creates: subresource.is_empty() })
    } else {
        Change::Patch(PatchObject { resource, patch: Patch::read(request, body, options.field_validation) })
    };
    let write = WriteRequest {
        resource,
        namespace,
        name,
        subresource,
        user: &request.user,
        manager: &manager,
        options: &options,
    };
    let mut notes = Notes::of(request);
    let outcome = writes.update_object(&write, &mut change, &mut notes).await;
    Ok(writes.answer_write(resource, format, outcome, StatusCode::OK, &notes.warnings))
}
