//! The write path: from a request to the store.
//!
//! Every create and update of every kind passes these stages, in this order:
//!
//! 1. resolve: a [`Change`] and the live object give a candidate, with its managedFields;
//! 2. the mutating phase of admission, which may wait;
//! 3. privilege escalation checks (RBAC objects only);
//! 4. prepare, allocate, validate;
//! 5. permission to create, if an update creates its object; then the validating phase of admission, which may wait;
//! 6. commit against the version that the candidate was resolved from, or start again on a conflict;
//! 7. the steps after the commit ([`crate::after_commit`]).
//!
//! Only admission and conversion webhooks can wait, and no lock is held meanwhile.

pub(crate) mod change;
mod metadata;
mod request;
mod stages;

use std::sync::Arc;

use bytes::Bytes;
use http::{Response, StatusCode};
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::status::ApiError;
use kubewright_structured_merge::{self as apply, packed};
use serde_json::Value;

use crate::admission::{AdmissionControl, Notes, Operation};
use crate::after_commit::{AfterCommit, StepRunner};
use crate::authz::Authz;
use crate::clock::Clock;
use crate::encoding::body::Body;
use crate::encoding::negotiate::{negotiate, wrong_number};
use crate::encoding::request_body;
use crate::encoding::response::{self, Shown};
use crate::fieldmanager::FieldManager;
use crate::registry::conversion::{Conversion, Recorder};
use crate::registry::delete::is_removable;
use crate::registry::resource::Resource;
use crate::registry::store::ObjectStore;
use crate::request::Request;
use crate::request::options::{WriteKind, WriteOptions};
use crate::storage::{Expect, StoredObject};
use change::{Candidate, Change, Replace};
use metadata::dedup_owners;
pub(crate) use metadata::{check_name, check_namespace};
pub(crate) use request::WriteRequest;
use stages::check_resource_version;

/// Maximum number of generated names before a create fails.
const NAME_TRIES: usize = 8;
/// Maximum number of attempts of an update after conflicts.
const UPDATE_TRIES: usize = 32;

/// Maximum number of rounds of conversions by a webhook to resolve a change.
const CONVERSION_ROUNDS: usize = 4;

/// Upstream's message for a conflict.
pub(crate) const MODIFIED: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

/// The object in the response to a write.
pub(crate) enum Written {
    /// A stored version.
    Stored(Arc<StoredObject>),
    /// Not stored: the write was a dry run, or removed the object.
    Shown(Value),
}

impl Written {
    /// An object that may be packed.
    pub(crate) fn shown(mut object: Value) -> Self {
        packed::unpack(&mut object);
        Self::Shown(object)
    }

    pub(crate) fn object(&self, resource: &Resource) -> Value {
        match self {
            Self::Stored(version) => response::object(resource, version),
            Self::Shown(value) => value.clone(),
        }
    }
}

/// The result of a write.
pub(crate) struct Outcome {
    pub(crate) written: Written,
    pub(crate) created: bool,
}

/// Creates and updates objects for requests.
pub(crate) struct WritePath {
    pub(crate) admission: Arc<AdmissionControl>,
    pub(crate) authz: Arc<Authz>,
    pub(crate) conversion: Arc<Conversion>,
    pub(crate) objects: Arc<ObjectStore>,
    pub(crate) steps: Arc<StepRunner>,
}

impl WritePath {
    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.objects.clock
    }

    /// POST to a collection.
    pub(crate) async fn create(
        &self,
        request: &Request,
        resource: &Resource,
        namespace: &str,
        body: &Bytes,
    ) -> Result<Response<Body>, ApiError> {
        let format = negotiate(request, resource)?;
        let options = WriteOptions::read(&request.query, WriteKind::Create)?;
        let media = request_body::media(request)?;
        let (mut object, warnings) = resource.strategy.decode(media, body, options.field_validation)?;
        metadata::wipe_system_fields(&mut object);
        check_namespace(resource, namespace, &mut object)?;
        let mut notes = Notes { warnings, ..Notes::of(request) };
        notes.warnings.extend(dedup_owners(&mut object, "contains duplicate entries"));
        let manager = FieldManager::of(request);
        manager.track(&Recorder::new(self.clock(), resource), "", None, &mut object);
        let write = WriteRequest {
            resource,
            namespace,
            name: "",
            subresource: "",
            user: &request.user,
            manager: &manager,
            options: &options,
        };
        let outcome = self.create_object(&write, object, &mut notes).await;
        Ok(self.answer_write(resource, format, outcome, StatusCode::CREATED, &notes.warnings))
    }

    /// PUT of an object, or of one of its subresources.
    pub(crate) async fn update(
        &self,
        request: &Request,
        resource: &Resource,
        namespace: &str,
        name: &str,
        subresource: &str,
        body: &Bytes,
    ) -> Result<Response<Body>, ApiError> {
        let format = negotiate(request, resource)?;
        let options = WriteOptions::read(&request.query, WriteKind::Update)?;
        let manager = FieldManager::of(request);
        let write = WriteRequest {
            resource,
            namespace,
            name,
            subresource,
            user: &request.user,
            manager: &manager,
            options: &options,
        };
        let creates = subresource.is_empty() && resource.rules().creates_on_update;
        let mut change =
            Change::Replace(Replace::read(&write, request_body::media(request)?, body, creates)?);
        let mut notes = Notes::of(request);
        let outcome = self.update_object(&write, &mut change, &mut notes).await;
        Ok(self.answer_write(resource, format, outcome, StatusCode::OK, &notes.warnings))
    }

    /// The response to a write, with its warnings.
    pub(crate) fn answer_write(
        &self,
        resource: &Resource,
        format: response::Format,
        outcome: Result<Outcome, ApiError>,
        status: StatusCode,
        warnings: &[String],
    ) -> Response<Body> {
        match outcome {
            Ok(outcome) => {
                let status = if outcome.created { StatusCode::CREATED } else { status };
                self.written(resource, format, &outcome.written, status, warnings)
            }
            Err(error) => {
                let mut response = response::failure(&error);
                response::warn(&mut response, warnings);
                response
            }
        }
    }

    /// The response to a successful write.
    pub(crate) fn written(
        &self,
        resource: &Resource,
        format: response::Format,
        written: &Written,
        status: StatusCode,
        warnings: &[String],
    ) -> Response<Body> {
        if matches!(format.view, response::View::MetadataList(_)) {
            return response::failure(&wrong_number(resource, false));
        }
        let shown = match written {
            Written::Stored(version) => Shown::Version(version),
            Written::Shown(value) => Shown::Value(value),
        };
        let mut response = response::answer_one(status, resource, format, &shown, self.clock().now());
        response::warn(&mut response, warnings);
        response
    }

    /// Stages 2 to 7 for a new object, which is decoded, defaulted and has its managedFields.
    pub(crate) async fn create_object(
        &self,
        write: &WriteRequest<'_>,
        object: Value,
        notes: &mut Notes,
    ) -> Result<Outcome, ApiError> {
        let resource = write.resource;
        let name = object.str_at("metadata.name").to_owned();
        resource.strategy.check_create(&name)?;
        let mut attributes = write.attributes(Operation::Create, &name, object, None);
        self.admission.admit(&mut attributes, notes).await?;
        let mut object = attributes.object;
        notes.warnings.extend(dedup_owners(&mut object, metadata::AFTER_ADMISSION));
        self.authz.check_escalation(write.grant(None, &object))?;
        let generate =
            object.str_at("metadata.name").is_empty() && !object.str_at("metadata.generateName").is_empty();
        for attempt in 1.. {
            // Only generated names can be retried, so only they need a copy.
            let mut candidate = if generate { object.clone() } else { object.take() };
            let mut warnings = Vec::new();
            let reserved = self.objects.prepare_create(write, &mut candidate, &mut warnings)?;
            if attempt == 1 {
                notes.warnings.append(&mut warnings);
            }
            if !write.name.is_empty() {
                stages::check_may_create(&self.authz, write)?;
            }
            let name = candidate.str_at("metadata.name").to_owned();
            let attributes = write.attributes(Operation::Create, &name, candidate, None);
            self.admission.validate(&attributes, notes).await?;
            let candidate = attributes.object;
            let key = resource.key(write.namespace, &name);
            if write.options.dry_run {
                if let Some(current) = self.objects.storage().get(&resource.storage, &key) {
                    return Err(already_exists(resource, &name, &current));
                }
                return Ok(Outcome { written: Written::shown(candidate), created: true });
            }
            check_resource_version(&candidate)?;
            let candidate = self.conversion.in_storage_version(resource, candidate).await?;
            let mut after = AfterCommit::default();
            match self.objects.put(resource, &key, Expect::Absent, candidate, &mut after) {
                Ok(version) => {
                    reserved.keep();
                    after.service_addresses(resource, &key, None, Some(&version));
                    self.steps.run(after);
                    self.conversion.convert_versions(resource, std::slice::from_ref(&version)).await?;
                    return Ok(Outcome { written: Written::Stored(version), created: true });
                }
                Err(_) if generate && attempt < NAME_TRIES => {}
                Err(_) => {
                    let current = self.objects.storage().get(&resource.storage, &key);
                    return Err(match current {
                        Some(current) => already_exists(resource, &name, &current),
                        None => ApiError::already_exists(resource.qualified(), &name),
                    });
                }
            }
        }
        Err(ApiError::internal("no name could be generated"))
    }

    /// All stages of an update, patch or apply.
    pub(crate) async fn update_object(
        &self,
        write: &WriteRequest<'_>,
        change: &mut Change<'_>,
        notes: &mut Notes,
    ) -> Result<Outcome, ApiError> {
        let key = write.resource.key(write.namespace, write.name);
        let before = notes.warnings.len();
        for _ in 0..UPDATE_TRIES {
            notes.warnings.truncate(before);
            let outcome = match self.objects.storage().get(&write.resource.storage, &key) {
                Some(current) => self.try_update(write, change, &current, notes).await?,
                None => self.try_create(write, change, notes).await?,
            };
            if let Some(outcome) = outcome {
                return Ok(outcome);
            }
        }
        Err(ApiError::conflict(write.resource.qualified(), write.name, MODIFIED))
    }

    /// Creates the object of an update if it does not exist. `None` if it was created concurrently.
    async fn try_create(
        &self,
        write: &WriteRequest<'_>,
        change: &mut Change<'_>,
        notes: &mut Notes,
    ) -> Result<Option<Outcome>, ApiError> {
        if !change.creates() {
            return Err(ApiError::not_found(write.resource.qualified(), write.name));
        }
        let candidate = change.resolve(&Recorder::new(self.clock(), write.resource), write, None)?;
        notes.warnings.extend(candidate.warnings);
        let mut object = candidate.object;
        // The resourceVersion of the request does not apply to a new object.
        object.remove_at("metadata.resourceVersion");
        match self.create_object(write, object, notes).await {
            Err(error) if error.reason == "AlreadyExists" => Ok(None),
            done => done.map(Some),
        }
    }

    /// One attempt to update `current`. `None` on a conflict.
    async fn try_update(
        &self,
        write: &WriteRequest<'_>,
        change: &mut Change<'_>,
        current: &Arc<StoredObject>,
        notes: &mut Notes,
    ) -> Result<Option<Outcome>, ApiError> {
        let WriteRequest { resource, name, .. } = *write;
        self.conversion.convert_versions(resource, std::slice::from_ref(current)).await?;
        let old = response::packed(resource, current);
        let candidate = self.resolve(write, change, &old).await?;
        notes.warnings.extend(candidate.warnings);
        let mut new = if change.is_admitted() {
            let old = candidate.old.as_ref().unwrap_or(&old);
            let mut attributes = change.attributes(write, candidate.object, old);
            self.admission.admit(&mut attributes, notes).await?;
            attributes.object
        } else {
            candidate.object
        };
        notes.warnings.extend(dedup_owners(&mut new, metadata::AFTER_ADMISSION));
        let mut new = change.complete(write, &old, new)?;
        self.authz.check_escalation(write.grant(Some(&old), &new))?;
        stages::check_version_of_update(write, change.replaces(), &old, &mut new)?;
        let reserved = self.objects.prepare_update(write, &mut new, &old, &mut notes.warnings)?;
        apply::keep_times(&old, &mut new);
        if change.is_admitted() {
            new = self.validating_admission(write, change, new, &old, notes).await?;
        }
        let removed = old.has("metadata.deletionTimestamp") && is_removable(resource, &old, &new);
        let mut after = AfterCommit::default();
        if removed {
            // The update removed the last finalizer of a terminating object: remove the object.
            if !write.options.dry_run
                && self.objects.remove(resource, &current.key, current, &mut after).is_err()
            {
                return Ok(None);
            }
            reserved.keep();
            self.steps.run(after);
            return Ok(Some(Outcome { written: Written::shown(new), created: false }));
        }
        if new == old {
            return Ok(Some(Outcome { written: Written::Stored(current.clone()), created: false }));
        }
        if write.options.dry_run {
            return Ok(Some(Outcome { written: Written::shown(new), created: false }));
        }
        let key = resource.key(write.namespace, name);
        let new = self.conversion.in_storage_version(resource, new).await?;
        let Ok(version) = self.objects.put(resource, &key, Expect::At(current.revision), new, &mut after)
        else {
            return Ok(None);
        };
        reserved.keep();
        after.service_addresses(resource, &key, Some(current), Some(&version));
        self.steps.run(after);
        self.conversion.convert_versions(resource, std::slice::from_ref(&version)).await?;
        Ok(Some(Outcome { written: Written::Stored(version), created: false }))
    }

    /// Resolves a change to a live object. Resolving is synchronous: if it needs a conversion webhook, the
    /// webhook is called afterwards and the change is resolved again.
    async fn resolve(
        &self,
        write: &WriteRequest<'_>,
        change: &mut Change<'_>,
        live: &Value,
    ) -> Result<Candidate, ApiError> {
        for _ in 0..CONVERSION_ROUNDS {
            let recorder = Recorder::new(self.clock(), write.resource);
            let candidate = change.resolve(&recorder, write, Some(live));
            let missing = recorder.into_missing();
            if missing.is_empty() {
                return candidate;
            }
            Box::pin(self.conversion.convert_missing(write.resource, missing)).await?;
        }
        change.resolve(&Recorder::new(self.clock(), write.resource), write, Some(live))
    }

    /// The validating phase of an update. Returns the given object.
    async fn validating_admission(
        &self,
        write: &WriteRequest<'_>,
        change: &Change<'_>,
        new: Value,
        old: &Value,
        notes: &mut Notes,
    ) -> Result<Value, ApiError> {
        let Some((new_view, old_view)) = change.views(&new, old) else {
            let attributes = change.attributes(write, new, old);
            self.admission.validate(&attributes, notes).await?;
            return Ok(attributes.object);
        };
        let attributes = change.attributes(write, new_view, &old_view);
        self.admission.validate(&attributes, notes).await?;
        Ok(new)
    }
}

/// The AlreadyExists error; it mentions if the existing object is being deleted.
fn already_exists(resource: &Resource, name: &str, current: &StoredObject) -> ApiError {
    let mut error = ApiError::already_exists(resource.qualified(), name);
    if current.attributes.is_deleting() {
        error.message = format!("object is being deleted: {}", error.message);
    }
    error
}
