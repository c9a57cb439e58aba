//! Who asks, and whether they may.
//!
//! Whoever carries a request into the server says who sent it, as a request extension ([`User`]); over TLS
//! that is the client certificate or the bearer token. A request in-process without one is the administrator's.
//! The rules of RBAC have their place in [`Authorizer`].

use std::collections::BTreeMap;

use kubewright_apimachinery::status::{ApiError, Qualified};

use crate::request::percent_decode;

/// The group whose members may do everything.
pub const MASTERS: &str = "system:masters";
const AUTHENTICATED: &str = "system:authenticated";

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
            name: "system:anonymous".to_owned(),
            uid: String::new(),
            groups: vec!["system:unauthenticated".to_owned()],
            extra: BTreeMap::new(),
        }
    }

    /// In this group?
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|own| own == group)
    }
}

/// Who the headers of a request say that it is to be done as: kubectl's `--as` and its like. Nobody, if they
/// say nothing.
pub(crate) fn impersonated(headers: &http::HeaderMap) -> Result<Option<User>, ApiError> {
    let all = |name: &str| -> Vec<String> {
        headers.get_all(name).iter().filter_map(|value| value.to_str().ok().map(str::to_owned)).collect()
    };
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for name in headers.keys() {
        if let Some(key) = name.as_str().strip_prefix("impersonate-extra-") {
            extra.entry(percent_decode(key)).or_default().extend(all(name.as_str()));
        }
    }
    let name = all("impersonate-user").into_iter().next().unwrap_or_default();
    let uid = all("impersonate-uid").into_iter().next().unwrap_or_default();
    let mut groups = all("impersonate-group");
    if name.is_empty() {
        if uid.is_empty() && groups.is_empty() && extra.is_empty() {
            return Ok(None);
        }
        return Err(ApiError::bad_request("impersonation needs a user: set Impersonate-User"));
    }
    if let Some((namespace, _)) =
        name.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':'))
        && groups.is_empty()
    {
        groups = vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")];
    }
    let mut user = if name == "system:anonymous" {
        User { groups: vec!["system:unauthenticated".to_owned()], ..User::anonymous() }
    } else {
        User::authenticated(name, groups)
    };
    user.uid = uid;
    user.extra = extra;
    Ok(Some(user))
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
    /// A path that is no resource.
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

/// Decides who may do what.
pub trait Authorizer: Send + Sync + 'static {
    /// May `user` do this?
    fn allows(&self, user: &User, action: Action<'_>) -> bool;
}

/// Everyone who has shown who they are may do everything; others may see health and version.
#[derive(Debug, Default, Clone, Copy)]
pub struct AuthenticatedOnly;

impl Authorizer for AuthenticatedOnly {
    fn allows(&self, user: &User, action: Action<'_>) -> bool {
        if user.is_in(AUTHENTICATED) || user.is_in(MASTERS) {
            return true;
        }
        match action.on {
            ActionOn::Path(path) => action.verb == "get" && is_public(path),
            ActionOn::Resource { .. } => false,
        }
    }
}

/// Paths that `system:public-info-viewer` opens to everyone.
fn is_public(path: &str) -> bool {
    matches!(path, "/healthz" | "/livez" | "/readyz" | "/version" | "/version/")
}

/// The answer to someone who may not.
pub(crate) fn forbidden(user: &User, action: Action<'_>) -> ApiError {
    let who = kubewright_apimachinery::field::quote(&user.name);
    match action.on {
        ActionOn::Path(path) => {
            let path = kubewright_apimachinery::field::quote(path);
            let why = format!("User {who} cannot {} path {path}", action.verb);
            ApiError::forbidden(Qualified { group: "", name: "" }, "", &why)
        }
        ActionOn::Resource { group, resource, namespace, name } => {
            let place = if namespace.is_empty() {
                "at the cluster scope".to_owned()
            } else {
                format!("in the namespace {namespace:?}")
            };
            let why = format!(
                "User {who} cannot {} resource {resource:?} in API group {group:?} {place}",
                action.verb
            );
            let plural = resource.split('/').next().unwrap_or_default();
            ApiError::forbidden(Qualified { group, name: plural }, name, &why)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_in_particular_sees_health_and_version_only() {
        let may = |verb, path| {
            AuthenticatedOnly.allows(&User::anonymous(), Action { verb, on: ActionOn::Path(path) })
        };
        assert!(may("get", "/healthz") && may("get", "/version"));
        assert!(!may("get", "/apis") && !may("post", "/healthz"));
    }

    #[test]
    fn headers_say_whom_to_act_for() {
        let mut headers = http::HeaderMap::new();
        assert_eq!(impersonated(&headers).unwrap(), None);
        headers.insert("Impersonate-Group", "g".parse().unwrap());
        assert_eq!(impersonated(&headers).unwrap_err().code, 400);
        headers.insert("Impersonate-User", "bob".parse().unwrap());
        headers.insert("Impersonate-Extra-Example.com%2fkey", "v".parse().unwrap());
        let bob = impersonated(&headers).unwrap().unwrap();
        assert_eq!((bob.name.as_str(), bob.is_in("g"), bob.is_in(MASTERS)), ("bob", true, false));
        assert_eq!(bob.extra["example.com/key"], ["v"]);
    }

    #[test]
    fn a_refusal_says_who_may_not_do_what() {
        let on = ActionOn::Resource { group: "", resource: "nodes", namespace: "", name: "" };
        assert_eq!(
            forbidden(&User::anonymous(), Action { verb: "list", on }).message,
            "nodes is forbidden: User \"system:anonymous\" cannot list resource \"nodes\" in API group \"\" at the cluster scope"
        );
        let error = forbidden(&User::anonymous(), Action { verb: "get", on: ActionOn::Path("/apis") });
        assert_eq!(error.message, "forbidden: User \"system:anonymous\" cannot get path \"/apis\"");
    }
}
