//! User impersonation (kubectl's `--as`) and its authorization.
//!
//! Several modes are tried in order; the first that is allowed determines the effective user. A constrained
//! mode needs two permissions, one to impersonate the user and one to perform the action as such a user; the
//! legacy mode needs only the verb `impersonate`. The mode that last succeeded for a requester is tried
//! first, so that its error is the one returned. Unlike upstream, decisions are not cached: a revoked
//! permission takes effect immediately.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use http::HeaderMap;
use kubewright_apimachinery::field::quote;
use kubewright_apimachinery::names;
use kubewright_apimachinery::status::ApiError;

use super::{ANONYMOUS, AUTHENTICATED, Authn, MASTERS, UNAUTHENTICATED, User};
use crate::authz::authorize::with_action;
use crate::authz::{Action, ActionOn, Authz, forbidden};
use crate::request::{Request, percent_decode};

const AUTHENTICATION: &str = "authentication.k8s.io";
const EXTRA: &str = "impersonate-extra-";
/// The extra key for the node of a service account token's pod.
const NODE_NAME: &str = "authentication.kubernetes.io/node-name";
/// From this number of groups or extra values on, permission for all of them is checked first.
const MANY: usize = 4;
/// Maximum number of requesters whose mode is remembered.
const SENDERS: usize = 10_000;

/// An impersonation mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    AssociatedNode,
    ArbitraryNode,
    ServiceAccount,
    UserInfo,
    Legacy,
}

/// The mode that last succeeded, by requester name.
#[derive(Debug, Default)]
pub(crate) struct Modes(Mutex<HashMap<String, Mode>>);

impl Modes {
    fn last(&self, sender: &str) -> Option<Mode> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(sender).copied()
    }

    fn worked(&self, sender: &str, mode: Mode) {
        let mut modes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Clearing only affects which error a denied requester sees.
        if modes.len() >= SENDERS {
            modes.clear();
        }
        modes.insert(sender.to_owned(), mode);
    }
}

impl Authn {
    /// The effective user of a request: the requester, or the user that it impersonates.
    pub(crate) fn acting_user(&self, request: &Request) -> Result<User, ApiError> {
        let sender = &request.user;
        let Some(wanted) = wanted(&request.headers)? else { return Ok(sender.clone()) };
        let last = self.modes.last(&sender.name);
        let others =
            [Mode::AssociatedNode, Mode::ArbitraryNode, Mode::ServiceAccount, Mode::UserInfo, Mode::Legacy];
        let others = others.into_iter().filter(|mode| Some(*mode) != last);
        let mut refused = None;
        for mode in last.into_iter().chain(others).filter(|mode| mode.applies(&wanted, sender)) {
            match self.impersonate(mode, &wanted, request) {
                Ok(user) => {
                    if last != Some(mode) {
                        self.modes.worked(&sender.name, mode);
                    }
                    return Ok(user);
                }
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        Err(refused.unwrap_or_else(|| ApiError::internal("all impersonation modes failed")))
    }

    fn impersonate(&self, mode: Mode, wanted: &User, request: &Request) -> Result<User, ApiError> {
        let sender = &request.user;
        let verb = match mode.name() {
            None => "impersonate".to_owned(),
            Some(name) => {
                with_action(request, |action| {
                    let verb = format!("impersonate-on:{name}:{}", action.verb);
                    self.authz.check(sender, Action { verb: &verb, on: action.on })
                })?;
                format!("impersonate:{name}")
            }
        };
        let check = Check { authz: &self.authz, sender, verb: &verb, constrained: mode != Mode::Legacy };
        let mut user = wanted.clone();
        check.name(mode, &mut user)?;
        check.uid(&wanted.uid)?;
        check.groups(&wanted.groups)?;
        check.extra(&wanted.extra)?;
        let group = match user.name.as_str() {
            ANONYMOUS => UNAUTHENTICATED,
            _ if user.is_in(UNAUTHENTICATED) => UNAUTHENTICATED,
            _ => AUTHENTICATED,
        };
        if !user.is_in(group) {
            user.groups.push(group.to_owned());
        }
        Ok(user)
    }
}

impl Mode {
    fn name(self) -> Option<&'static str> {
        match self {
            Self::AssociatedNode => Some("associated-node"),
            Self::ArbitraryNode => Some("arbitrary-node"),
            Self::ServiceAccount => Some("serviceaccount"),
            Self::UserInfo => Some("user-info"),
            Self::Legacy => None,
        }
    }

    /// Whether the mode applies to such a user.
    fn applies(self, wanted: &User, sender: &User) -> bool {
        let name_only = wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty();
        let node = node_name(&wanted.name);
        let account = service_account(&wanted.name);
        match self {
            Self::AssociatedNode => {
                let own = sender.extra.get(NODE_NAME).filter(|_| service_account(&sender.name).is_some());
                let own = own.and_then(|nodes| match &nodes[..] {
                    [node] => Some(node.as_str()),
                    _ => None,
                });
                name_only && node.is_some() && node == own
            }
            Self::ArbitraryNode => name_only && node.is_some(),
            Self::ServiceAccount => name_only && account.is_some(),
            Self::UserInfo => node.is_none() && account.is_none(),
            Self::Legacy => true,
        }
    }
}

/// Checks the permission for each attribute of the impersonated user.
struct Check<'a> {
    authz: &'a Authz,
    sender: &'a User,
    verb: &'a str,
    constrained: bool,
}

impl Check<'_> {
    /// Checks the user name and adds the groups that it implies.
    fn name(&self, mode: Mode, user: &mut User) -> Result<(), ApiError> {
        let group = if self.constrained { AUTHENTICATION } else { "" };
        if let Some(node) = node_name(&user.name).filter(|_| self.constrained) {
            let name = if mode == Mode::AssociatedNode { "*" } else { node };
            self.may(group, "nodes", "", name)?;
            user.groups = vec!["system:nodes".to_owned()];
            return Ok(());
        }
        if let Some((namespace, name)) = service_account(&user.name) {
            self.may(group, "serviceaccounts", namespace, name)?;
            if user.groups.is_empty() {
                user.groups =
                    vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")];
            }
            return Ok(());
        }
        self.may(group, "users", "", &user.name)
    }

    fn uid(&self, uid: &str) -> Result<(), ApiError> {
        if uid.is_empty() { Ok(()) } else { self.may(AUTHENTICATION, "uids", "", uid) }
    }

    fn groups(&self, groups: &[String]) -> Result<(), ApiError> {
        let group = if self.constrained { AUTHENTICATION } else { "" };
        if self.constrained {
            let has = |name: &str| groups.iter().any(|group| group == name);
            if has("") {
                let why = "impersonating the empty string group is not allowed";
                return Err(self.refuse(group, "groups", "", why));
            }
            if has(MASTERS) {
                let why = "impersonating the system:masters group is not allowed";
                return Err(self.refuse(group, "groups", MASTERS, why));
            }
            if groups.len() >= MANY && self.may(group, "groups", "", "*").is_ok() {
                return Ok(());
            }
        }
        groups.iter().try_for_each(|name| self.may(group, "groups", "", name))
    }

    fn extra(&self, extra: &BTreeMap<String, Vec<String>>) -> Result<(), ApiError> {
        if self.constrained {
            if let Some(why) = extra.iter().find_map(|(key, values)| bad_extra(key, values)) {
                return Err(self.refuse(AUTHENTICATION, "userextras", "", &why));
            }
            let many = extra.len() >= MANY || extra.values().map(Vec::len).sum::<usize>() >= MANY;
            if many && self.may(AUTHENTICATION, "userextras/*", "", "*").is_ok() {
                return Ok(());
            }
        }
        for (key, values) in extra {
            let resource = format!("userextras/{key}");
            values.iter().try_for_each(|value| self.may(AUTHENTICATION, &resource, "", value))?;
        }
        Ok(())
    }

    fn may(&self, group: &str, resource: &str, namespace: &str, name: &str) -> Result<(), ApiError> {
        let on = ActionOn::Resource { group, resource, namespace, name };
        self.authz.check(self.sender, Action { verb: self.verb, on })
    }

    fn refuse(&self, group: &str, resource: &str, name: &str, why: &str) -> ApiError {
        let on = ActionOn::Resource { group, resource, namespace: "", name };
        forbidden(self.sender, Action { verb: self.verb, on }, why)
    }
}

fn bad_extra(key: &str, values: &[String]) -> Option<String> {
    if key.is_empty() {
        return Some("impersonating the empty string key in extra is not allowed".to_owned());
    }
    let wrong: Vec<String> = names::domain_prefixed_path(key)
        .into_iter()
        .map(|(value, why)| format!("extra.key: Invalid value: {}: {why}", quote(&value)))
        .collect();
    match &wrong[..] {
        [] => {}
        [one] => return Some(format!("impersonating an invalid key in extra is not allowed: {one}")),
        more => {
            let more = more.join(", ");
            return Some(format!("impersonating an invalid key in extra is not allowed: [{more}]"));
        }
    }
    if key != key.to_lowercase() {
        let key = quote(key);
        return Some(format!("impersonating a non-lowercase key in extra is not allowed: {key}"));
    }
    if values.iter().any(String::is_empty) {
        return Some("impersonating the empty string value in extra is not allowed".to_owned());
    }
    None
}

/// The node of a node user name.
fn node_name(user: &str) -> Option<&str> {
    user.strip_prefix("system:node:").filter(|name| names::dns1123_subdomain(name).is_empty())
}

/// The namespace and name of a service account user name.
fn service_account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix("system:serviceaccount:")?.split_once(':')?;
    let right = names::dns1123_label(namespace).is_empty() && names::dns1123_subdomain(name).is_empty();
    right.then_some((namespace, name))
}

/// The user in the request's impersonation headers, with the given attributes only; `None` without
/// such headers.
fn wanted(headers: &HeaderMap) -> Result<Option<User>, ApiError> {
    let all = |name: &str| -> Vec<String> {
        let values = headers.get_all(name).iter();
        values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect()
    };
    let first = |name: &str| all(name).into_iter().next().unwrap_or_default();
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for name in headers.keys() {
        if let Some(key) = name.as_str().strip_prefix(EXTRA) {
            extra.entry(extra_key(key)).or_default().extend(all(name.as_str()));
        }
    }
    let user = User {
        name: first("impersonate-user"),
        uid: first("impersonate-uid"),
        groups: all("impersonate-group"),
        extra,
    };
    if !user.name.is_empty() {
        return Ok(Some(user));
    }
    if user.uid.is_empty() && user.groups.is_empty() && user.extra.is_empty() {
        return Ok(None);
    }
    let strings = |values: &[String]| {
        let quoted: Vec<String> = values.iter().map(|value| quote(value)).collect();
        format!("[]string{{{}}}", quoted.join(", "))
    };
    let groups = if user.groups.is_empty() { "[]string(nil)".to_owned() } else { strings(&user.groups) };
    let extra: Vec<String> =
        user.extra.iter().map(|(key, values)| format!("{}:{}", quote(key), strings(values))).collect();
    let extra = if extra.is_empty() { "(nil)".to_owned() } else { format!("{{{}}}", extra.join(", ")) };
    Err(ApiError::bad_request(format!(
        "requested &user.DefaultInfo{{Name:\"\", UID:{}, Groups:{groups}, Extra:map[string][]string{extra}}} without \
         impersonating a user name",
        quote(&user.uid)
    )))
}

/// Decodes a percent-encoded key; an invalid encoding is used as it is.
fn extra_key(key: &str) -> String {
    let mut rest = key;
    while let Some(at) = rest.find('%') {
        let code = rest.as_bytes().get(at + 1..at + 3);
        if !code.is_some_and(|code| code.iter().all(u8::is_ascii_hexdigit)) {
            return key.to_owned();
        }
        rest = &rest[at + 3..];
    }
    percent_decode(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn impersonation_headers_give_the_user() {
        assert_eq!(wanted(&HeaderMap::new()).unwrap(), None);
        let bob = wanted(&headers(&[
            ("impersonate-user", "bob"),
            ("impersonate-group", "g"),
            ("impersonate-group", "h"),
            ("impersonate-uid", "7"),
            ("impersonate-extra-example.com%2fkey", "v"),
            ("impersonate-extra-almost%zzencoded%2f", "w"),
        ]))
        .unwrap()
        .unwrap();
        assert_eq!((bob.name.as_str(), bob.uid.as_str()), ("bob", "7"));
        assert_eq!(bob.groups, ["g", "h"]);
        assert_eq!(bob.extra["example.com/key"], ["v"]);
        assert_eq!(bob.extra["almost%zzencoded%2f"], ["w"]);
    }

    #[test]
    fn impersonated_groups_without_a_user_are_rejected() {
        let error =
            wanted(&headers(&[("impersonate-group", "g"), ("impersonate-extra-a", "b")])).unwrap_err();
        assert_eq!(
            (error.code, error.message.as_str()),
            (
                400,
                "requested &user.DefaultInfo{Name:\"\", UID:\"\", Groups:[]string{\"g\"}, \
                 Extra:map[string][]string{\"a\":[]string{\"b\"}}} without impersonating a user name"
            )
        );
    }

    #[test]
    fn each_mode_applies_to_certain_users() {
        let user = |name: &str| User { name: name.to_owned(), groups: Vec::new(), ..User::anonymous() };
        let agent = User {
            extra: BTreeMap::from([(NODE_NAME.to_owned(), vec!["n1".to_owned()])]),
            ..user("system:serviceaccount:a:agent")
        };
        let modes = |wanted: &User| -> Vec<&str> {
            let all = [Mode::AssociatedNode, Mode::ArbitraryNode, Mode::ServiceAccount, Mode::UserInfo];
            all.into_iter().filter(|mode| mode.applies(wanted, &agent)).filter_map(Mode::name).collect()
        };
        assert_eq!(modes(&user("system:node:n1")), ["associated-node", "arbitrary-node"]);
        assert_eq!(modes(&user("system:node:n2")), ["arbitrary-node"]);
        assert_eq!(modes(&user("system:node:_")), ["user-info"]);
        assert_eq!(modes(&user("system:serviceaccount:a:b")), ["serviceaccount"]);
        assert_eq!(modes(&user("system:serviceaccount:a:b:c")), ["user-info"]);
        assert_eq!(modes(&user("bob")), ["user-info"]);
        let more = User { groups: vec!["g".to_owned()], ..user("system:serviceaccount:a:b") };
        assert_eq!(modes(&more), [""; 0]);
    }
}
