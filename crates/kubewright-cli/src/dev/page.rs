//! The live page: what is in the cluster and what the operator does, in a browser.
//!
//! A [`Page`] watches the cluster through a client, reads the operator's [`journal`], and serves both to any number of
//! browsers on this machine. It only looks: nothing that fails here, the cluster least of all, may end the loop that
//! started it. What cannot be reached is told on the page and tried again.
//!
//! - [`watch`] and [`journal`] bring what is shown, [`state`] and [`work`] keep it, bounded, and put it on the
//!   [`board`], from which [`stream`] and [`http`] serve it;
//! - [`readiness`], [`system_objects`], [`redact`] and [`detail`] say how, whether and how much of an object is shown;
//! - `assets/` is the page itself: plain HTML, CSS and modules, without a build step.

mod board;
mod detail;
mod http;
mod journal;
mod readiness;
mod redact;
mod state;
mod stream;
mod system_objects;
#[cfg(test)]
mod tests;
mod watch;
mod work;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use self::state::Shared;
use crate::error::Hint as _;

/// A page that is served. Dropping it ends it; so does [`Page::stop`], which waits.
pub(crate) struct Page {
    address: SocketAddr,
    journal: SocketAddr,
    tasks: JoinSet<()>,
}

impl Page {
    /// Opens the page on a port of 127.0.0.1, any that is free if it is 0. Only a port that is taken is an error: a
    /// cluster that does not answer is shown as that.
    pub(crate) async fn start(client: kube::Client, port: u16) -> Result<Self> {
        let page = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
            .await
            .with_context(|| format!("the page cannot be served on 127.0.0.1:{port}"))
            .hint("choose another port with --page-port, or let the system choose one with --page-port 0")?;
        let records = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .context("the page cannot listen for the operator's journal on 127.0.0.1")?;
        let address = page.local_addr().context("the page does not know its address")?;
        let journal = records.local_addr().context("the page does not know the address of its journal")?;
        let shared = Arc::new(Shared::new());
        let mut tasks = JoinSet::new();
        tasks.spawn(watch::follow(client, shared.clone()));
        tasks.spawn(journal::listen(records, shared.clone()));
        tasks.spawn(http::serve(page, shared));
        Ok(Self { address, journal, tasks })
    }

    /// Where to look at it.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Where the operator writes its journal: the value of `KUBEWRIGHT_JOURNAL`.
    pub(crate) fn journal_address(&self) -> SocketAddr {
        self.journal
    }

    /// Ends it, with every connection.
    pub(crate) async fn stop(mut self) {
        self.tasks.shutdown().await;
    }
}
