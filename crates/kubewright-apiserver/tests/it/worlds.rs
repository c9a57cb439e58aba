//! Servers are independent: forks diverge, seeds are reproducible, and a hundred servers run in one process.

use std::collections::BTreeSet;

use anyhow::Result;
use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _};
use http::{Request, StatusCode, header};
use http_body_util::{BodyExt as _, Empty, Full};
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, ListParams, PostParams, WatchEvent, WatchParams};
use kubewright_apiserver::authn::User;
use kubewright_apiserver::{ApiServer, Options};
use serde_json::{Value, json};

use crate::world::{client, config_map, object, options, server, soon};

fn maps(server: &ApiServer) -> Api<ConfigMap> {
    Api::default_namespaced(client(server))
}

async fn names(server: &ApiServer) -> Result<Vec<String>> {
    Ok(maps(server).list(&ListParams::default()).await?.items.iter().map(ConfigMap::name_any).collect())
}

#[tokio::test]
async fn a_fork_starts_with_the_same_objects_and_is_independent() -> Result<()> {
    let server = server();
    for name in ["a", "b"] {
        maps(&server).create(&PostParams::default(), &config_map(name)).await?;
    }
    let fork = server.fork();
    assert_eq!(fork.revision(), server.revision());
    assert_eq!(maps(&fork).get("a").await?, maps(&server).get("a").await?);

    maps(&fork).delete("a", &DeleteParams::default()).await?;
    maps(&fork).create(&PostParams::default(), &config_map("of-the-fork")).await?;
    maps(&server).create(&PostParams::default(), &config_map("of-the-first")).await?;
    assert_eq!(names(&fork).await?, ["b", "of-the-fork"]);
    assert_eq!(names(&server).await?, ["a", "b", "of-the-first"]);

    let grandchild = fork.fork();
    maps(&fork).create(&PostParams::default(), &config_map("later")).await?;
    assert_eq!(names(&grandchild).await?, ["b", "of-the-fork"]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_watch_reports_no_events_of_forks() -> Result<()> {
    let server = server();
    let from = server.revision().to_string();
    let mut watch = Box::pin(maps(&server).watch(&WatchParams::default().timeout(30), &from).await?);
    let fork = server.fork();
    maps(&fork).create(&PostParams::default(), &config_map("of-the-fork")).await?;
    maps(&server).create(&PostParams::default(), &config_map("a")).await?;
    let Some(WatchEvent::Added(seen)) = watch.try_next().await? else { panic!("no event") };
    assert_eq!(seen.name_any(), "a");
    assert!(watch.next().await.is_none());

    // The fork has the events of the original.
    let stream = maps(&fork).watch(&WatchParams::default(), &from).await?;
    let event = soon("the event", Box::pin(stream).try_next()).await?;
    assert!(matches!(event, Some(WatchEvent::Added(map)) if map.name_any() == "of-the-fork"));
    Ok(())
}

#[tokio::test]
async fn forks_allocate_addresses_independently() -> Result<()> {
    let server = server();
    let fork = server.fork();
    let fixed: Service = object(json!({
        "metadata": {"name": "web"}, "spec": {"clusterIP": "10.0.0.77", "ports": [{"port": 80}]},
    }));
    for server in [&server, &fork] {
        let services: Api<Service> = Api::default_namespaced(client(server));
        services.create(&PostParams::default(), &fixed).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_static_token_of_a_fork_is_invalid_elsewhere() -> Result<()> {
    let server = server();
    server.add_token("before", User::admin());
    let fork = server.fork();
    fork.add_token("after", User::admin());
    let ask = async |server: &ApiServer, token: &str| {
        let request = Request::get("/version").header(header::AUTHORIZATION, format!("Bearer {token}"));
        anyhow::Ok(server.handle(request.body(Empty::<Bytes>::new())?).await.status())
    };
    assert_eq!(ask(&fork, "before").await?, StatusCode::OK);
    assert_eq!(ask(&fork, "after").await?, StatusCode::OK);
    assert_eq!(ask(&server, "after").await?, StatusCode::UNAUTHORIZED);
    Ok(())
}

/// Responses to requests that use generated names and UIDs.
async fn answers(server: &ApiServer) -> Result<Vec<Value>> {
    let mut answers = Vec::new();
    for (path, body) in [
        ("/api/v1/namespaces/default/configmaps", json!({"metadata": {"generateName": "made-"}})),
        ("/api/v1/namespaces/default/configmaps", json!({"metadata": {"generateName": "made-"}})),
        (
            "/api/v1/namespaces/default/services",
            json!({"metadata": {"name": "web"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}}),
        ),
        ("/api/v1/namespaces", json!({"metadata": {"name": "team"}})),
        ("/api/v1/namespaces/default/configmaps", json!({"metadata": {"name": "Not a name"}})),
    ] {
        let request = Request::post(path).header(header::CONTENT_TYPE, "application/json");
        let answer = server.handle(request.body(Full::new(Bytes::from(body.to_string())))?).await;
        answers.push(serde_json::from_slice(&answer.into_body().collect().await?.to_bytes())?);
    }
    Ok(answers)
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_and_requests_give_the_same_responses() -> Result<()> {
    let first = answers(&server()).await?;
    let second = answers(&server()).await?;
    assert_eq!(first, second);
    let other = answers(&ApiServer::new(Options { seed: Some(2), ..options() })).await?;
    for at in 0..4 {
        assert_ne!(first[at]["metadata"]["uid"], other[at]["metadata"]["uid"]);
    }
    assert_ne!(first[0]["metadata"]["name"], other[0]["metadata"]["name"]);
    assert_ne!(first[0]["metadata"]["name"], first[1]["metadata"]["name"]);

    // Without a seed, every server is different.
    let unseeded = || ApiServer::new(Options { seed: None, ..options() });
    let (one, two) = (answers(&unseeded()).await?, answers(&unseeded()).await?);
    assert_ne!(one[0]["metadata"]["uid"], two[0]["metadata"]["uid"]);
    Ok(())
}

#[tokio::test]
async fn forks_of_servers_with_the_same_seed_are_the_same() -> Result<()> {
    let fork_of = || {
        let server = ApiServer::new(Options {
            clock: std::sync::Arc::new(kubewright_apiserver::clock::ManualClock::new(crate::world::START)),
            seed: Some(5),
            ..Options::default()
        });
        server.fork()
    };
    assert_eq!(answers(&fork_of()).await?, answers(&fork_of()).await?);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_hundred_servers_run_in_one_process() -> Result<()> {
    let tasks: Vec<_> = (0..100)
        .map(|at| {
            tokio::spawn(async move {
                let server = ApiServer::new(Options { seed: Some(at), ..Options::default() });
                let map = config_map(&format!("of-{at}"));
                maps(&server).create(&PostParams::default(), &map).await?;
                let names = names(&server).await?;
                anyhow::ensure!(names == [format!("of-{at}")], "{names:?}");
                Ok(maps(&server).get(&names[0]).await?.uid())
            })
        })
        .collect();
    let mut uids = BTreeSet::new();
    for task in tasks {
        uids.insert(soon("a server", task).await??);
    }
    assert_eq!(uids.len(), 100);
    Ok(())
}
