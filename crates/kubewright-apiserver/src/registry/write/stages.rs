//! The stages between the two admission phases: resourceVersion, preparation, allocation and validation.

use kubewright_apimachinery::decode::Form;
use kubewright_apimachinery::field::{FieldError, Path, quote};
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::status::ApiError;
use kubewright_apimachinery::time;
use kubewright_apis::registry::{Requester, Stamp};
use serde_json::Value;

use super::metadata::carry_metadata;
use super::{MODIFIED, WriteRequest};
use crate::authn::User;
use crate::authz::{Action, ActionOn, Authz};
use crate::registry::service_ips::Reserved;
use crate::registry::store::ObjectStore;

impl ObjectStore {
    /// Prepares and validates a new object. Generates a missing name.
    pub(crate) fn prepare_create(
        &self,
        write: &WriteRequest<'_>,
        object: &mut Value,
        warnings: &mut Vec<String>,
    ) -> Result<Reserved, ApiError> {
        let resource = write.resource;
        self.fill_metadata(write, object);
        resource.strategy.prepare_for_create(object);
        self.stamp(write, object, None);
        let reserved = self.service_ips.allocate(resource, object, None)?;
        let form = resource.strategy.complete(object)?;
        let verdict = resource.strategy.validate(object);
        warnings.extend(verdict.warnings);
        if !verdict.errors.is_empty() {
            let name = object.str_at("metadata.name");
            return Err(ApiError::invalid(resource.strategy.kind_in_errors(object), name, &verdict.errors));
        }
        if form == Form::Complete {
            resource.strategy.canonicalize(object)?;
        }
        warnings.extend(resource.strategy.warnings(object, None));
        (resource.rules().finish_create)(object);
        Ok(reserved)
    }

    /// Prepares and validates an object that replaces `old`.
    pub(super) fn prepare_update(
        &self,
        write: &WriteRequest<'_>,
        new: &mut Value,
        old: &Value,
        warnings: &mut Vec<String>,
    ) -> Result<Reserved, ApiError> {
        let WriteRequest { resource, name, subresource, .. } = *write;
        carry_metadata(new, old);
        resource.strategy.prepare_for_update(subresource, new, old);
        self.stamp(write, new, Some(old));
        let reserved = self.service_ips.allocate(resource, new, Some(old))?;
        let form = resource.strategy.complete(new)?;
        let verdict = resource.strategy.validate_update(subresource, new, old);
        warnings.extend(verdict.warnings);
        if !verdict.errors.is_empty() {
            return Err(ApiError::invalid(resource.strategy.kind_in_errors(new), name, &verdict.errors));
        }
        if form == Form::Complete {
            resource.strategy.canonicalize(new)?;
        }
        // Upstream's subresource strategies have no warnings.
        if subresource.is_empty() {
            warnings.extend(resource.strategy.warnings(new, Some(old)));
        }
        Ok(reserved)
    }

    /// Sets the server-owned metadata of a new object.
    fn fill_metadata(&self, write: &WriteRequest<'_>, object: &mut Value) {
        object.set_at("metadata.uid", self.ids.uid());
        object.set_at("metadata.creationTimestamp", time::format_rfc3339(self.clock.now()));
        for absent in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
            object.object_mut("metadata").remove(absent);
        }
        if write.resource.namespaced() {
            object.set_at("metadata.namespace", write.namespace);
        }
        if object.str_at("metadata.name").is_empty() && !object.str_at("metadata.generateName").is_empty() {
            let name = self.ids.name(object.str_at("metadata.generateName"));
            object.set_at("metadata.name", name);
        }
    }

    /// Sets the times and the user that upstream's strategies set: the rules of kinds have neither.
    fn stamp(&self, write: &WriteRequest<'_>, new: &mut Value, old: Option<&Value>) {
        let User { name, uid, groups, extra } = write.user;
        let stamp = Stamp { now: self.clock.now(), user: Requester { name, uid, groups, extra } };
        (write.resource.rules().stamp)(new, old, &stamp);
    }
}

/// Checks the permission to create, for an update or patch that creates its object.
pub(super) fn check_may_create(authz: &Authz, write: &WriteRequest<'_>) -> Result<(), ApiError> {
    let on = ActionOn::Resource {
        group: write.resource.group(),
        resource: write.resource.plural(),
        namespace: write.namespace_of(write.name),
        name: write.name,
    };
    authz.check(write.user, Action { verb: "create", on })
}

/// The resourceVersion in a body, parsed as by upstream's storage layer; 0 if missing.
fn resource_version(object: &Value) -> Result<u64, ApiError> {
    let text = object.str_at("metadata.resourceVersion");
    if text.is_empty() {
        return Ok(0);
    }
    text.parse().map_err(|_| {
        let range = text.bytes().all(|byte| byte.is_ascii_digit());
        let why = if range { "value out of range" } else { "invalid syntax" };
        ApiError::new(500, "", format!("strconv.ParseUint: parsing {}: {why}", quote(text)))
    })
}

/// Rejects a resourceVersion on create. An invalid one counts as missing.
pub(super) fn check_resource_version(object: &Value) -> Result<(), ApiError> {
    if resource_version(object).unwrap_or_default() == 0 {
        return Ok(());
    }
    Err(ApiError::new(500, "", "resourceVersion should not be set on objects to be created"))
}

/// Checks that the resourceVersion of an update matches the live object. A missing one matches if the kind
/// allows unconditional updates.
pub(super) fn check_version_of_update(
    write: &WriteRequest<'_>,
    replaces: bool,
    old: &Value,
    new: &mut Value,
) -> Result<(), ApiError> {
    let WriteRequest { resource, name, .. } = *write;
    let given = resource_version(new)?;
    if given == 0 {
        if replaces && !resource.rules().unconditional_update {
            let at = Path::new("metadata").child("resourceVersion");
            let error = FieldError::invalid_printed(&at, "0", "must be specified for an update");
            return Err(ApiError::invalid(resource.qualified(), name, &vec![error]));
        }
    } else if Ok(given) != resource_version(old) {
        return Err(ApiError::conflict(resource.qualified(), name, MODIFIED));
    }
    new.set_at("metadata.resourceVersion", old.at("metadata.resourceVersion").clone());
    Ok(())
}
