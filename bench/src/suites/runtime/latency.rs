//! Latency from an update to the reconcile that sees it.
//!
//! Sends one update at a time, so that nothing waits in a queue. Measured from before the request until the
//! reconciler has the object. The request takes the same time on both sides.

use std::time::Instant;

use anyhow::{Context as _, Result};
use kubewright_bench_work::Operator;

use super::started;
use super::world::{self, World};
use crate::samples::Samples;

/// The latencies of all updates, in seconds.
pub(super) async fn measure<O: Operator>(world: World, updates: usize) -> Result<Samples> {
    let (operator, work) = started::<O>(&world, 1).await?;
    let mut times = Samples::default();
    for (at, name) in world.names.iter().cycle().take(updates).enumerate() {
        let turn = u32::try_from(10 + at).context("too many updates")?;
        let update = world::update(name, turn)?;
        let seen = work.expect(1);
        let started = Instant::now();
        world.send(update).await?;
        let seen = seen.await.context("the operator stopped")?;
        times.push((seen - started).as_secs_f64());
    }
    operator.stop().await?;
    Ok(times)
}

#[cfg(test)]
mod tests {
    use kubewright_bench_ours::Ours;
    use kubewright_bench_peer::Peer;

    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn every_update_is_reconciled() {
        let world = World::filled(5).await.unwrap();
        for latencies in [
            measure::<Ours>(world.copy(), 12).await.unwrap(),
            measure::<Peer>(world.copy(), 12).await.unwrap(),
        ] {
            assert_eq!(latencies.len(), 12);
            assert!(latencies.quantile(0.0) > 0.0 && latencies.quantile(0.5) <= latencies.quantile(0.99));
        }
    }
}
