//! Runs the controller without a manager: `cargo run -p sample-controller --example by_hand`.

use kubewright::{CacheOptions, Result, connect, logs};
use sample_controller::{by_hand, inventory};

/// As the flag `--workers` of kubernetes/sample-controller.
const WORKERS: usize = 2;

#[tokio::main]
async fn main() -> Result<()> {
    logs::init(&logs::Options::default())?;
    let stop = stop()?;
    let config = connect::infer(&connect::Source::default()).await?;
    let kube = connect::client(config, connect::Options::default())?;
    by_hand::run(kube, CacheOptions::default(), inventory::from_env(), WORKERS, stop).await
}

/// Resolves on SIGTERM, which the kubelet sends, and on SIGINT.
#[cfg(unix)]
fn stop() -> std::io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// Resolves on Ctrl-C.
#[cfg(not(unix))]
fn stop() -> std::io::Result<impl Future<Output = ()>> {
    Ok(async {
        // An error means that no signal can arrive. Then only the end of the process stops the controller.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    })
}

#[cfg(all(test, unix))]
mod tests {
    use std::process::{Command, id};

    #[tokio::test]
    async fn sigterm_stops_the_controller() {
        let stop = super::stop().expect("a signal handler can be installed");
        let sent = Command::new("kill").args(["-TERM", &id().to_string()]).status().expect("kill starts");
        assert!(sent.success());
        stop.await;
    }
}
