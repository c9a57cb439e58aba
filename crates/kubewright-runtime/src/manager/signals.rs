//! SIGTERM and SIGINT: the first starts a graceful shutdown, the second exits immediately.

use std::io;

use tokio_util::sync::CancellationToken;

use super::ManagerError;

#[cfg(unix)]
pub(super) struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    pub(super) fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            biased;
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

#[cfg(not(unix))]
pub(super) struct Signals;

#[cfg(not(unix))]
impl Signals {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) {
        let _ = tokio::signal::ctrl_c().await;
    }
}

impl Signals {
    /// Runs a future that stops on the first signal, and drops it on the second.
    pub(super) async fn around<F>(
        mut self,
        run: impl FnOnce(tokio_util::sync::WaitForCancellationFutureOwned) -> F,
    ) -> Result<(), ManagerError>
    where
        F: Future<Output = Result<(), ManagerError>>,
    {
        let stop = CancellationToken::new();
        let mut run = std::pin::pin!(run(stop.clone().cancelled_owned()));
        tokio::select! {
            biased;
            ended = &mut run => return ended,
            () = self.next() => {}
        }
        tracing::info!("Shutdown signal received; a second one exits immediately");
        stop.cancel();
        tokio::select! {
            biased;
            ended = &mut run => ended,
            () = self.next() => Err(ManagerError::Interrupted),
        }
    }
}
