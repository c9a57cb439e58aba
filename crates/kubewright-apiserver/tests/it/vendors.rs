//! CRDs of real projects: installed as shipped, and used by their schemas.

mod packages;
mod samples;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use http::{Method, Request, header};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, ListParams};
use kube::core::Status;
use kube::discovery::Discovery;
use kube::runtime::conditions;
use kube::runtime::wait::Condition as _;
use kube::{Client, ResourceExt as _};
use kubewright_apiserver::ApiServer;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::world::{client, server, soon};
use packages::{Vendored, all, written_by_people};
use samples::{Fill, mistakes, sample};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A version of a vendor's CRD.
struct Kind<'a> {
    definition: &'a Value,
    version: &'a Value,
}

impl Kind<'_> {
    fn name(&self) -> String {
        format!("{} {}", self.definition["metadata"]["name"], self.version["name"])
    }

    fn schema(&self) -> &Value {
        &self.version["schema"]["openAPIV3Schema"]
    }

    /// Only objects of the storage version keep all fields.
    fn is_stored(&self) -> bool {
        self.version["storage"] == true
    }

    fn has_status(&self) -> bool {
        self.version["subresources"]["status"].is_object()
    }

    /// The defaulted status of an object without status. Defaults are those of the storage version.
    fn default_status(&self) -> Option<&Value> {
        let versions = self.definition["spec"]["versions"].as_array()?;
        let stored = versions.iter().find(|version| version["storage"] == true)?;
        stored["schema"]["openAPIV3Schema"]["properties"]["status"].get("default")
    }

    /// Records fields of a sent object that were not returned.
    fn compare(&self, sent: &Value, got: &Value, problems: &mut Vec<String>) {
        if self.is_stored() {
            lost(sent, got, &self.name(), problems);
        }
    }

    fn path(&self) -> String {
        let spec = &self.definition["spec"];
        let scope = if spec["scope"] == "Namespaced" { "/namespaces/default" } else { "" };
        format!("/apis/{}{scope}/{}", self.api_version(), text(&spec["names"]["plural"]))
    }

    fn api_version(&self) -> String {
        format!("{}/{}", text(&self.definition["spec"]["group"]), text(&self.version["name"]))
    }

    fn object(&self, name: &str, fill: Fill) -> Value {
        let mut object = sample(self.schema(), fill);
        object["apiVersion"] = self.api_version().into();
        object["kind"] = self.definition["spec"]["names"]["kind"].clone();
        object["metadata"] = json!({"name": name});
        object
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// All served versions of all CRDs.
fn kinds() -> impl Iterator<Item = Kind<'static>> {
    all().iter().flat_map(|Vendored { object: definition, .. }| {
        let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
        versions.filter(|version| version["served"] == true).map(move |version| Kind { definition, version })
    })
}

async fn send(client: &Client, method: Method, path: &str, body: &Value) -> kube::Result<Value> {
    let content = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
    let request = Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, content);
    client.request(request.body(body.to_string().into_bytes()).map_err(kube::Error::HttpError)?).await
}

/// A server with all CRDs installed.
async fn installed() -> Result<ApiServer> {
    static INSTALLED: OnceCell<ApiServer> = OnceCell::const_new();
    let install = || async {
        let server = server();
        for Vendored { package, object, .. } in all() {
            send(&client(&server), Method::POST, DEFINITIONS, object)
                .await
                .with_context(|| format!("{package}: {}", object["metadata"]["name"]))?;
        }
        anyhow::Ok(server)
    };
    Ok(soon("installing", INSTALLED.get_or_try_init(install)).await?.fork())
}

#[tokio::test]
async fn vendor_crds_are_established_and_discovered() -> Result<()> {
    let client = client(&installed().await?);
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let definitions = definitions.list(&ListParams::default()).await?.items;
    assert_eq!(definitions.len(), all().len());
    assert!(definitions.len() > 60, "{}", definitions.len());
    for definition in &definitions {
        let established = conditions::is_crd_established().matches_object(Some(definition));
        assert!(established, "{}: {:?}", definition.name_any(), definition.status);
    }

    let discovery = Discovery::new(client).run_aggregated().await?;
    let found: BTreeSet<(String, String)> = discovery
        .groups()
        .flat_map(|group| group.versions().flat_map(|version| group.versioned_resources(version)))
        .map(|(resource, _)| (resource.api_version, resource.plural))
        .collect();
    for kind in kinds() {
        let plural = text(&kind.definition["spec"]["names"]["plural"]);
        assert!(found.contains(&(kind.api_version(), plural)), "{}", kind.name());
    }
    Ok(())
}

#[tokio::test]
async fn vendor_kinds_have_tables_and_openapi_schemas() -> Result<()> {
    let client = client(&installed().await?);
    let mut documents: BTreeMap<String, Value> = BTreeMap::new();
    for kind in kinds() {
        let list = Request::get(kind.path())
            .header(header::ACCEPT, "application/json;as=Table;v=v1;g=meta.k8s.io")
            .body(Vec::new())?;
        let table: Value = client.request(list).await?;
        let columns = table["columnDefinitions"].as_array().context("a table has columns")?;
        let wanted = kind.version["additionalPrinterColumns"].as_array().map_or(1, Vec::len);
        assert!(columns.len() > wanted, "{}: {columns:?}", kind.name());

        let group_version = kind.api_version();
        if !documents.contains_key(&group_version) {
            let path = format!("/openapi/v3/apis/{group_version}");
            documents
                .insert(group_version.clone(), client.request(Request::get(path).body(Vec::new())?).await?);
        }
        let schemas = documents[&group_version]["components"]["schemas"].as_object().context("no schemas")?;
        let described = schemas.values().any(|schema| {
            let kinds = schema["x-kubernetes-group-version-kind"].as_array().into_iter().flatten();
            kinds.into_iter().any(|found| found["kind"] == kind.definition["spec"]["names"]["kind"])
        });
        assert!(described, "{}", kind.name());
    }
    Ok(())
}

#[tokio::test]
async fn applying_a_sample_again_changes_nothing() -> Result<()> {
    let client = client(&installed().await?);
    for kind in kinds().filter(Kind::is_stored) {
        let path = format!("{}/applied?fieldManager=tester", kind.path());
        let apply = async || -> kube::Result<Value> {
            let request = Request::patch(&path).header(header::CONTENT_TYPE, "application/apply-patch+yaml");
            let body = kind.object("applied", Fill::Most).to_string().into_bytes();
            client.request(request.body(body).map_err(kube::Error::HttpError)?).await
        };
        let first = apply().await.with_context(|| kind.name())?;
        assert_eq!(apply().await?, first, "{}", kind.name());
        send(&client, Method::DELETE, &path, &json!({})).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_deleted_vendor_crd_is_no_longer_served() -> Result<()> {
    let client = client(&installed().await?);
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    definitions.delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
    assert_eq!(definitions.list(&ListParams::default()).await?.items.len(), 0);
    for kind in kinds() {
        let answer = client.request::<Value>(Request::get(kind.path()).body(Vec::new())?).await;
        assert!(matches!(answer, Err(kube::Error::Api(status)) if status.code == 404), "{}", kind.name());
    }
    Ok(())
}

/// Rejected by any server: some of its fields have no type.
const NOT_STRUCTURAL: &str = "argoproj.io_clusterworkflowtemplates.yaml";

/// With strict validation: no field is unknown, and no field is lost.
#[tokio::test]
async fn handwritten_objects_are_accepted() -> Result<()> {
    let client = client(&server());
    let (definitions, objects): (Vec<_>, Vec<_>) = written_by_people()?
        .into_iter()
        .partition(|(_, object)| object["kind"] == "CustomResourceDefinition");
    let mut served = BTreeMap::new();
    for (file, definition) in &definitions {
        let answer = send(&client, Method::POST, DEFINITIONS, definition).await;
        if file == NOT_STRUCTURAL {
            let Err(kube::Error::Api(status)) = answer else { panic!("a field without a type was accepted") };
            let says = "[inline].type: Required value: must not be empty for specified object fields";
            assert!(status.is_invalid() && status.message.contains(says), "{}", status.message);
            continue;
        }
        answer.with_context(|| file.clone())?;
        for version in definition["spec"]["versions"].as_array().into_iter().flatten() {
            let kind = Kind { definition, version };
            served.insert((kind.api_version(), text(&definition["spec"]["names"]["kind"])), kind);
        }
    }
    let mut problems = Vec::new();
    for (file, mut object) in objects {
        let of = (text(&object["apiVersion"]), text(&object["kind"]));
        let kind = served.get(&of).with_context(|| format!("{file}: nothing defines {of:?}"))?;
        let status = object.as_object_mut().and_then(|object| object.remove("status"));
        let path = format!("{}?fieldValidation=Strict", kind.path());
        let created = send(&client, Method::POST, &path, &object).await.with_context(|| file.clone())?;
        lost(&object, &created, &file, &mut problems);
        if let Some(status) = status {
            let path = format!("{}/{}/status", kind.path(), text(&object["metadata"]["name"]));
            let status = json!({"status": status});
            let patched = send(&client, Method::PATCH, &path, &status).await.with_context(|| file.clone())?;
            lost(&status, &patched, &file, &mut problems);
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    Ok(())
}

/// The paths of fields of `sent` that are missing in `got`.
fn lost(sent: &Value, got: &Value, at: &str, lost_at: &mut Vec<String>) {
    match (sent, got) {
        (Value::Object(sent), Value::Object(got)) => {
            for (name, value) in sent {
                lost(value, got.get(name).unwrap_or(&Value::Null), &format!("{at}.{name}"), lost_at);
            }
        }
        (Value::Array(sent), Value::Array(got)) if sent.len() == got.len() => {
            for (index, (sent, got)) in sent.iter().zip(got).enumerate() {
                lost(sent, got, &format!("{at}[{index}]"), lost_at);
            }
        }
        _ if sent == got => {}
        _ => lost_at.push(format!("{at}: {sent} became {got}")),
    }
}

#[tokio::test]
async fn samples_of_every_kind_are_accepted_without_loss() -> Result<()> {
    let client = client(&installed().await?);
    // The vendors' conversion webhooks do not run here.
    for kind in kinds().filter(|kind| kind.definition["spec"]["conversion"]["strategy"] == "Webhook") {
        let name = text(&kind.definition["metadata"]["name"]);
        let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
        let none = json!({"spec": {"conversion": {"strategy": "None", "webhook": null}}});
        send(&client, Method::PATCH, &path, &none).await?;
    }
    let mut problems = Vec::new();
    for kind in kinds() {
        for (name, fill) in [("least", Fill::Least), ("most", Fill::Most)] {
            // All versions of a kind share their objects.
            let name = &format!("{name}-{}", text(&kind.version["name"]));
            let mut sent = kind.object(name, fill);
            let path = kind.path();
            let mut got = match send(&client, Method::POST, &path, &sent).await {
                Ok(created) => created,
                Err(error) => {
                    problems.push(format!("{} {name}: {error}", kind.name()));
                    continue;
                }
            };
            if kind.has_status()
                && let Some(status) = sent.as_object_mut().and_then(|sent| sent.remove("status"))
            {
                kind.compare(&sent, &got, &mut problems);
                assert_eq!(got.get("status"), kind.default_status(), "{}", kind.name());
                sent = json!({"status": status});
                got = send(&client, Method::PATCH, &format!("{path}/{name}/status"), &sent).await?;
            }
            kind.compare(&sent, &got, &mut problems);
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    Ok(())
}

/// Describes the server's error for a mistake if it is not the expected one.
fn wrong_answer(mistake: &samples::Mistake, answer: kube::Result<Value>) -> Option<String> {
    let status: Box<Status> = match answer {
        Err(kube::Error::Api(status)) => status,
        Ok(_) => return Some(format!("{}: {} is accepted", mistake.sort, mistake.field)),
        Err(error) => return Some(error.to_string()),
    };
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let found = causes.filter(|cause| cause.field == mistake.field).count() > 0;
    let right = status.is_invalid() && found && status.message.contains(&mistake.says);
    (!right).then(|| format!("{}: wanted {:?}, got {}", mistake.sort, mistake.says, status.message))
}

#[tokio::test]
async fn every_mistake_is_rejected_with_its_field() -> Result<()> {
    let client = client(&installed().await?);
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let mut problems = Vec::new();
    for kind in kinds() {
        let mut object = kind.object("wrong", Fill::Most);
        if kind.has_status()
            && let Some(object) = object.as_object_mut()
        {
            object.remove("status");
        }
        for mistake in mistakes(kind.schema(), &object, 5) {
            *seen.entry(mistake.sort).or_default() += 1;
            let answer = send(&client, Method::POST, &kind.path(), &mistake.object).await;
            if let Some(problem) = wrong_answer(&mistake, answer) {
                problems.push(format!("{}: {problem}", kind.name()));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    for sort in ["enum", "format", "length", "minimum", "missing", "pattern", "type"] {
        assert!(seen.contains_key(sort), "no mistake of kind {sort} was generated");
    }
    Ok(())
}
