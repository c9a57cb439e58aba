//! The endpoints of `--pprof-bind-address`. These tests run on the real clock.

use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kubewright_runtime::{CacheOptions, Manager, ManagerOptions};

use crate::operator::{Acts, Notes, Running};
use crate::serve::get;
use crate::world::{World, eventually, soon};

async fn manager(world: &World) -> Result<Manager> {
    world.config_maps(&["a", "b"]).await?;
    let options =
        ManagerOptions { pprof_bind_address: "127.0.0.1:0".parse()?, ..ManagerOptions::new("test") };
    let manager = Manager::new(world.kube.clone(), options.namespaces(["default"]))?;
    manager.controller(Acts::<ConfigMap>::noting(&Notes::new())).register()?;
    Ok(manager)
}

#[tokio::test]
async fn memory_statistics_cover_the_process_and_the_caches() -> Result<()> {
    let world = World::new();
    let manager = manager(&world).await?;
    let running = Running::start(&manager);
    let address = manager.addresses().await.pprof.context("profiles are served")?;
    let maps = manager.cache().informer::<ConfigMap>();
    eventually("the list", || maps.is_synced()).await;
    let (code, memory) = get(address, "/debug/memory").await?;
    assert_eq!(code, 200);
    assert!(memory.contains("VmRSS:") || !cfg!(target_os = "linux"), "{memory}");
    let line =
        memory.lines().find(|line| line.ends_with("v1, Kind=ConfigMap")).context("the kind has a line")?;
    let numbers: Vec<usize> = line.split_whitespace().take(2).map(str::parse).collect::<Result<_, _>>()?;
    assert_eq!(numbers, [2, maps.bytes()]);

    let remote = manager.attach("remote", world.kube.clone(), CacheOptions::default())?;
    let secrets = remote.cache().informer::<Secret>();
    soon("the list", secrets.synced()).await?;
    let memory = get(address, "/debug/memory").await?.1;
    assert!(memory.contains("# cache of the manager: "), "{memory}");
    let (_, of_remote) = memory.split_once("# cache of cluster remote: ").context("clusters are listed")?;
    assert!(of_remote.contains("v1, Kind=Secret"), "{memory}");
    remote.detach().await;
    assert!(!get(address, "/debug/memory").await?.1.contains("remote"));

    let (code, index) = get(address, "/debug/pprof/").await?;
    assert_eq!(code, 200);
    for path in ["/debug/pprof/profile", "/debug/pprof/cmdline", "/debug/memory"] {
        assert!(index.contains(path), "{index}");
    }
    let program = std::env::args().next().context("a program has a name")?;
    assert!(get(address, "/debug/pprof/cmdline").await?.1.starts_with(&program));
    // The system's allocator takes no profiles.
    let (code, heap) = get(address, "/debug/pprof/heap").await?;
    assert_eq!(code, 501);
    assert!(heap.contains("Manager::heap_profiles") && heap.contains("/debug/memory"), "{heap}");
    assert_eq!(get(address, "/debug/pprof/profile?seconds=0").await?.0, 400);
    assert_eq!(get(address, "/metrics").await?.0, 404);
    running.end().await
}

#[tokio::test]
async fn heap_profiles_of_the_program_are_served() -> Result<()> {
    let world = World::new();
    let manager = manager(&world).await?;
    let taken = AtomicUsize::new(0);
    manager.heap_profiles(move || match taken.fetch_add(1, Ordering::SeqCst) {
        0 => Ok(b"a profile".to_vec()),
        1 => Err(anyhow::anyhow!("no file").context("sampling is off")),
        _ => panic!("a bug of the allocator"),
    });
    let running = Running::start(&manager);
    let address = manager.addresses().await.pprof.context("profiles are served")?;
    let heap = async || get(address, "/debug/pprof/heap").await;
    assert_eq!(heap().await?, (200, "a profile".to_owned()));
    assert_eq!(heap().await?, (500, "failed to take a heap profile: sampling is off: no file\n".to_owned()));
    assert_eq!(heap().await?, (500, "the heap profiler panicked\n".to_owned()));
    running.end().await
}

#[cfg(not(feature = "profiling"))]
#[tokio::test]
async fn without_cpu_profiles_the_error_names_the_feature() -> Result<()> {
    let world = World::new();
    let manager = manager(&world).await?;
    let running = Running::start(&manager);
    let address = manager.addresses().await.pprof.context("profiles are served")?;
    let (code, text) = get(address, "/debug/pprof/profile?seconds=1").await?;
    assert_eq!(code, 501);
    assert!(text.contains("`profiling`"), "{text}");
    running.end().await
}

#[cfg(feature = "profiling")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cpu_profile_contains_the_running_code() -> Result<()> {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use bytes::Bytes;
    use http_body_util::{BodyExt as _, Empty};
    use hyper_util::client::legacy;
    use hyper_util::rt::TokioExecutor;

    #[inline(never)]
    fn burn_cycles_for_the_profile(done: &AtomicBool) -> u64 {
        let mut sum = 0u64;
        while !done.load(Ordering::Relaxed) {
            sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(7));
        }
        sum
    }

    let world = World::new();
    let manager = manager(&world).await?;
    let running = Running::start(&manager);
    let address = manager.addresses().await.pprof.context("profiles are served")?;
    let done = Arc::new(AtomicBool::new(false));
    let busy = tokio::task::spawn_blocking({
        let done = done.clone();
        move || burn_cycles_for_the_profile(&done)
    });
    let client = legacy::Client::builder(TokioExecutor::new()).build_http::<Empty<Bytes>>();
    let response = client.get(format!("http://{address}/debug/pprof/profile?seconds=1").parse()?);
    // One profile at a time.
    let (response, second) = tokio::join!(response, async {
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        get(address, "/debug/pprof/profile?seconds=1").await
    });
    done.store(true, Ordering::Relaxed);
    busy.await?;
    let response = response?;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "application/octet-stream");
    let profile = response.into_body().collect().await?.to_bytes();
    let has = |text: &str| profile.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(has("burn_cycles_for_the_profile"), "{} bytes", profile.len());
    assert!(has("cpu") && has("nanoseconds"));
    assert_eq!(second?.0, 409);
    running.end().await
}
