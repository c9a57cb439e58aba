//! How long it takes until a server is there, in the process that wants it.

use std::env;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use kubewright_apiserver::{ApiServer, Options};

use crate::stopwatch::Stopwatch;

/// The first server of a process: it also parses the facts that it needs. Only true once in each process.
pub(crate) fn first_start() -> Duration {
    next_start()
}

/// The same, in a process of its own.
pub(super) fn first_start_elsewhere() -> Result<Duration> {
    let own = env::current_exe().context("cannot find this program's own file")?;
    let output =
        Command::new(own).arg("--first-start").output().context("cannot start this program once more")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let nanos = String::from_utf8_lossy(&output.stdout).trim().parse().context("a number of nanoseconds")?;
    Ok(Duration::from_nanos(nanos))
}

/// One more server in a process that had some, as each further test of a test binary has it.
pub(super) fn next_start() -> Duration {
    let stopwatch = Stopwatch::thread();
    let server = ApiServer::new(Options::default());
    let took = stopwatch.elapsed();
    drop(server);
    took
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_takes_time() {
        assert!(next_start() > Duration::ZERO);
    }
}
