//! Test environments: startup time, time until a CRD is served, and memory of many environments.
//!
//! Uses the embedded control plane through kubewright-envtest. Each round starts environments one after
//! another. Memory is measured in a separate process with many environments at once.

use std::process::Command;
use std::time::Instant;
use std::{env, thread};

use anyhow::{Context as _, Result, ensure};
use http::Request;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kubewright_envtest::{Environment, Mode, objects};
use tokio::runtime::Builder;

use super::{Bench, Suite};
use crate::process;
use crate::row::{Row, Rows, Unit};
use crate::samples::Samples;

pub(crate) const SUITE: Suite = Suite { name: "envtest", run };

/// Environments per round.
const ENVIRONMENTS: usize = 1_000;
/// Number of parallel environments for the memory measurement.
pub(crate) const PARALLEL: usize = 200;

const START_P50_MS: f64 = 1.0;
const START_P99_MS: f64 = 5.0;
const SERVED_MS: f64 = 2.0;
const PARALLEL_MB: f64 = 1_000.0;

const DEFINITION: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.bench.example.com}
spec:
  group: bench.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [size]
            properties:
              size: {type: integer, minimum: 0, maximum: 100}
              color: {type: string, enum: [red, green], default: red}
              labels: {type: object, additionalProperties: {type: string}}
            x-kubernetes-validations:
            - {rule: self.size > 0 || self.color == 'red', message: nothing is red}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
";

fn run(bench: &Bench) -> Result<Vec<Row>> {
    let runtime = Builder::new_current_thread().enable_all().build().context("start the tokio runtime")?;
    let mut rows = Rows::default();
    for round in 1..=bench.rounds {
        bench.progress.say(&format!("envtest: environments, round {round} of {}", bench.rounds));
        let times = runtime.block_on(one_after_the_other(ENVIRONMENTS))?;
        for (name, seconds, target) in [
            ("start, p50", times.start.quantile(0.5), Some(START_P50_MS)),
            ("start, p99", times.start.quantile(0.99), Some(START_P99_MS)),
            ("CRD served, p50", times.served.quantile(0.5), Some(SERVED_MS)),
            ("CRD served, p99", times.served.quantile(0.99), None),
            ("stop, p50", times.stop.quantile(0.5), None),
            ("stop, p99", times.stop.quantile(0.99), None),
        ] {
            rows.sample(name, Unit::Millis, seconds).target = target;
        }
        bench.progress.say(&format!("envtest: memory, round {round} of {}", bench.rounds));
        let name = format!("RSS of {PARALLEL} environments in parallel");
        rows.sample(&name, Unit::Megabytes, parallel_elsewhere()?).target = Some(PARALLEL_MB);
    }
    Ok(rows.into_vec())
}

/// Seconds per environment.
#[derive(Debug, Default)]
struct Times {
    start: Samples,
    served: Samples,
    stop: Samples,
}

async fn one_after_the_other(environments: usize) -> Result<Times> {
    let definition = definition()?;
    let mut times = Times::default();
    for _ in 0..environments {
        let started = Instant::now();
        let env = start().await?;
        times.start.push(started.elapsed().as_secs_f64());
        let created = Instant::now();
        serve(&env, &definition).await?;
        times.served.push(created.elapsed().as_secs_f64());
        let stopped = Instant::now();
        drop(env);
        times.stop.push(stopped.elapsed().as_secs_f64());
    }
    Ok(times)
}

/// Starts the embedded control plane, regardless of environment variables.
async fn start() -> Result<Environment> {
    Ok(Environment::builder().mode(Mode::Embedded).start().await?)
}

/// Creates the CRD and lists its objects once.
async fn serve(env: &Environment, definition: &CustomResourceDefinition) -> Result<()> {
    env.install(std::slice::from_ref(definition)).await?;
    let list = Request::get("/apis/bench.example.com/v1/widgets").body(Vec::new())?;
    let list = env.client().request_text(list).await?;
    ensure!(list.contains("WidgetList"), "unexpected list: {list}");
    Ok(())
}

fn definition() -> Result<CustomResourceDefinition> {
    Ok(objects(DEFINITION)?.remove(0).try_parse()?)
}

/// Memory in bytes of a process with many environments, each with a CRD.
fn parallel_elsewhere() -> Result<f64> {
    let own = env::current_exe().context("get the path of this program")?;
    let output = Command::new(own).arg("--environments").output().context("start this program again")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().parse().context("parse the number of bytes")
}

/// Starts environments on all cores and returns the memory of this process while they run.
pub(crate) fn in_parallel(environments: usize) -> Result<u64> {
    let threads = thread::available_parallelism().context("get the number of cores")?.get();
    let runtime = Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .build()
        .context("start the tokio runtime")?;
    runtime.block_on(async {
        let tasks: Vec<_> = (0..environments)
            .map(|_| {
                tokio::spawn(async {
                    let env = start().await?;
                    serve(&env, &definition()?).await?;
                    env.namespace().await?;
                    anyhow::Ok(env)
                })
            })
            .collect();
        let mut all = Vec::new();
        for task in tasks {
            all.push(task.await.context("an environment panicked")??);
        }
        let memory = process::resident_memory(std::process::id())?;
        drop(all);
        Ok(memory)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_environment_starts_serves_and_stops() {
        let times = one_after_the_other(3).await.unwrap();
        for times in [&times.start, &times.served, &times.stop] {
            assert_eq!(times.len(), 3);
            assert!(times.quantile(0.0) > 0.0 && times.quantile(0.5) <= times.quantile(0.99));
        }
    }

    #[test]
    fn environments_in_parallel_hold_memory() {
        assert!(in_parallel(3).unwrap() > 1 << 20);
    }
}
