//! Authorizes requests and answers access reviews.

use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::selector::FieldSelector;
use kubewright_apimachinery::status::ApiError;
use serde_json::{Value, json};

use super::rbac_index::describe_all;
use super::rule::Rule;
use super::{Action, ActionOn, Authorization, Authz, Decision, forbidden};
use crate::authn::{ANONYMOUS, MASTERS, User};
use crate::request::{Request, Target};

impl Authz {
    /// Whether `user` may perform `action`.
    pub(crate) fn allows(&self, user: &User, action: Action<'_>) -> bool {
        match &self.mode {
            Authorization::AlwaysAllow => true,
            Authorization::Custom(authorizer) => authorizer.allows(user, action),
            Authorization::Rbac => user.is_in(MASTERS) || self.with_rbac(|index| index.allows(user, action)),
        }
    }

    /// As [`Authz::allows`], with the reason.
    pub(crate) fn decide(&self, user: &User, action: Action<'_>) -> Decision {
        match &self.mode {
            Authorization::Rbac if !user.is_in(MASTERS) => self.with_rbac(|index| index.decide(user, action)),
            _ => Decision { allowed: self.allows(user, action), reason: String::new() },
        }
    }

    /// Returns upstream's Forbidden error if `user` may not perform `action`.
    pub(crate) fn check(&self, user: &User, action: Action<'_>) -> Result<(), ApiError> {
        if self.allows(user, action) {
            return Ok(());
        }
        // Evaluate again for the reason; denied requests need not be fast.
        Err(forbidden(user, action, &self.decide(user, action).reason))
    }

    /// Whether `user` is accepted at all. Mode `AlwaysAllow` rejects anonymous requests.
    pub(crate) fn admits(&self, user: &User) -> bool {
        user.name != ANONYMOUS || !matches!(self.mode, Authorization::AlwaysAllow)
    }

    /// Rejects a request that its user may not make.
    pub(crate) fn authorize(&self, request: &Request) -> Result<(), ApiError> {
        // Fast path for administrators.
        if matches!(self.mode, Authorization::Rbac) && request.user.is_in(MASTERS) {
            return Ok(());
        }
        with_action(request, |action| self.check(&request.user, action))
    }

    /// The permissions of a user in a namespace: the status of a SelfSubjectRulesReview.
    pub(crate) fn rules_of(&self, user: &User, namespace: &str) -> Value {
        if !matches!(self.mode, Authorization::Rbac) {
            let [resources, paths] = Rule::everything();
            return rules_status([&resources, &paths].into_iter());
        }
        self.with_rbac(|index| {
            let held = index.held(user, namespace);
            let mut status = rules_status(held.rules.into_iter());
            if let Some(error) = describe_all(&held.unresolved, None) {
                status.set_at("evaluationError", error);
            }
            status
        })
    }
}

fn rules_status<'a>(rules: impl Iterator<Item = &'a Rule> + Clone) -> Value {
    let resource_rules: Vec<Value> = rules
        .clone()
        .filter(|rule| !rule.resources.is_empty())
        .map(|rule| Rule { paths: Box::default(), ..rule.clone() }.to_value())
        .collect();
    let path_rules: Vec<Value> = rules
        .filter(|rule| !rule.paths.is_empty())
        .map(|rule| json!({"verbs": rule.verbs, "nonResourceURLs": rule.paths}))
        .collect();
    json!({"resourceRules": resource_rules, "nonResourceRules": path_rules, "incomplete": false})
}

/// Calls `tell` with the action that a request performs.
pub(crate) fn with_action<T>(request: &Request, tell: impl FnOnce(Action<'_>) -> T) -> T {
    let verb = request.verb();
    let Target::Resource(path) = &request.target else {
        return tell(Action { verb, on: ActionOn::Path(&request.path) });
    };
    let combined;
    let resource = if path.subresource.is_empty() {
        path.resource.as_str()
    } else {
        combined = format!("{}/{}", path.resource, path.subresource);
        &combined
    };
    let selected = selected_name(request);
    let name = selected.as_deref().unwrap_or(&path.name);
    let on = ActionOn::Resource { group: &path.group, resource, namespace: &path.namespace, name };
    tell(Action { verb, on })
}

/// The single name that a list or watch selects: permission for that object is sufficient.
pub(crate) fn selected_name(request: &Request) -> Option<String> {
    let Target::Resource(path) = &request.target else { return None };
    if !path.name.is_empty() || !matches!(request.verb(), "list" | "watch") {
        return None;
    }
    let selector = FieldSelector::parse(request.query.get("fieldSelector")?).ok()?;
    let name = selector.required_value("metadata.name")?;
    let segment = !matches!(name, "." | "..") && !name.contains(['/', '%']);
    segment.then(|| name.to_owned())
}
