//! Pod logs: lines from an annotation, as far as the pod's status allows.

use anyhow::Result;
use futures_util::{AsyncBufReadExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, DeleteParams, LogParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::world::{alone, object, soon};

/// A pod on a node with these addresses.
async fn pod_on_a_node(addresses: Value, state: Value) -> Result<Api<Pod>> {
    let client = alone();
    let nodes: Api<Node> = Api::all(client.clone());
    let node = object::<Node>(json!({ "metadata": { "name": "n" }, "status": { "addresses": addresses } }));
    nodes.create(&PostParams::default(), &node).await?;
    let pods: Api<Pod> = Api::default_namespaced(client);
    let pod = object::<Pod>(json!({
        "metadata": { "name": "p", "annotations": { "kubewright.dev/logs": "one\ntwo\n" } },
        "spec": { "nodeName": "n", "containers": [{ "name": "main", "image": "nginx" }] },
    }));
    pods.create(&PostParams::default(), &pod).await?;
    set_state(&pods, state).await?;
    Ok(pods)
}

async fn set_state(pods: &Api<Pod>, state: Value) -> Result<()> {
    let status = json!({ "name": "main", "image": "nginx", "imageID": "", "ready": true, "restartCount": 0, "state": state });
    let patch = json!({ "status": { "containerStatuses": [status] } });
    pods.patch_status("p", &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}

fn reached() -> Value {
    json!([{ "type": "InternalIP", "address": "172.16.0.1" }])
}

fn running() -> Value {
    json!({ "running": { "startedAt": "2026-01-01T00:00:00Z" } })
}

fn refusal(result: kube::Result<String>) -> (u16, String) {
    match result {
        Err(kube::Error::Api(status)) => (status.code, status.message),
        other => panic!("not an API error: {other:?}"),
    }
}

#[tokio::test]
async fn log_options_select_the_lines_of_a_running_container() -> Result<()> {
    let pods = pod_on_a_node(reached(), running()).await?;
    assert_eq!(pods.logs("p", &LogParams::default()).await?, "one\ntwo\n");
    let asked = LogParams { tail_lines: Some(1), timestamps: true, ..LogParams::default() };
    assert_eq!(pods.logs("p", &asked).await?, "2026-01-01T00:00:00.001000000Z two\n");
    let asked = LogParams { container: Some("x".to_owned()), ..LogParams::default() };
    assert_eq!(refusal(pods.logs("p", &asked).await), (400, "container x is not valid for pod p".to_owned()));
    assert_eq!(
        refusal(pods.logs("q", &LogParams::default()).await),
        (404, "pods \"q\" not found".to_owned())
    );
    Ok(())
}

#[tokio::test]
async fn logs_fail_without_a_node_address_and_are_empty_without_a_node() -> Result<()> {
    let pods = pod_on_a_node(json!([]), running()).await?;
    let why = "no preferred addresses found; known addresses: []";
    assert_eq!(refusal(pods.logs("p", &LogParams::default()).await), (500, why.to_owned()));
    let pods: Api<Pod> = Api::default_namespaced(alone());
    pods.create(&PostParams::default(), &crate::world::pod("p")).await?;
    assert_eq!(pods.logs("p", &LogParams::default()).await?, "");
    Ok(())
}

#[tokio::test]
async fn a_waiting_container_has_no_logs() -> Result<()> {
    let pods = pod_on_a_node(reached(), json!({ "waiting": { "reason": "ContainerCreating" } })).await?;
    let why = "container \"main\" in pod \"p\" is waiting to start: ContainerCreating";
    assert_eq!(refusal(pods.logs("p", &LogParams::default()).await), (400, why.to_owned()));
    Ok(())
}

#[tokio::test]
async fn following_returns_new_lines_until_the_container_or_pod_ends() -> Result<()> {
    let follow = LogParams { follow: true, tail_lines: Some(1), ..LogParams::default() };
    for deleted in [false, true] {
        let pods = pod_on_a_node(reached(), running()).await?;
        let mut lines = pods.log_stream("p", &follow).await?.lines();
        assert_eq!(soon("a line", lines.try_next()).await?.as_deref(), Some("two"));
        let more = json!({ "metadata": { "annotations": { "kubewright.dev/logs": "one\ntwo\nthree\n" } } });
        pods.patch("p", &PatchParams::default(), &Patch::Merge(more)).await?;
        assert_eq!(soon("a new line", lines.try_next()).await?.as_deref(), Some("three"));
        if deleted {
            pods.delete("p", &DeleteParams::default().grace_period(0)).await?;
        } else {
            set_state(&pods, json!({ "terminated": { "exitCode": 0, "startedAt": "2026-01-01T00:00:00Z" } }))
                .await?;
        }
        assert_eq!(soon("the end", lines.try_next()).await?, None);
    }
    Ok(())
}
