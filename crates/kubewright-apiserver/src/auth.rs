//! Who asks, and whether they may.
//!
//! Whoever carries a request into the server says who sent it, as a request extension ([`User`]); over TLS
//! that is the client certificate or the bearer token. A request in-process without one is the administrator's.
//! What they may do is decided by [`Authorization`]: by the roles and bindings in the store, unless a server is
//! told otherwise.

mod aggregation;
mod authorize;
mod escalation;
mod impersonation;
mod rbac;
mod rbac_index;
mod rule;

use std::collections::BTreeMap;
use std::sync::Arc;

use kubewright_apimachinery::field::quote;
use kubewright_apimachinery::status::{ApiError, Qualified};

pub(crate) use impersonation::Modes;
pub(crate) use rbac::Rbac;
pub(crate) use rbac_index::Kind;

/// The group whose members may do everything.
pub const MASTERS: &str = "system:masters";
const AUTHENTICATED: &str = "system:authenticated";
const UNAUTHENTICATED: &str = "system:unauthenticated";
const ANONYMOUS: &str = "system:anonymous";

/// Who sent a request. Put one into a request's extensions to speak for someone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// Name.
    pub name: String,
    /// Uid, where there is one.
    pub uid: String,
    /// Groups.
    pub groups: Vec<String>,
    /// What else is known.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// A user who has shown who they are.
    pub fn authenticated(name: impl Into<String>, groups: impl IntoIterator<Item = String>) -> Self {
        let mut groups: Vec<String> = groups.into_iter().collect();
        if !groups.iter().any(|group| group == AUTHENTICATED) {
            groups.push(AUTHENTICATED.to_owned());
        }
        Self { name: name.into(), uid: String::new(), groups, extra: BTreeMap::new() }
    }

    /// The administrator.
    pub fn admin() -> Self {
        Self::authenticated("admin", [MASTERS.to_owned()])
    }

    /// Nobody in particular.
    pub fn anonymous() -> Self {
        Self {
            name: ANONYMOUS.to_owned(),
            uid: String::new(),
            groups: vec![UNAUTHENTICATED.to_owned()],
            extra: BTreeMap::new(),
        }
    }

    /// In this group?
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|own| own == group)
    }
}

/// What someone wants to do.
#[derive(Debug, Clone, Copy)]
pub struct Action<'a> {
    /// Verb, in lower case.
    pub verb: &'a str,
    /// What it is done to.
    pub on: ActionOn<'a>,
}

/// What an action is done to.
#[derive(Debug, Clone, Copy)]
pub enum ActionOn<'a> {
    /// A non-resource path.
    Path(&'a str),
    /// A resource.
    Resource {
        /// API group.
        group: &'a str,
        /// Plural, with the subresource behind a slash.
        resource: &'a str,
        /// Namespace, or empty.
        namespace: &'a str,
        /// Name, or empty.
        name: &'a str,
    },
}

/// How a server decides who may do what.
#[derive(Clone, Default)]
pub enum Authorization {
    /// By the Roles, ClusterRoles and their bindings that are stored in the server.
    #[default]
    Rbac,
    /// Everyone may do everything who has shown who they are; nobody else is let in.
    AlwaysAllow,
    /// By other rules. They are asked about everyone, administrators included.
    Custom(Arc<dyn Authorizer>),
}

/// Decides who may do what, in place of RBAC: see [`Authorization::Custom`].
pub trait Authorizer: Send + Sync + 'static {
    /// May `user` do this?
    fn allows(&self, user: &User, action: Action<'_>) -> bool;
}

/// What was decided, and why.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) allowed: bool,
    /// As reviews show it; often empty.
    pub(crate) reason: String,
}

/// The answer to someone who may not, with the reason if there is one.
fn forbidden(user: &User, action: Action<'_>, reason: &str) -> ApiError {
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
    // Names are the client's: what it said is not to become HTML in somebody's browser.
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
    fn a_refusal_says_who_may_not_do_what() {
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
