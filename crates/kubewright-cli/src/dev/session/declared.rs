//! What the built operator declares: its manifests, and its CRDs in the cluster.

use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::dev::crds::{AppliedCrds, CustomKind};
use crate::dev::report::Report;
use crate::project::{Manifests, Project, manifests};

#[derive(Default)]
pub(super) struct Declared {
    applied: AppliedCrds,
    /// The last findings about the manifests. The same findings are printed once.
    findings: String,
}

impl Declared {
    /// Reads the inventory of the binary and writes the generated files.
    pub(super) async fn write(
        &mut self,
        project: &Project,
        program: &Path,
        report: &Report,
    ) -> Result<Manifests> {
        let (project, program) = (project.clone(), program.to_owned());
        let made = tokio::task::spawn_blocking(move || {
            let inventory = project.declared_by(&program)?;
            let made = project.manifests(&inventory, &manifests::Options::default())?;
            if made.check().is_ok() {
                made.write(&project, false)?;
            }
            anyhow::Ok(made)
        });
        let made = made.await.context("failed to generate the manifests")??;
        let findings = made.findings();
        if findings != self.findings {
            report.findings(&findings);
            self.findings = findings;
        }
        made.check()?;
        Ok(made)
    }

    /// Installs the CRDs and waits until they are served. Returns how many changed.
    pub(super) async fn install(&mut self, client: &kube::Client, crds: &[(String, Value)]) -> Result<usize> {
        self.applied.apply(client, crds).await
    }

    /// The served versions of the operator's kinds.
    pub(super) fn kinds(&self) -> Vec<CustomKind> {
        self.applied.kinds()
    }
}
