//! A cluster: pod startup rate of Deployments, and memory and CPU of a large idle cluster.
//!
//! API server, controllers, scheduler and kubelets run in one process without sockets, as in `kubewright
//! apiserver --controllers all`. Each sample is taken in a new process, so memory of earlier rounds does not
//! count.

use std::env;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use http::Request;
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Api, PostParams};
use kubewright_cluster::{Nodes, Options};
use kubewright_envtest::{Environment, Mode};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::runtime::Builder;

use super::{Bench, Suite};
use crate::process;
use crate::row::{Row, Rows, Unit};

pub(crate) const SUITE: Suite = Suite { name: "cluster", run };

/// Interval of node heartbeats, as in the program.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// Shortest interval of checks whether all pods run.
const POLL: Duration = Duration::from_millis(20);
/// A check lists all pods. The pause after it is this many times as long as the check, so that checks take at most 2 %
/// of the measured time.
const PAUSE: u32 = 50;
/// Timeout for all pods to run.
const DEADLINE: Duration = Duration::from_mins(10);
/// Target for the CPU time of a pod from its creation to Running, in milliseconds.
const CPU_MS: f64 = 2.0;
/// Target for the memory of the large cluster, in megabytes.
const HELD_MB: f64 = 500.0;

/// The measured scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Work {
    /// Creates many Deployments and waits until all their pods run.
    Rollout,
    /// Measures an idle cluster with many nodes and pods.
    Held,
}

impl Work {
    fn name(self) -> &'static str {
        match self {
            Self::Rollout => "rollout",
            Self::Held => "held",
        }
    }

    fn sizes(self) -> Sizes {
        match self {
            Self::Rollout => Sizes {
                nodes: 50,
                deployments: 1_000,
                replicas: 3,
                settle: Duration::ZERO,
                rest: Duration::ZERO,
            },
            Self::Held => Sizes {
                nodes: 5_000,
                deployments: 200,
                replicas: 100,
                settle: Duration::from_secs(5),
                // A multiple of the heartbeat interval.
                rest: 2 * HEARTBEAT,
            },
        }
    }
}

/// The size of a cluster and how long it is observed while idle.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    nodes: usize,
    deployments: u32,
    replicas: u32,
    settle: Duration,
    rest: Duration,
}

impl Sizes {
    fn pods(self) -> u32 {
        self.deployments * self.replicas
    }
}

/// The result of one run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Figures {
    /// Seconds until all pods were running.
    seconds: f64,
    /// CPU seconds until then.
    cpu: f64,
    /// Resident memory at the end, in bytes.
    memory: u64,
    /// The highest resident memory, in bytes.
    peak: u64,
    /// CPU seconds per second while idle.
    rest: f64,
}

fn run(bench: &Bench) -> Result<Vec<Row>> {
    let mut rows = Rows::default();
    for round in 1..=bench.rounds {
        bench.progress.say(&format!("cluster: rollout, round {round} of {}", bench.rounds));
        let pods = f64::from(Work::Rollout.sizes().pods());
        let figures = elsewhere(Work::Rollout)?;
        let what = "1,000 Deployments of 3 replicas";
        rows.sample(&format!("{what}: pods to Running"), Unit::PerSecond, pods / figures.seconds);
        rows.sample(&format!("{what}: CPU per pod"), Unit::Millis, figures.cpu / pods).target = Some(CPU_MS);
        rows.sample(&format!("{what}: RSS"), Unit::Megabytes, bytes(figures.memory));
        bench.progress.say(&format!("cluster: idle, round {round} of {}", bench.rounds));
        let pods = f64::from(Work::Held.sizes().pods());
        let figures = elsewhere(Work::Held)?;
        let what = "5,000 nodes and 20,000 pods";
        rows.sample(&format!("{what}: CPU per pod"), Unit::Millis, figures.cpu / pods).target = Some(CPU_MS);
        rows.sample(&format!("{what}: peak RSS"), Unit::Megabytes, bytes(figures.peak)).target =
            Some(HELD_MB);
        rows.sample(&format!("{what}: RSS"), Unit::Megabytes, bytes(figures.memory)).target = Some(HELD_MB);
        rows.sample(&format!("{what}: CPU per second while idle"), Unit::Millis, figures.rest);
    }
    Ok(rows.into_vec())
}

#[expect(clippy::cast_precision_loss, reason = "approximate figure for display")]
fn bytes(count: u64) -> f64 {
    count as f64
}

/// Runs the scenario in a new process.
fn elsewhere(work: Work) -> Result<Figures> {
    let own = env::current_exe().context("get the path of this program")?;
    let output =
        Command::new(own).args(["--cluster", work.name()]).output().context("start this program again")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).context("parse the figures")
}

/// Runs the scenario in this process on all cores.
pub(crate) fn measure(work: Work) -> Result<Figures> {
    let runtime = Builder::new_multi_thread().enable_all().build().context("start the tokio runtime")?;
    runtime.block_on(of_sizes(work.sizes()))
}

async fn of_sizes(sizes: Sizes) -> Result<Figures> {
    let nodes = Nodes { heartbeat: Some(HEARTBEAT), ..Nodes::count(sizes.nodes) };
    let options = Options { nodes, ..Options::default() };
    let env = Environment::builder().mode(Mode::Embedded).with_cluster_options(options).start().await?;
    let namespace = env.namespace().await?;
    let all_nodes = u64::try_from(sizes.nodes)?;
    until(async || Ok(count(&env, "/api/v1/nodes").await? == all_nodes)).await?;

    let (started, cpu) = (Instant::now(), process::own_cpu_time());
    let api: Api<Deployment> = Api::namespaced(env.client(), &namespace);
    for number in 0..sizes.deployments {
        api.create(&PostParams::default(), &deployment(number, sizes.replicas)?).await?;
    }
    let pods = format!("/api/v1/namespaces/{namespace}/pods");
    let waiting = format!("{pods}?fieldSelector=status.phase!%3DRunning");
    until(async || {
        Ok(count(&env, &pods).await? == u64::from(sizes.pods()) && count(&env, &waiting).await? == 0)
    })
    .await?;
    let seconds = started.elapsed().as_secs_f64();
    let cpu = process::own_cpu_time().saturating_sub(cpu).as_secs_f64();

    tokio::time::sleep(sizes.settle).await;
    let (started, before) = (Instant::now(), process::own_cpu_time());
    tokio::time::sleep(sizes.rest).await;
    let rest = process::own_cpu_time().saturating_sub(before).as_secs_f64() / started.elapsed().as_secs_f64();
    let memory = process::resident_memory(std::process::id())?;
    let peak = process::peak_memory(std::process::id())?;
    Ok(Figures { seconds, cpu, memory, peak, rest })
}

fn deployment(number: u32, replicas: u32) -> Result<Deployment> {
    let name = format!("web-{number}");
    let labels = json!({ "app": name });
    Ok(serde_json::from_value(json!({
        "metadata": { "name": name },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": { "containers": [{
                    "name": "web", "image": "web:1", "resources": { "requests": { "cpu": "10m", "memory": "16Mi" } },
                }] },
            },
        },
    }))?)
}

/// The number of objects in a list. Reads one object; without a remaining count the result is at most 1.
async fn count(env: &Environment, list: &str) -> Result<u64> {
    let separator = if list.contains('?') { '&' } else { '?' };
    let request = Request::get(format!("{list}{separator}limit=1")).body(Vec::new())?;
    let list: Value = serde_json::from_str(&env.client().request_text(request).await?)?;
    let shown = list["items"].as_array().map_or(0, Vec::len);
    Ok(u64::try_from(shown)? + list["metadata"]["remainingItemCount"].as_u64().unwrap_or_default())
}

async fn until(mut is_so: impl AsyncFnMut() -> Result<bool>) -> Result<()> {
    let there = async {
        loop {
            let started = Instant::now();
            if is_so().await? {
                return Ok(());
            }
            tokio::time::sleep(POLL.max(started.elapsed() * PAUSE)).await;
        }
    };
    let there = tokio::time::timeout(DEADLINE, there).await;
    there.with_context(|| format!("not all nodes and pods are running after {DEADLINE:?}"))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn a_small_cluster_starts_its_pods_and_becomes_idle() {
        let short = Duration::from_millis(50);
        let sizes = Sizes { nodes: 2, deployments: 3, replicas: 2, settle: Duration::ZERO, rest: short };
        let figures = of_sizes(sizes).await.unwrap();
        assert!(figures.seconds > 0.0 && figures.cpu > 0.0 && figures.memory > 1 << 20, "{figures:?}");
        assert!(figures.peak >= figures.memory);
        assert!(figures.rest.is_finite());
    }

    #[test]
    fn row_names_contain_the_cluster_size() {
        let (rollout, held) = (Work::Rollout.sizes(), Work::Held.sizes());
        assert_eq!((rollout.deployments, rollout.replicas), (1_000, 3));
        assert_eq!((held.nodes, held.pods()), (5_000, 20_000));
    }

    #[test]
    fn figures_round_trip_as_json() {
        let figures = Figures { seconds: 1.5, cpu: 2.0, memory: 3, peak: 4, rest: 0.25 };
        let read: Figures = serde_json::from_str(&serde_json::to_string(&figures).unwrap()).unwrap();
        assert_eq!(format!("{read:?}"), format!("{figures:?}"));
    }
}
