//! `kubewright apiserver --data-dir` is killed without warning, again and again: what it acknowledged is there.
//!
//! Every writer has names of its own, so that it knows what each of its objects must look like afterwards: as
//! the last answer said, or as the one request that was never answered wanted it.
//!
//! Sizes, names, verbs and the moments of the kills are the same in every run; set `KUBEWRIGHT_CRASH_SEED` to
//! a number to try others. A failure says which it was. The system's scheduling stays its own.

mod server;
mod writer;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use server::Server;
use writer::{Known, Shared, Writer};

const WRITERS: usize = 16;
/// Longer than the writes of one round take, in a debug build on a busy machine.
const DEADLINE: Duration = Duration::from_mins(1);

fn seed() -> Result<u64> {
    match std::env::var("KUBEWRIGHT_CRASH_SEED") {
        Ok(seed) => seed.parse().context("KUBEWRIGHT_CRASH_SEED is no number"),
        Err(_) => Ok(0xc4a5),
    }
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder")
}

/// Every object in the namespace by its name, and the revision of the list.
async fn objects(server: &Server) -> Result<(BTreeMap<String, Value>, u64)> {
    let mut list = server.get(writer::PATH).await?;
    let revision = writer::revision(&list)?;
    let items = list["items"].as_array_mut().map(std::mem::take).context("no list")?;
    let named = items.into_iter().map(|mut item| {
        // In a list, kind and version are said once.
        item["apiVersion"] = "v1".into();
        item["kind"] = "ConfigMap".into();
        (item["metadata"]["name"].as_str().unwrap_or_default().to_owned(), item)
    });
    Ok((named.collect(), revision))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_that_was_acknowledged_is_lost() -> Result<()> {
    let seed = seed()?;
    kill_again_and_again(seed).await.with_context(|| format!("KUBEWRIGHT_CRASH_SEED={seed}"))
}

async fn kill_again_and_again(seed: u64) -> Result<()> {
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

        // Killed after so many answers, wherever the other requests are at that moment.
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
async fn a_server_that_is_killed_while_it_starts_starts_the_next_time() -> Result<()> {
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
            // As soon as it is.
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

/// A snapshot begins when the log is long: large objects make it so.
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
async fn one_folder_serves_one_server_at_a_time() -> Result<()> {
    let dir = folder();
    let first = Server::start(dir.path()).await?;
    let second = Server::start(dir.path()).await;
    assert!(second.is_err(), "two servers on one folder");
    first.create("kept", "value").await?;
    first.kill()?;
    Server::start(dir.path()).await?.kill()
}
