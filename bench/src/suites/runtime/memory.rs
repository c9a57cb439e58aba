//! Memory of an operator with its cache.
//!
//! Both sides are programs that connect over TLS to a server in this process. The server and its objects are
//! reused; each sample starts a new process.

use anyhow::{Context as _, Result};
use kubewright_apiserver::serve::Listening;
use tokio::runtime::Builder;

use super::PEER;
use super::program::{Binary, Program};
use super::world::World;
use crate::row::{Rows, Unit};
use crate::suites::Bench;

/// The name of the row, the kind and the number of objects.
const STAGES: [(&str, &str, usize); 4] = [
    ("idle", "widgets", 0),
    ("with 10,000 widgets", "widgets", 10_000),
    ("with 100,000 widgets", "widgets", 100_000),
    ("with 10,000 Pods", "pods", 10_000),
];

pub(super) fn measure(bench: &Bench, ours: &Binary, peer: &Binary, rows: &mut Rows) -> Result<()> {
    let runtime = Builder::new_multi_thread().enable_all().build().context("start the tokio runtime")?;
    let folder = tempfile::tempdir().context("create a directory for the kubeconfig")?;
    let kubeconfig = folder.path().join("kubeconfig");
    let mut world = runtime.block_on(World::filled(0))?;
    for (name, kind, objects) in STAGES {
        bench.progress.say(&format!("runtime: memory, {name}"));
        let listening = runtime.block_on(async {
            match kind {
                "pods" => world.fill_pods(objects).await?,
                _ => world.fill(objects).await?,
            }
            Listening::open(world.server.clone(), 0).await.context("start the server")
        })?;
        std::fs::write(&kubeconfig, listening.kubeconfig()).context("write the kubeconfig")?;
        for _ in 0..bench.rounds {
            let ours = Reading::of(&ours.start(&kubeconfig, kind, objects)?)?;
            let peer = Reading::of(&peer.start(&kubeconfig, kind, objects)?)?;
            rows.sample_beside(&format!("RSS {name}"), Unit::Megabytes, ours.memory, (PEER, peer.memory));
            if objects > 0 {
                rows.sample_beside(&format!("start {name}"), Unit::Millis, ours.ready, (PEER, peer.ready));
                rows.sample_beside(&format!("startup CPU {name}"), Unit::Millis, ours.cpu, (PEER, peer.cpu));
            }
        }
        runtime.block_on(listening.close());
    }
    Ok(())
}

/// Measurements after a process has reconciled every object once.
struct Reading {
    /// Bytes.
    memory: f64,
    /// Seconds.
    ready: f64,
    /// Seconds.
    cpu: f64,
}

impl Reading {
    fn of(program: &Program) -> Result<Self> {
        let cpu = program.cpu_time()?.as_secs_f64();
        Ok(Self { memory: program.memory()?, ready: program.ready_after().as_secs_f64(), cpu })
    }
}
