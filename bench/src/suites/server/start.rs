//! Startup time of an in-process server.

use std::env;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use kubewright_apiserver::{ApiServer, Options};

use crate::stopwatch::Stopwatch;

/// Starts the first server of this process, which also parses the required facts.
pub(crate) fn first_start() -> Duration {
    next_start()
}

/// Runs [`first_start`] in a new process.
pub(super) fn first_start_elsewhere() -> Result<Duration> {
    let own = env::current_exe().context("get the path of this program")?;
    let output = Command::new(own).arg("--first-start").output().context("start this program again")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let nanos =
        String::from_utf8_lossy(&output.stdout).trim().parse().context("parse the number of nanoseconds")?;
    Ok(Duration::from_nanos(nanos))
}

/// Starts another server in a process that has already started some, as in a test binary.
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
    fn starting_a_server_takes_time() {
        assert!(next_start() > Duration::ZERO);
    }
}
