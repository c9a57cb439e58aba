//! CertificateSigningRequests: validation, approval and signing.

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use kubewright_apiserver::authn::User;
use kubewright_apiserver::{ApiServer, Controllers, Options};
use rcgen::{CertificateParams, DnType, KeyPair, SanType};
use serde_json::{Value, json};
use x509_parser::prelude::FromDer as _;

use crate::world::{options, server};

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const CLIENT: &str = "kubernetes.io/kube-apiserver-client";
const KUBELET_CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";
const KUBELET_SERVING: &str = "kubernetes.io/kubelet-serving";

async fn send(
    server: &ApiServer,
    user: User,
    method: Method,
    path: &str,
    body: &Value,
) -> Result<(StatusCode, Value)> {
    let media = match method {
        Method::PATCH => "application/merge-patch+json",
        _ => "application/json",
    };
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::CONTENT_TYPE, media)
        .body(Full::new(Bytes::from(body.to_string())))?;
    request.extensions_mut().insert(user);
    let response = server.handle(request).await;
    let status = response.status();
    Ok((status, serde_json::from_slice(&response.into_body().collect().await?.to_bytes())?))
}

/// A request for a new key, as base64-encoded PEM.
fn pem(name: &str, organization: Option<&str>, names: Vec<SanType>) -> Result<String> {
    let mut params = CertificateParams::new(Vec::<String>::new())?;
    params.distinguished_name = rcgen::DistinguishedName::new();
    if let Some(organization) = organization {
        params.distinguished_name.push(DnType::OrganizationName, organization);
    }
    params.distinguished_name.push(DnType::CommonName, name);
    params.subject_alt_names = names;
    Ok(STANDARD.encode(params.serialize_request(&KeyPair::generate()?)?.pem()?))
}

fn request(signer: &str, pem: &str, usages: &[&str]) -> Value {
    json!({"metadata": {"name": "r"}, "spec": {"request": pem, "signerName": signer, "usages": usages}})
}

async fn create(server: &ApiServer, user: User, request: &Value) -> Result<(StatusCode, Value)> {
    send(server, user, Method::POST, REQUESTS, request).await
}

async fn approve(server: &ApiServer) -> Result<Value> {
    let approved = json!({"status": {"conditions": [{"type": "Approved", "status": "True"}]}});
    let (status, answer) =
        send(server, User::admin(), Method::PATCH, &format!("{REQUESTS}/r/approval"), &approved).await?;
    anyhow::ensure!(status == StatusCode::OK, "{answer}");
    read(server).await
}

async fn read(server: &ApiServer) -> Result<Value> {
    Ok(send(server, User::admin(), Method::GET, &format!("{REQUESTS}/r"), &Value::Null).await?.1)
}

fn message(answer: &Value) -> &str {
    answer["message"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn a_request_must_be_well_formed_and_signed_with_its_own_key() -> Result<()> {
    let server = server();
    let good = STANDARD.decode(pem("jane", None, Vec::new())?)?;
    let good = String::from_utf8(good)?;
    // Corrupt the signature, which is at the end.
    let body: String = good.lines().filter(|line| !line.starts_with("---")).collect();
    let mut der = STANDARD.decode(&body)?;
    *der.last_mut().context("empty")? ^= 1;
    let block = |der: &[u8]| {
        let body = STANDARD.encode(der);
        STANDARD.encode(format!(
            "-----BEGIN CERTIFICATE REQUEST-----\n{body}\n-----END CERTIFICATE REQUEST-----\n"
        ))
    };
    for (pem, problem) in [
        (block(&der), "x509: ECDSA verification failure"),
        (block(&[]), "asn1: syntax error: sequence truncated"),
        (block(&der[..40]), "asn1: syntax error: data truncated"),
        (block(b"\x30\x80"), "asn1: syntax error: indefinite length found (not DER)"),
        (STANDARD.encode("nothing"), "PEM block type must be CERTIFICATE REQUEST"),
    ] {
        let (status, answer) =
            create(&server, User::admin(), &request(CLIENT, &pem, &["client auth"])).await?;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
        assert!(message(&answer).ends_with(problem), "{problem}: {}", message(&answer));
    }
    let good = STANDARD.encode(good);
    assert_eq!(
        create(&server, User::admin(), &request(CLIENT, &good, &["client auth"])).await?.0,
        StatusCode::CREATED
    );
    Ok(())
}

#[tokio::test]
async fn a_request_has_its_creator_and_no_field_manager_owns_its_spec() -> Result<()> {
    let server = server();
    let mut body = request("example.com/signer", &pem("jane", None, Vec::new())?, &["client auth"]);
    body["spec"]["username"] = "root".into();
    body["metadata"]["labels"] = json!({"a": "b"});
    let creator = User::authenticated("jane", ["system:masters".to_owned()]);
    let (_, created) = create(&server, creator, &body).await?;
    assert_eq!(created["spec"]["username"], "jane");
    assert_eq!(created["spec"]["groups"], json!(["system:masters", "system:authenticated"]));
    let fields = &created["metadata"]["managedFields"][0]["fieldsV1"];
    assert_eq!(fields, &json!({"f:metadata": {"f:labels": {".": {}, "f:a": {}}}}));
    Ok(())
}

#[tokio::test]
async fn an_approved_client_certificate_is_issued_with_the_subject_of_the_request() -> Result<()> {
    let server = server();
    let mut body =
        request(CLIENT, &pem("jane", Some("dev"), Vec::new())?, &["digital signature", "client auth"]);
    body["spec"]["expirationSeconds"] = 7200.into();
    // As in kube-apiserver, a request without any field of a manager is not tracked later either.
    body["metadata"]["labels"] = json!({"a": "b"});
    create(&server, User::admin(), &body).await?;
    assert!(read(&server).await?["status"].get("certificate").is_none());
    let approved = approve(&server).await?;
    let issued = STANDARD.decode(approved["status"]["certificate"].as_str().context("no certificate")?)?;
    let (_, issued) = x509_parser::pem::parse_x509_pem(&issued)?;
    let issued = issued.parse_x509()?;
    assert_eq!(issued.subject().to_string(), "O=dev, CN=jane");
    let validity = issued.validity();
    assert_eq!(validity.not_after.timestamp() - validity.not_before.timestamp(), 7200 + 300);
    let usage = issued.extended_key_usage()?.context("no usage")?.value;
    assert!(usage.client_auth && !usage.server_auth);
    assert!(issued.key_usage()?.context("no usage")?.value.digital_signature());
    let authority = server.authority()?;
    let (_, authority) = x509_parser::certificate::X509Certificate::from_der(authority.der())?;
    assert_eq!(issued.issuer(), authority.subject());
    let managers: Vec<_> = approved["metadata"]["managedFields"]
        .as_array()
        .context("no managers")?
        .iter()
        .map(|entry| (entry["manager"].as_str(), entry["subresource"].as_str()))
        .collect();
    assert!(managers.contains(&(Some("kube-controller-manager"), Some("status"))), "{managers:?}");
    Ok(())
}

#[tokio::test]
async fn a_signer_rejects_requests_outside_its_rules() -> Result<()> {
    let nodes = Some("system:nodes");
    let dns = || vec![SanType::DnsName("node".try_into().unwrap())];
    let kubelet = ["digital signature", "client auth"];
    let serving = ["digital signature", "server auth"];
    for (signer, pem, usages, why) in [
        (
            CLIENT,
            pem("jane", None, vec![])?,
            &["server auth"][..],
            "invalid usage for client certificate: server auth",
        ),
        (
            CLIENT,
            pem("jane", None, vec![])?,
            &["key encipherment"],
            "missing required usage for client certificate: client auth",
        ),
        (
            KUBELET_CLIENT,
            pem("system:node:a", None, vec![])?,
            &kubelet,
            "subject organization is not system:nodes",
        ),
        (
            KUBELET_CLIENT,
            pem("a", nodes, vec![])?,
            &kubelet,
            "subject common name does not begin with system:node:",
        ),
        (
            KUBELET_CLIENT,
            pem("system:node:a", nodes, dns())?,
            &kubelet,
            "DNS subjectAltNames are not allowed",
        ),
        (
            KUBELET_CLIENT,
            pem("system:node:a", nodes, vec![])?,
            &serving,
            "usages did not match [client auth digital signature key encipherment]",
        ),
        (
            KUBELET_SERVING,
            pem("system:node:a", nodes, vec![])?,
            &serving,
            "DNS or IP subjectAltName is required",
        ),
    ] {
        let server = server();
        create(&server, User::admin(), &request(signer, &pem, usages)).await?;
        let failed = approve(&server).await?;
        let condition = &failed["status"]["conditions"][1];
        assert_eq!(condition["message"], why);
        assert_eq!(
            (&condition["type"], &condition["reason"]),
            (&json!("Failed"), &json!("SignerValidationFailure"))
        );
        assert!(failed["status"].get("certificate").is_none());
    }
    Ok(())
}

#[tokio::test]
async fn a_kubelet_gets_its_serving_certificate_with_its_names() -> Result<()> {
    let server = server();
    let names = vec![SanType::DnsName("node".try_into()?), SanType::IpAddress([10, 0, 0, 7].into())];
    let pem = pem("system:node:a", Some("system:nodes"), names)?;
    let node = User::authenticated("system:node:a", ["system:masters".to_owned()]);
    create(&server, node, &request(KUBELET_SERVING, &pem, &["digital signature", "server auth"])).await?;
    let issued =
        STANDARD.decode(approve(&server).await?["status"]["certificate"].as_str().context("none")?)?;
    let (_, issued) = x509_parser::pem::parse_x509_pem(&issued)?;
    let issued = issued.parse_x509()?;
    let names = issued.subject_alternative_name()?.context("no names")?;
    assert_eq!(names.value.general_names.len(), 2);
    Ok(())
}

#[tokio::test]
async fn only_kubelet_client_certificates_are_approved_without_an_administrator() -> Result<()> {
    let server = server();
    let pem = pem("system:node:a", Some("system:nodes"), Vec::new())?;
    let usages = ["digital signature", "client auth"];
    let masters = User::authenticated("system:node:a", ["system:masters".to_owned()]);
    create(&server, masters.clone(), &request(KUBELET_CLIENT, &pem, &usages)).await?;
    let approved = read(&server).await?;
    assert_eq!(approved["status"]["conditions"][0]["reason"], "AutoApproved");
    assert_eq!(
        approved["status"]["conditions"][0]["message"],
        "Auto approving self kubelet client certificate after SubjectAccessReview."
    );
    assert!(approved["status"].get("certificate").is_some());

    let fork = server.fork();
    send(&fork, User::admin(), Method::DELETE, &format!("{REQUESTS}/r"), &Value::Null).await?;
    create(&fork, masters, &request(CLIENT, &pem, &usages)).await?;
    assert_eq!(read(&fork).await?["status"], json!({}));
    Ok(())
}

#[tokio::test]
async fn without_controllers_no_certificate_is_issued() -> Result<()> {
    let server = ApiServer::new(Options { controllers: Controllers::None, ..options() });
    create(&server, User::admin(), &request(CLIENT, &pem("jane", None, Vec::new())?, &["client auth"]))
        .await?;
    assert!(approve(&server).await?["status"].get("certificate").is_none());
    Ok(())
}

#[tokio::test]
async fn a_request_is_either_approved_or_denied() -> Result<()> {
    let server = server();
    let body = request("example.com/signer", &pem("jane", None, Vec::new())?, &["client auth"]);
    create(&server, User::admin(), &body).await?;
    approve(&server).await?;
    let path = format!("{REQUESTS}/r/approval");
    let both = json!({"status": {"conditions": [
        {"type": "Approved", "status": "True"}, {"type": "Denied", "status": "True"},
    ]}});
    let (_, answer) = send(&server, User::admin(), Method::PATCH, &path, &both).await?;
    assert!(
        message(&answer).ends_with(
            "status.conditions: Invalid value: \"Denied\": Approved and Denied conditions are mutually exclusive"
        ),
        "{answer}"
    );
    let none = json!({"status": {"conditions": []}});
    let (_, answer) = send(&server, User::admin(), Method::PATCH, &path, &none).await?;
    assert!(
        message(&answer).ends_with("updates may not remove a condition of type \"Approved\""),
        "{answer}"
    );
    Ok(())
}
