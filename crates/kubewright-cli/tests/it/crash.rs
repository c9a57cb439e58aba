//! Kills `kubewright apiserver --data-dir` repeatedly: no acknowledged write is lost.
//!
//! Each writer has its own object names, so it knows the expected state of each object: that of the last
//! response, or that of the one request without a response.
//!
//! Sizes, names, verbs and kill times are the same in every run; set `KUBEWRIGHT_CRASH_SEED` to try others. A
//! failure prints the seed. Thread scheduling still varies.

mod checker;
mod clients;
mod garbage;
mod histories;
mod history;
mod linear;
mod server;
mod versions;
mod watcher;
mod writer;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use server::Server;
use writer::{Known, Shared, Writer};

const WRITERS: usize = 16;
/// Timeout for one round, generous for debug builds on a busy machine.
const DEADLINE: Duration = Duration::from_mins(1);

fn seed() -> Result<u64> {
    match std::env::var("KUBEWRIGHT_CRASH_SEED") {
        Ok(seed) => seed.parse().context("KUBEWRIGHT_CRASH_SEED must be a number"),
        Err(_) => Ok(0xc4a5),
    }
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder")
}

/// All objects in the namespace by name, and the list's resource version.
async fn objects(server: &Server) -> Result<(BTreeMap<String, Value>, u64)> {
    let mut list = server.get(writer::PATH).await?;
    let revision = writer::revision(&list)?;
    let items = list["items"].as_array_mut().map(std::mem::take).context("no list")?;
    let named = items.into_iter().map(|mut item| {
        // List items have no apiVersion and kind.
        item["apiVersion"] = "v1".into();
        item["kind"] = "ConfigMap".into();
        (item["metadata"]["name"].as_str().unwrap_or_default().to_owned(), item)
    });
    Ok((named.collect(), revision))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_acknowledged_write_is_lost() -> Result<()> {
    let seed = seed()?;
    kill_repeatedly(seed).await.with_context(|| format!("KUBEWRIGHT_CRASH_SEED={seed}"))
}

async fn kill_repeatedly(seed: u64) -> Result<()> {
    const ROUNDS: u64 = 12;
    let dir = folder();
    let mut random = fastrand::Rng::with_seed(seed);
    let mut known = Known::default();
    let mut highest = 0;
    let mut acknowledged = 0;
    for round in 0..ROUNDS {
        let in_round = || format!("round {round}");
        let server = Server::start(dir.path()).await.with_context(in_round)?;
        let (found, revision) = objects(&server).await.with_context(in_round)?;
        ensure!(revision >= highest, "the revision went back from {highest} to {revision} in round {round}");
        known.settle(&found).with_context(in_round)?;

        // Kill after this many responses, with other requests in flight.
        let shared = Arc::new(Shared::new(revision, random.usize(100..600)));
        let writers: Vec<_> = (0..WRITERS)
            .map(|at| {
                let mine = known.take(at);
                let writer = Writer::new(at, server.client(), mine, shared.clone(), random.fork());
                tokio::spawn(writer.run())
            })
            .collect();
        let enough = tokio::time::timeout(DEADLINE, shared.enough()).await;
        server.kill()?;
        for (at, writer) in writers.into_iter().enumerate() {
            known.put(at, writer.await?.with_context(in_round)?);
        }
        enough.with_context(in_round).context("there were too few answers")?;
        highest = shared.highest();
        acknowledged += shared.acknowledged();
    }
    let server = Server::start(dir.path()).await?;
    let (found, revision) = objects(&server).await?;
    ensure!(revision >= highest, "the revision went back from {highest} to {revision}");
    known.settle(&found)?;
    ensure!(acknowledged > 1_000, "only {acknowledged} writes");
    server.kill()
}

#[tokio::test]
async fn a_server_killed_during_startup_can_start_again() -> Result<()> {
    let dir = folder();
    let server = Server::start(dir.path()).await?;
    let created = server.create("kept", "value").await?;
    server.kill()?;
    let mut random = fastrand::Rng::with_seed(2);
    let mut revision = writer::revision(&created)?;
    for _ in 0..10 {
        if random.bool() {
            // Before it is ready.
            Server::spawn(dir.path())?.kill()?;
        } else {
            // As soon as it is ready.
            Server::start(dir.path()).await?.kill()?;
        }
    }
    let server = Server::start(dir.path()).await?;
    let (found, now) = objects(&server).await?;
    assert_eq!(found["kept"], created);
    assert!(now >= revision, "the revision went back from {revision} to {now}");
    revision = now;
    assert!(writer::revision(&server.create("next", "value").await?)? > revision);
    server.kill()
}

/// Snapshots start when the log is long, so the objects are large.
#[tokio::test]
async fn a_crash_while_a_snapshot_is_written_loses_nothing() -> Result<()> {
    const SIZE: usize = 900_000;
    const MOST: usize = 200;
    let dir = folder();
    let server = Server::start(dir.path()).await?;
    let mut last = BTreeMap::new();
    for count in 0.. {
        ensure!(count < MOST, "no snapshot after {count} large writes");
        let name = format!("large-{}", count % 3);
        let value = format!("{count:07}-").repeat(SIZE / 8);
        last.insert(name.clone(), server.put(&name, &value).await?);
        let mut files = std::fs::read_dir(dir.path())?;
        if files.any(|file| file.is_ok_and(|file| file.file_name().to_string_lossy().contains("snapshot"))) {
            break;
        }
    }
    server.kill()?;
    let server = Server::start(dir.path()).await?;
    let (found, _) = objects(&server).await?;
    for (name, object) in last {
        assert!(found[&name] == object, "{name} has changed");
    }
    server.kill()
}

#[tokio::test]
async fn a_data_directory_is_locked() -> Result<()> {
    let dir = folder();
    let first = Server::start(dir.path()).await?;
    let second = Server::start(dir.path()).await;
    assert!(second.is_err(), "two servers on one folder");
    first.create("kept", "value").await?;
    first.kill()?;
    Server::start(dir.path()).await?.kill()
}

/// A changed bit in an acknowledged write is an error, not an incomplete write.
#[tokio::test]
async fn damage_of_the_last_write_is_reported_with_file_and_offset() -> Result<()> {
    let dir = folder();
    let server = Server::start(dir.path()).await?;
    server.create("kept", "value").await?;
    server.kill()?;
    let path = dir.path().join("log-00000000000000000000");
    let mut bytes = std::fs::read(&path)?;
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&path, &bytes)?;

    let stderr = Server::rejected(dir.path())?;
    let marker = [0xFF, b'k', b'w', 0xFE];
    let offset = (0..last).rfind(|at| bytes[*at..].starts_with(&marker)).context("no frame")?;
    let damaged = format!("{} is damaged at byte {offset}: ", path.display());
    assert!(stderr.contains(&damaged), "{stderr}");
    assert!(stderr.contains("restore the directory from a backup"), "{stderr}");
    assert!(std::fs::read(&path)? == bytes, "the log was changed");
    Ok(())
}
