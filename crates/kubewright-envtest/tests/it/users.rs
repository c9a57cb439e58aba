//! Users besides the administrator are authorized by RBAC.

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use kubewright_envtest::{Environment, Mode, Permissions};

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
