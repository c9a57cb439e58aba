//! Users besides the administrator are authorized by RBAC.

use anyhow::{Context as _, Result};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use kubewright_envtest::{Environment, Mode, OperatorKubeconfigError, Permissions};

async fn environment() -> Result<Environment> {
    let env = Environment::builder().mode(Mode::Embedded).start().await?;
    env.apply_yaml("default", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}").await?;
    Ok(env)
}

fn code(error: kube::Error) -> Option<u16> {
    match error {
        kube::Error::Api(status) => Some(status.code),
        _ => None,
    }
}

#[tokio::test]
async fn a_user_has_only_the_granted_permissions() -> Result<()> {
    let env = environment().await?;
    let reader = env.user("reader", Permissions::none().allow("get, list", "", "configmaps")).await?;
    let maps: Api<ConfigMap> = Api::default_namespaced(reader.clone());
    assert_eq!(maps.get("a").await?.metadata.name.as_deref(), Some("a"));
    let refused = maps.delete("a", &DeleteParams::default()).await.err().context("it was deleted")?;
    let message = refused.to_string();
    assert!(message.contains(r#"User "reader" cannot delete resource "configmaps""#), "{message}");
    assert_eq!(code(refused), Some(403));
    let secrets: Api<Secret> = Api::default_namespaced(reader);
    assert_eq!(secrets.list(&ListParams::default()).await.err().and_then(code), Some(403));
    assert_eq!(env.faults().count(|request| request.user == "reader" && request.code == Some(403)), 2);
    Ok(())
}

#[tokio::test]
async fn users_have_separate_permissions_which_can_be_replaced() -> Result<()> {
    let env = environment().await?;
    let nobody = env.user("nobody", Permissions::none()).await?;
    let everybody = env.user("someone@example.com", Permissions::all()).await?;
    let list = async |client: &kube::Client| {
        let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
        maps.list(&ListParams::default()).await.map(|maps| maps.items.len()).map_err(code)
    };
    assert_eq!(list(&nobody).await, Err(Some(403)));
    assert!(list(&everybody).await.is_ok_and(|maps| maps > 0));
    let nobody = env.user("nobody", Permissions::none().allow("list", "", "configmaps")).await?;
    assert!(list(&nobody).await.is_ok());
    Ok(())
}

const ROLES: &str = "
apiVersion: v1
kind: ServiceAccount
metadata: {name: controller-manager, namespace: system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: manager-role}
rules:
- {apiGroups: [''], resources: [configmaps], verbs: [get, list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: manager-rolebinding}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: manager-role}
subjects: [{kind: ServiceAccount, name: controller-manager, namespace: system}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: leader-election-role}
rules:
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create, get, update]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: leader-election-rolebinding, namespace: system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: leader-election-role}
subjects: [{kind: ServiceAccount, name: controller-manager, namespace: system}]
";

#[tokio::test]
async fn an_operator_process_has_the_permissions_of_its_roles_only() -> Result<()> {
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("roles.yaml"), ROLES)?;
    let kustomization =
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [roles.yaml]\n";
    std::fs::write(folder.path().join("kustomization.yaml"), kustomization)?;
    let env = Environment::builder().mode(Mode::Embedded).https().start().await?;
    let namespace = env.namespace().await?;
    env.apply_yaml(&namespace, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}").await?;

    let file = env.operator_kubeconfig(folder.path(), &namespace).await?;
    let config = kube::config::Kubeconfig::read_from(file)?;
    let options = kube::config::KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(config, &options).await?;
    assert_eq!(config.default_namespace, namespace);
    let operator = kube::Client::try_from(config)?;

    let maps: Api<ConfigMap> = Api::default_namespaced(operator.clone());
    assert_eq!(maps.get("a").await?.metadata.name.as_deref(), Some("a"));
    let refused = maps.delete("a", &DeleteParams::default()).await.err().context("it was deleted")?;
    let user = format!("system:serviceaccount:{namespace}:controller-manager");
    let message = refused.to_string();
    assert!(message.contains(&format!("User \"{user}\" cannot delete resource \"configmaps\"")), "{message}");
    assert_eq!(code(refused), Some(403));
    // The Role is valid in the operator's namespace only.
    let lease = |namespace: &str| Api::<Lease>::namespaced(operator.clone(), namespace);
    assert!(lease(&namespace).get_opt("a").await?.is_none());
    assert_eq!(lease("default").get_opt("a").await.err().and_then(code), Some(403));
    Ok(())
}

#[tokio::test]
async fn an_operator_kubeconfig_needs_a_listening_server_and_one_service_account() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let quiet = environment().await?;
    let error = quiet.operator_kubeconfig(folder.path(), "default").await.unwrap_err();
    assert!(matches!(error, OperatorKubeconfigError::NoKubeconfig), "{error}");
    let env = Environment::builder().mode(Mode::Embedded).https().start().await?;
    let error = env.operator_kubeconfig(folder.path(), "default").await.unwrap_err();
    assert!(error.to_string().ends_with(" has 0 ServiceAccounts, expected one"), "{error}");
    Ok(())
}
