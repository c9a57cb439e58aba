//! The API server as a program and in-process: startup, memory, request rates and watches.
//!
//! Every round uses new servers. The sizes are fixed, so that figures of different runs are comparable.

mod cost;
mod endpoint;
mod fork;
pub(super) mod objects;
pub(super) mod program;
mod scale;
mod start;
pub(super) mod tls;
mod traffic;
mod watchers;
mod webhooks;

use anyhow::{Context as _, Result};
use kubewright_apiserver::{ApiServer, Options};
use tokio::runtime::{Builder, Runtime};

use super::{Bench, Suite};
use crate::row::{Row, Rows, Unit};
use endpoint::Endpoint;
use objects::Kind;
use program::{Binary, Program};
pub(crate) use start::first_start;
use traffic::Verb;

pub(crate) const SUITE: Suite = Suite { name: "server", run };

/// Objects in the large list and in the forked server.
const OBJECTS: usize = 10_000;
/// Fewer than ConfigMaps, because a Deployment costs more.
const DEPLOYMENTS: usize = 2_000;
/// Concurrent requests of the TLS client.
const IN_FLIGHT: usize = 16;
/// Writes with a data directory.
const DURABLE: usize = 1_000;
/// Starts and lists per round.
const REPEATS: usize = 5;
/// Name, number of watchers, and events per watcher in a round.
const WATCHERS: [(&str, usize, usize); 3] = [
    ("events to 1 watcher", 1, 10_000),
    ("events to 100 watchers", 100, 2_000),
    ("events to 1,000 watchers", 1_000, 500),
];

const READY_PROGRAM_MS: f64 = 10.0;
const READY_IN_PROCESS_MS: f64 = 1.0;
const IDLE_MB: f64 = 15.0;
const WRITE_CPU_US: f64 = 150.0;
const LIST_MS: f64 = 10.0;
const TABLE_CPU_MS: f64 = 50.0;

fn run(bench: &Bench) -> Result<Vec<Row>> {
    bench.progress.say("server: building kubewright");
    let binary = Binary::build()?;
    // The client has one thread, so that the program has the other cores and in-process figures are for one
    // core.
    let runtime = Builder::new_current_thread().enable_all().build().context("start the tokio runtime")?;
    // Watchers run concurrently with the writer.
    let threads = Builder::new_multi_thread().enable_all().build().context("start the tokio runtime")?;
    let mut rows = Rows::default();
    for round in 1..=bench.rounds {
        let say =
            |what: &str| bench.progress.say(&format!("server: {what}, round {round} of {}", bench.rounds));
        say("starts");
        starts(&runtime, &binary, &mut rows)?;
        say("program over TLS");
        over_tls(&runtime, &binary, &mut rows)?;
        say("data directory");
        durable(&runtime, &binary, &mut rows)?;
        say("in-process");
        in_process(&runtime, &mut rows)?;
        say("applies, Tables and CRDs");
        runtime.block_on(scale::measure(scale::SIZES, &mut rows))?;
        say("watchers");
        watching(&threads, &mut rows)?;
        say("webhooks");
        webhooks::measure(&runtime, &threads, webhooks::SIZES, &mut rows)?;
    }
    Ok(rows.into_vec())
}

fn starts(runtime: &Runtime, binary: &Binary, rows: &mut Rows) -> Result<()> {
    for _ in 0..REPEATS {
        let program = Program::start(binary)?;
        let ready = program.ready_after().as_secs_f64();
        rows.sample("start to ready, program", Unit::Millis, ready).target = Some(READY_PROGRAM_MS);
        let idle = runtime.block_on(program.idle_memory())?;
        rows.sample("idle RSS, program", Unit::Megabytes, idle).target = Some(IDLE_MB);
    }
    for _ in 0..REPEATS {
        let first = start::first_start_elsewhere()?.as_secs_f64();
        rows.sample("start in-process, first", Unit::Millis, first).target = Some(READY_IN_PROCESS_MS);
        let next = start::next_start().as_secs_f64();
        rows.sample("start in-process, next", Unit::Millis, next).target = Some(READY_IN_PROCESS_MS);
    }
    Ok(())
}

fn over_tls(runtime: &Runtime, binary: &Binary, rows: &mut Rows) -> Result<()> {
    let program = Program::start(binary)?;
    runtime.block_on(async {
        let endpoint = Endpoint::Tls(program.connect().await?);
        traffic(&endpoint, IN_FLIGHT, "TLS", rows).await?;
        let loaded = program.memory()?;
        rows.sample("RSS after 24,000 writes, program", Unit::Megabytes, loaded);
        let cpu = cost::of_create(&program, &endpoint, DEPLOYMENTS).await?;
        rows.sample("CPU per Deployment create, program", Unit::Micros, cpu).target = Some(WRITE_CPU_US);
        let cpu = cost::of_table(&program, &endpoint).await?;
        rows.sample("CPU per Table of 10,000 ConfigMaps, program", Unit::Millis, cpu).target =
            Some(TABLE_CPU_MS);
        Ok(())
    })
}

/// Writes with a data directory. A write is answered after a sync of the log, so the rate of one client is at most that
/// of the disk's syncs: the row of bare syncs is the floor. Concurrent writes share a sync.
fn durable(runtime: &Runtime, binary: &Binary, rows: &mut Rows) -> Result<()> {
    let program = Program::start_durable(binary)?;
    let syncs = program.syncs_per_second()?;
    rows.sample("syncs of 1 KB on this disk (floor of the next row)", Unit::PerSecond, syncs);
    runtime.block_on(async {
        let endpoint = Endpoint::Tls(program.connect().await?);
        for (in_flight, name) in [(1, "1 client"), (IN_FLIGHT, "16 concurrent requests")] {
            let names = (0..DURABLE).map(|at| format!("durable-{in_flight}-{at:05}"));
            let calls = names.map(|name| objects::create(endpoint.base(), Kind::ConfigMap, &name)).collect();
            let seconds = traffic::send(&endpoint, calls, in_flight).await?.as_secs_f64();
            let name = format!("creates of ConfigMaps with --data-dir, {name}");
            rows.sample(&name, Unit::PerSecond, per_second(DURABLE, seconds));
        }
        Ok(())
    })
}

fn in_process(runtime: &Runtime, rows: &mut Rows) -> Result<()> {
    runtime.block_on(async {
        let server = ApiServer::new(Options::default());
        let endpoint = Endpoint::InProcess(server.clone());
        traffic(&endpoint, 1, "in-process", rows).await?;
        for _ in 0..REPEATS {
            rows.sample("fork with 10,000 objects", Unit::Micros, fork::fork(&server).as_secs_f64());
            rows.sample(
                "first write after a fork",
                Unit::Micros,
                fork::first_write(&server).await?.as_secs_f64(),
            );
        }
        Ok(())
    })
}

/// Creates, updates, gets and the large list on one server.
async fn traffic(endpoint: &Endpoint, in_flight: usize, way: &str, rows: &mut Rows) -> Result<()> {
    for (kind, count) in [(Kind::ConfigMap, OBJECTS), (Kind::Deployment, DEPLOYMENTS)] {
        for verb in [Verb::Create, Verb::Update, Verb::Get] {
            let seconds = traffic::run(endpoint, kind, verb, count, in_flight).await?.as_secs_f64();
            let name = format!("{}s of {}s, {way}", verb.word(), kind.word());
            let rate = per_second(count, seconds);
            rows.sample(&name, Unit::PerSecond, rate);
            // In-process requests are measured in CPU time.
            if matches!(endpoint, Endpoint::InProcess(_)) && kind == Kind::Deployment && verb != Verb::Get {
                let name = format!("CPU per {} {}, in-process", kind.word(), verb.word());
                rows.sample(&name, Unit::Micros, rate.recip()).target = Some(WRITE_CPU_US);
            }
        }
    }
    for _ in 0..REPEATS {
        let seconds = traffic::list(endpoint, Kind::ConfigMap, OBJECTS).await?.as_secs_f64();
        rows.sample(&format!("list of 10,000 ConfigMaps, {way}"), Unit::Millis, seconds).target =
            Some(LIST_MS);
    }
    Ok(())
}

fn watching(threads: &Runtime, rows: &mut Rows) -> Result<()> {
    for (name, watchers, events) in WATCHERS {
        let seconds = threads.block_on(watchers::run(watchers, events))?.as_secs_f64();
        rows.sample(name, Unit::PerSecond, per_second(watchers * events, seconds));
    }
    Ok(())
}

fn per_second(count: usize, seconds: f64) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX)) / seconds
}
