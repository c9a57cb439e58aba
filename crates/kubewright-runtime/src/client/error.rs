//! What can go wrong between a caller and the API server, in a form that one can match on.

use kube::core::Status;
use kubewright_apimachinery::permission::Permission;

use crate::Gvk;

/// Why a call to the API server failed.
///
/// Most callers ask rather than match: [`Error::is_not_found`], [`Error::is_conflict`] and so on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server answered with an error.
    #[error("{}", said(.0))]
    Status(Box<Status>),
    /// No answer: the server could not be reached, or the connection broke.
    #[error("no answer from the API server")]
    Send(#[source] kube::Error),
    /// No answer in time.
    #[error("no answer from the API server within {0:?}")]
    Silent(std::time::Duration),
    /// The answer is not what the type says.
    #[error("{what} does not read as its Rust type says")]
    Decode {
        /// What was read, such as `Deployment default/web`.
        what: String,
        /// Where it does not fit.
        #[source]
        source: serde_json::Error,
    },
    /// The object could not be written as JSON.
    #[error("{what} cannot be written as JSON")]
    Encode {
        /// The kind that was to be written.
        what: String,
        /// What does not fit.
        #[source]
        source: serde_json::Error,
    },
    /// The server does not know the kind.
    #[error("the API server serves no {0}: install its CRD, or correct the name")]
    UnknownKind(Gvk),
    /// The object says nothing of its kind.
    #[error("the object has no apiVersion and kind: a dynamic object must have both")]
    Kindless,
    /// The object has no name.
    #[error("the {0} has no name: set metadata.name")]
    Nameless(String),
    /// The object has no namespace, and its kind has some.
    #[error("the {kind} {name:?} has no namespace: set metadata.namespace, or use Client::namespaced")]
    NamespaceMissing {
        /// The kind.
        kind: String,
        /// The name.
        name: String,
    },
    /// A function that was to change an object moved it.
    #[error("the object was moved from {from} to {to}: name and namespace must stay")]
    Moved {
        /// Where it was.
        from: String,
        /// Where it was moved to.
        to: String,
    },
    /// The client is for one namespace, and the object is in another.
    #[error("the {kind} {name:?} is in namespace {namespace:?}, and this client is for {client:?} only")]
    OtherNamespace {
        /// The kind.
        kind: String,
        /// The name.
        name: String,
        /// Where the object is.
        namespace: String,
        /// What the client is for.
        client: String,
    },
    /// A selector cannot be read.
    #[error(transparent)]
    Selector(#[from] crate::selector::ParseError),
    /// A field is selected that the cache has no index of.
    #[error(
        "the cache of {kind} has no index {index:?}: add it with Cache::index before the manager starts, or read with Client::uncached"
    )]
    NoIndex {
        /// The kind.
        kind: String,
        /// The field that was selected.
        index: String,
    },
    /// The request could not be built.
    #[error("the request cannot be built")]
    Build(#[source] http::Error),
    /// This process leads no more: its writes must not leave.
    #[error("not sent: this process is no longer the leader")]
    Fenced,
    /// The informer has stopped: its kind was removed, the manager has ended, or the informer has failed.
    #[error("the informer of {0} has stopped")]
    CacheStopped(String),
    /// The manager, or the cache, was not started.
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
    /// A helper needs the reconciled object, and there is none.
    #[error(
        "{0} is reconciled without an object: it was deleted, or the controller is for keys; use the client"
    )]
    NoObject(String),
    /// The kind has no status subresource.
    #[error("{0} has no status subresource: enable `subresources.status` in its CRD")]
    NoStatusSubresource(String),
    /// The owner cannot be set.
    #[error(transparent)]
    Owner(#[from] crate::owner::OwnerError),
    /// kube has a type of patch that this client does not know.
    #[error("the type of the patch is not known: use Patch::merge, strategic, json or apply")]
    UnknownPatch,
    /// A list or a bookmark without a resourceVersion: no watch can start from it.
    #[error("the API server sent a list of {0} without a resourceVersion")]
    NoResourceVersion(String),
}

/// The reasons that a Kubernetes API server gives.
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

/// The server's message. A missing permission is followed by the attribute that grants it.
fn said(status: &Status) -> String {
    match (status.message.is_empty(), status.reason.is_empty()) {
        (false, _) => match Permission::refused(&status.message).filter(|_| status.code == 403) {
            Some(missing) => {
                format!("{}; to grant this, add {} to the operator", status.message, missing.attribute())
            }
            None => status.message.clone(),
        },
        (true, false) => status.reason.clone(),
        (true, true) => format!("the API server answered {}", status.code),
    }
}

impl Error {
    /// The permission that the caller lacks, if that is why the server refused.
    pub fn missing_permission(&self) -> Option<Permission> {
        let status = self.status().filter(|_| self.is_forbidden())?;
        Permission::refused(&status.message)
    }

    /// The server's own words, if it answered.
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::Status(status) => Some(status),
            _ => None,
        }
    }

    fn has(&self, reason: &str) -> bool {
        self.status().is_some_and(|status| status.reason == reason)
    }

    /// Whether the server gave this reason, or no reason that we know and this code: proxies and servers of others
    /// have reasons of their own.
    fn is(&self, reason: &str, code: u16) -> bool {
        self.status().is_some_and(|status| {
            status.reason == reason || (status.code == code && !REASONS.contains(&&*status.reason))
        })
    }

    /// The object is not there.
    pub fn is_not_found(&self) -> bool {
        self.is("NotFound", 404)
    }

    /// An object of that name is there already.
    pub fn is_already_exists(&self) -> bool {
        self.has("AlreadyExists")
    }

    /// The object changed since it was read, or fields belong to somebody else.
    pub fn is_conflict(&self) -> bool {
        self.is("Conflict", 409)
    }

    /// The object breaks a rule of its kind.
    pub fn is_invalid(&self) -> bool {
        self.is("Invalid", 422)
    }

    /// The request makes no sense to the server.
    pub fn is_bad_request(&self) -> bool {
        self.is("BadRequest", 400)
    }

    /// The caller may not do that.
    pub fn is_forbidden(&self) -> bool {
        self.is("Forbidden", 403)
    }

    /// The server does not know who calls.
    pub fn is_unauthorized(&self) -> bool {
        self.is("Unauthorized", 401)
    }

    /// What was asked for is there no more: a resourceVersion or a continue token is too old, or a whole resource.
    pub fn is_gone(&self) -> bool {
        self.has("Gone") || self.is_expired()
    }

    /// A resourceVersion or a continue token is too old.
    pub fn is_expired(&self) -> bool {
        self.is("Expired", 410)
    }

    /// The server asks to come back later.
    pub fn is_too_many_requests(&self) -> bool {
        self.is("TooManyRequests", 429)
    }

    /// The work was not done in time.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::Silent(_)) || self.is("Timeout", 504) || self.is_server_timeout()
    }

    /// The server could not start the work in time; it may be asked again.
    pub fn is_server_timeout(&self) -> bool {
        self.has("ServerTimeout")
    }

    /// The server, or something behind it, is out of order.
    pub fn is_internal(&self) -> bool {
        self.is("InternalError", 500)
    }

    /// The server cannot answer now.
    pub fn is_service_unavailable(&self) -> bool {
        self.is("ServiceUnavailable", 503)
    }

    /// The kind is not served: its CRD is missing, or its name is wrong.
    pub fn is_unknown_kind(&self) -> bool {
        matches!(self, Self::UnknownKind(_))
    }

    /// The namespace is going, so nothing can be created in it.
    pub fn is_namespace_terminating(&self) -> bool {
        self.status()
            .and_then(|status| status.details.as_ref())
            .is_some_and(|details| details.causes.iter().any(|cause| cause.reason == "NamespaceTerminating"))
    }

    /// How long the server asks to wait before the next try.
    pub fn retry_after(&self) -> Option<std::time::Duration> {
        let seconds = self.status()?.details.as_ref()?.retry_after_seconds;
        (seconds > 0).then(|| std::time::Duration::from_secs(u64::from(seconds)))
    }
}

/// `Ok(None)` for what is not there, so that its absence is no error.
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
    fn a_missing_permission_is_told_with_the_attribute_that_grants_it() {
        let error = forbidden(
            "deployments.apps \"web\" is forbidden: User \"system:serviceaccount:a:b\" cannot patch resource \
             \"deployments\" in API group \"apps\" in the namespace \"a\"",
        );
        let told = error.to_string();
        assert!(
            told.ends_with(
                r#"; to grant this, add #[rbac(groups = "apps", resources = "deployments", verbs = "patch")] to the operator"#
            ),
            "{told}"
        );
        assert_eq!(error.missing_permission(), Some(Permission::new("apps", "deployments", "patch")));
    }

    #[test]
    fn other_refusals_are_told_as_they_are() {
        let error = forbidden("pods \"a\" is forbidden: exceeded quota: q");
        assert_eq!(error.to_string(), "pods \"a\" is forbidden: exceeded quota: q");
        assert_eq!(error.missing_permission(), None);
    }
}
