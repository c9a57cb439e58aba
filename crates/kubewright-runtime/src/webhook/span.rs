//! The span of an admission review.
//!
//! Owns its fields. Every log line of a handler has them, so that the handler need not repeat them.

use tracing::{Span, info_span};

use super::AdmissionRequest;

/// The span of one review. The logs have the fields under controller-runtime's names, and `object` as `namespace` and
/// `name`.
pub(super) fn review(path: &str, request: &AdmissionRequest) -> Span {
    let AdmissionRequest { uid, kind, operation, user_info, .. } = request;
    info_span!(
        "admission",
        webhook = path,
        webhook_group = kind.group,
        webhook_version = kind.version,
        webhook_kind = kind.kind,
        operation = operation.as_str(),
        user = user_info.username,
        request_id = uid,
        object = object(&request.namespace, &request.name),
    )
}

/// `namespace/name`, or the name of a cluster-scoped object. The name is empty in a create with `generateName`.
fn object(namespace: &str, name: &str) -> Option<String> {
    match (namespace, name) {
        ("", "") => None,
        ("", name) => Some(name.to_owned()),
        (namespace, name) => Some(format!("{namespace}/{name}")),
    }
}
