//! Runs the controller without a manager: `cargo run -p sample-controller --example by_hand`.

use kubewright::{CacheOptions, Result, connect, logs};
use sample_controller::{by_hand, inventory};

/// As the flag `--workers` of kubernetes/sample-controller.
const WORKERS: usize = 2;

#[tokio::main]
async fn main() -> Result<()> {
    logs::init(&logs::Options::default())?;
    let config = connect::infer(&connect::Source::default()).await?;
    let kube = connect::client(config, connect::Options::default())?;
    let stop = async {
        // An error means that no signal can arrive. Then only the end of the process stops the controller.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    by_hand::run(kube, CacheOptions::default(), inventory::from_env(), WORKERS, stop).await
}
