//! Authentication by certificate, bearer token or anonymously, and what each may access.

use std::time::Duration;

use anyhow::{Context as _, Result};
use bytes::Bytes;
use http::{Request, StatusCode, header};
use http_body_util::{BodyExt as _, Empty, Full};
use k8s_openapi::api::authentication::v1::{SelfSubjectReview, TokenReview, UserInfo};
use k8s_openapi::api::authorization::v1::SelfSubjectAccessReview;
use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use kube::api::{Api, ListParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use kubewright_apiserver::ApiServer;
use kubewright_apiserver::authn::User;
use kubewright_apiserver::certs::{Authority, Identity};
use kubewright_apiserver::serve::{self, Listening};
use serde_json::{Value, json};

use crate::transports::{connect, tls_client};
use crate::world::{client, object, server};

async fn whoami(client: &Client) -> Result<UserInfo> {
    let reviews: Api<SelfSubjectReview> = Api::all(client.clone());
    let review = reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await?;
    review.status.and_then(|status| status.user_info).context("the review has no status")
}

fn name_and_groups(user: &UserInfo) -> (&str, Vec<&str>) {
    let groups = user.groups.iter().flatten().map(String::as_str).collect();
    (user.username.as_deref().unwrap_or_default(), groups)
}

/// kube's client over TLS with another client certificate, a token, or no credentials.
async fn tls_client_as(
    listening: &Listening,
    identity: Option<&Identity>,
    token: Option<&str>,
) -> Result<Client> {
    let kubeconfig = serve::kubeconfig(
        &listening.url(),
        listening.authority().pem(),
        identity.unwrap_or(listening.admin()),
    );
    let mut kubeconfig = Kubeconfig::from_yaml(&kubeconfig)?;
    for user in kubeconfig.auth_infos.iter_mut().filter_map(|named| named.auth_info.as_mut()) {
        if identity.is_none() {
            user.client_certificate_data = None;
            user.client_key_data = None;
        }
        user.token = token.map(|token| token.to_owned().into());
    }
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    config.default_retry = false;
    Ok(Client::try_from(config)?)
}

#[tokio::test]
async fn the_kubeconfig_authenticates_as_administrator() -> Result<()> {
    let listening = Listening::open(server(), 0).await?;
    let user = whoami(&tls_client(&listening).await?).await?;
    assert_eq!(name_and_groups(&user), ("admin", vec!["system:masters", "system:authenticated"]));
    listening.close().await;
    Ok(())
}

#[tokio::test]
async fn a_client_certificate_names_its_user_and_groups() -> Result<()> {
    let listening = Listening::open(server(), 0).await?;
    let identity = listening.authority().client("jane", &["dev", "ops"])?;
    let user = whoami(&tls_client_as(&listening, Some(&identity), None).await?).await?;
    assert_eq!(name_and_groups(&user), ("jane", vec!["dev", "ops", "system:authenticated"]));
    assert!(user.extra.unwrap_or_default().contains_key("authentication.kubernetes.io/credential-id"));
    listening.close().await;
    Ok(())
}

#[tokio::test]
async fn a_certificate_of_another_ca_is_rejected() -> Result<()> {
    let listening = Listening::open(server(), 0).await?;
    let stranger = Authority::new()?.client("admin", &["system:masters"])?;
    let client = tls_client_as(&listening, Some(&stranger), None).await?;
    assert!(whoami(&client).await.is_err());
    assert!(client.apiserver_version().await.is_err());
    listening.close().await;
    Ok(())
}

#[tokio::test]
async fn a_bearer_token_authenticates_its_user() -> Result<()> {
    let server = server();
    server.add_token("s3cret", User::authenticated("robot", ["team".to_owned()]));
    let listening = Listening::open(server, 0).await?;
    let robot = tls_client_as(&listening, None, Some("s3cret")).await?;
    assert_eq!(name_and_groups(&whoami(&robot).await?), ("robot", vec!["team", "system:authenticated"]));
    // The robot has no permissions.
    let maps: Api<ConfigMap> = Api::default_namespaced(robot);
    let refused = maps.list(&ListParams::default()).await.expect_err("robot has no permissions");
    let kube::Error::Api(status) = refused else { panic!("{refused:?}") };
    assert_eq!((status.code, status.reason.as_str()), (403, "Forbidden"));

    let liar = tls_client_as(&listening, None, Some("wrong")).await?;
    let refused = whoami(&liar).await.expect_err("the token is unknown");
    let Some(kube::Error::Api(status)) = refused.downcast_ref() else { panic!("{refused:?}") };
    assert_eq!((status.code, status.reason.as_str()), (401, "Unauthorized"));
    // An invalid token is rejected even for paths open to anonymous users.
    assert!(liar.apiserver_version().await.is_err());
    listening.close().await;
    Ok(())
}

#[tokio::test]
async fn an_anonymous_user_can_read_only_health_and_version() -> Result<()> {
    let listening = Listening::open(server(), 0).await?;
    let mut sender = connect(&listening, None).await?;
    let mut get = async |path: &str| -> Result<(StatusCode, String)> {
        let answer = sender.send(Request::get(path).body(Vec::new())?).await?;
        let status = answer.status();
        Ok((status, String::from_utf8(answer.into_body().collect().await?.to_bytes().to_vec())?))
    };
    for open in ["/healthz", "/livez", "/readyz", "/version", "/livez?verbose"] {
        assert_eq!(get(open).await?.0, StatusCode::OK, "{open}");
    }
    for closed in [
        "/",
        "/api",
        "/apis",
        "/api/v1",
        "/apis/apps/v1",
        "/api/v1/namespaces/default",
        "/api/v1/namespaces/default/configmaps?watch=1",
        "/healthz/../api/v1/secrets",
        "/healthz%2f..%2fapi/v1/secrets",
        "/nothing",
    ] {
        let (status, body) = get(closed).await?;
        assert_eq!(status, StatusCode::FORBIDDEN, "{closed}: {body}");
        let body: Value = serde_json::from_str(&body)?;
        assert_eq!(
            (body["kind"].as_str(), body["reason"].as_str()),
            (Some("Status"), Some("Forbidden")),
            "{closed}"
        );
    }
    let (_, body) = get("/api/v1/namespaces/default/secrets").await?;
    let body: Value = serde_json::from_str(&body)?;
    assert_eq!(
        body["message"],
        "secrets is forbidden: User \"system:anonymous\" cannot list resource \"secrets\" in API group \"\" in the \
         namespace \"default\""
    );
    listening.close().await;
    Ok(())
}

#[tokio::test]
async fn an_in_process_request_carries_its_user_as_an_extension() -> Result<()> {
    let server = server();
    assert_eq!(name_and_groups(&whoami(&client(&server)).await?).0, "admin");
    let ask = async |user: User| {
        let mut request = Request::get("/api/v1/namespaces").body(Empty::<Bytes>::new())?;
        request.extensions_mut().insert(user);
        anyhow::Ok(server.handle(request).await.status())
    };
    assert_eq!(ask(User::anonymous()).await?, StatusCode::FORBIDDEN);
    assert_eq!(ask(User::authenticated("jane", [])).await?, StatusCode::FORBIDDEN);
    assert_eq!(ask(User::authenticated("jane", ["system:masters".to_owned()])).await?, StatusCode::OK);
    Ok(())
}

#[tokio::test]
async fn access_reviews_are_answered() -> Result<()> {
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client(&server()));
    let review = object(
        json!({"spec": {"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "default"}}}),
    );
    let answer = reviews.create(&PostParams::default(), &review).await?;
    assert!(answer.status.is_some_and(|status| status.allowed));
    Ok(())
}

async fn with_token(server: &ApiServer, token: &str) -> Result<(StatusCode, Value)> {
    let request = Request::post("/apis/authentication.k8s.io/v1/selfsubjectreviews")
        .header(header::AUTHORIZATION, format!("Bearer {token}"))
        .header(header::CONTENT_TYPE, "application/json")
        .body(Full::new(Bytes::from_static(
            b"{\"kind\":\"SelfSubjectReview\",\"apiVersion\":\"authentication.k8s.io/v1\"}",
        )))?;
    let answer = server.handle(request).await;
    let status = answer.status();
    let body = answer.into_body().collect().await?.to_bytes();
    Ok((status, serde_json::from_slice(&body)?))
}

#[tokio::test(start_paused = true)]
async fn a_service_account_token_is_valid_until_it_expires() -> Result<()> {
    let server = server();
    let client = client(&server);
    let accounts: Api<ServiceAccount> = Api::default_namespaced(client.clone());
    accounts.create(&PostParams::default(), &object(json!({"metadata": {"name": "robot"}}))).await?;
    let wanted = object(json!({"spec": {"audiences": [], "expirationSeconds": 600}}));
    let granted = accounts.create_token_request("robot", &PostParams::default(), &wanted).await?;
    let token = granted.status.and_then(|status| status.token).context("no token")?;

    let (status, review) = with_token(&server, &token).await?;
    assert_eq!(status, StatusCode::CREATED, "{review}");
    assert_eq!(review["status"]["userInfo"]["username"], "system:serviceaccount:default:robot");
    let groups = &review["status"]["userInfo"]["groups"];
    assert!(
        groups.as_array().is_some_and(|groups| groups.contains(&"system:serviceaccounts:default".into())),
        "{groups}"
    );

    let reviews: Api<TokenReview> = Api::all(client);
    let review = reviews.create(&PostParams::default(), &object(json!({"spec": {"token": token}}))).await?;
    assert_eq!(review.status.and_then(|status| status.authenticated), Some(true));

    // The accepted clock skew is one minute.
    tokio::time::sleep(Duration::from_secs(661)).await;
    assert_eq!(with_token(&server, &token).await?.0, StatusCode::UNAUTHORIZED);
    Ok(())
}
