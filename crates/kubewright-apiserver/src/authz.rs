//! Authorization of requests.
//!
//! [`Authorization`] decides what a user may do: by default by the RBAC objects in the store. Authorization reads the
//! store and never writes to it.

pub(crate) mod authorize;
mod escalation;
mod rbac;
pub(crate) mod rbac_index;
pub(crate) mod rule;

use std::sync::Arc;

use kubewright_apimachinery::field::quote;
use kubewright_apimachinery::status::{ApiError, Qualified};

use crate::authn::User;
use crate::storage::Store;
pub(crate) use escalation::Grant;
use rbac::Rbac;
pub(crate) use rbac_index::Kind;
use rbac_index::RbacIndex;

/// A verb and its target, for authorization.
#[derive(Debug, Clone, Copy)]
pub struct Action<'a> {
    /// Verb, in lower case.
    pub verb: &'a str,
    /// Target.
    pub on: ActionOn<'a>,
}

/// The target of an action.
#[derive(Debug, Clone, Copy)]
pub enum ActionOn<'a> {
    /// A non-resource path.
    Path(&'a str),
    /// A resource.
    Resource {
        /// API group.
        group: &'a str,
        /// Plural name; a subresource follows after a slash.
        resource: &'a str,
        /// Namespace; may be empty.
        namespace: &'a str,
        /// Object name; may be empty.
        name: &'a str,
    },
}

/// The authorization mode of a server.
#[derive(Clone, Default)]
pub enum Authorization {
    /// RBAC: Roles, ClusterRoles and their bindings in the store.
    #[default]
    Rbac,
    /// Allows everything to authenticated users and rejects anonymous requests.
    AlwaysAllow,
    /// A custom authorizer. It is called for every user, administrators included.
    Custom(Arc<dyn Authorizer>),
}

/// Authorizes requests instead of RBAC: see [`Authorization::Custom`].
pub trait Authorizer: Send + Sync + 'static {
    /// Whether `user` may perform `action`.
    fn allows(&self, user: &User, action: Action<'_>) -> bool;
}

/// The authorizer of a server.
pub(crate) struct Authz {
    mode: Authorization,
    rbac: Rbac,
    store: Arc<Store>,
}

impl Authz {
    pub(crate) fn new(mode: Authorization, store: Arc<Store>) -> Self {
        Self { mode, rbac: Rbac::default(), store }
    }

    /// A copy for a forked store. The index may be older than the store, but not newer: call this before the store is
    /// forked.
    pub(crate) fn fork(&self) -> impl FnOnce(Arc<Store>) -> Self + use<> {
        let (mode, rbac) = (self.mode.clone(), self.rbac.fork());
        move |store| Self { mode, rbac, store }
    }

    /// Calls `ask` with an RBAC index that is current.
    pub(crate) fn with_rbac<T>(&self, ask: impl FnOnce(&RbacIndex) -> T) -> T {
        self.rbac.ask(&self.store, ask)
    }
}

/// The result of an authorization check.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) allowed: bool,
    /// The reason as access reviews show it; often empty.
    pub(crate) reason: String,
}

/// The Forbidden error for an action.
pub(crate) fn forbidden(user: &User, action: Action<'_>, reason: &str) -> ApiError {
    let (what, name, why) = match action.on {
        ActionOn::Path(path) => {
            let why = format!("User {} cannot {} path {}", quote(&user.name), action.verb, quote(path));
            (Qualified { group: "", name: "" }, "", why)
        }
        ActionOn::Resource { group, resource, namespace, name } => {
            let place = if namespace.is_empty() {
                "at the cluster scope".to_owned()
            } else {
                format!("in the namespace {}", quote(namespace))
            };
            let why = format!(
                "User {} cannot {} resource {} in API group {} {place}",
                quote(&user.name),
                action.verb,
                quote(resource),
                quote(group)
            );
            let plural = resource.split('/').next().unwrap_or_default();
            (Qualified { group, name: plural }, name, why)
        }
    };
    // Names come from the client. Escape them so that a browser does not render them as HTML.
    let mut why = why.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    if !reason.is_empty() {
        why = format!("{why}: {reason}");
    }
    ApiError::forbidden(what, name, &why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forbidden_error_names_user_verb_and_resource() {
        let refusal = |verb, on, reason| forbidden(&User::anonymous(), Action { verb, on }, reason).message;
        let nodes = ActionOn::Resource { group: "", resource: "nodes", namespace: "", name: "" };
        assert_eq!(
            refusal("list", nodes, ""),
            "nodes is forbidden: User \"system:anonymous\" cannot list resource \"nodes\" in API group \"\" at the cluster scope"
        );
        let scale =
            ActionOn::Resource { group: "apps", resource: "deployments/scale", namespace: "a", name: "<b>" };
        assert_eq!(
            refusal("get", scale, "RBAC: no role <x>"),
            "deployments.apps \"<b>\" is forbidden: User \"system:anonymous\" cannot get resource \"deployments/scale\" \
             in API group \"apps\" in the namespace \"a\": RBAC: no role <x>"
        );
        assert_eq!(
            refusal("get", ActionOn::Path("/a?<b>&c"), ""),
            "forbidden: User \"system:anonymous\" cannot get path \"/a?&lt;b&gt;&amp;c\""
        );
    }
}
