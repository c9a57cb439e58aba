//! Field managers: maintains `metadata.managedFields` on every write.

use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::{json, time};
use kubewright_structured_merge::{self as apply, Owners, Write, packed};
use serde_json::Value;

use crate::registry::conversion::Recorder;
use crate::request::Request;

/// The field manager of a write.
#[derive(Debug, Clone)]
pub(crate) struct FieldManager(String);

impl FieldManager {
    /// The request's `fieldManager`, or the default from its user agent.
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

    /// Records changed fields for the field manager. Both objects are in the version of the resource. `live` is
    /// packed; `new` is packed by this call.
    pub(crate) fn track(
        &self,
        recorder: &Recorder<'_>,
        subresource: &str,
        live: Option<&Value>,
        new: &mut Value,
    ) {
        self.with_write(recorder, subresource, |write| apply::update(live, new, write));
        bound_owners(new);
    }

    /// Calls `call` with the parameters of a write through this endpoint.
    pub(crate) fn with_write<T>(
        &self,
        recorder: &Recorder<'_>,
        subresource: &str,
        call: impl FnOnce(&Write<'_>) -> T,
    ) -> T {
        let Recorder { clock, resource, .. } = recorder;
        call(&Write {
            manager: &self.0,
            api_version: &resource.gvk().api_version(),
            kind: resource.kind(),
            subresource,
            time: &time::format_rfc3339(clock.now()),
            versions: recorder,
            reset: &resource.strategy.reset_fields(subresource),
            owners: Owners::Packed,
        })
    }
}

/// Removes managedFields that are nested too deeply to be parsed again. They can be deeper than the object
/// itself.
pub(crate) fn bound_owners(object: &mut Value) {
    // managedFields are two levels below the top.
    if packed::is_deeper_than(object, json::MAX_DEPTH - 2) {
        object.remove_at("metadata.managedFields");
    }
}
