//! Create and update: the way of an object from a request into the store.
//!
//! Every write of every kind goes through [`Inner::create_object`] or [`Inner::update_object`]: decode,
//! default, admit, prepare, validate, commit. Nothing else puts objects into the store but garbage collection.

mod metadata;

use std::sync::Arc;

use bytes::Bytes;
use http::{Response, StatusCode};
use kubewright_apimachinery::apply::packed;
use kubewright_apimachinery::decode::Form;
use kubewright_apimachinery::field::{FieldError, Path};
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::status::{ApiError, Qualified};
use kubewright_apimachinery::{apply, convert, selectable, time};
use serde_json::Value;

use crate::body::Body;
use crate::input;
use crate::kinds;
use crate::options::{WriteKind, WriteOptions};
use crate::output::{self, Shown};
use crate::quota::Charge;
use crate::request::Request;
use crate::resources::Served;
use crate::server::Inner;
use crate::storage::{Attributes, Change, Expect, Version, Write};
use crate::track::Author;
use metadata::{carry_metadata, dedup_owners, is_released};
pub(crate) use metadata::{check_name, check_namespace};

/// How often a generated name is drawn anew when it is taken.
const NAME_TRIES: usize = 8;
/// How often an update without a resourceVersion is tried again when another came first.
const UPDATE_TRIES: usize = 32;

/// What a write left behind.
pub(crate) enum Written {
    /// In the store.
    Stored(Arc<Version>),
    /// Only shown: a dry run, or an object that went away with this write.
    Shown(Value),
}

impl Written {
    /// Of an object that may be packed.
    pub(crate) fn shown(mut object: Value) -> Self {
        packed::unpack(&mut object);
        Self::Shown(object)
    }

    pub(crate) fn object(&self, served: &Served) -> Value {
        match self {
            Self::Stored(version) => output::object(served, version),
            Self::Shown(value) => value.clone(),
        }
    }
}

/// What became of a write.
pub(crate) struct Outcome {
    pub(crate) written: Written,
    pub(crate) created: bool,
}

/// A change to an object that may be there.
pub(crate) struct Update<'a> {
    pub(crate) served: &'a Served,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    /// `status` and others, or empty.
    pub(crate) subresource: &'a str,
    pub(crate) dry_run: bool,
    /// A missing object is created.
    pub(crate) create: bool,
    /// The new object replaces the old one whatever its version (PUT), or was made from it (PATCH).
    pub(crate) replaces: bool,
    /// Who gets what changes; nobody, if the new object says already who owns what.
    pub(crate) author: Option<&'a Author>,
}

impl Inner {
    /// POST to a collection.
    pub(crate) fn create(
        &self,
        request: &Request,
        served: &Served,
        namespace: &str,
        body: &Bytes,
    ) -> Result<Response<Body>, ApiError> {
        let format = output::negotiate(request)?;
        let options = WriteOptions::read(&request.query, WriteKind::Create)?;
        let media = input::media(request)?;
        let (mut object, mut warnings) = served.decode(media, body, options.field_validation)?;
        check_namespace(served, namespace, &mut object)?;
        sign_request(served, request, &mut object);
        warnings.extend(dedup_owners(&mut object, "contains duplicate entries"));
        self.track(served, "", &Author::of(request), None, &mut object);
        let outcome = self
            .check_create(request, served, namespace, &object)
            .and_then(|()| self.create_object(served, namespace, object, options.dry_run, &mut warnings));
        Ok(self.answer_write(served, format, outcome, StatusCode::CREATED, &warnings))
    }

    /// PUT of an object, or of one of its subresources.
    pub(crate) fn update(
        &self,
        request: &Request,
        served: &Served,
        namespace: &str,
        name: &str,
        subresource: &str,
        body: &Bytes,
    ) -> Result<Response<Body>, ApiError> {
        let format = output::negotiate(request)?;
        let options = WriteOptions::read(&request.query, WriteKind::Update)?;
        let media = input::media(request)?;
        let read = || {
            let (mut object, mut warnings) = served.decode(media, body, options.field_validation)?;
            check_namespace(served, namespace, &mut object)?;
            check_name(&object, name)?;
            warnings.extend(dedup_owners(&mut object, "contains duplicate entries"));
            Ok((object, warnings))
        };
        let (object, mut warnings) = read()?;
        let author = Author::of(request);
        let update = Update {
            served,
            namespace,
            name,
            subresource,
            dry_run: options.dry_run,
            create: subresource.is_empty() && kinds::creates_on_update(served.gvk()),
            replaces: true,
            author: Some(&author),
        };
        let mut object = Some(object);
        // Read again for another try: that is rare, and a copy for it would not be cheap.
        let modify = |old: &Value| {
            let object = object.take().map_or_else(|| Ok(read()?.0), Ok)?;
            self.check_change(request, served, namespace, old, &object).map(|()| object)
        };
        let outcome = self.update_object(&update, &mut warnings, modify);
        Ok(self.answer_write(served, format, outcome, StatusCode::OK, &warnings))
    }

    /// The answer to a write that went well or not. Warnings go with both.
    pub(crate) fn answer_write(
        &self,
        served: &Served,
        format: output::Format,
        outcome: Result<Outcome, ApiError>,
        status: StatusCode,
        warnings: &[String],
    ) -> Response<Body> {
        match outcome {
            Ok(outcome) => {
                let status = if outcome.created { StatusCode::CREATED } else { status };
                self.written(served, format, &outcome.written, status, warnings)
            }
            Err(error) => {
                let mut response = output::failure(&error);
                output::warn(&mut response, warnings);
                response
            }
        }
    }

    /// The answer to a write.
    pub(crate) fn written(
        &self,
        served: &Served,
        format: output::Format,
        written: &Written,
        status: StatusCode,
        warnings: &[String],
    ) -> Response<Body> {
        let shown = match written {
            Written::Stored(version) => Shown::Version(version),
            Written::Shown(value) => Shown::Value(value),
        };
        let bytes = output::one(served, format, &shown, self.clock.now());
        let mut response = output::answer(status, format, bytes);
        output::warn(&mut response, warnings);
        response
    }

    /// Puts a decoded and defaulted object, in the version of `served`, into the store.
    pub(crate) fn create_object(
        &self,
        served: &Served,
        namespace: &str,
        object: Value,
        dry_run: bool,
        warnings: &mut Vec<String>,
    ) -> Result<Outcome, ApiError> {
        let generate =
            object.str_at("metadata.name").is_empty() && !object.str_at("metadata.generateName").is_empty();
        let mut wanted = object;
        for attempt in 0.. {
            // Only a generated name may need another try.
            let mut object = if generate { wanted.clone() } else { wanted.take() };
            self.fill_metadata(served, namespace, &mut object);
            if generate {
                let prefix = object.str_at("metadata.generateName").to_owned();
                object.set_at("metadata.name", self.ids.name(&prefix));
            }
            self.admit_create(served, namespace, &mut object)?;
            served.prepare_create(&mut object);
            self.stamp(served, &mut object, None);
            let name = object.str_at("metadata.name").to_owned();
            let reserved = self.allocate(served, &mut object, None)?;
            let form = served.complete(&mut object)?;
            let verdict = served.validate_create(&object);
            if attempt == 0 {
                warnings.extend(verdict.warnings);
            }
            if !verdict.errors.is_empty() {
                return Err(ApiError::invalid(invalid_kind(served, &object), &name, &verdict.errors));
            }
            if form == Form::Complete {
                served.normalise(&mut object)?;
            }
            if object.has("metadata.resourceVersion") {
                let why = "resourceVersion should not be set on objects to be created";
                return Err(match served.custom() {
                    Some(_) => ApiError::new(500, "", why),
                    None => ApiError::internal(why),
                });
            }
            if attempt == 0 {
                warnings.extend(served.warnings(&object, None));
                self.charge(&Charge { served, namespace, old: None, new: &object, dry_run })?;
            }
            if dry_run {
                let taken = self.store.get(&served.storage, &served.key(namespace, &name)).is_some();
                if taken {
                    return Err(ApiError::already_exists(served.qualified(), &name));
                }
                return Ok(Outcome { written: Written::shown(object), created: true });
            }
            let key = served.key(namespace, &name);
            match self.put(served, &key, Expect::Absent, object) {
                Ok(version) => {
                    reserved.keep();
                    self.follow_addresses(served, &key, None, Some(&version));
                    self.after_write(served, &version);
                    return Ok(Outcome { written: Written::Stored(version), created: true });
                }
                Err(_) if generate && attempt + 1 < NAME_TRIES => {}
                Err(_) => return Err(ApiError::already_exists(served.qualified(), &name)),
            }
        }
        Err(ApiError::internal("no name could be generated"))
    }

    /// Changes an object. `modify` is given the object in the version of `served`, packed, and answers with the
    /// new one.
    pub(crate) fn update_object(
        &self,
        update: &Update<'_>,
        warnings: &mut Vec<String>,
        mut modify: impl FnMut(&Value) -> Result<Value, ApiError>,
    ) -> Result<Outcome, ApiError> {
        let Update { served, namespace, name, .. } = *update;
        let key = served.key(namespace, name);
        for _ in 0..UPDATE_TRIES {
            let Some(current) = self.store.get(&served.storage, &key) else {
                if !update.create {
                    return Err(ApiError::not_found(served.qualified(), name));
                }
                let mut object = modify(&Value::Null)?;
                if let Some(author) = update.author {
                    self.track(served, update.subresource, author, None, &mut object);
                }
                if object.has("metadata.uid") {
                    let why = format!(
                        "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: \
                         Precondition failed: UID in precondition: {}, UID in object meta: ",
                        registry_key(served, &key),
                        object.str_at("metadata.uid")
                    );
                    return Err(ApiError::conflict(served.qualified(), name, &why));
                }
                // Nothing can be at that version.
                object.remove_at("metadata.resourceVersion");
                let told = warnings.len();
                match self.create_object(served, namespace, object, update.dry_run, warnings) {
                    // Somebody else was faster, so this is an update.
                    Err(error) if error.reason == "AlreadyExists" => {
                        warnings.truncate(told);
                        continue;
                    }
                    done => return done,
                }
            };
            if let Some(outcome) = self.try_update(update, &key, &current, warnings, &mut modify)? {
                return Ok(outcome);
            }
        }
        Err(ApiError::conflict(served.qualified(), name, MODIFIED))
    }

    /// One try; nothing if another write came first.
    fn try_update(
        &self,
        update: &Update<'_>,
        key: &str,
        current: &Arc<Version>,
        warnings: &mut Vec<String>,
        modify: &mut impl FnMut(&Value) -> Result<Value, ApiError>,
    ) -> Result<Option<Outcome>, ApiError> {
        let Update { served, namespace, name, subresource, .. } = *update;
        let old = output::packed(served, current);
        let mut new = modify(&old)?;
        if let Some(author) = update.author {
            self.track(served, subresource, author, Some(&old), &mut new);
        }
        check_preconditions(update, key, &old, &mut new)?;
        carry_metadata(&mut new, &old);
        self.admit_update(served, namespace, &mut new, &old)?;
        warnings
            .extend(dedup_owners(&mut new, "contains duplicate entries after mutating admission happens"));
        served.prepare_update(subresource, &mut new, &old);
        self.stamp(served, &mut new, Some(&old));
        let reserved = self.allocate(served, &mut new, Some(&old))?;
        let form = served.complete(&mut new)?;
        let verdict = served.validate_update(subresource, &new, &old);
        warnings.extend(verdict.warnings);
        if !verdict.errors.is_empty() {
            return Err(ApiError::invalid(invalid_kind(served, &new), name, &verdict.errors));
        }
        if form == Form::Complete {
            served.normalise(&mut new)?;
        }
        // The strategies of subresources warn of nothing.
        if subresource.is_empty() {
            warnings.extend(served.warnings(&new, Some(&old)));
        }
        apply::keep_times(&old, &mut new);
        if is_released(&new, &old) {
            // The last finalizer is gone: the update is the deletion.
            if !update.dry_run && self.remove(served, key, current).is_err() {
                return Ok(None);
            }
            reserved.keep();
            return Ok(Some(Outcome { written: Written::shown(new), created: false }));
        }
        if new == old {
            return Ok(Some(Outcome { written: Written::Stored(current.clone()), created: false }));
        }
        if update.dry_run {
            return Ok(Some(Outcome { written: Written::shown(new), created: false }));
        }
        if subresource.is_empty() && matches!(served.kind(), "Service" | "PersistentVolumeClaim") {
            self.charge(&Charge { served, namespace, old: Some(&old), new: &new, dry_run: false })?;
        }
        match self.put(served, key, Expect::At(current.revision), new) {
            Ok(version) => {
                reserved.keep();
                self.follow_addresses(served, key, Some(current), Some(&version));
                self.after_write(served, &version);
                Ok(Some(Outcome { written: Written::Stored(version), created: false }))
            }
            Err(_) => Ok(None),
        }
    }

    /// What the server sets on every object that is created.
    fn fill_metadata(&self, served: &Served, namespace: &str, object: &mut Value) {
        object.set_at("metadata.uid", self.ids.uid());
        object.set_at("metadata.creationTimestamp", time::format_rfc3339(self.clock.now()));
        for absent in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
            object.object_mut("metadata").remove(absent);
        }
        if served.namespaced() {
            object.set_at("metadata.namespace", namespace);
        }
    }

    /// Sets the times that upstream's strategies set: the rules themselves know no clock.
    fn stamp(&self, served: &Served, new: &mut Value, old: Option<&Value>) {
        let now = time::format_rfc3339(self.clock.now());
        match (served.group(), served.kind()) {
            ("", "PersistentVolume") => {
                let phase = |object: &Value| object.str_at("status.phase").to_owned();
                let time = "status.lastPhaseTransitionTime";
                if old.is_none_or(|old| phase(old) != phase(new) && old.at(time) == new.at(time)) {
                    new.set_at(time, now);
                }
            }
            ("", "Pod") | ("apiregistration.k8s.io", "APIService") if old.is_none() => {
                for condition in new.list_mut("status.conditions").into_iter().flatten() {
                    condition.default_at("lastTransitionTime", now.as_str());
                }
            }
            ("certificates.k8s.io", "CertificateSigningRequest") => {
                for condition in new.list_mut("status.conditions").into_iter().flatten() {
                    condition.default_at("lastUpdateTime", now.as_str());
                    condition.default_at("lastTransitionTime", now.as_str());
                }
            }
            _ => {}
        }
    }

    /// Commits an object, given in the version of `served`.
    pub(crate) fn put(
        &self,
        served: &Served,
        key: &str,
        expect: Expect,
        object: Value,
    ) -> Result<Arc<Version>, crate::storage::Conflict> {
        let (object, attributes) = stored_form(served, object);
        self.commit(served, key, expect, Change::Put { object, attributes })
    }

    /// Commits the deletion of an object. Who watches is shown how it was stored last.
    pub(crate) fn remove(
        &self,
        served: &Served,
        key: &str,
        current: &Arc<Version>,
    ) -> Result<Arc<Version>, crate::storage::Conflict> {
        let change = Change::Delete { object: current.object(), attributes: current.attributes.clone() };
        let version = self.commit(served, key, Expect::At(current.revision), change)?;
        self.follow_addresses(served, key, Some(current), None);
        self.after_delete(served, &version);
        Ok(version)
    }

    fn commit(
        &self,
        served: &Served,
        key: &str,
        expect: Expect,
        change: Change,
    ) -> Result<Arc<Version>, crate::storage::Conflict> {
        let write = Write { resource: served.storage.clone(), key: Arc::from(key), expect, change };
        let mut versions = self.store.commit(vec![write])?;
        Ok(versions.remove(0))
    }
}

/// What a new object says of the version that it was made from must hold.
fn check_preconditions(update: &Update<'_>, key: &str, old: &Value, new: &mut Value) -> Result<(), ApiError> {
    let Update { served, name, .. } = *update;
    let (given, current) = (new.str_at("metadata.uid").to_owned(), old.str_at("metadata.uid"));
    if update.replaces && !given.is_empty() && given != current {
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: \
             Precondition failed: UID in precondition: {given}, UID in object meta: {current}",
            registry_key(served, key)
        );
        return Err(ApiError::conflict(served.qualified(), name, &why));
    }
    let given = new.str_at("metadata.resourceVersion").to_owned();
    if given.is_empty() || given == "0" {
        let unconditional = served.custom().is_none() && kinds::updates_unconditionally(served.gvk());
        if update.replaces && !unconditional {
            let at = Path::new("metadata").child("resourceVersion");
            let error = FieldError::invalid_printed(&at, "0", "must be specified for an update");
            return Err(ApiError::invalid(served.qualified(), name, &vec![error]));
        }
        let revision = old.at("metadata.resourceVersion").clone();
        new.set_at("metadata.resourceVersion", revision);
    } else if given != old.str_at("metadata.resourceVersion") {
        crate::options::parse_revision(&given)
            .map_err(|error| ApiError::bad_request(format!("invalid resourceVersion: {}", error.message)))?;
        return Err(ApiError::conflict(served.qualified(), name, MODIFIED));
    }
    Ok(())
}

/// The kind as errors name it: both views of an Event are the core one's, and a custom resource says itself.
fn invalid_kind<'a>(served: &'a Served, object: &'a Value) -> Qualified<'a> {
    if served.custom().is_some() {
        return Gvk::of(object).qualified_kind();
    }
    if served.kind() == "Event" { served.stored().qualified_kind() } else { served.gvk().qualified_kind() }
}

/// Upstream's words for a write that came second.
pub(crate) const MODIFIED: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

/// The key that a real server would use in etcd; it shows in messages.
fn registry_key(served: &Served, key: &str) -> String {
    let resource = match (served.group(), served.plural()) {
        ("", "services") => "services/specs",
        ("", "endpoints") => "services/endpoints",
        ("", "replicationcontrollers") => "controllers",
        ("", "nodes") => "minions",
        (_, "ingresses") => "ingress",
        (_, plural) => plural,
    };
    format!("/registry/{resource}/{key}")
}

/// An object as the store keeps it: in the stored version, without `apiVersion` and `kind`. Custom ones keep
/// these, since their stored version may change.
pub(crate) fn stored_form(served: &Served, mut object: Value) -> (Value, Attributes) {
    if let Some(custom) = served.custom() {
        let object = custom.to_stored(object);
        let attributes = attributes(None, &object);
        return (object, attributes);
    }
    if !served.shows_stored() {
        object = convert::convert(object, served.stored());
    }
    let attributes = attributes(Some(served), &object);
    if let Some(object) = object.as_object_mut() {
        object.remove("apiVersion");
        object.remove("kind");
    }
    (object, attributes)
}

/// What can be searched for in an object of the stored version. Fields are those of built-in kinds only.
pub(crate) fn attributes(served: Option<&Served>, object: &Value) -> Attributes {
    let labels = object.map_at("metadata.labels").iter();
    Attributes {
        uid: object.str_at("metadata.uid").into(),
        labels: labels.map(|(k, v)| (k.as_str().into(), v.as_str().unwrap_or_default().into())).collect(),
        fields: served
            .into_iter()
            .flat_map(|served| selectable::fields(served.stored(), object))
            .filter(|(field, _)| !field.starts_with("metadata."))
            .map(|(field, value)| (field, value.into_boxed_str()))
            .collect(),
        deleting: object.has("metadata.deletionTimestamp"),
        owners: object
            .list_at("metadata.ownerReferences")
            .iter()
            .map(|owner| owner.str_at("uid").into())
            .collect(),
    }
}

/// A request for a certificate says who made it, whatever its author says.
fn sign_request(served: &Served, request: &Request, object: &mut Value) {
    if served.kind() != "CertificateSigningRequest" {
        return;
    }
    let user = &request.user;
    object.set_at("spec.username", user.name.as_str());
    object.set_at("spec.uid", user.uid.as_str());
    object.set_at("spec.groups", user.groups.clone());
    object.set_at("spec.extra", serde_json::json!(user.extra));
}
