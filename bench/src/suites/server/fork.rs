//! Forks of a server: the fork itself, and the first write to it.

use std::time::Duration;

use anyhow::Result;
use kubewright_apiserver::ApiServer;

use super::endpoint::Endpoint;
use super::objects::{self, Kind};
use crate::stopwatch::mean_of;

/// Forks per measurement, because a single one is too short to measure.
const FORKS: u32 = 100;

pub(super) fn fork(server: &ApiServer) -> Duration {
    // Dropped after the measurement, because dropping is not measured.
    let mut copies = Vec::with_capacity(100);
    mean_of(FORKS, || copies.push(server.fork()))
}

/// Creates a ConfigMap in a new fork.
pub(super) async fn first_write(server: &ApiServer) -> Result<Duration> {
    let endpoint = Endpoint::InProcess(server.fork());
    let call = objects::create(endpoint.base(), Kind::ConfigMap, "only-in-the-copy");
    let stopwatch = endpoint.stopwatch();
    endpoint.call(call).await?;
    Ok(stopwatch.elapsed())
}

#[cfg(test)]
mod tests {
    use kubewright_apiserver::Options;

    use super::*;

    #[tokio::test]
    async fn a_write_to_a_fork_does_not_change_the_original() {
        let server = ApiServer::new(Options::default());
        let before = server.revision();
        fork(&server);
        first_write(&server).await.unwrap();
        assert_eq!(server.revision(), before);
    }
}
