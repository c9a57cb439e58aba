//! Rights that a write needs beyond its verb.
//!
//! Nobody grants what they do not have: whoever writes a role must have all its rights or may `escalate`;
//! whoever writes a binding must have all rights of its role or may `bind` it. And an update or patch that
//! creates its object needs the right to create.

use kubewright_apimachinery::field::quote;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::status::{ApiError, Qualified};
use serde_json::Value;

use super::rights::{RoleRef, Unresolved, describe_all};
use super::rule::{self, Rule};
use super::{Action, ActionOn, MASTERS, User};
use crate::request::{Request, Target};
use crate::resources::Served;
use crate::server::Inner;

const GROUP: &str = "rbac.authorization.k8s.io";

impl Inner {
    /// Checks an object that is about to be created, by POST.
    pub(crate) fn check_create(
        &self,
        request: &Request,
        served: &Served,
        namespace: &str,
        object: &Value,
    ) -> Result<(), ApiError> {
        if served.group() != GROUP || request.user.is_in(MASTERS) {
            return Ok(());
        }
        // A namespace that is not there is told of first.
        self.admit_create(served, namespace, &mut object.clone())?;
        self.check_grant(request, served, namespace, None, object)
    }

    /// Checks an object that is about to replace `old`, which is null where there is none.
    pub(crate) fn check_change(
        &self,
        request: &Request,
        served: &Served,
        namespace: &str,
        old: &Value,
        new: &Value,
    ) -> Result<(), ApiError> {
        if request.user.is_in(MASTERS) {
            return Ok(());
        }
        let old = (!old.is_null()).then_some(old);
        if served.group() == GROUP {
            self.check_grant(request, served, namespace, old, new)?;
        }
        let Target::Resource(path) = &request.target else { return Ok(()) };
        if old.is_some() {
            return Ok(());
        }
        let on = ActionOn::Resource {
            group: &path.group,
            resource: &path.resource,
            namespace: &path.namespace,
            name: &path.name,
        };
        let refused = self.check(&request.user, Action { verb: "create", on });
        if refused.is_err() {
            // What is wrong with the object is told of first.
            self.create_object(served, namespace, new.clone(), true, &mut Vec::new())?;
        }
        refused
    }

    fn check_grant(
        &self,
        request: &Request,
        served: &Served,
        namespace: &str,
        old: Option<&Value>,
        new: &Value,
    ) -> Result<(), ApiError> {
        let user = &request.user;
        let Target::Resource(path) = &request.target else { return Ok(()) };
        let refuse = |why: &str| {
            let what = Qualified { group: GROUP, name: served.plural() };
            ApiError::forbidden(what, new.str_at("metadata.name"), why)
        };
        let may = |verb: &str, group: &str, resource: &str, name: &str| {
            self.allows(user, Action { verb, on: ActionOn::Resource { group, resource, namespace, name } })
        };
        match served.kind() {
            "Role" | "ClusterRole" => {
                if may("escalate", GROUP, served.plural(), &path.name)
                    || old.is_some_and(|old| only_collects_garbage(served, old, new))
                {
                    return Ok(());
                }
                let wanted = Rule::all_of(new);
                self.confirm_held(user, served, namespace, &wanted).map_err(|why| refuse(&why))?;
                if aggregates(new) || old.is_some_and(aggregates) {
                    let everything = Rule::everything();
                    self.confirm_held(user, served, namespace, &everything).map_err(|_| {
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
                    || old.is_some_and(|old| only_collects_garbage(served, old, new))
                {
                    return Ok(());
                }
                let wanted = self.rbac.ask(&self.store, |rights| {
                    rights.role(&role).map(|role| Box::<[Rule]>::from(role.rules()))
                });
                let wanted = wanted.map_err(|error| match error {
                    // Named after what is being written, as upstream has it.
                    Unresolved::Missing(role) => {
                        ApiError::not_found(Qualified { group: GROUP, name: served.plural() }, &role.name)
                    }
                    Unresolved::Kind(_) => ApiError::new(500, "", error.describe(None)),
                })?;
                self.confirm_held(user, served, namespace, &wanted).map_err(|why| refuse(&why))
            }
            _ => Ok(()),
        }
    }

    /// Whether a user has all these rights; what is missing, in upstream's words, if not.
    fn confirm_held(
        &self,
        user: &User,
        served: &Served,
        namespace: &str,
        wanted: &[Rule],
    ) -> Result<(), String> {
        self.rbac.ask(&self.store, |rights| {
            let held = rights.held(user, namespace);
            let Some(missing) = rule::missing(&held.rules, wanted) else { return Ok(()) };
            let errors = describe_all(&held.unresolved, Some(served.plural()));
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

/// Whether a write changes nothing but what garbage collection writes: anybody's role may be collected.
fn only_collects_garbage(served: &Served, old: &Value, new: &Value) -> bool {
    let mut copy = new.clone();
    for field in ["ownerReferences", "finalizers", "selfLink", "managedFields"] {
        let path = format!("metadata.{field}");
        match old.at(&path) {
            Value::Null => drop(copy.remove_at(&path)),
            value => copy.set_at(&path, value.clone()),
        }
    }
    served.normalise(&mut copy).is_ok() && copy == *old
}
