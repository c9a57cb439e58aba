//! The API server of the scorecard, with the CRDs of the bundle.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use bytes::Bytes;
use http::Request;
use http::header::CONTENT_TYPE;
use http_body_util::{BodyExt as _, Full};
use kube::core::GroupVersionKind;
use kube::discovery::{self, Scope};
use kubewright_apiserver::{ApiServer, Options};
use serde_json::{Value, json};

use super::Contents;
use crate::delivery::rendered::Object;

/// The namespace of namespaced objects.
const NAMESPACE: &str = "scorecard";

/// An API server in this process.
#[expect(clippy::struct_field_names, reason = "the field is the API server of the scorecard")]
pub(crate) struct Server {
    server: ApiServer,
    client: kube::Client,
    /// CRDs that the server does not accept, with the reason.
    refused: BTreeMap<String, String>,
}

/// The response of the server to an object.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// With warnings.
    Accepted(Vec<String>),
    Rejected(String),
    /// It does not serve the kind.
    Unknown,
}

impl Server {
    /// Starts a server and installs the CRDs of a bundle.
    pub(crate) async fn start(bundle: &Contents) -> Result<Self> {
        let server = ApiServer::new(Options::default());
        let client = kube::Client::new(server.clone(), NAMESPACE);
        let mut started = Self { server, client, refused: BTreeMap::new() };
        let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE } });
        let answer = started.create(&namespace, false).await.context("cannot create a namespace")?;
        if let Answer::Rejected(error) = answer {
            anyhow::bail!("cannot create a namespace: {error}");
        }
        for definition in &bundle.definitions {
            if let Answer::Rejected(error) = started.create(definition.value(), false).await? {
                started.refused.insert(definition.name().to_owned(), error);
            }
        }
        Ok(started)
    }

    /// CRDs that the server does not accept, with the reason.
    pub(super) fn refused_definitions(&self) -> impl Iterator<Item = (&String, &String)> {
        self.refused.iter()
    }

    /// Asks whether the server accepts an object, with strict validation of its fields.
    pub(super) async fn dry_run(&self, object: &Value) -> Answer {
        self.create(object, true).await.unwrap_or_else(|error| Answer::Rejected(format!("{error:#}")))
    }

    async fn create(&self, object: &Value, dry_run: bool) -> Result<Answer> {
        let named = match Object::new(object.clone()) {
            Ok(named) => named,
            Err(error) => return Ok(Answer::Rejected(error.to_string())),
        };
        let kind: GroupVersionKind = named.group_version_kind();
        let Ok((resource, capabilities)) = discovery::pinned_kind(&self.client, &kind).await else {
            return Ok(Answer::Unknown);
        };
        let mut object = object.clone();
        let namespace = (capabilities.scope == Scope::Namespaced).then_some(NAMESPACE);
        if let Some(namespace) = namespace {
            object["metadata"]["namespace"] = namespace.into();
        }
        let path = resource_path(&resource, namespace);
        let dry_run = if dry_run { "&dryRun=All" } else { "" };
        let request = Request::post(format!("{path}?fieldValidation=Strict{dry_run}"))
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(object.to_string())))
            .context("cannot build a request")?;
        let response = self.server.handle(request).await;
        let warnings = response.headers().get_all("warning").iter();
        // `299 - "text"`.
        let warnings: Vec<String> = warnings
            .filter_map(|warning| warning.to_str().ok())
            .map(|warning| warning.trim_start_matches("299 - ").trim_matches('"').to_owned())
            .collect();
        let is_success = response.status().is_success();
        let body =
            response.into_body().collect().await.map_err(|error| anyhow::anyhow!("{error}"))?.to_bytes();
        if is_success {
            return Ok(Answer::Accepted(warnings));
        }
        let status: Value = serde_json::from_slice(&body).unwrap_or_default();
        let message = status["message"].as_str().map(str::to_owned);
        Ok(Answer::Rejected(message.unwrap_or_else(|| String::from_utf8_lossy(&body).into_owned())))
    }
}

fn resource_path(resource: &kube::discovery::ApiResource, namespace: Option<&str>) -> String {
    let root =
        if resource.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", resource.group) };
    let namespace = namespace.map(|namespace| format!("/namespaces/{namespace}")).unwrap_or_default();
    format!("{root}/{}{namespace}/{}", resource.version, resource.plural)
}
