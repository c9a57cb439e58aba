//! Reconcile throughput of an operator and the CPU cost of a reconcile.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use kubewright_bench_work::Operator;

use super::world::World;
use super::{per_second, started};
use crate::process;

/// The result of one side.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// Reconciles per second of wall time.
    pub(super) per_second: f64,
    /// CPU seconds per reconcile over all threads. Includes the in-process server's cost.
    pub(super) cpu: f64,
}

impl Pace {
    fn new(reconciles: usize, wall: Duration, cpu: Duration) -> Self {
        Self {
            per_second: per_second(reconciles, wall.as_secs_f64()),
            cpu: per_second(reconciles, cpu.as_secs_f64()).recip(),
        }
    }
}

/// Reconciles all objects `passes` times without any change.
pub(super) async fn no_op<O: Operator>(world: World, workers: u16, passes: u32) -> Result<Pace> {
    let (operator, work) = started::<O>(&world, workers).await?;
    let (mut wall, mut cpu, mut reconciles) = (Duration::ZERO, Duration::ZERO, 0);
    for _ in 0..passes {
        let all = work.expect(world.names.len());
        let (started, before) = (Instant::now(), process::own_cpu_time());
        operator.again(&world.names).await?;
        let done = all.await.context("the operator stopped")?;
        cpu += process::own_cpu_time().saturating_sub(before);
        wall += done - started;
        reconciles += world.names.len();
    }
    operator.stop().await?;
    Ok(Pace::new(reconciles, wall, cpu))
}

/// Reconciles all objects once, and each reconcile patches the status. The event of each patch triggers
/// another reconcile, which changes nothing.
pub(super) async fn patch_status<O: Operator>(world: World, workers: u16) -> Result<Pace> {
    let (operator, work) = started::<O>(&world, workers).await?;
    work.patch_status(1);
    let all = work.expect(world.names.len());
    let (started, before) = (Instant::now(), process::own_cpu_time());
    operator.again(&world.names).await?;
    let done = all.await.context("the operator stopped")?;
    let cpu = process::own_cpu_time().saturating_sub(before);
    operator.stop().await?;
    Ok(Pace::new(world.names.len(), done - started, cpu))
}

#[cfg(test)]
mod tests {
    use kubewright_bench_ours::Ours;
    use kubewright_bench_peer::Peer;

    use super::*;

    async fn both_reconcile<O: Operator>() {
        let world = World::filled(20).await.unwrap();
        for workers in [1, 16] {
            assert!(no_op::<O>(world.copy(), workers, 2).await.unwrap().per_second > 0.0);
            let before = world.server.revision();
            let copy = world.copy();
            let server = copy.server.clone();
            assert!(patch_status::<O>(copy, workers).await.unwrap().per_second > 0.0);
            // One write per widget, and a few of the Lease.
            assert!((20..30).contains(&(server.revision() - before)), "{}", server.revision() - before);
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn our_operator_reconciles_every_object() {
        both_reconcile::<Ours>().await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_peer_reconciles_every_object() {
        both_reconcile::<Peer>().await;
    }
}
