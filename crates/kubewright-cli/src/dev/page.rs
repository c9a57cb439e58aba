//! The web UI: the objects of the cluster and the work of the operator, live in a browser.
//!
//! A [`Page`] watches the cluster, reads the operator's [`journal`], and serves both to local browsers. It is
//! read-only, and no failure here ends the development loop. Errors are shown on the page and retried.
//!
//! - [`watch`], [`journal`] and [`feed`] collect data, [`state`] and [`build`] keep a bounded amount of it, and [`stream`]
//!   and [`http`] serve it; [`detail`] shows one object;
//! - [`kubewright_page`] has what the page of a manager shares: the model, and the page itself.

mod build;
mod connections;
mod detail;
mod feed;
mod http;
mod journal;
mod state;
mod stream;
mod watch;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow};
use ring::rand::{SecureRandom as _, SystemRandom};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

pub use self::feed::Feed;
use self::state::Shared;
use crate::error::Hint as _;

/// A running web UI. Dropping it stops it; [`Page::stop`] also waits.
pub struct Page {
    address: SocketAddr,
    journal: SocketAddr,
    token: Arc<str>,
    shared: Arc<Shared>,
    tasks: JoinSet<()>,
}

impl Page {
    /// Serves the page on a port of 127.0.0.1; 0 picks a free port. Only a taken port is an error; an
    /// unreachable cluster is shown on the page.
    pub async fn start(client: kube::Client, port: u16) -> Result<Self> {
        let page = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
            .await
            .with_context(|| format!("cannot serve the web UI on 127.0.0.1:{port}"))
            .hint("choose another --page-port, or use --page-port 0 for a free one")?;
        let records = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .context("cannot listen for the operator's journal on 127.0.0.1")?;
        let address = page.local_addr().context("cannot read the address of the web UI")?;
        let journal = records.local_addr().context("cannot read the address of the journal")?;
        let token: Arc<str> = token()?.into();
        let shared = Arc::new(state::shared());
        let mut tasks = JoinSet::new();
        tasks.spawn(watch::follow(client, shared.clone()));
        tasks.spawn(journal::listen(records, token.clone(), shared.clone()));
        tasks.spawn(http::serve(page, shared.clone()));
        Ok(Self { address, journal, token, shared, tasks })
    }

    /// URL of the page.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Address of the page.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Address of the journal: the value of `KUBEWRIGHT_JOURNAL`.
    pub fn journal_address(&self) -> SocketAddr {
        self.journal
    }

    /// Token of the journal: the value of `KUBEWRIGHT_JOURNAL_TOKEN`. Only the operator that `dev` starts has it.
    pub fn journal_token(&self) -> &str {
        &self.token
    }

    /// Where the development loop reports builds, exits and output of the operator.
    pub fn feed(&self) -> Feed {
        Feed::new(self.shared.clone())
    }

    /// Stops the page and closes all connections.
    pub async fn stop(mut self) {
        self.tasks.shutdown().await;
    }
}

/// A random token.
fn token() -> Result<String> {
    let mut bytes = [0; 16];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| anyhow!("failed to read random bytes from the operating system"))?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}
