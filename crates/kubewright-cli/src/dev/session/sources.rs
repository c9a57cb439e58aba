//! Detects saves of the operator's sources and samples.

use anyhow::{Context as _, Result};

use super::builds::Builds;
use crate::dev::watcher::{Change, Watcher};
use crate::project::{self, Project};

pub(super) struct Sources {
    /// `None` with `--once`.
    watcher: Option<Watcher>,
    /// Whether a Cargo.toml changed since `cargo metadata` ran last.
    is_stale: bool,
}

impl Sources {
    /// Starts watching, unless the loop runs once.
    pub(super) fn watch(project: &Project, sources: project::Sources, is_once: bool) -> Result<Self> {
        let watcher = if is_once { None } else { Some(Watcher::start(project.root(), sources)?) };
        Ok(Self { watcher, is_stale: false })
    }

    /// Waits for a save. Cancel-safe.
    pub(super) async fn changed(&mut self) -> Result<Change> {
        let Some(watcher) = &mut self.watcher else { return std::future::pending().await };
        watcher.changed().await?;
        let change = watcher.take();
        self.is_stale |= change.manifest;
        Ok(change)
    }

    /// Reads the packages again after a change of Cargo.toml.
    pub(super) async fn refresh(&mut self, project: &Project, builds: &mut Builds) -> Result<()> {
        let Some(watcher) = self.watcher.as_mut().filter(|_| self.is_stale) else { return Ok(()) };
        let (project, bin) = (project.clone(), builds.bin().map(str::to_owned));
        let metadata = tokio::task::spawn_blocking(move || project.metadata(bin.as_deref()));
        let metadata = metadata.await.context("failed to run cargo metadata")??;
        watcher.watch(metadata.sources)?;
        builds.select(metadata.selection);
        self.is_stale = false;
        Ok(())
    }
}
