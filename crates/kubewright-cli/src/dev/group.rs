//! A child process with everything that it starts.
//!
//! The child leads a process group of its own, so that a signal reaches its children too, and one from the terminal
//! reaches none of them: who ends them is the loop. Whatever way a [`Group`] goes, nothing of it is left.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};

#[derive(Debug)]
pub(crate) struct Group {
    child: Child,
    /// None once it has ended, when the number may be somebody else's.
    id: Option<Pid>,
}

impl Group {
    pub(crate) fn spawn(command: &mut Command) -> io::Result<Self> {
        let child = command.process_group(0).spawn()?;
        let id = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        Ok(Self { child, id })
    }

    /// For its pipes.
    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Waits until the child has ended. What it has left running ends then too. Can be given up and called again.
    pub(crate) async fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await?;
        self.signal(Signal::KILL);
        self.id = None;
        Ok(status)
    }

    /// Asks it to end, and makes it end when it has not within the time that it is given.
    pub(crate) async fn end(&mut self, grace: Duration) -> io::Result<ExitStatus> {
        self.signal(Signal::TERM);
        if let Ok(ended) = tokio::time::timeout(grace, self.wait()).await {
            return ended;
        }
        self.kill().await
    }

    /// Ends it at once.
    pub(crate) async fn kill(&mut self) -> io::Result<ExitStatus> {
        self.signal(Signal::KILL);
        self.wait().await
    }

    fn signal(&self, signal: Signal) {
        if let Some(id) = self.id {
            // Nobody is left in it: that is what was wanted.
            let _ = kill_process_group(id, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}
