//! Audit: a callback for every authenticated request, see [`Options::audit`](crate::Options::audit).
//!
//! An [`Audit`] gets each request with the status of its response. It cannot change either.

use http::header;

use crate::request::{Request, Target};

/// A request and the status of its response.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Audited {
    /// The effective user, after impersonation.
    pub user: String,
    /// Verb, as RBAC names it.
    pub verb: String,
    /// API group; empty for the core group.
    pub group: String,
    /// Plural, with a subresource as `pods/log`; empty for a non-resource path.
    pub resource: String,
    /// Namespace; empty for none.
    pub namespace: String,
    /// Name; empty for none.
    pub name: String,
    /// Whether the request is a server-side apply.
    pub applies: bool,
    /// Status of the response.
    pub code: u16,
}

/// Receives the audited requests of a server.
pub trait Audit: Send + Sync + 'static {
    /// Called after the response to a request, and when a watch starts. Must not block.
    fn record(&self, request: Audited);
}

impl Audited {
    pub(crate) fn new(request: &Request, code: u16) -> Self {
        let content_type = request.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let mut audited = Self {
            user: request.user.name.clone(),
            verb: request.verb().to_owned(),
            group: String::new(),
            resource: String::new(),
            namespace: String::new(),
            name: String::new(),
            applies: content_type.is_some_and(|it| it.contains("apply-patch")),
            code,
        };
        if let Target::Resource(path) = &request.target {
            audited.group.clone_from(&path.group);
            audited.resource.clone_from(&path.resource);
            if !path.subresource.is_empty() {
                audited.resource = format!("{}/{}", path.resource, path.subresource);
            }
            audited.namespace.clone_from(&path.namespace);
            audited.name.clone_from(&path.name);
        }
        audited
    }
}
