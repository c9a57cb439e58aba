//! The change of a request, and the resulting object.
//!
//! A [`Change`] is resolved against the live object as often as needed: after a conflict it is resolved
//! again. Resolving has no side effects.

use bytes::Bytes;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::status::ApiError;
use serde_json::Value;

use super::metadata::dedup_owners;
use super::{WriteRequest, check_name, check_namespace};
use crate::admission::{Attributes, Operation};
use crate::encoding::request_body::Media;
use crate::endpoints::patch::{Apply, PatchObject};
use crate::registry::conversion::Recorder;
use crate::registry::resource::Resource;
use crate::registry::subresources::Bind;
use crate::registry::subresources::scale::{SCALE, Scale};

/// A change to one object.
pub(crate) enum Change<'a> {
    /// PUT: the body replaces the object.
    Replace(Replace<'a>),
    /// PATCH, other than apply.
    Patch(PatchObject<'a>),
    /// Server-side apply.
    Apply(Apply),
    /// Binds a pod to a node.
    Bind(Bind<'a>),
    /// Changes the replicas through the scale subresource.
    Scale(Scale<'a>),
}

/// The result of resolving a change.
pub(crate) struct Candidate {
    /// The object that admission sees, with managedFields.
    pub(crate) object: Value,
    /// The live object as admission sees it, if it is a view such as a Scale.
    pub(crate) old: Option<Value>,
    /// Warnings of strict decoding.
    pub(crate) warnings: Vec<String>,
}

impl Candidate {
    pub(crate) fn new(object: Value, warnings: Vec<String>) -> Self {
        Self { object, old: None, warnings }
    }
}

impl<'c> Change<'c> {
    /// The new object. `live` is packed and in the version of the resource; `None` if the object does not
    /// exist.
    pub(crate) fn resolve(
        &mut self,
        recorder: &Recorder<'_>,
        write: &WriteRequest<'_>,
        live: Option<&Value>,
    ) -> Result<Candidate, ApiError> {
        match self {
            Self::Replace(change) => change.resolve(recorder, write, live),
            Self::Patch(change) => change.resolve(recorder, write, live),
            Self::Apply(change) => change.resolve(recorder, write, live),
            Self::Bind(change) => change.resolve(write, live),
            Self::Scale(change) => change.resolve(recorder, write, live),
        }
    }

    /// Applies the admitted view to the live object, if admission saw a view such as a Scale.
    pub(crate) fn complete(
        &self,
        write: &WriteRequest<'_>,
        live: &Value,
        admitted: Value,
    ) -> Result<Value, ApiError> {
        match self {
            Self::Scale(change) => change.complete(write, live, &admitted),
            _ => Ok(admitted),
        }
    }

    /// Whether a missing object is created.
    pub(crate) fn creates(&self) -> bool {
        match self {
            Self::Replace(change) => change.creates,
            Self::Apply(change) => change.creates,
            Self::Patch(_) | Self::Bind(_) | Self::Scale(_) => false,
        }
    }

    /// Whether the client sent the whole object, so that its resourceVersion and UID are preconditions.
    pub(crate) fn replaces(&self) -> bool {
        match self {
            Self::Replace(_) => true,
            Self::Scale(change) => change.replaces(),
            Self::Patch(_) | Self::Apply(_) | Self::Bind(_) => false,
        }
    }

    /// Whether admission sees the change. For a Binding it sees the Binding instead.
    pub(crate) fn is_admitted(&self) -> bool {
        !matches!(self, Self::Bind(_))
    }

    /// The new and old view for validating admission, if it sees a view such as a Scale.
    pub(crate) fn views(&self, new: &Value, old: &Value) -> Option<(Value, Value)> {
        match self {
            Self::Scale(change) => Some((change.view(new), change.view(old))),
            _ => None,
        }
    }

    /// The admission attributes of an update.
    pub(crate) fn attributes<'b>(
        &'b self,
        write: &WriteRequest<'b>,
        object: Value,
        old: &'b Value,
    ) -> Attributes<'b>
    where
        'c: 'b,
    {
        let mut attributes = write.attributes(Operation::Update, write.name, object, Some(old));
        if let Self::Scale(change) = self {
            (attributes.kind, attributes.strategy) = (SCALE, &change.strategy);
        }
        attributes
    }
}

/// A PUT.
pub(crate) struct Replace<'a> {
    media: Media,
    body: &'a Bytes,
    /// The decoded body, until it is used. A retry decodes it again: retries are rare, and a copy is
    /// expensive.
    decoded: Option<(Value, Vec<String>)>,
    creates: bool,
}

impl<'a> Replace<'a> {
    pub(crate) fn read(
        write: &WriteRequest<'_>,
        media: Media,
        body: &'a Bytes,
        creates: bool,
    ) -> Result<Self, ApiError> {
        let decoded = Some(Self::decode(write, media, body)?);
        Ok(Self { media, body, decoded, creates })
    }

    fn decode(
        write: &WriteRequest<'_>,
        media: Media,
        body: &Bytes,
    ) -> Result<(Value, Vec<String>), ApiError> {
        let WriteRequest { resource, namespace, name, options, .. } = *write;
        let (mut object, mut warnings) = resource.strategy.decode(media, body, options.field_validation)?;
        check_namespace(resource, namespace, &mut object)?;
        check_name(&object, name)?;
        warnings.extend(dedup_owners(&mut object, "contains duplicate entries"));
        Ok((object, warnings))
    }

    fn resolve(
        &mut self,
        recorder: &Recorder<'_>,
        write: &WriteRequest<'_>,
        live: Option<&Value>,
    ) -> Result<Candidate, ApiError> {
        let (mut object, warnings) = match self.decoded.take() {
            Some(decoded) => decoded,
            None => Self::decode(write, self.media, self.body)?,
        };
        check_uid(write, live.unwrap_or(&Value::Null), &object)?;
        write.manager.track(recorder, write.subresource, live, &mut object);
        Ok(Candidate::new(object, warnings))
    }
}

/// Checks the UID in the body, which is a precondition.
pub(crate) fn check_uid(write: &WriteRequest<'_>, live: &Value, object: &Value) -> Result<(), ApiError> {
    let (given, current) = (object.str_at("metadata.uid"), live.str_at("metadata.uid"));
    if given.is_empty() || given == current {
        return Ok(());
    }
    Err(precondition_failed(write, "UID", given, current))
}

/// Upstream's error for a failed precondition.
pub(crate) fn precondition_failed(
    write: &WriteRequest<'_>,
    what: &str,
    given: &str,
    current: &str,
) -> ApiError {
    let key = registry_key(write.resource, &write.resource.key(write.namespace, write.name));
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition \
         failed: {what} in precondition: {given}, {what} in object meta: {current}"
    );
    ApiError::conflict(write.resource.qualified(), write.name, &why)
}

/// kube-apiserver's key in etcd, for error messages.
fn registry_key(resource: &Resource, key: &str) -> String {
    let resource = resource.rules().etcd_name.unwrap_or(resource.plural());
    format!("/registry/{resource}/{key}")
}
