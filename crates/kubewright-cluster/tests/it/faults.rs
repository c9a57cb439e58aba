//! The chain from Deployment to running pods gets there although requests fail, and ends as it does without.

use anyhow::Result;
use kubewright_cluster::{Nodes, Options};
use kubewright_envtest::Effect;
use serde_json::json;

use crate::world::{World, deployment, image};

const SEEDS: u64 = 12;

#[tokio::test(start_paused = true)]
async fn whatever_fails_on_the_way_the_end_is_the_same() -> Result<()> {
    for seed in 0..SEEDS {
        let world = World::start(Options { nodes: Nodes::count(2), ..Options::default() }).await?;
        let break_things = || {
            let faults = world.env.faults();
            faults.sometimes(seed, 20, Effect::internal_error(), |asked| asked.is_write());
            faults.sometimes(seed + 1, 20, Effect::LoseAnswer, |asked| asked.is_write());
            faults.sometimes(seed + 2, 20, Effect::conflict(), |asked| asked.is_write());
            faults.sometimes(seed + 3, 20, Effect::Refuse, |asked| asked.is_write());
        };
        let mut wanted = deployment("web", 5, "web:1");
        world.apply(wanted.clone()).await?;
        break_things();
        world.rolled_out("web", 5).await?;
        world.env.faults().heal();
        wanted["spec"]["template"]["spec"]["containers"][0]["image"] = json!("web:2");
        wanted["spec"]["replicas"] = json!(3);
        world.apply(wanted).await?;
        break_things();
        world.rolled_out("web", 3).await?;
        let pods = world.ready_pods(3).await?;
        assert!(pods.iter().all(|pod| image(pod) == "web:2"), "seed {seed}");
        let addresses: std::collections::BTreeSet<_> =
            pods.iter().filter_map(|pod| pod.status.as_ref()?.pod_ip.clone()).collect();
        assert_eq!(addresses.len(), 3, "seed {seed}: no two pods have one address");
    }
    Ok(())
}
