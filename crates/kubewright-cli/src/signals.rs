//! Shutdown signals.

use anyhow::{Context as _, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Receives SIGINT and SIGTERM.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Option<Signal>,
}

impl Signals {
    /// Installs the handlers. Call it before opening a port: a client may send a signal as soon as the port
    /// is open.
    pub(crate) fn listen() -> Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?,
            terminate: signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?,
            hangup: None,
        })
    }

    /// Also handles SIGHUP, so that child processes do not outlive the terminal.
    pub(crate) fn with_hangup(self) -> Result<Self> {
        Ok(Self { hangup: Some(signal(SignalKind::hangup()).context("cannot listen for SIGHUP")?), ..self })
    }

    /// Waits for a signal.
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
