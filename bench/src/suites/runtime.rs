//! The runtime: speed and memory of an operator on kubewright-runtime, compared with the same operator on
//! kube-rs.
//!
//! Both are the same [`Operator`] on copies of the same server and run alternately. Speed is measured
//! in-process, with the server as the service of kube's client. Memory and size are measured on programs that
//! connect over TLS.

mod idle;
mod latency;
mod memory;
mod program;
mod reads;
mod speed;
mod world;

use std::sync::Arc;

use anyhow::{Context as _, Result};
use kubewright_bench_ours::Ours;
use kubewright_bench_peer::Peer;
use kubewright_bench_work::{Operator, Work};
use tokio::runtime::Builder;
use tracing::Level;

use super::{Bench, Suite};
use crate::row::{Row, Rows, Unit};
use program::Binary;
use world::World;

pub(crate) const SUITE: Suite = Suite { name: "runtime", run };

const PEER: &str = "kube-rs";
/// Objects for no-op reconciles.
const OBJECTS: usize = 10_000;
const PASSES: u32 = 10;
/// Objects whose status is patched. Fewer, because a write costs the server far more than the client.
const PATCHED: usize = 2_000;
/// Updates whose latency to the reconciler is measured.
const UPDATES: usize = 2_000;
const WORKERS: [(&str, u16); 2] = [("1 worker", 1), ("16 workers", 16)];

fn run(bench: &Bench) -> Result<Vec<Row>> {
    logs();
    bench.progress.say("runtime: building the programs");
    let (ours, peer) = (Binary::build("kubewright-bench-ours")?, Binary::build("kubewright-bench-peer")?);
    bench.progress.say("runtime: creating objects");
    let world = on_threads(World::filled(OBJECTS))?;
    let few = on_threads(World::filled(PATCHED))?;
    let mut rows = Rows::default();
    for round in 1..=bench.rounds {
        let say =
            |what: &str| bench.progress.say(&format!("runtime: {what}, round {round} of {}", bench.rounds));
        say("no-op reconciles");
        no_ops(&world, &mut rows)?;
        say("status-patching reconciles");
        patches(&few, &mut rows)?;
        say("update to reconcile");
        latencies(&few, &mut rows)?;
    }
    reads::measure(bench, &mut rows)?;
    idle::measure(bench, &mut rows)?;
    memory::measure(bench, &ours, &peer, &mut rows)?;
    rows.sample_beside("program, stripped", Unit::Megabytes, ours.size()?, (PEER, peer.size()?));
    Ok(rows.into_vec())
}

fn no_ops(world: &World, rows: &mut Rows) -> Result<()> {
    for (name, workers) in WORKERS {
        let ours = on_threads(speed::no_op::<Ours>(world.copy(), workers, PASSES))?;
        let peer = on_threads(speed::no_op::<Peer>(world.copy(), workers, PASSES))?;
        rows.sample_beside(
            &format!("no-op reconciles, {name}"),
            Unit::PerSecond,
            ours.per_second,
            (PEER, peer.per_second),
        );
        rows.sample_beside(
            &format!("CPU per no-op reconcile, {name}"),
            Unit::Micros,
            ours.cpu,
            (PEER, peer.cpu),
        );
    }
    Ok(())
}

fn patches(world: &World, rows: &mut Rows) -> Result<()> {
    for (name, workers) in WORKERS {
        let ours = on_threads(speed::patch_status::<Ours>(world.copy(), workers))?;
        let peer = on_threads(speed::patch_status::<Peer>(world.copy(), workers))?;
        rows.sample_beside(
            &format!("status-patching reconciles, {name}"),
            Unit::PerSecond,
            ours.per_second,
            (PEER, peer.per_second),
        );
        rows.sample_beside(
            &format!("CPU per status-patching reconcile, {name}"),
            Unit::Micros,
            ours.cpu,
            (PEER, peer.cpu),
        );
    }
    Ok(())
}

fn latencies(world: &World, rows: &mut Rows) -> Result<()> {
    let ours = on_threads(latency::measure::<Ours>(world.copy(), UPDATES))?;
    let peer = on_threads(latency::measure::<Peer>(world.copy(), UPDATES))?;
    for (name, part) in [("p50", 0.5), ("p99", 0.99)] {
        rows.sample_beside(
            &format!("update to reconcile, {name}"),
            Unit::Micros,
            ours.quantile(part),
            (PEER, peer.quantile(part)),
        );
    }
    Ok(())
}

/// Runs one side on a new multi-threaded tokio runtime.
fn on_threads<T: Send + 'static>(work: impl Future<Output = Result<T>> + Send + 'static) -> Result<T> {
    let runtime = Builder::new_multi_thread().enable_all().build().context("start the tokio runtime")?;
    // Spawned, so that it runs on a worker thread.
    runtime.block_on(runtime.spawn(work)).context("the benchmark panicked")?
}

/// Enables logging as in production, so that spans have their usual cost. The output is discarded.
fn logs() {
    // Only the first suite in a process can set the subscriber.
    let _ = tracing_subscriber::fmt().with_max_level(Level::INFO).with_writer(std::io::sink).try_init();
}

/// Starts an operator and waits until it has reconciled every object once.
async fn started<O: Operator>(world: &World, workers: u16) -> Result<(O, Arc<Work>)> {
    let work = Arc::new(Work::new());
    let all = work.expect(world.names.len());
    let operator = O::start(world.client(), World::setup(workers), work.clone()).await?;
    operator.ready().await?;
    all.await.context("the operator stopped")?;
    Ok((operator, work))
}

fn per_second(count: usize, seconds: f64) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX)) / seconds
}
