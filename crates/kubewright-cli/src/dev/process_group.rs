//! A child process with all its descendants.
//!
//! The child leads its own process group: signals to the group reach its descendants, and signals of the
//! terminal do not. Dropping a [`Group`] kills all of it.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};

#[derive(Debug)]
pub(crate) struct Group {
    child: Child,
    /// `None` after the exit, when the ID may be reused.
    id: Option<Pid>,
}

impl Group {
    pub(crate) fn spawn(command: &mut Command) -> io::Result<Self> {
        let child = command.process_group(0).spawn()?;
        let id = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        Ok(Self { child, id })
    }

    /// The child, for its pipes.
    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Waits for the child to exit, then kills its descendants. Cancel-safe.
    pub(crate) async fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await?;
        self.signal(Signal::KILL);
        self.id = None;
        Ok(status)
    }

    /// Sends SIGTERM, and SIGKILL after the grace period.
    pub(crate) async fn end(&mut self, grace: Duration) -> io::Result<ExitStatus> {
        self.signal(Signal::TERM);
        if let Ok(ended) = tokio::time::timeout(grace, self.wait()).await {
            return ended;
        }
        self.kill().await
    }

    /// Sends SIGKILL.
    pub(crate) async fn kill(&mut self) -> io::Result<ExitStatus> {
        self.signal(Signal::KILL);
        self.wait().await
    }

    fn signal(&self, signal: Signal) {
        if let Some(id) = self.id {
            // An empty group is fine.
            let _ = kill_process_group(id, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}
