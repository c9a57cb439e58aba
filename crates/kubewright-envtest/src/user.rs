//! Users besides the administrator, and their permissions.

use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, RoleRef, Subject};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubewright_runtime::{Client, client};

/// The permissions of a user, in all namespaces.
///
/// ```
/// use kubewright_envtest::Permissions;
///
/// let permissions = Permissions::none().allow("get, list, watch", "", "pods").allow("*", "apps", "deployments, deployments/scale");
/// ```
#[derive(Debug, Clone, Default)]
pub struct Permissions(Vec<PolicyRule>);

impl Permissions {
    /// No permissions besides those of all authenticated users.
    pub fn none() -> Self {
        Self::default()
    }

    /// All permissions.
    pub fn all() -> Self {
        let everything = vec!["*".to_owned()];
        Self(vec![
            PolicyRule {
                api_groups: Some(everything.clone()),
                resources: Some(everything.clone()),
                verbs: everything.clone(),
                ..PolicyRule::default()
            },
            PolicyRule {
                non_resource_urls: Some(everything.clone()),
                verbs: everything,
                ..PolicyRule::default()
            },
        ])
    }

    /// Adds verbs on resources of a group, each a comma-separated list.
    #[must_use]
    pub fn allow(mut self, verbs: &str, group: &str, resources: &str) -> Self {
        self.0.push(PolicyRule {
            api_groups: Some(vec![group.to_owned()]),
            resources: Some(list(resources)),
            verbs: list(verbs),
            ..PolicyRule::default()
        });
        self
    }

    /// Adds a rule.
    #[must_use]
    pub fn rule(mut self, rule: PolicyRule) -> Self {
        self.0.push(rule);
        self
    }

    /// Grants these permissions to a user, with a ClusterRole and a ClusterRoleBinding.
    pub(crate) async fn grant(self, admin: &Client, user: &str) -> Result<(), client::Error> {
        // User names may contain characters that object names may not.
        let name: String = user
            .chars()
            .map(|it| if it.is_ascii_alphanumeric() { it.to_ascii_lowercase() } else { '-' })
            .collect();
        let metadata = ObjectMeta { name: Some(format!("envtest-{name}")), ..ObjectMeta::default() };
        let role = ClusterRole { metadata: metadata.clone(), rules: Some(self.0), ..ClusterRole::default() };
        let binding = ClusterRoleBinding {
            role_ref: RoleRef {
                api_group: Some("rbac.authorization.k8s.io".to_owned()),
                kind: "ClusterRole".to_owned(),
                name: format!("envtest-{name}"),
            },
            subjects: Some(vec![Subject {
                api_group: Some("rbac.authorization.k8s.io".to_owned()),
                kind: "User".to_owned(),
                name: user.to_owned(),
                namespace: None,
            }]),
            metadata,
        };
        admin.apply(&role).await?;
        admin.apply(&binding).await?;
        Ok(())
    }
}

fn list(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|it| !it.is_empty()).map(str::to_owned).collect()
}

/// Impersonates a user.
#[derive(Clone)]
pub(crate) struct As<S> {
    inner: S,
    user: http::HeaderValue,
}

impl<S> As<S> {
    pub(crate) fn new(inner: S, user: http::HeaderValue) -> Self {
        Self { inner, user }
    }
}

impl<S, B> tower_service::Service<http::Request<B>> for As<S>
where
    S: tower_service::Service<http::Request<B>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: http::Request<B>) -> S::Future {
        request.headers_mut().insert("impersonate-user", self.user.clone());
        self.inner.call(request)
    }
}
