//! Who owns which field: `metadata.managedFields` on every write.

use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::{json, time};
use kubewright_structured_merge::{self as apply, Owners, Write, packed};
use serde_json::Value;

use crate::request::Request;
use crate::resources::Resource;
use crate::server::Inner;

/// Who writes, as managedFields names them.
#[derive(Debug, Clone)]
pub(crate) struct FieldManager(String);

impl FieldManager {
    /// Whom a request names, or the program that sent it.
    pub(crate) fn of(request: &Request) -> Self {
        let named = request.query.get("fieldManager").unwrap_or_default();
        Self(apply::manager_name(named, request.header(http::header::USER_AGENT)))
    }

    pub(crate) fn named(name: &str) -> Self {
        Self(name.to_owned())
    }

    pub(crate) fn name(&self) -> &str {
        &self.0
    }
}

impl Inner {
    /// Gives the manager what they changed. Both objects are in the version of `served`, and `new` is packed after
    /// that; `live` is packed already.
    pub(crate) fn track(
        &self,
        served: &Resource,
        subresource: &str,
        manager: &FieldManager,
        live: Option<&Value>,
        new: &mut Value,
    ) {
        self.with_write(served, subresource, manager, |write| apply::update(live, new, write));
        bound_owners(new);
    }

    /// What `apply` calls a write by this endpoint.
    pub(crate) fn with_write<T>(
        &self,
        served: &Resource,
        subresource: &str,
        manager: &FieldManager,
        call: impl FnOnce(&Write<'_>) -> T,
    ) -> T {
        call(&Write {
            manager: &manager.0,
            api_version: &served.gvk().api_version(),
            kind: served.kind(),
            subresource,
            time: &time::format_rfc3339(self.clock.now()),
            versions: served.versions(),
            reset: &served.reset(subresource),
            owners: Owners::Packed,
        })
    }
}

/// What says who owns the fields of a deep object nests deeper than the object. Where it could not be read again,
/// nobody owns anything, as when owners cannot be told at all.
pub(crate) fn bound_owners(object: &mut Value) {
    // It stands in an object in an object.
    if packed::is_deeper_than(object, json::MAX_DEPTH - 2) {
        object.remove_at("metadata.managedFields");
    }
}
