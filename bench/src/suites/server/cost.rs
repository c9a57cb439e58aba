//! CPU time of a write in the program, including TLS and HTTP/2.

use anyhow::Result;

use super::endpoint::Endpoint;
use super::objects::{self, Kind};
use super::program::Program;
use super::{IN_FLIGHT, per_second, traffic};

/// CPU seconds of the program per created Deployment.
pub(super) async fn of_create(program: &Program, endpoint: &Endpoint, writes: usize) -> Result<f64> {
    let names = (0..writes).map(|at| format!("cost-{at:05}"));
    let calls = names.map(|name| objects::create(endpoint.base(), Kind::Deployment, &name)).collect();
    let before = program.cpu_time()?;
    traffic::send(endpoint, calls, IN_FLIGHT).await?;
    let cpu = program.cpu_time()?.saturating_sub(before);
    Ok(per_second(writes, cpu.as_secs_f64()).recip())
}
