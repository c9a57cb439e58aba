//! Concurrent writers: no update is lost, no address, port or name is assigned twice.

use std::collections::BTreeSet;
use std::net::IpAddr;

use anyhow::{Context as _, Result, bail};
use futures_util::TryStreamExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kubewright_apiserver::ApiServer;
use serde_json::json;
use tokio::task::JoinSet;

use crate::world::{client, config_map, object, server, soon};

const TASKS: usize = 16;

/// Runs `work` concurrently, each with its own client, and returns the results.
async fn together<T, F>(server: &ApiServer, work: impl Fn(usize, kube::Client) -> F) -> Result<Vec<T>>
where
    T: Send + 'static,
    F: Future<Output = Result<T>> + Send + 'static,
{
    let mut tasks = JoinSet::new();
    for at in 0..TASKS {
        tasks.spawn(work(at, client(server)));
    }
    let mut done = Vec::new();
    while let Some(result) = soon("a writer", tasks.join_next()).await {
        done.push(result??);
    }
    Ok(done)
}

fn counter(map: &ConfigMap) -> Result<u64> {
    Ok(map.data.as_ref().and_then(|data| data.get("count")).context("no count")?.parse()?)
}

async fn with_counter(server: &ApiServer) -> Result<Api<ConfigMap>> {
    let maps: Api<ConfigMap> = Api::default_namespaced(client(server));
    let mut map = config_map("counter");
    map.data = Some([("count".to_owned(), "0".to_owned())].into());
    maps.create(&PostParams::default(), &map).await?;
    Ok(maps)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writers_that_retry_on_conflict_lose_no_update() -> Result<()> {
    const EACH: u64 = 40;
    let server = server();
    let maps = with_counter(&server).await?;
    together(&server, |_, client| async move {
        let maps: Api<ConfigMap> = Api::default_namespaced(client);
        for _ in 0..EACH {
            loop {
                let mut map = maps.get("counter").await?;
                let next = counter(&map)? + 1;
                map.data.get_or_insert_default().insert("count".to_owned(), next.to_string());
                match maps.replace("counter", &PostParams::default(), &map).await {
                    Ok(_) => break,
                    Err(kube::Error::Api(status)) if status.is_conflict() => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(())
    })
    .await?;
    assert_eq!(counter(&maps.get("counter").await?)?, EACH * TASKS as u64);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_json_patch_with_a_test_never_counts_twice() -> Result<()> {
    const EACH: u64 = 40;
    let server = server();
    let maps = with_counter(&server).await?;
    together(&server, |_, client| async move {
        let maps: Api<ConfigMap> = Api::default_namespaced(client);
        for _ in 0..EACH {
            loop {
                let count = counter(&maps.get("counter").await?)?;
                let patch = Patch::<()>::Json(object(json!([
                    {"op": "test", "path": "/data/count", "value": count.to_string()},
                    {"op": "replace", "path": "/data/count", "value": (count + 1).to_string()},
                ])));
                match maps.patch("counter", &PatchParams::default(), &patch).await {
                    Ok(_) => break,
                    Err(kube::Error::Api(status)) if status.is_invalid() => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(())
    })
    .await?;
    assert_eq!(counter(&maps.get("counter").await?)?, EACH * TASKS as u64);
    Ok(())
}

/// A patch without a resourceVersion never conflicts: the server applies it to the latest version.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_patches_of_different_fields_are_all_kept() -> Result<()> {
    const EACH: usize = 20;
    let server = server();
    let maps = with_counter(&server).await?;
    together(&server, |at, client| async move {
        let maps: Api<ConfigMap> = Api::default_namespaced(client);
        for round in 0..EACH {
            let patch = Patch::Merge(json!({"data": {format!("k{at}-{round}"): "x"}}));
            maps.patch("counter", &PatchParams::default(), &patch).await?;
        }
        Ok(())
    })
    .await?;
    let data = maps.get("counter").await?.data.unwrap_or_default();
    assert_eq!(data.len(), TASKS * EACH + 1);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn only_one_of_many_concurrent_creates_succeeds() -> Result<()> {
    let server = server();
    for round in 0..20 {
        let wins = together(&server, move |_, client| async move {
            let maps: Api<ConfigMap> = Api::default_namespaced(client);
            match maps.create(&PostParams::default(), &config_map(&format!("m{round}"))).await {
                Ok(created) => Ok(created.uid()),
                Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(None),
                Err(error) => Err(error.into()),
            }
        })
        .await?;
        assert_eq!(wins.iter().flatten().count(), 1);
    }
    Ok(())
}

fn service(name: &str) -> Service {
    object(json!({"metadata": {"name": name}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}}))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_address_or_port_is_assigned_twice() -> Result<()> {
    const EACH: usize = 14;
    let server = server();
    for round in 0..3 {
        let given = together(&server, move |at, client| async move {
            let services: Api<Service> = Api::default_namespaced(client);
            let mut given = Vec::new();
            for i in 0..EACH {
                let name = format!("s{round}-{at}-{i}");
                let created = services.create(&PostParams::default(), &service(&name)).await?;
                let spec = created.spec.unwrap_or_default();
                let address: IpAddr = spec.cluster_ip.context("no address")?.parse()?;
                let port = spec.ports.iter().flatten().find_map(|port| port.node_port).context("no port")?;
                given.push((address, port));
            }
            Ok(given)
        })
        .await?;
        let given: Vec<_> = given.into_iter().flatten().collect();
        let addresses: BTreeSet<_> = given.iter().map(|(address, _)| address).collect();
        let ports: BTreeSet<_> = given.iter().map(|(_, port)| port).collect();
        assert_eq!((addresses.len(), ports.len()), (TASKS * EACH, TASKS * EACH));
        assert!(ports.iter().all(|port| (30_000..=32_767).contains(*port)));

        // Deleted Services release their addresses: the next round finds enough.
        together(&server, move |at, client| async move {
            let services: Api<Service> = Api::default_namespaced(client);
            for i in 0..EACH {
                services.delete(&format!("s{round}-{at}-{i}"), &DeleteParams::default()).await?;
            }
            Ok(())
        })
        .await?;
    }
    Ok(())
}

#[tokio::test]
async fn an_exhausted_address_range_is_an_error_and_leaks_nothing() -> Result<()> {
    let client = client(&server());
    let services: Api<Service> = Api::default_namespaced(client);
    let mut created = 0;
    let status = loop {
        match services.create(&PostParams::default(), &service(&format!("s{created}"))).await {
            Ok(_) => created += 1,
            Err(kube::Error::Api(status)) => break status,
            Err(error) => return Err(error.into()),
        }
        assert!(created < 300, "the range was not exhausted");
    };
    // 256 without the network and broadcast addresses and the address of `kubernetes`.
    assert_eq!(created, 253);
    assert!(status.message.contains("range is full"), "{}", status.message);
    assert!(services.get_opt("s253").await?.is_none());
    services.delete("s7", &DeleteParams::default()).await?;
    services.create(&PostParams::default(), &service("again")).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn generated_names_are_all_different() -> Result<()> {
    const EACH: usize = 100;
    let server = server();
    let names = together(&server, |_, client| async move {
        let maps: Api<ConfigMap> = Api::default_namespaced(client);
        let mut names = Vec::new();
        for _ in 0..EACH {
            let map: ConfigMap = object(json!({"metadata": {"generateName": "made-"}}));
            names.push(maps.create(&PostParams::default(), &map).await?.name_any());
        }
        Ok(names)
    })
    .await?;
    let names: BTreeSet<_> = names.into_iter().flatten().collect();
    assert_eq!(names.len(), TASKS * EACH);
    assert!(names.iter().all(|name| name.len() == "made-".len() + 5), "{names:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_watch_sees_every_write_once_and_in_order() -> Result<()> {
    const EACH: usize = 50;
    let server = server();
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&server));
    let mut watch = Box::pin(maps.watch(&WatchParams::default(), "0").await?);
    let reading = tokio::spawn(async move {
        let mut versions = Vec::new();
        while versions.len() < TASKS * EACH * 2 {
            let Some(event) = watch.try_next().await? else { bail!("the watch ended") };
            let (WatchEvent::Added(map) | WatchEvent::Deleted(map)) = event else { bail!("{event:?}") };
            versions.push(map.resource_version().unwrap_or_default().parse::<u64>()?);
        }
        Ok(versions)
    });
    together(&server, |at, client| async move {
        let maps: Api<ConfigMap> = Api::default_namespaced(client);
        for round in 0..EACH {
            let name = format!("m{at}-{round}");
            maps.create(&PostParams::default(), &config_map(&name)).await?;
            maps.delete(&name, &DeleteParams::default()).await?;
        }
        Ok(())
    })
    .await?;
    let versions = soon("the last event", reading).await??;
    assert!(versions.is_sorted_by(|a, b| a < b), "revisions are not strictly increasing");
    assert_eq!(maps.list(&ListParams::default()).await?.items.len(), 0);
    Ok(())
}
