//! Prevents privilege escalation through RBAC objects.
//!
//! A user who writes a role must hold all its permissions or be allowed to `escalate`. A user who writes a binding
//! must hold all permissions of its role or be allowed to `bind` it.

use kubewright_apimachinery::field::quote;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::status::{ApiError, Qualified};
use serde_json::Value;

use super::rbac_index::{RoleRef, Unresolved, describe_all};
use super::rule::{self, Rule};
use super::{Action, ActionOn, Authz};
use crate::authn::{MASTERS, User};
use crate::registry::resource::Resource;

const GROUP: &str = "rbac.authorization.k8s.io";

/// A write of an object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grant<'a> {
    pub(crate) user: &'a User,
    pub(crate) resource: &'a Resource,
    pub(crate) namespace: &'a str,
    /// The name in the request.
    pub(crate) name: &'a str,
    pub(crate) old: Option<&'a Value>,
    pub(crate) new: &'a Value,
}

impl Authz {
    /// Checks an RBAC object before it is written, after mutating admission. Other kinds always pass.
    pub(crate) fn check_escalation(&self, grant: Grant<'_>) -> Result<(), ApiError> {
        if grant.resource.group() != GROUP || grant.user.is_in(MASTERS) {
            return Ok(());
        }
        self.check_grant(grant)
    }

    fn check_grant(&self, grant: Grant<'_>) -> Result<(), ApiError> {
        let Grant { user, resource, namespace, name, old, new } = grant;
        let refuse = |why: &str| {
            let what = Qualified { group: GROUP, name: resource.plural() };
            ApiError::forbidden(what, new.str_at("metadata.name"), why)
        };
        let may = |verb: &str, group: &str, resource: &str, name: &str| {
            self.allows(user, Action { verb, on: ActionOn::Resource { group, resource, namespace, name } })
        };
        match resource.kind() {
            "Role" | "ClusterRole" => {
                if may("escalate", GROUP, resource.plural(), name)
                    || old.is_some_and(|old| only_collects_garbage(resource, old, new))
                {
                    return Ok(());
                }
                let wanted = Rule::all_of(new);
                self.confirm_held(user, resource, namespace, &wanted).map_err(|why| refuse(&why))?;
                if aggregates(new) || old.is_some_and(aggregates) {
                    let everything = Rule::everything();
                    self.confirm_held(user, resource, namespace, &everything).map_err(|_| {
                        refuse("must have cluster-admin privileges to use the aggregationRule")
                    })?;
                }
                Ok(())
            }
            "RoleBinding" | "ClusterRoleBinding" => {
                let role = RoleRef::of(new, namespace);
                let plural = match &*role.kind {
                    "Role" => "roles",
                    "ClusterRole" => "clusterroles",
                    _ => "",
                };
                let group = new.str_at("roleRef.apiGroup");
                if !plural.is_empty() && may("bind", group, plural, &role.name)
                    || old.is_some_and(|old| only_collects_garbage(resource, old, new))
                {
                    return Ok(());
                }
                let wanted =
                    self.with_rbac(|index| index.role(&role).map(|role| Box::<[Rule]>::from(role.rules())));
                let wanted = wanted.map_err(|error| match error {
                    // Upstream names the resource being written here, not the missing role.
                    Unresolved::Missing(role) => {
                        ApiError::not_found(Qualified { group: GROUP, name: resource.plural() }, &role.name)
                    }
                    Unresolved::Kind(_) => ApiError::new(500, "", error.describe(None)),
                })?;
                self.confirm_held(user, resource, namespace, &wanted).map_err(|why| refuse(&why))
            }
            _ => Ok(()),
        }
    }

    /// Checks that a user has all these permissions; otherwise returns the missing ones in upstream's
    /// wording.
    fn confirm_held(
        &self,
        user: &User,
        resource: &Resource,
        namespace: &str,
        wanted: &[Rule],
    ) -> Result<(), String> {
        self.with_rbac(|index| {
            let held = index.held(user, namespace);
            let Some(missing) = rule::missing(&held.rules, wanted) else { return Ok(()) };
            let errors = describe_all(&held.unresolved, Some(resource.plural()));
            let errors = errors.map(|errors| format!("; resolution errors: [{errors}]")).unwrap_or_default();
            Err(format!(
                "user {} (groups={}) is attempting to grant RBAC permissions not currently held:\n{missing}{errors}",
                quote(&user.name),
                rule::quote_all(&user.groups)
            ))
        })
    }
}

fn aggregates(role: &Value) -> bool {
    !role.list_at("aggregationRule.clusterRoleSelectors").is_empty()
}

/// Whether a write changes only fields that garbage collection changes. Such writes need no permission check.
fn only_collects_garbage(resource: &Resource, old: &Value, new: &Value) -> bool {
    let mut copy = new.clone();
    for field in ["ownerReferences", "finalizers", "selfLink", "managedFields"] {
        let path = format!("metadata.{field}");
        match old.at(&path) {
            Value::Null => drop(copy.remove_at(&path)),
            value => copy.set_at(&path, value.clone()),
        }
    }
    resource.strategy.canonicalize(&mut copy).is_ok() && copy == *old
}
