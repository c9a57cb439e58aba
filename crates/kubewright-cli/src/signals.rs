//! The signals that ask a server to end.

use anyhow::{Context as _, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGINT and SIGTERM, from now on.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Option<Signal>,
}

impl Signals {
    /// Begins to listen. To be done before a port is open: whoever sees it open may send a signal at once.
    pub(crate) fn listen() -> Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?,
            terminate: signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?,
            hangup: None,
        })
    }

    /// Listens for SIGHUP too: what a program has started must not outlive the terminal that shows it.
    pub(crate) fn with_hangup(self) -> Result<Self> {
        Ok(Self { hangup: Some(signal(SignalKind::hangup()).context("cannot listen for SIGHUP")?), ..self })
    }

    /// Waits for one of them.
    pub(crate) async fn any(&mut self) {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = hangup => {}
        }
    }
}
