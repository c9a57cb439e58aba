//! The scale subresource of workloads and custom resources.
//!
//! A Scale is a view of an object: its desired and observed replicas. Writing one updates the object on the
//! write path of every update; admission sees the Scale, and its field manager owns the replicas of the
//! object.

use bytes::Bytes;
use http::{Method, Response, StatusCode};
use kubewright_apimachinery::field::{FieldError, Path};
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::selector::LabelSelector;
use kubewright_apimachinery::status::ApiError;
use kubewright_apimachinery::types::{self, TypeRef};
use kubewright_apimachinery::{decode, json, time};
use kubewright_apis::table;
use kubewright_structured_merge::{self as apply, ManagedFields, OneVersion, Owners, Reset, Schema, Write};
use serde_json::{Value, json};

use super::Subresources;
use crate::admission::Notes;
use crate::clock::Clock;
use crate::encoding::body::Body;
use crate::encoding::negotiate::{negotiate, wrong_number};
use crate::encoding::request_body;
use crate::encoding::response::{self, Format, Include, View};
use crate::endpoints::patch::{self, Applied, Patch};
use crate::fieldmanager::FieldManager;
use crate::registry::conversion::Recorder;
use crate::registry::resource::Resource;
use crate::registry::strategy::BuiltIn;
use crate::registry::write::change::{Candidate, Change, check_uid};
use crate::registry::write::{WriteRequest, check_name};
use crate::request::Request;
use crate::request::options::{WriteKind, WriteOptions};

pub(crate) const SCALE: Gvk<'static> = Gvk { group: "autoscaling", version: "v1", kind: "Scale" };

const NO_SCALE: &str =
    "no kind is registered for the type v1.Scale in scheme \"pkg/apiserver/customresource_handler.go:781\"";

/// The change to a Scale.
enum Wanted {
    Scale(Value),
    Patch(Patch),
    Applied(Applied),
}

impl Subresources {
    pub(crate) async fn get_scale(
        &self,
        request: &Request,
        resource: &Resource,
        namespace: &str,
        name: &str,
    ) -> Result<Response<Body>, ApiError> {
        let format = negotiate(request, resource)?;
        let version = self.reads.find(resource, namespace, name)?;
        self.reads.conversion.convert_versions(resource, std::slice::from_ref(&version)).await?;
        let object = response::object(resource, &version);
        let scale = match resource.strategy.scale_paths() {
            Some(paths) => paths.get(&object)?,
            None => scale_of(&object),
        };
        Ok(self.show_scale(resource, format, &scale))
    }

    fn show_scale(&self, resource: &Resource, format: Format, scale: &Value) -> Response<Body> {
        let value = match format.view {
            View::Whole => scale.clone(),
            View::Metadata(version) => response::metadata_of(resource, scale, version),
            View::MetadataList(_) => return response::failure(&wrong_number(resource, false)),
            View::Table(version, include) => {
                let object = match include {
                    Include::Nothing => Value::Null,
                    Include::Metadata => response::metadata_of(resource, scale, version),
                    Include::Object => scale.clone(),
                };
                json!({
                    "kind": "Table",
                    "apiVersion": format!("meta.k8s.io/{version}"),
                    "metadata": {"resourceVersion": scale.at("metadata.resourceVersion")},
                    "columnDefinitions": table::scale_column_definitions(),
                    "rows": [{"cells": table::cells(SCALE, scale, self.reads.clock.now()), "object": object}],
                })
            }
        };
        response::answer(StatusCode::OK, format, Bytes::from(json::to_vec(&value)))
    }

    pub(crate) async fn write_scale(
        &self,
        request: &Request,
        resource: &Resource,
        namespace: &str,
        name: &str,
        body: &Bytes,
    ) -> Result<Response<Body>, ApiError> {
        let scale_type = types::find("autoscaling.v1.Scale").ok_or_else(|| ApiError::internal("no Scale"))?;
        let kind = if request.method == Method::PUT {
            WriteKind::Update
        } else {
            patch::kind_of(request, resource)?
        };
        let format = negotiate(request, resource)?;
        let options = WriteOptions::read(&request.query, kind)?;
        let (wanted, warnings) = match kind {
            WriteKind::Apply => {
                (Wanted::Applied(Applied::read(request, body, options.field_validation)?), Vec::new())
            }
            WriteKind::Patch => {
                let (patch, strict) = Patch::read(request, body, options.field_validation)?;
                (Wanted::Patch(patch), request_body::strict(&strict, options.field_validation)?)
            }
            _ => {
                let decoded =
                    request_body::decode_as(SCALE, scale_type.get(), request_body::media(request)?, body)
                        .map_err(|error| {
                            // Upstream's scheme of custom resources has no Scale.
                            if resource.is_unstructured() { ApiError::bad_request(NO_SCALE) } else { error }
                        })?;
                let warnings = request_body::strict(&decoded.strict, options.field_validation)?;
                check_name(&decoded.value, name)?;
                (Wanted::Scale(decoded.value), warnings)
            }
        };
        let manager = FieldManager::of(request);
        let write = WriteRequest {
            resource,
            namespace,
            name,
            subresource: "scale",
            user: &request.user,
            manager: &manager,
            options: &options,
        };
        let strategy = BuiltIn::of_subresource(SCALE, scale_type);
        let mut change = Change::Scale(Scale { resource, ty: scale_type, strategy, wanted });
        let mut notes = Notes { warnings, ..Notes::of(request) };
        let outcome = self.writes.update_object(&write, &mut change, &mut notes).await?;
        let object = outcome.written.object(resource);
        let scale = match resource.strategy.scale_paths() {
            Some(paths) => paths.written(&object)?,
            None => scale_of(&object),
        };
        let mut response = self.show_scale(resource, format, &scale);
        response::warn(&mut response, &notes.warnings);
        Ok(response)
    }
}

/// The Scale after a request, with its managedFields.
fn new_scale(
    clock: &dyn Clock,
    scale_type: TypeRef,
    manager: &FieldManager,
    live: &Value,
    wanted: &Wanted,
) -> Result<Value, ApiError> {
    let api_version = SCALE.api_version();
    let write = Write {
        manager: manager.name(),
        api_version: &api_version,
        kind: SCALE.kind,
        subresource: "scale",
        time: &time::format_rfc3339(clock.now()),
        versions: &OneVersion { api_version: &api_version, schema: Schema::built_in(scale_type.get()) },
        reset: &Reset::default(),
        owners: Owners::Json,
    };
    let mut scale = match wanted {
        Wanted::Scale(scale) => scale.clone(),
        Wanted::Patch(patch) => {
            let strategy = BuiltIn::of_subresource(SCALE, scale_type);
            let patched = patch.apply(&strategy, live)?;
            patch.decode(&strategy, &patched)?.0
        }
        Wanted::Applied(applied) => {
            let mut scale = apply::apply(Some(live), &applied.object, applied.force, &write)
                .map_err(|error| error.to_api_error())?;
            decode::complete(scale_type.get(), &mut scale)
                .map_err(|error| ApiError::internal(error.to_string()))?;
            return Ok(scale);
        }
    };
    apply::update(Some(live), &mut scale, &write);
    Ok(scale)
}

/// A write of a Scale.
pub(crate) struct Scale<'a> {
    resource: &'a Resource,
    ty: TypeRef,
    /// The rules of the Scale, for admission.
    pub(crate) strategy: BuiltIn,
    wanted: Wanted,
}

impl Scale<'_> {
    /// The new Scale, and the live one.
    pub(crate) fn resolve(
        &self,
        recorder: &Recorder<'_>,
        write: &WriteRequest<'_>,
        live: Option<&Value>,
    ) -> Result<Candidate, ApiError> {
        let resource = self.resource;
        let live = live.ok_or_else(|| ApiError::not_found(resource.qualified(), write.name))?;
        let mut old = match resource.strategy.scale_paths() {
            Some(paths) => paths.get_for_update(live)?,
            None => scale_of(live),
        };
        apply::to_scale(&owners_of(live)?, &resource.strategy.replicas_paths()).store(&mut old);
        let scale = new_scale(recorder.clock, self.ty, write.manager, &old, &self.wanted)?;
        let warnings = match &self.wanted {
            Wanted::Applied(applied) => applied.strict()?,
            Wanted::Scale(_) | Wanted::Patch(_) => Vec::new(),
        };
        check_name(&scale, write.name)?;
        Ok(Candidate { object: scale, old: Some(old), warnings })
    }

    /// The live object with the replicas of an admitted Scale.
    pub(crate) fn complete(
        &self,
        write: &WriteRequest<'_>,
        live: &Value,
        scale: &Value,
    ) -> Result<Value, ApiError> {
        let resource = self.resource;
        let mut new = live.clone();
        put_replicas(resource, &mut new, scale, write.name)?;
        if self.replaces() {
            check_uid(write, live, &new)?;
        }
        let scale_owners = ManagedFields::decode(scale.at("metadata.managedFields"))
            .map_err(|error| ApiError::internal(error.to_string()))?;
        let api_version = resource.gvk().api_version();
        apply::from_scale(
            &owners_of(live)?,
            &scale_owners,
            &api_version,
            &resource.strategy.replicas_paths(),
        )
        .store_packed(&mut new);
        Ok(new)
    }

    /// Whether the client sent the whole Scale.
    pub(crate) fn replaces(&self) -> bool {
        matches!(self.wanted, Wanted::Scale(_))
    }

    /// The Scale of an object.
    pub(crate) fn view(&self, object: &Value) -> Value {
        match self.resource.strategy.scale_paths() {
            Some(paths) => paths.written(object).unwrap_or_default(),
            None => scale_of(object),
        }
    }
}

/// The managedFields of a live object.
fn owners_of(live: &Value) -> Result<ManagedFields, ApiError> {
    ManagedFields::decode_packed(live.at("metadata.managedFields"))
        .map_err(|error| ApiError::internal(error.to_string()))
}

/// Sets the replicas of a Scale on its object.
fn put_replicas(resource: &Resource, object: &mut Value, scale: &Value, name: &str) -> Result<(), ApiError> {
    if let Some(paths) = resource.strategy.scale_paths() {
        return paths.set(object, scale);
    }
    let replicas = scale.int_at("spec.replicas").unwrap_or_default();
    if replicas < 0 {
        let at = Path::new("spec").child("replicas");
        let errors = vec![FieldError::invalid(&at, replicas, "must be greater than or equal to 0")];
        return Err(ApiError::invalid(SCALE.qualified_kind(), name, &errors));
    }
    object.set_at("spec.replicas", replicas);
    // The Scale's resourceVersion and UID are preconditions for the object.
    for field in ["metadata.resourceVersion", "metadata.uid"] {
        match scale.at(field) {
            Value::Null => drop(object.remove_at(field)),
            value => object.set_at(field, value.clone()),
        }
    }
    Ok(())
}

/// The Scale of a workload.
fn scale_of(object: &Value) -> Value {
    let mut metadata = serde_json::Map::new();
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object.map_at("metadata").get(field) {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    let selector = match object.str_at("kind") {
        "ReplicationController" => {
            let labels = object.map_at("spec.selector").iter();
            LabelSelector::from_labels(
                labels.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default())),
            )
            .to_string()
        }
        _ => {
            LabelSelector::from_object(object.at("spec.selector")).map(|s| s.to_string()).unwrap_or_default()
        }
    };
    let mut spec = serde_json::Map::new();
    let replicas = object.int_at("spec.replicas").unwrap_or_default();
    if replicas != 0 {
        spec.insert("replicas".to_owned(), replicas.into());
    }
    let mut status = json!({"replicas": object.int_at("status.replicas").unwrap_or_default()});
    if !selector.is_empty() {
        status["selector"] = selector.into();
    }
    json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status})
}
