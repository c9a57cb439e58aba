//! Copies of a whole server: the copy itself, and what the first write to it pays for the sharing.

use std::time::Duration;

use anyhow::Result;
use kubewright_apiserver::ApiServer;

use super::endpoint::Endpoint;
use super::objects::{self, Kind};
use crate::stopwatch::mean_of;

/// Copies that are made in a row: one alone is too short for the clock.
const FORKS: u32 = 100;

pub(super) fn fork(server: &ApiServer) -> Duration {
    // They are kept until the clock has stopped, since dropping them is another matter.
    let mut copies = Vec::with_capacity(100);
    mean_of(FORKS, || copies.push(server.fork()))
}

/// One more ConfigMap in a fresh copy.
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
    async fn the_original_does_not_see_the_write() {
        let server = ApiServer::new(Options::default());
        let before = server.revision();
        fork(&server);
        first_write(&server).await.unwrap();
        assert_eq!(server.revision(), before);
    }
}
