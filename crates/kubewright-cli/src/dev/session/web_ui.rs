//! The page in the browser, if the loop has one.

use anyhow::Result;
use kubewright_runtime::internal::journal;

use crate::dev::cluster::Cluster;
use crate::dev::operator::Launch;
use crate::dev::page::{Feed, Page};

pub(super) struct WebUi {
    /// `None` with `--once`.
    page: Option<Page>,
    /// Where the loop reports to. Does nothing without a page.
    feed: Feed,
}

impl WebUi {
    /// Serves the page on a port, unless the loop runs once.
    pub(super) async fn start(cluster: &Cluster, port: u16, is_once: bool) -> Result<Self> {
        let page = if is_once { None } else { Some(Page::start(cluster.client().clone(), port).await?) };
        let feed = page.as_ref().map(Page::feed).unwrap_or_default();
        feed.kubectl(cluster.kubectl_command());
        Ok(Self { page, feed })
    }

    /// Lets the operator send its journal to the page.
    pub(super) fn configure(&self, launch: &mut Launch) {
        if let Some(page) = &self.page {
            launch.variables.push((journal::VARIABLE, page.journal_address().to_string().into()));
            launch.variables.push((journal::TOKEN_VARIABLE, page.journal_token().into()));
        }
    }

    pub(super) fn feed(&self) -> &Feed {
        &self.feed
    }

    pub(super) fn url(&self) -> Option<String> {
        self.page.as_ref().map(Page::url)
    }

    pub(super) fn port(&self) -> Option<u16> {
        self.page.as_ref().map(|page| page.address().port())
    }

    pub(super) async fn stop(self) {
        if let Some(page) = self.page {
            page.stop().await;
        }
    }
}
