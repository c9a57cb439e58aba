//! CPU time of a write and of a Table in the program, including TLS and HTTP/2.

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

/// Tables per measurement, because the CPU time of another process has a resolution of 10 ms.
const TABLES: usize = 20;

/// CPU seconds of the program per list as a Table.
pub(super) async fn of_table(program: &Program, endpoint: &Endpoint) -> Result<f64> {
    let path = format!("{}{}", endpoint.base(), Kind::ConfigMap.collection());
    let calls = (0..TABLES).map(|_| objects::table(&path)).collect();
    let before = program.cpu_time()?;
    traffic::send(endpoint, calls, 1).await?;
    let cpu = program.cpu_time()?.saturating_sub(before);
    Ok(per_second(TABLES, cpu.as_secs_f64()).recip())
}
