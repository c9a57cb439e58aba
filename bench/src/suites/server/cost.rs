//! What a write costs: CPU time, which other programs on the machine disturb less than wall time.

use std::time::Duration;

use anyhow::Result;
use kubewright_apiserver::{ApiServer, Options};

use super::endpoint::Endpoint;
use super::objects::{self, Kind};
use super::program::Program;
use super::traffic::{self, Verb};
use super::{IN_FLIGHT, per_second};
use crate::process;

/// Seconds of CPU for one write of a Deployment in this process, the client's few included.
pub(super) async fn in_process(verb: Verb, writes: usize) -> Result<f64> {
    let endpoint = Endpoint::InProcess(ApiServer::new(Options::default()));
    if verb != Verb::Create {
        traffic::run(&endpoint, Kind::Deployment, Verb::Create, writes, 1).await?;
    }
    let calls = traffic::calls(&endpoint, Kind::Deployment, verb, writes);
    let before = process::own_cpu_time();
    traffic::send(&endpoint, calls, 1).await?;
    Ok(each(process::own_cpu_time().saturating_sub(before), writes))
}

/// Seconds of CPU that the program takes for one create of a Deployment, with TLS and HTTP/2.
pub(super) async fn of_program(program: &Program, endpoint: &Endpoint, writes: usize) -> Result<f64> {
    let names = (0..writes).map(|at| format!("cost-{at:05}"));
    let calls = names.map(|name| objects::create(endpoint.base(), Kind::Deployment, &name)).collect();
    let before = program.cpu_time()?;
    traffic::send(endpoint, calls, IN_FLIGHT).await?;
    Ok(each(program.cpu_time()?.saturating_sub(before), writes))
}

fn each(total: Duration, count: usize) -> f64 {
    per_second(count, total.as_secs_f64()).recip()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn creates_and_updates_cost_something() {
        for verb in [Verb::Create, Verb::Update] {
            assert!(in_process(verb, 10).await.unwrap() > 0.0);
        }
    }
}
