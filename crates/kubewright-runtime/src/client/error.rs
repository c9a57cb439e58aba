//! Errors of the client.

use kube::core::Status;
use kubewright_apimachinery::permission::Permission;

use crate::Gvk;

/// An error of a request to the API server or of a cache read.
///
/// Most callers use predicates instead of matching: [`Error::is_not_found`], [`Error::is_conflict`] and so on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server returned an error.
    #[error("{}", status_message(.0))]
    Status(Box<Status>),
    /// The server could not be reached, or the connection broke.
    #[error("no response from the API server")]
    Send(#[source] kube::Error),
    /// The server did not respond in time.
    #[error("no response from the API server within {0:?}")]
    Timeout(std::time::Duration),
    /// The response does not match the Rust type.
    #[error("failed to decode {what}")]
    Decode {
        /// What was decoded, such as `Deployment default/web`.
        what: String,
        /// The error of the decoder.
        #[source]
        source: serde_json::Error,
    },
    /// The object could not be serialized as JSON.
    #[error("failed to encode {what} as JSON")]
    Encode {
        /// What was encoded.
        what: String,
        /// The error of the encoder.
        #[source]
        source: serde_json::Error,
    },
    /// The server does not serve the kind.
    #[error("the API server does not serve {0}: install its CRD, or correct the name")]
    UnknownKind(Gvk),
    /// The object has no apiVersion and kind.
    #[error("the object has no apiVersion and kind: a dynamic object needs both")]
    Kindless,
    /// The object has no name.
    #[error("the {0} has no name: set metadata.name")]
    Nameless(String),
    /// The object of a namespaced kind has no namespace.
    #[error("the {kind} {name:?} has no namespace: set metadata.namespace, or use Client::namespaced")]
    NamespaceMissing {
        /// The kind.
        kind: String,
        /// The name.
        name: String,
    },
    /// A function that changes an object changed its name or namespace.
    #[error("the object was renamed from {from} to {to}: name and namespace must not change")]
    Moved {
        /// The key before.
        from: String,
        /// The key after.
        to: String,
    },
    /// The client is restricted to another namespace.
    #[error("the {kind} {name:?} is in namespace {namespace:?}, but this client is restricted to {client:?}")]
    OtherNamespace {
        /// The kind.
        kind: String,
        /// The name.
        name: String,
        /// The namespace of the object.
        namespace: String,
        /// The namespace of the client.
        client: String,
    },
    /// A selector cannot be parsed.
    #[error(transparent)]
    Selector(#[from] crate::selector::ParseError),
    /// The cache has no index for a field selector.
    #[error(
        "the cache of {kind} has no index {index:?}: add it with Cache::index before the manager starts, or read with Client::uncached"
    )]
    NoIndex {
        /// The kind.
        kind: String,
        /// The selected field.
        index: String,
    },
    /// The request could not be built.
    #[error("failed to build the request")]
    Build(#[source] http::Error),
    /// This process is no longer the leader, so the write was not sent.
    #[error("write not sent: this process is no longer the leader")]
    Fenced,
    /// The informer has stopped: its kind was removed, the manager has stopped, or the informer has failed.
    #[error("the informer of {0} has stopped")]
    CacheStopped(String),
    /// The manager or the cache has not been started.
    #[error(
        "the manager has not started, so the cache of {0} is empty: read after run(), or use Client::uncached"
    )]
    CacheNotStarted(String),
    /// The first list of the kind is not complete.
    #[error("{0} is not listed yet: wait with Cache::synced")]
    CacheNotSynced(String),
    /// The cache does not watch the kind.
    #[error(
        "the cache does not watch {0}: declare it with reads() or watches() on a controller, or read it with the client"
    )]
    NotCached(String),
    /// The controller does not own the kind.
    #[error("the controller does not own {0}: declare it with owns() on the controller")]
    NotOwned(String),
    /// A helper needs the reconciled object, but it does not exist.
    #[error(
        "{0} is reconciled without an object: it was deleted, or this is a key controller; use the client"
    )]
    NoObject(String),
    /// The kind has no status subresource.
    #[error("{0} has no status subresource: enable `subresources.status` in its CRD")]
    NoStatusSubresource(String),
    /// The owner reference cannot be set.
    #[error(transparent)]
    Owner(#[from] crate::owner::OwnerError),
    /// This version of kube has a patch type that this client does not support.
    #[error("unknown patch type: use Patch::merge, strategic, json or apply")]
    UnknownPatch,
    /// The server sent a list or a bookmark without a resourceVersion, so no watch can start from it.
    #[error("the API server sent a list of {0} without a resourceVersion")]
    NoResourceVersion(String),
}

/// The status reasons of the Kubernetes API.
const REASONS: [&str; 19] = [
    "Unauthorized",
    "Forbidden",
    "NotFound",
    "AlreadyExists",
    "Conflict",
    "Gone",
    "Invalid",
    "ServerTimeout",
    "StorageReadError",
    "Timeout",
    "TooManyRequests",
    "BadRequest",
    "MethodNotAllowed",
    "NotAcceptable",
    "RequestEntityTooLarge",
    "UnsupportedMediaType",
    "InternalError",
    "Expired",
    "ServiceUnavailable",
];

/// The server's message, followed by the RBAC attribute that grants a missing permission.
fn status_message(status: &Status) -> String {
    match (status.message.is_empty(), status.reason.is_empty()) {
        (false, _) => match Permission::from_forbidden(&status.message).filter(|_| status.code == 403) {
            Some(missing) => {
                format!("{}; to grant this, add {} to the operator", status.message, missing.attribute())
            }
            None => status.message.clone(),
        },
        (true, false) => status.reason.clone(),
        (true, true) => format!("the API server returned status {}", status.code),
    }
}

impl Error {
    /// The permission that the caller lacks, if the server denied the request for that reason.
    pub fn missing_permission(&self) -> Option<Permission> {
        let status = self.status().filter(|_| self.is_forbidden())?;
        Permission::from_forbidden(&status.message)
    }

    /// The status that the server returned, if any.
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::Status(status) => Some(status),
            _ => None,
        }
    }

    fn has(&self, reason: &str) -> bool {
        self.status().is_some_and(|status| status.reason == reason)
    }

    fn is(&self, reason: &str, code: u16) -> bool {
        self.status().is_some_and(|status| is(status, reason, code))
    }

    /// The object does not exist.
    pub fn is_not_found(&self) -> bool {
        self.is("NotFound", 404)
    }

    /// An object of that name already exists.
    pub fn is_already_exists(&self) -> bool {
        self.has("AlreadyExists")
    }

    /// The object changed since it was read, or another field manager owns fields.
    pub fn is_conflict(&self) -> bool {
        self.status().is_some_and(is_conflict)
    }

    /// The object failed validation.
    pub fn is_invalid(&self) -> bool {
        self.is("Invalid", 422)
    }

    /// The request is malformed.
    pub fn is_bad_request(&self) -> bool {
        self.is("BadRequest", 400)
    }

    /// The caller lacks the permission.
    pub fn is_forbidden(&self) -> bool {
        self.is("Forbidden", 403)
    }

    /// The server could not authenticate the caller.
    pub fn is_unauthorized(&self) -> bool {
        self.is("Unauthorized", 401)
    }

    /// The requested resourceVersion, continue token or resource is no longer available.
    pub fn is_gone(&self) -> bool {
        self.has("Gone") || self.is_expired()
    }

    /// The resourceVersion or continue token is too old.
    pub fn is_expired(&self) -> bool {
        self.is("Expired", 410)
    }

    /// The server asks the client to retry later.
    pub fn is_too_many_requests(&self) -> bool {
        self.is("TooManyRequests", 429)
    }

    /// The request was not completed in time.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::Timeout(_)) || self.is("Timeout", 504) || self.is_server_timeout()
    }

    /// The server could not process the request in time; the client may retry.
    pub fn is_server_timeout(&self) -> bool {
        self.has("ServerTimeout")
    }

    /// The server, or a component behind it, failed.
    pub fn is_internal(&self) -> bool {
        self.is("InternalError", 500)
    }

    /// The server is unavailable.
    pub fn is_service_unavailable(&self) -> bool {
        self.is("ServiceUnavailable", 503)
    }

    /// The kind is not served: its CRD is missing, or its name is wrong.
    pub fn is_unknown_kind(&self) -> bool {
        matches!(self, Self::UnknownKind(_))
    }

    /// The namespace is terminating, so nothing can be created in it.
    pub fn is_namespace_terminating(&self) -> bool {
        self.status()
            .and_then(|status| status.details.as_ref())
            .is_some_and(|details| details.causes.iter().any(|cause| cause.reason == "NamespaceTerminating"))
    }

    /// The delay that the server requests before the next attempt.
    pub fn retry_after(&self) -> Option<std::time::Duration> {
        let seconds = self.status()?.details.as_ref()?.retry_after_seconds;
        (seconds > 0).then(|| std::time::Duration::from_secs(u64::from(seconds)))
    }
}

/// Whether a status has this reason, or an unknown reason and this code. Proxies and aggregated API servers may use
/// their own reasons.
fn is(status: &Status, reason: &str, code: u16) -> bool {
    status.reason == reason || (status.code == code && !REASONS.contains(&&*status.reason))
}

/// Whether a status is a conflict; see [`Error::is_conflict`].
pub(crate) fn is_conflict(status: &Status) -> bool {
    is(status, "Conflict", 409)
}

/// Turns a "not found" error into `Ok(None)`.
pub fn ignore_not_found<T>(result: Result<T, Error>) -> Result<Option<T>, Error> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forbidden(message: &str) -> Error {
        Error::Status(Box::new(Status { code: 403, ..Status::failure(message, "Forbidden") }))
    }

    #[test]
    fn a_missing_permission_is_reported_with_the_attribute_that_grants_it() {
        let error = forbidden(
            "deployments.apps \"web\" is forbidden: User \"system:serviceaccount:a:b\" cannot patch resource \
             \"deployments\" in API group \"apps\" in the namespace \"a\"",
        );
        let text = error.to_string();
        assert!(
            text.ends_with(
                r#"; to grant this, add #[rbac(groups = "apps", resources = "deployments", verbs = "patch")] to the operator"#
            ),
            "{text}"
        );
        assert_eq!(error.missing_permission(), Some(Permission::new("apps", "deployments", "patch")));
    }

    #[test]
    fn other_forbidden_messages_are_unchanged() {
        let error = forbidden("pods \"a\" is forbidden: exceeded quota: q");
        assert_eq!(error.to_string(), "pods \"a\" is forbidden: exceeded quota: q");
        assert_eq!(error.missing_permission(), None);
    }
}
