//! The samples in the loop: applied on the first start and on each save, and followed until they are ready.

use anyhow::Result;

use crate::dev::cluster::Cluster;
use crate::dev::crds::CustomKind;
use crate::dev::readiness_watch::ReadinessWatch;
use crate::dev::sample_status::SampleStatus;
use crate::dev::samples;
use crate::dev::watcher::Change;
use crate::project::Project;

pub(super) struct Samples {
    /// The `--samples` flag.
    flag: Option<bool>,
    /// Whether there are saved samples that are not applied yet.
    are_saved: bool,
    watch: ReadinessWatch,
}

impl Samples {
    pub(super) fn new(flag: Option<bool>) -> Self {
        Self { flag, are_saved: false, watch: ReadinessWatch::default() }
    }

    /// Records a save.
    pub(super) fn saved(&mut self, change: Change) {
        self.are_saved |= change.samples && self.flag != Some(false);
    }

    pub(super) fn are_saved(&self) -> bool {
        self.are_saved
    }

    /// Decides whether the first deployment applies the samples: by the flag, with `--once`, or to a cluster that never
    /// had them.
    pub(super) async fn decide(&mut self, project: &Project, cluster: &Cluster, is_once: bool) -> Result<()> {
        self.are_saved |= match self.flag {
            Some(flag) => flag,
            None => is_once || cluster.wants(&samples::read(project.root())?).await?,
        };
        Ok(())
    }

    /// Applies the samples and starts to follow them. Returns their number.
    pub(super) async fn apply(
        &mut self,
        project: &Project,
        cluster: &Cluster,
        kinds: &[CustomKind],
    ) -> Result<usize> {
        let client = cluster.client();
        let mut placed = Vec::new();
        for sample in samples::read(project.root())? {
            placed.push(sample.apply(client).await?);
        }
        let applied = placed.len();
        self.are_saved = false;
        cluster.sampled()?;
        self.watch.start(placed, client, kinds);
        Ok(applied)
    }

    /// Follows the samples that exist from an earlier run.
    pub(super) async fn follow_kept(
        &mut self,
        project: &Project,
        cluster: &Cluster,
        kinds: &[CustomKind],
    ) -> Result<()> {
        let client = cluster.client();
        let mut kept = Vec::new();
        for sample in samples::read(project.root())? {
            let placed = sample.place(client).await?;
            if placed.exists(client).await? {
                kept.push(placed);
            }
        }
        self.watch.start(kept, client, kinds);
        Ok(())
    }

    /// Follows the same samples again, for a new operator.
    pub(super) fn follow_again(&mut self, cluster: &Cluster, kinds: &[CustomKind]) {
        self.watch.restart(cluster.client(), kinds);
    }

    /// Evaluates the samples now, although nothing changed.
    pub(super) fn check_now(&mut self) {
        self.watch.check_now();
    }

    /// Waits for a change, and evaluates the samples. Cancel-safe.
    pub(super) async fn changed(
        &mut self,
        client: &kube::Client,
        kinds: &[CustomKind],
    ) -> Result<Vec<SampleStatus>> {
        self.watch.next(client, kinds).await
    }

    /// Stops following the samples, because they are ready.
    pub(super) fn settle(&mut self) {
        self.watch.stop();
    }

    /// Whether readiness takes long; true only once.
    pub(super) fn are_late(&mut self) -> bool {
        self.watch.is_late()
    }
}
