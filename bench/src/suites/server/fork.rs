//! Copies of a whole server: the copy itself, and what the first write to it pays for the sharing.

use std::time::{Duration, Instant};

use anyhow::Result;
use kubewright_apiserver::ApiServer;

use super::endpoint::Endpoint;
use super::objects::{self, Kind};

pub(super) fn fork(server: &ApiServer) -> Duration {
    let started = Instant::now();
    let copy = server.fork();
    let took = started.elapsed();
    drop(copy);
    took
}

/// One more ConfigMap in a fresh copy.
pub(super) async fn first_write(server: &ApiServer) -> Result<Duration> {
    let endpoint = Endpoint::InProcess(server.fork());
    let call = objects::create(endpoint.base(), Kind::ConfigMap, "only-in-the-copy");
    let started = Instant::now();
    endpoint.call(call).await?;
    Ok(started.elapsed())
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
