//! Service account tokens: their claims, and when they become invalid.

use std::time::Duration;

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use kubewright_apiserver::ApiServer;
use kubewright_apiserver::authn::User;
use kubewright_apiserver::serve::Listening;
use serde_json::{Value, json};

use crate::world::{options, server};

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const IN_CLUSTER: &str = "https://kubernetes.default.svc";

async fn send(
    server: &ApiServer,
    method: Method,
    path: &str,
    token: &str,
    body: &Value,
) -> Result<(StatusCode, Value)> {
    let mut request =
        Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, "application/json");
    if !token.is_empty() {
        request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
    }
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let response = server.handle(request.body(Full::new(Bytes::from(body)))?).await;
    let status = response.status();
    let bytes = response.into_body().collect().await?.to_bytes();
    Ok((status, serde_json::from_slice(&bytes).unwrap_or_default()))
}

/// Creates an object as the administrator. Returns its UID.
async fn create(server: &ApiServer, path: &str, body: Value) -> Result<String> {
    let (status, created) = send(server, Method::POST, path, "", &body).await?;
    anyhow::ensure!(status == StatusCode::CREATED, "{created}");
    Ok(created["metadata"]["uid"].as_str().context("no uid")?.to_owned())
}

async fn account(server: &ApiServer) -> Result<String> {
    create(server, ACCOUNTS, json!({"metadata": {"name": "robot"}})).await
}

async fn delete(server: &ApiServer, path: &str) -> Result<()> {
    let (status, answer) = send(server, Method::DELETE, path, "", &json!({"gracePeriodSeconds": 0})).await?;
    anyhow::ensure!(status == StatusCode::OK, "{answer}");
    Ok(())
}

async fn request_token(server: &ApiServer, spec: Value) -> Result<(StatusCode, Value)> {
    send(server, Method::POST, &format!("{ACCOUNTS}/robot/token"), "", &json!({"spec": spec})).await
}

async fn token(server: &ApiServer, spec: Value) -> Result<String> {
    let (status, answer) = request_token(server, spec).await?;
    anyhow::ensure!(status == StatusCode::CREATED, "{answer}");
    Ok(answer["status"]["token"].as_str().context("no token")?.to_owned())
}

async fn review(server: &ApiServer, token: &str, audiences: &[&str]) -> Result<Value> {
    let body = json!({"spec": {"token": token, "audiences": audiences}});
    let (_, answer) =
        send(server, Method::POST, "/apis/authentication.k8s.io/v1/tokenreviews", "", &body).await?;
    Ok(answer["status"].clone())
}

/// The status of a request with a token. Every authenticated user may read discovery.
async fn used(server: &ApiServer, token: &str) -> Result<StatusCode> {
    Ok(send(server, Method::GET, "/api", token, &Value::Null).await?.0)
}

fn claims(token: &str) -> Value {
    let payload = token.split('.').nth(1).expect("a token has three parts");
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).expect("base64")).expect("JSON")
}

#[tokio::test(start_paused = true)]
async fn a_token_names_its_account_issuer_audiences_and_times() -> Result<()> {
    let server = server();
    let uid = account(&server).await?;
    let claims = claims(&token(&server, json!({"audiences": ["a", "b"], "expirationSeconds": 700})).await?);
    assert_eq!(claims["iss"], IN_CLUSTER);
    assert_eq!(claims["sub"], "system:serviceaccount:default:robot");
    assert_eq!(claims["aud"], json!(["a", "b"]));
    assert_eq!(claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap(), 700);
    assert_eq!(claims["nbf"], claims["iat"]);
    assert_eq!(
        claims["kubernetes.io"],
        json!({"namespace": "default", "serviceaccount": {"name": "robot", "uid": uid}})
    );
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_token_stops_working_when_it_expires() -> Result<()> {
    let server = server();
    account(&server).await?;
    let token = token(&server, json!({"expirationSeconds": 600})).await?;
    // As in kube-apiserver, the accepted clock skew is one minute.
    tokio::time::sleep(Duration::from_mins(11)).await;
    assert_eq!(used(&server, &token).await?, StatusCode::OK);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(used(&server, &token).await?, StatusCode::UNAUTHORIZED);
    let status = review(&server, &token, &[]).await?;
    assert_eq!(status["error"], "[invalid bearer token, service account token has expired]");
    Ok(())
}

#[tokio::test]
async fn a_token_stops_working_when_its_account_is_deleted_or_created_again() -> Result<()> {
    let server = server();
    let first = account(&server).await?;
    let token = token(&server, json!({})).await?;
    assert_eq!(used(&server, &token).await?, StatusCode::OK);
    delete(&server, &format!("{ACCOUNTS}/robot")).await?;
    assert_eq!(used(&server, &token).await?, StatusCode::UNAUTHORIZED);
    assert_eq!(
        review(&server, &token, &[]).await?["error"],
        "[invalid bearer token, serviceaccounts \"robot\" not found]"
    );
    let second = account(&server).await?;
    assert_eq!(used(&server, &token).await?, StatusCode::UNAUTHORIZED);
    assert_eq!(
        review(&server, &token, &[]).await?["error"],
        format!("[invalid bearer token, service account UID ({second}) does not match claim ({first})]")
    );
    Ok(())
}

#[tokio::test]
async fn a_token_stops_working_when_the_object_that_it_is_bound_to_is_deleted() -> Result<()> {
    let server = server();
    account(&server).await?;
    let pod = json!({
        "metadata": {"name": "bound"},
        "spec": {"serviceAccountName": "robot", "containers": [{"name": "c", "image": "i"}]},
    });
    let named = json!({"metadata": {"name": "bound"}});
    for (kind, path, body) in [
        ("Pod", "/api/v1/namespaces/default/pods", pod),
        ("Secret", "/api/v1/namespaces/default/secrets", named.clone()),
        ("Node", "/api/v1/nodes", named),
    ] {
        let uid = create(&server, path, body.clone()).await?;
        let reference = json!({"kind": kind, "apiVersion": "v1", "name": "bound", "uid": uid});
        let token = token(&server, json!({"boundObjectRef": reference})).await?;
        let lower = kind.to_lowercase();
        assert_eq!(claims(&token)["kubernetes.io"][&lower], json!({"name": "bound", "uid": uid}));
        assert_eq!(used(&server, &token).await?, StatusCode::OK, "{kind}");
        delete(&server, &format!("{path}/bound")).await?;
        assert_eq!(used(&server, &token).await?, StatusCode::UNAUTHORIZED, "{kind}");
        let error = "[invalid bearer token, service account token has been invalidated]";
        assert_eq!(review(&server, &token, &[]).await?["error"], error);
        let again = create(&server, path, body).await?;
        let error = format!(
            "[invalid bearer token, {lower} UID ({again}) does not match service account {lower} ref claim ({uid})]"
        );
        assert_eq!(review(&server, &token, &[]).await?["error"], error);
    }
    Ok(())
}

#[tokio::test]
async fn a_token_is_not_bound_to_an_object_that_is_missing_or_of_another_account() -> Result<()> {
    let server = server();
    account(&server).await?;
    let refused = async |reference: Value| -> Result<(u16, String)> {
        let (status, answer) = request_token(&server, json!({"boundObjectRef": reference})).await?;
        Ok((status.as_u16(), answer["message"].as_str().unwrap_or_default().to_owned()))
    };
    assert_eq!(
        refused(json!({"kind": "Pod", "apiVersion": "v1", "name": "missing"})).await?,
        (404, "pods \"missing\" not found".to_owned())
    );
    assert_eq!(
        refused(json!({"kind": "Pod", "apiVersion": "v1"})).await?,
        (400, "Name parameter required.".to_owned())
    );
    assert_eq!(
        refused(json!({"kind": "Pod", "apiVersion": "v1", "name": "a/b"})).await?,
        (400, "Name parameter invalid: \"a/b\": may not contain '/'".to_owned())
    );
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    create(&server, "/api/v1/namespaces/default/pods", pod).await?;
    let (code, message) = refused(json!({"kind": "Pod", "apiVersion": "v1", "name": "p"})).await?;
    assert_eq!(code, 400);
    assert!(message.contains("to pod running with different serviceaccount name."), "{message}");
    assert_eq!(
        refused(json!({"kind": "ConfigMap", "apiVersion": "v1", "name": "c"})).await?,
        (400, "cannot bind token to object of type /v1, Kind=ConfigMap".to_owned())
    );
    Ok(())
}

#[tokio::test]
async fn a_token_is_valid_for_its_audiences_only() -> Result<()> {
    let server = server();
    account(&server).await?;
    let token = token(&server, json!({"audiences": ["vault", "bank"]})).await?;
    assert_eq!(used(&server, &token).await?, StatusCode::UNAUTHORIZED);
    assert_eq!(
        review(&server, &token, &[]).await?["error"],
        format!(
            "[invalid bearer token, token audiences [\"vault\" \"bank\"] is invalid for the target audiences [\"{IN_CLUSTER}\"]]"
        )
    );
    let status = review(&server, &token, &["other", "vault"]).await?;
    assert_eq!((&status["authenticated"], &status["audiences"]), (&json!(true), &json!(["vault"])));
    assert_eq!(status["user"]["username"], "system:serviceaccount:default:robot");
    let id = format!("JTI={}", claims(&token)["jti"].as_str().context("no id")?);
    assert_eq!(status["user"]["extra"]["authentication.kubernetes.io/credential-id"], json!([id]));
    Ok(())
}

#[tokio::test]
async fn a_static_token_is_valid_for_the_servers_audiences_only() -> Result<()> {
    let server = server();
    server.add_token("s3cret", User::authenticated("jane", []));
    assert_eq!(review(&server, "s3cret", &[]).await?["audiences"], json!([IN_CLUSTER]));
    assert_eq!(review(&server, "s3cret", &["vault"]).await?["error"], "invalid bearer token");
    Ok(())
}

#[tokio::test]
async fn a_token_of_another_server_is_rejected() -> Result<()> {
    let (one, other) = (server(), server());
    account(&one).await?;
    account(&other).await?;
    let token = token(&one, json!({})).await?;
    assert_eq!(used(&other, &token).await?, StatusCode::UNAUTHORIZED);
    assert_eq!(review(&other, &token, &[]).await?["error"], "invalid bearer token");
    // A fork has the same accounts.
    assert_eq!(used(&one.fork(), &token).await?, StatusCode::OK);
    Ok(())
}

#[tokio::test]
async fn tokens_survive_a_restart_on_another_port() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (server, _) = ApiServer::open(folder.path(), options())?;
    let listening = Listening::open(server.clone(), 0).await?;
    let (url, ca) = (listening.url(), listening.authority().pem().to_owned());
    account(&server).await?;
    let token = token(&server, json!({})).await?;
    assert_eq!(claims(&token)["iss"], format!("{url}/"));
    listening.close().await;
    server.close()?;
    drop(server);

    let (server, _) = ApiServer::open(folder.path(), options())?;
    let listening = Listening::open(server.clone(), 0).await?;
    assert_eq!(used(&server, &token).await?, StatusCode::OK);
    assert_eq!(listening.authority().pem(), ca);
    listening.close().await;
    Ok(())
}

#[tokio::test]
async fn discovery_has_the_key_of_the_tokens() -> Result<()> {
    let server = server();
    account(&server).await?;
    let token = token(&server, json!({})).await?;
    let header = token.split('.').next().context("no header")?;
    let header: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(header)?)?;

    let path = "/.well-known/openid-configuration";
    let (status, document) = send(&server, Method::GET, path, "", &Value::Null).await?;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(document["issuer"], IN_CLUSTER);
    assert_eq!(document["jwks_uri"], format!("{IN_CLUSTER}/openid/v1/jwks"));
    assert_eq!(document["id_token_signing_alg_values_supported"], json!([header["alg"]]));
    let (status, keys) = send(&server, Method::GET, "/openid/v1/jwks", "", &Value::Null).await?;
    assert_eq!(status, StatusCode::OK);
    assert_eq!((&keys["keys"][0]["kid"], &keys["keys"][0]["alg"]), (&header["kid"], &header["alg"]));
    // Service accounts may read both, anonymous users may not.
    assert_eq!(send(&server, Method::GET, path, &token, &Value::Null).await?.0, StatusCode::OK);
    Ok(())
}
