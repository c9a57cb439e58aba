//! An RBAC permission: a verb on a resource of an API group.
//!
//! Formats a missing permission for the author of an operator, as the `#[rbac(...)]` attribute that grants
//! it.

use std::fmt;

/// A verb on a resource. Its `Display` is `create deployments.apps`; [`Permission::attribute`] returns the
/// attribute that grants it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Permission {
    /// API group; empty for the core group.
    pub group: String,
    /// Plural resource name; with a subresource as `pods/log`.
    pub resource: String,
    /// Verb.
    pub verb: String,
}

impl Permission {
    /// Creates a permission.
    pub fn new(group: impl Into<String>, resource: impl Into<String>, verb: impl Into<String>) -> Self {
        Self { group: group.into(), resource: resource.into(), verb: verb.into() }
    }

    /// The missing permission in the message of a 403 from an authorizer. Returns `None` for other 403s, such
    /// as those of admission and quota.
    ///
    /// ```
    /// use kubewright_apimachinery::permission::Permission;
    ///
    /// let message = r#"pods is forbidden: User "a" cannot list resource "pods" in API group "" at the cluster scope"#;
    /// assert_eq!(Permission::from_forbidden(message), Some(Permission::new("", "pods", "list")));
    /// assert_eq!(Permission::from_forbidden("exceeded quota"), None);
    /// ```
    pub fn from_forbidden(message: &str) -> Option<Self> {
        let (_, rest) = message.split_once("\" cannot ")?;
        let (verb, rest) = rest.split_once(" resource \"")?;
        let (resource, rest) = rest.split_once("\" in API group \"")?;
        let (group, _) = rest.split_once('"')?;
        let is_word = |word: &str| !word.is_empty() && !word.contains(char::is_whitespace);
        (is_word(verb) && is_word(resource)).then(|| Self::new(group, resource, verb))
    }

    /// The attribute that grants the permission.
    ///
    /// ```
    /// # use kubewright_apimachinery::permission::Permission;
    /// assert_eq!(
    ///     Permission::new("apps", "deployments", "create").attribute(),
    ///     r#"#[rbac(groups = "apps", resources = "deployments", verbs = "create")]"#
    /// );
    /// ```
    pub fn attribute(&self) -> String {
        attribute(&self.group, &self.resource, [&*self.verb])
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (plural, subresource) = self.resource.split_once('/').unwrap_or((&self.resource, ""));
        write!(f, "{} {plural}", self.verb)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        if subresource.is_empty() { Ok(()) } else { write!(f, "/{subresource}") }
    }
}

/// The attributes that grant the permissions, sorted, one for each resource.
pub fn attributes<'a>(permissions: impl IntoIterator<Item = &'a Permission>) -> Vec<String> {
    let mut sorted: Vec<&Permission> = permissions.into_iter().collect();
    sorted.sort();
    sorted.dedup();
    let same = |one: &&Permission, other: &&Permission| {
        (&one.group, &one.resource) == (&other.group, &other.resource)
    };
    sorted
        .chunk_by(same)
        .map(|of| attribute(&of[0].group, &of[0].resource, of.iter().map(|it| &*it.verb)))
        .collect()
}

fn attribute<'a>(group: &str, resource: &str, verbs: impl IntoIterator<Item = &'a str>) -> String {
    let verbs: Vec<&str> = verbs.into_iter().collect();
    format!("#[rbac(groups = \"{group}\", resources = \"{resource}\", verbs = \"{}\")]", verbs.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forbidden_error_of_an_authorizer_contains_the_permission() {
        let message = "deployments.apps \"web\" is forbidden: User \"system:serviceaccount:a:b\" cannot get resource \
                       \"deployments/scale\" in API group \"apps\" in the namespace \"a\": RBAC: no role";
        let permission = Permission::from_forbidden(message).unwrap();
        assert_eq!(permission, Permission::new("apps", "deployments/scale", "get"));
        assert_eq!(permission.to_string(), "get deployments.apps/scale");
    }

    #[test]
    fn other_forbidden_errors_contain_no_permission() {
        for message in [
            "",
            "pods \"a\" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1",
            "forbidden: User \"a\" cannot get path \"/metrics\"",
        ] {
            assert_eq!(Permission::from_forbidden(message), None, "{message}");
        }
    }

    #[test]
    fn verbs_on_one_resource_are_one_attribute() {
        let some = [
            Permission::new("", "pods", "list"),
            Permission::new("apps", "deployments", "create"),
            Permission::new("", "pods", "get"),
            Permission::new("", "pods", "list"),
        ];
        assert_eq!(
            attributes(&some),
            [
                r#"#[rbac(groups = "", resources = "pods", verbs = "get, list")]"#,
                r#"#[rbac(groups = "apps", resources = "deployments", verbs = "create")]"#,
            ]
        );
    }
}
