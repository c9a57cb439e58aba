//! Expensive requests beside small ones, on a server with one worker thread.
//!
//! A request that occupies the worker until its end lets no other request through meanwhile.

use std::time::{Duration, Instant};

use anyhow::Result;
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use kubewright_apiserver::serve::Listening;
use kubewright_apiserver::{ApiServer, Options};
use serde_json::{Value, json};

use super::MAPS;
use crate::transports::connect;

/// Small requests that must be answered while the expensive one runs.
const OTHERS: usize = 3;
/// Objects of a long list.
const LISTED: usize = 20_000;
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";

/// Sends an in-process request, which must succeed.
async fn prepare(server: &ApiServer, path: &str, object: &Value) -> Result<Value> {
    let request = Request::post(path).header("content-type", "application/json");
    let response = server.handle(request.body(Full::new(Bytes::from(object.to_string())))?).await;
    let status = response.status();
    let body = response.into_body().collect().await?.to_bytes();
    anyhow::ensure!(status.is_success(), "{path}: {status} {}", String::from_utf8_lossy(&body));
    Ok(serde_json::from_slice(&body)?)
}

async fn with_maps(count: usize) -> Result<ApiServer> {
    let server = ApiServer::new(Options::default());
    for at in 0..count {
        let map = json!({"metadata": {"name": format!("map-{at:05}")}, "data": {"key": "value"}});
        prepare(&server, MAPS, &map).await?;
    }
    Ok(server)
}

/// Sends an expensive request over a socket. Small requests over new connections must be answered before its response
/// is complete.
fn others_are_served(
    server: impl Future<Output = Result<ApiServer>>,
    expensive: Request<Vec<u8>>,
) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let clients = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let server = clients.block_on(server)?;
    let listening = runtime
        .block_on(async { runtime.spawn(async { anyhow::Ok(Listening::open(server, 0).await?) }).await? })?;
    clients.block_on(async {
        let mut sender = connect(&listening, Some(listening.admin())).await?;
        let busy = tokio::spawn(async move {
            let response = sender.send(expensive).await?;
            response.into_body().collect().await.map_err(anyhow::Error::from)
        });
        let mut served = 0;
        while !busy.is_finished() && served < OTHERS {
            let mut other = connect(&listening, Some(listening.admin())).await?;
            let read = Request::builder().uri("/api/v1/namespaces/default").body(Vec::new())?;
            let response = other.send(read).await?;
            anyhow::ensure!(response.status().is_success(), "{}", response.status());
            served += 1;
        }
        assert_eq!(served, OTHERS, "the worker was not available");
        assert!(!busy.is_finished(), "the request was too cheap for this test");
        busy.await??;
        anyhow::Ok(())
    })?;
    runtime.shutdown_timeout(Duration::from_secs(1));
    Ok(())
}

fn list(accept: &str) -> Result<Request<Vec<u8>>> {
    Ok(Request::get(MAPS).header("accept", accept).body(Vec::new())?)
}

fn post(path: &str, media: &str, body: String) -> Result<Request<Vec<u8>>> {
    Ok(Request::post(path).header("content-type", media).body(body.into_bytes())?)
}

#[test]
fn a_long_list_as_a_table_does_not_block_others() -> Result<()> {
    others_are_served(with_maps(LISTED), list(TABLE)?)
}

#[test]
fn a_long_list_as_metadata_does_not_block_others() -> Result<()> {
    let accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    others_are_served(with_maps(2 * LISTED), list(accept)?)
}

#[test]
fn a_long_list_as_yaml_does_not_block_others() -> Result<()> {
    others_are_served(with_maps(3 * LISTED), list("application/yaml")?)
}

#[test]
fn a_large_yaml_body_does_not_block_others() -> Result<()> {
    let lines: Vec<String> = (0..60_000).map(|at| format!("  key-{at}: \"{at:012}\"")).collect();
    let text =
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: large}}\ndata:\n{}\n", lines.join("\n"));
    others_are_served(with_maps(0), post(MAPS, "application/yaml", text)?)
}

fn crd(plural: &str, kind: &str, spec: &Value) -> Value {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": spec}}});
    json!({
        "metadata": {"name": format!("{plural}.example.com")},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"kind": kind, "plural": plural},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    })
}

#[test]
fn a_long_enum_does_not_block_others() -> Result<()> {
    let server = async {
        let server = ApiServer::new(Options::default());
        let values: Vec<String> = (0..20_000).map(|at| format!("value-{at}")).collect();
        let values = json!({"values": {"type": "array", "items": {"type": "string", "enum": values}}});
        prepare(&server, CRDS, &crd("widgets", "Widget", &values)).await?;
        Ok(server)
    };
    let items: Vec<String> = (0..100_000).map(|at| format!("value-{at}")).collect();
    let widget = json!({
        "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"values": items},
    });
    let path = "/apis/example.com/v1/namespaces/default/widgets";
    others_are_served(server, post(path, "application/json", widget.to_string())?)
}

#[test]
fn the_deletion_of_an_owner_does_not_block_others() -> Result<()> {
    let server = async {
        let server = ApiServer::new(Options::default());
        let owner = prepare(&server, MAPS, &json!({"metadata": {"name": "owner"}})).await?;
        let owner = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "blockOwnerDeletion": true,
            "uid": owner["metadata"]["uid"],
        });
        for at in 0..3_000 {
            let dependent = json!({"metadata": {"name": format!("d{at}"), "ownerReferences": [owner]}});
            prepare(&server, MAPS, &dependent).await?;
        }
        Ok(server)
    };
    let path = format!("{MAPS}/owner?propagationPolicy=Foreground");
    others_are_served(server, Request::builder().method(Method::DELETE).uri(path).body(Vec::new())?)
}

fn patch(path: &str, body: &Value) -> Result<Request<Vec<u8>>> {
    let patch = Request::patch(path).header("content-type", "application/merge-patch+json");
    Ok(patch.body(body.to_string().into_bytes())?)
}

/// The patch removes the object, and its dependents are collected.
#[test]
fn the_removal_of_the_last_finalizer_does_not_block_others() -> Result<()> {
    let server = async {
        let server = ApiServer::new(Options::default());
        let map = json!({"metadata": {"name": "owner", "finalizers": ["example.com/wait"]}});
        let owner = prepare(&server, MAPS, &map).await?;
        let uid = &owner["metadata"]["uid"];
        let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid});
        for at in 0..3_000 {
            let dependent = json!({"metadata": {"name": format!("d{at}"), "ownerReferences": [owner]}});
            prepare(&server, MAPS, &dependent).await?;
        }
        let delete = Request::delete(format!("{MAPS}/owner")).body(Full::new(Bytes::new()))?;
        anyhow::ensure!(server.handle(delete).await.status().is_success());
        Ok(server)
    };
    let body = json!({"metadata": {"finalizers": null}});
    others_are_served(server, patch(&format!("{MAPS}/owner"), &body)?)
}

#[test]
fn a_ring_of_aggregated_roles_does_not_block_others() -> Result<()> {
    const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    let count = 120;
    let role = move |number: usize| {
        let selectors = json!([
            {"matchLabels": {"ring": format!("{}", (number + 1) % count)}},
            {"matchLabels": {"source": format!("{number}")}},
        ]);
        json!({
            "metadata": {"name": format!("ring-{number:03}"), "labels": {"ring": format!("{number}")}},
            "aggregationRule": {"clusterRoleSelectors": selectors},
        })
    };
    let server = async move {
        let server = ApiServer::new(Options::default());
        for number in 0..count {
            let rule = json!({"apiGroups": [""], "resources": [format!("r{number}")], "verbs": ["get"]});
            let labels = json!({"source": format!("{number}")});
            let source =
                json!({"metadata": {"name": format!("s{number}"), "labels": labels}, "rules": [rule]});
            prepare(&server, ROLES, &source).await?;
            // The last role closes the ring.
            if number + 1 < count {
                prepare(&server, ROLES, &role(number)).await?;
            }
        }
        Ok(server)
    };
    others_are_served(server, post(ROLES, "application/json", role(count - 1).to_string())?)
}

const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";

/// A server with a Widget of this spec.
async fn with_widget(schema: Value, spec: Value) -> Result<ApiServer> {
    let server = ApiServer::new(Options::default());
    prepare(&server, CRDS, &crd("widgets", "Widget", &schema)).await?;
    let widget = json!({
        "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": spec,
    });
    prepare(&server, WIDGETS, &widget).await?;
    Ok(server)
}

#[test]
fn a_small_patch_of_a_large_object_does_not_block_others() -> Result<()> {
    let items: Vec<String> = (0..100_000).map(|at| format!("value-{at}")).collect();
    let schema = json!({"values": {"type": "array", "items": {"type": "string"}}});
    let server = with_widget(schema, json!({"values": items}));
    let body = json!({"metadata": {"labels": {"a": "b"}}});
    others_are_served(server, patch(&format!("{WIDGETS}/a"), &body)?)
}

#[test]
fn a_large_object_as_yaml_does_not_block_others() -> Result<()> {
    let items: Vec<String> = (0..100_000).map(|at| format!("value-{at}")).collect();
    let schema = json!({"values": {"type": "array", "items": {"type": "string"}}});
    let server = with_widget(schema, json!({"values": items}));
    let get = Request::get(format!("{WIDGETS}/a")).header("accept", "application/yaml");
    others_are_served(server, get.body(Vec::new())?)
}

#[test]
fn expensive_rules_do_not_block_others() -> Result<()> {
    let values: Vec<u64> = (0..60).collect();
    let all = "self.all(a, self.all(b, self.all(c, a + b + c >= 0)))";
    let rules: Vec<Value> = (0..9).map(|_| json!({"rule": all})).collect();
    let schema = json!({"values": {
        "type": "array", "maxItems": 60, "items": {"type": "integer"}, "x-kubernetes-validations": rules,
    }});
    let server = with_widget(schema, json!({"values": []}));
    others_are_served(server, patch(&format!("{WIDGETS}/a"), &json!({"spec": {"values": values}}))?)
}

#[test]
fn an_expensive_policy_does_not_block_others() -> Result<()> {
    let server = async {
        const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
        let server = ApiServer::new(Options::default());
        let all = "object.data.all(a, object.data.all(b, object.data.all(c, a != 'x' || b != c)))";
        let validations: Vec<Value> = (0..9).map(|_| json!({"expression": all})).collect();
        let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]});
        let policy = json!({
            "metadata": {"name": "expensive"},
            "spec": {"matchConstraints": {"resourceRules": [rule]}, "validations": validations},
        });
        prepare(&server, POLICIES, &policy).await?;
        let binding = json!({
            "metadata": {"name": "expensive"},
            "spec": {"policyName": "expensive", "validationActions": ["Warn"]},
        });
        prepare(&server, &POLICIES.replace("policies", "policybindings"), &binding).await?;
        Ok(server)
    };
    let data: serde_json::Map<String, Value> = (0..50).map(|at| (format!("k{at}"), "v".into())).collect();
    let map = json!({"metadata": {"name": "a"}, "data": data});
    others_are_served(server, post(MAPS, "application/json", map.to_string())?)
}

#[test]
fn the_openapi_document_does_not_block_others() -> Result<()> {
    let server = async {
        let server = ApiServer::new(Options::default());
        let text: serde_json::Map<String, Value> =
            (0..20).map(|at| (format!("field{at}"), json!({"type": "string"}))).collect();
        for at in 0..1_000 {
            let crd = crd(&format!("kinds{at}"), &format!("Kind{at}"), &text.clone().into());
            prepare(&server, CRDS, &crd).await?;
        }
        Ok(server)
    };
    // Without a body, whose transfer would let others through.
    others_are_served(server, Request::head("/openapi/v2").body(Vec::new())?)
}

/// A watch that is not read renders nothing, and one that is read yields between events.
#[test]
fn the_start_of_a_table_watch_does_not_block_others() -> Result<()> {
    let path = format!("{MAPS}?watch=true&timeoutSeconds=5");
    others_are_served(with_maps(LISTED), Request::get(path).header("accept", TABLE).body(Vec::new())?)
}

/// Compares the fastest of several runs, because other tests run beside this one.
#[tokio::test]
async fn a_crd_costs_the_same_with_many_others() -> Result<()> {
    let server = ApiServer::new(Options::default());
    let (runs, per_run) = (40, 20);
    let mut times = Vec::new();
    for run in 0..runs {
        let began = Instant::now();
        for at in 0..per_run {
            let number = run * per_run + at;
            let spec = json!({"text": {"type": "string"}});
            let crd = crd(&format!("kinds{number}"), &format!("Kind{number}"), &spec);
            prepare(&server, CRDS, &crd).await?;
        }
        times.push(began.elapsed());
    }
    let fastest = |times: &[Duration]| times.iter().min().copied().unwrap_or_default();
    let (first, last) = (fastest(&times[..10]), fastest(&times[runs - 10..]));
    assert!(last < 3 * first, "{per_run} CRDs took {first:?} at first and {last:?} with {}", runs * per_run);
    Ok(())
}

/// CRDs with names that are in use wait for them, and get them when they are released.
#[tokio::test]
async fn a_released_name_is_accepted_for_a_waiting_crd() -> Result<()> {
    let server = ApiServer::new(Options::default());
    prepare(&server, CRDS, &crd("firsts", "Same", &json!({}))).await?;
    prepare(&server, CRDS, &crd("seconds", "Same", &json!({}))).await?;
    prepare(&server, CRDS, &crd("thirds", "Other", &json!({}))).await?;
    let accepted = async |name: &str| -> Result<String> {
        let request = Request::get(format!("{CRDS}/{name}.example.com")).body(Full::new(Bytes::new()))?;
        let body = server.handle(request).await.into_body().collect().await?.to_bytes();
        let crd: Value = serde_json::from_slice(&body)?;
        let conditions = crd["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let found = conditions.iter().find(|condition| condition["type"] == "NamesAccepted");
        Ok(found.and_then(|condition| condition["status"].as_str()).unwrap_or_default().to_owned())
    };
    assert_eq!((accepted("firsts").await?, accepted("seconds").await?), ("True".into(), "False".into()));
    let delete = Request::delete(format!("{CRDS}/firsts.example.com")).body(Full::new(Bytes::new()))?;
    assert!(server.handle(delete).await.status().is_success());
    assert_eq!((accepted("seconds").await?, accepted("thirds").await?), ("True".into(), "True".into()));
    prepare(
        &server,
        "/apis/example.com/v1/namespaces/default/seconds",
        &json!({"apiVersion": "example.com/v1", "kind": "Same", "metadata": {"name": "a"}}),
    )
    .await?;
    Ok(())
}
