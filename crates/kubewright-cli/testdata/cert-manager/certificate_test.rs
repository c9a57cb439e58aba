//! Tests the controllers of cert-manager's kinds under the role that is generated for them.

use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Secret;
use kubewright::Key;
use kubewright::prelude::*;
use kubewright_envtest::{Environment, eventually, matches_yaml};

use lab::api::cert_manager::v1::{Certificate, Issuer};
use lab::controllers;

const LIMIT: Duration = Duration::from_secs(10);
const CERTIFICATE: &str = include_str!("../../config/samples/cert-manager_v1_certificate.yaml");
const ISSUER: &str = include_str!("../../config/samples/cert-manager_v1_issuer.yaml");

#[tokio::test]
async fn a_certificate_is_issued_when_its_issuer_becomes_ready() -> Result<()> {
    let env = Environment::builder()
        .crd::<Certificate>()
        .crd::<Issuer>()
        .start()
        .await?;
    let (namespace, client) = (env.namespace().await?, env.runtime_client());
    let manager = env.manager("lab")?;
    controllers::cert_manager::certificate::register(&manager)?;
    controllers::cert_manager::issuer::register(&manager)?;
    let running = env.run(manager);
    env.apply_yaml(&namespace, CERTIFICATE).await?;
    let key = Key::namespaced(&namespace, "certificate-sample");
    let condition = async |expected: &str| {
        eventually(LIMIT, async || {
            let certificate = client.get::<Certificate>(&key).await?;
            anyhow::Ok(matches_yaml(&*certificate, expected)?)
        })
        .await
    };
    condition("status: {conditions: [{type: Ready, status: 'False', reason: IssuerNotReady}]}")
        .await?;

    // The sample refers to an Issuer `example`.
    let issuer = ISSUER
        .replace("issuer-sample", "example")
        .replace("{}", "{selfSigned: {}}");
    env.apply_yaml(&namespace, &issuer).await?;
    condition("status: {conditions: [{type: Ready, status: 'True', reason: Ready}]}").await?;
    let secret = client
        .get::<Secret>(&Key::namespaced(&namespace, "example"))
        .await?;
    ensure!(
        secret.owner_references()[0].name == "certificate-sample",
        "{secret:?}"
    );
    assert_eq!(env.forbidden_permissions(), []);
    assert_eq!(env.unused_permissions(), []);
    Ok(running.stop().await?)
}
