//! Servers with a configured version or with given certificates.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Context as _, Result};
use http::Request;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use kubewright_apiserver::certs::{Authority, Identity};
use kubewright_apiserver::serve::{Certificates, ServeError, Serving, kubeconfig};
use kubewright_apiserver::{ApiServer, Options};
use serde_json::Value;

use crate::world::{client, options, server};

async fn get(client: &Client, path: &str) -> Result<Value> {
    let text = client.request_text(Request::get(path).body(Vec::new())?).await?;
    Ok(serde_json::from_str(&text)?)
}

#[tokio::test]
async fn a_server_reports_its_configured_version() -> Result<()> {
    let server = ApiServer::new(Options { version: "1.34.2".parse()?, ..options() });
    for server in [server.fork(), server] {
        let client = client(&server);
        let version = get(&client, "/version").await?;
        assert_eq!(
            (version["minor"].as_str(), version["gitVersion"].as_str(), version["emulationMinor"].as_str()),
            (Some("34"), Some("v1.34.2"), Some("34"))
        );
        for document in ["/openapi/v2", "/openapi/v3/api/v1"] {
            assert_eq!(get(&client, document).await?["info"]["version"], "v1.34.2", "{document}");
        }
    }
    Ok(())
}

const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

fn certificates(authority: &Authority, clients: Option<&Authority>) -> Result<Certificates> {
    let identity = authority.server(&[LOOPBACK.ip()])?;
    Ok(Certificates {
        server: identity.cert_pem.into(),
        key: identity.key_pem.into(),
        clients: clients.map(|authority| authority.pem().into()),
    })
}

async fn connect(serving: &Serving, authority: &Authority, identity: &Identity) -> Result<Client> {
    let yaml = kubeconfig(&format!("https://{}", serving.address()), authority.pem(), identity);
    let options = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(Kubeconfig::from_yaml(&yaml)?, &options).await?;
    config.default_retry = false;
    Ok(Client::try_from(config)?)
}

#[tokio::test]
async fn client_certificates_of_a_given_ca_authenticate() -> Result<()> {
    let (servers, clients) = (Authority::new()?, Authority::new()?);
    let serving = Serving::open_at(server(), LOOPBACK, &certificates(&servers, Some(&clients))?).await?;
    let admin = connect(&serving, &servers, &clients.client("root", &["system:masters"])?).await?;
    assert_eq!(get(&admin, "/api/v1/namespaces/default").await?["metadata"]["name"], "default");
    let nobody = connect(&serving, &servers, &clients.client("jane", &["readers"])?).await?;
    let refused = get(&nobody, "/api/v1/namespaces/default").await.err().context("jane was authorized")?;
    assert!(refused.to_string().contains("User \"jane\" cannot get resource"), "{refused:#}");
    serving.close().await;
    Ok(())
}

#[tokio::test]
async fn without_a_client_ca_all_clients_are_anonymous() -> Result<()> {
    let authority = Authority::new()?;
    let serving = Serving::open_at(server(), LOOPBACK, &certificates(&authority, None)?).await?;
    let admin = connect(&serving, &authority, &authority.client("root", &["system:masters"])?).await?;
    let refused = get(&admin, "/api/v1/namespaces/default").await.err().context("root was authenticated")?;
    assert!(refused.to_string().contains("User \"system:anonymous\" cannot get"), "{refused:#}");
    Ok(())
}

#[tokio::test]
async fn an_invalid_certificate_is_reported_by_name() -> Result<()> {
    let authority = Authority::new()?;
    let good = certificates(&authority, Some(&authority))?;
    for (broken, what) in [
        (Certificates { server: b"nonsense".to_vec(), ..good.clone() }, "the server's certificate"),
        (Certificates { key: Vec::new(), ..good.clone() }, "the key of the server's certificate"),
        (Certificates { clients: Some(Vec::new()), ..good }, "the authority of client certificates"),
    ] {
        let Err(error) = Serving::open_at(server(), LOOPBACK, &broken).await else {
            panic!("{what} was accepted")
        };
        assert!(matches!(error, ServeError::Pem { .. }));
        assert_eq!(error.to_string(), format!("{what} is not valid PEM"));
    }
    Ok(())
}
